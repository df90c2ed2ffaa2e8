"""Result and Trace: what is saved comes back to the bit, and nothing half-written is left behind."""

import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest

import mixbin as mb
from mixbin import _files
from mixbin.result import Relaxed, Trace
from tests.instances import quadratic


@pytest.fixture
def result():
    return mb.relax_and_penalize(quadratic(mb.Budget(12, 4), 0, n_lam=1), seed=3, starts=2)


def test_save_and_load_round_trip(result, tmp_path):
    path = tmp_path / "answer.npz"
    result.save(path)
    back = mb.Result.load(path)
    np.testing.assert_array_equal(back.theta, result.theta)
    assert back.theta.dtype == np.bool_
    np.testing.assert_array_equal(back.lam, result.lam)
    np.testing.assert_array_equal(back.relaxed.theta, result.relaxed.theta)
    for name in ("value", "status", "message", "n_evaluations", "seed", "violation", "settings"):
        assert getattr(back, name) == getattr(result, name)
    assert back.relaxed.value == result.relaxed.value
    assert back.trace.to_frame().equals(result.trace.to_frame())
    assert [file.name for file in tmp_path.iterdir()] == ["answer.npz"]


def test_infinite_values_and_relaxed_points_survive(tmp_path):
    path = tmp_path / "odd.npz"
    mb.Result(np.array([0.25, 0.75]), np.empty(0), np.inf, mb.Status.RELAXED, "ä", 1).save(path)
    back = mb.Result.load(path)
    assert back.value == np.inf
    assert back.theta.dtype == np.float64
    assert back.relaxed is None
    assert back.message == "ä"
    assert len(back.trace) == 0


def test_no_pickle_inside(result, tmp_path):
    path = tmp_path / "answer.npz"
    result.save(path)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                np.lib.format.read_array(member, allow_pickle=False)


def test_a_failed_save_leaves_the_old_file(result, tmp_path, monkeypatch):
    path = tmp_path / "answer.npz"
    result.save(path)
    before = path.read_bytes()

    def torn(file, **arrays):
        file.write(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", torn)
    with pytest.raises(OSError, match="disk full"):
        result.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["answer.npz"]


def test_saved_files_have_ordinary_permissions(tmp_path):
    (tmp_path / "plain").write_text("x")
    with _files.replacing(tmp_path / "ours") as file:
        file.write(b"x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 torn"])
def test_foreign_files_are_refused(content, tmp_path):
    path = tmp_path / "foreign.npz"
    path.write_bytes(content)
    with pytest.raises(mb.InvalidInput, match="is not a saved mixbin result"):
        mb.Result.load(path)


def test_truncated_and_unrelated_archives_are_refused(result, tmp_path):
    path = tmp_path / "answer.npz"
    result.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(mb.InvalidInput, match="is not a saved mixbin result"):
        mb.Result.load(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(mb.InvalidInput, match="is not a saved mixbin result"):
        mb.Result.load(path)


def test_missing_files_and_folders_are_named(result, tmp_path):
    with pytest.raises(mb.InvalidInput, match=r"nowhere\.npz.*does not exist"):
        mb.Result.load(tmp_path / "nowhere.npz")
    with pytest.raises(mb.InvalidInput, match="existing folder"):
        result.save(tmp_path / "no" / "such" / "folder.npz")
    with pytest.raises(mb.InvalidInput, match="must name a file"):
        result.save(tmp_path)


def test_repr_is_readable(result):
    text = repr(result)
    assert text.startswith("Result: BINARY, value ")
    assert "4 of 12 on" in text
    assert "relaxed value" in text
    assert "rows" in repr(result.trace)


def test_notebooks_show_a_short_table(result):
    text = result._repr_html_()
    root = ElementTree.fromstring(text)
    shown = {row.find("th").text: row.find("td").text for row in root.iter("tr")}
    assert shown["status"] == "BINARY"
    assert shown["value"] == f"{result.value:.6g}"
    assert shown["theta"] == "4 of 12 on, shape (12,)"
    assert shown["lam"] == np.array2string(result.lam, precision=4)
    assert shown["what happened"] == result.message
    assert shown["certificate"] == str(result.certificate)
    short = f"inner_steps 20, starts 2, polish 2000, seed {result.seed}"
    assert shown["settings"] == f"relax_and_penalize, solver {mb.SpectralGradient()!r}, {short}"


def test_notebooks_mark_what_the_problem_prefers(result):
    problem = quadratic(mb.Budget(12, 4), 0)
    problem.preferred_settings = {"starts": 1}
    text = mb.relax_and_penalize(problem, seed=0)._repr_html_()
    assert "starts 1 (the problem&#x27;s preference), polish" in text


def test_notebooks_show_a_message_as_text():
    bare = mb.Result(np.array([0.25, 0.75]), np.empty(0), np.inf, mb.Status.RELAXED, "<script>alert(1)</script>", 1)
    root = ElementTree.fromstring(bare._repr_html_())
    shown = {row.find("th").text: row.find("td").text for row in root.iter("tr")}
    assert shown["what happened"] == "<script>alert(1)</script>"
    assert list(shown) == ["status", "value", "theta", "evaluations", "what happened"]


def test_trace_columns_may_be_missing_in_rows():
    trace = Trace()
    trace.append(start=0, phase="relax", outer=0, inner=0, epsilon=np.inf, G=1.0, phi=0.0, step=0.0, n_evaluations=1)
    trace.append(start=0, phase="relax", outer=0, inner=1, epsilon=np.inf, G=0.5, phi=0.0, step=1.0, n_evaluations=2, depth=3.0)
    np.testing.assert_array_equal(trace.column("depth"), [np.nan, 3.0])
    assert list(trace.column("phase")) == ["relax", "relax"]
    assert trace.to_frame()["n_evaluations"].tolist() == [1, 2]
    assert trace.to_csv() == trace.to_frame().to_csv(index=False)
    with pytest.raises(mb.InvalidInput, match="column must be one of"):
        trace.column("colour")


def test_relaxed_is_a_plain_tuple():
    theta, _lam, value = Relaxed(np.zeros(2), np.empty(0), 1.5)
    assert value == 1.5
    assert theta.shape == (2,)

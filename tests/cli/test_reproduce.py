"""``mixbin reproduce``: its numbers against expected ones, killed and started again, what it says, errors."""

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

import mixbin as mb
from mixbin.cli import app
from mixbin.datasets.sources import Source
from tests.cli.killed import FEW
from tests.shared_data import DATA, shared_file

ROOT = Path(__file__).resolve().parents[2]


def invoke(*args, data=None):
    env = {"COLUMNS": "80", "MIXBIN_DATA": str(data) if data else ""}
    return CliRunner(env=env).invoke(app, ["reproduce", *map(str, args)], prog_name="mixbin")


def cells(got, table, **where):
    found = json.loads(got.stdout)["tables"][table]
    return [it for it in found if all(it[name] == value for name, value in where.items())]


# The quick size, unchanged: how its numbers compare with the oracle and with the published ones.


@pytest.fixture(scope="module")
def quick_groups(tmp_path_factory):
    got = invoke("table1", "tab:table2", "--jobs", 1, "--json", "--out", tmp_path_factory.mktemp("groups"))
    assert got.exit_code == 0, got.stderr
    return got


@pytest.mark.ci
def test_on_groups_penalize_matches_the_oracle_at_every_setting(quick_groups):
    def means(table, method, measured):
        return [it["mean"] for it in cells(quick_groups, table, method=method, measured=measured)]

    for table, measured in (("table1", "validation"), ("table1", "test"), ("table2", "spectral norm")):
        ours, oracle = (means(table, it, measured) for it in ("penalize", "oracle, lam of penalize"))
        np.testing.assert_allclose(ours, oracle, rtol=0.01)
    assert min(means("table2", "penalize", "adjusted Rand index")) >= 0.97
    published = [it["published_mean"] for it in cells(quick_groups, "table1", method="penalize", measured="validation")]
    np.testing.assert_allclose(means("table1", "penalize", "validation"), published, atol=0.02)


@pytest.fixture(scope="module")
def quick_blog(tmp_path_factory):
    shared_file("BlogFeedback.zip")
    out = tmp_path_factory.mktemp("blog")
    got = invoke("table3", "figure3", "figure4", "figure5", "figure6", "--jobs", 1, "--json", "--out", out, data=DATA)
    assert got.exit_code == 0, got.stderr
    return got, out


@pytest.mark.ci
@pytest.mark.parametrize("budget", ["10 %", "20 %", "30 %"])
def test_on_blog_penalize_beats_simple_and_top_k(quick_blog, budget):
    got, _ = quick_blog
    for column in ("validation loss", "test loss", "RMSE"):
        by_method = {it["method"]: it["mean"] for it in cells(got, "table3", data="blog", budget=budget, column=column)}
        assert by_method["penalize"] < 0.99 * by_method["top-k"]
        assert by_method["top-k"] < by_method["simple"]
    validation = cells(got, "table3", data="blog", budget=budget, column="validation loss", method="penalize")[0]
    assert 253.05 < validation["mean"] < validation["published_mean"]


@pytest.mark.ci
def test_the_losses_are_those_of_the_rows_on_record(quick_blog):
    _, out = quick_blog
    data = mb.datasets.load_blog(DATA)
    record = json.loads((out / "runs" / "blog-10-run0.json").read_text())
    X, y = data.X[::4], data.y[::4]
    kept = np.unpackbits(np.frombuffer(base64.b64decode(record["selection"]), dtype=np.uint8))[: len(y)] == 1
    assert kept.sum() == record["budget"] == 1310
    model = Ridge(alpha=100 * len(y)).fit(X[kept], y[kept])
    validation, test = (
        0.5 * np.mean((model.predict(A) - b) ** 2) for A, b in ((data.X_val, data.y_val), (data.X_test, data.y_test))
    )
    ours = record["methods"]["penalize"]
    np.testing.assert_allclose([ours["validation"], ours["test"], record["value"]], [validation, test, validation], rtol=1e-8)


@pytest.mark.ci
def test_the_excerpt_of_music_stands_under_its_own_name(quick_blog):
    got, out = quick_blog
    shared_file("YearPredictionMSD_random7000.csv.gz")
    excerpt = cells(got, "table3", data="music (excerpt: 7,000 random rows)", column="validation loss", method="penalize")
    assert len(excerpt) == 3
    assert all(it["mean"] is not None and it["published_mean"] is None for it in excerpt)
    assert all(it["mean"] is None for it in cells(got, "table3", data="music"))
    assert "the full file is not in the folder that MIXBIN_DATA names" in (out / "table3.md").read_text()


@pytest.mark.ci
def test_the_evolutions_end_where_the_table_does(quick_blog):
    got, out = quick_blog
    drawn = {it["number"]: it["data"] for it in json.loads((out / "results.json").read_text())["figures"]}
    for number, method in ((4, "simple"), (5, "top-k"), (6, "penalize")):
        for column, name in (
            ("validation loss", "validation_rounded"),
            ("test loss", "test_rounded"),
            ("rows kept", "n_selected"),
        ):
            (cell,) = cells(got, "table3", data="blog", budget="20 %", method=method, column=column)
            assert drawn[number][name][-1] == pytest.approx(cell["mean"], rel=1e-6)
    assert drawn[3]["distance"][-1] == 0


# Killed and started again.

KILLED = ["table4", "--jobs", "1", "--json"]


@pytest.mark.ci
def test_killed_in_the_middle_only_the_unfinished_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr("mixbin.cli.commands.reproduce.QUICK", FEW)
    out = tmp_path / "out"
    command = [*KILLED, "--out", str(out)]
    killed = subprocess.run(
        [sys.executable, "-m", "tests.cli.killed", "KILL", "130", "reproduce", *command], cwd=ROOT, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    finished = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in (out / "runs").iterdir()}
    begun = [folder.name for folder in (out / "unfinished").iterdir()]
    assert len(finished) == len(begun) == 1
    again = invoke(*command)
    assert again.exit_code == 0, again.stderr
    assert {name: ((out / "runs" / name).stat().st_mtime_ns, (out / "runs" / name).read_bytes()) for name in finished} == finished
    assert not (out / "unfinished").exists()
    whole = invoke(*KILLED, "--out", tmp_path / "whole")
    assert json.loads(again.stdout)["tables"] == json.loads(whole.stdout)["tables"]
    once_more = invoke(*command)
    assert json.loads(once_more.stdout)["tables"] == json.loads(whole.stdout)["tables"]
    shown = invoke(*KILLED[:-1], "--out", out)
    assert "5 runs (5 of them were there before)" in " ".join(shown.stdout.split())
    assert "Written to" in shown.stdout
    assert shown.stderr == ""


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    command = [*KILLED, "--out", str(tmp_path)]
    got = subprocess.run(
        [sys.executable, "-m", "tests.cli.killed", "INT", "20", "reproduce", *command],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "MIXBIN_DATA": ""},
    )
    assert got.returncode == 130
    assert got.stderr.splitlines()[-1] == "mixbin: interrupted; the same command goes on from here"
    assert any((tmp_path / "unfinished").iterdir())


# Errors.


def bad(tmp_path, *args, data=None):
    got = invoke(*args, "--out", tmp_path / "out", data=data)
    assert got.exit_code == 2
    assert got.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
    return got.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["table6"], "what must be one of table1, table2"),
        (["table1", "nonsense"], "got 'nonsense'"),
        (["table1", "--runs", "0"], "--runs must be"),
        (["table1", "--jobs", "0"], "--jobs must be"),
        (["table1", "--steps", "2000"], "--steps 2000 has no use without --solver paper"),
        (["table3", "--solver", "paper", "--steps", "10"], "--steps must be"),
        (["table3", "--budget", "15"], "--budget must be one of '10', '20', '30', got '15'"),
        (["table3", "--solver", "mine"], "--solver"),
        ([], "Missing argument"),
    ],
)
def test_bad_input_is_named_before_any_work(tmp_path, args, message):
    assert message in bad(tmp_path, *args)


def test_data_that_cannot_be_had_are_told_before_any_work(tmp_path, monkeypatch):
    def offline(self):
        raise mb.InvalidInput(f"{self.title} is not on this machine")

    monkeypatch.setattr(Source, "_download", offline)
    assert "BlogFeedback is not on this machine" in bad(tmp_path, "table3")


def test_out_must_be_a_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    got = invoke("table4", "--out", tmp_path / "file")
    assert (got.exit_code, "--out must be a folder" in got.stderr) == (2, True)


def test_a_folder_of_another_size_is_refused(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "groups-inequal-0.3-run0.json").write_text('{"identity": {"size": "quick"}}')
    got = invoke("figure2", "--full", "--out", tmp_path)
    assert got.exit_code == 2
    assert "differs in" in got.stderr


def test_help_has_an_example():
    assert "mixbin reproduce table3 --quick" in invoke("--help").stdout

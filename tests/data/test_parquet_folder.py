"""ParquetFolder in Python: what the command does with a folder, with the same bits; and what is refused."""

import contextlib
import sys

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest

import mixbin as mb

NAMES = ["a", "b", "c", "price"]
CHUNKS = (30, 20, 40, 30)


@pytest.fixture(autouse=True)
def _threads():
    with dask.config.set(scheduler="threads"):
        yield


def frame(rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    y = X @ [1.0, -2.0, 0.5] + 3 + rng.normal(size=rows) * np.where(rng.random(rows) < 0.3, 3.0, 0.1)
    return pd.DataFrame(np.column_stack([X, y]), columns=NAMES).assign(label=[f"{seed} {i}" for i in range(rows)])


@pytest.fixture(scope="module")
def table():
    return pd.concat([frame(rows, seed) for seed, rows in enumerate(CHUNKS)], ignore_index=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Files that sort as numbers; validation rows whose columns are in another order."""
    made = tmp_path_factory.mktemp("data")
    (made / "train").mkdir()
    for i, rows in enumerate(CHUNKS):
        frame(rows, i).to_parquet(made / "train" / f"part-{i + 8}.parquet", index=False)
    frame(40, 9)[["price", "c", "label", "b", "a"]].to_parquet(made / "val.parquet", index=False)
    return made


@pytest.fixture
def folder(path):
    return mb.ParquetFolder(path / "train", target="price", ignore=["label"])


def test_the_table(folder, table):
    assert (len(folder), folder.features, folder.target) == (120, ["a", "b", "c"], "price")
    assert "120 rows, 3 features, target 'price'" in repr(folder)
    assert folder.X.chunks == (CHUNKS, (3,))
    np.testing.assert_array_equal(folder.y.compute(), table["price"])


def test_x_is_a_dask_array_like_any_other(folder, table):
    expected = table[["a", "b", "c"]].to_numpy()
    np.testing.assert_array_equal(folder.X.compute(), expected)
    np.testing.assert_array_equal(folder.X[25:35].compute(), expected[25:35])
    np.testing.assert_allclose((folder.X - folder.X.mean(axis=0)).compute(), expected - expected.mean(axis=0), atol=1e-12)
    centred = folder.X - 1.0
    problem = mb.RidgeDistillation(centred, folder.y, expected[:20] - 1.0, table["price"][:20], budget=10, alpha=0.01)
    plain = mb.RidgeDistillation(expected, table["price"], expected[:20], table["price"][:20], budget=10, alpha=0.01)
    v, no_lam = np.ones(120), np.empty(0)
    assert problem.evaluate(v, no_lam).value == pytest.approx(plain.evaluate(v, no_lam).value, rel=1e-9)


def test_target_and_columns_by_number(path, folder):
    again = mb.ParquetFolder(path / "train", target=3, ignore=[-1])
    assert (again.features, again.target) == (folder.features, folder.target)


def test_a_run_gives_the_bits_of_the_same_blocks(path, folder, table):
    held = mb.ParquetFolder(path / "val.parquet", like=folder)
    assert held.features == folder.features  # in the order of the training rows, whatever that of the file
    problem = mb.RidgeDistillation(folder.X, folder.y, held.X, held.y, budget=20, alpha=0.01)
    val = frame(40, 9)
    data = table[NAMES[:3]].to_numpy(), table["price"].to_numpy(), val[NAMES[:3]].to_numpy(), val["price"].to_numpy()
    local = mb.RidgeDistillation(*data, budget=20, alpha=0.01, chunks=CHUNKS)
    got, expected = (mb.relax_and_penalize(it, seed=0, max_evaluations=40) for it in (problem, local))
    assert got.theta.tobytes() == expected.theta.tobytes()
    assert got.value == expected.value


@pytest.mark.filterwarnings("ignore:on the rows that were not kept", "ignore:alpha ended")
def test_blocks_are_not_put_together_for_the_search(folder, monkeypatch):
    """Neither for all rows nor for those that a split leaves: the estimator reads column by column, too."""
    monkeypatch.setattr("mixbin.data.dask_blocks.KEPT_SHARE", 0.0)
    monkeypatch.setattr("mixbin.data.parquet_pieces.PieceRows.__array__", None)
    y = da.from_array(np.arange(120.0), chunks=(CHUNKS,))
    model = mb.DistillationRegressor(budget=20, max_evaluations=20, random_state=0, method="top-k").fit(folder.X, y)
    assert model.support_.sum() == 20


@pytest.mark.filterwarnings("ignore:on the rows that were not kept", "ignore:alpha ended")
def test_an_estimator(folder, table):
    model = mb.DistillationRegressor(budget=20, alpha=0.01, max_evaluations=40, random_state=0).fit(folder.X, folder.y)
    assert model.support_.shape == (120,)
    lazy = model.predict(folder.X)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.predict(table[NAMES[:3]].to_numpy()))


def test_saved_rows(folder, table, tmp_path):
    chosen = np.arange(120) % 7 == 3
    assert folder.save_rows(chosen, tmp_path / "new" / "selected") == chosen.sum()
    saved = pd.read_parquet(tmp_path / "new" / "selected")
    assert saved["row"].tolist() == np.flatnonzero(chosen).tolist()
    assert saved["label"].tolist() == table["label"][chosen].tolist()
    assert saved["row_in_file"].iloc[-1] == saved["row"].iloc[-1] - 90
    weights = np.linspace(0.1, 1.0, 3)
    assert folder.save_rows([1, 2, 119], tmp_path / "few", weights) == 3
    assert pd.read_parquet(tmp_path / "few")["weight"].tolist() == weights.tolist()
    with pytest.raises(mb.InvalidInput, match=r"weights must be an array of numbers of shape \(2,\).*; give one for each"):
        folder.save_rows([1, 2], tmp_path / "few", weights)


def test_saved_rows_replace_those_of_an_earlier_call(folder, tmp_path):
    out = tmp_path / "selected"
    folder.save_rows([1, 119], out)
    (out / "part-of-mine.parquet").write_bytes(b"PAR1")
    folder.save_rows([2], out)
    assert sorted(file.name for file in out.iterdir()) == ["part-00000.parquet", "part-of-mine.parquet"]
    assert pd.read_parquet(out / "part-00000.parquet")["row"].tolist() == [2]


def test_rows_saved_beside_their_source_leave_it_alone(folder, tmp_path):
    source = tmp_path / "saved"
    folder.save_rows([1, 31, 119], source)
    saved = mb.ParquetFolder(source, target="price", ignore=["row", "file", "row_in_file", "label"])
    refused = pytest.raises(mb.InvalidInput, match="folder must not hold the files of the table")
    with contextlib.chdir(tmp_path), refused:
        saved.save_rows([0], "saved")
    assert len(list(source.iterdir())) == 3


@pytest.mark.slow
def test_on_local_workers(folder, table):
    with mb.local_workers(1, memory_limit="500MB", threads=1) as client, dask.config.set(scheduler=client):
        problem = mb.RidgeDistillation(folder.X, folder.y, folder.X, folder.y, budget=20, alpha=0.01)
        value = problem.evaluate(np.ones(120), np.empty(0)).value
        found = problem.rows.statistics()
    assert (found.n_workers, found.passes) == (1, 3)
    assert "in 4 blocks, kept in memory" in found.storage
    X, y = table[NAMES[:3]].to_numpy(), table["price"].to_numpy()
    local = mb.RidgeDistillation(X, y, X, y, budget=20, alpha=0.01, chunks=CHUNKS)
    assert value == pytest.approx(local.evaluate(np.ones(120), np.empty(0)).value, rel=1e-12)


# Bad input.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "cost"}, "^target must be a column of .*train, got 'cost'; it has the columns 'a', 'b'"),
        ({"target": "price", "ignore": ["it"]}, "^ignore must be a column of .*train, got 'it'"),
        ({"target": "price", "ignore": ["label", "price"]}, "^target and ignore must differ, got 'price' for both"),
        ({"target": "price", "ignore": "label"}, "^ignore must be a sequence of columns, got 'label'"),
        (
            {"target": "price"},
            "column 'label' of .* must hold numbers, got the type .*; leave .* with ignore 'label'",
        ),
        ({}, "^target must be a column, or None with like, got None; give one of target and like"),
        ({"target": ["price"]}, "^target must be the name or the number of a column, got "),
        ({"target": True}, "^target must be the name or the number of a column, got True"),
        ({"target": "x" * 5000}, "^target must be a column of .*train, got 'x{56}[.]{3}; it has"),
        ({"target": "price", "ignore": [object()]}, "^ignore must be a sequence of columns"),
        ({"like": "train"}, "^like must be a ParquetFolder, or None, got 'train'"),
    ],
)
def test_bad_columns(path, arguments, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.ParquetFolder(path / "train", **arguments)


def test_bad_folders(path, folder, tmp_path):
    with pytest.raises(mb.InvalidInput, match=r"must hold Parquet files \(.parquet, .parq, .pq\), got none"):
        mb.ParquetFolder(tmp_path, target="price")
    for odd, complaint in (
        (5, "path must be the name of a folder or file, got 5"),
        ("a\0b", "cannot be read .*null (byte|character)"),
    ):
        with pytest.raises(mb.InvalidInput, match=complaint):
            mb.ParquetFolder(odd, target="price")
    with pytest.raises(mb.InvalidInput, match=r"cannot be read .*File name too long.; check the path") as error:
        mb.ParquetFolder("x" * 10_000, target="price")
    assert len(str(error.value)) < 300
    with pytest.raises(mb.InvalidInput, match=r"nothing cannot be read \(No such file or directory\); check the path"):
        mb.ParquetFolder(tmp_path / "nothing", target="price")
    frame(5, 0).drop(columns="b").to_parquet(tmp_path / "short.parquet")
    with pytest.raises(mb.InvalidInput, match=r"short.parquet must have the columns of .*part-8.parquet, but lacks 'b'"):
        mb.ParquetFolder(tmp_path, like=folder)
    with pytest.raises(mb.InvalidInput, match="give one of target and like"):
        mb.ParquetFolder(path / "train", target="price", like=folder)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones(119, dtype=bool), r"rows must be a bool array of shape \(120,\)"),
        ([3, 2], "row numbers in ascending order"),
        ([0.5], "row numbers in ascending order"),
        ([-1, 3], "rows must be row numbers from 0 to 119"),
        ([3, 120], "rows must be row numbers from 0 to 119"),
    ],
)
def test_bad_rows(folder, rows, message, tmp_path):
    with pytest.raises(mb.InvalidInput, match=message):
        folder.save_rows(rows, tmp_path / "out")


@pytest.mark.parametrize("out", [3, None, "a\0b"])
def test_bad_names_for_what_is_saved(folder, out):
    with pytest.raises(mb.InvalidInput, match=r"^folder must be the name of a folder"):
        folder.save_rows([1], out)


def test_a_folder_that_cannot_be_made(folder, tmp_path):
    (tmp_path / "file").write_text("no folder")
    for out in (tmp_path / ("x" * 300), tmp_path / "file" / "below"):
        with pytest.raises(mb.CannotWrite, match="cannot be written"):
            folder.save_rows([1], out)


def test_without_dask(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(mb.InvalidInput, match=r"a folder of Parquet files needs Dask.*pip install 'mixbin\[dask\]'"):
        mb.ParquetFolder(path / "train", target="price", ignore=["label"])
    with pytest.raises(mb.InvalidInput, match=r"pip install 'mixbin\[dask\]'"), mb.local_workers():
        pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 0}, "workers must be a whole number from 1 to 4096, got 0"),
        ({"workers": 2**63}, "workers must be a whole number from 1 to 4096"),
        ({"threads": 10**400}, "threads must be a whole number from 1 to 4096"),
        ({"memory_limit": "1e400GB"}, "memory_limit must be a size, got '1e400GB'"),
        ({"threads": 1.5}, "threads must be a whole number"),
        ({"memory_limit": "much"}, "memory_limit must be a size, got 'much'; write one such as 2GB"),
    ],
)
def test_bad_workers(arguments, message):
    with pytest.raises(mb.InvalidInput, match=message), mb.local_workers(**arguments):
        pass

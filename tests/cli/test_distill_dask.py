"""``mixbin distill`` on folders of Parquet files: the rows, where they came from, clusters that come and go, errors."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

import mixbin as mb
from mixbin.cli import app
from mixbin.data.parquet import ParquetFolder
from mixbin.data.parquet_pieces import PieceRows, PieceTarget
from tests.data.test_folder_encoding import messy
from tests.data.test_folder_encoding import write as write_messy

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["a", "b", "c", "price"]
PAPER = ["--judge", "validation", "--no-standardize", "--outer-alpha", "0", "--gap-tol", "0"]
"""The problem of the paper, judged by validation rows alone."""
QUICK = ["--budget", "20%", "--alpha", "0.01", "--max-evaluations", "25", "--target", "price", *PAPER]


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["distill", *map(str, args)], prog_name="mixbin")


def frame(rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    y = X @ [1.0, -2.0, 0.5] + 3 + rng.normal(size=rows) * np.where(rng.random(rows) < 0.3, 3.0, 0.1)
    return pd.DataFrame(np.column_stack([X, y]), columns=NAMES)


@pytest.fixture(scope="module")
def table():
    return frame(120).assign(label=[f"row {i}" for i in range(120)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    """120 rows in files whose names sort as numbers; one of them is empty, one has other types and another order of columns."""
    made = tmp_path_factory.mktemp("data") / "train"
    made.mkdir()
    (made / "_SUCCESS").touch()
    for i, (start, stop) in enumerate([(0, 30), (30, 30), (30, 90), (90, 100), (100, 120)]):
        part = table[start:stop]
        if i == 3:
            part = part[["label", "price", "c", "b", "a"]].astype({"a": np.float32})
        part.to_parquet(made / f"part-{i + 8}.parquet", row_group_size=20, index=False)
    frame(40, 1).to_parquet(made.parent / "val.parquet", index=False)
    frame(30, 2).to_parquet(made.parent / "test.parquet", index=False)
    return made


@pytest.fixture(scope="module")
def done(folder, tmp_path_factory):
    """One run with two workers."""
    out = tmp_path_factory.mktemp("out") / "run"
    files = ["--validation", folder.parent / "val.parquet", "--test", folder.parent / "test.parquet"]
    args = [folder, *QUICK, *files, "--ignore", "label", "--workers", "2", "--out", out, "--json"]
    got = invoke(*args)
    assert (got.exit_code, got.stderr) == (0, "")
    return args, out, json.loads(got.stdout)


def selected(out):
    return pd.concat([pd.read_parquet(file) for file in sorted((out / "selected").iterdir())], ignore_index=True)


@pytest.mark.slow
def test_the_rows_are_those_in_memory(done, folder, table):
    """To the row those of the same blocks in one process, with their identity."""
    _, out, got = done
    assert (got["rows"], got["validation_rows"], got["test_rows"], got["budget"], got["workers"]) == (120, 40, 30, 24, 2)
    rows = selected(out)
    assert list(rows.columns) == ["row", "file", "row_in_file", "a", "b", "c", "price", "label"]
    assert rows["label"].tolist() == [f"row {i}" for i in rows["row"]]
    for name, part in rows.groupby("file", observed=True):
        inside = pd.read_parquet(folder / name).iloc[part["row_in_file"]]
        assert inside["label"].tolist() == part["label"].tolist()
    exact = table[NAMES].astype({"a": np.float64}).to_numpy(copy=True)
    exact[90:100, 0] = exact[90:100, 0].astype(np.float32)
    val = pd.read_parquet(folder.parent / "val.parquet").to_numpy()
    data = exact[:, :3], exact[:, 3], val[:, :3], val[:, 3]
    problem = mb.RidgeDistillation(*data, budget=24, alpha=0.01, chunks=(30, 60, 10, 20))
    expected = mb.relax_and_penalize(problem, seed=0, max_evaluations=25)
    assert rows["row"].tolist() == np.flatnonzero(expected.theta).tolist()


@pytest.mark.slow
def test_the_model_and_its_losses(done, folder):
    _, out, got = done
    model = json.loads((out / "model.json").read_text())
    rows = selected(out)
    again = Ridge(alpha=model["candidate_rows"] * model["alpha"]).fit(rows[NAMES[:3]], rows["price"])
    np.testing.assert_allclose(list(model["coef"].values()), again.coef_, atol=1e-6)
    last = got["methods"][-1]
    for name in ("validation", "test"):
        held = pd.read_parquet(folder.parent / f"{name[:4] if name == 'test' else 'val'}.parquet")
        squared = np.mean((again.predict(held[NAMES[:3]]) - held["price"]) ** 2)
        assert last[f"{name}_loss"] == pytest.approx(squared / 2, rel=1e-5)
        assert last[f"{name}_rmse"] == pytest.approx(squared**0.5, rel=1e-5)
    assert "kept in memory" in got["storage"]
    assert got["passes"] > 0
    assert got["bytes_read"] > 0
    assert sorted(file.name for file in out.iterdir()) == [
        "methods.json",
        "model.json",
        "report.html",
        "result.npz",
        "selected",
        "trace.csv",
    ]


@pytest.mark.slow
def test_resume_of_a_run_that_has_ended(done):
    """With another number of workers: that is no part of what a run is."""
    args, _, got = done
    more = [it if it != "2" else "1" for it in args]
    again = invoke(*more, "--resume")
    assert json.loads(again.stdout) == got
    other = invoke(*more, "--resume", "--seed", 1)
    assert (other.exit_code, "differs in seed" in other.stderr) == (2, True)


@pytest.mark.slow
def test_a_validation_part_is_split_off(folder, tmp_path):
    got = invoke(folder, *QUICK, "--ignore", "label", "--workers", 1, "--memory-limit", "400MB", "--out", tmp_path / "run")
    assert got.exit_code == 0, got.stderr
    text = " ".join(got.stdout.split())
    assert "keep 19 of 96 rows of train" in text
    assert "24 validation rows split off at random" in text
    assert "passes by 1 worker" in text
    rows = selected(tmp_path / "run")
    held = np.random.default_rng(0).permutation(120)[:24]
    assert len(rows) == 19
    assert not set(rows["row"]) & set(held)


def test_a_small_folder_is_read_without_workers(folder, table, tmp_path, monkeypatch):
    """The same rows as from one file with the same numbers; the record and the files are those of a folder; it resumes."""
    monkeypatch.setattr("mixbin.studies.distillation.parquet.local_workers", lambda *_: pytest.fail("workers were started"))
    files = ["--validation", folder.parent / "val.parquet", "--test", folder.parent / "test.parquet"]
    args = [folder, *QUICK, *files, "--ignore", "label", "--out", tmp_path / "run", "--json"]
    got = invoke(*args)
    assert (got.exit_code, got.stderr) == (0, "")
    record = json.loads(got.stdout)
    assert (record["kind"], record["workers"], record["rows"], record["test_rows"]) == ("parquet", None, 120, 30)
    assert "in memory" in record["storage"]
    rows = selected(tmp_path / "run")
    assert rows["label"].tolist() == [f"row {i}" for i in rows["row"]]
    exact = table.astype({"a": np.float64})
    exact.loc[90:99, "a"] = exact.loc[90:99, "a"].astype(np.float32)
    exact.to_parquet(tmp_path / "one.parquet", index=False)
    one = invoke(tmp_path / "one.parquet", *QUICK, *files, "--ignore", "label", "--out", tmp_path / "one", "--json")
    assert one.exit_code == 0
    losses = [[line["validation_loss"] for line in it["methods"]] for it in (record, json.loads(one.stdout))]
    np.testing.assert_allclose(*losses, rtol=1e-9)
    again = invoke(*args, "--resume")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["methods"] == record["methods"]
    words = invoke(*args[:-1], "--resume")
    assert "passes by this process" in " ".join(words.stdout.split())


def test_a_split_of_a_small_folder_and_a_missing_number(folder, table, tmp_path):
    got = invoke(folder, *QUICK, "--ignore", "label", "--out", tmp_path / "run", "--json")
    assert got.exit_code == 0
    record = json.loads(got.stdout)
    assert (record["rows"], record["validation_rows"], record["validation_split"]) == (96, 24, {"fraction": 0.2, "seed": 0})
    (tmp_path / "holes").mkdir()
    table.assign(b=table["b"].where(table.index != 7)).to_parquet(tmp_path / "holes" / "part.parquet", index=False)
    holes = [tmp_path / "holes", *QUICK, "--ignore", "label"]
    filled = invoke(*holes, "--out", tmp_path / "filled")
    assert "Encoded: 1 missing value filled by the median." in " ".join(filled.stdout.split())
    bad = invoke(*holes, "--encode", "none", "--out", tmp_path / "bad")
    assert bad.exit_code == 2
    assert re.search(r"column 'b' of .*part\.parquet has no value in row 7; .*or leave out --encode none", bad.stderr)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Text, dates, yes and no, decimals and gaps, in files and in one; further rows to test on."""
    made = tmp_path_factory.mktemp("mixed")
    write_messy(messy(), made / "train")
    write_messy(messy(100, 3), made / "test", (0, 40, 100))
    parquet.write_table(messy(), made / "one.parquet")
    parquet.write_table(messy(100, 3), made / "other.parquet")
    return made


ANY = ["--target", "price", "--budget", "10%", "--max-evaluations", "25", "--json"]


def test_a_folder_with_columns_of_all_kinds(mixed, tmp_path):
    """The answer is that of one file with the same rows, which says the same about them; the rows are written as they were."""
    got = invoke(mixed / "train", *ANY, "--test", mixed / "test", "--out", tmp_path / "run")
    one = invoke(mixed / "one.parquet", *ANY, "--test", mixed / "other.parquet", "--out", tmp_path / "one")
    assert (got.exit_code, one.exit_code) == (0, 0), got.stderr
    ours, expected = json.loads(got.stdout), json.loads(one.stdout)
    assert ours["reading"] == expected["reading"]
    assert "6 text columns as 45 indicator columns, 4 dates as year, month, day, hour" in ours["reading"]["said"][1]
    assert "20 rows without a value in column 'price' left out." in ours["reading"]["said"]
    losses = [[line["test_loss"] for line in it["methods"]] for it in (ours, expected)]
    np.testing.assert_allclose(*losses, rtol=1e-9)
    rows, alone = selected(tmp_path / "run"), parquet.read_table(tmp_path / "one" / "selected.parquet")
    assert rows["row"].tolist() == alone.column("row").to_pylist()
    written = pa.concat_tables([parquet.read_table(file) for file in sorted((tmp_path / "run" / "selected").iterdir())])
    names = [name for name in messy().column_names if name != "nan"]  # in which a gap is not equal to itself
    assert written.select(names).to_pylist() == messy().select(names).take(rows["row"].to_numpy()).to_pylist()
    models = [json.loads((tmp_path / name / "model.json").read_text()) for name in ("run", "one")]
    assert models[0]["encoding"] == models[1]["encoding"]
    assert list(models[0]["coef"]) == list(models[1]["coef"])
    np.testing.assert_allclose(list(models[0]["coef"].values()), list(models[1]["coef"].values()), rtol=1e-6, atol=1e-9)
    assert invoke(mixed / "train", *ANY, "--test", mixed / "test", "--out", tmp_path / "run", "--resume").exit_code == 0
    other = invoke(mixed / "train", *ANY, "--test", mixed / "test", "--text", "count", "--out", tmp_path / "run", "--resume")
    assert (other.exit_code, "differs in" in other.stderr) == (2, True)


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter_to_an_encoding(mixed, tmp_path):
    records = []
    for n in (1, 2):
        args = [mixed / "train", *ANY, "--test", mixed / "test", "--judge", "validation", "--workers", n]
        got = invoke(*args, "--out", tmp_path / str(n))
        assert got.exit_code == 0, got.stderr
        records.append(json.loads(got.stdout))
    first, second = ([{k: v for k, v in line.items() if k != "seconds"} for line in it["methods"]] for it in records)
    assert first == second
    assert records[0]["reading"] == records[1]["reading"]
    assert (tmp_path / "1" / "model.json").read_bytes() == (tmp_path / "2" / "model.json").read_bytes()
    pd.testing.assert_frame_equal(selected(tmp_path / "1"), selected(tmp_path / "2"))


def test_a_gap_that_the_ends_of_the_files_do_not_tell_of(folder, table, tmp_path):
    """NaN is no null: it is found in the first pass."""
    (tmp_path / "t").mkdir()
    values = table["b"].where(table.index != 7).to_numpy()
    parquet.write_table(
        pa.table({"a": table["a"].to_numpy(), "b": values, "price": table["price"].to_numpy()}), tmp_path / "t" / "x.parquet"
    )
    assert ParquetFolder(tmp_path / "t", "price").is_plain
    got = invoke(tmp_path / "t", *QUICK, "--out", tmp_path / "run")
    assert "Encoded: 1 missing value filled by the median." in " ".join(got.stdout.split())


def test_only_small_folders_without_options_about_workers_are_read(folder, monkeypatch):
    from mixbin.studies.distillation import small_folder
    from mixbin.studies.distillation.options import DistillOptions

    def study(**more):
        return type(DistillOptions(train=folder, target="price", out=Path("run"), budget="20%", **more).study()).__name__

    assert study() == "SmallFolderRegression"
    assert study(workers=1) == study(memory_limit="1GB") == study(scheduler="tcp://x:1") == "ParquetRegression"
    monkeypatch.setattr(small_folder, "SMALL_BYTES", 1_000)
    assert study() == "ParquetRegression"


def test_small_row_groups_are_joined_and_large_ones_read_in_parts(folder, monkeypatch):
    """Whatever is read at a time, the rows are those of the files."""
    opened = ParquetFolder(folder, "price", ["label"])
    expected = pd.concat(pd.read_parquet(file)[NAMES] for file in opened.files).to_numpy()
    assert [piece.rows for piece in opened.pieces] == [30, 60, 10, 20]
    monkeypatch.setattr("mixbin.data.parquet_pieces.PIECE_BYTES", 8 * 4 * 7)
    pieces = ParquetFolder(folder, "price", ["label"]).pieces
    assert max(piece.rows for piece in pieces) == 20  # a row group cannot be read in part, but part by part
    assert [piece.row for piece in pieces] == np.cumsum([0, *(piece.rows for piece in pieces)])[:-1].tolist()
    rows = [PieceRows(piece, NAMES, np.dtype(float)) for piece in pieces]
    assert max(len(part) for it in rows for part in it.parts()) == 7
    for kind in (rows, [it.loaded() for it in rows]):
        np.testing.assert_array_equal(np.vstack([np.asarray(part) for it in kind for part in it.parts()]), expected)
    assert sum(it.nbytes for it in rows) == expected.nbytes
    mask = np.arange(20) % 3 == 1
    np.testing.assert_array_equal(np.vstack([np.asarray(part) for part in rows[0].where(mask).parts()]), expected[:20][mask])
    column = np.concatenate([PieceTarget(piece, "price", np.dtype(float)) for piece in pieces])
    np.testing.assert_array_equal(column, expected[:, 3])


# Clusters that come and go.


@pytest.fixture
def cluster():
    """Starts schedulers, each with a worker, in processes of their own."""
    running = []

    def start():
        dask = [sys.executable, "-m", "dask"]
        quiet = {"stdout": subprocess.DEVNULL, "text": True}
        # Port 0 and the address from its log: no port is taken from another test.
        scheduler = subprocess.Popen(
            [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"],
            stderr=subprocess.PIPE,
            **quiet,
        )
        running.append(scheduler)
        address = next(found[0] for line in scheduler.stderr if (found := re.search(r"tcp://\S+:\d+", line)))
        worker = [*dask, "worker", address, "--nthreads", "1", "--dashboard-address", ":0"]
        running.append(subprocess.Popen(worker, stderr=subprocess.DEVNULL, **quiet))
        return address, scheduler

    yield start
    for process in running:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def command(*args):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "mixbin", "distill", *map(str, args)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.ci
def test_the_scheduler_is_lost(done, cluster, tmp_path):
    """A clear error, exit code 1; on a new cluster --resume goes on to the same rows."""
    args, out, _ = done
    args = [tmp_path / "run" if it == out else it for it in args]
    where = args.index("--workers")
    args[where : where + 2] = []
    address, scheduler = cluster()
    wait_for_worker(address)
    code = (
        "import mixbin.studies.runner as s, sys; s.CHECKPOINT_EVERY = 0.0; from mixbin.cli import main; "
        "sys.argv = ['mixbin', 'distill', *sys.argv[1:]]; main()"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args), "--scheduler", address],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "run" / "checkpoint" / "penalize").exists():
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.02)
    scheduler.kill()
    _, complaint = run.communicate(timeout=90)
    assert run.returncode == 1
    assert f"mixbin: the scheduler {address} is lost; repeat the command with --resume" in complaint
    address, _ = cluster()
    wait_for_worker(address)
    again = invoke(*args, "--scheduler", address, "--resume")
    assert again.exit_code == 0, again.stderr
    pd.testing.assert_frame_equal(selected(tmp_path / "run"), selected(out))


def wait_for_worker(address):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=60)


@pytest.mark.ci
@pytest.mark.slow
def test_interrupted_and_resumed(done, tmp_path):
    args, out, _ = done
    args = [tmp_path / "run" if it == out else it for it in args]
    run = command(*args)
    while not (tmp_path / "run" / "checkpoint").exists():
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    _, complaint = run.communicate(timeout=90)
    if run.returncode:  # it may have ended before the signal came
        assert run.returncode == 130
        assert "the same command with --resume goes on from here" in complaint
    assert invoke(*args, "--resume").exit_code == 0
    pd.testing.assert_frame_equal(selected(tmp_path / "run"), selected(out))


# Bad input.


def bad(folder, name, table):
    made = folder / name
    made.mkdir()
    for i in range(3):
        frame(20, i).to_parquet(made / f"part-{i}.parquet", index=False)
    if table is not None:
        parquet.write_table(table, made / "part-2.parquet")
    return made


def as_table(**columns):
    return pa.table({name: columns.get(name, np.arange(20.0)) for name in NAMES if columns.get(name, 0) is not None})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("no-target", as_table(price=None), r"part-2.parquet must have the columns of .*part-0.parquet, but lacks 'price'"),
        (
            "text",
            as_table(b=["text"] * 20),
            r"column 'b' .* it holds a number in row 0 of part-0.parquet and a text in .*--ignore b",
        ),
        ("infinite", as_table(price=[np.inf] * 20), r"column 'price' of .*part-2.parquet is not finite in row 0"),
    ],
)
def test_bad_files(tmp_path, name, table, message):
    got = invoke(bad(tmp_path, name, table), *QUICK, "--validation", bad(tmp_path, "val", None), "--workers", 1, "--out", "x")
    assert got.exit_code == 2
    assert re.search(message, got.stderr), got.stderr


@pytest.mark.slow
def test_bad_options(folder, tmp_path, monkeypatch):
    def complaint(*args):
        got = invoke(*args, "--out", tmp_path / "run")
        assert (got.exit_code, got.stderr.count("\n")) == (2, 1), got.stderr
        return got.stderr

    table = frame(10)
    table.to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.parquet").write_bytes(b"PAR1 and no more")
    assert "train.csv must be Parquet to be read by workers" in complaint(tmp_path / "train.csv", *QUICK, "--workers", 2)
    assert "must hold Parquet files (.parquet, .parq, .pq), got none" in complaint(tmp_path / "empty", *QUICK, "--workers", 1)
    assert "a.parquet cannot be read as Parquet" in complaint(tmp_path / "broken", *QUICK, "--workers", 1)
    assert "cannot be read (No such file" in complaint(tmp_path / "none", *QUICK, "--workers", 1)
    assert "--memory-limit must be a size, got 'much'" in complaint(folder, *QUICK, "--memory-limit", "much")
    assert "--workers has no use beside --scheduler" in complaint(folder, *QUICK, "--workers", 1, "--scheduler", "tcp://x:1")
    from distributed import Client

    # Nobody will ever answer; to wait for it for a second is as good as for fifteen.
    monkeypatch.setattr("distributed.Client", lambda address, timeout: Client(address, timeout="1s"))
    nobody = complaint(folder, *QUICK, "--scheduler", "tcp://127.0.0.1:1")
    assert "--scheduler must be the address of a running Dask scheduler, got 'tcp://127.0.0.1:1'" in nobody

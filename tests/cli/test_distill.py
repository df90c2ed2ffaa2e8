"""``mixbin distill`` as a person and as a program meet it: every kind of file, the model trained again, interruptions, errors."""

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

import mixbin as mb
from mixbin.cli import app
from tests.shared_data import shared_file

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["a", "b", "c", "price"]
FILES = ["methods.json", "model.json", "report.html", "result.npz", "selected.csv", "trace.csv"]
# Few evaluations: the command is under test, not the methods.
PAPER = ["--judge", "validation", "--no-standardize", "--outer-alpha", "0", "--gap-tol", "0"]
"""The problem of the paper, judged by validation rows alone."""
QUICK = ["--budget", "20%", "--alpha", "0.01", "--max-evaluations", "60", *PAPER]


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["distill", *map(str, args)], prog_name="mixbin")


def summary(*args):
    got = invoke(*args, "--json")
    assert got.exit_code == 0, got.stderr
    assert (got.stderr, got.stdout.count("\n")) == ("", 1)
    return json.loads(got.stdout)


def frame(rows=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)).round(3)
    y = X @ [1.0, -2.0, 0.5] + 3 + rng.normal(size=rows) * np.where(rng.random(rows) < 0.3, 3.0, 0.1)
    return pd.DataFrame(np.column_stack([X, y.round(4)]), columns=NAMES)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same table in every form, and a validation and a test table."""
    folder = tmp_path_factory.mktemp("tables")
    table = frame()
    table.to_csv(folder / "train.csv", index=False)
    table.to_csv(folder / "bare.csv", index=False, header=False)
    table.to_csv(folder / "semicolons.csv", index=False, sep=";")
    table.to_csv(folder / "tabs.tsv", index=False, sep="\t")
    table.to_parquet(folder / "train.parquet")
    text = (folder / "train.csv").read_bytes()
    (folder / "bom.csv").write_bytes(b"\xef\xbb\xbf\n" + text.replace(b"\n", b"\r\n"))
    (folder / "train.csv.gz").write_bytes(gzip.compress(text))
    with zipfile.ZipFile(folder / "train.zip", "w") as archive:
        archive.writestr("inside/train.csv", text)
    frame(30, 1).to_csv(folder / "val.csv", index=False)
    frame(20, 2).to_csv(folder / "test.csv", index=False)
    return folder


def retrained(out, weighted=False):
    """scikit-learn's Ridge on the rows of selected.csv, as model.json says and in the units of X, and model.json itself."""
    model = json.loads((out / "model.json").read_text())
    rows = pd.read_csv(out / "selected.csv")
    weight = rows["weight"] if weighted else None
    X, y = rows[list(model["coef"])], rows[model["target"]]
    scales = np.array([model.get("scales", {}).get(name, 1.0) for name in X])
    ridge = Ridge(alpha=model["scikit_learn"]["alpha"]).fit(X / scales, y, sample_weight=weight)
    ridge.coef_ = ridge.coef_ / scales
    return ridge, model


# What it computes.


@pytest.fixture(scope="module")
def usual(files, tmp_path_factory):
    """The run on the plain form of the table."""
    return summary(files / "train.csv", "--target", "price", *QUICK, "--out", tmp_path_factory.mktemp("usual") / "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("train.csv", "price"),
        ("train.csv", "3"),
        ("train.csv", "-1"),
        ("bare.csv", "3"),
        ("bare.csv", "-1"),
        ("semicolons.csv", "price"),
        pytest.param("tabs.tsv", "price", marks=pytest.mark.ci),
        pytest.param("bom.csv", "price", marks=pytest.mark.ci),
        pytest.param("train.csv.gz", "price", marks=pytest.mark.ci),
        ("train.zip", "price"),
        ("train.parquet", "price"),
    ],
)
def test_every_kind_of_file_gives_the_same_rows(files, usual, tmp_path, name, target):
    got = summary(files / name, "--target", target, *QUICK, "--out", tmp_path / "run")
    assert (got["rows"], got["validation_rows"], got["test_rows"], got["budget"]) == (40, 10, None, 8)
    # As the table is: the same signs between the cells, or Parquet.
    selected = "selected.parquet" if name.endswith(".parquet") else "selected.csv"
    separator = {"semicolons.csv": ";", "tabs.tsv": "\t"}.get(name, ",")
    file = tmp_path / "run" / selected
    rows = pd.read_parquet(file) if selected.endswith(".parquet") else pd.read_csv(file, sep=separator)
    table = frame()
    assert rows.columns[0] == "row"
    np.testing.assert_array_equal(rows.to_numpy()[:, 1:], table.to_numpy()[rows["row"]])
    assert not set(rows["row"]) & set(got["validation_split"])
    assert got["methods"][-1]["validation_loss"] == usual["methods"][-1]["validation_loss"]
    assert sorted(it.name for it in (tmp_path / "run").iterdir()) == sorted({*FILES, selected} - ({"selected.csv"} - {selected}))
    assert got["files"]["selected" + file.suffix] == str(file)


@pytest.fixture(scope="module")
def everything(files, tmp_path_factory):
    """All methods side by side, with several files for validation."""
    out = tmp_path_factory.mktemp("out") / "deep" / "run"
    args = [files / "train.csv", "--target", "price", *QUICK, "--validation", files / "val.csv"]
    args += ["--validation", files / "test.csv", "--test", files / "test.csv", "--method", "all", "--out", out]
    return args, out, summary(*args)


def test_all_methods(everything):
    _, out, got = everything
    assert [line["method"] for line in got["methods"]] == ["all rows", "random rows", "relax", "simple", "top-k", "penalize"]
    assert (got["rows"], got["validation_rows"], got["test_rows"], got["budget"]) == (50, 50, 20, 10)
    lines = {line["method"]: line for line in got["methods"]}
    assert lines["penalize"]["rows"] == lines["top-k"]["rows"] == 10
    assert max(line["evaluations"] for line in got["methods"]) == lines["penalize"]["evaluations"]
    assert got["validation_split"] is None
    assert json.loads((out / "methods.json").read_text()) == got
    assert all(Path(path).is_file() for path in got["files"].values())


def test_the_model_is_that_of_scikit_learn(everything, files):
    _, out, got = everything
    again, model = retrained(out)
    np.testing.assert_allclose(list(model["coef"].values()), again.coef_, atol=1e-6)
    np.testing.assert_allclose(model["intercept"], again.intercept_, atol=1e-6)
    assert model["scikit_learn"]["alpha"] == again.alpha
    last = got["methods"][-1]
    held = [pd.read_csv(files / name) for name in ("val.csv", "test.csv")]
    for name, table in (("validation", pd.concat(held)), ("test", held[1])):
        squared = np.mean((again.predict(table[NAMES[:3]]) - table["price"]) ** 2)
        np.testing.assert_allclose(last[f"{name}_loss"], squared / 2, rtol=1e-9)
        np.testing.assert_allclose(last[f"{name}_rmse"], np.sqrt(squared), rtol=1e-9)


def test_result_and_trace_are_those_of_penalize(everything):
    _, out, got = everything
    result = mb.Result.load(out / "result.npz")
    last = got["methods"][-1]
    np.testing.assert_allclose(result.value, last["validation_loss"], rtol=1e-9)
    assert result.status == last["status"]
    rows = pd.read_csv(out / "selected.csv")["row"]
    np.testing.assert_array_equal(np.flatnonzero(result.theta), rows)
    assert len(pd.read_csv(out / "trace.csv")) == len(result.trace)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["top-k", "relax"])
def test_one_baseline_alone(files, tmp_path, method):
    out = tmp_path / "run"
    got = summary(files / "train.csv", "--target", "price", *QUICK, "--method", method, "--out", out)
    # Where all rows have weight, as many random rows are all rows.
    random = ["random rows"] if got["methods"][-1]["rows"] < got["rows"] else []
    assert [line["method"] for line in got["methods"]] == ["all rows", *random, method]
    again, model = retrained(out, weighted=method == "relax")
    np.testing.assert_allclose(list(model["coef"].values()), again.coef_, atol=1e-6)
    assert ("sample_weight" in model["scikit_learn"]["how"]) == (method == "relax")


@pytest.mark.slow
def test_simple_rounding_that_keeps_no_row_is_not_solved(files, tmp_path, monkeypatch):
    monkeypatch.setattr("mixbin.sets.Budget.round", lambda self, x: np.zeros(self.shape, dtype=bool))
    got = invoke(files / "train.csv", "--target", "price", *QUICK, "--method", "simple", "--out", tmp_path / "run")
    assert (got.exit_code, got.stdout, got.stderr.count("\n")) == (1, "", 1)
    assert "simple rounding keeps no row" in got.stderr
    got = invoke(files / "train.csv", "--target", "price", *QUICK, "--method", "all", "--out", tmp_path / "all")
    assert got.exit_code == 0
    assert "no rows" in got.stdout


@pytest.mark.slow
def test_alpha_is_chosen_where_none_is_given(files, tmp_path):
    args = [files / "train.csv", "--target", "price", "--budget", 8, "--max-evaluations", 80]
    got = summary(*args, "--out", tmp_path / "run")
    again, model = retrained(tmp_path / "run")
    assert got["alpha"] is None
    assert (got["judge"], got["rows"], got["validation_rows"], got["validation_split"]) == ("full", 50, 0, None)
    assert "scales" in model
    assert "fit(X / scales, y)" in model["scikit_learn"]["how"]
    assert model["alpha"] == got["methods"][-1]["alpha"]
    np.testing.assert_allclose(list(model["coef"].values()), again.coef_, atol=1e-6)


def test_all_rows_judge_without_validation_rows(files, tmp_path):
    args = [files / "train.csv", "--target", "price", "--budget", 12, "--test", files / "test.csv", "--out", tmp_path / "run"]
    said = invoke(*args).stdout
    got = json.loads((tmp_path / "run" / "methods.json").read_text())
    table, model = frame().to_numpy(), json.loads((tmp_path / "run" / "model.json").read_text())
    coef = np.array(list(model["coef"].values()))
    squared = np.mean((table[:, :3] @ coef + model["intercept"] - table[:, 3]) ** 2)
    everything, _, last = got["methods"]
    assert last["full_loss"] == pytest.approx(squared / 2)
    assert last["full_rmse"] == pytest.approx(np.sqrt(squared))
    scales = table[:, :3].std(axis=0)
    full = Ridge(alpha=50 * got["outer_alpha"]).fit(table[:, :3] / scales, table[:, 3])
    assert everything["full_loss"] == pytest.approx(np.mean((full.predict(table[:, :3] / scales) - table[:, 3]) ** 2) / 2)
    least, value = (
        loss + 0.5 * got["outer_alpha"] * np.sum(w**2)
        for loss, w in ((everything["full_loss"], full.coef_), (last["full_loss"], coef * scales))
    )
    assert got["excess"] == pytest.approx((value - least) / least, rel=1e-5)
    assert "as well as one trained on all of them" in " ".join(said.split())
    assert "worse than a ridge regression on all rows, which no choice of rows can beat" in " ".join(said.split())
    page = (tmp_path / "run" / "report.html").read_text()
    assert "none: all rows judge" in page
    assert "which no choice of rows can beat" in page


def test_doubts_are_in_the_terminal_and_on_the_page(files, tmp_path):
    args = [
        files / "train.csv",
        "--target",
        "price",
        *QUICK,
        "--alpha",
        "1000",
        "--judge",
        "validation",
        "--out",
        tmp_path / "run",
    ]
    said = " ".join(invoke(*args).stdout.split())
    assert "Beware: 10 validation rows for 3 features are fewer than 5 per feature" in said
    assert "Beware: 10 validation rows for 3 features" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.slow
def test_values_are_given_back_as_they_were(tmp_path):
    lines = [f"id{i},{i}.500,+{i % 7}e0, {i * i % 11}" for i in range(20)]
    (tmp_path / "t.csv").write_text('"the ""id""",x,z,y\n' + "\n".join(lines) + "\n")
    args = ["--target", "y", "--ignore", 'the "id"', "--budget", 4, "--alpha", 1, "--max-evaluations", 20]
    got = summary(tmp_path / "t.csv", *args, "--out", tmp_path / "run")
    assert got["features"] == 2
    with (tmp_path / "run" / "selected.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header == ["row", 'the "id"', "x", "z", "y"]
    assert [",".join(cells) for _, *cells in rows] == [lines[int(row)] for row, *_ in rows]


@pytest.mark.slow
def test_columns_in_another_order_and_ignored_ones_missing(files, tmp_path):
    frame(30, 1)[["price", "c", "a", "b"]].to_csv(tmp_path / "val.csv", index=False)
    args = ["--target", "price", *QUICK, "--out"]
    one = summary(files / "train.csv", "--validation", tmp_path / "val.csv", *args, tmp_path / "one")
    two = summary(files / "train.csv", "--validation", files / "val.csv", *args, tmp_path / "two")
    assert one["methods"][-1]["validation_loss"] == two["methods"][-1]["validation_loss"]
    frame(30, 1)[["price", "a", "b"]].to_csv(tmp_path / "less.csv", index=False)
    summary(files / "train.csv", "--ignore", "c", "--validation", tmp_path / "less.csv", *args, tmp_path / "three")


def test_a_header_of_numbers_must_be_told(tmp_path):
    table = frame().set_axis(["2001", "2002", "2003", "2004"], axis=1)
    table.to_csv(tmp_path / "t.csv", index=False)
    args = [tmp_path / "t.csv", *QUICK, "--target", "2004", "--out"]
    assert invoke(*args, tmp_path / "run").exit_code == 2
    assert summary(*args, tmp_path / "run", "--header")["target"] == "2004"


def test_parquet_of_other_numbers_and_an_index(tmp_path):
    table = frame().assign(flag=lambda t: t.a > 0, whole=lambda t: (10 * t.b).astype("int32"), small=lambda t: t.c.astype("f4"))
    table[table.a > -1].to_parquet(tmp_path / "t.parquet")
    got = summary(tmp_path / "t.parquet", "--target", "price", *QUICK, "--out", tmp_path / "run")
    assert got["features"] == 6


@pytest.mark.slow
def test_another_seed_splits_otherwise(files, tmp_path):
    args = [files / "train.csv", "--target", "price", *QUICK, "--validation-fraction", "0.5"]
    one, two = (summary(*args, "--seed", seed, "--out", tmp_path / str(seed)) for seed in (0, 1))
    assert len(one["validation_split"]) == len(two["validation_split"]) == 25
    assert one["validation_split"] != two["validation_split"]


# What it shows.


def test_the_report_in_a_pipe(everything, files, tmp_path):
    args, _, _ = everything
    got = invoke(*args, "--resume")
    assert (got.exit_code, got.stderr) == (0, "")
    assert "\x1b" not in got.stdout
    assert max(map(len, got.stdout.splitlines())) <= 80
    text = " ".join(got.stdout.split())
    assert "keep 10 of 50 rows of train.csv" in text
    assert "predicts column 'price' best on 50 validation rows; alpha is 0.01. 20 test rows play no part" in text
    assert "About the rows that penalize keeps: " in text
    assert "nothing was computed again" in text
    for name in FILES:
        assert f"  {name} " in got.stdout
    got = invoke(files / "train.csv", "--target", "price", *QUICK, "--out", tmp_path / "run")
    text = " ".join(got.stdout.split())
    assert "10 validation rows split off at random" in text
    assert "Written to " in text
    assert "test" not in text.split("About")[0]


def test_help_shows_an_example_and_is_quick():
    got = invoke("--help")
    assert got.exit_code == 0
    assert "Example: mixbin distill train.csv --target price" in " ".join(got.stdout.split())
    code = (
        "import sys; from mixbin.cli import app; sys.argv = ['mixbin', 'distill', '--help']\n"
        "try: app()\nexcept SystemExit: pass\n"
        "print([name for name in ('numpy', 'scipy', 'sklearn', 'pandas', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


# Interrupted, and gone on with.


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "COLUMNS": "80"}


def start_and_end(sign, evaluation, *args):
    command = [sys.executable, "-m", "tests.cli.killed", sign, str(evaluation), "distill", *map(str, args)]
    return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=120)


def same(one, two):
    """Both runs left the same bytes, but for their seconds."""
    for name in ("selected.csv", "model.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    traces = [pd.read_csv(out / "trace.csv").drop(columns="seconds") for out in (one, two)]
    pd.testing.assert_frame_equal(*traces)
    lines = [json.loads((out / "methods.json").read_text())["methods"] for out in (one, two)]
    assert [{**line, "seconds": 0} for line in lines[0]] == [{**line, "seconds": 0} for line in lines[1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "evaluation"),
    [pytest.param("KILL", 25, marks=pytest.mark.ci), ("KILL", 90), ("INT", 25), pytest.param("INT", 90, marks=pytest.mark.ci)],
)
def test_resumes_to_what_an_uninterrupted_run_gives(everything, tmp_path, sign, evaluation):
    """At 25 penalize is under way, at 90 one of the baselines."""
    args, whole, _ = everything
    out = tmp_path / "run"
    args = [*args[:-1], out]
    done = start_and_end(sign, evaluation, *args)
    if sign == "KILL":
        assert done.returncode == -signal.SIGKILL
    else:
        assert done.returncode == 130
        assert done.stderr == "mixbin: interrupted; the same command with --resume goes on from here\n"
    assert done.stdout == ""
    assert [file.name for file in out.iterdir()] == ["checkpoint"]
    assert (out / "checkpoint" / "penalize").exists()
    assert (out / "checkpoint" / "penalize.npz").exists() == (evaluation == 90)
    refused = invoke(*args)
    assert refused.exit_code == 2
    assert "already holds a run; add --resume to go on with it" in refused.stderr
    summary(*args, "--resume")
    same(out, whole)
    assert sorted(file.name for file in out.iterdir()) == FILES


def test_killed_while_the_files_are_written(everything, tmp_path, monkeypatch):
    args, whole, _ = everything
    out = tmp_path / "run"
    args = [*args[:-1], out]

    def torn(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mixbin.result.Trace.to_csv", torn)
        assert invoke(*args).exit_code == 130
    assert (out / "selected.csv").exists()
    summary(*args, "--resume")
    same(out, whole)


def test_a_finished_run_is_not_computed_again(everything, monkeypatch):
    args, _, first = everything

    def computed(*_, **__):
        raise AssertionError

    monkeypatch.setattr("mixbin.problems.RidgeDistillation.evaluate", computed)
    assert summary(*args, "--resume") == first


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (["--seed", "1"], "seed"),
        (["--budget", "30%"], "budget"),
        (["--alpha", "0.1"], "alpha"),
        (["--standardize"], "standardize"),
        (["--outer-alpha", "cv"], "outer_alpha"),
        (["--max-evaluations", "61"], "max_evaluations"),
        (["--method", "top-k"], "method"),
        (["--ignore", "a"], "data, columns"),
    ],
)
def test_another_run_is_not_gone_on_with(everything, change, what):
    args, out, _ = everything
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    got = invoke(*args, *change, "--resume")
    assert got.exit_code == 2
    assert f"holds a run that differs in {what}; repeat the command" in got.stderr
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_resume_without_a_run_begins_one(files, tmp_path):
    summary(files / "train.csv", "--target", "price", *QUICK, "--out", tmp_path / "run", "--resume")


def test_files_of_others_in_the_folder_stay(files, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    args = [files / "train.csv", "--target", "price", *QUICK, "--out", tmp_path]
    summary(*args)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.json").write_text("{}")
    got = invoke(*args[:-1], other, "--resume")
    assert got.exit_code == 2
    assert "has a model.json that is from no run; choose another folder" in got.stderr


# Mistakes.


def csv_with(change):
    def make(folder):
        table = frame().astype(object)
        change(table)
        table.to_csv(folder / "bad.csv", index=False)
        return folder / "bad.csv"

    return make


def cell(row, column, value):
    return csv_with(lambda table: table.__setitem__(column, [*table[column][:row], value, *table[column][row + 1 :]]))


def content(data, name="bad.csv"):
    def make(folder):
        (folder / name).write_bytes(data)
        return folder / name

    return make


def parquet_with(**columns):
    def make(folder):
        frame().assign(**columns).to_parquet(folder / "bad.parquet")
        return folder / "bad.parquet"

    return make


def two_in_a_zip(folder):
    with zipfile.ZipFile(folder / "bad.zip", "w") as archive:
        archive.writestr("one.csv", "1,2\n")
        archive.writestr("two.csv", "1,2\n")
    return folder / "bad.zip"


TABLES = {
    "text": (
        cell(7, "b", "red"),
        "column 'b' of {file} must hold numbers, got 'red' in row 7; leave the column out with --ignore",
    ),
    "no value": (cell(4, "a", ""), "column 'a' of {file} has no value in row 4; fill it in, remove that row"),
    "NaN": (cell(4, "a", "NaN"), "column 'a' of {file} has no value in row 4"),
    "infinity": (cell(3, "c", "inf"), "column 'c' of {file} is not finite in row 3; replace the value"),
    "decimal commas": (content(b"a;price\n1,5;2\n2;3\n"), "column 'a' of {file} must hold numbers, got '1,5' in row 0"),
    "ragged": (content(b"a,price\n1,2\n3,4,5\n"), "{file} must have 2 columns in every row, got 3 in row 1; mend that row"),
    "names twice": (content(b"a,a,price\n1,2,3\n"), "{file} must name its columns differently, got 'a' twice"),
    "empty": (content(b""), "{file} must hold rows of numbers, got an empty file"),
    "header only": (content(b"a,price\n"), "{file} must hold rows of numbers, got none"),
    "one row": (content(b"a,price\n1,2\n"), "TRAIN must have 2 rows or more to split a validation part off, got 1"),
    "no features": (content(b"price\n1\n2\n"), "must have a column to predict 'price' from, got none"),
    "not text": (content(b"\x89PNG\x00\x01\xff\xfe" * 9), "{file} must be a CSV file in UTF-8 or a Parquet file"),
    "latin-1": (content("a,größe,price\n1,2,3\n".encode("latin-1")), "{file} must be a CSV file in UTF-8 or a Parquet file"),
    "damaged gzip": (content(gzip.compress(b"a,price\n1,2\n")[:-9], "bad.csv.gz"), "{file} cannot be unpacked"),
    "damaged zip": (content(b"PK\x03\x04 and more", "bad.zip"), "{file} cannot be unpacked"),
    "two in a zip": (two_in_a_zip, "{file} must hold one CSV file, got 2 files; unpack it"),
    "damaged Parquet": (content(b"PAR1 and more", "bad.parquet"), "{file} cannot be read as Parquet"),
    "Parquet text": (parquet_with(b="1.5"), "column 'b' of {file} must hold numbers, got '1.5' in row 0"),
    "Parquet dates": (parquet_with(b=pd.Timestamp("2020-01-01")), "column 'b' of {file} must hold numbers, got 2020-01-01"),
    "Parquet missing": (parquet_with(b=[1.0] * 9 + [None] * 41), "column 'b' of {file} has no value in row 9"),
    "a folder": (lambda folder: folder, "{file} must hold Parquet files (.parquet, .parq, .pq), got none; check the folder"),
    "not there": (lambda folder: folder / "nothing.csv", "{file} cannot be read (No such file or directory); check the path"),
}


ENCODED = ("no value", "NaN", "Parquet text", "Parquet dates", "Parquet missing")
"""What is refused with --encode none only; tests/cli/test_messy_files.py has what becomes of it."""


def complaint(got):
    assert got.exit_code == 2, got.output
    assert got.stdout == ""
    assert got.stderr.count("\n") == 1
    assert got.stderr.startswith("mixbin: ")
    return got.stderr


@pytest.mark.parametrize("kind", TABLES)
def test_bad_tables_are_refused(tmp_path, kind):
    make, message = TABLES[kind]
    file = make(tmp_path)
    said = complaint(invoke(file, "--target", "price", *QUICK, "--encode", "none", "--out", tmp_path / "run"))
    assert message.format(file=file) in said
    assert not (tmp_path / "run").exists()
    if kind not in ENCODED:
        said = complaint(invoke(file, "--target", "price", *QUICK, "--out", tmp_path / "run"))
        assert message.format(file=file) in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--target", "cost"], "--target must be a column of {train}, got 'cost'; it has the columns 'a', 'b', 'c', 'price'"),
        (["--target", "4"], "--target must be a column of {train}, got '4'"),
        (["--target", "-5"], "--target must be a column of {train}, got '-5'"),
        (["--ignore", "d"], "--ignore must be a column of {train}, got 'd'"),
        (["--ignore", "price"], "--target and --ignore must differ, got 'price' for both"),
        (["--ignore", "a", "--ignore", "b", "--ignore", "c"], "must have a column to predict 'price' from"),
        (["--budget", "0"], "budget must be a whole number from 1 to 40, got 0"),
        (["--budget", "41"], "budget must be a whole number from 1 to 40, got 41"),
        (["--budget", "0%"], "--budget must be above 0"),
        (["--budget", "110%"], "--budget must be above 0 and at most 100%"),
        (["--budget", "some"], "--budget must be a number of rows, got 'some'"),
        (["--alpha", "0"], "--alpha must be a finite number greater than 0, got 0.0; write a number such as 100"),
        (["--alpha", "-1"], "--alpha must be a finite number greater than 0, got -1.0"),
        (["--alpha", "nan"], "--alpha must be a finite number greater than 0"),
        (["--method", "best"], "'best' is not one of 'penalize', 'top-k', 'simple', 'relax', 'all'"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--max-evaluations", "1"], "--max-evaluations must be a whole number of at least 2, got 1"),
        (["--validation-fraction", "1"], "--validation-fraction must be a finite number in (0, 1), got 1.0"),
        (["--validation-fraction", "0.2", "--validation", "{val}"], "--validation-fraction has no use beside --validation"),
        (["--judge", "full", "--validation", "{val}"], "--judge full has no use for --validation"),
        (["--judge", "full", "--validation-fraction", "0.2"], "--validation-fraction has no use where all rows judge"),
        (["--judge", "best"], "'best' is not one of 'auto', 'full', 'validation'"),
        (["--outer-alpha", "-1"], "--outer-alpha must be cv or a number of at least 0, got '-1'; write cv, 0 for none"),
        (["--gap-tol", "-1"], "--gap-tol must be"),
        (["--task", "classification"], "--no-standardize has no use for --task classification"),
        (["--validation", "{bare}"], "{train} has a header and {bare} has none; give both a header"),
        (["--validation", "{less}"], "{less} must have the columns of {train}, but lacks 'b'; add what is missing"),
        (["--test", "{more}"], "{more} must have the columns of {train}, but also has 'd'; remove what is not in both"),
        (["--test", "{text}"], "column 'a' of {text} must hold numbers, got 'x' in row 0"),
        (["--test", "{nothing}"], "{nothing} cannot be read"),
        (["--no-header"], "--target must be a column of {train}, got 'price'; it has 4 columns without names, from 0 to 3"),
        (
            ["--no-header", "--target", "3"],
            "column '0' of {train} must hold numbers, got 'a' in row 0; leave the columns out with --ignore 0,1,2, ",
        ),
        (["--out", "{train}"], "--out must be a folder, got the file '{train}'"),
        (["--out", "{train}/run"], "--out '{train}/run' cannot be written to (Not a directory); choose another folder"),
    ],
)
def test_bad_options_are_refused(files, tmp_path, args, message):
    frame()[["a", "c", "price"]].to_csv(tmp_path / "less.csv", index=False)
    frame().assign(d=1).to_csv(tmp_path / "more.csv", index=False)
    frame().assign(a="x").to_csv(tmp_path / "text.csv", index=False)
    known = {name: files / f"{name}.csv" for name in ("train", "val", "bare")}
    known |= {name: tmp_path / f"{name}.csv" for name in ("less", "more", "text", "nothing")}
    typed = [arg.format(**known) for arg in args]
    said = complaint(invoke(known["train"], "--target", "price", *QUICK, "--out", tmp_path / "run", *typed))
    assert message.format(**known) in said
    assert not (tmp_path / "run").exists()


def test_a_validation_file_without_names_and_with_other_columns(files, tmp_path):
    (tmp_path / "val.csv").write_text("1,2,3\n")
    args = [files / "bare.csv", "--target", "-1", *QUICK, "--validation", tmp_path / "val.csv", "--out", tmp_path / "run"]
    assert "must have the 4 columns of" in complaint(invoke(*args))


@pytest.mark.parametrize("missing", ["--target", "--out"])
def test_options_that_must_be_there(files, tmp_path, missing):
    args = {"--target": "price", "--budget": "10%", "--out": tmp_path / "run"}
    del args[missing]
    assert f"Missing option '{missing}'" in complaint(invoke(files / "train.csv", *(x for pair in args.items() for x in pair)))


# The real thing.


@pytest.mark.ci
def test_blog(tmp_path):
    """The paper's data as a user has it."""
    with zipfile.ZipFile(shared_file("BlogFeedback.zip")) as archive:
        archive.extractall(tmp_path / "blog")
    held_out = sorted((tmp_path / "blog").glob("blogData_test-*.csv"))
    args = [tmp_path / "blog" / "blogData_train.csv", "--target", "280", "--budget", "10%", "--alpha", "100", *PAPER]
    args += [arg for file in held_out[10:] for arg in ("--validation", file)]
    args += [arg for file in held_out[:10] for arg in ("--test", file)]
    out = tmp_path / "run"
    got = summary(*args, "--max-evaluations", "4", "--out", out)
    assert (got["rows"], got["features"], got["budget"], got["validation_rows"] + got["test_rows"]) == (52_397, 280, 5_240, 7_624)
    again, model = retrained(out)
    # Columns of very different scale: what both agree on is what they predict.
    table = pd.read_csv(held_out[0], header=None).to_numpy()[:, :280]
    coef = np.array(list(model["coef"].values()))
    named = pd.DataFrame(table, columns=list(model["coef"]))
    np.testing.assert_allclose(table @ coef + model["intercept"], again.predict(named), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(coef, again.coef_, atol=1e-6)


def test_the_rows_are_those_of_the_estimator(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 6)) * 10.0 ** rng.uniform(-3, 3, 6)
    y = (X / X.std(axis=0)) @ rng.normal(size=6) + rng.normal(size=300)
    pd.DataFrame(np.column_stack([X, y]), columns=[*"abcdef", "price"]).to_csv(tmp_path / "train.csv", index=False)
    got = summary(tmp_path / "train.csv", "--target", "price", "--budget", "12", "--out", tmp_path / "run", "--seed", "7")
    model = mb.DistillationRegressor(budget=12, random_state=7).fit(X, y)
    assert mb.Result.load(tmp_path / "run/result.npz").theta.tolist() == model.support_.tolist()
    assert got["excess"] == pytest.approx(model.excess_, rel=1e-9)

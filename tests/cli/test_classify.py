"""``mixbin distill --task classification``: files in, doubted labels out."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mixbin.cli import app

pytestmark = pytest.mark.slow

NAMES = ["a", "b", "c", "kind"]


def invoke(*args):
    command = ["distill", *map(str, args)]
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, command, prog_name="mixbin")


def frame(rows, seed, wrong=0):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(3, size=rows)
    X = 3 * np.eye(3)[kinds] + rng.normal(size=(rows, 3))
    kinds[:wrong] = (kinds[:wrong] + 1) % 3
    return pd.DataFrame(X.round(4), columns=NAMES[:3]).assign(kind=np.array(["ant", "bee", "cat"])[kinds])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    frame(80, 0, wrong=16).to_csv(folder / "train.csv", index=False)
    frame(50, 1).to_csv(folder / "val.csv", index=False)
    frame(50, 2).to_csv(folder / "test.csv", index=False)
    return folder


def arguments(files, out, *more):
    common = ["--target", "kind", "--task", "classification", "--validation", files / "val.csv", "--test", files / "test.csv"]
    return files / "train.csv", *common, "--out", out, *more


def test_wrong_labels_are_dropped(files, tmp_path):
    got = invoke(*arguments(files, tmp_path / "run", "--json"))
    assert got.exit_code == 0, got.stderr
    summary = json.loads(got.stdout)
    dropped, selected = (pd.read_csv(tmp_path / "run" / name) for name in ("dropped.csv", "selected.csv"))
    assert sorted([*dropped["row"], *selected["row"]]) == list(range(80))
    assert (dropped["row"] < 16).sum() >= 13
    assert (dropped["row"] >= 16).sum() <= 6
    pd.testing.assert_frame_equal(dropped[NAMES], frame(80, 0, wrong=16).iloc[dropped["row"]].reset_index(drop=True))
    lines = {line["method"]: line for line in summary["methods"]}
    assert lines["penalize"]["test_accuracy"] >= lines["all rows"]["test_accuracy"]
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    test = pd.read_csv(files / "test.csv")
    scores = test[model["features"]].to_numpy() @ np.array(model["coef"]).T + model["intercept"]
    accuracy = np.mean(np.array(model["classes"])[scores.argmax(axis=1)] == test["kind"])
    assert accuracy == pytest.approx(lines["penalize"]["test_accuracy"])
    page = (tmp_path / "run" / "report.html").read_text()
    assert all(words in page for words in ("accuracy on test rows", "possible changes of one row", "none: as many rows as help"))


def test_a_budget_the_table_and_resuming(files, tmp_path):
    args = arguments(files, tmp_path / "run", "--budget", "75%", "--method", "all")
    got = invoke(*args)
    assert got.exit_code == 0, got.stderr
    assert "keep 60 of 80 rows of train.csv" in " ".join(got.stdout.split())
    assert all(name in got.stdout for name in ("all rows", "relax", "simple", "top-k", "penalize", "accuracy"))
    assert len(pd.read_csv(tmp_path / "run" / "selected.csv")) == 60
    assert invoke(*args, "--resume").exit_code == 0


def test_a_split_is_drawn_where_no_validation_rows_are_given(files, tmp_path):
    got = invoke(files / "train.csv", "--target", "kind", "--task", "classification", "--out", tmp_path / "run", "--json")
    assert got.exit_code == 0, got.stderr
    summary = json.loads(got.stdout)
    assert (summary["rows"], summary["validation_rows"]) == (64, 16)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(kind="ant"), "y must hold at least two classes"),
        (lambda t: t.assign(kind=None), "column 'kind' of .* has no value in any row; name another column"),
        (lambda t: t.assign(a="x"), "column 'a' of .* must hold numbers"),
    ],
)
def test_bad_tables(files, tmp_path, change, message):
    change(frame(30, 0)).to_csv(tmp_path / "bad.csv", index=False)
    args = ["--target", "kind", "--task", "classification", "--validation", files / "val.csv", "--out", tmp_path / "run"]
    got = invoke(tmp_path / "bad.csv", *args, "--encode", "none")
    assert got.exit_code == 2
    assert got.stderr.count("\n") == 1
    assert re.search(message, got.stderr)


def test_a_regression_needs_a_budget(files, tmp_path):
    got = invoke(files / "train.csv", "--target", "a", "--ignore", "kind", "--out", tmp_path / "run")
    assert got.exit_code == 2
    assert "--budget or --tolerance must be given for a regression" in got.stderr

"""``mixbin labels``: files in, doubtful labels out."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mixbin as mb
from mixbin.cli import app
from mixbin.studies.labels.words import verdict

NAMES = ["a", "b", "c", "kind"]


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["labels", *map(str, args)], prog_name="mixbin")


def frame(rows, seed, wrong=0):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(3, size=rows)
    X = 4 * np.eye(3)[kinds] + rng.normal(size=(rows, 3))
    kinds[:wrong] = (kinds[:wrong] + 1) % 3
    return pd.DataFrame(X.round(4), columns=NAMES[:3]).assign(kind=np.array(["ant", "bee", "cat"])[kinds])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    frame(120, 0, wrong=18).to_csv(folder / "train.csv", index=False)
    frame(40, 1).to_csv(folder / "trusted.csv", index=False)
    frame(60, 2).to_csv(folder / "test.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def run(files):
    args = ["--target", "kind", "--test", files / "test.csv", "--image", "1x3", "--no-guard", "--out", files / "run"]
    got = invoke(files / "train.csv", *args, "--json")
    assert got.exit_code == 0, got.stderr
    return files / "run", json.loads(got.stdout)


def test_files(files, run):
    out, record = run
    table = pd.read_csv(files / "train.csv")
    cleaner = mb.LabelCleaner(random_state=0, guard=False).fit(table[NAMES[:3]].to_numpy(), table["kind"].to_numpy())
    doubtful = pd.read_csv(out / "suspects.csv")
    assert sorted(doubtful["row"]) == np.flatnonzero(cleaner.suspect_).tolist()
    assert doubtful["quality"].is_monotonic_increasing
    assert (doubtful["row"] < 18).sum() >= 14
    assert (doubtful["row"] >= 18).sum() <= 6
    pd.testing.assert_frame_equal(doubtful[NAMES], table.iloc[doubtful["row"]].reset_index(drop=True))
    assert doubtful["suggested label"].tolist() == cleaner.suggested_labels_[doubtful["row"]].tolist()
    pd.testing.assert_frame_equal(pd.read_csv(out / "clean.csv"), table[cleaner.support_].reset_index(drop=True))
    np.testing.assert_allclose(pd.read_csv(out / "quality.csv")["quality"], cleaner.label_quality_)
    assert record["suspects"] == len(doubtful)
    assert np.sum(record["confusion"]) == 120


def test_the_model_is_the_one_that_was_measured(files, run):
    out, record = run
    model, test = json.loads((out / "model.json").read_text()), pd.read_csv(files / "test.csv")
    scores = test[model["features"]].to_numpy() @ np.array(model["coef"]).T + model["intercept"]
    accuracy = np.mean(np.array(model["classes"])[scores.argmax(axis=1)] == test["kind"])
    assert accuracy == pytest.approx(record["methods"][-1]["test_accuracy"])
    assert record["methods"][-1]["method"] == "rows kept"


def test_the_page_and_the_words(files, run):
    page = (run[0] / "report.html").read_text()
    places = [
        page.index(f">{head}<")
        for head in ("The doubtful labels", "How they look", "What to do now", "Which classes are confused")
    ]
    assert places == sorted(places)
    assert page.count('<img src="data:image/png;base64,') == run[1]["suspects"]
    before = (run[0] / "methods.json").read_bytes()
    args = ["--target", "kind", "--test", files / "test.csv", "--image", "1x3", "--no-guard", "--out", run[0]]
    again = invoke(files / "train.csv", *args, "--resume")
    assert again.exit_code == 0, again.stderr
    assert "had ended before" in again.stdout
    assert "dropped without asking whether that helps" in " ".join(again.stdout.split())
    assert (run[0] / "methods.json").read_bytes() == before


def test_trusted_rows_and_the_guard(files, tmp_path):
    got = invoke(files / "train.csv", "--target", "kind", "--trusted", files / "trusted.csv", "--out", tmp_path / "run")
    assert got.exit_code == 0, got.stderr
    said = " ".join(got.stdout.split())
    assert "with the help of 40 trusted rows" in said
    assert "standard error" in said
    record = json.loads((tmp_path / "run" / "methods.json").read_text())
    kept = len(pd.read_csv(tmp_path / "run" / "clean.csv"))
    assert kept == (120 - record["suspects"] if record["guard"]["accepted"] else 120)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"gain": 0.02, "plain_gain": 0.01, "accepted": True}, r"^The 7 rows are dropped: .* changes by \+2\.00 points"),
        ({"gain": 0.001, "plain_gain": 0.01, "accepted": False}, "too little to be sure that it helps"),
        (
            {"gain": 0.02, "plain_gain": -0.01, "accepted": False},
            r"\+2\.00 points .*every row counting the same by -1\.00 points",
        ),
        ({"gain": 0.0, "plain_gain": 0.0, "accepted": False, "above_chance": False}, "hit no more labels than chance"),
    ],
)
def test_the_verdict_says_why(found, said):
    guard = {"standard_error": 0.005, "above_chance": True} | found
    facts = {"suspects": 7, "guard": guard, "guarded": True, "rare_classes": [], "held_back": 0, "max_class_loss": 0.9}
    assert re.search(said, verdict(facts))


@pytest.mark.parametrize(
    ("change", "args", "message"),
    [
        (lambda t: t.assign(kind="ant"), [], "--target must have at least two classes"),
        (lambda t: t.assign(kind=t["a"]), [], "--target must have .*HuberRegressor"),
        (lambda t: t.assign(kind=None), [], "column 'kind' of .* has no value in any row; name another column"),
        (lambda t: t.assign(a="x"), ["--encode", "none"], "column 'a' of .* must hold numbers"),
        (lambda t: t, ["--image", "8x8"], "--image must have as many pixels"),
        (lambda t: t, ["--image", "wide"], "--image must be a height and a width"),
        (lambda t: t, ["--max-class-loss", "2"], "--max-class-loss must be"),
        (lambda t: t, ["--jobs", "0"], "--jobs must be"),
        (lambda t: t, ["--trusted", "other.csv"], "--trusted must hold classes of"),
    ],
)
def test_bad_input(tmp_path, monkeypatch, change, args, message):
    monkeypatch.chdir(tmp_path)
    frame(9, 3).assign(kind="dog").to_csv("other.csv", index=False)
    change(frame(40, 0)).to_csv("bad.csv", index=False)
    got = invoke("bad.csv", "--target", "kind", *args, "--out", "run")
    assert got.exit_code == 2
    assert got.stderr.count("\n") == 1
    assert re.search(message, got.stderr)
    assert not (tmp_path / "run").exists()

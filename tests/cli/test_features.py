"""``mixbin features``: files in, the few features to keep out."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import mixbin as mb
from mixbin.cli import app
from mixbin.studies.features.comparison import counts_on_path, held_out
from mixbin.studies.features.words import ALL, ANY_COUNT, BEST, NAMES, RANDOM, TUNED, beside, better_ones, percent

NAMES_IN = [f"x{j}" for j in range(8)]
PICKED = {"x1", "x4"}


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["features", *map(str, args)], prog_name="mixbin")


def frame(rows, seed, classes=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 8)) * np.arange(1, 9)
    y = 3 * X[:, 1] / 2 - 2 * X[:, 4] / 5 + rng.normal(size=rows)
    table = pd.DataFrame(X.round(4), columns=NAMES_IN)
    return table.assign(y=np.where(y > 0, "yes", "no") if classes else y.round(4))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for name, classes in (("", False), ("two-", True)):
        frame(60, 0, classes).to_csv(folder / f"{name}train.csv", index=False)
        frame(40, 1, classes).to_csv(folder / f"{name}test.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def run(files):
    return done(files, "", "--prove", "--stability")


@pytest.fixture(scope="module")
def two_classes(files):
    return done(files, "two-", "--loss", "logistic")


def done(files, name, *more):
    out = files / f"{name}run"
    args = [files / f"{name}train.csv", "--target", "y", "--keep", "2", "--test", files / f"{name}test.csv", *more, "--out", out]
    got = invoke(*args, "--json")
    assert got.exit_code == 0, got.stderr
    return out, json.loads(got.stdout), args


def test_files(files, run):
    out, record, _ = run
    table = pd.read_csv(files / "train.csv")
    selector = mb.FeatureSelector(n_features=2, prove=True, stability=100, random_state=0)
    selector.fit(table[NAMES_IN].to_numpy(), table["y"].to_numpy())
    listed = pd.read_csv(out / "features.csv").set_index("feature")
    assert set(listed.index[listed["kept"]]) == PICKED
    assert listed["rank"].is_monotonic_increasing
    listed = listed.loc[NAMES_IN]
    np.testing.assert_array_equal(listed["rank"], selector.ranking_)
    np.testing.assert_allclose(listed["coefficient"], selector.coef_)
    np.testing.assert_allclose(listed["effect"], selector.coef_ * table[NAMES_IN].std(ddof=0))
    np.testing.assert_allclose(listed["stability"], selector.stability_)
    pd.testing.assert_frame_equal(pd.read_csv(out / "selected.csv"), table[["x1", "x4", "y"]])
    assert record["proved"] is True
    assert record["gap"] == selector.gap_


@pytest.mark.parametrize("kind", ["run", "two_classes"])
def test_the_model_is_scikit_learns_and_the_one_that_was_measured(files, kind, request):
    out, record, _ = request.getfixturevalue(kind)
    model, table = json.loads((out / "model.json").read_text()), pd.read_csv(out / "selected.csv")
    known = {"make_pipeline": make_pipeline, "StandardScaler": StandardScaler, "Ridge": Ridge}
    known |= {"LogisticRegression": LogisticRegression, "X": table[model["features"]].to_numpy(), "y": table["y"]}
    fitted = eval(model["scikit_learn"], known)
    scaler, last = fitted[0], fitted[-1]
    np.testing.assert_allclose(np.ravel(last.coef_) / scaler.scale_, model["coef"], rtol=2e-3)
    test = pd.read_csv(files / ("test.csv" if kind == "run" else "two-test.csv"))
    predicted, measured = test[model["features"]].to_numpy() @ model["coef"] + model["intercept"], record["methods"][-1]
    if kind == "run":
        assert measured["test_rmse"] == pytest.approx(np.sqrt(np.mean((predicted - test["y"]) ** 2)))
        assert measured["test_r2"] == pytest.approx(1 - np.mean((predicted - test["y"]) ** 2) / test["y"].var(ddof=0))
    else:
        assert model["classes"] == ["no", "yes"]
        assert measured["test_accuracy"] == np.mean((predicted > 0) == (test["y"] == "yes"))


@pytest.mark.parametrize(("kind", "error"), [("run", "cv_rmse"), ("two_classes", "cv_log_loss")])
def test_the_comparison(kind, error, request):
    _, record, _ = request.getfixturevalue(kind)
    assert tuple(line["method"] for line in record["methods"]) == NAMES
    errors = {line["method"]: line[error] for line in record["methods"]}
    assert errors[BEST] < errors[RANDOM]
    at = record["counts"].index(2)
    assert all(record["curves"][name][at] == errors[name] for name in NAMES if name not in ANY_COUNT)
    assert record["error_of_all"] == errors[ALL]
    assert record["methods"][NAMES.index(TUNED)]["features"] == record["lasso_features"] >= 2


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_where_a_lasso_predicts_better_the_command_says_so(tmp_path, loss):
    """Many small effects: a subset of three leaves most of them out, and a lasso keeps them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    y = X.sum(axis=1) + 0.5 * rng.normal(size=400)
    y = (y > 0).astype(int) if loss == "logistic" else y
    pd.DataFrame(X).assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    got = invoke(tmp_path / "t.csv", "--target", "y", "--keep", "3", "--loss", loss, "--out", tmp_path / "run")
    assert got.exit_code == 0, got.stderr
    assert "a tuned lasso on about 20 features predict better there" in " ".join(got.stdout.split())
    page = (tmp_path / "run" / "report.html").read_text()
    assert "A tuned lasso on about 20 features predicts better on the held-out folds" in page


def test_how_many_features_are_enough(run):
    assert run[1]["enough"] == 2
    assert np.argmin(run[1]["curves"][BEST]) >= run[1]["counts"].index(2)


def test_held_out_rows_play_no_part():
    """On targets that have nothing to do with the features, no choice may look better than the mean of the others."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 40)), rng.normal(size=60)
    errors = held_out(lambda train, held: (X[train], X[held]), y, {"n_features": 5, "loss": "squared", "random_state": 0}, [5])
    found = errors.measured(BEST, 0, "squared")["r2"]
    assert found < 0.05
    assert mb.FeatureSelector(n_features=5, random_state=0).fit(X, y).score(X, y) > found + 0.1


def test_the_page_and_the_words(run, two_classes):
    out, record, args = run
    page = (out / "report.html").read_text()
    heads = ("The features kept", "What to do now", "How many features does it take?", "Beside other choices", "All features")
    places = [page.index(f">{head}<") for head in heads]
    assert places == sorted(places)
    before = (out / "methods.json").read_bytes()
    again = invoke(*args, "--resume")
    assert again.exit_code == 0, again.stderr
    said = " ".join(again.stdout.split())
    assert "had ended before" in said
    assert "Proved the best: no other choice of 2 features fits these rows better." in said
    assert f"On held-out folds their error is {record['methods'][-1]['cv_rmse']:.4g}" in said
    assert (out / "methods.json").read_bytes() == before
    other = invoke(*args, "--seed", "1", "--resume")
    assert other.exit_code == 2
    answer = (two_classes[0] / "report.html").read_text()
    assert two_classes[1]["proved"] or "can fit these rows more than" in answer


def test_the_same_seed_gives_the_same_files(run, tmp_path):
    again = invoke(*run[2][:-1], tmp_path / "run", "--json")
    assert again.exit_code == 0, again.stderr
    for name in ("features.csv", "selected.csv", "model.json"):
        assert (tmp_path / "run" / name).read_bytes() == (run[0] / name).read_bytes()
    assert json.loads(again.stdout)["curves"] == run[1]["curves"]


@pytest.mark.parametrize("more", [[], ["--loss", "logistic"]])
def test_all_features_and_constant_columns(tmp_path, more):
    frame(12, 0)[["x0", "x1"]].assign(x0=5, x1=7, y=np.arange(12) % 2).to_csv(tmp_path / "t.csv", index=False)
    got = invoke(tmp_path / "t.csv", "--target", "y", "--keep", "2", *more, "--out", tmp_path / "run")
    assert got.exit_code == 0, got.stderr
    assert "nothing to choose" in got.stdout


def test_words():
    assert [percent(x) for x in (0.0, 0.12, 0.1201, 0.000123, 1.0)] == [
        f"{it}\N{NO-BREAK SPACE}%" for it in ("0", "12", "13", "0.013", "100")
    ]
    better, alike, worse = [3.0, 1.0], [1.0, 1.0], [-3.0, 1.0]
    for name, other in ((ALL, "all features"), (TUNED, "a tuned lasso on about 7 features")):
        said = [beside({"beside": {name: it}, "lasso_features": 7}, name) for it in (better, alike, worse)]
        assert said[0].lower().startswith(f"{other} predict")
        assert f"{other} predict alike" in said[1]
        assert said[2].startswith(f"The features kept predict better than {other}")
    found = [{"beside": {ALL: a, TUNED: b}, "lasso_features": 7} for a in (better, worse) for b in (better, alike)]
    assert [better_ones(it).split(" better there")[0].strip() for it in found] == [
        "All features and a tuned lasso on about 7 features predict",
        "All features predict",
        "A tuned lasso on about 7 features predicts",
        "",
    ]
    assert counts_on_path(10, 60, 300)[-1] == 20
    assert counts_on_path(10, 10, 20)[-1] == 10
    assert counts_on_path(1, 1, 10) == [1]


@pytest.mark.parametrize(
    ("change", "args", "message"),
    [
        (lambda t: t, ["--keep", "9"], "--keep must be at most the number of features, got 9 for 8"),
        (lambda t: t, ["--keep", "0"], "--keep"),
        (lambda t: t, ["--time-limit", "5"], "--time-limit must come with --prove"),
        (lambda t: t, ["--prove", "--time-limit", "-5"], "--time-limit must be"),
        (lambda t: t, ["--loss", "hinge"], "--loss"),
        (lambda t: t, ["--seed", str(2**32)], "--seed must be"),
        (lambda t: t, ["--loss", "logistic"], "--target must have two classes"),
        (lambda t: t.assign(y="a"), ["--loss", "logistic"], "--target must have two classes"),
        (lambda t: t.assign(y=np.where(t["x0"] > 0, "a", "b")), [], "column 'y' .* must hold numbers.*--loss logistic"),
        (lambda t: t.assign(y=np.where(t["x0"] > 0, "a", "b")), ["--loss", "logistic", "--test", "other.csv"], "classes of bad"),
        (lambda t: t.assign(y=1), [], "--target must have values that differ"),
        (lambda t: t.assign(x1="x"), ["--encode", "none"], "column 'x1' of .* must hold numbers"),
        (lambda t: t.assign(x1=[None, *t["x1"][1:]]), ["--encode", "none"], "column 'x1' of .* has no value in row 0"),
        (lambda t: t.assign(x1=t["x1"] * 1e80), [], "column 'x1' must hold numbers of at most 1e.30"),
        (lambda t: t[:5], [], "must have at least 10 rows"),
        (lambda t: t, ["--ignore", "z"], "--ignore must be a column"),
    ],
)
def test_bad_input(tmp_path, monkeypatch, change, args, message):
    monkeypatch.chdir(tmp_path)
    frame(9, 3).assign(y="dog").to_csv("other.csv", index=False)
    change(frame(30, 0)).to_csv("bad.csv", index=False)
    got = invoke("bad.csv", "--target", "y", "--keep", "2", *args, "--out", "run")
    assert got.exit_code == 2
    assert got.stderr.count("\n") == 1
    assert re.search(message, got.stderr)
    assert not (tmp_path / "run").exists()

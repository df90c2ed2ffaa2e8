"""``mixbin groups`` as a person and as a program meet it: its numbers computed again, all kinds of files, resuming, errors."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

import mixbin as mb
from mixbin.cli import app
from mixbin.datasets import make_group_lasso

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FILES = ["coef.csv", "intercept.csv", "methods.json", "report.html", "result.npz", "structure.csv", "structure.svg", "trace.csv"]
SIZES = {"n_tasks": 30, "n_samples": 10, "n_features": 12, "n_groups": 3}
MADE = ["--synthetic", "equal", "--tasks", "30", "--samples", "10", "--features", "12", "--n-groups", "3", "--no-intercept"]
# Few evaluations: the command is under test, not the methods.
QUICK = ["--max-evaluations", "40"]
NAMES = [f"gene {i}" for i in range(12)]


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["groups", *map(str, args)], prog_name="mixbin")


def summary(*args):
    got = invoke(*args, "--json")
    assert got.exit_code == 0, got.stderr
    assert (got.stderr, got.stdout.count("\n")) == ("", 1)
    return json.loads(got.stdout)


def made():
    return make_group_lasso("equal", **SIZES, seed=0)


def arrays(*leave_out):
    """What an archive of the made data holds, without its truth."""
    data = made()
    parts = {name: getattr(data, name) for name in ("X", "y", "X_val", "y_val", "X_test", "y_test") if name not in leave_out}
    return {**parts, "feature_names": np.array(NAMES)}


def write_folder(folder, **there):
    folder.mkdir(exist_ok=True)
    for ending in ("", "_val", "_test"):
        for t, (X, y) in enumerate(zip(there.get(f"X{ending}", ()), there.get(f"y{ending}", ()), strict=True)):
            pd.DataFrame(X, columns=NAMES).assign(yield_=y).to_csv(folder / f"{t}{ending}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same tasks in both forms, with and without validation and test rows."""
    folder = tmp_path_factory.mktemp("tasks")
    whole, bare = arrays(), arrays("X_val", "y_val", "X_test", "y_test")
    for name, there in (("whole", whole), ("bare", bare)):
        np.savez(folder / f"{name}.npz", **there)
        write_folder(folder / name, **there)
    return folder


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All methods side by side on made tasks."""
    out = tmp_path_factory.mktemp("out") / "deep" / "run"
    args = [*MADE, *QUICK, "--method", "all", "--out", out]
    return args, out, summary(*args)


def half_mean_square(X, y, coef):
    return np.mean([0.5 * np.mean((A @ w - b) ** 2) for A, b, w in zip(X, y, coef, strict=True)])


def coefficients(out):
    return pd.read_csv(out / "coef.csv", index_col="task").to_numpy()


def labels(out):
    """Of each feature; those without a group are alone."""
    with (out / "structure.csv").open() as file:
        return np.array([row["group"] or f"alone {row['feature']}" for row in csv.DictReader(file)])


# What it computes.


@pytest.mark.slow
def test_all_methods(everything):
    _, out, got = everything
    lines = {line["method"]: line for line in got["methods"]}
    assert list(lines) == ["no structure", "one group", "oracle", "relax", "simple", "top-k", "penalize"]
    assert (got["tasks"], got["features"], got["n_groups"]) == (30, 12, 3)
    assert (got["rows"], got["validation_rows"], got["test_rows"]) == (300, 300, 300)
    assert got["truth"] == ["labels", "coef"]
    assert max(line["evaluations"] for line in got["methods"]) == lines["penalize"]["evaluations"] == 40
    assert lines["oracle"]["lam"] == lines["penalize"]["lam"]
    assert lines["penalize"]["ungrouped"] == lines["top-k"]["ungrouped"] == 0
    assert json.loads((out / "methods.json").read_text()) == got
    assert all(Path(path).is_file() for path in got["files"].values())
    assert sorted(file.name for file in out.iterdir()) == FILES


def test_the_numbers_are_those_of_the_files(everything):
    _, out, got = everything
    data, coef, last = made(), coefficients(out), got["methods"][-1]
    np.testing.assert_allclose(last["validation_loss"], half_mean_square(data.X_val, data.y_val, coef), rtol=1e-9)
    np.testing.assert_allclose(last["test_loss"], half_mean_square(data.X_test, data.y_test, coef), rtol=1e-9)
    found = labels(out)
    assert last["adjusted_rand"] == adjusted_rand_score(data.labels, found)
    assert last["groups"] == len(set(found))
    singular = np.linalg.svd(coef - data.coef, compute_uv=False)
    np.testing.assert_allclose(last["spectral_error"], singular.max(), rtol=1e-9)
    np.testing.assert_allclose(last["frobenius_error"], np.sqrt(np.square(singular).sum()), rtol=1e-9)


def test_intercepts_are_in_a_file_of_their_own(tmp_path, files):
    got = summary("--data", files / "whole.npz", "--n-groups", "3", *QUICK, "--out", tmp_path / "run")
    data, coef = made(), coefficients(tmp_path / "run")
    intercept = pd.read_csv(tmp_path / "run" / "intercept.csv", index_col="task")["intercept"].to_numpy()
    targets_val, targets = data.y_val - intercept[:, None], data.y - intercept[:, None]
    np.testing.assert_allclose(got["methods"][-1]["validation_loss"], half_mean_square(data.X_val, targets_val, coef), rtol=1e-9)
    np.testing.assert_allclose(np.einsum("tnp,tp->tn", data.X, coef).mean(axis=1), targets.mean(axis=1), atol=1e-9)


def test_the_models_are_group_lassos_on_the_groups(everything):
    """Each satisfies the conditions of its minimum, written out."""
    _, out, got = everything
    data, coef, found, lam = made(), coefficients(out), labels(out), got["methods"][-1]["lam"]
    for X, y, w in zip(data.X, data.y, coef, strict=True):
        slope = X.T @ (X @ w - y) / len(y) + 1e-3 * w
        for group in np.unique(found):
            mine = found == group
            size = np.linalg.norm(w[mine])
            if size > 1e-6:
                np.testing.assert_allclose(slope[mine], -lam * w[mine] / size, atol=1e-6)
            else:
                assert np.linalg.norm(slope[mine]) <= lam + 1e-6


def test_the_oracle_has_the_true_groups(everything):
    _, _, got = everything
    data, line = made(), got["methods"][2]
    problem = mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=3, lam_bounds=line["lam"])
    np.testing.assert_allclose(line["validation_loss"], problem.evaluate(data.theta.astype(float), np.empty(0)).value, rtol=1e-9)
    assert (line["adjusted_rand"], line["groups"], line["status"]) == (1.0, 3, None)


def test_result_and_trace_are_those_of_penalize(everything):
    _, out, got = everything
    result = mb.Result.load(out / "result.npz")
    last = got["methods"][-1]
    np.testing.assert_allclose(result.value, last["validation_loss"], rtol=1e-9)
    assert (result.status, result.lam) == (last["status"], last["lam"])
    np.testing.assert_array_equal(result.theta.argmax(axis=1).astype(str), labels(out))
    assert len(pd.read_csv(out / "trace.csv")) == len(result.trace)


def test_the_picture_has_its_labels(everything):
    _, out, _ = everything
    picture = (out / "structure.svg").read_text()
    for text in ("feature, sorted by group", "group", "penalize", "true", "in the group"):
        assert f">{text}</text>" in picture


@pytest.mark.slow
@pytest.mark.parametrize("name", ["whole", "bare"])
def test_archive_and_folder_give_the_same(files, tmp_path, name):
    one = summary("--data", files / f"{name}.npz", "--n-groups", 3, *QUICK, "--out", tmp_path / "one")
    two = summary("--data", files / name, "--target", "yield_", "--n-groups", 3, *QUICK, "--out", tmp_path / "two")
    assert one["identity"] == two["identity"]
    assert one["validation_split"] == two["validation_split"]
    assert [{**line, "seconds": 0} for line in one["methods"]] == [{**line, "seconds": 0} for line in two["methods"]]
    for file in ("structure.csv", "coef.csv", "structure.svg"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert list(pd.read_csv(tmp_path / "one" / "structure.csv")["name"]) == NAMES
    assert [line["method"] for line in one["methods"]] == ["no structure", "one group", "penalize"]
    assert (one["methods"][-1]["adjusted_rand"], one["truth"]) == (None, [])
    assert one["test_rows"] == (300 if name == "whole" else None)


def test_validation_rows_are_split_off(files, tmp_path):
    args = ["--data", files / "bare", "--n-groups", 3, *QUICK, "--validation-fraction", 0.3, "--no-intercept"]
    got = summary(*args, "--out", tmp_path / "run")
    assert (got["rows"], got["validation_rows"]) == (210, 90)
    held, data = got["validation_split"], made()
    assert len({tuple(rows) for rows in held}) > 1
    X, y = ([a[rows] for a, rows in zip(values, held, strict=True)] for values in (data.X, data.y))
    expected = half_mean_square(X, y, coefficients(tmp_path / "run"))
    np.testing.assert_allclose(got["methods"][-1]["validation_loss"], expected, rtol=1e-9)
    assert summary(*args, "--seed", 1, "--out", tmp_path / "other")["validation_split"] != held


def test_tasks_of_different_sizes_and_orders_of_columns(tmp_path):
    there = arrays("X_test", "y_test")
    write_folder(tmp_path / "tasks", **there)
    for name in ("3", "11_val"):
        file = tmp_path / "tasks" / f"{name}.csv"
        table = pd.read_csv(file)
        table.iloc[:7, ::-1].to_csv(file, index=False)
    (tmp_path / "tasks" / "notes.txt").write_text("no table")
    got = summary("--data", tmp_path / "tasks", "--n-groups", 3, *QUICK, "--out", tmp_path / "run")
    assert (got["rows"], got["validation_rows"]) == (297, 297)
    assert list(pd.read_csv(tmp_path / "run" / "coef.csv")["task"]) == list(range(30))


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["theta", "labels", "coef", "all"])
def test_the_truth_of_an_archive(tmp_path, truth):
    data = made()
    known = {"theta": data.theta, "labels": data.labels + 5, "coef": data.coef}
    np.savez(tmp_path / "t.npz", **arrays(), **(known if truth == "all" else {truth: known[truth]}))
    got = summary("--data", tmp_path / "t.npz", "--n-groups", 2, "--lam", 0.01, *QUICK, "--out", tmp_path / "run")
    last = got["methods"][-1]
    assert ("oracle" in [line["method"] for line in got["methods"]]) == (truth != "coef")
    assert (last["adjusted_rand"] is None) == (truth == "coef")
    assert (last["spectral_error"] is None) == (truth in ("theta", "labels"))
    assert last["lam"] == 0.01
    text = invoke(
        "--data", tmp_path / "t.npz", "--n-groups", 2, "--lam", 0.01, *QUICK, "--out", tmp_path / "run", "--resume"
    ).stdout
    assert ("Rand index" in text) == (truth != "coef")
    assert ("spectral" in text) == (truth in ("coef", "all"))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["top-k", "relax", "simple"])
def test_one_baseline_alone(tmp_path, method):
    out = tmp_path / "run"
    got = summary(*MADE, *QUICK, "--method", method, "--out", out)
    assert [line["method"] for line in got["methods"]] == ["no structure", "one group", "oracle", method]
    table, last = pd.read_csv(out / "structure.csv"), got["methods"][-1]
    assert ("weight" in table) == (method == "relax")
    assert last["ungrouped"] == table["group"].isna().sum()
    assert last["adjusted_rand"] == adjusted_rand_score(made().labels, labels(out))


def test_simple_rounding_that_leaves_features_without_a_group(tmp_path, monkeypatch):
    def rounded(self, x):
        theta = self.vertex(x)
        theta[[2, 5]] = False
        return theta

    monkeypatch.setattr("mixbin.sets.OneHot.round", rounded)
    args = [*MADE, *QUICK, "--method", "simple", "--out", tmp_path / "run"]
    got = summary(*args)
    last = got["methods"][-1]
    assert (last["ungrouped"], last["status"]) == (2, "INFEASIBLE")
    table = pd.read_csv(tmp_path / "run" / "structure.csv")
    assert list(table["feature"][table["group"].isna()]) == [2, 5]
    assert last["adjusted_rand"] == adjusted_rand_score(made().labels, labels(tmp_path / "run"))
    coef = coefficients(tmp_path / "run")
    np.testing.assert_allclose(last["validation_loss"], half_mean_square(made().X_val, made().y_val, coef), rtol=1e-9)
    shown = invoke(*args, "--resume").stdout
    assert "breaks the" in shown
    assert "INFEASIBLE".lower() not in shown
    assert "leaves features without a group" in " ".join(shown.split())


# What it shows.


def test_the_report_in_a_pipe(everything, files, tmp_path):
    args, _, _ = everything
    got = invoke(*args, "--resume")
    assert (got.exit_code, got.stderr) == (0, "")
    assert "\x1b" not in got.stdout
    assert "…" not in got.stdout
    assert max(map(len, got.stdout.splitlines())) <= 80
    text = " ".join(got.stdout.split())
    assert "put the 12 features of synthetic data (equal groups, a = 0.3) into at most 3 groups" in text
    assert "30 regressions, trained on 300 rows" in text
    assert "lam is chosen together with the groups. 300 test rows play no part in the choice." in text
    assert "About the groups that penalize finds: " in text
    assert "nothing was computed again" in text
    for name in FILES:
        assert f"  {name} " in got.stdout
    got = invoke("--data", files / "bare", "--n-groups", 3, "--lam", 0.01, *QUICK, "--out", tmp_path / "run")
    text = " ".join(got.stdout.split())
    assert "the 12 features of bare into" in text
    assert "60 validation rows split off at random best; lam is 0.01." in text
    assert "Written to " in text
    for word in ("test", "oracle", "Rand", "relax, simple"):
        assert word not in text.split("About")[0]


def test_lam_at_a_bound_is_in_the_terminal_and_on_the_page(tmp_path):
    there = {name: 1e4 * a if name.startswith("y") else a for name, a in arrays().items()}
    np.savez(tmp_path / "t.npz", **there)  # the best lam grows with the targets
    got = invoke("--data", tmp_path / "t.npz", "--n-groups", 3, *QUICK, "--out", tmp_path / "run")
    said = "Beware: lam ended at the upper bound 1 of its range; scale the targets"
    assert said in " ".join(got.stdout.split())
    assert said in (tmp_path / "run" / "report.html").read_text()


def test_help_shows_an_example_and_is_quick():
    got = invoke("--help")
    assert got.exit_code == 0
    assert "Example: mixbin groups --synthetic inequal --a 0.3 --out run" in " ".join(got.stdout.split())
    code = (
        "import sys; from mixbin.cli import app; sys.argv = ['mixbin', 'groups', '--help']\n"
        "try: app()\nexcept SystemExit: pass\n"
        "print([name for name in ('numpy', 'scipy', 'sklearn', 'numba', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


# Interrupted, and gone on with.


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "COLUMNS": "80"}


def same(one, two):
    """Both runs left the same bytes, but for their seconds."""
    for name in ("structure.csv", "coef.csv", "structure.svg"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    traces = [pd.read_csv(out / "trace.csv").drop(columns="seconds") for out in (one, two)]
    pd.testing.assert_frame_equal(*traces)
    lines = [json.loads((out / "methods.json").read_text())["methods"] for out in (one, two)]
    assert [{**line, "seconds": 0} for line in lines[0]] == [{**line, "seconds": 0} for line in lines[1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "evaluation"),
    [pytest.param("KILL", 15, marks=pytest.mark.ci), pytest.param("KILL", 60, marks=pytest.mark.ci), ("INT", 15)],
)
def test_resumes_to_what_an_uninterrupted_run_gives(everything, tmp_path, sign, evaluation):
    """At 15 penalize is under way, at 60 one of the baselines."""
    args, whole, _ = everything
    out = tmp_path / "run"
    args = [*args[:-1], out]
    command = [sys.executable, "-m", "tests.cli.killed", sign, str(evaluation), "groups", *map(str, args)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=120)
    if sign == "KILL":
        assert done.returncode == -signal.SIGKILL, done.stderr
    else:
        assert done.returncode == 130
        assert done.stderr == "mixbin: interrupted; the same command with --resume goes on from here\n"
    assert done.stdout == ""
    assert [file.name for file in out.iterdir()] == ["checkpoint"]
    assert (out / "checkpoint" / "penalize.npz").exists() == (evaluation == 60)
    refused = invoke(*args)
    assert refused.exit_code == 2
    assert "already holds a run; add --resume to go on with it" in refused.stderr
    summary(*args, "--resume")
    same(out, whole)
    assert sorted(file.name for file in out.iterdir()) == FILES


@pytest.mark.slow
def test_killed_while_the_files_are_written(everything, tmp_path, monkeypatch):
    args, whole, _ = everything
    out = tmp_path / "run"
    args = [*args[:-1], out]

    def torn(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mixbin.result.Trace.to_csv", torn)
        assert invoke(*args).exit_code == 130
    assert (out / "structure.csv").exists()
    summary(*args, "--resume")
    same(out, whole)


def test_a_finished_run_is_not_computed_again(everything, monkeypatch):
    args, _, first = everything

    def computed(*_, **__):
        raise AssertionError

    for name in ("evaluate", "evaluate_terms", "coef"):
        monkeypatch.setattr(f"mixbin.problems.GroupLassoStructure.{name}", computed)
    assert summary(*args, "--resume") == first


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (["--seed", "1"], "data, seed"),
        (["--a", "0.5"], "data"),
        (["--tasks", "31"], "data, tasks"),
        (["--lam", "0.1"], "lam"),
        (["--max-evaluations", "41"], "max_evaluations"),
        (["--method", "top-k"], "method"),
    ],
)
def test_another_run_is_not_gone_on_with(everything, change, what):
    args, out, _ = everything
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    said = complaint(invoke(*args, *change, "--resume"))
    assert f"holds a run that differs in {what}; repeat the command" in said
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_a_run_of_another_command_is_not_gone_on_with(everything, tmp_path):
    _, out, _ = everything
    pd.DataFrame(np.random.default_rng(0).normal(size=(9, 3))).to_csv(tmp_path / "t.csv", index=False, header=False)
    args = ["distill", tmp_path / "t.csv", "--target", "-1", "--budget", 3, "--out", out, "--resume"]
    got = CliRunner().invoke(app, [str(arg) for arg in args], prog_name="mixbin")
    assert "holds a run that differs in" in complaint(got)


# Mistakes.


def complaint(got):
    assert got.exit_code == 2, got.output
    assert got.stdout == ""
    assert got.stderr.count("\n") == 1
    assert got.stderr.startswith("mixbin: ")
    return got.stderr


def archive(*leave_out, **change):
    def make(folder):
        there = {name: value for name, value in arrays().items() if name not in leave_out}
        np.savez(folder / "t.npz", **(there | change))
        return folder / "t.npz"

    return make


def content(data, name="t.npz"):
    def make(folder):
        (folder / name).write_bytes(data)
        return folder / name

    return make


def one_array(folder):
    np.save(folder / "t.npy", made().X)
    return folder / "t.npy"


def with_entry(name, index, value):
    changed = arrays()[name].copy()
    changed[index] = value
    return archive(**{name: changed})


def ragged():
    tables = np.empty(2, dtype=object)
    tables[:] = [np.ones((3, 2)), np.ones((4, 2))]
    return tables


def folder_with(**texts):
    """Two good tasks, and files with these texts."""

    def make(folder):
        tasks = folder / "tasks"
        tasks.mkdir()
        for name in ("a", "b"):
            (tasks / f"{name}.csv").write_text("u,v,w,y\n1,2,3,4\n2,1,0,3\n3,0,1,1\n")
        for name, text in texts.items():
            (tasks / f"{name}.csv").write_text(text)
        return tasks

    return make


def empty_folder(folder):
    (folder / "tasks").mkdir()
    (folder / "tasks" / "notes.txt").write_text("no table")
    return folder / "tasks"


def one_task(folder):
    tasks = empty_folder(folder)
    (tasks / "a.csv").write_text("u,v,w,y\n1,2,3,4\n2,1,0,3\n")
    (tasks / "a_val.csv").write_text("u,v,w,y\n1,2,3,4\n2,1,0,3\n")
    return tasks


DATA = {
    "not there": (lambda folder: folder / "t.npz", "{data} cannot be read (No such file or directory); check the path"),
    "not an archive": (content(b"X,y\n1,2\n"), "{data} must be a NumPy archive (.npz) or a folder of CSV files, got neither"),
    "empty file": (content(b""), "{data} must be a NumPy archive (.npz) or a folder of CSV files, got neither"),
    "damaged": (content(b"PK\x03\x04 and more"), "{data} must be a NumPy archive (.npz) or a folder of CSV files"),
    "one array": (one_array, "{data} must hold several arrays by name, got one array; write it with numpy.savez"),
    "no X": (archive("X"), "{data} must hold the arrays X and y, but lacks X; it has 'y', 'X_val'"),
    "no y": (archive("y"), "{data} must hold the arrays X and y, but lacks y"),
    "no y_val": (archive("y_val"), "{data} has X_val but no y_val; give both or none"),
    "no X_test": (archive("X_test"), "{data} has y_test but no X_test; give both or none"),
    "unknown name": (
        archive(X_valid=np.ones(3)),
        "{data} has an array 'X_valid' that is not known; rename it to one of X, y, X_val",
    ),
    "pickled": (archive(X=ragged()), "X of {data} must be a plain array, got pickled objects, which are not read"),
    "two dimensions": (archive(X=np.ones((5, 4))), "X of {data} must be an array of shape (tasks, rows, features), got"),
    "no rows": (archive(X=np.ones((5, 0, 4))), "X of {data} must be an array of shape (tasks, rows, features), got"),
    "other rows": (archive(y=np.ones((30, 9))), "y of {data} must be an array of shape (30, 10), got an array of shape (30, 9)"),
    "other features": (archive(X_val=np.ones((30, 10, 5))), "X_val of {data} must be an array of shape (30, rows, 12), got"),
    "NaN": (with_entry("X", (3, 2, 1), np.nan), "X of {data} must be finite, got nan at index (3, 2, 1); remove or replace"),
    "infinity": (with_entry("y_test", (3, 2), np.inf), "y_test of {data} must be finite, got inf at index (3, 2)"),
    "text": (archive(X=np.full((30, 10, 12), "1")), "X of {data} must be an array of numbers, got"),
    "one task": (
        archive(X=np.ones((1, 5, 4)), y=np.ones((1, 5))),
        "X of {data} must hold two tasks or more, got 1; one task cannot show",
    ),
    "few names": (archive(feature_names=np.array(["a"])), "feature_names of {data} must be an array of shape (12,), got"),
    "names twice": (archive(feature_names=np.array(["a"] * 12)), "feature_names of {data} must differ, got a name twice"),
    "theta": (archive(theta=np.full((12, 3), 0.5)), "theta of {data} must be binary"),
    "theta without a group": (archive(theta=np.zeros((12, 3))), "theta of {data} must be one-hot in every row"),
    "labels": (archive(labels=np.ones(12)), "labels of {data} must be 12 whole numbers, got"),
    "theta and labels": (
        archive(theta=np.eye(12, dtype=bool), labels=np.arange(12) // 4),
        "theta and labels of {data} must be the same structure, got two; leave one out",
    ),
    "coef": (archive(coef=np.ones((12, 30))), "coef of {data} must be an array of numbers of shape (30, 12), got"),
    "no CSV": (empty_folder, "{data} must hold a CSV file per task, got none; name the folder with the files"),
    "one CSV": (one_task, "{data} must hold the files of two tasks or more, got 1; one task cannot show"),
    "text column": (folder_with(c="u,v,w,y\n1,2,red,4\n"), "column 'w' of {data}/c.csv must hold numbers, got 'red' in row 0"),
    "no value": (folder_with(b="u,v,w,y\n1,2,3,4\n1,,2,3\n"), "column 'v' of {data}/b.csv has no value in row 1; fill it in"),
    "lost column": (folder_with(b="u,w,y\n1,2,3\n"), "{data}/b.csv must have the columns of {data}/a.csv, but lacks 'v'"),
    "new column": (
        folder_with(b="u,v,w,x,y\n1,2,3,4,5\n"),
        "{data}/b.csv must have the columns of {data}/a.csv, but also has 'x'",
    ),
    "no header": (folder_with(b="1,2,3,4\n5,6,7,8\n"), "{data}/a.csv has a header and {data}/b.csv has none"),
    "no task": (folder_with(c_val="u,v,w,y\n1,2,3,4\n"), "{data}/c_val.csv has validation rows of a task 'c' that is not there"),
    "some validation": (
        folder_with(a_val="u,v,w,y\n1,2,3,4\n"),
        "{data} must have validation rows of every task or of none, got a_val.csv but no b_val.csv; add it",
    ),
    "one row": (folder_with(c="u,v,w,y\n1,2,3,4\n"), "task c must have 2 rows or more to split a validation part off, got 1"),
    "one feature": (folder_with(a="u,y\n1,2\n2,1\n", b="u,y\n1,2\n2,1\n"), "{data} must have two features or more, got 1"),
}


@pytest.mark.parametrize("kind", DATA)
def test_bad_data_is_refused(tmp_path, kind):
    make, message = DATA[kind]
    data = make(tmp_path)
    more = ["--encode", "none"] if kind == "no value" else []
    said = complaint(invoke("--data", data, "--n-groups", 2, *QUICK, *more, "--out", tmp_path / "run"))
    assert message.format(data=data) in said
    assert not (tmp_path / "run").exists()


def test_one_name_with_two_endings(tmp_path):
    folder = folder_with()(tmp_path)
    (folder / "a.tsv").write_text("u\tv\tw\ty\n1\t2\t3\t4\n")
    said = complaint(invoke("--data", folder, "--n-groups", 2, "--out", tmp_path / "run"))
    assert "must hold one file per task, got a.csv and a.tsv; remove one" in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "--data or --synthetic must say where the tasks are from, got neither; write --data FILE"),
        (["--data", "{npz}", "--synthetic", "equal"], "--data or --synthetic must say where the tasks are from, got both"),
        (["--synthetic", "unequal"], "'unequal' is not one of 'equal', 'inequal', 'random'"),
        ([*MADE, "--n-groups", "1"], "--n-groups must be a whole number from 2 to 12, got 1; there are 12 features"),
        ([*MADE, "--n-groups", "13"], "--n-groups must be a whole number from 2 to 12, got 13"),
        (
            [*MADE, "--n-groups", "5"],
            "--n-groups must divide --features for equal groups, got 5 and 12; change one of them or use",
        ),
        (
            [*MADE, "--synthetic", "inequal"],
            "--n-groups must be even and --features divisible by 2 --n-groups for inequal groups",
        ),
        (["--data", "{npz}", "--n-groups", "1"], "--n-groups must be a whole number from 2 to 12, got 1"),
        (["--data", "{npz}", "--n-groups", "13"], "--n-groups must be a whole number from 2 to 12, got 13"),
        ([*MADE, "--lam", "0"], "--lam must be a finite number greater than 0, got 0.0; write a number such as 0.02"),
        ([*MADE, "--lam", "nan"], "--lam must be a finite number greater than 0"),
        ([*MADE, "--a", "1.5"], "--a must be a finite number in [0, 1], got 1.5"),
        ([*MADE, "--a", "-0.1"], "--a must be a finite number in [0, 1], got -0.1"),
        ([*MADE, "--tasks", "1"], "--tasks must be a whole number of at least 2, got 1; one task cannot show"),
        ([*MADE, "--samples", "1"], "--samples must be a whole number of at least 2, got 1"),
        ([*MADE, "--features", "1"], "--features must be a whole number of at least 2, got 1"),
        ([*MADE, "--target", "y"], "--target has no use beside --synthetic; leave it out"),
        ([*MADE, "--validation-fraction", "0.2"], "--validation-fraction has no use beside --synthetic; leave it out"),
        (["--data", "{npz}", "--a", "0.3"], "--a has no use beside --data; leave it out"),
        (["--data", "{npz}", "--tasks", "3"], "--tasks has no use beside --data; leave it out"),
        (["--data", "{npz}", "--target", "y"], "--target has no use beside --data {npz}, which is no folder of CSV files"),
        (
            ["--data", "{npz}", "--n-groups", "3", "--validation-fraction", "0.2"],
            "--validation-fraction has no use where {npz} has",
        ),
        (
            ["--data", "{folder}", "--target", "cost"],
            "--target must be a column of {folder}/0.csv, got 'cost'; it has the columns",
        ),
        (["--data", "{folder}", "--target", "13"], "--target must be a column of {folder}/0.csv, got '13'"),
        (["--data", "{folder}", "--ignore", "yield_"], "--target and --ignore must differ, got 'yield_' for both"),
        (
            ["--data", "{folder}", "--validation-fraction", "1"],
            "--validation-fraction must be a finite number in (0, 1), got 1.0",
        ),
        ([*MADE, "--max-evaluations", "1"], "--max-evaluations must be a whole number of at least 2, got 1"),
        ([*MADE, "--method", "best"], "'best' is not one of 'penalize', 'top-k', 'simple', 'relax', 'all'"),
        ([*MADE, "--seed", "-1"], "Invalid value for '--seed'"),
        ([*MADE, "--out", "{npz}"], "--out must be a folder, got the file '{npz}'"),
    ],
)
def test_bad_options_are_refused(files, tmp_path, args, message):
    known = {"npz": files / "whole.npz", "folder": files / "bare"}
    said = complaint(invoke("--out", tmp_path / "run", *(arg.format(**known) for arg in args)))
    assert message.format(**known) in said
    assert not (tmp_path / "run").exists()


def test_a_folder_for_the_files_must_be_named():
    assert "Missing option '--out'" in complaint(invoke(*MADE))

"""``mixbin demo`` as a person and as a program meet it; its numbers computed again from the row numbers it prints, its folder."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

import mixbin
from mixbin.cli import app
from mixbin.cli.commands.demo import PLANTED, Planted, in_words
from mixbin.cli.commands.diabetes import Comparison, conclusions, load, table
from mixbin.errors import DivergedError, InvalidInput
from mixbin.reporting.record import Line
from mixbin.studies.options import parse_budget

ROOT = Path(__file__).resolve().parents[2]
METHODS = ["all rows", "relax", "simple", "top-k", "penalize"]
# Nothing is left to choose, so that every method ends at once.
QUICK = ["demo", "--budget", "100%", "--alpha", "1e-3"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """The demo writes into the folder it is called in."""
    monkeypatch.chdir(tmp_path)


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, list(args), prog_name="mixbin")


def summary(*args):
    got = invoke("demo", "--json", *args)
    assert got.exit_code == 0, got.stderr
    assert got.stderr == ""
    assert got.stdout.count("\n") == 1
    return json.loads(got.stdout)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where it was called."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def default(place):
    """The answer of the command as a process of its own, in a pipe."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "mixbin", "demo", "--json"], capture_output=True, text=True, env=env, cwd=place, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


@pytest.mark.slow
def test_parts_are_disjoint_and_complete(default):
    parts = [default[name] for name in ("train", "validation", "test")]
    assert [len(part) for part in parts] == [148, 147, 147]
    assert sorted(np.concatenate(parts)) == list(range(442))


@pytest.mark.slow
def test_every_method_reports(default):
    by_name = {line["method"]: line for line in default["methods"]}
    assert list(by_name) == METHODS
    assert default["budget"] == 15
    assert by_name["all rows"]["selected"] == default["train"]
    for name in ("top-k", "penalize"):
        assert by_name[name]["rows"] == len(by_name[name]["selected"]) == 15
    assert by_name["penalize"]["status"] == "BINARY"
    assert by_name["relax"]["status"] == "RELAXED"
    assert by_name["simple"]["rows"] == 15 or by_name["simple"]["status"] == "INFEASIBLE"
    for name in ("relax", "simple", "top-k"):
        assert by_name[name]["evaluations"] <= by_name["penalize"]["evaluations"]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_errors_are_those_of_ridge_trained_on_the_printed_rows(default, method):
    X, y = load_diabetes(return_X_y=True)
    line = next(line for line in default["methods"] if line["method"] == method)
    rows = line["selected"]
    assert set(rows) <= set(default["train"])
    assert line["rows"] == len(rows)
    if not rows:
        assert line["validation_rmse"] is None
        assert line["test_rmse"] is None
        return
    X = X / X[default["train"]].std(axis=0)  # alpha is in standardised units
    model = Ridge(alpha=148 * line["alpha"]).fit(X[rows], y[rows], sample_weight=line["weights"])
    for part in ("validation", "test"):
        error = np.sqrt(np.mean((model.predict(X[default[part]]) - y[default[part]]) ** 2))
        np.testing.assert_allclose(line[f"{part}_rmse"], error, rtol=1e-10)


@pytest.mark.slow
def test_weights_of_the_relaxed_answer_use_the_budget(default):
    relax = next(line for line in default["methods"] if line["method"] == "relax")
    np.testing.assert_allclose(sum(relax["weights"]), default["budget"], rtol=1e-9)


@pytest.mark.slow
def test_penalize_finds_rows_that_matter(default):
    penalize = default["methods"][-1]
    assert penalize["test_rmse"] < default["random_rows_test_rmse"]


@pytest.mark.ci
def test_same_seed_same_numbers(default):
    again = summary("--seed", "0")
    default = json.loads(json.dumps(default))
    for it in (again, default):
        for part in (*it["methods"], it["groups"]):
            part["seconds"] = None
    assert again == default


def test_another_seed_splits_otherwise():
    assert not np.array_equal(load(0).train, load(1).train)


@pytest.mark.ci
def test_a_fixed_alpha_is_used_by_all(monkeypatch):
    @contextlib.contextmanager
    def found(seed, out):
        yield lambda note: Planted(60, 24, 4, 1.0, 0.02, 0.01, 10, 1.0)

    # The groups have no alpha.
    monkeypatch.setattr("mixbin.cli.commands.demo.finding_groups", found)
    got = summary("--budget", "5%", "--alpha", "1e-3")
    assert got["budget"] == 7
    assert {line["alpha"] for line in got["methods"][1:]} == {1e-3}  # cross-validation chooses that of all rows


@pytest.fixture(scope="module")
def toured(tmp_path_factory):
    """One quick demo: where it was called, and what it said."""
    place = tmp_path_factory.mktemp("toured")
    with contextlib.chdir(place):
        return place, invoke(*QUICK, "--out", "tour")


@pytest.mark.slow
def test_table_in_a_pipe(toured):
    _, got = toured
    assert got.exit_code == 0
    assert got.stderr == ""
    assert "\x1b" not in got.stdout
    assert max(map(len, got.stdout.splitlines())) <= 80
    lines = got.stdout.splitlines()
    assert [name for name in METHODS if any(line.startswith(name + "  ") for line in lines)] == METHODS
    header = next(line for line in lines if line.startswith("method"))
    for column in ("validation RMSE", "test RMSE", "rows", "answer", "evaluations", "seconds"):
        assert column in header
    assert "keep only 148 of 148 training rows" in " ".join(got.stdout.split())


def line_of(method, rmse, rows, status):
    return Line(method, {"validation_rmse": rmse, "test_rmse": rmse, "rows": rows, "alpha": 1e-4}, status, 10, 0.1, "")


def comparison_with(simple, penalize_rmse=51.0):
    lines = [
        line_of("all rows", 50.0, 40, None),
        line_of("relax", 49.0, 40, "RELAXED"),
        simple,
        line_of("top-k", 52.0, 4, "REPAIRED"),
        line_of("penalize", penalize_rmse, 4, "BINARY"),
    ]
    return Comparison("diabetes", list(range(40)), [40], [41], 4, 0, lines, 60.0)


@pytest.mark.parametrize(
    ("simple", "cell", "sentence"),
    [
        (line_of("simple", None, 0, "INFEASIBLE"), "no rows", "leaves no rows instead of 4"),
        (line_of("simple", 70.0, 1, "INFEASIBLE"), "70.00", "leaves 1 row instead of 4"),
        (line_of("simple", 52.0, 4, "REPAIRED"), "52.00", None),
    ],
)
def test_simple_rounding_off_the_budget_is_told(simple, cell, sentence):
    comparison = comparison_with(simple)
    assert list(table(comparison).columns[1].cells)[2] == cell
    said = " ".join(conclusions(comparison))
    assert sentence in said if sentence else "instead of" not in said


@pytest.mark.parametrize(
    ("rmse", "words"), [(51.0, "51.0, 2% above the 50.0"), (47.5, "47.5, 5% below the 50.0"), (50.1, "practically the 50.0")]
)
def test_the_conclusion_follows_the_numbers(rmse, words):
    assert words in conclusions(comparison_with(line_of("simple", 52.0, 4, "REPAIRED"), rmse))[0]


# Its folder.


FOLDER = {
    "data": ["test.csv", "train.csv", "validation.csv"],
    "diabetes": ["methods.json", "model.json", "report.html", "result.npz", "selected.csv", "trace.csv"],
    "groups": [
        "coef.csv",
        "intercept.csv",
        "methods.json",
        "report.html",
        "result.npz",
        "structure.csv",
        "structure.svg",
        "trace.csv",
    ],
}


def files(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.mark.slow
def test_the_pages_are_where_it_says(default, place):
    assert default["page"] == "mixbin-demo/index.html"
    expected = [f"{part}/{name}" for part, names in FOLDER.items() for name in names]
    assert files(place / "mixbin-demo") == sorted([*expected, "demo.txt", "index.html"])
    index = (place / "mixbin-demo/index.html").read_text()
    for part in ("diabetes", "groups"):
        assert f"./{part}/report.html" in index


@pytest.mark.ci
def test_the_first_part_is_a_run_of_distill(default, place):
    """The command on its page gives the same rows."""
    folder = place / "mixbin-demo"
    summary = json.loads((folder / "diabetes/methods.json").read_text())
    words = shlex.split(summary["about"]["command"])
    assert words[:2] == ["mixbin", "distill"]
    again = Path("again")
    words[words.index("--out") + 1] = str(again)
    words = [str(place / word) if word.startswith("mixbin-demo/data") else word for word in words[1:]]
    got = invoke(*words)
    assert got.exit_code == 0, got.stderr
    assert (again / "selected.csv").read_text() == (folder / "diabetes/selected.csv").read_text()
    selected = np.array(default["train"])[np.loadtxt(again / "selected.csv", delimiter=",", skiprows=1)[:, 0].astype(int)]
    assert selected.tolist() == default["methods"][-1]["selected"]


@pytest.mark.slow
def test_the_planted_groups_are_found(default, place):
    found = default["groups"]
    assert (found["tasks"], found["features"], found["groups"]) == (60, 24, 4)
    assert found["adjusted_rand"] == 1.0
    summary = json.loads((place / "mixbin-demo/groups/methods.json").read_text())
    theta = mixbin.Result.load(place / "mixbin-demo/groups/result.npz").theta
    assert adjusted_rand_score(summary["labels"], theta.argmax(axis=1)) == 1.0
    assert summary["about"]["command"].startswith("mixbin groups --synthetic equal --tasks 60 ")


@pytest.mark.parametrize(
    ("index", "words"), [(1.0, "finds exactly the groups"), (0.5, "finds groups with a Rand index of 0.50 (1 is the truth)")]
)
def test_what_is_told_of_the_groups_follows_the_numbers(index, words):
    assert words in in_words(Planted(60, 24, 4, index, 0.02, 0.01, 10, 1.0))


@pytest.mark.slow
def test_an_error_of_the_second_part_is_passed_on(monkeypatch):
    monkeypatch.setitem(PLANTED, "n_groups", 1)
    got = invoke(*QUICK, "--json")
    assert (got.exit_code, got.stdout) == (2, "")
    assert got.stderr.startswith("mixbin: --n-groups must be a whole number from 2 to 24, got 1")
    assert got.stderr.count("\n") == 1


@pytest.mark.ci
def test_a_demo_replaces_only_a_demo(toured):
    place, got = toured
    assert got.exit_code == 0, got.stderr
    assert "tour/index.html" in got.stdout
    shutil.copytree(place / "tour", "tour")
    mine = Path("tour/diabetes/notes.txt")
    mine.write_text("mine")
    Path("tour/diabetes/selected.csv").write_text("old")
    assert invoke(*QUICK, "--out", "tour").exit_code == 0
    assert mine.read_text() == "mine"
    assert Path("tour/diabetes/selected.csv").read_text() != "old"


def test_folders_of_others_are_left_alone(tmp_path):
    Path("mixbin-demo").mkdir()
    Path("mixbin-demo/index.html").write_text("mine")
    Path("file").write_text("mine")
    for args, said in (((), "from no demo"), (("--out", "file"), "must be a folder")):
        got = invoke(*QUICK, *args)
        assert (got.exit_code, got.stdout, got.stderr.count("\n")) == (2, "", 1)
        assert said in got.stderr
    assert files(tmp_path) == ["file", "mixbin-demo/index.html"]
    assert Path("mixbin-demo/index.html").read_text() == "mine"


def test_version():
    got = invoke("--version")
    assert (got.exit_code, got.stdout) == (0, f"mixbin {mixbin.__version__}\n")


@pytest.mark.parametrize(
    ("args", "example"), [((), "mixbin demo"), (("--help",), "mixbin demo"), (("demo", "--help"), "mixbin demo --budget 30")]
)
def test_help_shows_an_example(args, example):
    got = invoke(*args)
    assert got.exit_code == 0
    assert f"Example: {example}" in got.stdout


def test_help_is_quick():
    """Nothing heavy is imported to show help."""
    code = (
        "import sys; from mixbin.cli import app; sys.argv = ['mixbin', 'demo', '--help']\n"
        "try: app()\nexcept SystemExit: pass\n"
        "print([name for name in ('numpy', 'scipy', 'sklearn', 'pandas') if name in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("demo", "--budget", "some"), "--budget must be a number of rows, got 'some'; write a percentage such as 10%"),
        (("demo", "--budget", "150%"), "--budget must be above 0 and at most 100%, got '150%'"),
        (("demo", "--budget", "0%"), "--budget must be above 0"),
        (("demo", "--budget", "nan"), "--budget must be above 0"),
        (("demo", "--budget", "0"), "budget must be a whole number from 1 to 148, got 0"),
        (("demo", "--budget", "149"), "budget must be a whole number from 1 to 148, got 149"),
        (("demo", "--budget", "0.001"), "budget must be a fraction that selects at least one of 148"),
        (("demo", "--alpha", "0"), "--alpha must be a finite number greater than 0, got 0.0"),
        (("demo", "--alpha", "nan"), "--alpha must be a finite number"),
        (("demo", "--alpha", "x"), "Invalid value for '--alpha'"),
        (("demo", "--seed", "-1"), "Invalid value for '--seed'"),
        (("demo", "--bogus"), "No such option"),
        (("demo", "more"), "unexpected extra argument"),
        (("dem",), "No such command 'dem'"),
    ],
)
def test_bad_options_get_one_line_and_exit_code_2(args, message):
    got = invoke(*args)
    assert got.exit_code == 2
    assert got.stdout == ""
    assert got.stderr.count("\n") == 1
    assert got.stderr.startswith("mixbin: ")
    assert message in got.stderr
    assert not Path("mixbin-demo").exists()


def test_what_cannot_be_solved_gets_exit_code_1(monkeypatch):
    def diverge(*args, **kwargs):
        raise DivergedError("value is nan in evaluation 3;\n raise alpha")

    monkeypatch.setattr("mixbin.studies.runner.relax_and_penalize", diverge)
    got = invoke(*QUICK)
    assert got.exit_code == 1
    assert got.stdout == ""
    assert got.stderr == "mixbin: value is nan in evaluation 3; raise alpha\n"


def test_a_bug_is_not_dressed_up_as_bad_input(monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("mixbin.studies.runner.relax_and_penalize", broken)
    assert isinstance(invoke(*QUICK).exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("10%", 0.1),
        ("12.5%", 0.125),
        ("100%", 1.0),
        (" 30 ", 30),
        ("1", 1),
        ("0.1", 0.1),
        ("1.0", 1.0),
        ("1e-1", 0.1),
        ("+5", 5),
        ("5 %", 0.05),
    ],
)
def test_budgets_as_typed(text, budget):
    got = parse_budget(text)
    assert got == budget
    assert type(got) is type(budget)


@pytest.mark.parametrize("text", ["", "%", "ten", "10%%", "1,5%", "inf", "-10%", "1.5", "²"])
def test_bad_budgets_as_typed(text):
    with pytest.raises(InvalidInput, match="--budget must be"):
        parse_budget(text)

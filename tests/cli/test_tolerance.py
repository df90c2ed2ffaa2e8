"""``mixbin distill --tolerance`` and the verdict of a run: in the terminal, on the page, in the record, after an interruption."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mixbin.cli import app
from mixbin.studies.distillation import fewest

pytestmark = pytest.mark.slow

NAMES = ["a", "b", "c", "price"]


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, ["distill", *map(str, args)], prog_name="mixbin")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    for name, rows in (("train", 120), ("test", 60)):
        X = rng.normal(size=(rows, 3))
        y = X @ [1.0, 2.0, 3.0] + rng.normal(size=rows)
        pd.DataFrame(np.column_stack([X, y]).round(4), columns=NAMES).to_csv(folder / f"{name}.csv", index=False)
    # Columns of very different scale: without standard deviations, a ridge regression on few rows ignores the second one.
    x = rng.normal(size=(600, 2))
    y = 1e4 * x[:, 1] + x[:, 0] + 5e3 * rng.normal(size=600)
    unscaled = pd.DataFrame(np.column_stack([x * [1e6, 1.0] + [3e6, 0.0], y]), columns=["a", "b", "price"])
    unscaled[:400].to_csv(folder / "unscaled.csv", index=False)
    unscaled[400:].to_csv(folder / "unscaled_test.csv", index=False)
    return folder


def arguments(files, out, *more):
    return files / "train.csv", "--target", "price", "--tolerance", "2%", "--out", out, *more


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "run"
    got = invoke(*arguments(files, out, "--test", files / "test.csv", "--method", "all"))
    assert got.exit_code == 0, got.stderr
    return got.stdout, out, json.loads((out / "methods.json").read_text())


def test_the_smallest_budget(run, files):
    _, out, record = run
    curve, rows = record["curve"], pd.read_csv(out / "selected.csv")
    assert record["excess"] <= record["tolerance"] == 0.02
    assert record["budget"] == curve["found"] == len(rows) == record["methods"][-1]["rows"]
    smaller = [excess for k, excess in zip(curve["rows"], curve["excess"], strict=True) if k < curve["found"]]
    assert smaller
    assert min(smaller) > 0.02
    assert curve["excess"] == sorted(curve["excess"], reverse=True)
    assert record["identity"]["tolerance"] == 0.02
    penalize = record["methods"][-1]
    assert penalize["evaluations"] > curve["n_evaluations"] > 0


def test_all_rows_and_random_rows_are_measured_on_test_rows(run, files):
    _, out, record = run
    lines = {line["method"]: line for line in record["methods"]}
    assert list(lines)[:2] == ["all rows", "random rows"]
    model, test = json.loads((out / "model.json").read_text()), pd.read_csv(files / "test.csv")
    coef = np.array(list(model["coef"].values()))
    error = np.sqrt(np.mean((test[NAMES[:3]].to_numpy() @ coef + model["intercept"] - test["price"]) ** 2))
    assert lines["penalize"]["test_rmse"] == pytest.approx(error)
    assert lines["penalize"]["ratio"] == pytest.approx(error / lines["all rows"]["test_rmse"])
    train = pd.read_csv(files / "train.csv")
    others = train.drop(pd.read_csv(out / "selected.csv")["row"])
    missed = others[NAMES[:3]].to_numpy() @ coef + model["intercept"] - others["price"]
    assert lines["penalize"]["unkept_rmse"] == pytest.approx(np.sqrt(np.mean(missed**2)))
    random = lines["random rows"]
    assert (random["rows"], random["message"]) == (record["budget"], "mean and spread of 10 draws")
    assert random["test_rmse_spread"] > 0
    assert random["ratio"] > lines["penalize"]["ratio"]


def test_the_verdict_is_last_in_the_terminal_and_first_on_the_page(run):
    said, out, record = run
    assert " ".join(said.split()).endswith(" ".join([record["verdict"], *record["red"]]).replace("\xa0", " "))
    page = (out / "report.html").read_text()
    text = page[page.index("<header>") :]
    assert text.index(record["verdict"]) < text.index("<dl") < text.index("What was asked")
    for heading in ("How few rows are enough?", "What now?"):
        assert f"<h2>{heading}</h2>" in page
    assert "Judged: all rows, by which the rows were chosen" in page
    assert "rows = pd.read_csv(&#34;selected.csv&#34;)" in page


def test_the_code_of_the_page_trains_the_model(run, monkeypatch):
    _, out, _ = run
    from html import unescape

    page = (out / "report.html").read_text()
    code = unescape(page.split('<div class="shell code"><pre><code>')[1].split("</code>")[0])
    monkeypatch.chdir(out)
    names = {"new": pd.read_csv("selected.csv")}
    exec(code.replace("json.load(open(", "json.loads(read(").replace('"model.json"))', '"model.json"))'), names | {"read": _read})
    model = json.loads((out / "model.json").read_text())
    names = {"new": pd.read_csv("selected.csv"), "read": _read}
    exec(code.replace("json.load(open(", "json.loads(read("), names)
    scales = np.array(list(model["scales"].values()))
    np.testing.assert_allclose(names["ridge"].coef_ / scales, list(model["coef"].values()), atol=1e-6)


def _read(name):
    with open(name) as file:
        return file.read()


def test_an_interrupted_search_goes_on(run, files, tmp_path, monkeypatch):
    _, whole, record = run
    args = arguments(files, tmp_path / "run", "--test", files / "test.csv", "--method", "all")
    kept, searched = fewest.write_json, []

    def interrupted(file, entries):
        kept(file, entries)
        searched.append(len(entries["searches"]))
        if len(searched) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(fewest, "write_json", interrupted)
    assert invoke(*args).exit_code == 130
    assert (tmp_path / "run" / "checkpoint" / "settled.json").is_file()
    monkeypatch.setattr(fewest, "write_json", kept)
    got = invoke(*args, "--resume")
    assert got.exit_code == 0, got.stderr
    assert (tmp_path / "run" / "selected.csv").read_bytes() == (whole / "selected.csv").read_bytes()
    again = json.loads((tmp_path / "run" / "methods.json").read_text())
    assert again["curve"] == record["curve"]
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_a_damaged_search_is_refused(files, tmp_path, monkeypatch):
    args = arguments(files, tmp_path / "run")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mixbin.studies.runner._run_method", stop)
    assert invoke(*args).exit_code == 130
    file = tmp_path / "run" / "checkpoint" / "settled.json"
    entries = json.loads(file.read_text())
    for damaged in ({}, {"searches": [{"rows": [10**6]}], "seconds": 1}, entries | {"seconds": None}):
        file.write_text(json.dumps(damaged))
        got = invoke(*args, "--resume")
        assert (got.exit_code, got.stderr.count("\n")) == (2, 1), got.stderr
        assert "settled.json" in got.stderr


def test_unscaled_columns_without_standard_deviations_get_red_lines(files, tmp_path):
    args = [files / "unscaled.csv", "--target", "price", "--budget", 20, "--test", files / "unscaled_test.csv"]
    good = invoke(*args, "--out", tmp_path / "good")
    assert "Worse than" not in good.stdout
    got = invoke(*args, "--no-standardize", "--out", tmp_path / "bad")
    assert got.exit_code == 0
    record = json.loads((tmp_path / "bad" / "methods.json").read_text())
    assert [line.split(":")[0] for line in record["red"]] == ["Worse than random rows", "Worse than all rows"]
    assert got.stdout.rstrip().endswith("Keep more rows, or all of them.")
    page = (tmp_path / "bad" / "report.html").read_text()
    assert page.count('<p class="red">') == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--budget", "10"], "--tolerance has no use beside --budget"),
        (["--method", "top-k"], "--tolerance has no use with --method top-k"),
        (["--task", "classification"], "--tolerance has no use for --task classification"),
    ],
)
def test_options_that_do_not_go_together(files, tmp_path, more, words):
    got = invoke(*arguments(files, tmp_path / "run", *more))
    assert (got.exit_code, got.stderr.count("\n")) == (2, 1)
    assert words in got.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", ["0", "-1%", "few", "nan", "%"])
def test_tolerances_that_are_none(files, tmp_path, text):
    got = invoke(files / "train.csv", "--target", "price", f"--tolerance={text}", "--out", tmp_path / "run")
    assert (got.exit_code, got.stderr.count("\n")) == (2, 1)
    assert "--tolerance must be" in got.stderr


def test_a_folder_of_parquet(files, tmp_path):
    (tmp_path / "table").mkdir()
    table = pd.read_csv(files / "train.csv")
    for i in range(2):
        table[60 * i : 60 * i + 60].to_parquet(tmp_path / "table" / f"{i}.parquet", index=False)
    got = invoke(tmp_path / "table", "--target", "price", "--tolerance", "2%", "--out", tmp_path / "run", "--json")
    assert got.exit_code == 0, got.stderr
    record = json.loads(got.stdout)
    assert record["excess"] <= 0.02
    assert len(pd.read_parquet(tmp_path / "run" / "selected")) == record["budget"]
    assert len(record["where"]["kept"]) == record["budget"]

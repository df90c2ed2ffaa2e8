"""The record of a run: what goes in comes out, records of earlier versions are read, and options are in the identity."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from mixbin.cli import app
from mixbin.reporting.record import Line, Record
from mixbin.studies import COMMANDS, KINDS, options_of, study_of
from mixbin.studies.options import described
from mixbin.studies.study import StudyBase

RECORD = Record(
    kind="regression",
    facts={"rows": 30, "seed": 0},
    lines=(Line("all rows", {"rows": 30}), Line("penalize", {"rows": 5}, "BINARY", 56, 0.2, "found")),
    certificate=None,
    files={"model.json": "run/model.json"},
    identity={"data": "abc"},
    asked="The task: keep 5 of 30 rows.",
    about={"command": "mixbin distill"},
)


def test_what_goes_in_comes_out(tmp_path):
    RECORD.write(tmp_path)
    assert Record.read(tmp_path) == RECORD
    assert RECORD.main.method == "penalize"
    assert RECORD.line("all rows").numbers == {"rows": 30}
    assert RECORD.line("top-k") is None
    assert RECORD.n_methods == 1


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        ({}, "regression"),
        ({"task": "classification"}, "classification"),
        ({"storage": "1 MB in 2 blocks"}, "parquet"),
        ({"identity": {"command": "groups"}}, "groups"),
    ],
)
def test_the_kind_of_earlier_records_is_inferred(entries, kind):
    old = {name: value for name, value in RECORD.to_json().items() if name != "kind"} | entries
    assert Record.from_json(old).kind == kind


def test_every_kind_and_every_command_is_there():
    for kind in KINDS:
        study = study_of(kind)
        assert issubclass(study, StudyBase)
        assert study.kind == kind
    for command in COMMANDS:
        options = options_of(command)
        assert options.command == command
        assert {"out", "seed", "resume"} <= set(described(options))
    assert study_of("horoscopes") is None


@pytest.fixture
def run(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    table = np.column_stack([X, X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=30)])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,y", comments="")
    command = [
        "distill",
        tmp_path / "t.csv",
        "--target",
        "y",
        "--budget",
        "5",
        "--max-evaluations",
        "20",
        "--out",
        tmp_path / "run",
    ]
    command = list(map(str, command))
    assert CliRunner().invoke(app, command).exit_code == 0
    return command, tmp_path / "run"


def test_a_run_of_an_earlier_version_opens_but_is_not_gone_on_with(run):
    command, out = run
    record = json.loads((out / "methods.json").read_text())
    del record["kind"], record["identity"]["kind"]
    record["identity"]["data"] = "hashed in another way"
    (out / "methods.json").write_text(json.dumps(record))
    (out / "report.html").unlink()
    assert CliRunner().invoke(app, ["report", str(out)]).exit_code == 0
    assert (out / "report.html").exists()
    got = CliRunner().invoke(app, [*command, "--resume"])
    assert got.exit_code == 2
    assert "holds a run of an earlier version, which does not say its kind" in got.stderr


def test_a_run_of_a_kind_that_is_not_known_is_refused_by_name(run):
    _, out = run
    record = json.loads((out / "methods.json").read_text())
    (out / "methods.json").write_text(json.dumps(record | {"kind": "horoscopes"}))
    got = CliRunner().invoke(app, ["report", str(out)])
    assert got.exit_code == 2
    assert "is of the kind 'horoscopes', which is none of regression, parquet, classification, groups" in got.stderr


def test_a_run_without_references_and_a_verdict_opens(run):
    """As runs were before every comparison had random rows."""
    _, out = run
    record = json.loads((out / "methods.json").read_text())
    for name in ("verdict", "red", "curve", "where", "tolerance"):
        del record[name]
    record["methods"] = [line for line in record["methods"] if line["method"] != "random rows"]
    for line in record["methods"]:
        del line["unkept_rmse"], line["ratio"]
    (out / "methods.json").write_text(json.dumps(record))
    (out / "report.html").unlink()
    got = CliRunner().invoke(app, ["report", str(out)])
    assert got.exit_code == 0, got.stderr
    assert "The method penalize keeps 5 of 30 rows" in (out / "report.html").read_text()

"""Folders as the commands leave them, small, with names that mean harm."""

import csv
import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from mixbin import plot
from mixbin.cli import app
from mixbin.datasets import make_group_lasso
from mixbin.reproduction import writing
from mixbin.reproduction.figures import Figure
from mixbin.reproduction.published import cell
from mixbin.reproduction.table import Entry, Finding, Row, Table

HOSTILE = [
    "<script>window.hacked=1</script>",
    "</script><img src=x onerror=window.hacked=2>",
    "\"quoted\" 'and' &amp; `ticked`",
    "שלום עולם <i>",
    "long " + "wide" * 100,
    "{{ 7 * 7 }} $x^2$ ${1+1}",
    "=1+2",
]
"""Columns of a table; the last is to be predicted."""
TARGET = "<b onclick=window.hacked=3>ציון</b>"
FILE = "<img src=x onerror=window.hacked=4>.csv"


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, list(map(str, args)), prog_name="mixbin")


def done(*args):
    got = invoke(*args, "--json")
    assert got.exit_code == 0, got.stderr
    assert (got.stderr, got.stdout.count("\n")) == ("", 1)
    return json.loads(got.stdout)


def write_table(file, names, rows, seed=0):
    """A table whose last column depends on the others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, len(names) - 1)).round(4)
    y = (X @ np.arange(1, len(names)) + rng.normal(size=rows)).round(4)
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([names, *np.column_stack([X, y]).tolist()])


def distillation(folder: Path, out: Path) -> dict:
    """A run of all methods on a table with hostile names."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / FILE, [*HOSTILE, TARGET], 100)
    write_table(folder / "test.csv", [*HOSTILE, TARGET], 30, seed=1)
    options = ["--target", TARGET, "--budget", "30", "--max-evaluations", "60", "--method", "all", "--judge", "validation"]
    return done("distill", folder / FILE, *options, "--test", folder / "test.csv", "--out", out)


def structure(folder: Path, out: Path) -> dict:
    """A run on made tasks, with hostile names for their features and the truth beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    data = make_group_lasso("equal", n_tasks=30, n_samples=10, n_features=12, n_groups=3, seed=0)
    parts = {name: getattr(data, name) for name in ("X", "y", "X_val", "y_val", "X_test", "y_test", "coef")}
    names = [*HOSTILE, *(f"gene {i}" for i in range(12 - len(HOSTILE)))]
    np.savez(folder / "tasks.npz", **parts, labels=data.theta.argmax(axis=1), feature_names=np.array(names))
    options = ["--n-groups", "3", "--max-evaluations", "30"]
    return done("groups", "--data", folder / "tasks.npz", *options, "--out", out)


def reproduction(out: Path) -> None:
    """What a reproduction writes, with made numbers."""
    out.mkdir(parents=True, exist_ok=True)
    methods = ("simple", "top-k", "penalize")
    columns = {"validation loss": "validation", "test loss": "test"}
    rows = tuple(
        Row(
            ("blog", method),
            tuple(Entry((300.0 + i, 301.0 + i), 2, cell(3, "blog", "20", method, quantity)) for quantity in columns.values()),
        )
        for i, method in enumerate(methods)
    )
    found = Finding("validation at blog 20 %", "penalize below simple", "penalize is above simple", "the numbers are <made> up")
    table = Table(3, "data distillation", ("data", "method"), tuple(columns), rows, ("a remark",), ("a note",), (found,))
    theta = np.eye(3)[np.arange(9) % 3]
    maps = tuple(plot.structure_map(theta, labels=np.arange(9) % 3, title=title) for title in ("true", "penalize"))
    steps, n = np.arange(40.0), 40
    curve = plot.distance_curve(steps, np.linspace(0.5, 0, n), unit="evaluations of G")
    losses = {name: 300 + np.exp(-steps / 9) for name in ("validation", "validation_rounded", "test", "test_rounded")}
    losses["validation_rounded"][3] = np.nan
    evolution = plot.Evolution(
        steps=steps, unit="evaluations of G", n_selected=steps, budget=39, integrality=np.zeros(n), rmse=steps + 1, **losses
    )
    figures = [Figure(1, "structures", maps), Figure(2, "distance", curve), Figure(4, "evolution", evolution, ("of blog",))]
    about = {
        "command": "mixbin reproduce table3 --out <here>",
        "finished": "2026-01-01 00:00 UTC",
        "seconds": 12.3,
        "machine": "2 cores",
        "versions": {"mixbin": "0.1.0"},
        "size": "quick",
        "solver": "default",
        "runs": {"groups": 1, "distillation": 2},
        "seeds": {"groups": [0], "distillation": [0, 1]},
        "music": "not here",
    }
    writing.write(out, about, [table], figures)

"""``mixbin distill --task classification``: which rows of a table to train a classifier on, and which labels not to trust."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._files import json_text
from mixbin._origin import origin
from mixbin._validate import Floats
from mixbin._version import __version__
from mixbin.cli.distill import EXIT_UNSOLVED, Options, check_options, selected
from mixbin.cli.report import empty_table, show_end, spinner
from mixbin.cli.run_folder import RunFolder
from mixbin.cli.solving import resumable, solve_all
from mixbin.cli.typed import command_line
from mixbin.data import tables
from mixbin.problems import SoftmaxDistillation
from mixbin.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

POLISH = 50
"""Evaluations that polish may use, as in DistillationClassifier."""
SHOWN = {
    "report.html": "everything as a page, for a browser",
    "selected.csv": "the selected rows, with their numbers in the training file",
    "dropped.csv": "the other candidate rows: those whose label to doubt",
    "model.json": "the logistic regression trained on the selected rows",
    "trace.csv": "the path of the run",
    "result.npz": "everything, for mixbin.Result.load",
    "methods.json": "the table above",
}
Part = tuple[Floats, NDArray[np.str_]]


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be chosen from, and by what it is judged."""

    table: tables.Table
    features: list[str]
    target: str
    rows: NDArray[np.intp]
    """The candidate rows, by their numbers in the table."""
    split_off: list[int] | None
    train: Part
    validation: Part
    test: Part | None


def run(options: Options) -> None:
    """Do what the command says and print it, as a table or as one line of JSON."""
    with resumable():
        with spinner(f"Reading {options.train.name} ...", quiet=options.as_json):
            check_options(options)
            task = load(options)
            problem = SoftmaxDistillation(*task.train, *task.validation, budget=options.budget, alpha=options.alpha)
        folder = RunFolder(options.out, tuple(SHOWN))
        summary = folder.enter(identity(options, task, problem), options.resume)
        before = summary is not None
        if summary is None:
            summary = compute(options, task, problem, folder)
    folder.tell(summary, before, options.as_json, lambda told, console: show(told, options.out, before, console))


def show(summary: Mapping[str, Any], out: Path, before: bool, console: "Console") -> None:
    """The task in a sentence, the table, the certificate in words, and where the files are."""
    console.print("\n" + sentence(summary) + "\n")
    console.print(table(summary))
    console.print("\nloss is the cross entropy, accuracy the share of rows whose class is predicted.\n")
    show_end(summary, f"the rows that {summary['method']} keeps", out, SHOWN, before, console)


def load(options: Options) -> Task:
    """The features as numbers and the classes as text, with a validation part split off where none is given."""
    read = tables.read(options.train, options.header)
    features, target = read.roles(options.target, options.ignore)
    X, y = read.numbers(features), read.labels(target)
    rows, split_off = np.arange(len(read)), None
    columns = [*features, target]

    def others(files: list[Path]) -> Part:
        parts = tables.read_each(files, read, columns, options.header)
        return np.concatenate([it.numbers(features) for it in parts]), np.concatenate([it.labels(target) for it in parts])

    if options.validation:
        validation = others(options.validation)
    else:
        rows, held = tables.split(len(read), options.validation_fraction, options.seed, "TRAIN", "give --validation")
        # A class that only has rows to validate on could not be learnt.
        held = held[np.isin(y[held], y[rows])]
        validation, split_off = (X[held], y[held]), held.tolist()
    test = others(options.test) if options.test else None
    return Task(read, features, target, rows, split_off, (X[rows], y[rows]), validation, test)


def identity(options: Options, task: Task, problem: SoftmaxDistillation) -> dict[str, Any]:
    """All that the numbers of a run depend on."""
    return {
        "mixbin": __version__,
        "task": "classification",
        # Not the fingerprint of the problem, whose rows are centred: the model is that of the rows as they are.
        "data": digest(*arrays(task.train), *arrays(task.validation)),
        "validation": "given" if task.split_off is None else "split off",
        "test": None if task.test is None else digest(*arrays(task.test)),
        "columns": [*task.features, task.target],
        "budget": getattr(problem.theta_set, "k", None),
        "alpha": problem.alpha,
        "method": options.method,
        "seed": options.seed,
        "max_evaluations": options.max_evaluations,
    }


def arrays(part: Part) -> tuple[Floats, NDArray[np.uint8]]:
    """Some rows, their classes as bytes."""
    X, labels = part
    return X, np.char.encode(labels, "utf-8").view(np.uint8)


def compute(options: Options, task: Task, problem: SoftmaxDistillation, folder: RunFolder) -> dict[str, Any]:
    """Run the methods, penalize first, and leave everything in the folder."""
    runs = solve_all(
        options.method,
        problem,
        folder,
        seed=options.seed,
        max_evaluations=options.max_evaluations,
        quiet=options.as_json,
        polish=POLISH,
    )
    method, main, _ = runs[-1]
    if not main.theta.any():
        typer.echo(f"mixbin: {method} keeps no row, so there is no model; use --method penalize in another --out", err=True)
        raise typer.Exit(EXIT_UNSOLVED)
    everything = np.ones(len(task.rows), dtype=bool)
    lines = [line("all rows", task, problem, everything, main.lam)]
    for it in runs:
        how: dict[str, Any] = {"status": it.result.status.value, "evaluations": it.result.n_evaluations}
        how |= {"seconds": round(it.seconds, 3), "message": it.result.message}
        lines.append(line(it.method, task, problem, it.result.theta, it.result.lam) | how)
    summary: dict[str, Any] = {
        "train": str(options.train),
        "task": "classification",
        "target": task.target,
        "classes": problem.classes.tolist(),
        "features": len(task.features),
        "rows": len(task.rows),
        "validation_rows": len(task.validation[0]),
        "test_rows": None if task.test is None else len(task.test[0]),
        "budget": None if options.budget is None else int(getattr(problem.theta_set, "k", len(task.rows))),
        "alpha": options.alpha,
        "seed": options.seed,
        "method": method,
        "methods": lines,
        "certificate": None if main.certificate is None else str(main.certificate),
        "files": {name: str(options.out / name) for name in SHOWN},
        "validation_split": task.split_off,
        "identity": identity(options, task, problem),
    }
    summary |= {"asked": sentence(summary), "about": origin(command_line(), sum(it["seconds"] for it in lines))}
    files = {
        "selected.csv": selected(task.table, task.rows, main.theta),
        "dropped.csv": selected(task.table, task.rows, main.theta == 0),
        "model.json": json_text(model(task, problem, main)),
    }
    folder.finish(summary, main, files)
    return summary


def line(method: str, task: Task, problem: SoftmaxDistillation, theta: NDArray[Any], lam: Floats) -> dict[str, Any]:
    """Loss and accuracy of the model trained on the chosen rows; None where no row is chosen or there is no test set."""
    out: dict[str, Any] = {
        "method": method,
        "rows": int(np.count_nonzero(theta)),
        "alpha": alpha_of(problem, lam),
        "status": None,
        "evaluations": 1,
        "seconds": 0.0,
        "message": "nothing to choose",
    }
    for name, part in (("validation", task.validation), ("test", task.test)):
        loss = accuracy = None
        if part is not None and theta.any():
            coef, intercept = problem.model(theta, lam)
            scores = part[0] @ coef.T + intercept
            accuracy = float(np.mean(problem.classes[scores.argmax(axis=1)] == part[1]))
            known = np.isin(part[1], problem.classes)
            if known.all():
                own = np.searchsorted(problem.classes, part[1])
                loss = float(np.mean(np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(own)), own]))
        out |= {f"{name}_loss": loss, f"{name}_accuracy": accuracy}
    return out


def alpha_of(problem: SoftmaxDistillation, lam: Floats) -> float:
    """The penalty, fixed or found."""
    return problem.strength.value(lam)


def model(task: Task, problem: SoftmaxDistillation, result: Result) -> dict[str, Any]:
    """The classifier: scores are intercept + coef x, the largest wins."""
    coef, intercept = problem.model(result.theta, result.lam)
    return {
        "target": task.target,
        "classes": problem.classes.tolist(),
        "features": task.features,
        "intercept": intercept.tolist(),
        "coef": coef.tolist(),
        "alpha": alpha_of(problem, result.lam),
        "candidate_rows": len(task.rows),
        "selected_rows": int(np.count_nonzero(result.theta)),
    }


def sentence(summary: Mapping[str, Any]) -> str:
    """The task."""
    k, m = summary["budget"], summary["rows"]
    name = Path(summary["train"]).name
    keep = f"keep {k:,} of {m:,} rows of {name}" if k is not None else f"of {m:,} rows of {name} drop those whose label does harm"
    split_off = " split off at random" if summary["validation_split"] is not None else ""
    return (
        f"The task: {keep}, such that a logistic regression trained on the rest predicts column {summary['target']!r} "
        f"({len(summary['classes'])} classes) best on {summary['validation_rows']:,} validation rows{split_off}."
    )


def table(summary: Mapping[str, Any]) -> "Table":
    """One line per method."""
    shown = {
        "validation_loss": "validation\nloss",
        "validation_accuracy": "validation\naccuracy",
        "test_accuracy": "test\naccuracy",
    }
    if summary["test_rows"] is None:
        del shown["test_accuracy"]
    out = empty_table("method", *shown.values(), "rows", "status", "evals", "seconds")
    for it in summary["methods"]:
        cells = ["-" if it[name] is None else f"{it[name]:.4g}" for name in shown]
        status = (it["status"] or "reference").lower()
        out.add_row(it["method"], *cells, f"{it['rows']:,}", status, f"{it['evaluations']:,}", f"{it['seconds']:.2f}")
    return out

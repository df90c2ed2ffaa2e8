"""``mixbin distill``: choose rows of a table in a file, compare the methods, and leave the rows and their model in a folder."""

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._files import csv_text, json_text
from mixbin._origin import origin
from mixbin._validate import Floats
from mixbin._version import __version__
from mixbin.cli.report import empty_table, show_end, spinner
from mixbin.cli.run_folder import RunFolder
from mixbin.cli.solving import Solved, check_limits, resumable, solve_all
from mixbin.cli.typed import command_line
from mixbin.data import tables
from mixbin.datasets.sources import digest
from mixbin.errors import InvalidInput
from mixbin.problems import RidgeDistillation
from mixbin.reporting.figures import selection_data
from mixbin.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

EXIT_UNSOLVED = 1
SHOWN = {
    "report.html": "everything below as a page, for a browser",
    "selected.csv": "the selected rows, with their numbers in the training file",
    "model.json": "the ridge regression trained on them",
    "trace.csv": "the path of the run",
    "result.npz": "everything, for mixbin.Result.load",
    "methods.json": "the table above",
}


@dataclass(frozen=True)
class Options:
    """The command as typed."""

    train: Path
    target: str
    budget: int | float | None
    out: Path
    validation: list[Path]
    test: list[Path]
    ignore: list[str]
    alpha: float | None
    method: str
    seed: int
    validation_fraction: float | None
    max_evaluations: int | None
    header: bool | None
    resume: bool
    as_json: bool


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be chosen from, and by what it is judged."""

    table: tables.Table
    features: list[str]
    target: str
    rows: NDArray[np.intp]
    """The candidate rows, by their numbers in the table."""
    split_off: list[int] | None
    """The rows of the table that serve for validation instead."""
    train: Floats
    validation: Floats
    test: Floats | None
    """Features and target, side by side."""


@dataclass(frozen=True)
class Line:
    """One line of the comparison; the errors are None where no row is left to train on, or there is no test set."""

    method: str
    validation_loss: float | None
    validation_rmse: float | None
    test_loss: float | None
    test_rmse: float | None
    rows: int
    alpha: float
    status: str | None
    evaluations: int
    seconds: float
    message: str


def run(options: Options) -> None:
    """Do what the command says and print it, as a table or as one line of JSON."""
    with resumable():
        with spinner(f"Reading {options.train.name} ...", quiet=options.as_json):
            check_options(options)
            needed_budget(options)
            task = load(options)
            problem = make_problem(task, options)
        folder = RunFolder(options.out, tuple(SHOWN))
        summary = folder.enter(identity(options, task, problem), options.resume)
        before = summary is not None
        if summary is None:
            summary = finish(options, task, problem, folder, solve(options, problem, folder), command_line())
    folder.tell(summary, before, options.as_json, lambda told, console: show_run(told, options.out, before, console))


def check_options(options: Options) -> None:
    """What can be told before a file is read."""
    if options.alpha is not None:
        remedy = "write a number such as 100, or leave it out to have it chosen"
        check.real("--alpha", options.alpha, low=0, open_low=True, remedy=remedy)
    check_limits(options.max_evaluations, options.validation_fraction)
    if options.validation and options.validation_fraction is not None:
        raise InvalidInput("--validation-fraction has no use beside --validation; leave one of them out")


def needed_budget(options: Options) -> int | float:
    """The budget, without which rows of a regression are not dropped."""
    if options.budget is None:
        raise InvalidInput("--budget must be given for a regression, got none; write one such as --budget 10%")
    return options.budget


def load(options: Options) -> Task:
    """The files as numbers, with a validation part split off where none is given."""
    table = tables.read(options.train, options.header)
    features, target = table.roles(options.target, options.ignore)
    columns = [*features, target]
    everything = table.numbers(columns)
    rows, split_off = np.arange(len(table)), None
    if options.validation:
        train, validation = everything, tables.read_all(options.validation, table, columns, options.header)
    else:
        rows, held = tables.split(len(table), options.validation_fraction, options.seed, "TRAIN", "give --validation")
        train, validation, split_off = everything[rows], everything[held], held.tolist()
    test = tables.read_all(options.test, table, columns, options.header) if options.test else None
    return Task(table, features, target, rows, split_off, train, validation, test)


def identity(options: Options, task: Task, problem: RidgeDistillation) -> dict[str, Any]:
    """All that the numbers of a run depend on."""
    parts = [part for part in (task.train, task.validation, task.test) if part is not None]
    return {
        "mixbin": __version__,
        "data": digest(*parts),
        # The same rows may come from two files, where they have other numbers.
        "validation": "given" if task.split_off is None else "split off",
        "columns": [*task.features, task.target],
        "budget": problem.theta_set.k,
        "alpha": options.alpha,
        "method": options.method,
        "seed": options.seed,
        "max_evaluations": options.max_evaluations,
    }


def make_problem(task: Task, options: Options) -> RidgeDistillation:
    """G over the rows."""
    X, X_val = task.train[:, :-1], task.validation[:, :-1]
    y, y_val = task.train[:, -1], task.validation[:, -1]
    return RidgeDistillation(X, y, X_val, y_val, budget=needed_budget(options), alpha=options.alpha)


def solve(options: Options, problem: RidgeDistillation, folder: RunFolder) -> list[Solved]:
    """Run the methods, penalize first."""
    limits: dict[str, Any] = {"seed": options.seed, "max_evaluations": options.max_evaluations}
    return solve_all(options.method, problem, folder, **limits, quiet=options.as_json)


def finish(
    options: Options, task: Task, problem: RidgeDistillation, folder: RunFolder, runs: list[Solved], command: str
) -> dict[str, Any]:
    """Judge what the methods gave and leave everything in the folder, with the ``command`` that makes it again."""
    lines = [reference(task, problem), *(line(it.method, task, problem, it.result, it.seconds) for it in runs)]
    method, main, _ = runs[-1]
    end_without_rows(method, main)
    summary = summarise(options, task, problem, main, lines)
    summary |= {"asked": sentence(summary), "about": origin(command, sum(it.seconds for it in lines))}
    described = model(task.features, task.target, problem, main, "the rows of selected.csv")
    folder.finish(
        summary, main, {"selected.csv": selected(task.table, task.rows, main.theta), "model.json": json_text(described)}
    )
    return summary


def end_without_rows(method: str, main: Result) -> None:
    """The end of a run that has selected nothing."""
    if not main.theta.any():
        print(
            f"mixbin: {method} rounding keeps no row, so there is no model; use --method top-k or penalize in another --out",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_UNSOLVED)


def reference(task: Task, problem: RidgeDistillation) -> Line:
    """What training on all candidate rows gives."""
    began = time.perf_counter()
    everything = np.ones(len(task.rows), dtype=bool)
    alpha, evaluations = best_alpha(problem, everything)
    errors = losses(task, problem, everything, problem.strength.lam(alpha))
    seconds = time.perf_counter() - began
    how: dict[str, Any] = {
        "status": None,
        "evaluations": evaluations,
        "seconds": round(seconds, 3),
        "message": "nothing to choose",
    }
    return Line(method="all rows", rows=len(task.rows), alpha=alpha, **errors, **how)


def best_alpha(problem: RidgeDistillation, theta: NDArray[np.bool_]) -> tuple[float, int]:
    """The alpha with the least validation error for given rows, or the fixed one; and how many were tried."""
    from scipy.optimize import minimize_scalar

    if isinstance(problem.alpha, float):
        return problem.alpha, 1
    v, bounds = theta.astype(np.float64), np.log(problem.alpha)
    best = minimize_scalar(lambda t: problem.evaluate(v, np.exp(t), gradient=False).value, bounds=bounds, method="bounded")
    return float(np.exp(best.x)), int(best.nfev)


def line(method: str, task: Task, problem: RidgeDistillation, result: Result, seconds: float) -> Line:
    """What one method gives."""
    return Line(
        method=method,
        rows=int(np.count_nonzero(result.theta)),
        alpha=alpha_of(problem, result),
        status=result.status.value,
        evaluations=result.n_evaluations,
        seconds=round(seconds, 3),
        message=result.message,
        **losses(task, problem, result.theta, result.lam),
    )


def alpha_of(problem: RidgeDistillation, result: Result) -> float:
    """The penalty that belongs to a result."""
    return problem.strength.value(result.lam)


def losses(task: Task, problem: RidgeDistillation, theta: NDArray[Any], lam: Any) -> dict[str, Any]:
    """Loss and RMSE on the validation and on the test rows, of the model trained on the chosen rows."""
    parts = {"validation": task.validation, "test": task.test}
    out: dict[str, Any] = {f"{name}_{kind}": None for name in parts for kind in ("loss", "rmse")}
    if not theta.any():
        return out
    coef, intercept = problem.model(theta, lam)
    for name, part in parts.items():
        if part is not None:
            squared = float(np.mean((part[:, :-1] @ coef + intercept - part[:, -1]) ** 2))
            out |= {f"{name}_loss": squared / 2, f"{name}_rmse": squared**0.5}
    return out


def summarise(options: Options, task: Task, problem: RidgeDistillation, main: Result, lines: list[Line]) -> dict[str, Any]:
    """What is printed, in a form for machines."""
    return {
        "train": str(options.train),
        "target": task.target,
        "features": len(task.features),
        "rows": len(task.rows),
        "validation_rows": len(task.validation),
        "test_rows": None if task.test is None else len(task.test),
        "budget": problem.theta_set.k,
        "alpha": options.alpha,
        "seed": options.seed,
        "method": lines[-1].method,
        "methods": [asdict(it) for it in lines],
        "selection": selection_data(main.theta, task.train[:, -1], task.target),
        "certificate": None if main.certificate is None else str(main.certificate),
        "files": {name: str(options.out / name) for name in SHOWN},
        "validation_split": task.split_off,
        "identity": identity(options, task, problem),
    }


def model(features: list[str], target: str, problem: RidgeDistillation, result: Result, rows: str) -> dict[str, Any]:
    """The regression on the selected rows, and how to train it again with scikit-learn; ``rows`` says where they are."""
    coef, intercept = problem.model(result.theta, result.lam)
    alpha, m = alpha_of(problem, result), problem.theta_set.size
    weights = "" if result.theta.dtype == np.bool_ else ", sample_weight=weight"
    return {
        "target": target,
        "intercept": float(intercept),
        "coef": dict(zip(features, np.asarray(coef).tolist(), strict=True)),
        "alpha": alpha,
        "candidate_rows": m,
        "selected_rows": int(np.count_nonzero(result.theta)),
        "scikit_learn": {
            "estimator": "sklearn.linear_model.Ridge",
            "alpha": m * alpha,
            "how": f"Ridge(alpha={m * alpha!r}).fit(X, y{weights}) with {rows}; alpha here is that of mixbin times "
            f"all {m} candidate rows",
        },
    }


def selected(table: tables.Table, candidates: NDArray[np.intp], theta: NDArray[Any]) -> str:
    """The selected of the candidate rows as they were, after their row numbers (and weights, where they are fractions)."""
    chosen = np.flatnonzero(theta)
    rows = candidates[chosen]
    first: list[list[Any]] = [[int(row)] for row in rows]
    header = ["row"]
    if theta.dtype != np.bool_:
        header.append("weight")
        first = [[*cells, weight] for cells, weight in zip(first, theta[chosen].tolist(), strict=True)]
    body = ([*before, *cells] for before, cells in zip(first, table.rows(rows), strict=True))
    return csv_text([*header, *table.names], body)


def show_run(summary: Mapping[str, Any], out: Path, before: bool, console: "Console", shown: Mapping[str, str] = SHOWN) -> None:
    """The task in a sentence, the table, the certificate in words, and where the files are."""
    console.print("\n" + sentence(summary) + "\n")
    console.print(table(summary))
    fair = " relax, simple and top-k may use as many evaluations as penalize." if len(summary["methods"]) > 2 else ""
    console.print(f"\nloss is half the mean squared error, RMSE the typical error of a prediction: lower is better.{fair}\n")
    show_end(summary, f"the rows that {summary['method']} keeps", out, shown, before, console)


def sentence(summary: Mapping[str, Any]) -> str:
    """The task."""
    k, m = summary["budget"], summary["rows"]
    split_off = " split off at random" if summary["validation_split"] is not None else ""
    alpha = "alpha is chosen together with the rows" if summary["alpha"] is None else f"alpha is {summary['alpha']:g}"
    test = summary["test_rows"]
    said = (
        f"The task: keep {k:,} of {m:,} rows of {Path(summary['train']).name}, chosen such that a ridge regression trained on "
        f"them predicts column {summary['target']!r} best on {summary['validation_rows']:,} validation rows{split_off}; {alpha}."
    )
    return said if test is None else f"{said} {test:,} test rows play no part in the choice."


def table(summary: Mapping[str, Any]) -> "Table":
    """One line per method."""
    errors = {"validation_loss": "validation\nloss", "validation_rmse": "validation\nRMSE", "test_rmse": "test\nRMSE"}
    if summary["test_rows"] is None:
        del errors["test_rmse"]
    out = empty_table("method", *errors.values(), "rows", "status", "evals", "seconds")
    for it in summary["methods"]:
        cells = ["no rows" if it[name] is None else f"{it[name]:.6g}" for name in errors]
        status = (it["status"] or "reference").lower()
        out.add_row(it["method"], *cells, f"{it['rows']:,}", status, f"{it['evaluations']:,}", f"{it['seconds']:.2f}")
    return out

"""``mixbin distill``: choose rows of a table in a file, compare the methods, and leave the rows and their model in a folder."""

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin._version import __version__
from mixbin.cli import tables
from mixbin.cli.demo import BASELINES, best_alpha, spinner
from mixbin.cli.run_folder import FILES, RunFolder, csv_text
from mixbin.datasets.sources import digest
from mixbin.errors import InvalidInput
from mixbin.methods import relax_and_penalize, relax_and_round
from mixbin.problems import RidgeDistillation
from mixbin.progress import Event, ProgressDisplay
from mixbin.result import Result, Status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

CHECKPOINT_EVERY = 10.0
"""Seconds between two writes of the checkpoint."""
EXIT_UNSOLVED, EXIT_INTERRUPTED = 1, 130
VALIDATION_FRACTION = 0.2
SHOWN = {
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
    budget: int | float
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
    try:
        with nullcontext() if options.as_json else spinner(f"Reading {options.train.name} ..."):
            _check(options)
            task = load(options)
            X, X_val = task.train[:, :-1], task.validation[:, :-1]
            y, y_val = task.train[:, -1], task.validation[:, -1]
            problem = RidgeDistillation(X, y, X_val, y_val, budget=options.budget, alpha=options.alpha)
        folder = RunFolder(options.out)
        summary = folder.enter(identity(options, task, problem), options.resume)
        before = summary is not None
        if summary is None:
            summary = compute(options, task, problem, folder)
    except KeyboardInterrupt:
        print("mixbin: interrupted; the same command with --resume goes on from here", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if options.as_json:
        print(json.dumps(summary, allow_nan=False))
    else:
        from rich.console import Console

        show(summary, options.out, before, Console(highlight=False, markup=False, emoji=False))


def _check(options: Options) -> None:
    if options.alpha is not None:
        remedy = "write a number such as 100, or leave it out to have it chosen"
        check.real("--alpha", options.alpha, low=0, open_low=True, remedy=remedy)
    if options.max_evaluations is not None:
        check.whole("--max-evaluations", options.max_evaluations, low=2, remedy="one for the start and one for the answer")
    fraction = options.validation_fraction
    if fraction is None:
        return
    check.real(
        "--validation-fraction", fraction, low=0, high=1, open_low=True, open_high=True, remedy="write a share such as 0.2"
    )
    if options.validation:
        raise InvalidInput("--validation-fraction has no use beside --validation; leave one of them out")


def load(options: Options) -> Task:
    """The files as numbers, with a validation part split off where none is given."""
    table = tables.read(options.train, options.header)
    target = table.find(options.target, "--target")
    ignored = {table.find(name, "--ignore") for name in options.ignore}
    if target in ignored:
        raise InvalidInput(f"--target and --ignore must differ, got {target!r} for both; leave out --ignore {target!r}")
    features = [name for name in table.names if name != target and name not in ignored]
    if not features:
        raise InvalidInput(f"{table.file} must have a column to predict {target!r} from, got none; add columns or ignore fewer")
    columns = [*features, target]
    everything = table.numbers(columns)
    rows, split_off = np.arange(len(table)), None
    if options.validation:
        train, validation = everything, tables.read_all(options.validation, table, columns, options.header)
    else:
        rows, held = split(len(table), options.validation_fraction or VALIDATION_FRACTION, options.seed)
        train, validation, split_off = everything[rows], everything[held], held.tolist()
    test = tables.read_all(options.test, table, columns, options.header) if options.test else None
    return Task(table, features, target, rows, split_off, train, validation, test)


def split(n: int, fraction: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and validation rows at random, each in their order; at least one of both."""
    if n < 2:
        raise InvalidInput("TRAIN must have 2 rows or more to split a validation part off, got 1; add rows or give --validation")
    held = min(max(int(n * fraction + 0.5), 1), n - 1)
    validation, train = np.split(np.random.default_rng(seed).permutation(n), [held])
    return np.sort(train), np.sort(validation)


def identity(options: Options, task: Task, problem: RidgeDistillation) -> dict[str, Any]:
    """All that the numbers of a run depend on."""
    parts = [part for part in (task.train, task.validation, task.test) if part is not None]
    return {
        "mixbin": __version__,
        "data": digest(*parts),
        "columns": [*task.features, task.target],
        "budget": problem.theta_set.k,
        "alpha": options.alpha,
        "method": options.method,
        "seed": options.seed,
        "max_evaluations": options.max_evaluations,
    }


def compute(options: Options, task: Task, problem: RidgeDistillation, folder: RunFolder) -> dict[str, Any]:
    """Run the methods, penalize first, and leave everything in the folder."""
    methods = ["penalize", *BASELINES] if options.method == "all" else [options.method]
    main, seconds = solve(methods[0], problem, options, folder, options.max_evaluations)
    last = line(methods[0], task, problem, main, seconds)
    lines = [reference(task, problem)]
    for method in methods[1:]:
        # The baselines get what penalize used, so that the comparison is fair.
        result, seconds = solve(method, problem, options, folder, main.n_evaluations)
        lines.append(line(method, task, problem, result, seconds))
    lines.append(last)
    if not main.theta.any():
        print(
            f"mixbin: {methods[0]} rounding keeps no row, so there is no model; use --method top-k or penalize in another --out",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_UNSOLVED)
    summary = summarise(options, task, problem, main, lines)
    folder.finish(summary, model(task, problem, main), selected(task, main), main)
    return summary


class Interruption:
    """Ctrl-C ends a method between two steps, with its checkpoint written; a second one ends it at once."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, event: Event) -> None:
        """Stop, if that was asked for."""
        if self.asked:
            event.stop()

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Take over Ctrl-C, where it would otherwise end the process."""
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if not usual or threading.current_thread() is not threading.main_thread():
            yield
            return
        signal.signal(signal.SIGINT, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _ask(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Clock:
    """The seconds of a run, those before an interruption included."""

    def __init__(self) -> None:
        self.began, self.before = time.perf_counter(), 0.0
        self._asked = False

    def __call__(self, event: Event) -> None:
        """Learn from the first event how long the run had taken before."""
        if not self._asked:
            self.before, self._asked = max(0.0, event.seconds - (time.perf_counter() - self.began)), True

    @property
    def seconds(self) -> float:
        """Until now."""
        return self.before + time.perf_counter() - self.began


def solve(method: str, problem: RidgeDistillation, options: Options, folder: RunFolder, most: int | None) -> tuple[Result, float]:
    """The result of one method and its seconds; from the folder, if it had ended before."""
    kept = folder.done(method)
    if kept is not None:
        return kept
    interruption, clock = Interruption(), Clock()
    # What penalize does shows in its stages; a label would push the numbers off a line of 80 columns.
    display = [] if options.as_json else [ProgressDisplay(method if method in BASELINES else "")]
    callbacks: list[Any] = [interruption, clock, *display]
    common: dict[str, Any] = {"seed": options.seed, "max_evaluations": most, "callbacks": callbacks}
    with interruption.heeded():
        if method in BASELINES:
            result = relax_and_round(problem, rounding=BASELINES[method], **common)
        else:
            checkpoint: dict[str, Any] = {"checkpoint": folder.checkpoint / method, "checkpoint_every": CHECKPOINT_EVERY}
            result = relax_and_penalize(problem, **common, **checkpoint)
    if result.status is not Status.STOPPED:
        folder.keep(method, result, clock.seconds)
    if interruption.asked:
        raise KeyboardInterrupt
    return result, clock.seconds


def reference(task: Task, problem: RidgeDistillation) -> Line:
    """What training on all candidate rows gives."""
    began = time.perf_counter()
    everything = np.ones(len(task.rows), dtype=bool)
    alpha, evaluations = best_alpha(problem, everything)
    errors = losses(task, problem, everything, () if isinstance(problem.alpha, float) else alpha)
    seconds = time.perf_counter() - began
    how: dict[str, Any] = {
        "status": None,
        "evaluations": evaluations,
        "seconds": round(seconds, 3),
        "message": "nothing to choose",
    }
    return Line(method="all rows", rows=len(task.rows), alpha=alpha, **errors, **how)


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
    return problem.alpha if isinstance(problem.alpha, float) else float(result.lam)


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
        "certificate": None if main.certificate is None else str(main.certificate),
        "files": {name: str(options.out / name) for name in FILES},
        "validation_split": task.split_off,
        "identity": identity(options, task, problem),
    }


def model(task: Task, problem: RidgeDistillation, result: Result) -> dict[str, Any]:
    """The regression on the selected rows, and how to train it again with scikit-learn."""
    coef, intercept = problem.model(result.theta, result.lam)
    alpha, m = alpha_of(problem, result), len(task.rows)
    weights = "" if result.theta.dtype == np.bool_ else ", sample_weight=weight"
    return {
        "target": task.target,
        "intercept": float(intercept),
        "coef": dict(zip(task.features, np.asarray(coef).tolist(), strict=True)),
        "alpha": alpha,
        "candidate_rows": m,
        "selected_rows": int(np.count_nonzero(result.theta)),
        "scikit_learn": {
            "estimator": "sklearn.linear_model.Ridge",
            "alpha": m * alpha,
            "how": f"Ridge(alpha={m * alpha!r}).fit(X, y{weights}) with the rows of selected.csv; alpha here is that of mixbin "
            f"times all {m} candidate rows",
        },
    }


def selected(task: Task, result: Result) -> str:
    """The selected rows as they were, after their row numbers (and weights, where they are fractions)."""
    chosen = np.flatnonzero(result.theta)
    rows = task.rows[chosen]
    first: list[list[Any]] = [[int(row)] for row in rows]
    header = ["row"]
    if result.theta.dtype != np.bool_:
        header.append("weight")
        first = [[*cells, weight] for cells, weight in zip(first, result.theta[chosen].tolist(), strict=True)]
    body = ([*before, *cells] for before, cells in zip(first, task.table.rows(rows), strict=True))
    return csv_text([*header, *task.table.names], body)


def show(summary: Mapping[str, Any], out: Path, before: bool, console: "Console") -> None:
    """The task in a sentence, the table, the certificate in words, and where the files are."""
    console.print("\n" + sentence(summary) + "\n")
    console.print(table(summary))
    fair = " relax, simple and top-k may use as many evaluations as penalize." if len(summary["methods"]) > 2 else ""
    console.print(f"\nloss is half the mean squared error, RMSE the typical error of a prediction: lower is better.{fair}\n")
    main = summary["methods"][-1]
    if main["status"] != Status.BINARY:
        console.print(f"How {main['method']} ended: {main['message']}.\n")
    if summary["certificate"] is not None:
        console.print(f"About the rows that {summary['method']} keeps: {summary['certificate']}\n")
    console.print(f"This run had ended before; nothing was computed again. In {out}:" if before else f"Written to {out}:")
    for name, what in SHOWN.items():
        console.print(f"  {name:<13} {what}")


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
    from rich import box
    from rich.table import Table

    errors = {"validation_loss": "validation\nloss", "validation_rmse": "validation\nRMSE", "test_rmse": "test\nRMSE"}
    if summary["test_rows"] is None:
        del errors["test_rmse"]
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    out.add_column("method", vertical="bottom")
    for name in (*errors.values(), "rows"):
        out.add_column(name, justify="right", vertical="bottom")
    out.add_column("status", vertical="bottom")
    for name in ("evals", "seconds"):
        out.add_column(name, justify="right", vertical="bottom")
    for it in summary["methods"]:
        cells = ["no rows" if it[name] is None else f"{it[name]:.6g}" for name in errors]
        status = (it["status"] or "reference").lower()
        out.add_row(it["method"], *cells, f"{it['rows']:,}", status, f"{it['evaluations']:,}", f"{it['seconds']:.2f}")
    return out

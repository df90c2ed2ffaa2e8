"""``mixbin distill`` on a folder of Parquet files: the same run with the rows on Dask, in local processes or on a cluster.

The rows that are kept are written by the workers, as Parquet part files with all columns and where each row came from.
"""

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
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
from mixbin.cli.distill import (
    EXIT_UNSOLVED,
    Line,
    Options,
    alpha_of,
    best_alpha,
    check_options,
    end_without_rows,
    model,
    needed_budget,
    sentence,
    show_run,
)
from mixbin.cli.distill import SHOWN as SHOWN_OF_FILES
from mixbin.cli.report import spinner
from mixbin.cli.run_folder import RunFolder
from mixbin.cli.solving import resumable, solve_all
from mixbin.cli.typed import command_line
from mixbin.data.dask_blocks import BadBlock
from mixbin.data.dask_tables import check_dask_installed, rows_where
from mixbin.data.parquet import ParquetFolder
from mixbin.data.tables import VALIDATION_FRACTION, is_parquet, split
from mixbin.data.training_and_validation import block_summary
from mixbin.data.unpacking import check_regular
from mixbin.data.workers import checked_memory, local_workers
from mixbin.errors import ClusterLost, InvalidInput, WorkersLost
from mixbin.problems import RidgeDistillation
from mixbin.result import Result

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = {"selected": "Parquet files of the selected rows, with the file and the number each has there"} | {
    name: what for name, what in SHOWN_OF_FILES.items() if name != "selected.csv"
}


@dataclass(frozen=True)
class Cluster:
    """Where to compute, as typed."""

    workers: int | None
    scheduler: str | None
    memory_limit: str | None


class FolderOfCommand(ParquetFolder):
    """A folder whose errors name the options of the command."""

    _target_word, _ignore_word = "--target", "--ignore"


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be chosen from, and by what it is judged."""

    folder: ParquetFolder
    features: list[str]
    target: str
    rows: NDArray[np.intp] | None
    """The candidate rows, by their numbers in the folder; None for all."""
    problem: RidgeDistillation
    validation_rows: int
    test: tuple[Floats, Floats, int] | None
    """The mean and the R factor of the test rows, and their number."""


def wanted(train: Path, cluster: Cluster) -> bool:
    """Whether a command is one for Dask: a folder, or an option that says so."""
    asked = any(it is not None for it in (cluster.workers, cluster.scheduler, cluster.memory_limit))
    # Not ``is_dir``, which raises an error for names that the system does not take; whoever reads the file tells that.
    return asked or os.path.isdir(train)


def run(options: Options, cluster: Cluster) -> None:
    """Do what the command says and print it, as a table or as one line of JSON."""
    _check(options, cluster)
    # What Dask and the problem have to say is in the summary; a log that nobody asked for would disturb the progress.
    logging.getLogger("mixbin").addHandler(logging.NullHandler())
    with resumable(), _connected(cluster):
        try:
            with spinner(f"Reading {options.train.name} ...", quiet=options.as_json):
                task = load(options)
            folder = RunFolder(options.out, tuple(SHOWN))
            summary = folder.enter(identity(options, task), options.resume)
            before = summary is not None
            if summary is None:
                summary = compute(options, task, folder)
        except WorkersLost:
            print(
                "mixbin: workers have died again and again under the same blocks, perhaps for want of memory; repeat the command "
                "with --resume and more memory (--memory-limit), or write the files with smaller row groups",
                file=sys.stderr,
            )
            raise typer.Exit(EXIT_UNSOLVED) from None
        except ClusterLost:
            lost = "the scheduler of the local cluster" if cluster.scheduler is None else f"the scheduler {cluster.scheduler}"
            print(f"mixbin: {lost} is lost; repeat the command with --resume, on a new cluster, to go on", file=sys.stderr)
            raise typer.Exit(EXIT_UNSOLVED) from None
    folder.tell(summary, before, options.as_json, lambda told, console: show(told, options.out, before, console))


def _check(options: Options, cluster: Cluster) -> None:
    check_options(options)
    needed_budget(options)
    if cluster.workers is not None and cluster.scheduler is not None:
        raise InvalidInput("--workers has no use beside --scheduler; leave one of them out")
    if cluster.memory_limit is not None and cluster.scheduler is not None:
        raise InvalidInput("--memory-limit has no use beside --scheduler, whose workers have their own; leave it out")
    for file in (options.train, *options.validation, *options.test):
        try:
            check_regular(file)
            if file.is_file() and not is_parquet(file):
                raise InvalidInput(f"{file} must be Parquet to be read by workers; write it as Parquet, or leave out --workers")
        except OSError as error:
            raise InvalidInput(f"{file} cannot be read ({error.strerror}); check the path") from None
    check_dask_installed("a folder of Parquet files")
    checked_memory("--memory-limit", cluster.memory_limit)


@contextmanager
def _connected(cluster: Cluster) -> Iterator[Any]:
    """A client of the scheduler, or of workers started here."""
    from distributed import Client

    if cluster.scheduler is not None:
        try:
            client = Client(cluster.scheduler, timeout="15s")
        except (OSError, ValueError, TimeoutError) as error:
            reason = str(error).strip().split("\n")[0][:120] or type(error).__name__
            raise InvalidInput(
                f"--scheduler must be the address of a running Dask scheduler, got {cluster.scheduler!r} ({reason}); "
                "start one with 'dask scheduler' and write its address, such as tcp://127.0.0.1:8786"
            ) from None
        with client:
            if not client.scheduler_info(n_workers=-1)["workers"]:
                raise InvalidInput(
                    f"--scheduler {cluster.scheduler} has no workers; start some with 'dask worker {cluster.scheduler}'"
                )
            yield client
        return
    with local_workers(cluster.workers, cluster.memory_limit) as client:
        yield client


def load(options: Options) -> Task:
    """The folders as Dask arrays, with a validation part split off where none is given; one pass looks at everything."""
    folder = FolderOfCommand(options.train, options.target, options.ignore)
    train = folder.X, folder.y
    rows = None
    if options.validation:
        validation = _arrays(options.validation, folder)
    else:
        rows, _ = split(len(folder), options.validation_fraction, options.seed, "TRAIN", "give --validation")
        candidate = np.zeros(len(folder), dtype=bool)
        candidate[rows] = True
        validation, train = ((rows_where(folder.X, mask), rows_where(folder.y, mask)) for mask in (~candidate, candidate))
    try:
        problem = RidgeDistillation(*train, *validation, budget=needed_budget(options), alpha=options.alpha)
    except BadBlock as error:
        where = folder.pieces[error.block].file if " of X and y" in str(error) or not options.validation else "--validation"
        raise InvalidInput(f"{where}: {error}") from None
    test = None
    if options.test:
        held = _arrays(options.test, folder)
        test = block_summary(*held, np.zeros(len(folder.features) + 1), ("--test", "its target"))
    return Task(folder, folder.features, folder.target, rows, problem, len(validation[1]), test)


def _arrays(paths: list[Path], like: ParquetFolder) -> tuple[Any, Any]:
    """X and y of several files or folders, one after the other."""
    import dask.array as da

    folders = [FolderOfCommand(path, like=like) for path in paths]
    return da.concatenate([it.X.in_parts for it in folders]), da.concatenate([it.y for it in folders])


def identity(options: Options, task: Task) -> dict[str, Any]:
    """All that the numbers of a run depend on: not how many workers there are, nor where."""
    return {
        "mixbin": __version__,
        "data": task.problem.fingerprint(),
        # Of the test rows, too, all that is known is their mean, their R factor and their number: what the figures are made of.
        "test": None if task.test is None else digest(*map(np.asarray, task.test)),
        "columns": [*task.features, task.target],
        "budget": task.problem.theta_set.k,
        "alpha": options.alpha,
        "method": options.method,
        "seed": options.seed,
        "max_evaluations": options.max_evaluations,
    }


def compute(options: Options, task: Task, folder: RunFolder) -> dict[str, Any]:
    """Run the methods, penalize first, and leave everything in the folder."""
    problem = task.problem
    if not options.as_json:
        rows = problem.rows.statistics()
        print(f"{options.train.name}: {rows.storage}; {_workers(rows.n_workers)}", file=sys.stderr)

    def note() -> str:
        rows = problem.rows.statistics()
        return f"{_workers(rows.n_workers)}, {rows.bytes_read / 1e9:,.1f} GB read"

    runs = solve_all(
        options.method,
        problem,
        folder,
        seed=options.seed,
        max_evaluations=options.max_evaluations,
        quiet=options.as_json,
        note=note,
    )
    lines = [reference(task), *(line(it.method, task, it.result, it.seconds) for it in runs)]
    method, main, _ = runs[-1]
    end_without_rows(method, main)
    selected(task, main, folder.path / "selected")
    summary = summarise(options, task, main, lines)
    summary |= {"asked": sentence(summary), "about": origin(command_line(), sum(it.seconds for it in lines))}
    described = model(task.features, task.target, problem, main, "the rows of selected/")
    folder.finish(summary, main, {"model.json": json_text(described)})
    return summary


def _workers(n: int | None) -> str:
    return f"{n} worker{'' if n == 1 else 's'}"


def reference(task: Task) -> Line:
    """What training on all candidate rows gives."""
    began = time.perf_counter()
    everything = np.ones(task.problem.theta_set.size, dtype=bool)
    alpha, evaluations = best_alpha(task.problem, everything)
    errors = losses(task, everything, task.problem.strength.lam(alpha))
    return Line(
        method="all rows",
        rows=everything.size,
        alpha=alpha,
        status=None,
        evaluations=evaluations,
        seconds=round(time.perf_counter() - began, 3),
        message="nothing to choose",
        **errors,
    )


def line(method: str, task: Task, result: Result, seconds: float) -> Line:
    """What one method gives."""
    return Line(
        method=method,
        rows=int(np.count_nonzero(result.theta)),
        alpha=alpha_of(task.problem, result),
        status=result.status.value,
        evaluations=result.n_evaluations,
        seconds=round(seconds, 3),
        message=result.message,
        **losses(task, result.theta, result.lam),
    )


def losses(task: Task, theta: NDArray[Any], lam: Any) -> dict[str, Any]:
    """Loss and RMSE on the validation and on the test rows: of these rows only the mean and the R factor are needed."""
    out: dict[str, Any] = {f"{name}_{kind}": None for name in ("validation", "test") for kind in ("loss", "rmse")}
    if not theta.any():
        return out
    weights = theta.astype(np.float64)
    found = {"validation": task.problem.evaluate(weights, np.asarray(lam, dtype=np.float64), gradient=False).value}
    if task.test is not None:
        mean, R, _ = task.test
        coef, intercept = task.problem.model(weights, lam)
        K = np.append(-np.asarray(coef), 1.0)
        missed = K @ mean - intercept
        found["test"] = 0.5 * float(missed**2 + np.sum((R @ K) ** 2))
    for name, loss in found.items():
        out |= {f"{name}_loss": loss, f"{name}_rmse": (2 * loss) ** 0.5}
    return out


def summarise(options: Options, task: Task, main: Result, lines: list[Line]) -> dict[str, Any]:
    """What is printed, in a form for machines."""
    rows = task.problem.rows.statistics()
    split_off = {"fraction": options.validation_fraction or VALIDATION_FRACTION, "seed": options.seed}
    return {
        "train": str(options.train),
        "target": task.target,
        "features": len(task.features),
        "rows": task.problem.theta_set.size,
        "validation_rows": task.validation_rows,
        "test_rows": None if task.test is None else task.test[2],
        "budget": task.problem.theta_set.k,
        "alpha": options.alpha,
        "seed": options.seed,
        "method": lines[-1].method,
        "methods": [asdict(it) for it in lines],
        "certificate": None if main.certificate is None else str(main.certificate),
        "files": {name: str(options.out / name) for name in SHOWN},
        "validation_split": None if options.validation else split_off,
        "workers": rows.n_workers,
        "storage": rows.storage,
        "passes": rows.passes,
        "bytes_read": rows.bytes_read,
        "identity": identity(options, task),
    }


def selected(task: Task, result: Result, folder: Path) -> None:
    """The selected rows, one part file for each piece that has some; written where the workers are."""
    chosen = np.flatnonzero(result.theta)
    rows = chosen if task.rows is None else task.rows[chosen]
    weights = None if result.theta.dtype == np.bool_ else result.theta[chosen]
    written = task.folder.save_rows(rows, folder, weights)
    assert written == rows.size


def show(summary: Mapping[str, Any], out: Path, before: bool, console: "Console") -> None:
    """As on one file, and where the rows were."""
    show_run(summary, out, before, console, SHOWN)
    console.print(
        f"\nThe rows: {summary['storage']}; {summary['passes']:,} passes by {_workers(summary['workers'])}, "
        f"{summary['bytes_read'] / 1e9:,.1f} GB read."
    )

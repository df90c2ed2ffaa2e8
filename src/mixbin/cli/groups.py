"""``mixbin groups``: find which features belong together in many regressions, compare the methods, and leave the groups."""

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._files import csv_text
from mixbin._origin import origin
from mixbin._validate import Floats
from mixbin._version import __version__
from mixbin.cli.pages import any_signs
from mixbin.cli.report import empty_table, show_end, spinner
from mixbin.cli.run_folder import RunFolder
from mixbin.cli.solving import Solved, check_limits, resumable, solve_all
from mixbin.cli.typed import command_line
from mixbin.data import task_files
from mixbin.data.tasks import TaskData, Tasks
from mixbin.datasets import GroupLassoData, make_group_lasso
from mixbin.errors import InvalidInput
from mixbin.problems import GroupLassoStructure
from mixbin.result import Result, Status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

N_GROUPS = 10
SYNTHETIC: dict[str, Any] = {"a": 0.3, "tasks": 500, "samples": 20, "features": 100}
"""The published sizes."""
SHOWN = {
    "report.html": "everything below as a page, for a browser",
    "structure.csv": "the group of each feature",
    "structure.svg": "the groups as a picture",
    "coef.csv": "the model of each task",
    "trace.csv": "the path of the run",
    "result.npz": "everything, for mixbin.Result.load",
    "methods.json": "the table above",
}


@dataclass(frozen=True)
class Options:
    """The command as typed; None is an option that was not given."""

    out: Path
    data: Path | None
    synthetic: str | None
    n_groups: int | None
    lam: float | None
    method: str
    seed: int
    validation_fraction: float | None
    max_evaluations: int | None
    target: str | None
    ignore: list[str]
    header: bool | None
    a: float | None
    tasks: int | None
    samples: int | None
    features: int | None
    resume: bool
    as_json: bool

    def size(self, name: str) -> Any:
        """An option of the synthetic data, or the published number."""
        given = getattr(self, name)
        return SYNTHETIC[name] if given is None else given


@dataclass(frozen=True)
class Line:
    """One line of the comparison; what needs test rows or the truth is None without them."""

    method: str
    validation_loss: float
    test_loss: float | None
    groups: int
    """That have a feature."""
    ungrouped: int
    """Features without a group."""
    adjusted_rand: float | None
    spectral_error: float | None
    frobenius_error: float | None
    lam: float
    status: str | None
    evaluations: int
    seconds: float
    message: str


def run(options: Options) -> None:
    """Do what the command says and print it, as a table or as one line of JSON."""
    with resumable():
        with spinner("Reading the tasks ...", quiet=options.as_json):
            _check(options)
            data = load(options)
            problem = make_problem(data, n_groups(options, len(data.features)), options.lam)
        folder = RunFolder(options.out, tuple(SHOWN))
        summary = folder.enter(identity(options, data, problem), options.resume)
        before = summary is not None
        if summary is None:
            summary = compute(options, data, problem, folder, command_line())
    folder.tell(summary, before, options.as_json, lambda told, console: show(told, options.out, before, console))


def _check(options: Options) -> None:
    if (options.data is None) == (options.synthetic is None):
        got = "neither" if options.data is None else "both"
        raise InvalidInput(
            f"--data or --synthetic must say where the tasks are from, got {got}; "
            "write --data FILE for your own tasks, or --synthetic inequal for made ones"
        )
    of_files = {"--target": options.target, "--ignore": options.ignore or None, "--header": options.header}
    of_data = {**of_files, "--validation-fraction": options.validation_fraction}
    of_synthetic = {f"--{name}": getattr(options, name) for name in SYNTHETIC}
    source, useless = ("--data", of_synthetic) if options.synthetic is None else ("--synthetic", of_data)
    if options.data is not None and not os.path.isdir(options.data):
        useless |= of_files
    if given := [name for name, value in useless.items() if value is not None]:
        beside = f"{source} {options.data}, which is no folder of CSV files" if given[0] in of_files and options.data else source
        raise InvalidInput(f"{given[0]} has no use beside {beside}; leave it out")
    if options.lam is not None:
        remedy = "write a number such as 0.02, or leave it out to have it chosen"
        check.real("--lam", options.lam, low=0, open_low=True, remedy=remedy)
    check_limits(options.max_evaluations, options.validation_fraction)


def load(options: Options) -> TaskData:
    """The tasks from the files or made, with validation rows split off where there are none."""
    if options.data is None:
        return synthetic(options).to_tasks()
    # Not ``is_dir``, which raises an error for names that the system does not take; whoever reads the file tells that.
    if os.path.isdir(options.data):
        data = task_files.read_folder(options.data, options.target or "-1", options.ignore, options.header)
    else:
        data = task_files.read_archive(options.data)
    if data.validation is None:
        return data.with_validation(options.validation_fraction, options.seed)
    if options.validation_fraction is not None:
        raise InvalidInput(f"--validation-fraction has no use where {options.data} has validation rows; leave it out")
    return data


def synthetic(options: Options) -> GroupLassoData:
    """The published kind of data, in the sizes that were asked for."""
    a = check.real("--a", options.size("a"), low=0, high=1, remedy="it is the smallest active coefficient, such as 0.3")
    n_tasks = check.whole("--tasks", options.size("tasks"), low=2, remedy=task_files.LEAST_TASKS)
    n_samples = check.whole("--samples", options.size("samples"), low=2, remedy="one row has no spread to scale the noise by")
    n_features = check.whole("--features", options.size("features"), low=2, remedy="one feature leaves nothing to group")
    kind: Any = options.synthetic
    sizes = {"n_tasks": n_tasks, "n_samples": n_samples, "n_features": n_features, "n_groups": n_groups(options, n_features)}
    try:
        return make_group_lasso(kind, a, **sizes, seed=options.seed)
    except InvalidInput as error:
        said = str(error).replace("groups='random'", "--synthetic random")
        # Only sizes that do not fit each other are left to complain about, in the words of the function.
        for name, option in (("n_groups", "--n-groups"), ("n_features", "--features")):
            said = said.replace(name, option)
        raise InvalidInput(said) from None


def n_groups(options: Options, n_features: int) -> int:
    """How many groups there can be."""
    if n_features < 2:
        raise InvalidInput(f"{options.data} must have two features or more, got {n_features}; one leaves nothing to group")
    wanted = N_GROUPS if options.n_groups is None else options.n_groups
    remedy = f"there are {n_features} features; fewer than 2 groups leave nothing to choose"
    return check.whole("--n-groups", wanted, low=2, high=n_features, remedy=remedy)


def make_problem(data: TaskData, groups: int, lam: float | None) -> GroupLassoStructure:
    """G over the structures; ``lam`` fixes it."""
    train, validation = data.train, _validation(data)
    fixed: dict[str, Any] = {} if lam is None else {"lam_bounds": lam}
    return GroupLassoStructure(train.tables, train.targets, validation.tables, validation.targets, n_groups=groups, **fixed)


def _validation(data: TaskData) -> Tasks:
    assert data.validation is not None
    return data.validation


def identity(options: Options, data: TaskData, problem: GroupLassoStructure) -> dict[str, Any]:
    """All that the numbers of a run depend on."""
    parts = [part for part in (data.train, data.validation, data.test) if part is not None]
    truth = [a for a in (data.labels, data.coef) if a is not None]
    return {
        "mixbin": __version__,
        "command": "groups",
        "data": digest(*(a for part in parts for a in (*part.tables, *part.targets)), *truth),
        # The same rows may come from other files, where they have other numbers.
        "validation": "given" if data.split_off is None else "split off",
        "tasks": data.tasks,
        "features": data.features,
        "n_groups": problem.n_groups,
        "lam": options.lam,
        "method": options.method,
        "seed": options.seed,
        "max_evaluations": options.max_evaluations,
    }


def compute(options: Options, data: TaskData, problem: GroupLassoStructure, folder: RunFolder, command: str) -> dict[str, Any]:
    """Run the methods, penalize first, and leave everything in the folder, with the ``command`` that makes it again."""
    text = "Loading the kernels, which the first time takes some 20 seconds ..."
    with spinner(text, quiet=options.as_json):
        # Apart from the methods, so that their seconds are their own.
        problem.evaluate_terms(problem.theta_set.start(), problem.lam_set.start(), np.zeros(1, dtype=np.intp))
    runs = solve_all(
        options.method,
        problem,
        folder,
        seed=options.seed,
        max_evaluations=options.max_evaluations,
        quiet=options.as_json,
    )
    main = runs[-1].result
    lines = [line(data, problem, it) for it in runs]
    if data.labels is not None:
        lines.insert(0, oracle(data, lam_of(problem, main)))
    summary = summarise(options, data, problem, main, lines)
    summary |= {"asked": sentence(summary), "about": origin(command, sum(it.seconds for it in lines))}
    files = {
        "structure.csv": structure(data, main),
        "structure.svg": picture(data, runs[-1]),
        "coef.csv": coefficients(data, problem.coef(main.theta, main.lam)),
    }
    folder.finish(summary, main, files)
    return summary


def oracle(data: TaskData, lam: float) -> Line:
    """What the true structure gives."""
    from mixbin.plot.structure import one_hot

    assert data.labels is not None
    began = time.perf_counter()
    theta = one_hot(data.labels)
    used = theta.shape[1]
    if used == 1:
        theta = np.pad(theta, ((0, 0), (0, 1)))
    # A problem of its own, because the truth may have another number of groups.
    coef = make_problem(data, theta.shape[1], lam).coef(theta)
    return Line(
        method="oracle",
        groups=used,
        ungrouped=0,
        adjusted_rand=1.0,
        lam=lam,
        status=None,
        evaluations=1,
        seconds=round(time.perf_counter() - began, 3),
        message="the true structure, with the lam of the last line",
        **errors(data, coef),
    )


def line(data: TaskData, problem: GroupLassoStructure, run: Solved) -> Line:
    """What one method gives."""
    method, result, seconds = run
    chosen = chosen_groups(result.theta)
    return Line(
        method=method,
        groups=len({group for groups in chosen for group in groups}),
        ungrouped=sum(not groups for groups in chosen),
        adjusted_rand=adjusted_rand(data.labels, chosen),
        lam=lam_of(problem, result),
        status=result.status.value,
        evaluations=result.n_evaluations,
        seconds=round(seconds, 3),
        message=result.message,
        **errors(data, problem.coef(result.theta, result.lam)),
    )


def errors(data: TaskData, coef: Floats) -> dict[str, Any]:
    """How well models predict, and how far they are from the true ones."""
    missed = None if data.coef is None else coef - data.coef
    return {
        "validation_loss": _validation(data).loss(coef),
        "test_loss": None if data.test is None else data.test.loss(coef),
        "spectral_error": None if missed is None else float(np.linalg.norm(missed, 2)),
        "frobenius_error": None if missed is None else float(np.linalg.norm(missed)),
    }


def chosen_groups(theta: NDArray[Any]) -> list[tuple[int, ...]]:
    """The groups of each feature: one, or by simple rounding none or two; where theta is relaxed, that of its largest entry."""
    if theta.dtype != np.bool_:
        return [(int(group),) for group in theta.argmax(axis=1)]
    return [tuple(np.flatnonzero(row).tolist()) for row in theta]


def adjusted_rand(labels: NDArray[np.intp] | None, chosen: list[tuple[int, ...]]) -> float | None:
    """1 for the true structure, about 0 for a random one; a feature without a group is alone."""
    if labels is None:
        return None
    from sklearn.metrics import adjusted_rand_score

    named = [str(groups) if groups else f"alone {i}" for i, groups in enumerate(chosen)]
    return float(adjusted_rand_score(labels, named))


def lam_of(problem: GroupLassoStructure, result: Result) -> float:
    """The penalty that belongs to a result."""
    return problem.strength.value(result.lam)


def summarise(options: Options, data: TaskData, problem: GroupLassoStructure, main: Result, lines: list[Line]) -> dict[str, Any]:
    """What is printed, in a form for machines."""
    made = {name: options.size(name) for name in SYNTHETIC}
    return {
        "data": None if options.data is None else str(options.data),
        "synthetic": None if options.synthetic is None else {"groups": options.synthetic, **made},
        "tasks": len(data.tasks),
        "features": len(data.features),
        "rows": data.train.n_rows,
        "validation_rows": _validation(data).n_rows,
        "test_rows": None if data.test is None else data.test.n_rows,
        "labels": None if data.labels is None else data.labels.tolist(),
        "truth": [name for name in ("labels", "coef") if getattr(data, name) is not None],
        "n_groups": problem.n_groups,
        "lam": options.lam,
        "seed": options.seed,
        "method": lines[-1].method,
        "methods": [asdict(it) for it in lines],
        "certificate": None if main.certificate is None else str(main.certificate),
        "files": {name: str(options.out / name) for name in SHOWN},
        "validation_split": data.split_off,
        "identity": identity(options, data, problem),
    }


def structure(data: TaskData, result: Result) -> str:
    """The group of each feature, empty where it has none; with the weight in it, where that is a fraction."""
    relaxed = result.theta.dtype != np.bool_
    header = ["feature", "name", "group", *(["weight"] if relaxed else [])]
    cells = [" ".join(map(str, groups)) for groups in chosen_groups(result.theta)]
    weights = result.theta.max(axis=1).tolist()
    rows = (
        [i, name, group, *([weight] if relaxed else [])]
        for i, (name, group, weight) in enumerate(zip(data.features, cells, weights, strict=True))
    )
    return csv_text(header, rows)


def coefficients(data: TaskData, coef: Floats) -> str:
    """A row per task, a column per feature."""
    return csv_text(["task", *data.features], ([name, *w] for name, w in zip(data.tasks, coef.tolist(), strict=True)))


def picture(data: TaskData, run: Solved) -> str:
    """The structure as a heat map, beside the true one where that is known."""
    from mixbin.plot import structure as heat_map
    from mixbin.plot.figure import svg_text

    with any_signs():
        return svg_text(heat_map(run.result.theta, data.features, data.labels, title=run.method))


def show(summary: Mapping[str, Any], out: Path, before: bool, console: "Console") -> None:
    """The task in a sentence, the tables, the certificate in words, and where the files are."""
    console.print("\n" + sentence(summary) + "\n")
    console.print(table(summary))
    lines = summary["methods"]
    said = ["G is half the mean squared error, averaged over the tasks: lower is better."]
    if len([it for it in lines if it["status"] is not None]) > 1:
        said.append("relax, simple and top-k may use as many evaluations as penalize.")
    if any(it["ungrouped"] for it in lines):
        said.append("Simple rounding leaves features without a group, which are then hardly penalised.")
    console.print("\n" + " ".join(said) + "\n")
    if summary["truth"]:
        console.print(truth_table(summary))
        console.print("\n" + truth_words(summary) + "\n")
    show_end(summary, f"the groups that {summary['method']} finds", out, SHOWN, before, console)


def sentence(summary: Mapping[str, Any]) -> str:
    """The task."""
    made = summary["synthetic"]
    where = Path(summary["data"]).name if made is None else f"made data ({made['groups']} groups, a = {made['a']:g})"
    split_off = " split off at random" if summary["validation_split"] is not None else ""
    lam = "lam is chosen together with the groups" if summary["lam"] is None else f"lam is {summary['lam']:g}"
    said = (
        f"The task: put the {summary['features']:,} features of {where} into at most {summary['n_groups']:,} groups, such that "
        f"{summary['tasks']:,} regressions, trained on {summary['rows']:,} rows with a group lasso penalty on these groups, "
        f"predict {summary['validation_rows']:,} validation rows{split_off} best; {lam}."
    )
    test = summary["test_rows"]
    return said if test is None else f"{said} {test:,} test rows play no part in the choice."


def table(summary: Mapping[str, Any]) -> "Table":
    """One line per method."""
    losses = {"validation_loss": "valid.\nG", "test_loss": "test\nG"}
    if summary["test_rows"] is None:
        del losses["test_loss"]
    counts = {"groups": "groups\nused", "ungrouped": "no\ngroup"}
    if not any(it["ungrouped"] for it in summary["methods"]):
        del counts["ungrouped"]
    out = empty_table("method", *losses.values(), "lam", *counts.values(), "status", "evals", "seconds")
    for it in summary["methods"]:
        cells = [f"{it[name]:.4g}" for name in losses] + [f"{it['lam']:.3g}"] + [f"{it[name]:,}" for name in counts]
        status = (it["status"] or "reference").lower()
        out.add_row(it["method"], *cells, status, f"{it['evaluations']:,}", f"{it['seconds']:.2f}")
    return out


TRUTH = {
    "adjusted_rand": "adjusted\nRand index",
    "spectral_error": "error of the models\n(spectral norm)",
    "frobenius_error": "error of the models\n(Frobenius norm)",
}


def truth_table(summary: Mapping[str, Any]) -> "Table":
    """One line per method, against the truth."""
    known = [name for name in TRUTH if summary["methods"][-1][name] is not None]
    out = empty_table("method", *(TRUTH[name] for name in known))
    for it in summary["methods"]:
        out.add_row(it["method"], *(f"{it[name]:.4g}" for name in known))
    return out


def truth_words(summary: Mapping[str, Any]) -> str:
    """How to read that table."""
    said = []
    if "labels" in summary["truth"]:
        said.append("The Rand index is 1 for the true groups and about 0 for random ones.")
        said.append(f"oracle has the true groups, with the lam of {summary['method']}.")
    if "coef" in summary["truth"]:
        said.append("The error is that of the matrix of all coefficients.")
    if any(it["status"] == Status.RELAXED for it in summary["methods"]):
        said.append("relax counts by the largest entry of each feature.")
    return " ".join(said)

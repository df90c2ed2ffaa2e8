"""``mixbin demo``, the tour: distil a small table, find a planted group structure, and see both as pages."""

import json
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

# Not "from mixbin.cli import": there these names are the commands.
import mixbin.cli.distill as distill
import mixbin.cli.groups as groups
from mixbin import _validate as check
from mixbin._files import write_text
from mixbin.cli.diabetes import PARTS, compare, distillation, load, show, write_parts
from mixbin.cli.report import plain_console, spinner
from mixbin.cli.run_folder import RunFolder
from mixbin.cli.solving import EXIT_INTERRUPTED
from mixbin.errors import InvalidInput
from mixbin.reporting import write_report
from mixbin.sets.budget import resolve_budget

PLANTED: dict[str, Any] = {"tasks": 60, "samples": 12, "features": 24, "n_groups": 4}
"""Small enough that it is solved in seconds once the kernels are compiled."""
MARK = "demo.txt"
"""By which a folder is known as a demo's."""
FILES = {
    ".": ("index.html",),
    "data": tuple(f"{part}.csv" for part in PARTS),
    "diabetes": tuple(distill.SHOWN),
    "groups": tuple(groups.SHOWN),
}
"""All that the demo writes beside it."""


@dataclass(frozen=True)
class Planted:
    """The second part: a structure that is known, and what was found of it."""

    tasks: int
    features: int
    groups: int
    adjusted_rand: float
    """1 where the true groups were found."""
    test_loss: float
    true_groups_test_loss: float
    evaluations: int
    seconds: float


def run(budget: int | float, alpha: float | None, seed: int, out: Path, *, as_json: bool) -> None:
    """Distil, find groups, write the pages; print the tables and where the pages are, or one line of JSON."""
    if alpha is not None:
        check.real(
            "--alpha", alpha, low=0, open_low=True, remedy="write a number such as 1e-4, or leave it out to have it chosen"
        )
    split = load(seed)
    options = distillation(budget, alpha, seed, out, as_json)
    # Before anything is written: a budget may be no number of these rows.
    resolve_budget("budget", budget, len(split.train))
    enter(out)
    try:
        write_parts(split, out)
        comparison = compare(split, options)
        console = plain_console()
        if not as_json:
            show(comparison, console)
        planted = find_groups(structure(seed, out, as_json))
        with spinner("Writing the pages ...", quiet=as_json):
            page = write_report(out)
    except KeyboardInterrupt:
        print("mixbin: interrupted; the same command begins anew", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print(json.dumps(asdict(comparison) | {"groups": asdict(planted), "page": str(page)}, allow_nan=False))
    else:
        console.print(f"\n{told(planted)}\n\nEverything as pages: open {page} in a browser.")


def enter(out: Path) -> None:
    """A folder of the demo's own: new, empty, or of a demo before, whose files go."""
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"--out must be a folder, got the file {str(out)!r}; choose another name")
    mark = out / MARK
    if out.is_dir() and any(out.iterdir()) and not mark.exists():
        raise InvalidInput(f"--out {str(out)!r} holds files that are from no demo; choose another folder")
    for part, files in FILES.items():
        for name in files:
            (out / part / name).unlink(missing_ok=True)
        RunFolder(out / part, tuple(files)).clear()
    try:
        (out / "data").mkdir(parents=True, exist_ok=True)
        write_text(mark, "The folder of mixbin demo: the command replaces what it wrote here before.\n")
    except OSError as error:
        raise InvalidInput(f"--out {str(out)!r} cannot be written to ({error.strerror}); choose another folder") from None


def structure(seed: int, out: Path, as_json: bool) -> groups.Options:
    """The second part as options of ``mixbin groups``."""
    return groups.Options(
        out=out / "groups",
        data=None,
        synthetic="equal",
        lam=None,
        method="penalize",
        seed=seed,
        validation_fraction=None,
        max_evaluations=None,
        target=None,
        ignore=[],
        header=None,
        a=None,
        **PLANTED,
        resume=False,
        as_json=as_json,
    )


def find_groups(options: groups.Options) -> Planted:
    """Find the planted structure, and leave it in its folder."""
    data = groups.load(options)
    n_groups = groups.n_groups(options, len(data.features))
    problem = groups.make_problem(data, n_groups, options.lam)
    folder = RunFolder(options.out, tuple(groups.SHOWN))
    folder.enter(groups.identity(options, data, problem), resume=False)
    sizes = [f"--{name.replace('_', '-')} {value}" for name, value in PLANTED.items()]
    where = f"--seed {options.seed} --out {shlex.quote(str(options.out))}"
    command = f"mixbin groups --synthetic {options.synthetic} {' '.join(sizes)} {where}"
    summary = groups.compute(options, data, problem, folder, command)
    oracle, found = summary["methods"]
    return Planted(
        tasks=summary["tasks"],
        features=summary["features"],
        groups=found["groups"],
        adjusted_rand=found["adjusted_rand"],
        test_loss=found["test_loss"],
        true_groups_test_loss=oracle["test_loss"],
        evaluations=found["evaluations"],
        seconds=found["seconds"],
    )


def told(it: Planted) -> str:
    """The second part in words."""
    found = (
        "exactly the groups" if it.adjusted_rand == 1 else f"groups with a Rand index of {it.adjusted_rand:.2f} (1 is the truth)"
    )
    return (
        f"And groups: {it.tasks} regressions were made in which {it.features} features belong together in {PLANTED['n_groups']} "
        f"groups. From the data alone penalize finds {found}, in {it.seconds:.1f} seconds; test loss {it.test_loss:.4g}, with "
        f"the true groups {it.true_groups_test_loss:.4g}."
    )

"""``mixbin demo``, a short tour: distil a small table, find a planted group structure, and write pages about both."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from subprocess import PIPE
from typing import Any

import typer

from mixbin import _validate as check
from mixbin._files import write_text
from mixbin.cli.commands.diabetes import PARTS, compare, distillation, load, show, write_parts
from mixbin.cli.commands.options import DemoOptions
from mixbin.cli.commands.study import EXIT_INTERRUPTED
from mixbin.cli.terminal import plain_console
from mixbin.errors import InvalidInput
from mixbin.progress import spinner
from mixbin.sets.budget import resolve_budget
from mixbin.studies.distillation.regression import Regression
from mixbin.studies.folder import RunFolder, check_folder, writing_to
from mixbin.studies.groups.study import Groups
from mixbin.studies.options import parse_budget
from mixbin.studies.pages import write_page

PLANTED: dict[str, Any] = {"tasks": 60, "samples": 12, "features": 24, "n_groups": 4}
"""The sizes of the group problem, which is solved in seconds once the kernels are compiled."""
COMPILING = "mixbin: compiling"
"""How the line begins by which a process says that it compiles kernels."""
MARK = "demo.txt"
"""A folder with this file belongs to the demo, which may replace its own files in it."""
FILES = {
    ".": ("index.html",),
    "data": tuple(f"{part}.csv" for part in PARTS),
    "diabetes": tuple(Regression.all_files()),
    "groups": tuple(Groups.all_files()),
}
"""The files that the demo writes besides MARK, by folder."""


@dataclass(frozen=True)
class Planted:
    """The second part of the demo: how well the method found a group structure that is known."""

    tasks: int
    features: int
    groups: int
    adjusted_rand: float
    """The adjusted Rand index of the groups found; 1 if they are the true groups."""
    test_loss: float
    true_groups_test_loss: float
    evaluations: int
    seconds: float


def run(options: DemoOptions) -> None:
    """Distil, find groups and write the pages; print the tables and where the pages are, or one line of JSON."""
    if options.alpha is not None:
        remedy = "write a number such as 1e-4, or leave it out to have it chosen"
        check.real("--alpha", options.alpha, low=0, open_low=True, remedy=remedy)
    out, as_json, split = options.out, options.as_json, load(options.seed)
    # Check this before anything is written: the budget may not fit the number of rows.
    resolve_budget("budget", parse_budget(options.budget), len(split.train))
    enter(out)
    try:
        write_parts(split, out)
        with finding_groups(options.seed, out / "groups") as groups_found:
            comparison = compare(split, distillation(options))
            console = plain_console()
            if not as_json:
                show(comparison, console)
            with spinner("Finding groups; the first time, kernels are compiled for some 10 seconds ...", quiet=as_json):
                structure = groups_found(lambda line: None if as_json else console.print(line))
        with spinner("Writing the pages ...", quiet=as_json):
            page = write_page(out)
    except KeyboardInterrupt:
        print("mixbin: interrupted; the same command begins anew", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print(json.dumps(comparison.to_json() | {"groups": asdict(structure), "page": str(page)}, allow_nan=False))
    else:
        console.print(f"\n{in_words(structure)}\n\nEverything as pages: open {page} in a browser.")


def enter(out: Path) -> None:
    """Prepare the folder: it must be new, empty, or left by an earlier demo, whose files are removed."""
    check_folder(out)
    mark = out / MARK
    with writing_to(out):
        if out.is_dir() and any(out.iterdir()) and not mark.exists():
            raise InvalidInput(f"--out {str(out)!r} holds files that are from no demo; choose another folder")
        for part, files in FILES.items() if out.is_dir() else ():
            for name in files:
                (out / part / name).unlink(missing_ok=True)
            RunFolder(out / part, tuple(files)).clear()
        (out / "data").mkdir(parents=True, exist_ok=True)
        write_text(mark, "The folder of mixbin demo: the command replaces what it wrote here before.\n")


@contextmanager
def finding_groups(seed: int, out: Path) -> Iterator[Callable[[Callable[[str], object]], Planted]]:
    """Run ``mixbin groups`` on synthetic tasks in a second process; the function yielded waits for its answer.

    The function is given what to call with the note that kernels are compiled, if they are.

    Compiling the kernels keeps a core busy for a while. In the meantime this process can do the first part of the demo.
    """
    sizes = [word for name, value in PLANTED.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    command = ["groups", "--synthetic", "equal", *sizes, "--no-intercept", "--seed", str(seed), "--out", str(out), "--json"]
    process = subprocess.Popen([sys.executable, "-m", "mixbin", *command], stdout=PIPE, stderr=PIPE, text=True)

    def found(note: Callable[[str], object]) -> Planted:
        assert process.stdout is not None
        assert process.stderr is not None
        complaint = []
        for line in process.stderr:  # ends with the process; the one line on stdout fits into its pipe in the meantime
            if line.startswith(COMPILING):
                note("Compiling the kernels of group problems, once on this machine ...")
            else:
                complaint.append(line)
        said = process.stdout.read()
        if process.wait():
            sys.stderr.write("".join(complaint))
            raise typer.Exit(process.returncode)
        return planted(json.loads(said))

    try:
        yield found
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate()


def planted(summary: Mapping[str, Any]) -> Planted:
    """The numbers of the demo from the JSON that ``mixbin groups`` printed."""
    lines = {line["method"]: line for line in summary["methods"]}
    oracle, found = lines["oracle"], summary["methods"][-1]
    known = {**found, **summary, "true_groups_test_loss": oracle["test_loss"]}
    return Planted(**{field.name: known[field.name] for field in fields(Planted)})


def in_words(it: Planted) -> str:
    """The second part of the demo in a few sentences."""
    found = (
        "exactly the groups" if it.adjusted_rand == 1 else f"groups with a Rand index of {it.adjusted_rand:.2f} (1 is the truth)"
    )
    return (
        f"And groups: {it.tasks} regressions were made in which {it.features} features belong together in {PLANTED['n_groups']} "
        f"groups. From the data alone penalize finds {found}; test loss {it.test_loss:.4g}, with "
        f"the true groups {it.true_groups_test_loss:.4g}."
    )

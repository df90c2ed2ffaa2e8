"""``mixbin reproduce``: compute the tables and figures of the paper, from the data to the numbers and drawings."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mixbin import _validate as check
from mixbin.cli.commands.options import PaperSolver, ReproduceOptions
from mixbin.cli.commands.study import EXIT_INTERRUPTED
from mixbin.cli.terminal import plain_console, rich_table
from mixbin.cli.typed import command_line
from mixbin.errors import InvalidInput
from mixbin.problems.group_lasso.structure import usable_cores
from mixbin.reproduction import distillation, figures, tables, writing
from mixbin.reproduction.job import FULL, QUICK, Job, Record
from mixbin.reproduction.plan import FIGURES, TABLES, Plan
from mixbin.reproduction.published import canonical
from mixbin.reproduction.running import Runs
from mixbin.reproduction.table import Table
from mixbin.studies.folder import check_folder
from mixbin.studies.pages import write_page

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Shown

WIDE = 130
"""A terminal with at least this many columns also shows standard deviations."""


FILES = {
    "report.html": "everything as a page, for a browser",
    "README.md": "the same as text",
    "*.md, *.csv": "the tables",
    "*.svg": "the figures",
    "results.json": "everything, for machines",
}


def run(options: ReproduceOptions) -> None:
    """Do the runs that are not in the folder yet, write the tables and figures, and print the tables."""
    plan = planned(options)
    runs = Runs(options.out)
    jobs = plan.jobs()
    before = [job for job in jobs if runs.record(job) is not None]
    if any(job.experiment == "blog" for job in set(jobs) - set(before)):
        distillation.find_blog()
    runs.make()
    try:
        with _progress(len(jobs), len(before), options.as_json) as tick:
            for job in runs.do(jobs, options.jobs or usable_cores()):
                tick(job)
    except KeyboardInterrupt:
        print("mixbin: interrupted; the same command goes on from here", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    runs.clear()

    def records(wanted: Sequence[Job]) -> list[Record]:
        found = [runs.record(job) for job in wanted]
        return [record for record in found if record is not None]

    seconds = sum(record["job_seconds"] for record in records(jobs))
    said = writing.about(plan, command_line(), seconds)
    made = [tables.make(name, plan, records) for name in plan.what if name in TABLES]
    drawn = [figures.make(name, plan, records) for name in plan.what if name in FIGURES]
    files = [*writing.write(options.out, said, made, drawn), write_page(options.out).name]
    if options.as_json:
        cells = {table.name: table.cells() for table in made}
        print(json.dumps({"about": said, "tables": cells, "files": [str(options.out / name) for name in files]}, allow_nan=False))
    else:
        show(said, made, len(before), len(jobs), options.out, plain_console())


def planned(options: ReproduceOptions) -> Plan:
    """Check the options and return the plan that they describe."""
    named = [name.lower() for name in options.what]
    what = (*TABLES, *FIGURES) if "all" in named else tuple(dict.fromkeys(map(canonical, named)))
    size = FULL if options.full else QUICK
    if options.runs is not None:
        check.whole("--runs", options.runs, low=1)
    if options.jobs is not None:
        check.whole("--jobs", options.jobs, low=1)
    if options.steps is not None:
        if options.solver is not PaperSolver.PAPER:
            raise InvalidInput(f"--steps {options.steps} has no use without --solver paper; leave it out")
        size = replace(size, steps=check.whole("--steps", options.steps, low=200, remedy="100 are made per eps"))
    for budget in options.budget:
        check.choice("--budget", budget, distillation.BUDGETS)
    check_folder(options.out)
    needs_data = any(name in ("table3", "table5") for name in what)
    music = distillation.music_here() if needs_data else None
    budgets = tuple(budget for budget in distillation.BUDGETS if not options.budget or budget in options.budget)
    return Plan(what, size, options.solver.value, options.runs, music, budgets)


@contextmanager
def _progress(total: int, before: int, quiet: bool) -> Iterator[Callable[[Job], None]]:
    """Show a progress bar if stderr is a terminal; call the function yielded after each run."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("running", total=total, completed=before)

        def tick(job: Job) -> None:
            bar.update(task, advance=1, description=f"done: {job.name}")

        yield tick


def show(said: Record, made: Sequence[Table], before: int, total: int, out: Path, console: "Console") -> None:
    """Print the tables with our numbers above the published ones, what does not agree, and where the files are."""
    console.print()
    for table in made:
        console.print(f"Table {table.number}: {table.title}\n")
        wide = console.width >= WIDE
        console.print(shown(table, wide))
        deviations = (
            "mean ± standard deviation" if wide else f"means; deviations in {table.name}.md, or here from {WIDE} columns on"
        )
        console.print(f"\nOurs, and below it the published figure ({deviations}).")
        for note in table.notes:
            console.print(f"- {note}")
        for finding in table.findings:
            console.print(f"- Not as published: {finding}")
        console.print()
    known = f" ({before} of them were there before)" if before else ""
    console.print(f"Size {said['size']}. Solver: {said['solver']}. {total} runs{known}. {said['machine']}.")
    console.print(f"Written to {out}:")
    for name, what in FILES.items():
        console.print(f"  {name:<14} {what}")


def shown(table: Table, wide: bool) -> "Shown":
    """A table for the terminal: the rows for which we have numbers, with deviations if the terminal is ``wide``."""
    out = rich_table([*table.heads, *table.columns], (), table.heads)
    for column, name in zip(out.columns, table.heads, strict=False):
        # Only the last label column holds short labels, which need not wrap.
        column.no_wrap = name == table.heads[-1]
    last: tuple[str, ...] = ()
    for row in table.rows:
        if not any(it.values for it in row.entries):
            continue
        texts = [(it.ours, it.theirs) if it.published is not None else (it.ours,) for it in row.entries]
        cells = ["\n".join(text if wide else text.split(" ± ")[0] for text in both) for both in texts]
        out.add_row(*row.labels_below(last), *cells)
        last = row.labels
    for column in out.columns[len(table.heads) :]:
        # A cell may wrap between a mean and its deviation, but not within a number.
        column.min_width = max((len(word) for cell in column.cells for word in str(cell).split()), default=1)
    return out

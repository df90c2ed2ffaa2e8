"""What several commands print in the same way: tables, and the record of a finished run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mixbin.reporting.record import Line, Record, status_words
from mixbin.reporting.runs import how_read, shown
from mixbin.result import Status
from mixbin.studies.study import StudyBase, Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

LEFT_ALIGNED = ("method", "answer")
"""The columns of words. All other columns hold numbers, which are aligned to the right."""


def plain_console() -> "Console":
    """A console that prints text unchanged; rich would read brackets as markup and names in colons as emoji."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def rich_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[str] = LEFT_ALIGNED, width: int = 80
) -> "RichTable":
    """A table without lines, except below its head. The columns in ``words`` are aligned to the left.

    In a terminal of that width numbers and words stay whole, if need be with less space between the columns. If it is
    narrower than they are, they are folded onto several lines, so that nothing is cut off.
    """
    from rich import box
    from rich.table import Table

    needed = [_needed([head, *(row[i] for row in rows)], head in words) for i, head in enumerate(heads)]
    tight = sum(needed) + 2 * (len(heads) - 1) > width
    fits = sum(needed) + (1 if tight else 2) * (len(heads) - 1) <= width
    padding = (0, 0 if tight else 1)
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True, padding=padding)
    for head, least in zip(heads, needed, strict=True):
        room = least if fits else None
        out.add_column(head, justify="left" if head in words else "right", vertical="top", overflow="fold", min_width=room)
    for row in rows:
        out.add_row(*row)
    return out


def _needed(cells: Sequence[str], words: bool) -> int:
    """How wide a column must be, so that no word of it, or no number, is broken."""
    return max((len(part) for cell in cells for part in (cell.split() if words else cell.split("\n"))), default=1)


def show_record(record: Record, study: type[StudyBase[Any]], out: object, before: bool, console: "Console") -> None:
    """Print the task in a sentence, the comparison, the certificate in words, and where the files are.

    ``before`` says that the run had already ended when the command began.
    """
    columns = {name: it for name, it in shown(study.columns(), record).items() if it.short is not None}
    rows = [
        [
            line.method,
            *("\n".join(filter(None, column.cell(name, line.numbers, _missing(line)))) for name, column in columns.items()),
            *([status_words(line.status), f"{line.evaluations:,}"] if record.n_methods else []),
            f"{line.seconds:.2f}",
        ]
        for line in record.lines
    ]
    heads = ["method", *(str(column.short) for column in columns.values())]
    heads += [*(["answer", "evals"] if record.n_methods else []), "seconds"]
    console.print("\n" + " ".join([study.sentence(record.facts), *how_read(record.facts)]) + "\n")
    console.print(rich_table(heads, rows, width=console.width))
    console.print("\n" + " ".join(study.explained(record)) + "\n")
    for more in study.more(record):
        console.print(rich_table(*more, width=console.width) if isinstance(more, Table) else more)
        console.print()
    main = record.main
    if record.n_methods and main.status != Status.BINARY:
        console.print(f"How {main.method} ended: {main.message}.\n")
    if record.certificate is not None:
        console.print(f"About {study.answer.format(main.method)}: {record.certificate}\n")
    console.print(f"This run had ended before; nothing was computed again. In {out}:" if before else f"Written to {out}:")
    files = {name: what for name, what in study.all_files().items() if name in record.files}
    width = max(map(len, files)) + 1
    for name, what in files.items():
        console.print(f"  {name:<{width}} {what}")
    if record.verdict:
        console.print("\n" + record.verdict)
    for line in record.red:
        console.print(line, style="bold red")


def _missing(line: Line) -> str:
    """What stands for a number that could not be measured."""
    return "no rows" if line.numbers.get("rows") == 0 else "-"

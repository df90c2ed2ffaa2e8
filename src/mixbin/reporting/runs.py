"""Read the files that a run left in a folder, and build its page, which has the same form for all kinds of runs."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from mixbin._files import read_json
from mixbin._numbers import in_form, readable
from mixbin.errors import InvalidInput
from mixbin.reporting.blocks import Block, Cell, Facts, Grid, Page, Points, Prose, Section, Shell, Text, isolating
from mixbin.reporting.figures import Drawings
from mixbin.reporting.record import FILE, Line, Record, status_words
from mixbin.reporting.words import Question, evidence
from mixbin.result import Result

OF_THE_TABLE = ("selected.csv", "suspects.csv", "clean.csv")
"""Files with rows of the user's table."""


@dataclass(frozen=True)
class Run:
    """The folder of a finished run."""

    folder: Path

    @cached_property
    def record(self) -> Record:
        """The record of the run, from ``methods.json``."""
        return Record.from_json(read_json(self.folder / FILE))

    @cached_property
    def result(self) -> Result:
        """The result of the method that the run is about."""
        return Result.load(self.folder / "result.npz")

    def json(self, name: str) -> dict[str, Any]:
        """The contents of a JSON file of the folder."""
        return read_json(self.folder / name)

    def table(self, name: str, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """The columns and the first ``most`` rows of a CSV file of the folder, or all rows; the values are text.

        Rows of the user's table are separated as in that table, or stand in a Parquet file of the same name.
        """
        separator = self.record.facts.get("reading", {}).get("separator", ",") if name in OF_THE_TABLE else ","
        path = self.folder / name
        try:
            if not path.exists() and (packed := path.with_suffix(".parquet")).exists():
                return parquet_table(packed, most)
            with path.open(newline="", encoding="utf-8-sig") as file:
                reader = csv.reader(file, delimiter=separator)
                return next(reader), list(islice(reader, most))
        except (OSError, ValueError, StopIteration) as error:
            raise InvalidInput(f"{self.folder / name} is not what mixbin wrote there ({error}); run the command again") from None


SPREAD = "_spread"
"""The ending of the name of a standard deviation; before it stands the name of the mean."""


def reading_facts(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a record keeps about how its files were read; nothing where nothing need be told."""
    return {"reading": dict(told)} if told else {}


def how_read(facts: Mapping[str, Any]) -> list[str]:
    """How the files of a run were read, in sentences; none where nothing need be told."""
    return [str(it) for it in facts.get("reading", {}).get("said", [])]


class Column(NamedTuple):
    """How a column of numbers in the comparison is shown to people."""

    head: str
    """The head of the column on a page."""
    form: str
    short: str | None = None
    """The head of the column in a terminal; None if the column is only shown on the page."""
    rare: bool = False
    """Whether to show the column only if some value in it is neither missing nor 0."""

    def text(self, value: Any, missing: str) -> str:
        """A value of this column as text, or ``missing`` if it is None."""
        return missing if value is None else in_form(value, self.form)

    def cell(self, name: str, numbers: Mapping[str, Any], missing: str) -> tuple[str, str]:
        """The number of this name as text and, if it is a mean over several draws, their spread: "± 0.012"."""
        spread = numbers.get(f"{name}{SPREAD}")
        return self.text(numbers.get(name), missing), "" if spread is None else f"± {readable(float(f'{spread:.2g}'), 2)}"


def parquet_table(file: Path, most: int | None) -> tuple[list[str], list[list[str]]]:
    """The columns and the first ``most`` rows of a Parquet file, their values as text."""
    from pyarrow import parquet

    table = parquet.read_table(file)
    first = table if most is None else table.slice(0, most)
    columns = [_texts(column) for column in first.columns]
    return table.column_names, [list(row) for row in zip(*columns, strict=True)]


def _texts(column: Any) -> list[str]:
    try:
        values = column.to_pylist()
    except (ArithmeticError, ValueError):  # dates that Python does not have
        values = column.cast("string").to_pylist()
    return ["" if value is None else str(value) for value in values]


def shown(columns: Mapping[str, Column], record: Record) -> dict[str, Column]:
    """The columns for which this run has numbers."""
    numbers = [line.numbers for line in record.lines]
    kept = {name: it for name, it in columns.items() if any(isinstance(line.get(name), int | float) for line in numbers)}
    return {name: it for name, it in kept.items() if not it.rare or any(line.get(name) for line in numbers)}


Sections = Callable[[Drawings], Sequence[Section]]


class PageParts(NamedTuple):
    """The parts of a page that depend on the kind of study."""

    label: str
    """The kind of run in a word or two."""
    title: Text
    answer: Text
    """The answer of the run in a sentence."""
    tiles: Mapping[str, str]
    """The few most important numbers, by their names."""
    names: Sequence[str]
    """Names from the user's files that the text mentions. They are isolated, since they may be written from right to left."""
    question: Question
    settings: Mapping[str, Text]
    """The settings that the numbers depend on; empty values are left out."""
    first: Sections = lambda _: ()
    """Sections before the comparison of the methods."""
    details: Sections = lambda _: ()
    """Sections after the certificate."""
    evaluations: str = "evaluations"
    """The head of the column of evaluations."""
    beside: Callable[[Drawings], Sequence[Block]] = lambda _: ()
    """Blocks above the comparison of the methods, such as a picture of it."""
    last: Sections = lambda _: ()
    """Sections after the path of the search."""
    searched: Callable[[Drawings], Sequence[Block]] | None = None
    """What tells how the search went, if the trace of the last run does not."""


def split_settings(facts: Mapping[str, Any]) -> dict[str, Text]:
    """The settings about the rows that judge the answer."""
    split_off, test = " split off at random" if facts["validation_split"] else "", facts["test_rows"]
    return {
        "validation rows": f"{facts['validation_rows']:,}{split_off}",
        "test rows": "none" if test is None else f"{test:,}",
    }


def page(run: Run, parts: PageParts, columns: Mapping[str, Column], explained: Sequence[str]) -> Page:
    """The page of a run."""

    def sections() -> list[Section]:
        drawings, asked = Drawings(), run.record.asked.removeprefix("The task: ")
        asked = asked[:1].upper() + asked[1:]
        how = " ".join(it[0].upper() + it[1:] if i == 0 else it for i, it in enumerate(explained))
        return [
            Section("What was asked", [Prose([isolating(asked, *parts.names), *how_read(run.record.facts)])]),
            *parts.first(drawings),
            Section(
                "The methods side by side",
                [*parts.beside(drawings), *_methods(run.record, columns, parts.evaluations), Prose([how], muted=True)],
            ),
            Section("How good is the answer?", [Points(evidence(run.result.certificate, run.result.status, parts.question))]),
            *parts.details(drawings),
            Section("How the search went", parts.searched(drawings) if parts.searched else [drawings.path(run.result)]),
            *parts.last(drawings),
            origin_section(run.record, parts.settings),
        ]

    verdict = run.record.verdict
    return Page(
        title=parts.title,
        subtitle=verdict or parts.answer,
        kind=parts.label,
        sections=sections,
        tiles=dict(parts.tiles),
        red=run.record.red,
        more=parts.answer if verdict else "",
    )


def _methods(record: Record, columns: Mapping[str, Column], evaluations: str) -> list[Block]:
    """The table that compares the methods by the columns that a terminal shows, and one with all else, for a closer look.

    In one table they would be wider than a small window. Numbers that no column describes come last, under their own names.
    """
    others = [name for name in record.main.numbers if name not in columns]
    kept = shown({**columns, **{name: Column(name.replace("_", " "), ".6g") for name in others}}, record)
    main = {name: column for name, column in kept.items() if column.short is not None}
    more = {name: column for name, column in kept.items() if column.short is None}

    def numbers(line: Line, of: Mapping[str, Column]) -> list[Cell]:
        return [Cell(*column.cell(name, line.numbers, "none")) for name, column in of.items()]

    rows = [[Cell(line.method), *numbers(line, main), Cell(status_words(line.status))] for line in record.lines]
    work = [
        [Cell(line.method), *numbers(line, more), Cell(f"{line.evaluations:,d}"), Cell(f"{line.seconds:.2f}")]
        for line in record.lines
    ]
    last = len(rows) - 1
    return [
        Grid(["method", *(column.head for column in main.values()), "the answer is"], rows, strong=last),
        Prose(["The same lines, for a closer look:"], muted=True),
        Grid(["method", *(column.head for column in more.values()), evaluations, "seconds"], work, strong=last),
    ]


def origin_section(record: Record, settings: Mapping[str, Text]) -> Section:
    """The command that repeats the run, its settings and the versions."""
    about = record.about
    blocks: list[Block] = []
    if "command" in about:
        blocks += [
            Prose(["The command that made this run; to make it again, give --out another folder:"]),
            Shell(about["command"]),
        ]
    # A fit has neither methods nor a limit of evaluations.
    limit = record.identity.get("max_evaluations")
    common: dict[str, Text] = {
        "method": str(record.identity.get("method", "")),
        "seed": str(record.facts["seed"]),
        "at most": "" if limit is None else f"{limit:,} evaluations a method",
        "checksum of the data": str(record.identity["data"]),
    }
    facts: dict[str, Text] = {name: value for name, value in {**settings, **common}.items() if value != ""}
    if "versions" in about:
        facts["versions"] = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    facts |= {name: about[name] for name in ("machine", "finished") if name in about}
    if "seconds" in about:
        facts["time"] = f"{about['seconds']:,.1f} seconds in all"
    return Section("Make it again", [*blocks, Facts(facts)])

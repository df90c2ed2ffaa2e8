"""A run that a command left in a folder, as its page needs it; and what the pages of all runs have alike."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from mixbin._files import read_json
from mixbin.errors import InvalidInput
from mixbin.reporting.blocks import Block, Cell, Facts, Grid, Points, Prose, Section, Shell, Text
from mixbin.reporting.words import Question, evidence
from mixbin.result import Result, Status

STATUSES = {
    Status.BINARY: "yes or no",
    Status.REPAIRED: "rounded",
    Status.RELAXED: "fractions",
    Status.INFEASIBLE: "breaks the budget",
    Status.STOPPED: "ended early",
}
HIDDEN = ("method", "status", "message")
"""What a line of the comparison has beside its numbers."""

RARE = ("ungrouped",)
"""Numbers that are shown only where one of them is not 0."""


@dataclass(frozen=True)
class Run:
    """The folder of a finished run."""

    folder: Path

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What the command printed."""
        return read_json(self.folder / "methods.json")

    @cached_property
    def result(self) -> Result:
        """What the method of the run gave."""
        return Result.load(self.folder / "result.npz")

    @property
    def main(self) -> dict[str, Any]:
        """The line of that method."""
        line: dict[str, Any] = self.summary["methods"][-1]
        return line

    def line(self, method: str) -> dict[str, Any] | None:
        """The line of a method, where it is there."""
        return next((it for it in self.summary["methods"] if it["method"] == method), None)

    def json(self, name: str) -> dict[str, Any]:
        """A JSON file of the folder."""
        return read_json(self.folder / name)

    def table(self, name: str, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """The columns and the first rows of a CSV file of the folder, its values as text."""
        try:
            with (self.folder / name).open(newline="", encoding="utf-8") as file:
                reader = csv.reader(file)
                return next(reader), list(islice(reader, most))
        except (OSError, ValueError, StopIteration) as error:
            raise InvalidInput(f"{self.folder / name} is not what mixbin wrote there ({error}); run the command again") from None


def parquet_rows(folder: Path, most: int) -> tuple[list[str], list[list[str]]]:
    """The columns and the first rows of the part files of a folder, their values as text."""
    from pyarrow.parquet import ParquetFile

    columns: list[str] = []
    rows: list[list[str]] = []
    for file in sorted(folder.glob("*.parquet")):
        if len(rows) >= most:
            break
        with ParquetFile(file) as part:
            for batch in part.iter_batches(batch_size=most):
                columns = batch.schema.names
                values = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                rows += [["" if value is None else str(value) for value in row] for row in values]
    return columns, rows[:most]


def task(said: str) -> str:
    """A task as a command says it, under a heading that says that it is one."""
    said = said.removeprefix("The task: ")
    return said[0].upper() + said[1:]


def methods(run: Run, known: Mapping[str, tuple[str, str]]) -> Grid:
    """The comparison of the methods: the columns that are ``known`` (their heads and formats), then any others with numbers."""
    lines = run.summary["methods"]
    others = [name for name in lines[-1] if name not in (*known, *HIDDEN)]
    columns = dict(known) | {name: (name.replace("_", " "), ".6g") for name in others}
    kept = [name for name in columns if any(isinstance(it.get(name), int | float) for it in lines)]
    kept = [name for name in kept if name not in RARE or any(it.get(name) for it in lines)]
    rows = [
        [
            Cell(it["method"]),
            *(Cell(_number(it.get(name), columns[name][1])) for name in kept),
            Cell("for comparison" if it["status"] is None else STATUSES[Status(it["status"])]),
        ]
        for it in lines
    ]
    return Grid(["method", *(columns[name][0] for name in kept), "the answer is"], rows, strong=len(rows) - 1)


def _number(value: Any, form: str) -> str:
    return "none" if value is None else format(value, form)


def certificate(run: Run, question: Question) -> Section:
    """What is known about the answer."""
    return Section("How good is the answer?", [Points(evidence(run.result.certificate, run.result.status, question))])


def origin(run: Run, settings: Mapping[str, Text]) -> Section:
    """Settings, versions, and the command that makes the run again."""
    about = run.summary.get("about", {})
    blocks: list[Block] = []
    if "command" in about:
        blocks += [
            Prose(["The command that made this run; to make it again, give --out another folder:"]),
            Shell(about["command"]),
        ]
    facts: dict[str, Text] = {name: value for name, value in settings.items() if value != ""}
    if "versions" in about:
        facts["versions"] = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    facts |= {name: about[name] for name in ("machine", "finished") if name in about}
    if "seconds" in about:
        facts["time"] = f"{about['seconds']:,.1f} seconds in all"
    return Section("Make it again", [*blocks, Facts(facts)])

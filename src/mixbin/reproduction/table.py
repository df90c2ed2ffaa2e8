"""A table of the paper: ours and the published figure in every cell, as text, Markdown and data."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mixbin.reproduction.published import Cell

NOTHING = "-"


@dataclass(frozen=True)
class Entry:
    """One cell: the mean and standard deviation of our runs, and what the paper prints there."""

    values: tuple[float, ...]
    """One per run that gave a number."""
    decimals: int
    published: Cell | None = None
    otherwise: str = NOTHING
    """What stands there when no run gave a number."""

    @property
    def mean(self) -> float | None:
        """Over the runs."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """Of the sample, as the published ones are; None for a single run."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def ours(self) -> str:
        """Mean and deviation as printed; a count that is the same in all runs without decimals."""
        if not self.values:
            return self.otherwise
        count = len(set(self.values)) == 1 and float(self.values[0]).is_integer()
        return _printed(self.mean, self.sd, 0 if count else self.decimals)

    @property
    def theirs(self) -> str:
        """What the paper prints."""
        if self.published is None:
            return NOTHING
        return _printed(self.published.mean, self.published.sd, self.published.decimals)


@dataclass(frozen=True)
class Row:
    """A line of a table."""

    labels: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Finding:
    """An ordering of the published table that ours does not have, and why."""

    where: str
    published: str
    ours: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: the paper has {self.published}, here {self.ours}: {self.why}"


@dataclass(frozen=True)
class Table:
    """A table of the paper with our figures."""

    number: int
    title: str
    heads: tuple[str, ...]
    """Of the columns of labels."""
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    """What the reader of the published table must know."""
    notes: tuple[str, ...]
    """What the reader of ours must know."""
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        """As on the command line."""
        return f"table{self.number}"

    def markdown(self) -> str:
        """The table and all that is said about it."""
        head = [*self.heads, *self.columns]
        left = ["---"] * len(self.heads) + ["---:"] * len(self.columns)
        lines = [f"## Table {self.number}: {self.title}", "", _line(head), _line(left)]
        for row in self.rows:
            lines.append(_line([*row.labels, *(_both(entry) for entry in row.entries)]))
        lines += ["", "Ours, and in italics the published figure; mean ± standard deviation over the runs.", ""]
        lines += [f"- {note}" for note in self.notes]
        lines += [f"- Of the published table: {remark}" for remark in self.remarks]
        if self.findings:
            lines += ["", "Orderings of the published table that do not hold here:", ""]
            lines += [f"- {finding}" for finding in self.findings]
        return "\n".join([*lines, ""])

    def cells(self) -> list[dict[str, str | float | int | None]]:
        """One flat row per cell, for a data file."""
        return [
            {
                "table": self.number,
                **dict(zip(self.heads, row.labels, strict=True)),
                "column": column,
                "mean": entry.mean,
                "sd": entry.sd,
                "runs": len(entry.values),
                "published_mean": None if entry.published is None else entry.published.mean,
                "published_sd": None if entry.published is None else entry.published.sd,
            }
            for row in self.rows
            for column, entry in zip(self.columns, row.entries, strict=True)
        ]


def _printed(mean: float | None, sd: float | None, decimals: int) -> str:
    assert mean is not None
    text = f"{mean:,.{decimals}f}"
    return text if sd is None else f"{text} ± {sd:,.{decimals}f}"


def _both(entry: Entry) -> str:
    return entry.ours if entry.published is None else f"{entry.ours}<br>*{entry.theirs}*"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"

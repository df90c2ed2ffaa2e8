"""A table of the paper with our number and the published one in every cell, as text, Markdown and data."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mixbin.reproduction.published import Cell

NOTHING = "-"


@dataclass(frozen=True)
class Entry:
    """One cell: the values of our runs, and what the paper prints there."""

    values: tuple[float, ...]
    """One number for each run that has one."""
    decimals: int
    published: Cell | None = None
    otherwise: str = NOTHING
    """The text of the cell if no run has a number."""

    @property
    def mean(self) -> float | None:
        """The mean over the runs; None without a run."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def sd(self) -> float | None:
        """The standard deviation of the sample, as in the paper; None for a single run."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def ours(self) -> str:
        """Mean and standard deviation as text; a whole number that is the same in all runs has no decimals."""
        if not self.values:
            return self.otherwise
        count = len(set(self.values)) == 1 and float(self.values[0]).is_integer()
        return _printed(self.mean, self.sd, 0 if count else self.decimals)

    @property
    def theirs(self) -> str:
        """The text that the paper prints."""
        if self.published is None:
            return NOTHING
        return _printed(self.published.mean, self.published.sd, self.published.decimals)


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    labels: tuple[str, ...]
    entries: tuple[Entry, ...]

    def labels_below(self, above: tuple[str, ...]) -> list[str]:
        """The labels as they stand below a row with the labels ``above``: those that are the same there are not repeated."""
        new = (i >= len(above) - 1 or self.labels[: i + 1] != above[: i + 1] for i in range(len(self.labels)))
        return [label if wanted else "" for label, wanted in zip(self.labels, new, strict=True)]


@dataclass(frozen=True)
class Finding:
    """An ordering of the published table that does not hold in ours, and the reason."""

    where: str
    published: str
    ours: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: the paper has {self.published}, here {self.ours}: {self.why}"


@dataclass(frozen=True)
class Table:
    """A table of the paper with our numbers."""

    number: int
    title: str
    heads: tuple[str, ...]
    """The headings of the columns of labels."""
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    """What a reader of the published table must know."""
    notes: tuple[str, ...]
    """What a reader of our table must know."""
    findings: tuple[Finding, ...]

    @property
    def name(self) -> str:
        """The name of the table on the command line."""
        return f"table{self.number}"

    def markdown(self) -> str:
        """The table as Markdown, with its notes, remarks and findings."""
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
        """One dictionary per cell, for a data file."""
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

"""What a first look at the columns of a part of a table finds: types, counts of texts and numbers, gaps.

What was found in several parts can be put together, in any order, so that the parts may be looked at by several workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixbin.data.cells import trimmed
from mixbin.data.encoding import whole
from mixbin.data.leaves import EMPTY, MOST_TEXTS, Leaf, NotEncodable, leaves_of, numbers_of
from mixbin.data.medians import NONE, Counts, keys_of
from mixbin.data.tables import holds_numbers, holds_text
from mixbin.data.typed_columns import TypedColumns, as_text, shown

if TYPE_CHECKING:
    import pyarrow as pa

Path = tuple[str | int, ...]
CELLS = "cells"
"""The kind of a column of plain text, which may yet turn out to hold numbers or dates."""
SAMPLE = 1_000
"""Texts that are kept of a column with too many."""


@dataclass(frozen=True, eq=False)
class Texts:
    """The different texts of a column, how often each occurs, and its first row."""

    table: "pa.Table"
    too_many: bool = False

    @classmethod
    def of(cls, values: "pa.ChunkedArray", rows: NDArray[np.int64]) -> "Texts":
        """The texts of a column whose rows have these numbers."""
        import pyarrow as pa

        made = pa.table([values.cast(pa.string()), pa.array(rows)], names=["text", "row"])
        made = made.filter(made.column("text").is_valid())
        counted = made.group_by("text", use_threads=False).aggregate([("text", "count"), ("row", "min")])
        names = {"text": "text", "text_count": "count", "row_min": "row"}
        return cls(counted.rename_columns([names[name] for name in counted.column_names]).select(["text", "count", "row"])).cut()

    def plus(self, other: "Texts") -> "Texts":
        """Both together."""
        import pyarrow as pa

        made = pa.concat_tables([self.table, other.table])
        counted = made.group_by("text", use_threads=False).aggregate([("count", "sum"), ("row", "min")])
        names = {"text": "text", "count_sum": "count", "row_min": "row"}
        table = counted.rename_columns([names[name] for name in counted.column_names]).select(["text", "count", "row"])
        return Texts(table, self.too_many or other.too_many).cut()

    def cut(self) -> "Texts":
        """Few of the texts, if there are too many to be counted."""
        if not (self.too_many or len(self.table) > MOST_TEXTS):
            return self
        return Texts(self.table.sort_by("row").slice(0, SAMPLE), True)

    def columns(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
        """The texts, counts and first rows."""
        counts, rows = (np.asarray(self.table.column(name).to_numpy()) for name in ("count", "row"))
        return self.table.column("text").to_pylist(), counts, rows


@dataclass(frozen=True, eq=False)
class Found:
    """What is found in a column, or in a part of one that is nested."""

    kinds: Mapping[str, tuple[int, str]]
    """What the values are: the first row with a value of that kind, and how the value is shown."""
    texts: Texts | None = None
    numbers: tuple[Counts, ...] = ()
    """Of numbers and of each part of dates."""
    infinite: tuple[int, ...] = ()
    """The first row of each piece in which a number is infinite."""
    gap: int | None = None
    """The first row without a value."""
    there: int = 0
    """How many rows have a value."""
    rows: int = 0
    """How many rows were looked at."""

    def plus(self, other: "Found") -> "Found":
        """Both together."""
        kinds = {kind: min(it[kind] for it in (self.kinds, other.kinds) if kind in it) for kind in {**self.kinds, **other.kinds}}
        texts = self.texts.plus(other.texts) if self.texts and other.texts else self.texts or other.texts
        longer, shorter = sorted((self.numbers, other.numbers), key=len, reverse=True)
        padded = [*shorter, *[NONE] * (len(longer) - len(shorter))]
        numbers = tuple(a.plus(b) for a, b in zip(longer, padded, strict=True))
        gap = min((it for it in (self.gap, other.gap) if it is not None), default=None)
        there, rows = self.there + other.there, self.rows + other.rows
        return Found(kinds, texts, numbers, self.infinite + other.infinite, gap, there, rows)


@dataclass(eq=False)
class ColumnSurvey:
    """What is found in all columns of some rows."""

    rows: int = 0
    found: dict[Path, Found] = field(default_factory=dict)
    bad: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Columns that cannot be encoded: the first row of such a part, and the reason."""

    def add(self, other: "ColumnSurvey") -> "ColumnSurvey":
        """Also what was found in other rows."""
        self.rows += other.rows
        for path, found in other.found.items():
            self.found[path] = self.found[path].plus(found) if path in self.found else found
        for name, reason in other.bad.items():
            self.bad[name] = min(reason, self.bad.get(name, reason))
        return self

    def rows_of(self, path: Path) -> int:
        """In how many rows a part of a column is known: as such, or as a gap of what is above it."""
        above = [self.found[path[:end]] for end in range(1, len(path)) if path[:end] in self.found]
        return self.found[path].rows + sum(it.rows for it in above if not it.kinds)

    def below(self, column: str) -> dict[Path, Found]:
        """All that is found in a column and the parts of it."""
        return {path: found for path, found in self.found.items() if path[0] == column}


def surveyed(table: "pa.Table", rows: NDArray[np.int64], typed: TypedColumns) -> ColumnSurvey:
    """Look at some rows of a table, which have these numbers."""
    import pyarrow as pa

    out = ColumnSurvey(table.num_rows)
    if not table.num_rows:
        return out
    for name in table.column_names:
        values = table.column(name)
        if name in typed.as_text or holds_text(values.type):
            texts = trimmed(as_text(values) if name in typed.as_text else values)
            out.found[(name,)] = _found(CELLS, texts, rows, Texts.of(texts, rows))
            continue
        if typed.dialect.missing_numbers and holds_numbers(values.type) and not pa.types.is_boolean(values.type):
            numbers = np.asarray(values.cast(pa.float64(), safe=False).to_numpy())
            values = pa.chunked_array([pa.array(typed.dialect.without_missing(numbers))])
        try:
            leaves = leaves_of(pa.table([values], names=[name]))
        except NotEncodable as error:
            out.bad[name] = int(rows[0]), error.columns[name]
            continue
        for leaf, below in leaves:
            out.found[leaf.path] = _leaf(leaf, below, rows)
    return out


def _leaf(leaf: Leaf, values: "pa.ChunkedArray", rows: NDArray[np.int64]) -> Found:
    if leaf.kind == EMPTY:
        return Found({}, gap=int(rows[0]), rows=len(rows))
    if leaf.kind == "text":
        return _found("text", values, rows, Texts.of(values, rows))
    numbers = numbers_of(whole(leaf), values)
    wrong, gaps = np.flatnonzero(np.isinf(numbers[:, 0])), np.flatnonzero(np.isnan(numbers[:, 0]))
    first = np.flatnonzero(~np.isnan(numbers[:, 0]))[:1]
    return Found(
        _kinds(leaf.kind, first, values, rows),
        None,
        tuple(Counts.of(keys_of(column)) for column in numbers.T),
        tuple(rows[wrong[:1]].tolist()),
        int(rows[gaps[0]]) if gaps.size else None,
        len(rows) - len(gaps),
        len(rows),
    )


def _kinds(kind: str, first: NDArray[np.intp], values: "pa.ChunkedArray", rows: NDArray[np.int64]) -> dict[str, tuple[int, str]]:
    return {} if not first.size else {kind: (int(rows[first[0]]), shown(values[first[0] : first[0] + 1]))}


def _found(kind: str, values: "pa.ChunkedArray", rows: NDArray[np.int64], texts: Texts) -> Found:
    valid = np.asarray(values.is_valid().to_numpy())
    first, gaps = np.flatnonzero(valid)[:1], np.flatnonzero(~valid)
    return Found(
        _kinds(kind, first, values, rows), texts, (), (), int(rows[gaps[0]]) if gaps.size else None, int(valid.sum()), len(rows)
    )


def in_groups(groups: NDArray[np.uint8] | None, n: int) -> Iterator[tuple[int, NDArray[np.intp] | None]]:
    """The groups that some rows are in, and which rows of each; None for all of them."""
    if groups is None:
        if n:
            yield 0, None
        return
    for group in np.unique(groups):
        yield int(group), np.flatnonzero(groups == group)


def together(parts: Sequence[Mapping[int, ColumnSurvey]], into: dict[int, ColumnSurvey]) -> dict[int, ColumnSurvey]:
    """Add what was found in several pieces, group by group."""
    for part in parts:
        for group, found in part.items():
            into[group] = into[group].add(found) if group in into else found
    return into


def all_of(surveys: Mapping[int, ColumnSurvey]) -> ColumnSurvey:
    """What was found in all groups together."""
    out = ColumnSurvey()
    for group in sorted(surveys):
        out.add(surveys[group])
    return out

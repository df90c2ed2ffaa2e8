"""Columns of any type as numbers: text as indicator columns, dates as their parts, missing numbers as the median.

What a column becomes is learnt from some rows and applied to others. Text goes through scikit-learn's OneHotEncoder
(``indicators``). Medians are NumPy's, which are those of scikit-learn's SimpleImputer in a tenth of the time
(benchmarks/reading.py). skrub's TableVectorizer was measured beside them: it rounds numbers to float32, fills nothing in, and
needs four more packages.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats, listed
from mixbin.data.indicators import Indicators
from mixbin.data.leaves import (
    ALIKE,
    DIFFERENT,
    EMPTY,
    LEFT_OUT,
    MANY,
    PARTS,
    Leaf,
    coded_texts,
    leaves_of,
    numbers_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CATEGORIES = 30
"""A column of text becomes at most this many indicator columns; the rarer texts share the last of them."""
FEW_CATEGORIES = 10
"""Text with fewer different values than this is never taken for names that differ from row to row."""


@dataclass(frozen=True, eq=False)
class TextFacts:
    """What is to be known about a column of text."""

    texts: Sequence[str]
    counts: NDArray[np.int64]
    missing: int
    too_many: bool = False
    """Whether there are more texts than are counted."""

    def becomes(self, leaf: Leaf) -> Leaf:
        """What becomes of the column."""
        if self.too_many:
            return Leaf(leaf.path, MANY)
        if not len(self.texts):
            return Leaf(leaf.path, EMPTY)
        if len(self.texts) == 1 and not self.missing:
            return Leaf(leaf.path, ALIKE)
        if len(self.texts) >= FEW_CATEGORIES and np.count_nonzero(self.counts == 1) > self.counts.sum() / 2:
            return Leaf(leaf.path, DIFFERENT)
        return leaf


@dataclass(frozen=True, eq=False)
class NumberFacts:
    """What is to be known about a column of numbers, or about each part of its dates."""

    medians: Floats
    """NaN if no row has a value."""
    has_hours: bool = False
    """Of dates: whether one of them is not at midnight."""

    def becomes(self, leaf: Leaf) -> Leaf:
        """What becomes of the column."""
        if np.isnan(self.medians[0]):
            return Leaf(leaf.path, EMPTY)
        if leaf.kind == "date":
            return Leaf(leaf.path, "date", PARTS if self.has_hours else PARTS[:-1])
        return leaf


Facts = TextFacts | NumberFacts


class Encoding:
    """What each column of a table becomes, learnt from some rows of it.

    ``names`` are the columns that come out, ``about`` says for each of them what it is.
    """

    def __init__(self, columns: Sequence[str], found: Sequence[tuple[Leaf, Facts | None]], most: int = MOST_CATEGORIES) -> None:
        self.columns = list(columns)
        self.leaves: list[Leaf] = []
        self.medians: list[Floats] = []
        self.indicators: list[Indicators] = []
        for leaf, facts in found:
            if facts is not None:
                leaf = facts.becomes(leaf)
            self.leaves.append(leaf)
            if leaf.is_left_out:
                continue
            if isinstance(facts, TextFacts):
                self.indicators.append(Indicators(facts.texts, facts.counts, facts.missing, most))
            elif facts is not None:
                self.medians.append(facts.medians[: max(1, len(leaf.parts))])
        self._name()

    @classmethod
    def of(cls, table: "pa.Table", most: int = MOST_CATEGORIES) -> "Encoding":
        """Learnt from all rows of a table."""
        return cls(table.column_names, [(leaf, facts_of(leaf, values)) for leaf, values in leaves_of(table)], most)

    def _name(self) -> None:
        """The columns that come out: their names, and what each is."""
        self.about: dict[str, dict[str, Any]] = {}
        medians, indicators = iter(self.medians), iter(self.indicators)
        self.widths: list[int] = []
        for leaf in self.leaves:
            if leaf.is_left_out:
                new: list[tuple[str, dict[str, Any]]] = []
            elif leaf.kind == "text":
                new = next(indicators).columns(leaf.name)
            else:
                filled = next(medians)
                ends = [f".{part}" for part in leaf.parts] or [""]
                part = leaf.parts or (leaf.kind,)
                new = [
                    (leaf.name + end, {"column": leaf.name, "is": it, "if_missing": float(median)})
                    for end, it, median in zip(ends, part, filled, strict=True)
                ]
            self.widths.append(len(new))
            for name, said in new:
                # A column of the table may have the name that an indicator would get.
                while name in self.about:
                    name += "'"
                self.about[name] = said
        self.names = list(self.about)

    @property
    def is_plain(self) -> bool:
        """Whether all columns were numbers, so that only missing values may have changed."""
        return all(leaf.kind == "number" and len(leaf.path) == 1 for leaf in self.leaves)

    def of_kind(self, *kinds: str) -> list[Leaf]:
        """The columns of some kinds."""
        return [leaf for leaf in self.leaves if leaf.kind in kinds]

    @property
    def n_indicators(self) -> int:
        """How many columns text became."""
        return sum(width for leaf, width in zip(self.leaves, self.widths, strict=True) if leaf.kind == "text")

    def transform(self, table: "pa.Table", order: Literal["C", "F"] = "C") -> "Encoded":
        """The numbers of some rows, which must have the columns that were learnt from; ``order`` is that of X in memory."""
        by_path = {leaf.path: values for leaf, values in leaves_of(table.select(self.columns), self.leaves)}
        out = np.empty((table.num_rows, len(self.names)), order=order)
        filled: dict[str, int] = {}
        unknown: dict[str, int] = {}
        at = 0
        medians, indicators = iter(self.medians), iter(self.indicators)
        for leaf, width in zip(self.leaves, self.widths, strict=True):
            if leaf.kind == "text":
                column, (texts, codes) = next(indicators), coded_texts(by_path[leaf.path])
                out[:, at : at + width] = column.transform(texts, codes)
                if new := column.unknown(texts, np.bincount(codes, minlength=len(texts))):
                    unknown[leaf.name] = new
            elif not leaf.is_left_out:
                numbers, median = numbers_of(leaf, by_path[leaf.path]), next(medians)
                gone = np.isnan(numbers)
                if gone.any():
                    # The parts of a date are missing together: one value.
                    filled[leaf.name] = int(gone[:, 0].sum())
                    numbers = np.where(gone, median, numbers)
                out[:, at : at + width] = numbers
            at += width
        return Encoded(out, filled, unknown)

    def for_workers(self) -> "Encoding":
        """The same numbers from less to send: without what is only told to people."""
        out = copy(self)
        out.about, out.indicators = {}, [column.short() for column in self.indicators]
        return out


@dataclass(frozen=True, eq=False)
class Encoded:
    """The numbers of some rows."""

    X: Floats
    filled: dict[str, int]
    """How many missing values of a column were filled in; texts that are missing have an indicator of their own instead."""
    unknown: dict[str, int]
    """How many values of a column of text are none of those that were learnt."""


def facts_of(leaf: Leaf, values: "pa.ChunkedArray") -> Facts | None:
    """What is to be known about a column, from its values; None if it can have none."""
    if leaf.kind == EMPTY:
        return None
    if leaf.kind == "text":
        texts, codes = coded_texts(values)
        counts = np.bincount(codes, minlength=len(texts))
        return TextFacts([it for it in texts if it is not None], counts[:-1], int(counts[-1]))
    numbers = numbers_of(whole(leaf), values)
    there = ~np.isnan(numbers[:, 0])
    medians = np.array([float(np.nanmedian(column)) if there.any() else np.nan for column in numbers.T])
    return NumberFacts(medians, leaf.kind == "date" and bool(np.nan_to_num(numbers[:, -1]).any()))


def whole(leaf: Leaf) -> Leaf:
    """A leaf with all parts that it may have."""
    return Leaf(leaf.path, leaf.kind, PARTS if leaf.kind == "date" else ())


# Words.


def counted(n: int, what: str) -> str:
    """A number of things in words."""
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def words(encoding: Encoding, filled: int) -> str:
    """What was done to the columns, in a sentence; empty if nothing was."""
    said = []
    text, dates = encoding.of_kind("text"), encoding.of_kind("date")
    if text:
        said.append(f"{counted(len(text), 'text column')} as {counted(encoding.n_indicators, 'indicator column')}")
    if dates:
        parts = max((leaf.parts for leaf in dates), key=len)
        said.append(f"{counted(len(dates), 'date')} as {', '.join(parts)}")
    for kind, become in (("yes or no", "0 and 1"), ("time", "hours"), ("duration", "seconds")):
        if some := encoding.of_kind(kind):
            name = {"yes or no": "yes-or-no column", "time": "time of day", "duration": "duration"}[kind]
            said.append(f"{counted(len(some), name)} as {become}".replace("time of days", "times of day"))
    nested = {leaf.path[0] for leaf in encoding.leaves if len(leaf.path) > 1}
    if nested:
        said.append(f"{counted(len(nested), 'nested column')} taken apart")
    out = ", ".join(said)
    if filled:
        values = f"{counted(filled, 'missing value')} filled by the median"
        out = f"{out}; {values}" if out else values
    left = [f"left out: {listed([leaf.name for leaf in some], 20)} ({why})" for why, some in _left_out(encoding).items()]
    return "; ".join(([out] if out else []) + left)


def _left_out(encoding: Encoding) -> dict[str, list[Leaf]]:
    return {why: some for why in LEFT_OUT if (some := encoding.of_kind(why))}

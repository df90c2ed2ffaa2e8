"""What the cells of a column are: numbers, dates, times, yes and no, or text; found out from cells that are text.

Cells that are numbers but for a few are no column of text: they are reported, with the options that settle it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin.data.dates import CLEAR, DATES, TIME, moment, zone_of
from mixbin.data.dialect import PLAIN, Dialect
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

MOSTLY = 0.5
"""A column is taken for one of numbers or dates if at least this share of its cells are; the others are then reported."""
MANY = 30
"""So it is if it has more different numbers or dates than this, whatever else it has."""
SAMPLE = 1_000
"""Cells that are looked at before all are."""
NUMBER_LIKE = re.compile(
    r"\(?[+-]?[$€£¥]?\s?[+-]?(?:\d{1,3}(?:([.,'’_ \u00a0\u202f])\d{3})(?:\1\d{3})*(?:[.,]\d+)?|\d+[.,]\d+|\d+)\s?"
    r"(?:%|€|\$|£|¥)?\)?",
    re.ASCII,
)
"""Numbers as people write them, with signs between thousands, decimal commas, currencies, per cent, or in brackets."""
WITH_UNIT = re.compile(
    r"(?P<before>[$€£¥]|EUR|USD|GBP|CHF|JPY)?\s?(?P<number>[+-]?\d(?:[\d.,'’_ \u00a0\u202f]*\d)?)"
    r"\s?(?P<after>[^\W\d_][^\d\s]{0,11}[23]?|[%€$£¥°‰][^\d\s]{0,11})?"
)
"""A number with its unit: a currency before it, or one word or sign after it."""
OTHERS = (
    (",", ""),
    (".", ","),
    (",", "."),
    (".", "'"),
    (".", "’"),
    (".", " "),
    (",", " "),
    (".", "_"),
)
"""Decimal signs and signs between thousands to propose."""
YES_OR_NO = {"true", "false"}


@dataclass(frozen=True)
class Kind:
    """What the cells of a column are."""

    name: str
    """"number", "yes or no", "date", "time", "text" or "nothing"."""
    order: str = ""
    """Of dates: one of ``DATES``, or several with + between them."""
    in_utc: bool = False
    """Of dates: whether their time zones count, since they differ."""
    unit: str = ""
    """Of numbers: what stands before or after each of them, such as % or EUR."""


@dataclass(frozen=True)
class Trouble:
    """Why a column cannot be used, and one of its cells that shows it."""

    kind: str
    """"number", "missing", "infinite", "dialect", "date", "order", "type" or "target"."""
    column: str
    row: int
    value: str
    proposals: tuple[tuple[str, str], ...] = ()
    """Decimal signs and signs between thousands with which all cells are numbers."""
    file: str = ""
    """Of a folder: which of its files."""

    def of_target(self) -> "Trouble":
        """The same of the column to predict, which can neither be left out nor be text."""
        return replace(self, kind=self.kind if self.kind in ("dialect", "infinite") else "target")


def at(trouble: Trouble, row: int, file: str) -> Trouble:
    """The same in a row of a file of a folder."""
    return replace(trouble, row=row, file=file)


class Unreadable(InvalidInput):
    """A column that cannot be used; whoever reads the table collects these."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.kind)
        self.trouble = trouble


class Cells:
    """The cells of one column of text, without the spaces around them."""

    def __init__(self, name: str, values: "pa.ChunkedArray", dialect: Dialect) -> None:
        self.name, self.dialect = name, dialect
        self.values = trimmed(values)
        self._distinct: tuple[list[str], NDArray[np.intp]] | None = None

    @property
    def distinct(self) -> tuple[list[str], NDArray[np.intp]]:
        """The different texts, and which of them stands in each row (-1 for a missing one)."""
        if self._distinct is None:
            encoded = self.values.dictionary_encode().combine_chunks()
            if hasattr(encoded, "chunks"):  # several chunks in older versions of Arrow
                encoded = encoded.unify_dictionaries().chunk(0)
            texts = encoded.dictionary.to_pylist()
            codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)
            gone = np.array([self.dialect.is_missing(text) for text in texts] + [True])
            codes = np.where(gone[codes], -1, codes)
            self._distinct = texts, codes
        return self._distinct

    def counts(self) -> NDArray[np.intp]:
        """How many rows have each of the different texts."""
        texts, codes = self.distinct
        return np.bincount(codes[codes >= 0], minlength=len(texts))

    def first(self, texts: Sequence[int] | NDArray[np.intp]) -> int:
        """The first row that has one of these texts, which are given by their places."""
        return int(np.flatnonzero(np.isin(self.distinct[1], texts))[0])

    def trouble(self, kind: str, texts: Sequence[int] | NDArray[np.intp], **more: Any) -> Unreadable:
        """The error for a column in which some texts are wrong."""
        row = self.first(texts)
        return Unreadable(Trouble(kind, self.name, row, repr(self.distinct[0][self.distinct[1][row]]), **more))

    # What they are.

    def quick_numbers(self) -> NDArray[np.float64] | None:
        """The numbers of a column that has nothing else; None if there is any other cell, even a missing one."""
        import pyarrow as pa
        from pyarrow import compute

        if self.values.null_count or not self.dialect.is_usual:
            return None
        try:
            return self.dialect.without_missing(np.asarray(compute.cast(self.values, pa.float64()).to_numpy()))
        except pa.ArrowInvalid:
            return None

    def kind(self) -> Kind:
        """What the cells are; raises ``Unreadable`` for what is neither one thing nor another."""
        texts, _ = self.distinct
        counts = self.counts()
        there = np.flatnonzero(counts)
        if not there.size:
            return Kind("nothing")
        names = [texts[i] for i in there]
        numbers = np.array([self.dialect.number(text) is not None for text in names])
        if numbers.all():
            return Kind("text" if _are_codes(names) else "number")
        if unit := _common_unit(names):
            return self._with_unit(unit, names, there)
        if all(text.lower() in YES_OR_NO for text in names):
            return Kind("yes or no")
        dates = self._dates(names, there)
        if dates is not None:
            return dates
        if np.mean([re.fullmatch(TIME, text) is not None for text in names]) == 1:
            return Kind("time")
        cells = counts[there]
        like = np.array([it or NUMBER_LIKE.fullmatch(text) is not None for text, it in zip(names, numbers, strict=True)])
        if _mostly(like, cells) and not numbers[like].all():
            proposals = _proposals([text for text, it in zip(names, like, strict=True) if it])
            raise self.trouble("dialect", there[like & ~numbers], proposals=proposals)
        if _mostly(numbers, cells):
            raise self.trouble("number", there[~numbers])
        return Kind("text")

    def _with_unit(self, unit: str, names: list[str], there: NDArray[np.intp]) -> Kind:
        """Numbers that all have this unit; raises ``Unreadable`` if they are written in another way."""
        bare = [_without(unit, text) for text in names]
        if all(self.dialect.number(text) is not None for text in bare):
            return Kind("number", unit=unit)
        wrong = [place for place, text in zip(there, bare, strict=True) if self.dialect.number(text) is None]
        raise self.trouble("dialect", wrong, proposals=_proposals(bare))

    def _dates(self, names: list[str], there: NDArray[np.intp]) -> Kind | None:
        """Whether the texts are dates, and in which order; None if they are not."""
        some = names[:: max(1, len(names) // 20)]
        first = [order for order, pattern in DATES.items() if any(re.match(pattern, text) for text in some)]
        shares = {order: np.array([re.match(DATES[order], text) is not None for text in names]) for order in first}
        counts = self.counts()[there]
        clear = [order for order in CLEAR if order in shares]
        if clear and np.any([shares[order] for order in clear], axis=0).all():
            zones = {zone_of(text) for text in names}
            return Kind("date", "+".join(clear), in_utc=len(zones) > 1)
        found = {order: it for order, it in shares.items() if _mostly(it, counts)}
        if not found:
            return None
        if "dmy" in found and "mdy" in found:
            parts = np.array([re.split("[-/]", text)[:2] for text, it in zip(names, found["dmy"], strict=True) if it], dtype=int)
            later = np.asarray((parts > 12).any(axis=0))
            if later.all():
                return None
            if not later.any() and self.dialect.day_first is None:
                raise self.trouble("order", there)
            day_first = bool(later[0]) if later.any() else bool(self.dialect.day_first)
            order = "dmy" if day_first else "mdy"
        else:
            order = next(iter(found))
        if not found[order].all():
            raise self.trouble("date", there[~found[order]])
        return Kind("date", order)

    # Their values.

    def read(self, kind: Kind) -> "pa.ChunkedArray":
        """The cells as this kind, missing ones null; raises ``Unreadable`` at a cell that is something else."""
        import pyarrow as pa

        texts, codes = self.distinct
        if kind.name == "nothing":
            return pa.chunked_array([pa.nulls(len(codes))])
        # The last entry stands for missing cells.
        if kind.name == "text":
            values: pa.Array = pa.array([*texts, None], pa.string())
            return pa.chunked_array([values.take(pa.array(np.where(codes < 0, len(texts), codes)))])
        if kind.name in ("date", "time"):
            return pa.chunked_array([self._moments(kind)])
        used = np.bincount(codes[codes >= 0], minlength=len(texts)) > 0
        if kind.name == "yes or no":
            wrong = [i for i, text in enumerate(texts) if used[i] and text.lower() not in YES_OR_NO]
            of: list[Any] = [text.lower() == "true" for text in texts]
        else:
            of = [self.dialect.number(_without(kind.unit, text)) if used[i] else None for i, text in enumerate(texts)]
            wrong = [i for i, number in enumerate(of) if used[i] and number is None]
        if wrong:
            raise self.trouble("number" if kind.name == "number" else "date", wrong)
        values = pa.array([*of, None], pa.float64() if kind.name == "number" else pa.bool_())
        return pa.chunked_array([values.take(pa.array(np.where(codes < 0, len(texts), codes)))])

    def _moments(self, kind: Kind) -> "pa.Array":
        """Dates and times as such."""
        import pyarrow as pa

        texts, codes = self.distinct
        patterns = [re.compile(TIME if kind.name == "time" else DATES[order]) for order in kind.order.split("+")]
        moments = np.full(len(texts) + 1, np.datetime64("NaT", "us"))
        wrong = []
        for i in np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(texts))):
            found = next((it for it in (pattern.match(texts[i]) for pattern in patterns) if it is not None), None)
            at = None if found is None else moment(found.groupdict(), kind.in_utc)
            if at is None:
                wrong.append(int(i))
            else:
                moments[i] = at
        if wrong:
            raise self.trouble("date", wrong)
        out = pa.array(moments[codes])
        return out if kind.name == "date" else out.cast(pa.time64("us"))


def trimmed(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Texts without the spaces around them."""
    import pyarrow as pa
    from pyarrow import compute

    if values.type != pa.string():
        values = values.cast(pa.string())
    return compute.utf8_trim_whitespace(values)


def _are_codes(names: Sequence[str]) -> bool:
    """Whether whole numbers are names, since some begin with a zero, as postal codes do."""
    return any(len(text) > 1 and text[0] == "0" for text in names) and all(text.isdigit() for text in names)


def _common_unit(names: Sequence[str]) -> str:
    """What stands before or after all these numbers; empty if that is nothing, or not always the same."""
    units = set()
    for text in names:
        found = WITH_UNIT.fullmatch(text)
        if found is None or bool(found["before"]) == bool(found["after"]):
            return ""
        units.add(found["before"] or found["after"])
        if len(units) > 1:
            return ""
    return units.pop()


def _without(unit: str, text: str) -> str:
    """A number without its unit; the text as it is if it has another or none, so that it is no number."""
    if not unit:
        return text
    found = WITH_UNIT.fullmatch(text)
    return str(found["number"]) if found is not None and (found["before"] or found["after"]) == unit else f"{text} ?"


def _proposals(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Decimal signs and signs between thousands with which all these texts are numbers."""
    dialects = ((pair, Dialect(decimal=pair[0], thousands=pair[1])) for pair in OTHERS)
    return tuple(pair for pair, dialect in dialects if all(dialect.number(text) is not None for text in texts))


def _mostly(some: NDArray[np.bool_], cells: NDArray[np.intp]) -> bool:
    """Whether most cells are such, or many different ones; both are given for the different texts."""
    return bool(cells[some].sum() >= MOSTLY * cells.sum() or np.count_nonzero(some) > MANY)


# What may have been misread.


def could_be_thousands(values: "pa.ChunkedArray") -> str | None:
    """A number such as 234.301, if all numbers with a point have three digits after it, as German thousands have."""
    from pyarrow import compute

    texts = trimmed(values.slice(0, SAMPLE)).to_pylist()
    grouped = r"[+-]?[1-9]\d{0,2}\.\d{3}"
    some = [text for text in texts if text and "." in text]
    if len(some) < 2 or not all(re.fullmatch(grouped, text) for text in some):
        return None
    # Fixed decimals leave no number without a point; thousands leave those below 1,000 so.
    there = trimmed(values).drop_null()
    pointed = compute.match_substring(there, ".")
    matched = compute.match_substring_regex(there, f"^{grouped}$")
    return some[0] if compute.all(compute.equal(pointed, matched)).as_py() else None


def is_id_like(numbers: NDArray[np.float64], fewest: int = 20) -> bool:
    """Whether every row has another whole number."""
    if len(numbers) < fewest:
        return False
    first = numbers[:SAMPLE]
    if not (np.isfinite(first).all() and np.all(first == np.rint(first)) and np.unique(first).size == first.size):
        return False
    return bool(np.isfinite(numbers).all() and np.all(numbers == np.rint(numbers)) and np.unique(numbers).size == numbers.size)


def is_plain_number(text: str) -> bool:
    """Whether a text is a number as computers write it."""
    return PLAIN.fullmatch(text) is not None

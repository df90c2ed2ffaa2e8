"""What may be misread in a table although every cell can be read: ids, totals, numbers that stand for gaps, dates as numbers."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.cells import is_id_like
from mixbin.data.troubles import as_typed

EXACT = 2.0**53
"""Whole numbers from here on are rounded."""
FOR_GAPS = tuple(sign * number for number in (99.0, 999.0, 9999.0, 99999.0) for sign in (-1, 1))
"""Numbers that people write for a missing value."""
TOTALS = ("total", "totals", "grand total", "sum", "summe", "gesamt", "gesamtsumme", "insgesamt", "all")
"""What stands in front of a row of sums, in small letters."""


def about_numbers(name: str, numbers: Floats) -> Iterator[str]:
    """What may be wrong with a column that is read as numbers, gaps left out."""
    there = numbers[~np.isnan(numbers)]
    leave_out = f"--ignore {as_typed(name)}"
    if there.size and np.abs(there).max() >= EXACT and np.all(there == np.rint(there)):
        yield f"column {name!r} has whole numbers of more than 15 digits, as ids have, which are rounded; if so, add {leave_out}"
    elif there.size == numbers.size and is_id_like(numbers):
        yield f"column {name!r} has another whole number in every row, as an id has; if so, add {leave_out}"
    elif _are_dates(there):
        yield (
            f"column {name!r} has numbers such as {there[0]:.0f}, which could be dates; if so, write them as "
            f"{there[0] // 10_000:.0f}-{there[0] // 100 % 100:02.0f}-{there[0] % 100:02.0f}"
        )
    elif (found := stands_for_gaps(there)) is not None:
        value, times = found
        yield (
            f"column {name!r} has {value:g} in {times:,} rows, far from its other numbers; if it stands for a missing value, add "
            f"--missing {value:g}"
        )


def _are_dates(numbers: Floats) -> bool:
    """Whether all are whole numbers such as 20200131, and many differ."""
    first = numbers[:100]
    if first.size < 10 or not (_date_like(first) and np.unique(numbers[:10_000]).size >= 10):
        return False
    return _date_like(numbers)


def _date_like(numbers: Floats) -> bool:
    month, day = numbers // 100 % 100, numbers % 100
    inside = (numbers >= 19000101) & (numbers <= 21001231) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return bool(np.all(inside & (numbers == np.rint(numbers))))


def stands_for_gaps(numbers: Floats) -> tuple[float, int] | None:
    """A number such as -999 that occurs several times, outside of all others and farther from them than they are apart."""
    if numbers.size < 20:
        return None
    for value in {float(numbers.min()), float(numbers.max())}:
        if value in FOR_GAPS and np.count_nonzero(numbers == value) >= 2:
            others = numbers[numbers != value]
            if np.unique(others[:1_000]).size >= 5:
                low, high = float(others.min()), float(others.max())
                if min(abs(value - low), abs(value - high)) > high - low:
                    return value, int(np.count_nonzero(numbers == value))
    return None


def about_texts(name: str, texts: Sequence[str]) -> Iterator[str]:
    """What may be wrong with a column of text."""
    first: dict[str, str] = {}
    for text in texts:
        other = first.setdefault(text.casefold(), text)
        if other != text:
            a, b = sorted((other, text))
            yield f"column {name!r} has texts that differ in capital letters alone, such as {a!r} and {b!r}; they count as two"
            return


def about_last_row(columns: Sequence[tuple[str, Floats]], words: Sequence[str]) -> Iterator[str]:
    """Whether the last row is a total of the others, by the numbers of the table and by the texts of that row."""
    sums = [name for name, numbers in columns if _ends_in_sum(numbers)]
    word = next((it for it in words if re.sub(r"[\s:.]+$", "", it.strip()).lower() in TOTALS), None)
    if len(sums) > 1 or (sums and word is not None):
        named = ", ".join(map(repr, sums[:3]))
        yield f"the last row looks like a total: it has the sum of all rows above in {named}; if so, remove it from the file"
    elif word is not None and columns and len(columns[0][1]) > 2:
        yield f"the last row has {word!r} in a column of text and may be a total; if so, remove it from the file"


def _ends_in_sum(numbers: NDArray[np.float64]) -> bool:
    above = numbers[:-1]
    if numbers.size < 4 or not np.isfinite(numbers[-1]):
        return False
    total = float(np.nansum(above))
    largest = float(np.nanmax(np.abs(above))) if not np.isnan(above).all() else np.inf
    return bool(abs(numbers[-1]) > largest and abs(total - numbers[-1]) <= 1e-6 * abs(total))

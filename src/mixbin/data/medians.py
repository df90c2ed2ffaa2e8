"""Exact medians of columns that are never in memory as a whole: by counting, in a few passes over the rows.

A number becomes a key of 64 bits that sorts as the numbers do. A pass counts keys by their first bits. The bits of the median
are then known that far, and the next pass counts only what begins with them. Counts are whole numbers and can be added up in any
order: the median does not depend on how the rows are divided.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats

Keys = NDArray[np.uint64]
SHIFTS = (0, 16, 32, 48)
"""How many last bits of a key may be left out."""
MOST_KEYS = 2**13
"""More different keys than this are counted without their last bits."""
SIGN = np.uint64(2**63)


def keys_of(numbers: Floats) -> Keys:
    """Keys in the order of the numbers; gaps are left out."""
    there = np.ascontiguousarray(numbers[~np.isnan(numbers)]) + 0.0  # no -0.0
    bits = there.view(np.uint64)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def number_of(key: np.uint64) -> float:
    """The number that has this key."""
    bits = key ^ SIGN if key & SIGN else ~key
    return float(np.array([bits], dtype=np.uint64).view(np.float64)[0])


@dataclass(frozen=True, eq=False)
class Counts:
    """How often keys occur, all of them without their last ``shift`` bits."""

    keys: Keys
    counts: NDArray[np.int64]
    shift: int = 0

    @classmethod
    def of(cls, keys: Keys, most: int = 48, weights: NDArray[np.int64] | None = None) -> "Counts":
        """The keys counted, at most ``most`` bits left out."""
        if weights is not None:
            return _fewer(_summed(keys, weights, 0), most)
        # Sorting all keys is most of the time; the first thousand tell whether their last bits may count.
        shift = 0 if keys.size <= MOST_KEYS or np.unique(keys[:1_000]).size <= 300 else most
        found, counts = np.unique(keys >> np.uint64(shift), return_counts=True)
        return _fewer(cls(found, counts.astype(np.int64), shift), most)

    @property
    def total(self) -> int:
        """How many numbers were counted."""
        return int(self.counts.sum())

    def without(self, shift: int) -> "Counts":
        """With as many bits left out, at least."""
        if shift <= self.shift:
            return self
        return _summed(self.keys >> np.uint64(shift - self.shift), self.counts, shift)

    def plus(self, other: "Counts", most: int = 48) -> "Counts":
        """Both together."""
        shift = max(self.shift, other.shift)
        a, b = self.without(shift), other.without(shift)
        return _fewer(_summed(np.concatenate([a.keys, b.keys]), np.concatenate([a.counts, b.counts]), shift), most)

    def at(self, rank: int) -> tuple[np.uint64, int]:
        """The key of that rank, and the rank among the numbers that share it."""
        ends = np.cumsum(self.counts)
        place = int(np.searchsorted(ends, rank, side="right"))
        return self.keys[place], rank - int(ends[place] - self.counts[place])


NONE = Counts(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))


def _summed(keys: Keys, counts: NDArray[np.int64], shift: int) -> Counts:
    found, places = np.unique(keys, return_inverse=True)
    totals = np.zeros(found.size, dtype=np.int64)
    np.add.at(totals, places, counts)
    return Counts(found, totals, shift)


def _fewer(counts: Counts, most: int) -> Counts:
    for shift in SHIFTS:
        if counts.shift < shift <= most and counts.keys.size > MOST_KEYS:
            counts = counts.without(shift)
    return counts


@dataclass(frozen=True)
class Wanted:
    """A number to find by its rank among those whose keys begin with ``prefix``."""

    prefix: np.uint64
    shift: int
    """The bits of the key that are not known yet."""
    rank: int

    def chosen(self, keys: Keys) -> Keys:
        """The keys among which it is."""
        same: NDArray[np.bool_] = keys >> np.uint64(self.shift) == self.prefix
        return np.compress(same, keys)

    def narrowed(self, counts: Counts) -> "Wanted":
        """After a pass has counted these keys."""
        key, rank = counts.at(self.rank)
        return Wanted(key, counts.shift, rank)


def middle(counts: Counts) -> list[Wanted]:
    """The one or two numbers of which the median is the mean; none where there is no number."""
    n = counts.total
    return [Wanted(*_key_and_shift(counts, rank)) for rank in sorted({(n - 1) // 2, n // 2})] if n else []


def _key_and_shift(counts: Counts, rank: int) -> tuple[np.uint64, int, int]:
    key, inside = counts.at(rank)
    return key, counts.shift, inside


def median(found: list[Wanted]) -> float:
    """The median from the numbers in the middle, as NumPy computes it; NaN if there are none."""
    return float(np.mean([number_of(it.prefix) for it in found])) if found else float("nan")

"""Single moves of a binary point in lazily growing batches, the most promising first."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from mixbin.sets._select import largest
from mixbin.sets.base import Bools, Floats, Moves

Indices = NDArray[np.intp]
Allowed = Callable[[Indices, Indices], Bools]

FIRST_SIDE = 32
"""The first batches pair this many entries that are on with as many that are off."""
RANKED_FIRST = 1 << 10
"""The best entries, this many, are found in linear time; all others are sorted only if a caller asks for more."""
LARGEST_BATCH = 1 << 17
"""A batch holds at most this many moves."""


def singles(off: Indices, on: Indices, change: Floats | None) -> Iterator[Moves]:
    """The given moves in ascending order of ``change``, at most LARGEST_BATCH at a time."""
    for order in _ascending(change, off.size):
        for start in range(0, order.size, LARGEST_BATCH):
            part = order[start : start + LARGEST_BATCH]
            yield off[part], on[part]


def pairs(off: Indices, on: Indices, grad: Floats | None, allowed: Allowed | None = None) -> Iterator[Moves]:
    """All pairs (off, on) that are ``allowed``, the most promising first; index -1 stands for "no entry" and has gradient 0.

    The first square pairs the 32 entries of ``off`` with the highest gradient and the 32 entries of ``on`` with the lowest. Every
    further square has twice the side, and yields only the pairs that the squares before it did not have.
    """
    rows, columns = _Ranked(off, grad, -1.0), _Ranked(on, grad, 1.0)
    done, side = 0, FIRST_SIDE
    while done < max(off.size, on.size):
        # The new part of the square: the new rows in full, then the old rows with the new columns.
        yield from _rectangle(rows.first(side)[done:], columns.first(side), grad, allowed)
        yield from _rectangle(rows.first(done), columns.first(side)[done:], grad, allowed)
        done, side = side, 2 * side


class _Ranked:
    """Indices in ascending order of sign * gradient; the order is computed only as far as a caller asks for it."""

    def __init__(self, index: Indices, grad: Floats | None, sign: float) -> None:
        self.index = index
        self.order = _ascending(None if grad is None else sign * gradient_at(grad, index), index.size)
        self.known = index[next(self.order)]

    def first(self, n: int) -> Indices:
        """The first ``n`` indices, or all if there are fewer."""
        if self.known.size < min(n, self.index.size):
            self.known = np.concatenate([self.known, *(self.index[part] for part in self.order)])
        return self.known[:n]


def _rectangle(off: Indices, on: Indices, grad: Floats | None, allowed: Allowed | None) -> Iterator[Moves]:
    """All pairs of the two lists in batches, each in ascending order of the first-order change."""
    if off.size == 0 or on.size == 0:
        return
    width = min(on.size, LARGEST_BATCH)
    height = LARGEST_BATCH // width
    for top in range(0, off.size, height):
        for left in range(0, on.size, width):
            some_off, some_on = off[top : top + height], on[left : left + width]
            a, b = np.repeat(some_off, some_on.size), np.tile(some_on, some_off.size)
            keep = (a >= 0) | (b >= 0)
            if allowed is not None:
                keep &= allowed(a, b)
            a, b = a[keep], b[keep]
            if grad is not None:
                with np.errstate(over="ignore"):  # a difference that overflows to infinity still sorts into the right place
                    order = np.argsort(gradient_at(grad, b) - gradient_at(grad, a), kind="stable")
                a, b = a[order], b[order]
            if a.size:
                yield a, b


def gradient_at(grad: Floats, index: Indices) -> Floats:
    """``grad[index]`` with 0 where the index is -1."""
    return np.where(index >= 0, grad[index], 0.0)


def _ascending(key: Floats | None, size: int) -> Iterator[Indices]:
    """The positions 0, ..., size - 1 in ascending order of ``key``: first the RANKED_FIRST lowest, then all others."""
    if key is None:
        yield np.arange(size)
        return
    head = largest(-key, RANKED_FIRST)
    for part in (np.flatnonzero(head), np.flatnonzero(~head)):
        yield part[np.argsort(key[part], kind="stable")]

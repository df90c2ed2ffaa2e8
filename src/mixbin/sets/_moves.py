"""Single moves of a binary point in lazily growing batches, the most promising first."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from mixbin.sets._select import largest
from mixbin.sets.base import Bools, Floats, Moves

Indices = NDArray[np.intp]
Allowed = Callable[[Indices, Indices], Bools]

FIRST = 32
"""Side of the first square of pairs."""
HEAD = 1 << 10
"""So many best entries are found in linear time; only who asks for more pays for a sort."""
BATCH = 1 << 17
"""No batch holds more moves than this."""


def singles(off: Indices, on: Indices, change: Floats | None) -> Iterator[Moves]:
    """The given moves in ascending order of ``change``, at most BATCH at a time."""
    order = np.arange(off.size) if change is None else np.argsort(change, kind="stable")
    for start in range(0, off.size, BATCH):
        part = order[start : start + BATCH]
        yield off[part], on[part]


def pairs(off: Indices, on: Indices, grad: Floats | None, allowed: Allowed | None = None) -> Iterator[Moves]:
    """All pairs (off, on) that are ``allowed``, in squares that double their side; -1 stands for none, with gradient 0.

    The first square pairs the 32 entries of ``off`` of the highest gradient with the 32 entries of ``on`` of the lowest.
    """
    if off.size == 0 or on.size == 0:
        return
    rows, columns = _ordered(off, grad, -1.0), _ordered(on, grad, 1.0)
    n_off, n_on, row_order, column_order = off.size, on.size, next(rows), next(columns)
    done, side = 0, FIRST
    while done < max(n_off, n_on):
        if side > HEAD and row_order.size < n_off:
            row_order = np.concatenate([row_order, next(rows)])
        if side > HEAD and column_order.size < n_on:
            column_order = np.concatenate([column_order, next(columns)])
        # The square without the one before it: the new rows in full, the old rows with the new columns.
        yield from _rectangle(row_order[done:side], column_order[:side], grad, allowed)
        yield from _rectangle(row_order[:done], column_order[done:side], grad, allowed)
        done, side = side, 2 * side


def _rectangle(off: Indices, on: Indices, grad: Floats | None, allowed: Allowed | None) -> Iterator[Moves]:
    """All pairs of the two lists in batches, each in ascending order of the first-order change."""
    if off.size == 0 or on.size == 0:
        return
    width = min(on.size, BATCH)
    height = BATCH // width
    for top in range(0, off.size, height):
        for left in range(0, on.size, width):
            some_off, some_on = off[top : top + height], on[left : left + width]
            a, b = np.repeat(some_off, some_on.size), np.tile(some_on, some_off.size)
            keep = (a >= 0) | (b >= 0)
            if allowed is not None:
                keep &= allowed(a, b)
            a, b = a[keep], b[keep]
            if grad is not None:
                order = np.argsort(gradient_at(grad, b) - gradient_at(grad, a), kind="stable")
                a, b = a[order], b[order]
            if a.size:
                yield a, b


def gradient_at(grad: Floats, index: Indices) -> Floats:
    """``grad[index]`` with 0 where the index is -1."""
    return np.where(index >= 0, grad[index], 0.0)


def _ordered(index: Indices, grad: Floats | None, sign: float) -> Iterator[Indices]:
    """``index`` in ascending order of sign * gradient: first the HEAD best, then, when asked, the rest."""
    if grad is None or index.size == 0:
        yield index
        return
    key = sign * gradient_at(grad, index)
    head = largest(-key, HEAD)
    for part in (np.flatnonzero(head), np.flatnonzero(~head)):
        yield index[part[np.argsort(key[part], kind="stable")]]

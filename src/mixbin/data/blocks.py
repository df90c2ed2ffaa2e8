"""What one block of rows computes, and how the answers of several blocks are merged.

The same functions serve blocks in this process and blocks on a cluster. X of a block may be an array in any layout, a sparse
matrix, or rows that come in ``parts``. Every sum is computed on one BLAS thread from copies of a few rows at a time, in a buffer
whose layout and size depend on the number of rows and columns alone; sums over blocks follow a tree, a fixed order. So the bits
of an answer depend on the numbers in the blocks, the processor and the BLAS library, and not on the layout, the storage, the
number of workers or threads, or what was sent between them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats, is_finite
from mixbin.data.one_blas_thread import on_one_blas_thread
from mixbin.data.parts import BlockTable, BlockTarget, RowsInParts, columns_of, parts_of
from mixbin.problem import Indices

T = TypeVar("T")

BUFFER_ENTRIES = 2**17
"""Numbers in the buffer: few enough to stay in the processor's cache between two products."""
BRANCHES = 8
"""Partial sums that one node of the tree adds up."""


class Weights(NamedTuple):
    """The weights v of a block: of all its rows, or of ``rows`` where the others have none."""

    values: Floats
    rows: NDArray[np.int32] | None = None


class Moments(NamedTuple):
    """Sums over weighted rows z = (x, y), relative to a centre."""

    total: float  # sum v
    mean: Floats  # (d + e,)
    scatter: Floats  # sum v zhat zhat', zhat = z - mean


class Folds(NamedTuple):
    """The fold of each row of a block, as a number from 0 on."""

    of: NDArray[np.uint8]


class FoldSums(NamedTuple):
    """Plain sums over the rows z = (x, y) of each fold, relative to a centre near the mean of all rows.

    Folds are drawn at random, so their means are near that centre, too: no digits are lost when moments are made of the sums.
    """

    counts: Floats  # (folds,)
    sums: Floats  # (folds, d + e): sum z
    squares: Floats  # (folds, d + e, d + e): sum z z'


class Survey(NamedTuple):
    """What a first look at a block finds."""

    rows: int
    rows_y: int
    wrong: str | None  # why the block cannot be used
    mean: Floats
    squares: Floats  # the sum of squares of the columns, relative to their mean
    nbytes: int


def weights_of(v: Floats) -> Weights | None:
    """The weights of one block; None if no row has weight. If few rows do, only theirs are sent to workers."""
    with_weight = np.count_nonzero(v)
    if not with_weight:
        return None
    if 2 * with_weight >= v.size:
        return Weights(v)
    rows = np.flatnonzero(v)
    return Weights(v[rows], rows.astype(np.int32))


@on_one_blas_thread
def survey(X: Any, y: Any, names: tuple[str, str] = ("X", "y")) -> Survey:
    """Look at a block once: whether X and y have the same rows, all finite numbers; the mean and the spread of the columns."""
    X, y = X if isinstance(X, RowsInParts) else np.asarray(X), np.asarray(y)
    zeros = np.zeros(X.shape[1] + (y.shape[1] if y.ndim == 2 else 1))
    unsummed = Survey(len(X), len(y), None, zeros, zeros, 0)
    if not len(X) or len(X) != len(y):
        return unsummed
    for name, table in zip(names, (X, y), strict=True):
        if table.dtype.kind not in "buif":
            return unsummed._replace(wrong=f"{name} must be numbers, got dtype {table.dtype}")
    parts: list[Survey] = []
    for rows in _centred(X, y, zeros):
        if not is_finite(rows):
            row, column = np.argwhere(~np.isfinite(rows))[0]
            name, place = (names[0], column) if column < X.shape[1] else (names[1], column - X.shape[1])
            number = sum(part.rows for part in parts) + row
            wrong = f"{name} must be finite, got {rows[row, column]} in its row {number}, column {place}"
            return unsummed._replace(wrong=wrong)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = rows.mean(axis=0)
            rows -= mean
            squares = np.einsum("ij,ij->j", rows, rows)
        parts.append(Survey(len(rows), len(rows), None, mean, squares, 0))
    mean, variances = surveyed(parts)
    return Survey(len(X), len(y), None, mean, variances * len(X), X.nbytes + y.nbytes)


def surveyed(parts: Sequence[Survey]) -> tuple[Floats, Floats]:
    """The mean and the variances of the columns over several blocks."""
    n, mean, squares = 0, np.zeros(1), np.zeros(1)
    with np.errstate(over="ignore", invalid="ignore"):  # the problem refuses squares that overflow
        for part in parts:
            if part.rows:
                n += part.rows
                gap = part.mean - mean
                mean = mean + (part.rows / n) * gap
                squares = squares + part.squares + (part.rows * (1.0 - part.rows / n)) * gap * gap
        return mean, squares / n


@on_one_blas_thread
def moments(X: BlockTable, y: BlockTarget, weights: Weights, centre: Floats) -> Moments:
    """Each few rows are centred on their own mean: subtracting an outer product of means would lose digits."""
    roots, found, done = np.sqrt(weights.values), None, 0
    for block in _centred(X, y, centre, weights.rows):
        part = slice(done, done + len(block))
        done = part.stop
        total = float(weights.values[part].sum())
        if total > 0:
            mean = weights.values[part] @ block / total
            block -= mean
            block *= roots[part, None]
            one = Moments(total, mean, block.T @ block)
            found = one if found is None else _added(found, one)
    assert found is not None
    return found


@on_one_blas_thread
def merged(parts: Sequence[Moments]) -> Moments:
    """The moments of several blocks, added in their order."""
    first, *others = parts
    for part in others:
        first = _added(first, part)
    return first


@on_one_blas_thread
def fold_sums(X: BlockTable, y: BlockTarget, folds: Folds, n_folds: int, centre: Floats) -> FoldSums:
    """The sums of each fold over the rows of a block, in one pass."""
    columns, done = len(centre), 0
    counts = np.bincount(folds.of, minlength=n_folds).astype(np.float64)
    sums, squares = np.zeros((n_folds, columns)), np.zeros((n_folds, columns, columns))
    for block in _centred(X, y, centre):
        of = folds.of[done : done + len(block)]
        done += len(block)
        for fold in range(n_folds):
            rows = np.asfortranarray(block[of == fold])
            sums[fold] += rows.sum(axis=0)
            squares[fold] += rows.T @ rows
    return FoldSums(counts, sums, squares)


@on_one_blas_thread
def added_folds(parts: Sequence[FoldSums]) -> FoldSums:
    """The sums of several blocks, added in their order."""
    first, *others = parts
    for part in others:
        first = FoldSums(*(a + b for a, b in zip(first, part, strict=True)))
    return first


def _added(a: Moments, b: Moments) -> Moments:
    """The moments of two sets of rows: the two scatters, and that of their means."""
    total = a.total + b.total
    gap, share = b.mean - a.mean, b.total / total
    scatter = a.scatter + b.scatter
    scatter += (a.total * share) * np.outer(gap, gap)
    return Moments(total, a.mean + share * gap, scatter)


@on_one_blas_thread
def gradient(X: BlockTable, y: BlockTarget, K: Floats, A: Floats, offset: Floats, mean: Floats) -> Floats:
    """(K zhat)' (A zhat - offset) for the rows of a block: two thin products."""
    e, out, done = len(K), np.empty(len(X)), 0
    thin = np.vstack([K, A])
    for block in _centred(X, y, mean):
        both = thin @ block.T
        both[e:] -= offset[:, None]
        np.einsum("ij,ij->j", both[:e], both[e:], out=out[done : done + len(block)])
        done += len(block)
    return out


@on_one_blas_thread
def images(X: BlockTable, y: BlockTarget, thin: Floats, mean: Floats) -> Floats:
    """``thin @ zhat`` for the rows of a block."""
    return np.hstack([thin @ block.T for block in _centred(X, y, mean)])


@on_one_blas_thread
def taken(X: BlockTable, y: BlockTarget, rows: Indices, mean: Floats) -> Floats:
    """Zhat of these rows of a block, given in ascending order."""
    return np.vstack([block.copy() for block in _centred(X, y, mean, rows)])


@on_one_blas_thread
def triangle(X: BlockTable, y: BlockTarget, centre: Floats) -> Floats:
    """The R factor of the rows (1, z): its first row holds the mean, the others are the R factor of the centred rows."""
    R = np.empty((0, len(centre) + 1))
    for block in _centred(X, y, centre):
        R = stacked([R, np.hstack([np.ones((len(block), 1)), block])])
    return R


@on_one_blas_thread
def stacked(parts: Sequence[Floats]) -> Floats:
    """The R factor of all rows, from the R factors of several blocks."""
    return np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))


def summary_of(R: Floats) -> tuple[Floats, Floats, int]:
    """From ``triangle``: the mean of the rows, the R factor of the centred rows over the root of their number, and the number."""
    n = round(R[0, 0] ** 2)
    return R[0, 1:] / R[0, 0], R[1:, 1:] / np.sqrt(n), n


def _centred(X: BlockTable, y: BlockTarget, shift: Floats, rows: NDArray[np.integer] | None = None) -> Iterator[Floats]:
    """Z - shift of ``rows`` (ascending), or of all rows: a few at a time in one buffer, stored column by column.

    How many rows come at a time depends on the number of rows and columns, not on the parts that X comes in.
    """
    d, columns = X.shape[1], len(shift)
    left = X.shape[0] if rows is None else len(rows)
    most = max(columns, BUFFER_ENTRIES // columns)
    buffer, done = np.empty(min(left, most) * columns), 0
    block = _cut(buffer, min(left, most), columns)
    for x, targets, place in parts_of(X, y):
        targets = targets if targets.ndim == 2 else targets[:, None]
        wanted = None if rows is None else rows[slice(*np.searchsorted(rows, [place.start, place.stop]))] - place.start
        n, start = len(targets) if wanted is None else len(wanted), 0
        by_columns = columns_of(x)
        while start < n:
            step = min(n - start, len(block) - done)
            part = slice(start, start + step) if wanted is None else wanted[start : start + step]
            into = block[done : done + step]
            if by_columns is None:
                np.subtract(x[part], shift[:d], out=into[:, :d], dtype=np.float64)
            else:
                for column, out, by in zip(by_columns, into.T, shift, strict=False):
                    np.subtract(column[part], by, out=out, dtype=np.float64)
            np.subtract(targets[part], shift[d:], out=into[:, d:], dtype=np.float64)
            start, done = start + step, done + step
            if done == len(block):
                yield block
                left, done = left - len(block), 0
                block = _cut(buffer, min(left, most), columns)


def _cut(buffer: Floats, rows: int, columns: int) -> Floats:
    """The beginning of the buffer as a table stored column by column, without gaps."""
    return buffer[: rows * columns].reshape(columns, rows).T


def tree(parts: Sequence[T], merge: Callable[[list[T]], T]) -> T:
    """Merge all parts, neighbours first, in an order that depends on their number alone."""
    level = list(parts)
    while len(level) > 1:
        level = [merge(level[i : i + BRANCHES]) if i + 1 < len(level) else level[i] for i in range(0, len(level), BRANCHES)]
    return level[0]

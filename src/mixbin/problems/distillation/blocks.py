"""Candidate rows in blocks, one after the other: what a block computes, and how the answers of all blocks are put together.

The same code serves blocks in this process and blocks on a cluster (see ``dask_rows``). A block is X and y of its rows, which
stay as they are: an array in any layout, a sparse matrix, or rows that are read in ``parts``. All sums are made from copies of
a few rows at a time, in one buffer whose layout and size depend on the number of rows and columns alone, on one BLAS thread;
sums over blocks are made in a fixed order, a tree. So the bits of an answer depend on the numbers in the blocks, the processor
and the BLAS library, and not on the layout, the storage, the number of workers or threads, or what was sent between them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._validate import Floats, is_finite
from mixbin.problem import Indices
from mixbin.problems.distillation.one_blas_thread import on_one_blas_thread
from mixbin.problems.distillation.parts import Block, InParts, Numbers, columns_of, parts_of

T = TypeVar("T")

BUFFER_ENTRIES = 2**17
"""Numbers in the buffer: few enough to stay in the processor's cache between two products."""
WIDTH = 8
"""Branches of the tree: so many partial sums are added in one place."""


class Weights(NamedTuple):
    """The weights v of a block's rows, or of those that have one."""

    values: Floats
    rows: NDArray[np.int32] | None = None


class Moments(NamedTuple):
    """Of weighted rows z = (x, y), relative to a centre."""

    total: float  # sum v
    mean: Floats  # (d + e,)
    scatter: Floats  # sum v zhat zhat', zhat = z - mean


class Survey(NamedTuple):
    """What is asked of a block before anything is computed from it."""

    rows: int
    rows_y: int
    wrong: str | None  # what is not as it must be
    mean: Floats
    squares: Floats  # the sum of squares of the columns, relative to their mean
    nbytes: int


def weights_of(v: Floats) -> Weights | None:
    """The weights of one block; None where no row has one, few numbers where few rows have one."""
    with_weight = np.count_nonzero(v)
    if not with_weight:
        return None
    if 2 * with_weight >= v.size:
        return Weights(v)
    rows = np.flatnonzero(v)
    return Weights(v[rows], rows.astype(np.int32))


@on_one_blas_thread
def survey(X: Any, y: Any, names: tuple[str, str] = ("X", "y")) -> Survey:
    """Rows, columns and finiteness of a block; the mean and the spread of its columns."""
    X, y = X if isinstance(X, InParts) else np.asarray(X), np.asarray(y)
    width = X.shape[1] + (y.shape[1] if y.ndim == 2 else 1)
    if not len(X) or len(X) != len(y):
        return Survey(len(X), len(y), None, np.zeros(width), np.zeros(width), 0)
    for name, table in zip(names, (X, y), strict=True):
        if table.dtype.kind not in "buif":
            return _unusable(X, y, f"{name} must be numbers, got dtype {table.dtype}")
    parts: list[Survey] = []
    for rows in _centred(X, y, np.zeros(width)):
        if not is_finite(rows):
            row, column = np.argwhere(~np.isfinite(rows))[0]
            name, place = (names[0], column) if column < X.shape[1] else (names[1], column - X.shape[1])
            number = sum(part.rows for part in parts) + row
            return _unusable(X, y, f"{name} must be finite, got {rows[row, column]} in its row {number}, column {place}")
        with np.errstate(over="ignore", invalid="ignore"):
            mean = rows.mean(axis=0)
            rows -= mean
            squares = np.einsum("ij,ij->j", rows, rows)
        parts.append(Survey(len(rows), len(rows), None, mean, squares, 0))
    mean, variances = surveyed(parts)
    return Survey(len(X), len(y), None, mean, variances * len(X), X.nbytes + y.nbytes)


def _unusable(X: Any, y: Any, reason: str) -> Survey:
    return Survey(len(X), len(y), reason, np.zeros(0), np.zeros(0), 0)


def surveyed(parts: Sequence[Survey]) -> tuple[Floats, Floats]:
    """The mean and the variances of all rows."""
    n, mean, squares = 0, np.zeros(1), np.zeros(1)
    with np.errstate(over="ignore", invalid="ignore"):  # squares that overflow are told of by the problem
        for part in parts:
            if part.rows:
                n += part.rows
                gap = part.mean - mean
                mean = mean + (part.rows / n) * gap
                squares = squares + part.squares + (part.rows * (1.0 - part.rows / n)) * gap * gap
        return mean, squares / n


@on_one_blas_thread
def moments(X: Block, y: Floats, weights: Weights, centre: Floats) -> Moments:
    """Of a block: each few rows are centred on their own mean, so that no outer product of means is subtracted."""
    roots, made, done = np.sqrt(weights.values), None, 0
    for block in _centred(X, y, centre, weights.rows):
        part = slice(done, done + len(block))
        done = part.stop
        total = float(weights.values[part].sum())
        if total > 0:
            mean = weights.values[part] @ block / total
            block -= mean
            block *= roots[part, None]
            one = Moments(total, mean, block.T @ block)
            made = one if made is None else _added(made, one)
    assert made is not None
    return made


@on_one_blas_thread
def merged(parts: Sequence[Moments]) -> Moments:
    """Moments of several blocks, in their order."""
    first, *others = parts
    for part in others:
        first = _added(first, part)
    return first


def _added(a: Moments, b: Moments) -> Moments:
    """The two scatters, and that of their means."""
    total = a.total + b.total
    gap, share = b.mean - a.mean, b.total / total
    scatter = a.scatter + b.scatter
    scatter += (a.total * share) * np.outer(gap, gap)
    return Moments(total, a.mean + share * gap, scatter)


@on_one_blas_thread
def gradient(X: Block, y: Floats, K: Floats, A: Floats, offset: Floats, mean: Floats) -> Floats:
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
def images(X: Block, y: Floats, thin: Floats, mean: Floats) -> Floats:
    """``thin @ zhat`` for the rows of a block."""
    return np.hstack([thin @ block.T for block in _centred(X, y, mean)])


@on_one_blas_thread
def taken(X: Block, y: Floats, rows: Indices, mean: Floats) -> Floats:
    """Zhat of these rows of a block, which are in order."""
    return np.vstack([block.copy() for block in _centred(X, y, mean, rows)])


@on_one_blas_thread
def triangle(X: Block, y: Floats, centre: Floats) -> Floats:
    """R of the rows (1, z): its first row holds the mean, the others are the R factor of the centred rows."""
    R = np.empty((0, len(centre) + 1))
    for block in _centred(X, y, centre):
        R = stacked([R, np.hstack([np.ones((len(block), 1)), block])])
    return R


@on_one_blas_thread
def stacked(parts: Sequence[Floats]) -> Floats:
    """R of all the rows that several R are of."""
    return np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))


def summary_of(R: Floats) -> tuple[Floats, Floats, int]:
    """The mean of the rows, R of the centred ones over the root of their number (see ``rows.summary``), and that number."""
    n = round(R[0, 0] ** 2)
    return R[0, 1:] / R[0, 0], R[1:, 1:] / np.sqrt(n), n


def _centred(X: Block, y: Numbers, shift: Floats, rows: NDArray[np.integer] | None = None) -> Iterator[Floats]:
    """Z - shift of these rows, which are in order, or of all; a few at a time in one buffer, column after column.

    Where the buffer is cut depends on the number of rows and columns, not on the parts that the rows come in.
    """
    y, d, columns = y if y.ndim == 2 else y[:, None], X.shape[1], len(shift)
    left = X.shape[0] if rows is None else len(rows)
    most = max(columns, BUFFER_ENTRIES // columns)
    buffer, done = np.empty(min(left, most) * columns), 0
    block = _cut(buffer, min(left, most), columns)
    for x, targets, place in parts_of(X, y):
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
    """The beginning of the buffer as a table whose columns lie one after the other, without gaps."""
    return buffer[: rows * columns].reshape(columns, rows).T


def tree(parts: Sequence[T], merge: Callable[[list[T]], T]) -> T:
    """All parts merged, neighbours first, in an order that depends on their number alone."""
    level = list(parts)
    while len(level) > 1:
        level = [merge(level[i : i + WIDTH]) if i + 1 < len(level) else level[i] for i in range(0, len(level), WIDTH)]
    return level[0]


class BlockRows(ABC):
    """``Rows`` (see ``rows``) in blocks, of which no row is at hand without a pass; a subclass says where blocks are computed."""

    at_hand = False

    def __init__(self, surveys: Sequence[Survey]) -> None:
        self.ends = np.cumsum([part.rows for part in surveys])
        self.n_rows = int(self.ends[-1])
        self.centre, self.variances = surveyed(surveys)

    @abstractmethod
    def map(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> Iterator[Any]:
        """``function(X, y, *arguments)`` of each block, in their order; blocks whose arguments are None are left out."""

    @abstractmethod
    def reduce(
        self, function: Callable[..., Any], merge: Callable[[list[Any]], Any], arguments: Sequence[tuple[Any, ...] | None]
    ) -> Any:
        """The same, merged by a tree."""

    def moments(self, v: Floats, total: float) -> tuple[Floats, Floats]:
        """The weighted mean and 1/m sum v_i zhat_i zhat_i', in one pass over the blocks with weight."""
        weights = [weights_of(part) for part in np.split(v, self.ends[:-1])]
        got = self.reduce(moments, merged, [None if it is None else (it, self.centre) for it in weights])
        return got.mean, got.scatter / self.n_rows

    def gradient(self, K: Floats, A: Floats, offset: Floats, mean: Floats) -> Floats:
        """(K zhat)' (A zhat / m - offset) for all rows, in one pass."""
        out, done = np.empty(self.n_rows), 0
        for part in self.map(gradient, [(K, A / self.n_rows, offset, self.centre + mean)] * len(self.ends)):
            out[done : done + len(part)] = part
            done += len(part)
        return out

    def images(self, thin: Floats, mean: Floats) -> Floats:
        """``thin @ zhat`` for all rows, in one pass."""
        return np.hstack(list(self.map(images, [(thin, self.centre + mean)] * len(self.ends))))

    def take(self, rows: Indices, mean: Floats) -> Floats:
        """Zhat of these rows, from the blocks that hold them."""
        order = np.argsort(rows, kind="stable")
        shift = self.centre + mean
        begins = self.ends - np.diff(self.ends, prepend=0)
        parts = np.split(rows[order], np.searchsorted(rows[order], self.ends[:-1]))
        local = [part - begin for part, begin in zip(parts, begins, strict=True)]
        out = np.empty((len(rows), len(shift)))
        found = list(self.map(taken, [(part, shift) if part.size else None for part in local]))
        if found:
            out[order] = np.concatenate(found)
        return out

    def moment_work(self, v: Floats) -> int:
        """The multiply-adds of ``moments``: the rows with weight, against each other's columns and summed."""
        columns = len(self.centre)
        return int(np.count_nonzero(v)) * columns * (columns + 1)

    def image_work(self, thin: int) -> int:
        """The multiply-adds of ``images`` for so many rows of ``thin``: every number of every row."""
        return thin * self.n_rows * len(self.centre)

    @abstractmethod
    def digest(self) -> str:
        """What the data are recognised by."""


class LocalBlocks(BlockRows):
    """Blocks of arrays in this process: to the bit what the same blocks give on a cluster."""

    def __init__(self, X: Floats, y: Floats, chunks: Sequence[int]) -> None:
        ends = np.cumsum(chunks)[:-1]
        self._blocks = list(zip(np.split(X, ends), np.split(y, ends), strict=True))
        super().__init__([survey(*block) for block in self._blocks])

    def map(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> Iterator[Any]:
        """One block after the other."""
        return (function(*block, *args) for block, args in zip(self._blocks, arguments, strict=True) if args is not None)

    def reduce(
        self, function: Callable[..., Any], merge: Callable[[list[Any]], Any], arguments: Sequence[tuple[Any, ...] | None]
    ) -> Any:
        """The same, merged by a tree."""
        return tree(list(self.map(function, arguments)), merge)

    def digest(self) -> str:
        """A hash of the data and of where they are cut."""
        return digest(*(part for block in self._blocks for part in block), self.ends)

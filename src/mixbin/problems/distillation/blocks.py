"""Candidate rows in blocks, one after the other: what a block computes, and how the answers of all blocks are put together.

The same code serves blocks in this process and blocks on a cluster (see ``dask_rows``). A block is X and y of its rows, which
stay as they are: they are centred and weighted a few at a time, in one buffer. Sums over blocks are made in a fixed order, a
tree, so that their bits depend on the blocks and on nothing else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.problem import Indices

T = TypeVar("T")
Block = NDArray[np.floating]

BUFFER_ENTRIES = 2**17
"""So many numbers are centred and weighted at a time: they stay in the cache between two products."""
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
    rows = np.flatnonzero(v)
    if not rows.size:
        return None
    return Weights(v) if 2 * rows.size >= v.size else Weights(v[rows], rows.astype(np.int32))


def survey(X: Any, y: Any, names: tuple[str, str] = ("X", "y")) -> Survey:
    """Rows, columns and finiteness of a block; the mean and the spread of its columns."""
    X, y = np.asarray(X), np.asarray(y)
    y = y if y.ndim == 2 else y[:, None]
    nothing = np.zeros(X.shape[1] + y.shape[1])
    wrong = _wrong(names[0], X) or _wrong(names[1], y)
    if wrong or not len(X) or len(X) != len(y):
        return Survey(len(X), len(y), wrong, nothing, nothing, 0)
    mean = np.concatenate([part.mean(axis=0, dtype=np.float64) for part in (X, y)])
    squares = np.zeros_like(mean)
    for _, block in _centred(X, y, mean):
        squares += np.einsum("ij,ij->j", block, block)
    return Survey(len(X), len(y), None, mean, squares, X.nbytes + y.nbytes)


def _wrong(name: str, x: NDArray[Any]) -> str | None:
    if x.dtype.kind not in "buif":
        return f"{name} must be numbers, got dtype {x.dtype}"
    if x.size and not (np.isfinite(x.min()) and np.isfinite(x.max())):
        row, column = np.argwhere(~np.isfinite(x))[0]
        return f"{name} must be finite, got {x[row, column]} in its row {row}, column {column}"
    return None


def surveyed(parts: Sequence[Survey]) -> tuple[Floats, Floats]:
    """The mean and the variances of all rows."""
    n, mean, squares = 0, np.zeros(1), np.zeros(1)
    for part in parts:
        if part.rows:
            n += part.rows
            gap = part.mean - mean
            mean = mean + (part.rows / n) * gap
            squares = squares + part.squares + (part.rows * (1.0 - part.rows / n)) * gap * gap
    return mean, squares / n


def moments(X: Block, y: Block, weights: Weights, centre: Floats) -> Moments:
    """Of a block: each few rows are centred on their own mean, so that no outer product of means is subtracted."""
    roots, made, done = np.sqrt(weights.values), None, 0
    for count, block in _centred(X, y, centre, weights.rows):
        part = slice(done, done + count)
        done += count
        total = float(weights.values[part].sum())
        if total > 0:
            mean = weights.values[part] @ block / total
            block -= mean
            block *= roots[part, None]
            one = Moments(total, mean, block.T @ block)
            made = one if made is None else _added(made, one)
    assert made is not None
    return made


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


def gradient(X: Block, y: Block, K: Floats, A: Floats, offset: Floats, mean: Floats) -> Floats:
    """(K zhat)' (A zhat - offset) for the rows of a block: two thin products."""
    e, out, done = len(K), np.empty(len(X)), 0
    thin = np.vstack([K, A])
    for count, block in _centred(X, y, mean):
        both = thin @ block.T
        both[e:] -= offset[:, None]
        out[done : done + count] = np.einsum("ij,ij->j", both[:e], both[e:])
        done += count
    return out


def images(X: Block, y: Block, thin: Floats, mean: Floats) -> Floats:
    """``thin @ zhat`` for the rows of a block."""
    return np.hstack([thin @ block.T for _, block in _centred(X, y, mean)])


def taken(X: Block, y: Block, rows: Indices, mean: Floats) -> Floats:
    """Zhat of these rows of a block."""
    return np.asarray(np.column_stack([X[rows], y[rows]]) - mean)


def triangle(X: Block, y: Block, centre: Floats) -> Floats:
    """R of the rows (1, z): its first row holds the mean, the others are the R factor of the centred rows."""
    R = np.empty((0, len(centre) + 1))
    for count, block in _centred(X, y, centre):
        R = stacked([R, np.hstack([np.ones((count, 1)), block])])
    return R


def stacked(parts: Sequence[Floats]) -> Floats:
    """R of all the rows that several R are of."""
    return np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))


def summary_of(R: Floats) -> tuple[Floats, Floats, int]:
    """The mean of the rows, R of the centred ones over the root of their number (see ``rows.summary``), and that number."""
    n = round(R[0, 0] ** 2)
    return R[0, 1:] / R[0, 0], R[1:, 1:] / np.sqrt(n), n


def _centred(X: Block, y: Block, shift: Floats, rows: NDArray[np.int32] | None = None) -> Iterator[tuple[int, Floats]]:
    """(how many, z - shift) for these rows or all of them, a few at a time in one buffer that keeps the layout of X."""
    y = y if y.ndim == 2 else y[:, None]
    d, columns = X.shape[1], len(shift)
    n = len(X) if rows is None else len(rows)
    step = min(n, max(columns, BUFFER_ENTRIES // columns))
    by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
    buffer = np.empty((step, columns), order="F" if by_columns else "C")
    for start in range(0, n, step):
        part = slice(start, start + step) if rows is None else rows[start : start + step]
        block = buffer[: min(step, n - start)]
        np.subtract(X[part], shift[:d], out=block[:, :d])
        np.subtract(y[part], shift[d:], out=block[:, d:])
        yield len(block), block


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

    @abstractmethod
    def digest(self) -> str:
        """What the data are recognised by."""


class LocalBlocks(BlockRows):
    """Blocks of arrays in this process: to the bit what the same blocks give on a cluster."""

    def __init__(self, X: Block, y: Floats, chunks: Sequence[int]) -> None:
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

"""Candidate rows z = (x, y) in memory, dense or sparse, and what the closed form asks of every row store.

All large computations happen in row stores: one weighted Gram matrix of the rows with weight, and thin products with all rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.data.blocks import FoldSums
from mixbin.problem import Indices

ENTRIES_AT_ONCE = 2**20
"""Numbers that are weighted and multiplied at a time, so that no second copy of the data is needed."""

EPS = float(np.finfo(np.float64).eps)


class Statistics(NamedTuple):
    """How a row store keeps its rows, and what it has done so far."""

    storage: str
    """In words: how large the rows are, where they are, and whether they are read again in every pass."""
    passes: int
    """How often the rows, or the blocks that were needed, were gone through."""
    bytes_read: int
    """Bytes that were read: once for rows that stay in memory, in every pass for others."""
    n_workers: int | None = None
    """Processes that compute now; None if this process does."""


class RowStore(Protocol):
    """Candidate rows relative to ``centre``; means and rows that go in and out are relative to it, too."""

    n_rows: int
    centre: Floats
    variances: Floats
    """Of the columns."""
    rounding: Floats
    """Variances up to these may be rounding alone: such a column is constant."""
    random_access: bool
    """Whether any row can be reached without a pass over others: then exchanges are searched among all rows."""

    def moments(self, v: Floats, total: float) -> tuple[Floats, Floats]:
        """The weighted mean, and 1/m sum v_i zhat_i zhat_i' with zhat = z - mean; ``total`` is sum v."""

    def fold_sums(self, folds: NDArray[np.uint8], n_folds: int) -> FoldSums:
        """The sums over the rows of each fold, relative to ``centre``; ``folds`` has the fold of each row."""

    def gradient(self, K: Floats, A: Floats, offset: Floats, mean: Floats) -> Floats:
        """(K zhat)' (A zhat / m - offset) for all rows."""

    def images(self, thin: Floats, mean: Floats) -> Floats:
        """``thin @ zhat`` for all rows, of shape (len(thin), m)."""

    def take(self, rows: Indices, mean: Floats) -> Floats:
        """Zhat of these rows."""

    def moment_work(self, v: Floats) -> int:
        """The multiply-adds of ``moments``."""

    def image_work(self, thin: int) -> int:
        """The multiply-adds of ``images`` for so many rows of ``thin``."""

    def digest(self) -> str:
        """A text by which a checkpoint recognises the data."""

    def statistics(self) -> Statistics:
        """Size, place and use of the rows."""


class FetchedRows:
    """A few rows of a store, as ``take`` has returned them around ``mean``: what a search among these rows needs."""

    def __init__(self, zhat: Floats, mean: Floats) -> None:
        self.n_rows, self._zhat, self._mean = len(zhat), zhat, mean

    def images(self, thin: Floats, mean: Floats) -> Floats:
        """``thin @ zhat`` for all of them."""
        return np.asarray(thin @ self.take(np.arange(self.n_rows), mean).T)

    def take(self, rows: Indices, mean: Floats) -> Floats:
        """Zhat of these rows."""
        return np.asarray(self._zhat[rows] + (self._mean - mean))

    def image_work(self, thin: int) -> int:
        """The multiply-adds of ``images`` for so many rows of ``thin``."""
        return thin * self._zhat.size


class RowsInMemory(ABC):
    """What dense and sparse rows share: the mean first, then the Gram matrix around it, from the rows with weight."""

    random_access = True
    n_rows: int
    nbytes: int
    passes = 0

    def moments(self, v: Floats, total: float) -> tuple[Floats, Floats]:
        """The weighted mean, and the Gram matrix around it."""
        self.passes += 1
        rows = np.flatnonzero(v)
        mean = self.mean(v, rows, total)
        return mean, self.gram(rows, v[rows], mean)

    def fold_sums(self, folds: NDArray[np.uint8], n_folds: int) -> FoldSums:
        """The sums over the rows of each fold, one fold after the other."""
        self.passes += 1
        parts = [self.plain_sums(np.flatnonzero(folds == fold)) for fold in range(n_folds)]
        sums, squares = zip(*parts, strict=True)
        return FoldSums(np.bincount(folds, minlength=n_folds).astype(np.float64), np.stack(sums), np.stack(squares))

    def gradient(self, K: Floats, A: Floats, offset: Floats, mean: Floats) -> Floats:
        """(K zhat)' (A zhat / m - offset) for all rows."""
        out = self.images(np.concatenate((K, A)), mean)
        missed, weighted = out[: len(K)], out[len(K) :]
        weighted /= self.n_rows
        weighted -= offset[:, None]
        return np.asarray(np.einsum("ij,ij->j", missed, weighted))

    def images(self, thin: Floats, mean: Floats) -> Floats:
        """``thin @ zhat`` for all rows, of shape (len(thin), m)."""
        self.passes += 1
        out = self.products(thin)
        out -= (thin @ mean)[:, None]
        return out

    def statistics(self) -> Statistics:
        """The rows were read once."""
        return Statistics(f"{self.nbytes / 1e6:,.0f} MB in memory", self.passes, self.nbytes)

    @abstractmethod
    def mean(self, v: Floats, rows: Indices, total: float) -> Floats:
        """The weighted mean; ``rows`` are those with v > 0."""

    @abstractmethod
    def gram(self, rows: Indices, weights: Floats, mean: Floats) -> Floats:
        """1/m sum v_i zhat_i zhat_i' over these rows, zhat = z - mean."""

    @abstractmethod
    def plain_sums(self, rows: Indices) -> tuple[Floats, Floats]:
        """Sum z and sum z z' over these rows."""

    @abstractmethod
    def products(self, thin: Floats) -> Floats:
        """``thin @ z`` for all rows."""


class DenseRows(RowsInMemory):
    """Rows in one array, centred once on the plain mean: large offsets (years, timestamps) would cost digits in every product.

    A table of float32 stays one of float32; all sums are float64, some rows at a time.
    """

    def __init__(self, X: NDArray[np.floating], y: Floats) -> None:
        Z = joined(X, y)
        self.n_rows, self.nbytes, self._Z = len(Z), Z.nbytes, Z
        with np.errstate(over="ignore", invalid="ignore"):
            self.centre = sum(part.sum(axis=0, dtype=np.float64) for part in self._parts()) / len(Z)
            for part in self._parts():
                part -= self.centre
            self.variances = sum(np.einsum("ij,ij->j", part, part, dtype=np.float64) for part in self._parts()) / len(Z)
            self.rounding = rounding_of(self.centre, len(Z))

    def _parts(self) -> Iterator[NDArray[np.floating]]:
        """Some rows at a time, as views; all at once if nothing has to be converted."""
        step = len(self._Z) if self._Z.dtype == np.float64 else max(1, ENTRIES_AT_ONCE // self._Z.shape[1])
        return (self._Z[i : i + step] for i in range(0, len(self._Z), step))

    def mean(self, v: Floats, rows: Indices, total: float) -> Floats:
        """One pass over the rows with weight, or over all rows if most have weight."""
        if self._Z.dtype == np.float64 and 2 * len(rows) >= len(v):
            return np.asarray(v @ self._Z / total)
        if 2 * len(rows) < len(v):
            return np.asarray(sum(v[part] @ zhat for part, zhat in self._gathered(rows, 0.0)) / total)
        weights = iter(np.split(v, np.cumsum([len(part) for part in self._parts()])[:-1]))
        return np.asarray(sum(next(weights) @ part for part in self._parts()) / total)

    def gram(self, rows: Indices, weights: Floats, mean: Floats) -> Floats:
        """From centred rows: subtracting the outer product of the means would cancel digits."""
        columns, roots, done = self._Z.shape[1], np.sqrt(weights / len(self._Z)), 0
        S = np.zeros((columns, columns))
        for part, zhat in self._gathered(rows, mean):
            zhat *= roots[done : done + len(part), None]
            S += zhat.T @ zhat
            done += len(part)
        return S

    def plain_sums(self, rows: Indices) -> tuple[Floats, Floats]:
        """Some rows at a time."""
        columns = self._Z.shape[1]
        total, squares = np.zeros(columns), np.zeros((columns, columns))
        for _, z in self._gathered(rows, 0.0):
            total += z.sum(axis=0)
            squares += z.T @ z
        return total, squares

    def _gathered(self, rows: Indices, mean: Floats | float) -> Iterator[tuple[Indices, Floats]]:
        """Zhat of these rows, some at a time in one buffer: fresh memory for each costs more than the copy."""
        step = max(1, ENTRIES_AT_ONCE // self._Z.shape[1])
        buffer = np.empty((min(step, len(rows)), self._Z.shape[1]))
        for i in range(0, len(rows), step):
            part = rows[i : i + step]
            zhat = buffer[: len(part)]
            if self._Z.dtype == np.float64:
                np.take(self._Z, part, axis=0, out=zhat, mode="clip")
                zhat -= mean
            else:
                np.subtract(self._Z[part], mean, out=zhat)
            yield part, zhat

    def products(self, thin: Floats) -> Floats:
        """One pass over all rows; the thin factor on the left is what BLAS handles well."""
        if self._Z.dtype == np.float64:
            return np.asarray(thin @ self._Z.T)
        return np.hstack([thin @ part.T for part in self._parts()])

    def take(self, rows: Indices, mean: Floats) -> Floats:
        """Zhat of these rows."""
        zhat = np.asarray(self._Z.take(rows, axis=0), dtype=np.float64)
        zhat -= mean  # in place: a second array of this size costs more than the difference
        return zhat

    def moment_work(self, v: Floats) -> int:
        """The rows with weight, against each other's columns and summed."""
        columns = int(self._Z.shape[1])
        return int(np.count_nonzero(v)) * columns * (columns + 1)

    def image_work(self, thin: int) -> int:
        """Every number of every row."""
        return thin * self._Z.size

    def digest(self) -> str:
        """A hash of the data."""
        return digest(self._Z, self.centre)


class SparseRows(RowsInMemory):
    """Rows of a sparse matrix, which is not centred: that would fill it. Most entries are 0, so the means are nearly 0."""

    def __init__(self, X: Any, y: Floats) -> None:
        self._X, self._y = sparse.csr_array(X, dtype=np.float64), y.reshape(len(y), -1)
        self.n_rows, self.nbytes = X.shape[0], self._X.data.nbytes + self._X.indices.nbytes + self._y.nbytes
        self.centre = np.zeros(X.shape[1] + self._y.shape[1])
        ones = np.ones(self.n_rows)
        mean = self.mean(ones, np.arange(self.n_rows), float(self.n_rows))
        with np.errstate(over="ignore", invalid="ignore"):  # the problem refuses variances that overflow
            squares = np.concatenate([ones @ self._X.power(2), (self._y**2).sum(axis=0)]) / self.n_rows
            self.variances = np.maximum(squares - mean**2, 0.0)
            self.rounding = EPS * self.n_rows * squares  # the difference of two numbers of that size

    def mean(self, v: Floats, rows: Indices, total: float) -> Floats:
        """One pass over the stored entries."""
        return np.concatenate([v @ self._X, v @ self._y]) / total

    def gram(self, rows: Indices, weights: Floats, mean: Floats) -> Floats:
        """Sparse products, from which the outer product of the means is subtracted."""
        X, y = self._X[rows], self._y[rows]
        weighted = X.multiply(weights[:, None]).tocsr()
        S = np.block([[(weighted.T @ X).toarray(), weighted.T @ y], [(weighted.T @ y).T, (y * weights[:, None]).T @ y]])
        S -= weights.sum() * np.outer(mean, mean)
        return np.asarray(S / self.n_rows)

    def plain_sums(self, rows: Indices) -> tuple[Floats, Floats]:
        """Sparse products."""
        X, y = self._X[rows], self._y[rows]
        across = X.T @ y
        squares = np.block([[(X.T @ X).toarray(), across], [across.T, y.T @ y]])
        return np.concatenate([np.ones(len(rows)) @ X, y.sum(axis=0)]), squares

    def products(self, thin: Floats) -> Floats:
        """One sparse product."""
        d = self._X.shape[1]
        return np.asarray((self._X @ thin[:, :d].T).T + thin[:, d:] @ self._y.T)

    def take(self, rows: Indices, mean: Floats) -> Floats:
        """Zhat of these rows."""
        return np.asarray(np.hstack([self._X[rows].toarray(), self._y[rows]]) - mean)

    def moment_work(self, v: Floats) -> int:
        """The stored entries of the rows with weight, against each other and summed."""
        columns = np.diff(self._X.indptr)[v != 0].astype(np.int64) + self._y.shape[1]
        return int((columns * (columns + 1)).sum())

    def image_work(self, thin: int) -> int:
        """Every stored entry of every row."""
        stored: int = self._X.nnz + self._y.size
        return thin * stored

    def digest(self) -> str:
        """A hash of the data."""
        return digest(self._X.data, self._X.indices, self._X.indptr, self._y)


def rounding_of(mean: Floats, n_rows: int) -> Floats:
    """The largest variance that a constant column of this mean may seem to have: scikit-learn's StandardScaler uses the same."""
    with np.errstate(over="ignore"):
        return np.asarray((EPS * n_rows * mean) ** 2)


def summary(X: Any, y: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """The mean of some rows, and R with |R w|^2 = mean of (zhat' w)^2 for every w: without squaring, some rows at a time."""
    n = X.shape[0]
    mean = sum(part.sum(axis=0) for part in _centred(X, y, centre)) / n
    R: Floats = np.empty((0, len(centre)))
    for part in _centred(X, y, centre):
        part -= mean
        R = np.asarray(np.linalg.qr(np.vstack([R, part]), mode="r"))
    return np.asarray(mean), R / np.sqrt(n)


def _centred(X: Any, y: Floats, centre: Floats) -> Iterator[Floats]:
    step = max(len(centre), ENTRIES_AT_ONCE // len(centre))
    for i in range(0, X.shape[0], step):
        part = X[i : i + step]
        yield np.asarray(joined(part.toarray() if sparse.issparse(part) else part, y[i : i + step]) - centre)


def joined(X: NDArray[np.floating], y: Floats) -> NDArray[np.floating]:
    """The rows z = (x, y) in C order whatever the layout of X, since whole rows are gathered later.

    They have X's precision, unless y has numbers that are too large or too small for float32.
    """
    dtype = X.dtype if X.dtype == np.float64 or _fits(y, X.dtype) else np.dtype(np.float64)
    Z = np.empty((len(X), X.shape[1] + (1 if y.ndim == 1 else y.shape[1])), dtype=dtype)
    Z[:, : X.shape[1]] = X
    Z[:, X.shape[1] :] = y.reshape(len(X), -1)
    return Z


def _fits(y: Floats, dtype: np.dtype[Any]) -> bool:
    """Whether y keeps its digits in this dtype: nothing overflows, also after centring, or comes near the smallest numbers."""
    largest, limits = max(float(y.max(initial=0.0)), -float(y.min(initial=0.0))), np.finfo(dtype)
    return largest == 0.0 or float(limits.tiny / limits.eps) <= largest <= float(limits.max) / 4

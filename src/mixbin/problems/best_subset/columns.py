"""The columns of X as best subset reads them: a few at a time, or all of them multiplied with a vector, centred either way.

A dense table is centred once, in a copy. A sparse one stays sparse, and its means are subtracted from what is computed with it.
No matrix with one row and one column per feature is ever formed.
"""

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.problem import Indices

SHORTEN_FROM = 4
"""Under squared loss, a dense table with this many times more rows than columns is replaced by its triangular factor."""


class Columns(Protocol):
    """A table of n rows and p columns, centred if the model has an intercept."""

    n: int
    p: int
    means: Floats
    """What was subtracted from each column; zeros without an intercept."""

    def some(self, which: Indices) -> Floats:
        """These columns, as a dense array of shape (n, len(which))."""

    def products(self, V: Floats) -> Floats:
        """X'V for V of shape (n,) or (n, m)."""

    def squares(self, weights: Floats | None = None) -> Floats:
        """The (weighted) sum of squares of each column."""

    def digest(self) -> str:
        """A hash of the table."""


class DenseColumns:
    """A dense table."""

    def __init__(self, X: Floats, centre: bool) -> None:
        self.n, self.p = X.shape
        self.means = X.mean(axis=0) if centre else np.zeros(self.p)
        # Column after column in memory, because searches read single columns.
        self._X: Floats = np.asfortranarray(X - self.means)

    def some(self, which: Indices) -> Floats:
        """These columns, dense and centred."""
        return np.asarray(self._X[:, which])

    def products(self, V: Floats) -> Floats:
        """X'V."""
        return np.asarray(self._X.T @ V)

    def squares(self, weights: Floats | None = None) -> Floats:
        """The (weighted) sum of squares of each column."""
        if weights is None:
            return np.asarray(np.einsum("ij,ij->j", self._X, self._X))
        return np.asarray(np.einsum("ij,ij,i->j", self._X, self._X, weights))

    def digest(self) -> str:
        """A hash of the table."""
        return digest(self._X.T, self.means)

    def shortened(self, Y: Floats) -> "tuple[DenseColumns, Floats]":
        """A table and targets with fewer rows and the same products, if this one is long: the triangular factor of both."""
        width = self.p + Y.shape[1]
        if self.n <= SHORTEN_FROM * width:
            return self, Y
        triangle = np.asarray(np.linalg.qr(np.hstack([self._X, Y]), mode="r"))
        short = DenseColumns(triangle[:, : self.p], centre=False)
        short.means = self.means
        return short, np.ascontiguousarray(triangle[:, self.p :])


class SparseColumns:
    """A sparse table, which stays sparse: (X - 1 m')'V = X'V - m (1'V)."""

    def __init__(self, X: Any, centre: bool) -> None:
        self._X = sparse.csc_array(X, dtype=np.float64)
        self._X.sort_indices()
        self.n, self.p = self._X.shape
        self.means = np.asarray(self._X.mean(axis=0)).ravel() if centre else np.zeros(self.p)
        self._squared = self._X.power(2)

    def some(self, which: Indices) -> Floats:
        """These columns, dense and centred."""
        return np.asarray(self._X[:, which].toarray() - self.means[which])

    def products(self, V: Floats) -> Floats:
        """X'V."""
        raw, sums = np.asarray(self._X.T @ V), V.sum(axis=0)
        return np.asarray(raw - (self.means * sums if V.ndim == 1 else np.outer(self.means, sums)))

    def squares(self, weights: Floats | None = None) -> Floats:
        """The (weighted) sum of squares of each column."""
        w = np.ones(self.n) if weights is None else weights
        raw = np.asarray(self._squared.T @ w) - 2.0 * self.means * np.asarray(self._X.T @ w) + self.means**2 * w.sum()
        return np.asarray(np.maximum(raw, 0.0))

    def digest(self) -> str:
        """A hash of the table."""
        return digest(self._X.data, self._X.indices, self._X.indptr, self.means)


def columns(X: Any, centre: bool) -> DenseColumns | SparseColumns:
    """The columns of a table that was checked."""
    return SparseColumns(X, centre) if sparse.issparse(X) else DenseColumns(np.asarray(X, dtype=np.float64), centre)

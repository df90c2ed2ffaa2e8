"""Rows in memory with columns that mostly repeat one value: words that few texts have, categories, counts that are mostly 0.

In such a column the usual value (0, or what standardising makes of it) is stored once, and a sparse matrix W holds the
differences from it. With the full columns D around their weighted mean, dhat, the Gram matrix around the weighted mean falls into

    sum v dhat dhat',   sum v dhat w',   sum v w w' - (sum v) wbar wbar',

of which the last two cost only as much as there are differences. The subtraction is harmless: by Cauchy-Schwarz a column with a
share p of unusual values has wbar^2 <= p mean(w^2), so at most a factor 1 / (1 - p) is lost where the weights are spread evenly.
Products of two differences of one row are stored once, too. They also give a' P a for all rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixbin._validate import Floats
from mixbin.data.one_blas_thread import in_threads
from mixbin.data.rows import ENTRIES_AT_ONCE, DenseRows
from mixbin.data.rows_on_threads import LEAST_ENTRIES, RowsOnThreads, slices
from mixbin.problem import Indices

UNUSUAL = 0.2
"""A column is stored by its differences if at most this share of its entries are not its usual value."""
WORTH = 0.25
"""The differences are used if the Gram matrix then takes at most this share of the multiply-adds."""
SCATTERED = 8.0
"""A multiply-add at a place that an index gives counts as much as this many in a dense product."""
SAMPLE = 1001
"""The usual value of a column is the median of this many rows: the value that more than half of the entries have, if any."""


class _Part(NamedTuple):
    """Some rows: the full columns, the differences in the others, and the products of two differences."""

    D: Floats
    W: sparse.csr_array
    pairs: sparse.csr_array


class UsualValueRows(RowsOnThreads):
    """Rows in one array, as ``RowsOnThreads``, and beside it the full columns and the differences in the others."""

    def __init__(self, rows: DenseRows, few: NDArray[np.bool_], usual: Floats) -> None:
        super().__init__(rows)
        Z = np.asarray(self._Z, dtype=np.float64)
        self._full, self._few, self._usual = np.flatnonzero(~few), np.flatnonzero(few), usual[few]
        self._D = np.ascontiguousarray(Z[:, self._full])
        self._W = _differences(Z, self._few, self._usual)
        self._all = _Part(self._D, self._W, _products(self._W))
        self._parts_at = {at.start: _Part(self._D[at], *(_lines(x, at) for x in self._all[1:])) for at in slices(len(Z))}

    def mean(self, v: Floats, rows: Indices, total: float) -> Floats:
        """One pass over the full columns and the differences."""
        mean = np.empty(self._Z.shape[1])
        mean[self._full] = v @ self._D / total
        mean[self._few] = self._usual * (v.sum() / total) + v @ self._W / total
        return mean

    def gram(self, rows: Indices, weights: Floats, mean: Floats) -> Floats:
        """The three parts above, some rows at a time."""
        n_few, m = self._few.size, len(self._Z)
        some = 2 * len(rows) < m  # else rows without weight cost less than copies of the others
        if not some:
            every = np.zeros(m)
            every[rows] = weights
            weights = every
        weights = weights / m
        roots = np.sqrt(weights)[:, None]

        def sums(at: slice) -> tuple[Floats, Floats, Floats]:
            D, W, pairs = _Part(*(x[rows[at]] for x in self._all)) if some else self._parts_at[at.start]
            dhat = D - mean[self._full]
            dhat *= roots[at]
            full = dhat.T @ dhat
            dhat *= roots[at]
            return full, W.T @ dhat, weights[at] @ pairs

        full, across, upper = (sum(x) for x in zip(*in_threads(sums, slices(len(weights))), strict=True))
        upper = upper.reshape(n_few, n_few)
        S = np.empty((self._Z.shape[1],) * 2)
        shift = mean[self._few] - self._usual
        S[np.ix_(self._few, self._few)] = upper + np.triu(upper, 1).T - weights.sum() * np.outer(shift, shift)
        S[np.ix_(self._full, self._full)] = full
        S[np.ix_(self._few, self._full)] = across
        S[np.ix_(self._full, self._few)] = across.T
        return S

    def products(self, thin: Floats) -> Floats:
        """One pass over the full columns and the differences."""
        few, full = np.ascontiguousarray(thin[:, self._few].T), np.ascontiguousarray(thin[:, self._full].T)
        out = np.empty((len(thin), len(self._D)))

        def fill(at: slice) -> None:
            part = self._parts_at[at.start]
            image = part.D @ full  # with the thin factor on the right: on the left it takes almost twice as long for two lines
            image += part.W @ few
            out[:, at] = image.T

        in_threads(fill, slices(len(self._D)))
        out += (self._usual @ few)[:, None]
        return out

    def squares(self, P: Floats, mean: Floats) -> Floats:
        """zhat' P zhat for all rows, P symmetric."""
        full, few = self._full, self._few
        shift = np.zeros(len(mean))
        shift[few] = self._usual
        shift -= mean  # zhat is the full columns, or the differences, plus this
        image = P @ shift
        within, across = P[np.ix_(few, few)], 2.0 * P[np.ix_(few, full)]
        pairs = (2.0 * within - np.diag(within.diagonal())).ravel()

        def squared(at: slice) -> Floats:
            D, W, products = self._parts_at[at.start]
            rows = D @ P[np.ix_(full, full)]
            rows += W @ across
            out = np.einsum("nd,nd->n", rows, D)
            out += products @ pairs
            out += D @ (2.0 * image[full])
            out += W @ (2.0 * image[few])
            return np.asarray(out)

        out = np.concatenate(in_threads(squared, slices(len(self._D))))
        out += shift @ image
        return np.asarray(out)


def for_speed(rows: DenseRows) -> DenseRows:
    """The same rows: if there are many, on threads, and stored by their differences from usual values where that saves much."""
    Z = rows._Z
    if Z.dtype != np.float64 or Z.size < LEAST_ENTRIES:
        return rows
    usual = np.median(Z[np.linspace(0, len(Z) - 1, SAMPLE).astype(np.intp)], axis=0)
    unusual = np.zeros(Z.shape[1])
    per_row = np.zeros(len(Z))
    step = max(1, ENTRIES_AT_ONCE // Z.shape[1])
    parts = [slice(i, i + step) for i in range(0, len(Z), step)]
    for part in parts:
        unusual += (Z[part] != usual).sum(axis=0)
    few = unusual <= UNUSUAL * len(Z)
    full = int(np.count_nonzero(~few))
    if full == 0:
        return RowsOnThreads(rows)
    for part in parts:
        per_row[part] = (Z[part][:, few] != usual[few]).sum(axis=1)
    differences, products = per_row.mean(), (per_row * (per_row + 1)).mean() / 2
    work = 0.5 * full**2 + SCATTERED * (differences * full / 4 + products)
    return UsualValueRows(rows, few, usual) if work <= WORTH * 0.5 * Z.shape[1] ** 2 else RowsOnThreads(rows)


def _lines(A: sparse.csr_array, at: slice) -> sparse.csr_array:
    """Some lines of a matrix, as a view."""
    begins = A.indptr[at.start : at.stop + 1]
    entries = slice(begins[0], begins[-1])
    return sparse.csr_array((A.data[entries], A.indices[entries], begins - begins[0]), shape=(len(begins) - 1, A.shape[1]))


def _differences(Z: Floats, columns: Indices, usual: Floats) -> sparse.csr_array:
    step = max(1, ENTRIES_AT_ONCE // Z.shape[1])
    return sparse.vstack([sparse.csr_array(Z[i : i + step][:, columns] - usual) for i in range(0, len(Z), step)], format="csr")


def _products(W: sparse.csr_array) -> sparse.csr_array:
    """w_a w_b of each row for a <= b, as one line of a matrix with one column for each pair of columns."""
    count = np.diff(W.indptr)
    place = np.arange(W.nnz) - np.repeat(W.indptr[:-1], count)
    partners = np.repeat(count, count) - place  # an entry is multiplied by itself and by those after it in its row
    first = np.repeat(np.arange(W.nnz), partners)
    second = first + np.arange(first.size) - np.repeat(np.cumsum(partners) - partners, partners)
    n = W.shape[1]
    short = max(n * n, first.size) < 2**31  # indices of half the size are read in half the time
    columns, indptr = W.indices.astype(np.int64), np.concatenate([[0], np.cumsum(count * (count + 1) // 2)])
    places = (columns[first] * n + columns[second], indptr)
    indices, indptr = (x.astype(np.int32 if short else np.int64) for x in places)
    return sparse.csr_array((W.data[first] * W.data[second], indices, indptr), shape=(len(count), n * n))

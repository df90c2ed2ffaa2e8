"""Rows in memory with columns that mostly repeat one value: words that few texts have, categories, counts that are mostly 0.

In such a column the usual value (0, or what standardising makes of it) is stored once, and a sparse matrix W holds the
differences from it. With the full columns D around their weighted mean, dhat, the Gram matrix around the weighted mean falls into

    sum v dhat dhat',   sum v dhat w',   sum v w w' - (sum v) wbar wbar',

of which the last two cost only as much as there are differences. The subtraction is harmless: by Cauchy-Schwarz a column with a
share p of unusual values has wbar^2 <= p mean(w^2), so at most a factor 1 / (1 - p) is lost where the weights are spread evenly.
Products of two differences of one row are stored once, too. They also give a' P a for all rows.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixbin._validate import Floats
from mixbin.data.rows import ENTRIES_AT_ONCE, DenseRows
from mixbin.problem import Indices

UNUSUAL = 0.2
"""A column is stored by its differences if at most this share of its entries are not its usual value."""
LEAST_ENTRIES = 2**22
"""Tables with fewer entries stay dense: their Gram matrix takes a few milliseconds anyway."""
WORTH = 0.25
"""The differences are used if the Gram matrix then takes at most this share of the multiply-adds."""
SCATTERED = 8.0
"""A multiply-add at a place that an index gives counts as much as this many in a dense product."""
SAMPLE = 1001
"""The usual value of a column is the median of this many rows: the value that more than half of the entries have, if any."""


class UsualValueRows(DenseRows):
    """Rows in one array, as ``DenseRows``, and beside it the full columns and the differences in the others."""

    def __init__(self, rows: DenseRows, few: NDArray[np.bool_], usual: Floats) -> None:
        vars(self).update(vars(rows))
        Z = np.asarray(self._Z, dtype=np.float64)
        self._full, self._few, self._usual = np.flatnonzero(~few), np.flatnonzero(few), usual[few]
        self._D = np.ascontiguousarray(Z[:, self._full])
        self._W = _differences(Z, self._few, self._usual)
        self._pairs = _products(self._W)

    def mean(self, v: Floats, rows: Indices, total: float) -> Floats:
        """One pass over the full columns and the differences."""
        mean = np.empty(self._Z.shape[1])
        mean[self._full] = v @ self._D / total
        mean[self._few] = self._usual * (v.sum() / total) + v @ self._W / total
        return mean

    def gram(self, rows: Indices, weights: Floats, mean: Floats) -> Floats:
        """The three parts above, some rows at a time."""
        n_few, m = self._few.size, len(self._Z)
        if 2 * len(rows) < m:
            weights, D, W, pairs = weights / m, self._D[rows], self._W[rows], self._pairs[rows]
        else:  # rows without weight cost less than copies of the others
            every = np.zeros(m)
            every[rows] = weights
            weights, D, W, pairs = every / m, self._D, self._W, self._pairs
        full, across = np.zeros((self._full.size,) * 2), np.zeros((n_few, self._full.size))
        step = max(1, ENTRIES_AT_ONCE // self._full.size)
        buffer, roots = np.empty((min(step, len(D)), self._full.size)), np.sqrt(weights)[:, None]
        for i in range(0, len(D), step):
            part = slice(i, i + step)
            dhat = np.subtract(D[part], mean[self._full], out=buffer[: len(D[part])])
            dhat *= roots[part]
            full += dhat.T @ dhat
            dhat *= roots[part]
            across += W[part].T @ dhat
        upper = (weights @ pairs).reshape(n_few, n_few)
        S = np.empty((self._Z.shape[1],) * 2)
        shift = mean[self._few] - self._usual
        S[np.ix_(self._few, self._few)] = upper + np.triu(upper, 1).T - weights.sum() * np.outer(shift, shift)
        S[np.ix_(self._full, self._full)] = full
        S[np.ix_(self._few, self._full)] = across
        S[np.ix_(self._full, self._few)] = across.T
        return S

    def products(self, thin: Floats) -> Floats:
        """One pass over the full columns and the differences."""
        few = thin[:, self._few]
        out = thin[:, self._full] @ self._D.T
        out += (self._W @ few.T).T
        out += (few @ self._usual)[:, None]
        return np.asarray(out)

    def squares(self, P: Floats, mean: Floats) -> Floats:
        """zhat' P zhat for all rows, P symmetric."""
        full, few = self._full, self._few
        shift = np.zeros(len(mean))
        shift[few] = self._usual
        shift -= mean  # zhat is the full columns, or the differences, plus this
        image = P @ shift
        rows = self._D @ P[np.ix_(full, full)]
        rows += self._W @ (2.0 * P[np.ix_(few, full)])
        out = np.einsum("nd,nd->n", rows, self._D)
        within = P[np.ix_(few, few)]
        out += self._pairs @ (2.0 * within - np.diag(within.diagonal())).ravel()
        out += self._D @ (2.0 * image[full])
        out += self._W @ (2.0 * image[few])
        out += shift @ image
        return np.asarray(out)


def with_usual_values(rows: DenseRows) -> DenseRows:
    """The same rows, stored by their differences from usual values where that saves much."""
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
        return rows
    for part in parts:
        per_row[part] = (Z[part][:, few] != usual[few]).sum(axis=1)
    differences, products = per_row.mean(), (per_row * (per_row + 1)).mean() / 2
    work = 0.5 * full**2 + SCATTERED * (differences * full / 4 + products)
    return UsualValueRows(rows, few, usual) if work <= WORTH * 0.5 * Z.shape[1] ** 2 else rows


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

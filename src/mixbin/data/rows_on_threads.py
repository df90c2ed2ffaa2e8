"""Rows in memory whose passes are divided among threads by rows.

BLAS divides a product by lines of its result, and leaves one thread what comes before and after: gathering, centring, weighting.
Here each thread does all of these steps for its own rows, on pieces that stay in the processor's cache.
"""

import numpy as np

from mixbin._validate import Floats
from mixbin.data.one_blas_thread import in_threads
from mixbin.data.rows import DenseRows
from mixbin.problem import Indices

LEAST_ENTRIES = 2**22
"""Tables with fewer entries stay as they are: their Gram matrix takes a few milliseconds anyway."""
ROWS_AT_ONCE = 2**12
"""A thread takes this many rows at a time."""


class RowsOnThreads(DenseRows):
    """Rows in one array of float64, as ``DenseRows``. Sums are added in the order of the rows, whatever the number of threads."""

    def __init__(self, rows: DenseRows) -> None:
        vars(self).update(vars(rows))

    def mean(self, v: Floats, rows: Indices, total: float) -> Floats:
        """One pass over the rows with weight, or over all rows if most have weight."""
        some = 2 * len(rows) < len(v)
        weights = v[rows] if some else v
        parts = in_threads(lambda at: weights[at] @ (self._Z[rows[at]] if some else self._Z[at]), slices(len(weights)))
        return np.asarray(sum(parts) / total)

    def gram(self, rows: Indices, weights: Floats, mean: Floats) -> Floats:
        """From centred rows: subtracting the outer product of the means would cancel digits."""
        roots = np.sqrt(weights / len(self._Z))[:, None]

        def squares(at: slice) -> Floats:
            zhat = self._Z.take(rows[at], axis=0)
            zhat -= mean
            zhat *= roots[at]
            return np.asarray(zhat.T @ zhat)

        return np.asarray(sum(in_threads(squares, slices(len(rows)))))

    def products(self, thin: Floats) -> Floats:
        """One pass over all rows."""
        out, columns = np.empty((len(thin), len(self._Z))), np.ascontiguousarray(thin.T)

        def fill(at: slice) -> None:
            out[:, at] = (self._Z[at] @ columns).T

        in_threads(fill, slices(len(self._Z)))
        return out


def slices(n_rows: int) -> list[slice]:
    """Pieces of ROWS_AT_ONCE rows: at least one, which is empty if there are no rows."""
    return [slice(i, i + ROWS_AT_ONCE) for i in range(0, max(1, n_rows), ROWS_AT_ONCE)]

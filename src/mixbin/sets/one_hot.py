"""One-hot rows: a product of simplices, for assigning each row to one of several groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin.sets._mean import mean_of
from mixbin.sets._membership import MEMBERSHIP_TOLERANCE, in_unit_box
from mixbin.sets._moves import singles
from mixbin.sets._weights import inverse
from mixbin.sets.base import BinarySet, Bools, Floats, Moves


class OneHot(BinarySet):
    """All theta of shape (rows, columns) in [0, 1] whose rows sum to 1.

    Parameters
    ----------
    rows : int
        The number of items to assign, such as features.
    columns : int
        The number of groups to choose from.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.OneHot(2, 3).vertex([[0.2, 0.5, 0.3], [0.9, 0.0, 0.1]])  # one group for each of two features
    array([[False,  True, False],
           [ True, False, False]])
    """

    def __init__(self, rows: int, columns: int) -> None:
        self.rows = check.whole("rows", rows, low=1)
        self.columns = check.whole("columns", columns, low=1)
        self.shape = check.shape_that_fits("rows and columns", (self.rows, self.columns))
        self.exchange_key = np.arange(self.rows, dtype=np.float64)[:, None]

    def project(self, x: ArrayLike) -> Floats:
        """Each row projected onto the simplex: max(x - t, 0), with t from the sorted row. Rows in the simplex are not changed."""
        x = check.array("x", x, shape=self.shape)
        # t lies at most 1 below the row's maximum, so relative to the maximum the entries that matter are exact at any magnitude.
        with np.errstate(over="ignore"):
            y = np.maximum(x - x.max(axis=1, keepdims=True), -1.0)
        descending = -np.sort(-y, axis=1)
        multiplier = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, self.columns + 1)
        positive = np.count_nonzero(descending > multiplier, axis=1, keepdims=True)
        y -= np.take_along_axis(multiplier, positive - 1, axis=1)
        np.maximum(y, 0.0, out=y)
        # The running sums of a long row have larger rounding errors than its sum: share out what the sum misses.
        y -= np.where(y > 0.0, (y.sum(axis=1, keepdims=True) - 1.0) / positive, 0.0)
        np.clip(y, 0.0, 1.0, out=y)
        inside = np.clip(x, 0.0, 1.0)
        fixed = np.all(inside == x, axis=1) & (np.abs(inside.sum(axis=1) - 1.0) <= 2.0 * np.finfo(np.float64).eps)
        y[fixed] = x[fixed]
        return np.asarray(y)

    def vertex(self, x: ArrayLike) -> Bools:
        """True at the largest entry of each row."""
        return self._chosen(check.array("x", x, shape=self.shape).argmax(axis=1))

    def linear_oracle(self, g: ArrayLike) -> Floats:
        """1 at the smallest entry of each row of ``g``."""
        return self._chosen(check.array("g", g, shape=self.shape).argmin(axis=1)).astype(np.float64)

    def contains(self, x: ArrayLike) -> bool:
        """Whether the entries lie in [0, 1] and the rows sum to 1, up to rounding."""
        x = check.array("x", x, shape=self.shape)
        return in_unit_box(x) and bool(np.all(np.abs(x.sum(axis=1) - 1.0) <= MEMBERSHIP_TOLERANCE))

    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """1/columns everywhere, or with ``rng`` rows that are uniform on the simplex."""
        if rng is None:
            return np.full(self.shape, 1.0 / self.columns)
        # Exponential numbers divided by their sum are uniformly distributed on the simplex.
        x = check.generator("rng", rng).exponential(size=self.shape)
        return np.asarray(x / x.sum(axis=1, keepdims=True))

    def moves(self, theta: ArrayLike, grad: ArrayLike | None = None) -> Iterator[Moves]:
        """Every move of a row's 1 to another column."""
        theta = self._assignment(theta)
        on = np.flatnonzero(~theta)
        off = np.repeat(np.flatnonzero(theta), self.columns - 1)
        if grad is None:
            return singles(off, on, None)
        slope = check.array("grad", grad, shape=self.shape).ravel()
        return singles(off, on, slope[on] - slope[off])

    def n_moves(self, theta: ArrayLike) -> int:
        """rows * (columns - 1): each row's 1 can move to each of the other columns."""
        check.binary("theta", theta, shape=self.shape)
        return self.rows * (self.columns - 1)

    def epsilon_star(self, theta: ArrayLike, grad: ArrayLike) -> float:
        """The least over the rows of 2 / (grad of the chosen column - lowest grad of the other columns)."""
        on = self._assignment(theta)
        g = check.array("grad", grad, shape=self.shape)
        if self.columns == 1:
            return np.inf
        return inverse(0.5 * float(np.max(g[on] - np.where(on, np.inf, g).min(axis=1))))

    def violation(self, theta: ArrayLike) -> float:
        """The number of rows without exactly one 1."""
        theta = check.binary("theta", theta, shape=self.shape)
        return float(np.count_nonzero(np.count_nonzero(theta, axis=1) != 1))

    def cardinality(self) -> int:
        """columns^rows."""
        return int(self.columns**self.rows)

    def vertices(self) -> Iterator[Bools]:
        """All assignments."""
        for choice in itertools.product(range(self.columns), repeat=self.rows):
            yield self._chosen(np.array(choice))

    def tangent(self, g: ArrayLike) -> Floats:
        """``g`` without its row means."""
        g = check.array("g", g, shape=self.shape)
        return np.asarray(g - mean_of(g, axis=1))

    def _assignment(self, theta: ArrayLike) -> Bools:
        theta = check.binary("theta", theta, shape=self.shape)
        if self.violation(theta):
            raise check.fail("theta", theta, "one-hot in every row", "start from a vertex of the set")
        return theta

    def _chosen(self, column: NDArray[np.intp]) -> Bools:
        return np.asarray(np.arange(self.columns) == column[:, None])

    def __repr__(self) -> str:
        return f"OneHot({self.rows}, {self.columns})"

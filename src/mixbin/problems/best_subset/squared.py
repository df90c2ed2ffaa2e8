"""Squared loss: |y - X w|^2 + g sum_j w_j^2 / theta_j, minimised in closed form (docs/maths.md, "Best subset").

With theta = d^2 and w = d z, this is a ridge regression of y on the columns d_j x_j. If fewer columns than rows have weight, its
normal equations have one row per column; otherwise the dual form g (g I + X diag(theta) X')^-1 y has one row per row of X.
"""

import copy

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mixbin._validate import Floats
from mixbin.problem import Indices
from mixbin.problems.best_subset.columns import Columns
from mixbin.problems.best_subset.fit import Fit
from mixbin.problems.best_subset.refusals import enough_gamma
from mixbin.problems.best_subset.swaps import QuadraticModel

KEPT_ROWS = 2**23
"""Products of single columns with all others are kept for later swaps, up to this many numbers (64 MB)."""


class SquaredLoss:
    """Ridge regression of several targets on few columns.

    Parameters
    ----------
    columns : Columns
        The table, centred if the model has an intercept.
    Y : array of shape (n, targets)
        The targets, centred alike.
    gamma : float
        The ridge weight g.
    """

    exact_model = True

    def __init__(self, columns: Columns, Y: Floats, gamma: float) -> None:
        self.columns, self.Y, self.gamma = columns, Y, gamma
        self.n_targets = Y.shape[1]
        self.norm = float(np.vdot(Y, Y))
        self._diagonal = columns.squares()
        self._with_targets = np.ascontiguousarray(columns.products(Y).T)
        # Rows of X'X by feature: the rows of a search's features are needed again after each of its swaps.
        self._rows: dict[int, Floats] = {}

    def with_gamma(self, gamma: float) -> "SquaredLoss":
        """The loss on the same data with another ridge weight; it shares the products of columns."""
        other = copy.copy(self)
        other.gamma = gamma
        return other

    def fit(self, theta: Floats) -> Fit:
        """Train with weights ``theta`` of the features."""
        support = np.flatnonzero(theta)
        X = self.columns.some(support) * np.sqrt(theta[support])
        Z, residual = self._ridge(X)
        value = float(np.vdot(residual, residual) + self.gamma * np.vdot(Z, Z))
        return Fit(value, support, (Z * np.sqrt(theta[support])[:, None]).T, 0.0, residual)

    @enough_gamma()
    def _ridge(self, X: Floats) -> tuple[Floats, Floats]:
        """The coefficients of all targets on these columns, and the residuals."""
        n, s = X.shape
        if s == 0:  # SciPy before 1.16 cannot solve an empty system
            return np.zeros((0, self.Y.shape[1])), self.Y.copy()
        if s <= n:
            A = X.T @ X
            A[np.diag_indices(s)] += self.gamma
            Z = np.asarray(cho_solve(cho_factor(A, lower=True, overwrite_a=True, check_finite=False), X.T @ self.Y))
            return Z, np.asarray(self.Y - X @ Z)
        K = X @ X.T
        K[np.diag_indices(n)] += self.gamma
        dual = np.asarray(cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), self.Y))
        return X.T @ dual, self.gamma * dual

    def gains(self, residual: Floats) -> Floats:
        """How much theta of each feature lowers the dual value: minus the gradient of G."""
        return np.asarray(np.square(self.columns.products(residual)).sum(axis=1) / self.gamma)

    def bound(self, residual: Floats, most: float) -> float:
        """(v'y)^2 / (|v|^2 + most): the best multiple of v in 2 v'y - |v|^2 - sum_j theta_j (x_j'v)^2 / g, which G maximises."""
        below = float(np.vdot(residual, residual)) + most
        return float(np.vdot(residual, self.Y)) ** 2 / below if below > 0 else 0.0

    def affordable(self, residual: Floats, cutoff: float) -> float:
        """``bound`` solved for ``most``."""
        if cutoff <= 0.0:
            return np.inf
        return float(np.vdot(residual, self.Y)) ** 2 / cutoff - float(np.vdot(residual, residual))

    @enough_gamma()
    def model_of(self, support: Indices, gamma: float | None = None) -> QuadraticModel:
        """The value and its quadratic function for these features, from products of columns alone; ``gamma`` may differ."""
        g = self.gamma if gamma is None else gamma
        rows = self.rows(support)
        A = 0.5 * (rows[:, support] + rows[:, support].T)
        A[np.diag_indices(support.size)] += g
        b = self._with_targets[:, support]
        coef: Floats = np.asarray(np.linalg.solve(A, b.T).T) if support.size else np.empty((len(b), 0))
        slopes = self._with_targets - coef @ rows
        value = self.norm - float(np.vdot(coef, b))
        return QuadraticModel(value, 1.0, support, rows, self._diagonal, coef, slopes, g)

    def rows(self, support: Indices) -> Floats:
        """X_S'X for the features S."""
        wanted = support.tolist()
        missing = [j for j in wanted if j not in self._rows]
        if (len(self._rows) + len(missing)) * self.columns.p > KEPT_ROWS:
            self._rows = {j: self._rows[j] for j in wanted if j in self._rows}
        for j in missing:
            # One at a time: the bits of a row must not depend on which others were computed along with it.
            self._rows[j] = self.columns.products(self.columns.some(np.array([j]))[:, 0])
        return np.array([self._rows[j] for j in wanted]).reshape(support.size, self.columns.p)

    def values(self, supports: Indices) -> Floats:
        """G for each row of ``supports``."""
        out = np.empty(len(supports))
        for i, support in enumerate(supports):
            _, residual = (parts := self._ridge(self.columns.some(support)))
            out[i] = float(np.vdot(residual, residual) + self.gamma * np.vdot(parts[0], parts[0]))
        return out

    def lowest(self, supports: Indices, coef: Floats) -> tuple[int, float]:
        """The row of ``supports`` with the lowest G, and this G; nothing is gained from ``coef`` here."""
        values = self.values(supports)
        best = int(values.argmin())
        return best, float(values[best])

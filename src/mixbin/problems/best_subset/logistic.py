"""Logistic loss: sum_i log(1 + exp(u_i)) - y_i u_i + g/2 sum_j w_j^2 / theta_j with u = X w + b (docs/maths.md, "Best subset").

Newton's method solves a weighted ridge regression in every step. The dual of the loss is the entropy: G is the maximum over p in
[0, 1]^n of sum_i H(p_i) - 1/(2g) sum_j theta_j (x_j'(y - p))^2, where the entries of y - p sum to 0 if there is an intercept.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, xlogy

from mixbin._validate import Floats
from mixbin.problem import Indices
from mixbin.problems.best_subset.columns import Columns
from mixbin.problems.best_subset.fit import Fit
from mixbin.problems.best_subset.refusals import enough_gamma
from mixbin.problems.best_subset.swaps import QuadraticModel

NEWTON_STEPS = 100
"""Newton's method ends after this many steps at the latest; with a ridge penalty it rarely needs more than ten."""
DECREMENT = 1e-14
"""Newton's method ends when the next step promises to lower the loss by less than this share of it."""
LEAST_WEIGHT = 1e-10
"""Rows predicted with near certainty keep at least this curvature, so that weighted means are defined."""
AT_ONCE = 2**21
"""``values`` trains as many models at once as have this many numbers in their columns."""


class LogisticLoss:
    """Logistic regression on few columns.

    Parameters
    ----------
    columns : Columns
        The table, centred if the model has an intercept.
    y : array of shape (n,)
        The classes, 0 or 1.
    gamma : float
        The ridge weight g.
    intercept : bool
        Whether there is a constant, which is not penalised.
    """

    exact_model, n_targets = False, 1

    def __init__(self, columns: Columns, y: Floats, gamma: float, intercept: bool) -> None:
        self.columns, self.y, self.gamma, self.intercept = columns, y, gamma, intercept

    def with_gamma(self, gamma: float) -> "LogisticLoss":
        """The loss on the same data with another ridge weight."""
        return LogisticLoss(self.columns, self.y, gamma, self.intercept)

    def fit(self, theta: Floats) -> Fit:
        """Train with weights ``theta`` of the features."""
        support = np.flatnonzero(theta)
        root = np.sqrt(theta[support])
        X = self.columns.some(support) * root
        z, b, value, residual = self._newton(X)
        return Fit(value, support, (z * root)[None], b, residual[:, None])

    def _newton(self, X: Floats) -> tuple[Floats, float, float, Floats]:
        """The coefficients, the constant, the loss, and y - p."""
        n, s = X.shape
        g = self.gamma
        K = X @ X.T if s > n else None
        z, b = np.zeros(s), self._log_odds()
        u = np.full(n, b)
        value = self._loss(u) + 0.5 * g * float(z @ z)
        for _ in range(NEWTON_STEPS):
            p = expit(u)
            a, W = self.y - p, np.maximum(p * (1.0 - p), LEAST_WEIGHT)
            step, constant = self._step(X, K, W, a, z)
            along = X @ step + constant
            promise = float(a @ along) - g * float(z @ step)
            if promise <= DECREMENT * value:
                break
            t = 1.0
            while t > 1e-10:
                trial = z + t * step
                lower = self._loss(u + t * along) + 0.5 * g * float(trial @ trial)
                if lower <= value - 1e-4 * t * promise:
                    break
                t *= 0.5
            else:
                break
            z, b, u, value = trial, b + t * constant, u + t * along, lower
        b, residual = self._balanced(u - b, b)
        return z, b, value, residual

    @enough_gamma()
    def _step(self, X: Floats, K: Floats | None, W: Floats, a: Floats, z: Floats) -> tuple[Floats, float]:
        """Newton's step in the coefficients and the constant: a ridge regression of a / W on the columns, with weights W."""
        centre = W @ X / W.sum() if self.intercept else np.zeros(X.shape[1])
        slope = X.T @ a - self.gamma * z
        total = float(a.sum()) if self.intercept else 0.0
        right = slope - centre * total
        if K is None:
            root = np.sqrt(W)[:, None] * (X - centre)
            A = root.T @ root
            A[np.diag_indices(X.shape[1])] += self.gamma
            step = np.asarray(cho_solve(cho_factor(A, lower=True, check_finite=False), right))
        else:
            # (g I + Z'Z)^-1 = (I - Z'(g I + Z Z')^-1 Z) / g with Z = sqrt(W) (X - 1 c'), whose Z Z' comes from K = X X'
            mean_K = K @ W / W.sum() if self.intercept else np.zeros(len(K))
            inner = K - mean_K[:, None] - mean_K[None] + (float(W @ mean_K) / W.sum() if self.intercept else 0.0)
            root_W = np.sqrt(W)
            inner = inner * root_W[:, None] * root_W[None]
            inner[np.diag_indices(len(K))] += self.gamma
            image = root_W * (X @ right - float(centre @ right))
            dual = root_W * np.asarray(cho_solve(cho_factor(inner, lower=True, check_finite=False), image))
            step = (right - (X.T @ dual - centre * dual.sum())) / self.gamma
        constant = total / float(W.sum()) - float(centre @ step) if self.intercept else 0.0
        return step, constant

    def _log_odds(self) -> float:
        share = float(self.y.mean())
        return float(np.log(share / (1.0 - share))) if self.intercept else 0.0

    def _loss(self, u: Floats) -> float:
        return float(np.logaddexp(0.0, u).sum() - self.y @ u)

    def _balanced(self, u: Floats, b: float) -> tuple[float, Floats]:
        """The constant at which the entries of y - p sum to 0, as a dual point must, and y - p."""
        if self.intercept:
            for _ in range(NEWTON_STEPS):
                p = expit(u + b)
                change = float((self.y - p).sum()) / max(float((p * (1.0 - p)).sum()), LEAST_WEIGHT)
                b += float(np.clip(change, -1.0, 1.0))
                if abs(change) <= 1e-15 * max(abs(b), 1.0):
                    break
        return b, np.asarray(self.y - expit(u + b))

    def gains(self, residual: Floats) -> Floats:
        """How much theta of each feature lowers the dual value: minus the gradient of G."""
        return np.asarray(np.square(self.columns.products(residual[:, 0])) / (2.0 * self.gamma))

    def bound(self, residual: Floats, most: float) -> float:
        """The best multiple s of the dual point: sum_i H(y_i - s a_i) - s^2 most, a concave function of s in [0, 1]."""
        s, entropy = self._multiple(self._feasible(residual), most)
        return entropy - s * s * most

    def affordable(self, residual: Floats, cutoff: float) -> float:
        """``bound`` solved for ``most``, by bisection; a little less than the exact number."""
        size = self._feasible(residual)
        most = self._multiple(size, 0.0)[1] / max(cutoff, 1e-300)
        low, high = 0.0, max(1.0, most) * self.columns.n
        for _ in range(100):
            most = 0.5 * (low + high)
            s, entropy = self._multiple(size, most)
            low, high = (most, high) if entropy - s * s * most >= cutoff else (low, most)
        return low if low > 0.0 else -np.inf

    def _feasible(self, residual: Floats) -> Floats:
        """|y - p| of a dual point: the entries on both sides must sum to the same if there is an intercept."""
        a = residual[:, 0]
        size = np.clip(np.where(self.y > 0.5, a, -a), 0.0, 1.0)
        if not self.intercept:
            return np.asarray(size)
        # What rounding left of the difference is taken from the side that has more.
        up, down = float(size[self.y > 0.5].sum()), float(size[self.y <= 0.5].sum())
        least = min(up, down)
        if least <= 0.0:
            return np.zeros_like(size)
        return np.asarray(np.where(self.y > 0.5, size * (least / up), size * (least / down)))

    @staticmethod
    def _multiple(size: Floats, most: float) -> tuple[float, float]:
        """The s in [0, 1] that maximises sum_i H(s size_i) - s^2 most, and the entropy there."""
        low, high = 0.0, 1.0
        for _ in range(60):
            s = 0.5 * (low + high)
            t = s * size
            # The slope of the entropy of a probability t is log((1 - t) / t).
            slope = float(np.sum(size * (np.log1p(-t) - np.log(np.maximum(t, 1e-300))))) - 2.0 * s * most
            low, high = (s, high) if slope > 0 else (low, s)
        t = low * size
        return low, float(np.sum(-xlogy(t, t) - xlogy(1.0 - t, 1.0 - t)))

    def model_of(self, support: Indices, gamma: float | None = None) -> QuadraticModel:
        """The quadratic function around the model with these features; ``gamma`` may differ."""
        if gamma is not None and gamma != self.gamma:
            return self.with_gamma(gamma).model_of(support)
        theta = np.zeros(self.columns.p)
        theta[support] = 1.0
        return self.model(self.fit(theta))

    def model(self, fit: Fit) -> QuadraticModel:
        """The quadratic function around a fit: its exchanges are exact to second order only."""
        X = self.columns.some(fit.support)
        p = self.y - fit.residual[:, 0]
        W = np.maximum(p * (1.0 - p), LEAST_WEIGHT)
        weighted = W[:, None] * (X - (W @ X / W.sum() if self.intercept else 0.0))
        diagonal = self.columns.squares(W)
        if self.intercept:
            diagonal = np.maximum(diagonal - np.square(self.columns.products(W)) / W.sum(), 0.0)
        rows = self.columns.products(weighted).T
        slopes = self.columns.products(fit.residual[:, 0])[None]
        return QuadraticModel(fit.value, 0.5, fit.support, rows, diagonal, fit.coef, slopes, self.gamma)

    def values(self, supports: Indices) -> Floats:
        """G for each row of ``supports``."""
        out = np.empty(len(supports))
        per = max(1, AT_ONCE // max(1, self.columns.n * supports.shape[1]))
        for start in range(0, len(supports), per):
            out[start : start + per] = self._many(supports[start : start + per])
        return out

    def lowest(self, supports: Indices, coef: Floats) -> tuple[int, float]:
        """The row of ``supports`` with the lowest G, and this G; training starts from the rows of ``coef``.

        A model is given up when its loss, less twice what Newton's method promises to gain, is above the lowest one so far.
        """
        n, k = self.columns.n, supports.shape[1]
        values = self.values(supports) if k > n or supports.size * n > AT_ONCE else self._many(supports, coef)
        best = int(values.argmin())
        return best, float(values[best])

    @enough_gamma()
    def _many(self, supports: Indices, coef: Floats | None = None) -> Floats:
        """Newton's method on many models at once, each on the same number of columns.

        With ``coef`` to start from, only the lowest value is exact.
        """
        m, k = supports.shape
        n, g = self.columns.n, self.gamma
        if k > n:
            return np.array([self._newton(self.columns.some(row))[2] for row in supports])
        X = self.columns.some(supports.ravel()).T.reshape(m, k, n)
        z = np.zeros((m, k)) if coef is None else coef.copy()
        u = np.einsum("mkn,mk->mn", X, z) + self._log_odds()
        value = self._losses(u, z)
        todo = np.arange(m)
        for _ in range(NEWTON_STEPS):
            p = expit(u[todo])
            a, W = self.y - p, np.maximum(p * (1.0 - p), LEAST_WEIGHT)
            part = X if todo.size == m else X[todo]
            total = W.sum(axis=1)
            weighted = part * W[:, None]
            A = weighted @ part.transpose(0, 2, 1)
            centre = weighted.sum(axis=2) / total[:, None] if self.intercept else np.zeros((todo.size, k))
            # The columns have mean 0 already, so that their weighted means are small and nothing cancels.
            A -= total[:, None, None] * centre[:, :, None] * centre[:, None]
            A[:, np.arange(k), np.arange(k)] += g
            slope = np.matmul(part, a[:, :, None])[:, :, 0] - g * z[todo]
            excess = a.sum(axis=1) if self.intercept else np.zeros(todo.size)
            step = np.linalg.solve(A, (slope - centre * excess[:, None])[:, :, None])[:, :, 0]
            constant = excess / total - np.einsum("mk,mk->m", centre, step) if self.intercept else np.zeros(todo.size)
            along = np.matmul(step[:, None], part)[:, 0] + constant[:, None]
            promise = np.einsum("mn,mn->m", a, along) - g * np.einsum("mk,mk->m", z[todo], step)
            going = promise > DECREMENT * value[todo]
            if coef is not None:
                going &= value[todo] - 2.0 * promise <= value.min()
            if not going.any():
                break
            todo, step, along, promise = todo[going], step[going], along[going], promise[going]
            t = np.ones(todo.size)
            for _ in range(40):
                lower = self._losses(u[todo] + t[:, None] * along, z[todo] + t[:, None] * step)
                short = lower > value[todo] - 1e-4 * t * promise
                if not short.any():
                    break
                t[short] *= 0.5
            stuck = lower > value[todo]
            todo, step, along, t, lower = todo[~stuck], step[~stuck], along[~stuck], t[~stuck], lower[~stuck]
            z[todo] += t[:, None] * step
            u[todo] += t[:, None] * along
            value[todo] = lower
            if todo.size == 0:
                break
        return value

    def _losses(self, u: Floats, z: Floats) -> Floats:
        return np.asarray(np.logaddexp(0.0, u).sum(axis=1) - u @ self.y + 0.5 * self.gamma * np.square(z).sum(axis=1))

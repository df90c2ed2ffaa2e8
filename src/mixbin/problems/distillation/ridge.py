"""Which rows to train a ridge regression on (SPEC section 3): J(v, s), its exact gradient and the model itself.

Throughout, z = (x, y) is a row with its targets appended. With K = [-W, I] the model misses K (z - zbar) at a row z, so one Gram
matrix of the z's gives both covariances of the closed form, and the validation set enters only through its mean and its R factor.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import cho_solve

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import Evaluation, Improved, Indices, Warm
from mixbin.problems.distillation.descent import descend, lowest
from mixbin.problems.distillation.exchange import exchange_changes
from mixbin.problems.distillation.expansion import Expansion
from mixbin.problems.distillation.rows import DenseRows, Rows, SparseRows, summary
from mixbin.problems.distillation.scan import POOL, Scan
from mixbin.sets import Box, Budget
from mixbin.sets.budget import resolve_budget

DEFAULT_ALPHA_RANGE = (1e-6, 1e2)
"""The range of alpha that None stands for, in units of the mean variance of the columns of X."""
MOST_PAIRS = 10**9
"""More exchanges than this are not all looked through: proving that none is left would take far longer than all before it."""
FEW = 50
"""Where no more exchanges than this were found there, all exchanges are looked through."""
EXCHANGES = 500
"""Exchanges made in one call: a run can be stopped, shown and kept in between."""


class _Fit(NamedTuple):
    """The lower level's solution for one (v, alpha)."""

    K: Floats  # (e, d + e): [-W, I]
    mean: Floats  # (d + e,): the weighted mean of the rows, relative to the problem's centre
    total: float  # sum v
    rows: int  # rows with v > 0
    factor: tuple[NDArray[np.floating], bool]  # the Cholesky factor of M as cho_solve takes it


class RidgeDistillation:
    """Choose the rows whose ridge regression predicts a validation set best.

    The lower level is (W, b)(v) = argmin 1/m sum_i v_i |W x_i + b - y_i|^2 + alpha |W|^2, the upper level
    J(v, alpha) = 1/(2n) sum_j |W x_j + b - y_j|^2 over the validation rows. On selected rows this is scikit-learn's
    ``Ridge(alpha=m * alpha)``, where m counts all candidate rows, not the selected ones.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, d)
        The candidate rows. Dense ones are copied once, in their precision (float32 or float64); sparse ones stay sparse.
    y : array of shape (m,) or (m, e)
        One target or several.
    X_val : array or sparse matrix of shape (n, d)
        The validation rows.
    y_val : array of shape (n,) or (n, e)
        Their targets.
    budget : int or float, default 0.1
        How many rows to keep: a count, or a fraction in (0, 1] of the candidate rows.
    alpha : float, pair of floats or None, default None
        The strength of the ridge penalty. A number fixes it; a pair (low, high) makes it the continuous variable ``lam``,
        optimised together with the rows; None is the pair (1e-6, 1e2) times the mean variance of the columns of X.

    Attributes
    ----------
    theta_set : Budget
        Where the row weights v live.
    lam_set : Box
        Where alpha lives: shape (), in logarithmic scale; without dimensions when alpha is fixed.
    alpha : float or tuple of two floats
        The number or the pair in use.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
    >>> problem = mb.RidgeDistillation(X, X @ [1.0, 2.0, 3.0], X_val, X_val @ [1.0, 2.0, 3.0], budget=6, alpha=1e-3)
    >>> int(mb.relax_and_penalize(problem, seed=0).theta.sum())
    6
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        X_val: Any,
        y_val: ArrayLike,
        budget: int | float = 0.1,
        alpha: float | tuple[float, float] | None = None,
    ) -> None:
        X, y, X_val, y_val = _checked_data(X, y, X_val, y_val)
        fixed_or_range = _checked_alpha(alpha)
        m, self.n_features = X.shape
        self.theta_set = Budget(m, resolve_budget("budget", budget, m))
        self._one_target = y.ndim == 1
        self._rows: Rows = SparseRows(X, y) if sparse.issparse(X) else DenseRows(X, y)
        with np.errstate(over="ignore", invalid="ignore"):
            self._val_mean, self._R = summary(X_val, y_val, self._rows.centre)
            squares = np.square(self._R)
        for names, spread in (("X and y", self._rows.variances), ("X_val and y_val", squares)):
            if not check.is_finite(spread):
                raise InvalidInput(f"{names} must have squares that fit in float64, got columns that overflow; rescale them")
        # Moves are evaluated at the point that was evaluated last: its fit is kept.
        self._last: tuple[Floats, float, _Fit | None] | None = None
        self.alpha = _default_range(self._rows.variances[: self.n_features]) if fixed_or_range is None else fixed_or_range
        self.lam_set = Box.empty() if isinstance(self.alpha, float) else Box(*self.alpha, log=True)

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """J at the row weights ``theta`` and the penalty ``lam``; +inf with zero gradients when no row is selected."""
        fit = self._fit(theta, lam)
        if fit is None:
            zeros = np.zeros(self.theta_set.shape), np.zeros(self.lam_set.shape)
            return Evaluation(np.inf, zeros[0] if gradient else None, zeros[1] if gradient else None, info={"rows": 0.0})
        # Minus the residuals r_j of SPEC, split into their mean and the rest.
        missed_mean = fit.K @ (self._val_mean - fit.mean)
        missed = self._R @ fit.K.T
        value = 0.5 * float(np.vdot(missed, missed) + np.vdot(missed_mean, missed_mean))
        grad_theta, grad_lam = self._gradients(fit, missed, missed_mean) if gradient else (None, None)
        return Evaluation(value, grad_theta, grad_lam, info={"rows": float(fit.rows)})

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """J after each exchange of a selected row for another, exactly, from one fit (see ``exchange``)."""
        at = self._expansion(theta, lam)
        return at.value + self._changes(at, off, on)

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float]:
        """The best of all exchanges (see ``scan``): the row to take out, the row to put in, and J afterwards."""
        at, chosen = self._expansion(theta, lam), theta > 0.5
        if chosen.all():
            return -1, -1, np.inf
        best = Scan(self._rows, at, chosen).best()
        return best.off, best.on, at.value + best.change

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> Improved:
        """A selection reached by exchanges that each lower J, all known once none is left.

        First exchanges among the rows that promise most (see ``descent``); once these are few, anywhere
        (see ``scan``), unless there are more than a thousand million: then the search ends where it finds no more.
        """
        grad = self.evaluate(theta, lam).grad_theta
        assert grad is not None
        at, chosen = self._expansion(theta, lam), theta > 0.5
        if chosen.all():
            return Improved(chosen)
        pool = np.concatenate([lowest(np.flatnonzero(chosen), -grad, POOL), lowest(np.flatnonzero(~chosen), grad, POOL)])
        after = descend(at, self._rows.take(pool, at.origin), chosen[pool], 1.0 / self._rows.n_rows, EXCHANGES)
        made = np.count_nonzero(after != chosen[pool]) // 2
        chosen[pool] = after
        if made > FEW or self.theta_set.n_moves(chosen) > MOST_PAIRS:
            return Improved(chosen)
        scan = Scan(self._rows, self._expansion(chosen, lam), chosen)
        best_change = scan.settle(EXCHANGES)
        return Improved(scan.chosen, 0 if np.isnan(best_change) else self.theta_set.n_moves(scan.chosen), best_change)

    def _expansion(self, theta: ArrayLike, lam: ArrayLike) -> Expansion:
        """What exchanges need to know of the current selection, in coordinates centred on its weighted mean."""
        fit = self._trained(theta, lam)
        d, e = self.n_features, len(fit.K)
        missed_mean = fit.K @ (self._val_mean - fit.mean)
        missed = self._R @ fit.K.T
        value = 0.5 * float(np.vdot(missed, missed) + np.vdot(missed_mean, missed_mean))
        # P = N^-1 is block diagonal in these coordinates: M^-1, and m / sum v for the intercept.
        P = np.zeros((d + 1, d + 1))
        P[:d, :d] = cho_solve(fit.factor, np.eye(d), check_finite=False)
        P[d, d] = self._rows.n_rows / fit.total
        shift = self._val_mean[:d] - fit.mean[:d]
        root = np.vstack([np.hstack([self._R[:, :d], np.zeros((len(self._R), 1))]), np.append(shift, 1.0)])
        coef = np.vstack([-fit.K[:, :d].T, np.zeros((1, e))])
        return Expansion(fit.mean, coef, value, P, root.T @ root, -root.T @ np.vstack([missed, missed_mean]))

    def _changes(self, at: Expansion, off: Indices, on: Indices) -> Floats:
        """The change of J by each exchange."""
        terms = []
        for side in (off, on):
            rows, place = np.unique(side[side >= 0], return_inverse=True)
            index = np.full(side.size, len(rows))
            index[side >= 0] = place
            terms.append((at.terms(self._rows.take(rows, at.origin), none=True), index))
        (out, i), (into, j) = terms
        return exchange_changes(out, into, i, j, at.H, 1.0 / self._rows.n_rows)

    def model(self, theta: ArrayLike, lam: ArrayLike = ()) -> tuple[Floats, Floats | float]:
        """The ridge regression trained with (theta, lam).

        Returns
        -------
        coef : array of shape (d,), or (e, d) when y has two dimensions
        intercept : float, or array of shape (e,)
        """
        fit = self._fit(theta, lam)
        if fit is None:
            raise InvalidInput("theta must select at least one row, got none; use top-k rounding or a larger budget")
        d = self.n_features
        coef = -fit.K[:, :d]
        mean = self._rows.centre + fit.mean
        intercept = mean[d:] - coef @ mean[:d]
        return (coef[0], float(intercept[0])) if self._one_target else (coef, intercept)

    def fingerprint(self) -> str:
        """A hash of the data and the settings, for checkpoints."""
        settings = f"RidgeDistillation 1 {self.theta_set!r} {self.alpha!r} {self._one_target} {self._rows.digest()}"
        return digest(self._val_mean, self._R, settings=settings)

    def _trained(self, theta: ArrayLike, lam: ArrayLike) -> _Fit:
        fit = self._fit(theta, lam)
        if fit is None:
            raise InvalidInput("theta must select at least one row, got an empty selection; use top-k rounding")
        return fit

    def _fit(self, theta: ArrayLike, lam: ArrayLike) -> _Fit | None:
        """The closed form of the lower level; None when no row has weight."""
        v = check.array("theta", theta, shape=self.theta_set.shape)
        if v.min() < 0:
            raise InvalidInput(f"theta must not be negative, got {v.min():g} at index {v.argmin()}; project it on theta_set")
        alpha = self._alpha(lam)
        last = self._last
        if last is not None and last[1] == alpha and np.array_equal(last[0], v):
            return last[2]
        fit = self._closed_form(v, alpha)
        self._last = (v.copy(), alpha, fit)
        return fit

    def _closed_form(self, v: Floats, alpha: float) -> _Fit | None:
        total = float(v.sum())
        if total == 0:
            return None
        d = self.n_features
        rows = np.flatnonzero(v)
        mean = self._rows.mean(v, rows, total)
        S = self._rows.gram(rows, v[rows], mean)
        M = S[:d, :d]
        M[np.diag_indices(d)] += alpha
        try:
            # NumPy's Cholesky, not SciPy's: each brings its own BLAS threads, which spin and slow down the other's products.
            factor = (np.linalg.cholesky(M).T, False)
        except np.linalg.LinAlgError:
            raise DivergedError(
                f"the ridge system is singular at alpha = {alpha:g}; raise alpha or rescale the columns of X"
            ) from None
        W = cho_solve(factor, S[:d, d:], check_finite=False).T
        return _Fit(np.hstack([-W, np.eye(len(W))]), mean, total, len(rows), factor)

    def gradient_terms(self, theta: ArrayLike, lam: ArrayLike = ()) -> tuple[Floats, Floats]:
        """The two terms of dJ/dv = first / m + second (SPEC section 3): through the covariances, and through the means."""
        fit = self._trained(theta, lam)
        missed_mean, missed = fit.K @ (self._val_mean - fit.mean), self._R @ fit.K.T
        missed_rows, a_rows, _ = self._row_products(fit, missed, missed_mean)
        return np.einsum("ij,ij->j", missed_rows, a_rows), -missed_mean @ missed_rows / fit.total

    def _row_products(self, fit: _Fit, missed: Floats, missed_mean: Floats) -> tuple[Floats, Floats, Floats]:
        """Yhat - W xhat and A xhat for all rows, each of shape (e, m); and A."""
        d, e = self.n_features, len(fit.K)
        gamma = -missed.T @ self._R[:, :d] - np.outer(missed_mean, self._val_mean[:d] - fit.mean[:d])
        A = cho_solve(fit.factor, gamma.T, check_finite=False).T
        out = self._rows.images(np.vstack([fit.K, np.hstack([A, np.zeros((e, e))])]), fit.mean)
        return out[:e], out[e:], A

    def _gradients(self, fit: _Fit, missed: Floats, missed_mean: Floats) -> tuple[Floats, Floats]:
        """dJ/dv in all coordinates at once, and dJ/dalpha = -<A, W>."""
        missed_rows, a_rows, A = self._row_products(fit, missed, missed_mean)
        a_rows /= self._rows.n_rows
        a_rows -= missed_mean[:, None] / fit.total
        grad_theta = np.einsum("ij,ij->j", missed_rows, a_rows)
        grad_lam = np.asarray(np.vdot(A, fit.K[:, : self.n_features])) if self.lam_set.size else np.empty(0)
        return grad_theta, grad_lam

    def _alpha(self, lam: ArrayLike) -> float:
        """The penalty at ``lam``, or the fixed one."""
        lam = check.array("lam", lam, shape=self.lam_set.shape)
        if isinstance(self.alpha, float):
            return self.alpha
        return check.real("lam", float(lam), low=0, open_low=True, remedy="project it on lam_set")


def _checked_data(X: Any, y: ArrayLike, X_val: Any, y_val: ArrayLike) -> tuple[Any, Floats, Any, Floats]:
    """The four arrays, each with the shape that the others ask for."""
    X, X_val = _table("X", X), _table("X_val", X_val)
    y, y_val = _targets("y", y, "X", X.shape[0]), _targets("y_val", y_val, "X_val", X_val.shape[0])
    if X_val.shape[1] != X.shape[1]:
        raise InvalidInput(
            f"X_val must have the columns of X, got {X_val.shape[1]} columns against {X.shape[1]}; "
            "pass the same features in the same order"
        )
    if y_val.shape[1:] != y.shape[1:]:
        raise InvalidInput(f"y_val must have the targets of y, got shape {y_val.shape} against {y.shape}; shape them alike")
    return X, y, X_val, y_val


def _table(name: str, value: Any) -> Any:
    """A dense array of float64 or float32, or a sparse matrix of finite numbers, with rows and columns."""
    if sparse.issparse(value):
        table = sparse.csr_array(value)
        check.array(name, table.data)
    else:
        table = check.array(name, value, keep_single=True)
    if table.ndim != 2 or 0 in table.shape:
        raise check.fail(
            name, value, "a table of shape (rows, columns), neither of them 0", "reshape it or check how it was read"
        )
    return table


def _targets(name: str, value: ArrayLike, table: str, rows: int) -> Floats:
    y = check.array(name, value)
    if y.ndim not in (1, 2) or len(y) != rows or 0 in y.shape:
        raise check.fail(name, y, f"an array of shape ({rows},) or ({rows}, targets)", f"give one target per row of {table}")
    return y


def _checked_alpha(alpha: object) -> float | tuple[float, float] | None:
    if alpha is None:
        return None
    remedy = "pass a number to fix it, a pair (low, high) to optimise it, or None"
    return check.positive_or_range("alpha", alpha, remedy)


def _default_range(variances: Floats) -> tuple[float, float]:
    scale = float(variances.mean())
    if scale <= 0:
        raise InvalidInput("alpha=None needs a column of X that varies, got constant columns only; pass a number or check X")
    low, high = DEFAULT_ALPHA_RANGE
    return low * scale, high * scale

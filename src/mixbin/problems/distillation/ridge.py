"""Which rows to train a ridge regression on (SPEC section 3): J(v, s), its exact gradient and the model itself.

Throughout, z = (x, y) is a row with its targets appended. With K = [-W, I] the model misses K (z - zbar) at a row z, so one Gram
matrix of the z's gives both covariances of the closed form, and the validation set enters only through its mean and its R factor.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import Evaluation, Improved, Indices, Warm
from mixbin.problems.distillation.dask_rows import DaskBlocks, DaskRows
from mixbin.problems.distillation.data import candidates, checked, validation
from mixbin.problems.distillation.descent import descend, lowest
from mixbin.problems.distillation.exchange import exchange_changes
from mixbin.problems.distillation.expansion import Expansion
from mixbin.problems.distillation.rows import Pool
from mixbin.problems.distillation.scan import POOL, Scan
from mixbin.problems.work import OutOfWork, Work
from mixbin.sets import Box, Budget
from mixbin.sets.budget import resolve_budget

DEFAULT_ALPHA_RANGE = (1e-6, 1e2)
"""The range of alpha that None stands for, in units of the mean variance of the columns of X."""
LARGEST_SQUARE = 1e120
"""Gradients are products of squares of columns, and are squared once more by solvers."""
LARGEST_WEIGHT = 1e100
"""Weights are at most 1; far beyond, their sums overflow."""
MOST_PAIRS = 10**9
"""More exchanges than this are not all looked through: proving that none is left would take far longer than all before it."""
FEW = 50
"""If the search among promising rows made at most this many exchanges, all exchanges are looked through."""
EXCHANGES = 500
"""Exchanges made in one call: a run can be stopped, shown and kept in between."""
FIT_ROUNDING = 1e-10
"""The lower bound allows for rounding of this share of the targets' size."""

UNDISTINGUISHED = np.errstate(over="ignore", invalid="ignore")
"""Where nothing but a tiny alpha tells rows apart, exchanges overflow; such an exchange is never made."""


class _Weighted(NamedTuple):
    """What the closed form needs of the weighted rows."""

    total: float  # sum v
    rows: int  # rows with v > 0
    mean: Floats  # (d + e,)
    S: Floats  # (d + e, d + e): 1/m sum v zhat zhat'


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
    X : array, sparse matrix, Dask array or Dask dataframe of shape (m, d)
        The candidate rows. Dense ones are copied once, in their precision (float32 or float64); sparse ones stay sparse. Those of
        Dask stay with its workers, in blocks of rows: in memory where they fit, else read anew in every pass.
    y : array of shape (m,) or (m, e)
        One target or several; of Dask, in the same blocks, where X is.
    X_val : array, sparse matrix, Dask array or Dask dataframe of shape (n, d)
        The validation rows.
    y_val : array of shape (n,) or (n, e)
        Their targets; of Dask where X_val is.
    budget : int or float, default 0.1
        How many rows to keep: a count, or a fraction in (0, 1] of the candidate rows.
    alpha : float, pair of floats or None, default None
        The strength of the ridge penalty. A number fixes it; a pair (low, high) makes it the continuous variable ``lam``,
        optimised together with the rows; None is the pair (1e-6, 1e2) times the mean variance of the columns of X.
    chunks : sequence of int, optional
        Work on blocks of so many rows each, as on a Dask array with these chunks, and to the same bits. For arrays only.
        A block is computed on one BLAS thread.

    Attributes
    ----------
    theta_set : Budget
        Where the row weights v live.
    lam_set : Box
        Where alpha lives: shape (), in logarithmic scale; without dimensions when alpha is fixed.
    alpha : float or tuple of two floats
        The number or the pair in use.
    dask_blocks : object or None
        For X of Dask. Its ``storage`` says how large X is, in how many blocks, and whether these are kept in memory or read
        anew in every pass; ``passes``, ``bytes_read`` and ``n_workers`` count.

    Notes
    -----
    On Dask a value is one pass over the blocks with weight and a gradient a second one. Exchanges are looked for among the rows
    that promise most, which are fetched, and the certificate speaks of these.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
    >>> problem = mb.RidgeDistillation(X, X @ [1.0, 2.0, 3.0], X_val, X_val @ [1.0, 2.0, 3.0], budget=6, alpha=1e-3)
    >>> int(mb.relax_and_penalize(problem, seed=0).theta.sum())
    6
    """

    preferred_settings: Mapping[str, int] = MappingProxyType({"inner_steps": 5})
    """Few steps per eps: polish with the search for exchanges makes up for the rest (benchmarks/blog.py)."""

    def __init__(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        budget: int | float = 0.1,
        alpha: float | tuple[float, float] | None = None,
        *,
        chunks: Sequence[int] | None = None,
    ) -> None:
        X, y, X_val, y_val = checked(X, y, X_val, y_val)
        fixed_or_range = _checked_alpha(alpha)
        self.n_features, self._one_target = int(X.shape[1]), y.ndim == 1
        self._rows = candidates(X, y, chunks)
        m = self._rows.n_rows
        self.theta_set = Budget(m, resolve_budget("budget", budget, m))
        with np.errstate(over="ignore", invalid="ignore"):
            self._val_mean, self._R = validation(X_val, y_val, self._rows)
            squares = np.square(np.vstack([self._val_mean, self._R]))
        for names, spread in (("X and y", self._rows.variances), ("X_val and y_val", squares)):
            if not check.is_finite(spread) or spread.max() > LARGEST_SQUARE:
                must = f"squares that fit in float64, with room for their products ({LARGEST_SQUARE:g})"
                raise InvalidInput(f"{names} must have {must}, got columns that overflow; rescale them")
        # Moves are evaluated at the point that was evaluated last, and lam is often changed alone: moments and fit are kept.
        # Weights are recognised by a hash: a copy of them is a large part of what a large problem needs here.
        self._moments: tuple[str, _Weighted] | None = None
        self._last: tuple[float, _Fit] | None = None
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

    @UNDISTINGUISHED
    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """J after each exchange of a selected row for another, exactly, from one fit (see ``exchange``)."""
        at = self._expansion(theta, lam)
        change = self._changes(at, off, on)
        return at.value + np.where(np.isfinite(change), change, np.inf)

    @property
    def dask_blocks(self) -> DaskBlocks | None:
        """The blocks of a Dask X: where they are, and how often they were passed over."""
        return self._rows.blocks if isinstance(self._rows, DaskRows) else None

    @UNDISTINGUISHED
    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """The best of all exchanges (see ``scan``): the row to take out, the row to put in, and J afterwards.

        None for rows in blocks, where that would take many passes.
        """
        at, chosen = self._expansion(theta, lam), theta > 0.5
        if chosen.all():
            return -1, -1, np.inf
        if not self._rows.at_hand:
            return None
        best = Scan(self._rows, at, chosen, 1.0 / self._rows.n_rows).best()
        return best.off, best.on, at.value + best.change

    @UNDISTINGUISHED
    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, max_cost: float = np.inf) -> Improved:
        """A selection reached by exchanges that each lower J; once none is left, that is known of all exchanges.

        First exchanges among the rows that promise most (see ``descent``); once these are few, anywhere (see ``scan``), unless
        there are more than a thousand million: then the search ends where it finds no more. Rows in blocks are not at hand: the
        search stays among those that promise most, and so does what is known at its end. ``cost`` counts the multiply-adds of
        all that; the search stops before it exceeds ``max_cost``.
        """
        work, chosen = Work(self._evaluation_work(theta), max_cost), theta > 0.5
        try:
            found = self._searched(theta, lam, chosen, work)
        except OutOfWork:
            found = Improved(chosen)
        return found._replace(cost=work.cost)

    def _searched(self, theta: Floats, lam: Floats, chosen: NDArray[np.bool_], work: Work) -> Improved:
        """The search itself; ``chosen`` is kept up to date, for when OutOfWork ends it."""
        work.add(work.unit)
        grad = self.evaluate(theta, lam).grad_theta
        assert grad is not None
        at = self._expansion(theta, lam, work)
        if chosen.all():
            return Improved(chosen)
        pool = np.concatenate([lowest(np.flatnonzero(chosen), -grad, POOL), lowest(np.flatnonzero(~chosen), grad, POOL)])
        weight, near = 1.0 / self._rows.n_rows, self._rows.take(pool, at.origin)
        if not self._rows.at_hand:
            scan = Scan(Pool(near, at.origin), at, chosen[pool], weight, work)
            try:
                best_change = scan.settle(EXCHANGES)
            finally:
                chosen[pool] = scan.chosen
            among = int(np.count_nonzero(scan.chosen)) * int(np.count_nonzero(~scan.chosen))
            return Improved(chosen, 0 if np.isnan(best_change) else among, best_change)
        after = descend(at, near, chosen[pool], weight, EXCHANGES, work)
        made = np.count_nonzero(after != chosen[pool]) // 2
        chosen[pool] = after
        if made > FEW or self.theta_set.n_moves(chosen) > MOST_PAIRS:
            return Improved(chosen)
        if made:
            work.add(self._fit_work(chosen))
        scan = Scan(self._rows, self._expansion(chosen, lam, work), chosen, weight, work)
        try:
            best_change = scan.settle(EXCHANGES)
        finally:
            chosen[:] = scan.chosen
        return Improved(chosen, 0 if np.isnan(best_change) else self.theta_set.n_moves(chosen), best_change)

    def lower_bound(self, theta: Floats, lam: Floats) -> float:
        """The least value of the upper level over all linear models with intercept, whatever the rows and alpha."""
        return self._least_value

    @cached_property
    def _least_value(self) -> float:
        """Half the squared norm of the part of the targets that no combination of the columns reaches.

        The columns of X come first in the triangular factor, so that part is its last block. For few validation rows R is not
        triangular. Rounding may make the norm too large by a share of the targets', which is taken off.
        """
        d = self.n_features
        triangle = np.asarray(np.linalg.qr(self._R, mode="r"))
        unreached = float(np.linalg.norm(triangle[d:, d:]))
        return 0.5 * max(unreached - FIT_ROUNDING * float(np.linalg.norm(self._R[:, d:])), 0.0) ** 2

    def _evaluation_work(self, theta: Floats) -> int:
        """The multiply-adds of one evaluation with gradient: the fit, residuals, and what the gradient needs of all rows."""
        d, columns = self.n_features, int(self._R.shape[1])
        e = columns - d
        adjoint = len(self._R) * (columns + d) * e + d * d * e
        return self._fit_work(theta) + adjoint + self._rows.image_work(2 * e) + self._rows.n_rows * e

    def _fit_work(self, theta: NDArray[Any]) -> int:
        """The multiply-adds of one fit: moments and closed form."""
        d, columns = self.n_features, int(self._R.shape[1])
        return self._rows.moment_work(theta) + d * d * d // 6 + d * d * (columns - d)

    def _expansion(self, theta: ArrayLike, lam: ArrayLike, work: Work | None = None) -> Expansion:
        """What exchanges need to know of the current selection, in coordinates centred on its weighted mean."""
        d, rows, columns = self.n_features, *self._R.shape
        if work is not None:
            # Besides the fit: its inverse, the Hessian, residuals and gradient.
            work.add(d**3 + (rows + 1) * (d + 1) ** 2 + rows * (columns + d + 1) * (columns - d))
        fit = self._trained(theta, lam)
        e = len(fit.K)
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
        if v.max() > LARGEST_WEIGHT:
            raise InvalidInput(f"theta must be weights, got {v.max():g} at index {v.argmax()}; project it on theta_set")
        alpha = self._alpha(lam)
        if not v.any():
            return None
        name = digest(v)
        if self._moments is None or self._moments[0] != name:
            total = float(v.sum())
            self._moments = (name, _Weighted(total, int(np.count_nonzero(v)), *self._rows.moments(v, total)))
            self._last = None
        if self._last is None or self._last[0] != alpha:
            self._last = (alpha, self._closed_form(alpha, *self._moments[1]))
        return self._last[1]

    def _closed_form(self, alpha: float, total: float, rows: int, mean: Floats, S: Floats) -> _Fit:
        d = self.n_features
        M = S[:d, :d].copy()
        M[np.diag_indices(d)] += alpha
        try:
            # NumPy's Cholesky, not SciPy's: each brings its own BLAS threads, which spin and slow down the other's products.
            factor = (np.linalg.cholesky(M).T, False)
        except np.linalg.LinAlgError:
            raise DivergedError(
                f"the ridge system is singular at alpha = {alpha:g}; raise alpha or rescale the columns of X"
            ) from None
        W = cho_solve(factor, S[:d, d:], check_finite=False).T
        return _Fit(np.hstack([-W, np.eye(len(W))]), mean, total, rows, factor)

    def gradient_terms(self, theta: ArrayLike, lam: ArrayLike = ()) -> tuple[Floats, Floats]:
        """The two terms of dJ/dv = first / m + second (SPEC section 3): through the covariances, and through the means."""
        fit = self._trained(theta, lam)
        missed_mean, missed = fit.K @ (self._val_mean - fit.mean), self._R @ fit.K.T
        A = self._pull(fit, missed, missed_mean)
        out = self._rows.images(np.vstack([fit.K, A]), fit.mean)
        missed_rows, a_rows = out[: len(fit.K)], out[len(fit.K) :]
        return np.einsum("ij,ij->j", missed_rows, a_rows), -missed_mean @ missed_rows / fit.total

    def _pull(self, fit: _Fit, missed: Floats, missed_mean: Floats) -> Floats:
        """A, with a column of zeros for each target."""
        d, e = self.n_features, len(fit.K)
        gamma = -missed.T @ self._R[:, :d] - np.outer(missed_mean, self._val_mean[:d] - fit.mean[:d])
        return np.hstack([cho_solve(fit.factor, gamma.T, check_finite=False).T, np.zeros((e, e))])

    def _gradients(self, fit: _Fit, missed: Floats, missed_mean: Floats) -> tuple[Floats, Floats]:
        """dJ/dv in all coordinates at once, and dJ/dalpha = -<A, W>."""
        A, d = self._pull(fit, missed, missed_mean), self.n_features
        grad_theta = self._rows.gradient(fit.K, A, missed_mean / fit.total, fit.mean)
        grad_lam = np.asarray(np.vdot(A[:, :d], fit.K[:, :d])) if self.lam_set.size else np.empty(0)
        return grad_theta, grad_lam

    def _alpha(self, lam: ArrayLike) -> float:
        """The penalty at ``lam``, or the fixed one."""
        lam = check.array("lam", lam, shape=self.lam_set.shape)
        if isinstance(self.alpha, float):
            return self.alpha
        return check.real("lam", float(lam), low=0, open_low=True, remedy="project it on lam_set")


def _checked_alpha(alpha: object) -> float | tuple[float, float] | None:
    if alpha is None:
        return None
    remedy = "pass a number to fix it, a pair (low, high) to optimise it, or None"
    return check.positive_or_range("alpha", alpha, remedy)


def _default_range(variances: Floats) -> tuple[float, float]:
    scale = float(variances.mean())
    if scale <= 0:
        raise InvalidInput("alpha=None needs a column of X that varies, got constant columns only; pass a number or check X")
    low, high = (bound * scale for bound in DEFAULT_ALPHA_RANGE)
    if low <= 0:
        raise InvalidInput(f"X must have columns of a larger variance than {scale:g}, which is lost in rounding; rescale them")
    return low, high

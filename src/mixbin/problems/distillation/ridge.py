"""Choose which rows to train a ridge regression on: J(v, s), its exact gradient and the model itself.

The equations are those of docs/maths.md, "Closed form of the ridge regression" and docs/maths.md, "Gradient of the validation
loss".

Throughout, z = (x, y) is a row with its targets appended. With K = [-W, I], the targets of a row z exceed its predictions by
K (z - zbar). So one Gram matrix of the z's gives both covariances of the closed form, and the validation set enters only through
its mean and the R factor of its QR decomposition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.data.one_blas_thread import on_one_blas_thread
from mixbin.data.rows import DenseRows, RowStore
from mixbin.data.rows_on_threads import RowsOnThreads
from mixbin.data.training_and_validation import candidates, checked
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import Evaluation, Improved, Indices, PointValues, Warm
from mixbin.problems.distillation.closed_form import Fit, Weighted, closed_form, solved
from mixbin.problems.distillation.cross_validation import cross_validated, drawn_folds
from mixbin.problems.distillation.exchanges import ExchangeSearch
from mixbin.problems.distillation.expansion import Expansion
from mixbin.problems.distillation.many_points import Judge, point_values
from mixbin.problems.distillation.ridge_checks import (
    DEFAULT_ALPHA_RANGE,
    check_squares,
    checked_alpha,
    checked_outer_alpha,
    checked_outer_coef,
    default_alpha_range,
)
from mixbin.problems.distillation.upper import scales_of, upper_level
from mixbin.problems.strength import Strength
from mixbin.problems.work import Work
from mixbin.sets import Budget
from mixbin.sets.budget import resolve_budget

BEYOND_OUTER, SAFE_ALPHA = 1e-3, 1e-10
"""With a penalty in the upper level, the range of ``alpha=None`` reaches this far beyond the alpha that would suit all rows, but
not so far below the variances that rounding could make the ridge system singular."""
LARGEST_WEIGHT = 1e100
"""Larger weights are refused because their sums could overflow; the weights of a budget are at most 1."""
MODELLED_ENTRIES = 2**19
"""In tables with fewer entries a round through all exchanges is cheap. From 20,000 x 30 on, exchanges that are chosen by a model
made whole runs three to seven times as fast."""
ROWS_PER_FEATURE = 1.5
"""With fewer rows to keep, exchanges are not chosen by a model. In 192 problems on random tables, a model led to answers as good
or better from twice the number of features on, and to slightly worse ones at d + 2 rows."""
FIT_ROUNDING = 1e-10
"""The lower bound is lowered by this share of the norm of the targets, so that rounding cannot make it too high."""
PENALISED_ROUNDING = 1e-13
"""The same with a penalty in the upper level, whose rows make R well conditioned and triangular."""


class RidgeDistillation:
    """Choose the rows whose ridge regression predicts a validation set best.

    The lower level is (W, b)(v) = argmin 1/m sum_i v_i |W x_i + b - y_i|^2 + alpha |W|^2, the upper level
    J(v, alpha) = 1/(2n) sum_j |W x_j + b - y_j|^2 over the validation rows. On selected rows this is scikit-learn's
    ``Ridge(alpha=m * alpha)``, where m counts all candidate rows, not the selected ones.

    Without validation rows all candidate rows judge. ``outer_alpha`` adds a/2 |W - W0|^2 to the upper level; ``standardize``
    measures the coefficients in both penalties by the standard deviations of the columns (docs/maths.md, "Judged by all rows").

    Parameters
    ----------
    X : array, sparse matrix, Dask array or Dask dataframe of shape (m, d)
        The candidate rows. Dense ones are copied once, in their precision (float32 or float64); sparse ones stay sparse. Rows of
        a Dask collection, such as X of a ``ParquetFolder``, stay with the workers in blocks: in memory if they fit; else they
        are read in every pass, from copies on the workers' disks where these fit (docs/how-far-it-scales.md).
    y : array of shape (m,) or (m, e)
        One target or several. If X is a Dask collection, y must be a Dask collection with the same blocks.
    X_val : array, sparse matrix, Dask array or Dask dataframe of shape (n, d), optional
        The validation rows. Without them, the candidate rows themselves judge.
    y_val : array of shape (n,) or (n, e), optional
        Their targets: a Dask collection if X_val is one.
    budget : int or float, default 0.1
        How many rows to keep: a count, or a fraction in (0, 1] of the candidate rows.
    alpha : float, pair of floats or None, default None
        The strength of the ridge penalty. A number fixes it; a pair (low, high) makes it the continuous variable ``lam``,
        optimised together with the rows; None is the pair (1e-6, 1e2) times the mean variance of the columns of X, which is 1
        if ``standardize``, and a wider one if ``outer_alpha`` asks for it.
    outer_alpha : float or "cv", default 0.0
        The strength a of the penalty in the upper level, in the units of alpha; 0 is the paper's problem. "cv" chooses it by
        10-fold cross-validation on the rows that judge, n of them: one of ``numpy.logspace(-5, 5, 81)``, divided by n.
    outer_coef : array of shape (d,), or (e, d) when y has two dimensions, optional
        The coefficients W0 that the penalty of the upper level pulls towards; zero by default.
    standardize : bool, default False
        Whether both penalties are on coefficients per standard deviation of a column of X, so that the units of the columns do
        not matter: alpha |D W|^2 with D the standard deviations. The data are not copied, and coefficients stay in the units of
        X.
    cv_seed : int, default 0
        Shuffles the rows into the folds of the cross-validation.
    chunks : sequence of int, optional
        Work on blocks with these numbers of rows, as on a Dask array with these chunks, and to the same bits. For arrays only.
        A block is computed on one BLAS thread.
    compact : bool, default True
        Whether a large table may also store columns that mostly repeat one value by their other entries, and make many exchanges
        at once: a run on BlogFeedback then takes less than a third of the time (benchmarks/blog.py). False gives the bits of
        the results in docs/results.

    Attributes
    ----------
    theta_set : Budget
        Where the row weights v live.
    lam_set : Box
        Where alpha lives: shape (), in logarithmic scale; without dimensions when alpha is fixed.
    alpha : float or tuple of two floats
        The number or the pair in use; ``strength.value(lam)`` is the number that belongs to ``lam``.
    outer_alpha : float
        The strength of the penalty in the upper level, given or found by cross-validation.
    scales : array of shape (d,)
        The standard deviations D of the columns of X, 1 for constant columns; all 1 unless ``standardize``.
    judged_by_all : bool
        Whether the candidate rows themselves judge.
    n_judging : int
        How many rows judge.
    rows : row store
        ``rows.statistics()`` tells how the candidate rows are kept: ``storage`` says in words how large they are, where they are
        and whether they are read again in every pass; ``passes``, ``bytes_read`` and ``n_workers`` count.

    Notes
    -----
    If the rows are stored in blocks, a value takes one pass over the blocks that have weight, and a gradient takes a second pass.
    The search for exchanges fetches the rows that promise most and stays among them, and the certificate covers only these.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
    >>> problem = mb.RidgeDistillation(X, X @ [1.0, 2.0, 3.0], X_val, X_val @ [1.0, 2.0, 3.0], budget=6, alpha=1e-3)
    >>> int(mb.relax_and_penalize(problem, seed=0).theta.sum())
    6
    """

    scan_at_most: float = np.inf
    """If there are more exchanges than this, ``improve`` does not look through all of them, and proves nothing about them."""
    preferred_settings: Mapping[str, int] = MappingProxyType({"inner_steps": 5})
    """Few steps per eps are enough, because the search for exchanges in polish makes up for the rest (benchmarks/blog.py)."""

    def __init__(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        budget: int | float = 0.1,
        alpha: float | tuple[float, float] | None = None,
        *,
        outer_alpha: float | str = 0.0,
        outer_coef: ArrayLike | None = None,
        standardize: bool = False,
        cv_seed: int = 0,
        chunks: Sequence[int] | None = None,
        compact: bool = True,
    ) -> None:
        X, y, X_val, y_val = checked(X, y, X_val, y_val)
        fixed_or_range = checked_alpha(alpha)
        outer = checked_outer_alpha(outer_alpha)
        self.standardize = check.flag("standardize", standardize)
        self.judged_by_all = X_val is None
        self.n_features, self._one_target = int(X.shape[1]), y.ndim == 1
        self.outer_coef = prior = checked_outer_coef(outer_coef, outer, (*y.shape[1:], self.n_features))
        seed = check.whole("cv_seed", cv_seed, low=0, remedy="it shuffles the folds of the cross-validation; pass 0")
        self.compact = check.flag("compact", compact)
        self._rows = candidates(X, y, chunks, self.compact)
        m = self._rows.n_rows
        self.theta_set = Budget(m, resolve_budget("budget", budget, m))
        check_squares("X and y", self._rows.variances)
        self.scales = scales_of(self._rows, self.n_features) if self.standardize else np.ones(self.n_features)
        with np.errstate(over="ignore", invalid="ignore"):
            upper = upper_level(self._rows, X_val, y_val, self.scales, outer, prior, seed)
            self._val_mean, self._loss_R, self._R, self.outer_alpha, self.n_judging = upper
            check_squares("X_val and y_val", np.square(np.vstack([self._val_mean, self._R])))
        # Moves are evaluated at the point that was evaluated last, and often only lam changes: so the last moments and the last
        # fit are kept. A hash of the weights recognises them, because a copy would add much to the memory of a large problem.
        self._moments: tuple[str, Weighted] | None = None
        self._last: tuple[float, Fit] | None = None
        self.default_alpha = fixed_or_range is None
        self._set_alpha(self._default_range() if fixed_or_range is None else fixed_or_range)

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """J at the row weights ``theta`` and the penalty ``lam``; +inf with zero gradients when no row is selected."""
        with self._blas:
            fit = self._fit(theta, lam)
            if fit is None:
                zeros = np.zeros(self.theta_set.shape), np.zeros(self.lam_set.shape)
                return Evaluation(np.inf, zeros[0] if gradient else None, zeros[1] if gradient else None, info={"rows": 0.0})
            value, missed, missed_mean = self.judged(fit.K, fit.mean)
            grad_theta, grad_lam = self._gradients(fit, missed, missed_mean) if gradient else (None, None)
        return Evaluation(value, grad_theta, grad_lam, info={"rows": float(fit.rows)})

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """J after each exchange of a selected row for another, exactly, from one fit (see ``exchange``)."""
        with self._blas:
            return ExchangeSearch(self).evaluate_moves(theta, lam, off, on)

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """The best of all exchanges (see ``scan``): the row to take out, the row to put in, and J afterwards.

        None if the rows are stored in blocks: looking through all exchanges would take many passes over the blocks.
        """
        with self._blas:
            return ExchangeSearch(self).best_move(theta, lam)

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, max_cost: float = np.inf) -> Improved:
        """Make exchanges that each lower J; the search costs at most ``max_cost`` evaluations (see ``exchanges``)."""
        with self._blas:
            return ExchangeSearch(self).improve(theta, lam, max_cost)

    def evaluate_points(self, theta: NDArray[np.bool_], lam: Floats, *, max_cost: float = np.inf) -> PointValues | None:
        """J at many selections, each with several alpha (see ``many_points``). None if the rows are stored in blocks."""
        judge, unit = Judge(self._R, self._val_mean, self.scales**2), self.evaluation_work(theta[0])
        return point_values(self._rows, judge, theta, self.strength.values(lam), Work(unit, max_cost))

    def validation_loss(self, theta: ArrayLike, lam: ArrayLike = ()) -> float:
        """Half the mean squared error on the rows that judge: J without the penalty of the upper level."""
        return self.loss(*self.fitted(theta, lam))

    def loss(self, K: Floats, point: Floats) -> float:
        """The same for any linear model, given as in ``fitted``."""
        missed, missed_mean = self._loss_R @ K.T, K @ (self._val_mean - point)
        return 0.5 * float(np.vdot(missed, missed) + np.vdot(missed_mean, missed_mean))

    def judged(self, K: Floats, point: Floats) -> tuple[float, Floats, Floats]:
        """The value of the upper level for a linear model, given as in ``fitted``, and what that model misses.

        The latter are minus the residuals r_j of docs/maths.md, "Gradient of the validation loss": apart from their mean, and it.
        """
        missed_mean = K @ (self._val_mean - point)
        missed = self._R @ K.T
        return 0.5 * float(np.vdot(missed, missed) + np.vdot(missed_mean, missed_mean)), missed, missed_mean

    def fitted(self, theta: ArrayLike, lam: ArrayLike) -> tuple[Floats, Floats]:
        """K = [-W, I] and a point, relative to ``rows.centre``: the targets of a row exceed its predictions by K (z - point)."""
        fit = self._trained(theta, lam)
        return fit.K, fit.mean

    def fitted_to_all(self, seed: int = 0) -> tuple[Floats, Floats]:
        """The same for a ridge regression on all candidate rows, whose strength cross-validation on them chooses."""
        m = self._rows.n_rows
        return self.fitted_to(self.alpha_of_all(seed), float(m), *self._rows.moments(np.ones(m), float(m)))

    def alpha_of_all(self, seed: int = 0) -> float:
        """The strength that cross-validation on all candidate rows chooses for a ridge regression on them."""
        if self.judged_by_all and self.outer_alpha:
            return self.outer_alpha
        m = self._rows.n_rows
        return cross_validated(self._rows.fold_sums(*drawn_folds(m, seed)), self.scales) / m

    def fitted_to(self, alpha: float, total: float, mean: Floats, S: Floats) -> tuple[Floats, Floats]:
        """The same for ``total`` rows of weight 1, of which only the moments are at hand, as ``rows.moments`` returns them."""
        fit = closed_form(alpha, Weighted(total, int(total), mean, S), self.scales)
        return fit.K, fit.mean

    def with_budget(self, budget: int | float) -> Self:
        """The same problem with another number of rows to keep; both share the tables."""
        other = copy(self)
        other.theta_set = Budget(self._rows.n_rows, resolve_budget("budget", budget, self._rows.n_rows))
        other._set_alpha(other._default_range() if self.default_alpha else self.alpha)
        return other

    def among(self, rows: Indices) -> Self:
        """The same problem with these candidate rows only, which are fetched into memory; the same rows judge as before.

        The same selection needs another alpha for the same model, since alpha is relative to the number of candidate rows.
        """
        other, d = copy(self), self.n_features
        zhat = self._rows.take(rows, np.zeros(len(self._rows.centre)))
        other._rows = DenseRows(zhat[:, :d], zhat[:, d:])
        other._val_mean, more = self._val_mean - other._rows.centre, self._rows.n_rows / len(rows)
        other.theta_set = Budget(len(rows), min(self.theta_set.k, len(rows)))
        other._moments = other._last = None
        scaled = self.alpha * more if isinstance(self.alpha, float) else (self.alpha[0] * more, self.alpha[1] * more)
        other._set_alpha(other._default_range() if self.default_alpha else scaled)
        return other

    def _set_alpha(self, alpha: float | tuple[float, float]) -> None:
        self.alpha, self.strength = alpha, Strength(alpha)
        self.lam_set = self.strength.box()

    @property
    def _blas(self) -> AbstractContextManager[object]:
        """Where passes are divided among threads by rows, BLAS stays on one thread."""
        return on_one_blas_thread if isinstance(self._rows, RowsOnThreads) else nullcontext()

    @property
    def by_model(self) -> bool:
        """Whether exchanges are chosen by a model of J (see ``model_descent``): in large tables, if ``compact``.

        With hardly more rows than features, rows have leverages near 1, and a quadratic model says little.
        """
        large = self._rows.n_rows * int(self._R.shape[1]) >= MODELLED_ENTRIES
        return self.compact and self._rows.random_access and large and self.theta_set.k >= ROWS_PER_FEATURE * self.n_features

    @property
    def rows(self) -> RowStore:
        """The store of the candidate rows; ``rows.statistics()`` says how large they are, where, and how often they were read."""
        return self._rows

    def lower_bound(self, theta: Floats, lam: Floats) -> float:
        """The lowest value of the upper level for any linear model with intercept: no choice of rows, no alpha falls below it."""
        return self._least_value

    @cached_property
    def _least_value(self) -> float:
        """Half the squared norm of the part of the targets that no combination of the columns reaches.

        In the triangular factor the columns of X come before the targets, so the part that X cannot reach is the last diagonal
        block. R is factored once more because it is not triangular if there are few validation rows. Rounding may make the norm
        too large by a share of the norm of the targets, which is therefore subtracted.
        """
        d, rounding = self.n_features, PENALISED_ROUNDING if self.outer_alpha else FIT_ROUNDING
        triangle = np.asarray(np.linalg.qr(self._R, mode="r"))
        unreached = float(np.linalg.norm(triangle[d:, d:]))
        return 0.5 * max(unreached - rounding * float(np.linalg.norm(self._R[:, d:])), 0.0) ** 2

    def evaluation_work(self, theta: Floats) -> int:
        """The multiply-adds of one evaluation with gradient: the fit, the adjoint, and two products with all rows."""
        d, columns = self.n_features, int(self._R.shape[1])
        e = columns - d
        adjoint = len(self._R) * (columns + d) * e + d * d * e
        return self.fit_work(theta) + adjoint + self._rows.image_work(2 * e) + self._rows.n_rows * e

    def fit_work(self, theta: NDArray[Any]) -> int:
        """The multiply-adds of one fit: the moments of the weighted rows and the closed form."""
        d, columns = self.n_features, int(self._R.shape[1])
        return self._rows.moment_work(theta) + d * d * d // 6 + d * d * (columns - d)

    def expansion(self, theta: ArrayLike, lam: ArrayLike, work: Work | None = None) -> Expansion:
        """J around the selection ``theta``, which exchanges are computed from, in coordinates centred on its weighted mean."""
        d, rows, columns = self.n_features, *self._R.shape
        if work is not None:
            # Besides the fit: its inverse, the Hessian, residuals and gradient.
            work.add(d**3 + (rows + 1) * (d + 1) ** 2 + rows * (columns + d + 1) * (columns - d))
        fit = self._trained(theta, lam)
        e = len(fit.K)
        value, missed, missed_mean = self.judged(fit.K, fit.mean)
        # P = N^-1 is block diagonal in these coordinates: M^-1, and m / sum v for the intercept.
        P = np.zeros((d + 1, d + 1))
        P[:d, :d] = solved(fit.factor, np.eye(d))
        P[d, d] = self._rows.n_rows / fit.total
        shift = self._val_mean[:d] - fit.mean[:d]
        root = np.vstack([np.hstack([self._R[:, :d], np.zeros((len(self._R), 1))]), np.append(shift, 1.0)])
        coef = np.vstack([-fit.K[:, :d].T, np.zeros((1, e))])
        return Expansion(fit.mean, coef, value, P, root.T @ root, -root.T @ np.vstack([missed, missed_mean]))

    def model(self, theta: ArrayLike, lam: ArrayLike = ()) -> tuple[Floats, Floats | float]:
        """The ridge regression trained with (theta, lam).

        Returns
        -------
        coef : array of shape (d,), or (e, d) when y has two dimensions
            Its coefficients.
        intercept : float, or array of shape (e,)
            Its constant, one for each target.
        """
        fit, d = self._trained(theta, lam), self.n_features
        coef = -fit.K[:, :d]
        mean = self._rows.centre + fit.mean
        intercept = mean[d:] - coef @ mean[:d]
        return (coef[0], float(intercept[0])) if self._one_target else (coef, intercept)

    def fingerprint(self) -> str:
        """A hash of the data and the settings, for checkpoints."""
        settings = f"RidgeDistillation 1 {self.theta_set!r} {self.alpha!r} {self._one_target} {self._rows.digest()}"
        if self.standardize:
            settings += " standardised"
        if self.by_model or isinstance(self._rows, RowsOnThreads):  # elsewhere ``compact`` changes no bit
            settings += " compact"
        return digest(self._val_mean, self._R, settings=settings)

    def _default_range(self) -> tuple[float, float]:
        """The range of alpha=None, wide enough for what a penalty in the upper level asks of the lower level.

        The weights k/m for all rows and alpha = a k/m give the very model that the upper level prefers.
        """
        low, high = DEFAULT_ALPHA_RANGE
        if not self.standardize:
            low, high = default_alpha_range(self._rows.variances[: self.n_features])
        if self.outer_alpha:
            safe = SAFE_ALPHA * high / DEFAULT_ALPHA_RANGE[1]
            least = max(min(BEYOND_OUTER * self.outer_alpha, low), safe)
            low, high = least * self.theta_set.k / self._rows.n_rows, max(high, self.outer_alpha / BEYOND_OUTER)
        return low, high

    def _trained(self, theta: ArrayLike, lam: ArrayLike) -> Fit:
        fit = self._fit(theta, lam)
        if fit is None:
            raise InvalidInput("theta must select at least one row, got an empty selection; use top-k rounding")
        return fit

    def _fit(self, theta: ArrayLike, lam: ArrayLike) -> Fit | None:
        """The closed form of the lower level; None when no row has weight."""
        v = check.array("theta", theta, shape=self.theta_set.shape)
        if v.min() < 0:
            raise InvalidInput(f"theta must not be negative, got {v.min():g} at index {v.argmin()}; project it on theta_set")
        if (largest := v.max()) > LARGEST_WEIGHT:
            raise InvalidInput(f"theta must be weights, got {largest:g} at index {v.argmax()}; project it on theta_set")
        alpha = self.strength.value(lam)
        if largest == 0:
            return None
        name = digest(v)
        if self._moments is None or self._moments[0] != name:
            total = float(v.sum())
            self._moments = (name, Weighted(total, int(np.count_nonzero(v)), *self._rows.moments(v, total)))
            self._last = None
        if self._last is None or self._last[0] != alpha:
            self._last = (alpha, closed_form(alpha, self._moments[1], self.scales))
        return self._last[1]

    def gradient_terms(self, theta: ArrayLike, lam: ArrayLike = ()) -> tuple[Floats, Floats]:
        """The two terms of dJ/dv = first / m + second: through the covariances, and through the means.

        See docs/maths.md, "Gradient of the validation loss".
        """
        fit = self._trained(theta, lam)
        _, missed, missed_mean = self.judged(fit.K, fit.mean)
        A = self._adjoint(fit, missed, missed_mean)
        out = self._rows.images(np.vstack([fit.K, A]), fit.mean)
        missed_rows, a_rows = out[: len(fit.K)], out[len(fit.K) :]
        return np.einsum("ij,ij->j", missed_rows, a_rows), -missed_mean @ missed_rows / fit.total

    def _adjoint(self, fit: Fit, missed: Floats, missed_mean: Floats) -> Floats:
        """The adjoint A of docs/maths.md, "Gradient of the validation loss", with a column of zeros for each target."""
        d, A = self.n_features, np.zeros(fit.K.shape)
        gamma = -missed.T @ self._R[:, :d] - missed_mean[:, None] * (self._val_mean[:d] - fit.mean[:d])
        A[:, :d] = solved(fit.factor, gamma.T).T
        if not np.isfinite(A).all():
            raise DivergedError("the gradient overflows, because the ridge system is nearly singular; raise alpha or rescale X")
        return A

    def _gradients(self, fit: Fit, missed: Floats, missed_mean: Floats) -> tuple[Floats, Floats]:
        """dJ/dv for all rows at once, and dJ/dalpha = -<A, W D^2>, D the units of the columns."""
        A, d = self._adjoint(fit, missed, missed_mean), self.n_features
        grad_theta = self._rows.gradient(fit.K, A, missed_mean / fit.total, fit.mean)
        grad_lam = np.asarray(np.vdot(A[:, :d] * self.scales**2, fit.K[:, :d])) if self.lam_set.size else np.empty(0)
        return grad_theta, grad_lam

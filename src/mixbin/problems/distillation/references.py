"""What any choice of rows is compared with: a ridge regression on all rows, and ridge regressions on random rows.

An error is the root of the mean squared error on candidate rows that a model was not trained on, from sums over all rows that one
pass has computed. A ratio divides it by the error of the regression on all rows, on the same rows. That regression was trained on
these rows, too, so the ratio is never flattering.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mixbin._validate import Floats
from mixbin.errors import DivergedError
from mixbin.problem import Indices
from mixbin.problems.distillation.ridge import RidgeDistillation

DRAWS = 10
"""How many times random rows are drawn."""
FETCHED = 20_000_000
"""Rows of at most this many numbers are fetched at once."""
NEARLY_ALL = 0.99
"""If more than this share of the rows is kept, the errors on the others are summed directly: a difference would lose digits."""
LOG_ALPHA, FREELY = 1e-2, 1e4
"""How exactly the logarithm of alpha is found for random rows, and how far from the one that suits all rows it may be."""
ALPHAS = (1e-300, 1e300)
"""Random rows get no alpha outside of this range."""


class Model(NamedTuple):
    """A linear model: the targets of a row z, relative to ``rows.centre``, exceed its predictions by K (z - point)."""

    K: Floats
    point: Floats


class Draw(NamedTuple):
    """A ridge regression on random rows."""

    model: Model
    excess: float
    """(J - J*) / J*, as for chosen rows."""
    error: float
    """On the rows that were not drawn; NaN without any."""
    ratio: float
    """This error divided by that of a ridge regression on all rows, on the same rows."""


class References:
    """The references of one problem; ``seed`` shuffles folds and draws rows. The budget of the problem does not matter."""

    def __init__(self, problem: RidgeDistillation, seed: int) -> None:
        self.problem, self.seed = problem, seed

    @cached_property
    def all_rows(self) -> Model:
        """A ridge regression on all candidate rows, whose strength cross-validation on them chooses."""
        m = self.problem.rows.n_rows
        return Model(*self.problem.fitted_to(self.alpha_of_all, float(m), *self.moments))

    @cached_property
    def alpha_of_all(self) -> float:
        """The strength of that regression."""
        return self.problem.alpha_of_all(self.seed)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """The mean of all candidate rows, and their covariance."""
        m = self.problem.rows.n_rows
        return self.problem.rows.moments(np.ones(m), float(m))

    def errors(self, rows: Indices, *models: Model) -> list[float]:
        """The error of each model on all candidate rows except ``rows``; NaN without any."""
        return self._errors(rows, None, models)

    def _errors(self, rows: Indices, zhat: Floats | None, models: Sequence[Model]) -> list[float]:
        """``zhat`` are the rows themselves, if they were fetched."""
        store = self.problem.rows
        m, left = store.n_rows, store.n_rows - len(rows)
        if not left:
            return [float("nan")] * len(models)
        if len(rows) > NEARLY_ALL * m or (zhat is None and len(rows) * len(store.centre) > FETCHED):
            others = np.ones(m)
            others[rows] = 0.0
            mean, S = store.moments(others, float(left))
            return [_root_mean(it, mean, S * (m / left), 1.0) for it in models]
        mean, S = self.moments
        if zhat is None:
            zhat = store.take(rows, np.zeros(len(store.centre)))
        kept = [np.asarray((zhat - it.point) @ it.K.T) for it in models]
        return [_root_mean(it, mean, S, left / m, float(np.vdot(r, r)) / m) for it, r in zip(models, kept, strict=True)]

    def measured(self, rows: Indices, zhat: Floats | None, model: Model) -> tuple[float, float]:
        """The error of a model trained on ``rows`` on the other rows, and that error divided by the one of all rows.

        ``zhat`` are the rows themselves, if they were fetched.
        """
        error, full = self._errors(rows, zhat, (model, self.all_rows))
        return error, against(error, full)

    def fetched(self, selections: Sequence[Indices]) -> list[Floats]:
        """The rows of each selection relative to ``rows.centre``, in one pass unless these are very many."""
        store = self.problem.rows
        none = np.zeros(len(store.centre))
        if sum(map(len, selections)) * len(none) > FETCHED:
            return [store.take(rows, none) for rows in selections]
        return np.split(store.take(np.concatenate(selections), none), np.cumsum([len(rows) for rows in selections])[:-1])

    def trained(self, problem: RidgeDistillation, zhat: Floats, alpha: float | None = None) -> Model:
        """The ridge regression on fetched rows, with this alpha or the one that is best by what judges."""
        mean = zhat.mean(axis=0)
        S = (zhat - mean).T @ (zhat - mean) / problem.rows.n_rows
        if alpha is None:
            return _best_model(problem, float(len(zhat)), mean, S, self._alpha_for(len(zhat)))
        return Model(*problem.fitted_to(alpha, float(len(zhat)), mean, S))

    def random(self, budgets: Sequence[int], draws: int = DRAWS) -> list[list[Draw]]:
        """For each budget, ridge regressions on so many random rows, each with the best alpha for it by what judges.

        A draw for a small budget is the beginning of the draw for a larger one.
        """
        store, most = self.problem.rows, max(budgets)
        orders = [np.random.default_rng([self.seed, i]).permutation(store.n_rows)[:most].copy() for i in range(draws)]
        found: list[list[Draw]] = [[] for _ in budgets]
        few = [k for k in budgets if k * len(store.centre) * draws <= FETCHED]
        fetched = self.fetched([order[: max(few)] for order in orders]) if few else [np.empty(0)] * draws
        for order, zhat in zip(orders, fetched, strict=True):
            for place, k in enumerate(budgets):
                found[place].append(self._drawn(order[:k], zhat[:k] if k in few else None))
        return found

    def _alpha_for(self, k: int) -> float:
        """The alpha that is as strong on ``k`` rows as the one that suits all rows is on these."""
        return self.alpha_of_all * k / self.problem.rows.n_rows

    def _drawn(self, rows: Indices, zhat: Floats | None) -> Draw:
        problem, k = self.problem.with_budget(len(rows)), float(len(rows))
        if zhat is None:
            v = np.zeros(problem.rows.n_rows)
            v[rows] = 1.0
            model = _best_model(problem, k, *problem.rows.moments(v, k), self._alpha_for(len(rows)))
        else:
            model = self.trained(problem, zhat)
        return Draw(model, excess_of(problem, problem.judged(*model)[0]), *self.measured(rows, zhat, model))


def against(error: float, full: float) -> float:
    """``error / full``; 1 if both are 0."""
    if full == 0:
        return 1.0 if error == 0 else float("inf")
    return error / full


def excess_of(problem: RidgeDistillation, value: float) -> float:
    """(J - J*) / J* at the value J; 0 if both are 0, NaN if only J* is."""
    least = problem.lower_bound(np.empty(0), np.empty(0))
    if value <= least:
        return 0.0
    return (value - least) / least if least > 0 else float("nan")


def _best_model(problem: RidgeDistillation, total: float, mean: Floats, S: Floats, around: float) -> Model:
    """The ridge regression on rows of these moments, with the alpha that is best by what judges.

    Whatever range the problem has, alpha may also be near ``around``: a person who draws rows at random chooses it freely.
    """
    from scipy.optimize import minimize_scalar

    found: list[tuple[float, Model]] = []

    def value(log_alpha: float) -> float:
        try:
            model = Model(*problem.fitted_to(float(np.exp(log_alpha)), total, mean, S))
        except DivergedError:  # so small that rounding makes the system singular
            return np.inf
        found.append((problem.judged(*model)[0], model))
        return found[-1][0]

    around = float(np.clip(around, *ALPHAS))
    value(np.log(around))
    low, high = around / FREELY, around * FREELY
    if not isinstance(problem.alpha, float):
        low, high = min(low, problem.alpha[0]), max(high, problem.alpha[1])
    # Differences of infinite values are no numbers; SciPy then goes on by the golden section.
    with np.errstate(invalid="ignore", over="ignore"):
        minimize_scalar(value, bounds=np.log(np.clip([low, high], *ALPHAS)), method="bounded", options={"xatol": LOG_ALPHA})
    if not found:
        raise DivergedError("random rows give no model for any alpha: X has numbers whose squares vanish; rescale X")
    return min(found, key=lambda it: it[0])[1]


def _root_mean(model: Model, mean: Floats, S: Floats, share: float, less: float = 0.0) -> float:
    """The root of the mean squared error over rows of this mean and covariance, ``less`` a part of it, over ``share`` of them."""
    missed = model.K @ (mean - model.point)
    total = float(np.vdot(missed, missed)) + max(float(np.trace(model.K @ S @ model.K.T)), 0.0)
    return float(np.sqrt(max(total - less, 0.0) / share))

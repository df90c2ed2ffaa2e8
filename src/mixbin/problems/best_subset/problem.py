"""Keep the k features with which a ridge or logistic regression fits best (docs/maths.md, "Best subset")."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.checked_problem import CheckedProblem
from mixbin.errors import InvalidInput
from mixbin.penalties import Quadratic
from mixbin.problem import Evaluation, Improved, Indices, Warm
from mixbin.problems.best_subset.choices import Choices
from mixbin.problems.best_subset.columns import DenseColumns, columns
from mixbin.problems.best_subset.fit import Fit, Loss
from mixbin.problems.best_subset.logistic import LogisticLoss
from mixbin.problems.best_subset.relaxation import Relaxed, allowed, relax
from mixbin.problems.best_subset.search import Search
from mixbin.problems.best_subset.squared import SquaredLoss
from mixbin.problems.work import Work
from mixbin.sets import Box, Budget, GroupBudget
from mixbin.sets.budget import resolve_budget
from mixbin.solvers import SpectralGradient
from mixbin.solvers.objective import Objective

LOSSES = ("squared", "logistic")
SMALLEST, LARGEST = 1e-30, 1e30
"""The largest entries of X and of y must lie in this range, unless all are 0, and gamma in the range to the fourth power: gains
are squares of products of X and y over gamma, and must neither overflow nor vanish."""
BOUND_ROUNDING = 1e-11
"""A lower bound is lowered by this share of the loss without features, so that rounding cannot make it too high."""
SOLVED, REFINING_STEPS = 1e-3, 200
"""If the bound of the relaxed problem misses its value by more than this share, some more steps are taken in theta."""
MOST_REFITS = 20_000
"""Under logistic loss, ``best_move`` trains every swap if there are at most this many, and otherwise returns None."""


class BestSubset:
    """Keep k features: the subset with the least penalised training loss, with a lower bound on what any subset can reach.

    For a subset S of k features, G is the minimum over w of

    - ``loss="squared"``: |y - X_S w|^2 + gamma |w|^2, as in scikit-learn's ``Ridge(alpha=gamma)``;
    - ``loss="logistic"``: sum_i log(1 + exp(u_i)) - y_i u_i + gamma/2 |w|^2 with u = X_S w + b, as in
      ``LogisticRegression(C=1/gamma)``.

    Between subsets, with weights theta in [0, 1], the penalty of feature j is divided by theta_j. This makes G convex in theta,
    so that the relaxed problem gives a true lower bound: see ``lower_bound`` and ``prove_best_subset``.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        The table. Columns are used as they are, not standardised; a sparse table stays sparse.
    y : array of shape (n,) or, for squared loss, (n, targets)
        The targets; for logistic loss two classes, given as 0 and 1 (or False and True).
    k : int
        How many features to keep.
    gamma : float
        The weight of the ridge penalty, above 0. It should grow with the number of rows: 0.1 n is a usual size for standardised
        columns.
    loss : {"squared", "logistic"}, default "squared"
        The loss.
    groups : array of shape (p,), optional
        The group of each feature. At most ``per_group`` features of a group are kept.
    per_group : int or mapping from group to int, default 1
        How many features of a group may be kept, if there are groups. With ``k`` equal to the number of groups and 1 per group,
        each group keeps exactly one.
    fit_intercept : bool, default True
        Whether the model has a constant, which is not penalised.

    Attributes
    ----------
    theta_set : Budget or GroupBudget
        Which features may be kept together.
    lam_set : Box
        Has no dimensions: gamma is fixed.

    See Also
    --------
    mixbin.FeatureSelector : Chooses gamma and k, too, in scikit-learn's conventions.
    mixbin.prove_best_subset : Proves that a subset is the best of all, or how far it can be from it.

    Notes
    -----
    Under squared loss, the value of all k (p - k) swaps of a subset is known exactly after n k p + k^2 p multiply-adds. Under
    logistic loss such a table is exact to second order; its most promising swaps are trained. No p x p matrix is formed.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 30))
    >>> y = X[:, [3, 7, 20]] @ [2.0, -1.0, 1.0] + 0.5 * rng.normal(size=100)
    >>> problem = mb.BestSubset(X, y, k=3, gamma=1.0)
    >>> result = mb.relax_and_penalize(problem, seed=0)
    >>> np.flatnonzero(result.theta)
    array([ 3,  7, 20])
    """

    preferred_settings: Mapping[str, int] = MappingProxyType({"inner_steps": 5})
    """Few steps per eps are enough, because polish by exact swaps makes up for the rest."""

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        k: int,
        gamma: float,
        loss: str = "squared",
        *,
        groups: ArrayLike | None = None,
        per_group: int | Mapping[Any, int] = 1,
        fit_intercept: bool = True,
    ) -> None:
        table = _table(X)
        n, p = table.shape
        self.loss = check.choice("loss", loss, LOSSES)
        self.gamma = _gamma(gamma)
        self.fit_intercept = check.flag("fit_intercept", fit_intercept)
        targets = _classes(y, n) if self.loss == "logistic" else _targets(y, n)
        self.theta_set = _set_of(p, k, groups, per_group)
        self.lam_set = Box.empty()
        self.n_features: int = p
        self._one_target = np.ndim(y) == 1
        store = columns(table, self.fit_intercept)
        self._means = store.means
        self._target_means = np.zeros(1)
        self.data_loss: Loss
        if self.loss == "logistic":
            self.data_loss = LogisticLoss(store, targets[:, 0], self.gamma, self.fit_intercept)
        else:
            self._target_means = targets.mean(axis=0) if self.fit_intercept else np.zeros(targets.shape[1])
            Y = targets - self._target_means
            if isinstance(store, DenseColumns):
                store, Y = store.shortened(Y)
            self.data_loss = SquaredLoss(store, Y, self.gamma)
        self._targets = targets
        self._grouping = groups, per_group
        self.choices = Choices(self.theta_set)
        self._last: tuple[str, Fit] | None = None

    def varied(self, k: int, gamma: float) -> BestSubset:
        """The same table and targets with another count and ridge weight. What was computed of the table alone is shared."""
        other = copy.copy(self)
        for name in ("relaxed", "without_features"):
            other.__dict__.pop(name, None)
        other.gamma = _gamma(gamma)
        other.theta_set = _set_of(self.n_features, k, *self._grouping)
        other.choices, other._last = Choices(other.theta_set), None
        other.data_loss = self.data_loss.with_gamma(other.gamma)
        return other

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """G at the weights ``theta``, and its gradient: minus the gain of each feature at the residuals."""
        fit = self._fit(theta)
        grad = -self.data_loss.gains(fit.residual) if gradient else None
        info = {"features": float(fit.support.size)}
        return Evaluation(fit.value, grad, np.empty(0) if gradient else None, info=info)

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """G after each swap of a kept feature for another: from one table under squared loss, by training under logistic loss."""
        support = self.support_of(theta)
        if not self.data_loss.exact_model:
            return self.data_loss.values(
                np.array([_after(support, i, j) for i, j in zip(off, on, strict=True)]).reshape(len(off), -1)
            )
        table = self._exact_table(support)
        return np.asarray(table[np.searchsorted(support, off), on])

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """The best of all swaps: the feature to take out, the feature to put in, and G afterwards.

        None under logistic loss if there are so many swaps that training each of them would take too long.
        """
        support = self.support_of(theta)
        n_moves = self.theta_set.n_moves(theta.astype(np.bool_))
        if n_moves == 0:
            return -1, -1, np.inf
        if self.data_loss.exact_model:
            table = self.choices.forbid(self._exact_table(support), support)
            i, j = divmod(int(table.argmin()), table.shape[1])
            return int(support[i]), j, float(table[i, j])
        if n_moves > MOST_REFITS:
            return None
        off, on = (np.concatenate(side) for side in zip(*self.theta_set.moves(theta), strict=True))
        values = self.evaluate_moves(theta, lam, off, on)
        best = int(values.argmin())
        return int(off[best]), int(on[best]), float(values[best])

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, max_cost: float = np.inf) -> Improved:
        """Make the best swap until none lowers G; the search costs at most ``max_cost`` evaluations."""
        support, search = self.support_of(theta), self.search()
        work = Work(self._evaluation_work())
        most = np.floor(max_cost * work.unit / self._table_work())
        if most < 1:
            return Improved(np.asarray(theta, dtype=np.bool_), cost=work.cost)
        found = search.descend(support, most)
        work.note(search.n_tables * self._table_work())
        kept = np.zeros(self.n_features, dtype=np.bool_)
        kept[found.support] = True
        if found.value < self._fit(theta).value:
            return Improved(kept, found.tried, found.best_change, work.cost)
        return Improved(np.asarray(theta, dtype=np.bool_), found.tried if found.swaps == 0 else 0, found.best_change, work.cost)

    def suggest(self, rng: np.random.Generator) -> Floats:
        """The minimiser of the relaxed problem, where the lower bound comes from."""
        return self.relaxed.theta.copy()

    def propose(self, theta: Floats, lam: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
        """A subset to search from next: ``theta`` with some features, drawn at random, replaced by the best others."""
        kept = np.zeros(self.n_features, dtype=np.bool_)
        kept[self.search().kicked(self.support_of(theta), rng)] = True
        return kept

    def lower_bound(self, theta: Floats, lam: Floats) -> float:
        """No subset has a lower G: the larger of the bounds from the model at ``theta`` and from the relaxed problem."""
        return max(self.bound_of(self._fit(theta).residual), self.relaxed.bound)

    def bound_of(self, residual: Floats) -> float:
        """The lower bound that a dual point gives: residuals of a squared loss, or y - p of a logistic one."""
        bound = self.data_loss.bound(residual, self.choices.most(self.data_loss.gains(residual)))
        return bound - BOUND_ROUNDING * self.without_features

    def cutoff(self, value: float, tolerance: float) -> float:
        """A bound of at least this proves that no subset is lower than ``value`` by more than ``tolerance`` of it."""
        return value - tolerance * abs(value) + BOUND_ROUNDING * self.without_features

    @cached_property
    def relaxed(self) -> Relaxed:
        """The solution of the relaxed problem: theta, its value, and the lower bound that it proves."""
        # A subset that is found at once says how exact the bound has to be.
        search = self.search()
        known = self.data_loss.model_of(search.greedy(np.empty(0, dtype=np.intp))).value
        theta, value, residual = relax(self.data_loss, self.choices, known)
        bound = self.bound_of(residual)
        if value - bound > allowed(value, known, SOLVED):
            theta = self._refined(theta)
            fit = self._fit(theta)
            value, other = fit.value, self.bound_of(fit.residual)
            bound, residual = (other, fit.residual) if other > bound else (bound, residual)
        return Relaxed(theta, value, bound, residual)

    def _refined(self, theta: Floats) -> Floats:
        """Go on with the relaxed problem by steps in theta, whose lower level is solved exactly.

        If gamma is tiny, the problem in the coefficients is so badly scaled that steps in them come to a halt.
        """
        objective, solver = Objective(CheckedProblem(self), Quadratic()), SpectralGradient(tol=1e-9)
        state = solver.init(objective, theta, np.empty(0), np.random.default_rng(0))
        for _ in range(REFINING_STEPS):
            if solver.done(objective, state):
                break
            state = solver.step(objective, state)
        return state.theta

    def search(self) -> Search:
        """The searches over subsets that this problem offers."""
        return Search(self.data_loss, self.choices)

    def model(self, theta: ArrayLike, lam: ArrayLike = ()) -> tuple[Floats, Floats | float]:
        """The model trained with the weights ``theta``.

        Returns
        -------
        coef : array of shape (p,), or (targets, p) when y has two dimensions
            Its coefficients, 0 for features that are not kept.
        intercept : float, or array of shape (targets,)
            Its constant, one for each target.
        """
        fit = self._fit(theta)
        coef = np.zeros((len(fit.coef), self.n_features))
        coef[:, fit.support] = fit.coef
        intercept = self._target_means + fit.intercept - coef @ self._means
        return (coef[0], float(intercept[0])) if self._one_target else (coef, np.asarray(intercept))

    def fingerprint(self) -> str:
        """A hash of the data and the settings, for checkpoints."""
        settings = (
            f"BestSubset 1 {self.theta_set.fingerprint()} {self.gamma!r} {self.loss} {self.fit_intercept} {self._one_target}"
        )
        return digest(self._targets, settings=f"{settings} {self.data_loss.columns.digest()}")

    @cached_property
    def without_features(self) -> float:
        """G without any feature, the scale of rounding errors."""
        return self.data_loss.fit(np.zeros(self.n_features)).value

    def _fit(self, theta: ArrayLike) -> Fit:
        v = check.array("theta", theta, shape=self.theta_set.shape)
        if v.min() < 0 or v.max() > 1.0 + 1e-9:
            at = int(v.argmin() if v.min() < 0 else v.argmax())
            raise InvalidInput(f"theta must have entries in [0, 1], got {v[at]:g} at index {at}; project it on theta_set")
        # The bound and the moves are asked for where G was just evaluated.
        name = digest(v)
        if self._last is None or self._last[0] != name:
            self._last = name, self.data_loss.fit(v)
        return self._last[1]

    def support_of(self, theta: ArrayLike) -> Indices:
        """The numbers of the features that a binary ``theta`` keeps; a theta outside of the set is refused."""
        on = check.binary("theta", theta, shape=self.theta_set.shape)
        if self.theta_set.violation(on):
            raise check.fail("theta", theta, f"a binary point of {self.theta_set!r}", "round it with vertex first")
        return np.flatnonzero(on)

    def _exact_table(self, support: Indices) -> Floats:
        theta = np.zeros(self.n_features)
        theta[support] = 1.0
        # The value of the model is a difference of large numbers if the fit is close; the residuals give it to all digits.
        return self.data_loss.model_of(support)._replace(value=self._fit(theta).value).exchanges()

    def _evaluation_work(self) -> int:
        n, p, k = self.data_loss.columns.n, self.n_features, self.choices.k
        return n * k * (k + 2) + k**3 + n * p

    def _table_work(self) -> int:
        n, p, k = self.data_loss.columns.n, self.n_features, self.choices.k
        return n * p + k * k * p if self.data_loss.exact_model else n * k * p + k * k * p + 50 * n * k * k


def _gamma(gamma: object) -> float:
    remedy = "0.1 times the number of rows is a usual size"
    number = check.real("gamma", gamma, low=0, open_low=True, remedy=remedy)
    return check.real("gamma", number, low=SMALLEST**4, high=LARGEST**4, remedy=remedy)


def _check_size(name: str, entries: Floats) -> None:
    largest = max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))
    if largest > 0 and not SMALLEST <= largest <= LARGEST:
        must = f"numbers of which the largest is from {SMALLEST:g} to {LARGEST:g}"
        raise InvalidInput(f"{name} must hold {must}, got {largest:g}; rescale it")


def _table(X: Any) -> Any:
    if sparse.issparse(X):
        check.plain_table("X", X)
        if X.ndim != 2:
            raise check.fail("X", X, "a table of shape (rows, columns)", "give one row per observation")
        table = sparse.csc_array(X)
        entries = check.array("X", table.data)
    else:
        table = entries = check.array("X", X, ndim=2, remedy="give one row per observation and one column per feature")
    if table.ndim != 2 or 0 in table.shape:
        raise check.fail("X", X, "a table of shape (rows, columns), neither of them 0", "check how it was read")
    _check_size("X", entries)
    return table


def _targets(y: ArrayLike, rows: int) -> Floats:
    Y = check.array("y", y)
    if Y.ndim not in (1, 2) or len(Y) != rows or 0 in Y.shape:
        raise check.fail("y", Y, f"an array of shape ({rows},) or ({rows}, targets)", "give one target per row of X")
    _check_size("y", Y)
    return np.array(Y[:, None] if Y.ndim == 1 else Y)


def _classes(y: ArrayLike, rows: int) -> Floats:
    must, remedy = f"{rows} classes, 0 or 1, with both among them", "code the classes as 0 and 1, one per row of X"
    Y = check.array("y", y, remedy=remedy)
    if Y.shape != (rows,) or not np.array_equal(np.unique(Y), [0.0, 1.0]):
        raise check.fail("y", y, must, remedy)
    return np.array(Y[:, None])


def _set_of(p: int, k: int, groups: ArrayLike | None, per_group: int | Mapping[Any, int]) -> Budget | GroupBudget:
    if groups is None:
        remedy = f"keep from 1 to {p} features"
        return Budget(p, resolve_budget("k", check.whole("k", k, low=1, high=p, remedy=remedy), p))
    labels = check.loose_array("groups", groups, f"an array with a group for each of the {p} features")
    if labels.shape != (p,):
        raise check.fail("groups", labels, f"an array of shape ({p},)", "give the group of each feature")
    return GroupBudget(labels, 0, per_group, k=check.whole("k", k, low=1, high=p))


def _after(support: Indices, off: int, on: int) -> Indices:
    """The features after a swap, in order."""
    return np.sort(np.append(support[support != off], on))

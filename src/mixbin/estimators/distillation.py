"""A scikit-learn regressor that trains a ridge regression on the rows worth keeping (docs/maths.md, "Data distillation").

One of the methods chooses the rows by solving ``RidgeDistillation``; the fitted model is the ridge regression on these rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.data.kinds import is_dask
from mixbin.errors import ConvergenceWarning, InvalidInput
from mixbin.estimators._common import (
    Candidates,
    KeepsRows,
    check_both,
    check_settings,
    choose_rows,
    four_tables,
    generator,
    linear,
    method_seed,
    split_rows,
    validated,
)
from mixbin.problems import RidgeDistillation
from mixbin.problems.distillation.budget_path import BudgetPath, not_met
from mixbin.problems.distillation.trust import in_standard_units, search_settings, trust
from mixbin.progress import Callback, ProgressDisplay

JUDGES = ("auto", "full", "validation")
AUTO = "auto"
"""The budget that means: as few rows as the tolerance allows."""


class DistillationRegressor(KeepsRows, MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression trained on a few rows, chosen so that it predicts like one trained on all rows.

    By default every row of X is a candidate and all rows judge: the objective is that of a ridge regression on all rows, whose
    strength is chosen by cross-validation. No choice of rows can beat that regression by this objective, and ``excess_`` says how
    far the answer is above it. If ``fit`` gets validation rows, these judge.

    Parameters
    ----------
    budget : int, float or "auto", default=0.1
        How many rows to keep: a count, or a fraction in (0, 1] of the candidate rows, rounded half up. "auto" looks for the
        smallest budget whose ``excess_`` is at most ``tolerance``, by doubling and bisection; each budget is searched from the
        rows of its neighbours.
    alpha : float, pair of floats or None, default=None
        The strength of the ridge penalty. A number fixes it; a pair (low, high) is a range in which it is optimised together
        with the rows; None is a wide range. With ``standardize`` it is in standardised units.
    method : {"penalize", "top-k", "simple", "relax"}, default="penalize"
        How the rows are chosen: by ``relax_and_penalize``, or by a baseline that relaxes the choice to weights and then keeps
        the largest ("top-k"), those of at least one half ("simple", which may miss the budget), or all weights ("relax").
    validation_fraction : float, default=0.2
        The fraction of the rows that is split off when ``judge="validation"`` and ``fit`` gets no validation set.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, the split, as in ``train_test_split``, and the starts of the method. Pass an int to get the same result
        every time.
    max_evaluations : int or None, default=None
        How many models the method may train and validate. None uses the default of the method.
    verbose : bool, default=False
        Show the progress on a terminal or in a notebook.
    time_limit : float or None, default=None
        Seconds after which the search ends with the best answer so far; the result then depends on the speed of the machine.
        With ``budget="auto"`` it is for all budgets together.
    callbacks : sequence of callables or None, default=None
        Called with an ``Event`` after each step; ``event.stop()`` ends the search. See ``relax_and_penalize``.
    judge : {"auto", "full", "validation"}, default="auto"
        Which rows judge a choice. "full": all rows of X. "validation": X_val or, without it, rows split off X, which are then no
        candidates. "auto" is "validation" if ``fit`` gets X_val, and "full" if not.
    standardize : bool, default=True
        Whether the penalties are on coefficients per standard deviation of a column, so that the units of the columns do not
        matter. X is not copied, and ``coef_`` is in the units of X.
    outer_alpha : float or "cv", default="cv"
        The strength of a ridge penalty in the objective that judges, beside half the mean squared error of the rows that judge.
        "cv" chooses it by shuffled 10-fold cross-validation on these rows; 0 is the paper's problem.
    outer_coef : array of shape (n_features,) or (n_targets, n_features), default=None
        Coefficients that this penalty pulls towards, in the units of X; zero by default.
    gap_tol : float, default=1e-3
        The search for better rows ends once it is proven that no choice is better by this share of the objective. 0 asks for the
        exchange-by-exchange certificate: the search ends when no exchange of two rows lowers the objective, which takes longer.
    tolerance : float, default=0.01
        The largest ``excess_`` that ``budget="auto"`` accepts.

    Attributes
    ----------
    budget_ : int
        How many rows were kept, given or found.
    budget_path_ : dict of int to float
        With ``budget="auto"``, every budget that was searched, and its excess.
    support_ : bool array of shape (n_samples,)
        Which rows of X the model was trained on; False for rows split off for validation.
    weights_ : float array of shape (n_samples,)
        The weight of each row of X: 1 where selected and 0 elsewhere, or anything between with ``method="relax"``.
    alpha_ : float
        The strength of the ridge penalty, fixed or found.
    outer_alpha_ : float
        The strength of the penalty in the objective that judges, given or found.
    scales_ : array of shape (n_features,)
        The standard deviations of the columns among the candidate rows, 1 for constant columns; all 1 unless ``standardize``.
    excess_ : float
        ``(J - J*) / J*``: J is the objective at the answer and ``J*`` its least value for any linear model, so no choice of rows
        and no alpha is better by more than this share of ``J*``. NaN if ``J*`` is 0.
    unkept_ratio_ : float
        The RMSE on the candidate rows that were not kept, divided by that of a ridge regression on all candidate rows.
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        The coefficients.
    intercept_ : float or array of shape (n_targets,)
        The constant term.
    result_ : Result
        The result of the method: value, status, certificate and trace. Its theta has one entry per candidate row.
    n_features_in_ : int
        The number of features seen by ``fit``.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if the columns of X have names.

    Warns
    -----
    UserWarning
        If there are fewer than 5 validation rows per feature, or ``unkept_ratio_`` is above 1.2.
    ConvergenceWarning
        If alpha ends at a bound of its range, or ``budget="auto"`` finds no budget that meets the tolerance; the budget with the
        least excess is used then.

    See Also
    --------
    mixbin.budget_curve : What each number of rows costs.
    mixbin.RidgeDistillation : The problem that is solved.
    mixbin.relax_and_penalize : The method, with all its settings.
    mixbin.ParquetFolder : Tables that do not fit in memory.

    Notes
    -----
    The rows are for the linear model that chose them: a random forest trained on them can be worse than one on random rows.
    Every row needs its target, so they do not say which rows to label.

    On the selected rows the model is scikit-learn's ``Ridge(alpha=m * alpha_)`` on ``X / scales_``, where m counts the candidate
    rows; its coefficients divided by ``scales_`` are ``coef_``.

    With clean validation rows and wrong targets among the candidates, choosing rows was no better in a study than a ridge
    regression on the validation rows alone. For gross errors in the targets use a robust regression.

    ``standardize=False, outer_alpha=0, gap_tol=0`` with validation rows is the problem of the paper. ``sample_weight`` is not
    supported: choosing the weights of the rows is what this estimator does. Several targets count in their own units.

    X and y may be Dask arrays or dataframes with the same blocks of rows (see ``RidgeDistillation``), such as the X and y of a
    ``ParquetFolder``; their rows are not read into this process. In that case X_val and y_val may be arrays or Dask
    collections.

    There is no ``n_jobs``: each step of the search begins where the one before ended. BLAS divides the work of a step,
    and workers do if X is a Dask collection.

    In a Pipeline the validation set must pass the same steps as X. With metadata routing enabled in scikit-learn, write
    ``Pipeline(..., transform_input=["X_val"])`` around ``DistillationRegressor().set_fit_request(X_val=True, y_val=True)``.

    Examples
    --------
    >>> import numpy as np
    >>> from mixbin import DistillationRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)) * [1.0, 1e-3, 1e3]  # in very different units
    >>> y = X @ [1.0, 2e3, 3e-3] + 0.1 * rng.normal(size=1000)
    >>> model = DistillationRegressor(budget=20, random_state=0).fit(X, y)
    >>> int(model.support_.sum()), bool(model.excess_ < 0.01)  # as good as all 1,000 rows, and proven
    (20, True)
    >>> (model.coef_ * [1.0, 1e-3, 1e3]).round(1)
    array([1., 2., 3.])
    """

    def __init__(
        self,
        budget: int | float | str = 0.1,
        alpha: float | tuple[float, float] | None = None,
        method: str = "penalize",
        validation_fraction: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        max_evaluations: int | None = None,
        verbose: bool = False,
        *,
        time_limit: float | None = None,
        callbacks: Sequence[Callback] | None = None,
        judge: str = "auto",
        standardize: bool = True,
        outer_alpha: float | str = "cv",
        outer_coef: ArrayLike | None = None,
        gap_tol: float = 1e-3,
        tolerance: float = 0.01,
    ) -> None:
        self.budget = budget
        self.alpha = alpha
        self.method = method
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.max_evaluations = max_evaluations
        self.verbose = verbose
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.judge = judge
        self.standardize = standardize
        self.outer_alpha = outer_alpha
        self.outer_coef = outer_coef
        self.gap_tol = gap_tol
        self.tolerance = tolerance

    def fit(self, X: ArrayLike, y: ArrayLike, X_val: ArrayLike | None = None, y_val: ArrayLike | None = None) -> Self:
        """Choose the rows and train on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to choose from.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            One target or several.
        X_val : array-like of shape (n_validation, n_features), default=None
            Rows that judge. If given, all rows of X are candidates.
        y_val : array-like of shape (n_validation,) or (n_validation, n_targets), default=None
            Their targets.

        Returns
        -------
        self : DistillationRegressor
            The fitted estimator.
        """
        rng = generator(self.random_state)
        candidates, n_rows, problem = self._built(X, y, X_val, y_val, rng)
        self._choose(problem, candidates, n_rows, rng)
        return self

    def _built(self, X: Any, y: Any, X_val: Any, y_val: Any, rng: np.random.RandomState) -> Candidates:
        """The numbers of the candidate rows, how many rows X has, and the problem, after all checks."""
        check_settings(self)
        check.choice("judge", self.judge, JUDGES)
        self._check_budget()
        check_both(X_val, y_val)
        if self.judge == "full" and X_val is not None:
            raise InvalidInput(
                'judge="full" has no use for X_val and y_val: all rows of X judge; drop them, or pass judge="validation"'
            )
        build = self._on_dask if is_dask(X) or is_dask(y) else self._in_memory
        return build(X, y, X_val, y_val, rng)

    def problem_of(self, X: Any, y: Any, X_val: Any, y_val: Any, rng: np.random.RandomState) -> tuple[RidgeDistillation, int]:
        """The problem that ``fit`` would solve, and the seed of its folds and searches."""
        problem: RidgeDistillation = self._built(X, y, X_val, y_val, rng)[2]
        return problem, self._cv_seed(rng)

    def _choose(self, problem: RidgeDistillation, candidates: Any, n_rows: int, rng: np.random.RandomState) -> None:
        """Choose the rows, set the attributes, and warn about an answer that may not hold."""
        seed = self._cv_seed(rng)
        if check.is_text(self.budget, AUTO):
            searched, settings = self._found(problem, seed)
            problem = problem.with_budget(searched.theta_set.k)
        else:
            searched = in_standard_units(problem)
            settings = search_settings(searched, seed, float(self.gap_tol))
        self.budget_ = problem.theta_set.k
        model = choose_rows(self, searched, candidates, n_rows, rng, **settings)
        theta, lam, value = self.result_.theta.astype(np.float64), self.result_.lam, self.result_.value
        if searched is not problem:
            model, value = problem.model(theta, lam), problem.evaluate(theta, lam, gradient=False).value
        self.coef_, self.intercept_ = model
        self.outer_alpha_, self.scales_ = problem.outer_alpha, problem.scales
        found = trust(problem, theta, lam, value, seed)
        self.excess_, self.unkept_ratio_ = found.excess, found.unkept_ratio
        for doubt in found.doubts:
            warnings.warn(doubt, UserWarning, stacklevel=3)
        if found.at_bound is not None:
            warnings.warn(found.at_bound, ConvergenceWarning, stacklevel=3)

    def _check_budget(self) -> None:
        """The settings of searches, and what ``budget="auto"`` asks of the others."""
        check.real("gap_tol", self.gap_tol, low=0, remedy="0.001 ends a search at a proven gap of 0.1 per cent")
        remedy = "0.01 accepts rows that are one per cent worse than all rows by the objective that judges"
        check.real("tolerance", self.tolerance, low=0, open_low=True, remedy=remedy)
        if isinstance(self.budget, str) and self.budget != AUTO:
            raise check.fail("budget", self.budget, 'a number of rows or "auto"', "pass a count, a fraction such as 0.1, or auto")
        if check.is_text(self.budget, AUTO) and self.method != "penalize":
            raise InvalidInput(
                f'budget="auto" needs method="penalize", got {self.method!r}; give it the budget that penalize finds'
            )

    def _found(self, problem: RidgeDistillation, seed: int) -> tuple[RidgeDistillation, dict[str, Any]]:
        """The problem with the smallest budget found, and settings of the method that begin at the rows found for it."""

        def watching(k: int) -> list[Callback]:
            return [*(self.callbacks or ()), *([ProgressDisplay(f"{k:,} rows")] if self.verbose else [])]

        # Numbers of other types, of NumPy or a Fraction, are numbers here too.
        gap_tol, tolerance = float(self.gap_tol), float(self.tolerance)
        least = min(gap_tol, tolerance / (1 + tolerance))
        path = BudgetPath(problem, seed, least, self.max_evaluations, watching, self.time_limit)
        step = path.smallest(tolerance)
        if step is None:
            step = min(path.steps, key=lambda it: it.excess)
            warnings.warn(not_met(step, tolerance), ConvergenceWarning, stacklevel=4)
        self.budget_path_ = {it.budget: it.excess for it in path.steps}
        return path.start(step)

    def _judged_by_all(self, X_val: Any) -> bool:
        return self.judge == "full" or (self.judge == "auto" and X_val is None)

    def _cv_seed(self, rng: np.random.RandomState) -> int:
        """The seed of the folds and of the first point: ``random_state`` itself if it is a whole number."""
        return method_seed(self.random_state, rng)

    def _settings(self, rng: np.random.RandomState) -> dict[str, Any]:
        """The settings of the problem."""
        return {
            "budget": 1 if check.is_text(self.budget, AUTO) else self.budget,
            "alpha": self.alpha,
            "outer_alpha": self.outer_alpha,
            "outer_coef": self.outer_coef,
            "standardize": self.standardize,
            "cv_seed": self._cv_seed(rng) if check.is_text(self.outer_alpha, "cv") else 0,
        }

    def _in_memory(self, X: Any, y: Any, X_val: Any, y_val: Any, rng: np.random.RandomState) -> Candidates:
        """For arrays: the numbers of the candidate rows, how many rows X has, and the problem."""
        how = {"accept_sparse": "csr", "multi_output": True, "y_numeric": True, "dtype": np.float64}
        table, targets = validated(self, X, y, ensure_min_samples=2 if X_val is None else 1, **how)
        n_rows = int(table.shape[0])
        if self._judged_by_all(X_val):
            return np.arange(n_rows), n_rows, RidgeDistillation(table, targets, **self._settings(rng))
        draw = partial(split_rows, n_rows, self.validation_fraction, rng)
        candidates, data = four_tables(self, table, targets, X_val, y_val, draw)
        return candidates, n_rows, RidgeDistillation(*data, **self._settings(rng))

    def _on_dask(self, X: Any, y: Any, X_val: Any, y_val: Any, rng: np.random.RandomState) -> Candidates:
        """For Dask collections: the numbers of the candidate rows, how many rows X has, and the problem."""
        from mixbin.estimators._dask import candidates_on_dask

        whole = self._judged_by_all(X_val) or X_val is not None
        return candidates_on_dask(self, X, y, X_val, y_val, rng, whole)

    def predict(self, X: ArrayLike) -> Floats:
        """Predict the targets of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            If X is a Dask collection, a Dask array that is not computed yet.
        """
        check_is_fitted(self)
        if is_dask(X):
            from mixbin.estimators._dask import predicted

            return predicted(self, X)  # type: ignore[no-any-return]
        table = validated(self, X, accept_sparse="csr", reset=False, dtype=np.float64)
        return linear(table, self.coef_, self.intercept_)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that this estimator also accepts sparse tables."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

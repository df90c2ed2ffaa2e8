"""A scikit-learn regressor that trains a ridge regression on the rows worth keeping (docs/maths.md, "Data distillation").

One of the methods chooses the rows by solving ``RidgeDistillation``; the fitted model is the ridge regression on these rows.
"""

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mixbin._validate import Floats
from mixbin.data.kinds import is_dask
from mixbin.estimators._common import (
    Candidates,
    check_both,
    check_settings,
    choose_rows,
    four_tables,
    generator,
    linear,
    split_rows,
    validated,
)
from mixbin.problems import RidgeDistillation


class DistillationRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression trained on the few rows that predict a validation set best.

    On the selected rows the model is scikit-learn's ``Ridge(alpha=m * alpha_)``, where m counts all candidate rows: the rows of
    X without those split off for validation.

    Parameters
    ----------
    budget : int or float, default=0.1
        How many rows to keep: a count, or a fraction in (0, 1] of the candidate rows, rounded half up.
    alpha : float, pair of floats or None, default=None
        The strength of the ridge penalty. A number fixes it; a pair (low, high) is a range in which it is optimised together
        with the rows; None is the range (1e-6, 1e2) times the mean variance of the columns of X.
    method : {"penalize", "top-k", "simple", "relax"}, default="penalize"
        How the rows are chosen: by ``relax_and_penalize``, or by a baseline that relaxes the choice to weights and then keeps
        the largest ("top-k"), those of at least one half ("simple", which may miss the budget), or all weights ("relax").
    validation_fraction : float, default=0.2
        The fraction of the rows that is split off for validation when ``fit`` gets no validation set.
    random_state : int, RandomState instance or None, default=None
        Seeds the split, as in ``train_test_split``, and the starts of the method. Pass an int to get the same result every time.
    max_evaluations : int or None, default=None
        How many models the method may train and validate. None uses the default of the method.
    verbose : bool, default=False
        Show the progress on a terminal.

    Attributes
    ----------
    support_ : bool array of shape (n_samples,)
        Which rows of X the model was trained on; False for rows split off for validation.
    weights_ : float array of shape (n_samples,)
        The weight of each row of X: 1 where selected and 0 elsewhere, or anything between with ``method="relax"``.
    alpha_ : float
        The strength of the ridge penalty, fixed or found.
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

    See Also
    --------
    mixbin.RidgeDistillation : The problem that is solved.
    mixbin.relax_and_penalize : The method, with all its settings.
    mixbin.ParquetFolder : Tables that do not fit in memory.

    Notes
    -----
    ``sample_weight`` is not supported: choosing the weights of the rows is what this estimator does.

    X and y may be Dask arrays or dataframes with the same blocks of rows (see ``RidgeDistillation``), such as the X and y of a
    ``ParquetFolder``; their rows are not read into this process. In that case X_val and y_val may be arrays or Dask
    collections.

    In a Pipeline the validation set must pass the same steps as X. With metadata routing enabled in scikit-learn, write
    ``Pipeline(..., transform_input=["X_val"])`` around ``DistillationRegressor().set_fit_request(X_val=True, y_val=True)``.

    Examples
    --------
    >>> import numpy as np
    >>> from mixbin import DistillationRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(100, 3)), rng.normal(size=(30, 3))
    >>> y, y_val = (A @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=len(A)) for A in (X, X_val))
    >>> y[:20] *= -1  # some labels have gone wrong
    >>> model = DistillationRegressor(budget=50, max_evaluations=200, random_state=0).fit(X, y, X_val, y_val)
    >>> int(model.support_.sum()), bool(model.support_[:20].mean() < 0.1)  # next to none of them is kept
    (50, True)
    >>> model.coef_.round(1)
    array([1., 2., 3.])
    """

    def __init__(
        self,
        budget: int | float = 0.1,
        alpha: float | tuple[float, float] | None = None,
        method: str = "penalize",
        validation_fraction: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        max_evaluations: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.budget = budget
        self.alpha = alpha
        self.method = method
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.max_evaluations = max_evaluations
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, X_val: ArrayLike | None = None, y_val: ArrayLike | None = None) -> Self:
        """Choose the rows and train on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to choose from and, without a validation set, to validate on.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            One target or several.
        X_val : array-like of shape (n_validation, n_features), default=None
            Rows to validate on. If given, all rows of X are candidates.
        y_val : array-like of shape (n_validation,) or (n_validation, n_targets), default=None
            Their targets.

        Returns
        -------
        self : DistillationRegressor
        """
        check_settings(self)
        rng = generator(self.random_state)
        check_both(X_val, y_val)
        build = self._on_dask if is_dask(X) or is_dask(y) else self._in_memory
        candidates, n_rows, problem = build(X, y, X_val, y_val, rng)
        self.coef_, self.intercept_ = choose_rows(self, problem, candidates, n_rows, rng)
        return self

    def _in_memory(self, X: Any, y: Any, X_val: Any, y_val: Any, rng: np.random.RandomState) -> Candidates:
        """For arrays: the numbers of the candidate rows, how many rows X has, and the problem."""
        how = {"accept_sparse": "csr", "multi_output": True, "y_numeric": True, "dtype": np.float64}
        table, targets = validated(self, X, y, ensure_min_samples=2 if X_val is None else 1, **how)
        n_rows = int(table.shape[0])
        draw = partial(split_rows, n_rows, self.validation_fraction, rng)
        candidates, data = four_tables(self, table, targets, X_val, y_val, draw)
        return candidates, n_rows, RidgeDistillation(*data, budget=self.budget, alpha=self.alpha)

    def _on_dask(self, X: Any, y: Any, X_val: Any, y_val: Any, rng: np.random.RandomState) -> Candidates:
        """For Dask collections: the numbers of the candidate rows, how many rows X has, and the problem."""
        from mixbin.estimators._dask import candidates_on_dask

        return candidates_on_dask(self, X, y, X_val, y_val, rng)

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

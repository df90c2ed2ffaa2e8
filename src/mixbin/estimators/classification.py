"""A scikit-learn classifier that trains a logistic regression on the rows worth keeping, or on the labels worth trusting."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.estimators._common import (
    KeepsRows,
    Split,
    check_both,
    check_settings,
    choose_rows,
    four_tables,
    generator,
    linear,
    sklearn_errors_about,
    split_rows,
    validated,
)
from mixbin.problems import SoftmaxDistillation
from mixbin.progress import Callback
from mixbin.solvers import SpectralGradient

FEW_ROWS, POLISH_FEW, POLISH_MANY = 500, 200, 12
"""Polish may use POLISH_FEW evaluations for at most FEW_ROWS rows, else POLISH_MANY, which is enough for its large steps. Every
single row that it tries costs a training run. With 60 rows, 200 evaluations lower the loss by up to 9 % more than 12; with 600
and more, by less than 0.05 %."""
STALL = 1e-4
"""With more than FEW_ROWS rows the solver ends where three steps gain less than this share of the loss. Models on the way are not
exact, so that below this it would follow rounding."""
CLASS_SHARES = 0.2
"""With a budget, the share of a class among the kept rows lies within this fraction of its share among all rows."""
PATH_TOL = 1e-3
"""How exactly models on the way are trained; the model of the answer is trained to 1e-9."""
FEW_JUDGES = 300
"""With fewer validation rows than this, a warning says that they are few: on nine tables, rows chosen by 50 to 100 clean rows
made models that were worse than those of all rows."""


def default_judge(trusted: bool) -> str:
    """The loss of the rows that judge: labels that are trusted need no bound, and without one more rows count."""
    return "cross-entropy" if trusted else "bounded"


def search_settings(rows: int) -> dict[str, Any]:
    """The keywords of ``relax_and_penalize`` for this number of candidate rows."""
    if rows <= FEW_ROWS:
        return {"polish": POLISH_FEW}
    return {"polish": POLISH_MANY, "solver": SpectralGradient(stall=STALL)}


class DistillationClassifier(KeepsRows, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression trained on the rows that predict a validation set, or all rows, best.

    Parameters
    ----------
    budget : int, float or None, default=None
        How many rows to keep: a count, or a fraction in (0, 1] of the rows of X, rounded half up. None lets the loss decide.
    alpha : float, pair of floats or None, default=None
        The strength of the penalty. A number fixes it; None is 0.03 times the mean variance of the columns of X, times the share
        of the rows that the budget keeps; a pair (low, high) is a range in which it is optimised together with the rows; wrong
        labels are then found less reliably.
    judge_loss : {"bounded", "cross-entropy"} or None, default=None
        The loss by which a model is judged: "bounded" is 1 - p of the given label, so that a row whose label is wrong costs at
        most 1. None is the cross entropy if X_val judges, whose labels are trusted and whose rows then all count, and the bounded
        loss if rows of X judge.
    temperature : float or None, default=None
        Divides the scores in the cross entropy; None is 3. Above 1, all rows count, not just those near a class border. Only with
        the cross entropy.
    balanced : bool, default=True
        Whether every class counts the same among the rows that judge, however rare it is. With False every row counts the same,
        which raises the accuracy on unequal classes and lowers the balanced accuracy.
    class_shares : float or None, default=0.2
        With a budget, the share of every class among the kept rows lies within this fraction of its share among all rows, and
        every class keeps a row where the budget allows it. Without a budget, every class keeps at least this fraction of its
        rows. None lets the loss decide.
    method : {"penalize", "top-k", "simple", "relax"}, default="penalize"
        How the rows are chosen: by ``relax_and_penalize``, or by a baseline that relaxes the choice to weights and then keeps
        the largest ("top-k"), those of at least one half ("simple", which may miss the budget), or all weights ("relax").
    validation_fraction : float or None, default=None
        The fraction of the rows that is split off to judge when ``fit`` gets no validation set; each class loses this fraction.
        None splits nothing off: all rows are candidates, and all of them judge.
    random_state : int, RandomState instance or None, default=None
        Seeds the split and the starts of the method. Pass an int to get the same result every time.
    max_evaluations : int or None, default=None
        How many models the method may train and validate. None uses the default of the method.
    verbose : bool, default=False
        Show the progress on a terminal or in a notebook.
    time_limit : float or None, default=None
        Seconds after which the search ends with the best answer so far; the result then depends on the speed of the machine.
    callbacks : sequence of callables or None, default=None
        Called with an ``Event`` after each step; ``event.stop()`` ends the search. See ``relax_and_penalize``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    support_ : bool array of shape (n_samples,)
        Which rows of X the model was trained on; False for rows split off for validation.
    weights_ : float array of shape (n_samples,)
        The weight of each row of X: 1 where selected and 0 elsewhere, or anything between with ``method="relax"``.
    alpha_ : float
        The strength of the penalty, fixed or found.
    coef_ : array of shape (n_classes, n_features), or (1, n_features) for two classes
        The coefficients.
    intercept_ : array of shape (n_classes,), or (1,) for two classes
        The constant terms.
    result_ : Result
        The result of the method: value, status, certificate and trace. Its theta has one entry per candidate row.
    n_features_in_ : int
        The number of features seen by ``fit``.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if the columns of X have names.

    Warns
    -----
    UserWarning
        If there are fewer than 300 validation rows.

    Notes
    -----
    There is no ``n_jobs``: each step of the search begins where the one before ended, and only BLAS divides the work of one.

    See Also
    --------
    mixbin.SoftmaxDistillation : The problem that is solved.
    mixbin.DistillationRegressor : The same for numbers instead of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from mixbin import DistillationClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, X_test = rng.normal(size=(200, 2)), rng.normal(size=(100, 2))
    >>> y, y_test = (np.where(A[:, 0] > 0, "right", "left") for A in (X, X_test))
    >>> wrong = np.argsort(-np.abs(X[:, 0]))[:20]
    >>> y[wrong] = np.where(X[wrong, 0] > 0, "left", "right")
    >>> model = DistillationClassifier(budget=20, random_state=0).fit(X, y)
    >>> bool(model.support_[wrong].any()), bool(model.score(X_test, y_test) > 0.95)
    (False, True)
    """

    def __init__(
        self,
        budget: int | float | None = None,
        alpha: float | tuple[float, float] | None = None,
        judge_loss: str | None = None,
        temperature: float | None = None,
        balanced: bool = True,
        class_shares: float | None = CLASS_SHARES,
        method: str = "penalize",
        validation_fraction: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        max_evaluations: int | None = None,
        verbose: bool = False,
        time_limit: float | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.budget = budget
        self.alpha = alpha
        self.judge_loss = judge_loss
        self.temperature = temperature
        self.balanced = balanced
        self.class_shares = class_shares
        self.method = method
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.max_evaluations = max_evaluations
        self.verbose = verbose
        self.time_limit = time_limit
        self.callbacks = callbacks

    def fit(self, X: ArrayLike, y: ArrayLike, X_val: ArrayLike | None = None, y_val: ArrayLike | None = None) -> Self:
        """Choose the rows and train on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to choose from. Without rows that judge, all of them do: a choice is good if the model trained on it has a
            low loss on all rows, plus a small penalty on its coefficients (see ``SoftmaxDistillation``).
        y : array-like of shape (n_samples,)
            Their classes.
        X_val : array-like of shape (n_validation, n_features), default=None
            Rows that judge instead, at least some hundreds.
        y_val : array-like of shape (n_validation,), default=None
            Their classes, which are trusted.

        Returns
        -------
        self : DistillationClassifier
            The fitted estimator.
        """
        check_settings(self, all_may_judge=True)
        rng = generator(self.random_state)
        check_both(X_val, y_val)

        table, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=2 if X_val is None else 1)
        with sklearn_errors_about("y must hold classes"), np.errstate(invalid="ignore"):
            check_classification_targets(labels)
        self.classes_, counts = np.unique(labels, return_counts=True)
        if len(self.classes_) < 2:
            raise InvalidInput(f"y must hold at least two classes, got one class only, {self.classes_[0]!r}; add rows of another")
        candidates: NDArray[np.intp] = np.arange(len(table))
        data: tuple[Any, Any, Any, Any] = (table, labels, None, None)
        if X_val is not None or self.validation_fraction is not None:
            candidates, data = four_tables(
                self, table, labels, X_val, y_val, partial(self._split, labels, counts, rng), dtype=None
            )
            self._warn_about_few(len(data[2]))
        problem = SoftmaxDistillation(
            *data,
            budget=self.budget,
            alpha=self.alpha,
            judge_loss=default_judge(X_val is not None) if self.judge_loss is None else self.judge_loss,
            temperature=self.temperature,
            balanced=self.balanced,
            class_shares=self.class_shares,
            path_tol=PATH_TOL,
        )
        coef, intercept = choose_rows(self, problem, candidates, len(table), rng, **search_settings(len(candidates)))
        if len(self.classes_) == 2:
            # scikit-learn keeps one score for two classes; the softmax depends on the difference of the two scores only.
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef, intercept
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """The scores of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes
            One column per class, in the order of ``classes_``; for two classes, positive means the second.
        """
        check_is_fitted(self)
        table = validated(self, X, reset=False, dtype=np.float64)
        scores = linear(table, self.coef_, self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: ArrayLike) -> Floats:
        """The class probabilities of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        scores = self.decision_function(X)
        return np.asarray(softmax(np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores, axis=1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the classes of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,)
            Their classes.
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    def _warn_about_few(self, judges: int) -> None:
        if judges < FEW_JUDGES:
            warnings.warn(
                f"only {judges} rows judge: rows chosen by fewer than {FEW_JUDGES} often make a worse model than all rows; "
                "pass more as X_val and y_val, or pass none and leave validation_fraction out, and all rows of X judge",
                UserWarning,
                stacklevel=3,
            )

    def _split(self, labels: NDArray[Any], counts: NDArray[np.intp], rng: np.random.RandomState) -> Split:
        """Split each class in the same proportion if there are enough rows for that.

        If not, split all rows together and move validation rows back to the candidates if their class would be lost there: the
        model must know every class.
        """
        assert self.validation_fraction is not None
        rows, K = len(labels), len(counts)
        held = int(np.ceil(self.validation_fraction * rows))
        if counts.min() >= 2 and min(held, rows - held) >= K:
            return split_rows(rows, self.validation_fraction, rng, labels)
        candidates, held_out = split_rows(rows, self.validation_fraction, rng)
        lost = ~np.isin(labels[held_out], labels[candidates])
        return np.concatenate([candidates, held_out[lost]]), held_out[~lost]

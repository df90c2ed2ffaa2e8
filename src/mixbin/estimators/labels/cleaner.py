"""A scikit-learn classifier that tells which labels are probably wrong, and trains without them if that helps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted, validate_data

from mixbin._validate import Floats
from mixbin.data.one_blas_thread import on_one_blas_thread
from mixbin.errors import ConvergenceWarning, InvalidInput
from mixbin.estimators._common import KeepsRows, generator, sklearn_errors_about, validated
from mixbin.estimators.labels import checks
from mixbin.estimators.labels.choice import LINEAR_ALPHA, Chosen, choose
from mixbin.estimators.labels.guard import (
    DIVISIONS,
    FEWEST_FOLDS,
    FOUND_AGAIN_ERRORS,
    ONE_DIVISION_ERRORS,
    READY_ERRORS,
    Verdict,
    better_than_chance,
    changes,
    decide,
    kept_without,
)
from mixbin.estimators.labels.learners import ALWAYS, Classifier, Learner, Regression, out_of_fold
from mixbin.estimators.labels.margins import held_back, margins, suspects
from mixbin.estimators.labels.passes import Passes, PassEvent
from mixbin.estimators.labels.regression import probabilities
from mixbin.estimators.labels.representations import Standardised, standardise
from mixbin.estimators.labels.rounds import reweighted
from mixbin.problems.distillation.multinomial import Codes

TRUSTED_WEIGHT = 5.0
"""The weight of a trusted row where every other row weighs at most 1."""
UNJUDGED = 0.5
"""The quality of labels whose class has fewer rows than there are folds: nothing speaks for or against them."""


class LabelCleaner(KeepsRows, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Find labels that are probably wrong, and train a classifier without them if that helps.

    No trusted rows are needed. Each row is predicted by models that were not trained on it; the rows that these models contradict
    are weighed down and the models trained again, three times. What counts is each probability relative to its class, so a rare
    class is not called wrong for being rare. Suspects are dropped from training only if a guard finds that this raises the share
    of held-out labels that a model hits, all classes counting the same, and does not lower it with all rows counting the same.

    A class with fewer rows than ``cv`` cannot be judged: its rows are never suspects, have quality 0.5 and stay in every training
    part, and no row is suspected in favour of such a class.

    Parameters
    ----------
    estimator : classifier with predict_proba, or None, default=None
        Whose out-of-fold probabilities to use. None chooses between logistic regressions on standardised columns and on columns
        lifted by a kernel. A classifier gets X as it is passed, and is trained with weights; one whose ``fit`` takes no
        ``sample_weight`` is trained on the rows with a weight of at least 1/2.
    lift : {"auto", None}, default="auto"
        Whether lifted columns may be chosen. It has no effect beside an estimator.
    cv : int, default=5
        The number of folds.
    guard : bool, default=True
        Whether to drop suspects only if the guard agrees. Suspects are reported either way.
    max_class_loss : float, default=0.9
        The largest share of a class that may be dropped; its least doubtful suspects are held back. At least one row stays.
    n_jobs : int or None, default=None
        How many folds to train at once, in threads; -1 uses all cores. The result is the same to the bit.
    random_state : int, RandomState instance or None, default=None
        Seeds folds and landmarks, and an estimator whose own ``random_state`` is None.
    time_limit : float or None, default=None
        Seconds after which no further pass over the folds begins. The labels are then judged by the passes made, at least one;
        a guard that has begun decides by what it has seen; if it has not, a warning says that no row is dropped. The result
        depends on the speed of the machine.
    callbacks : sequence of callables or None, default=None
        Called after each pass over the folds with an event, which has ``stage``, ``passes`` and ``seconds``; ``event.stop()``
        ends the fit as ``time_limit`` does.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    label_quality_ : float array of shape (n_samples,)
        How much each label is to be trusted, from 0 to 1; below 1/2 another class is the more likely one.
    suspect_ : bool array of shape (n_samples,)
        Which labels are probably wrong.
    suggested_labels_ : array of shape (n_samples,)
        For suspects the most likely other class, otherwise the label.
    support_ : bool array of shape (n_samples,)
        Which rows the model was trained on: all of them if the guard refuses.
    held_back_ : bool array of shape (n_samples,)
        Suspects that stay in ``support_`` because of ``max_class_loss``.
    guard_ : Verdict or None
        ``gain`` (class-balanced, as a share), ``standard_error``, ``accepted``, ``above_chance`` (whether predictions hit
        more labels than chance) and ``plain_gain`` (every row counting the same). None if ``guard=False``, if there was
        nothing to compare, or no time.
    confusion_ : int array of shape (n_classes, n_classes)
        How many rows have the label of the line and the suggested label of the column.
    rare_classes_ : array
        Classes with fewer rows than ``cv``, which are not judged.
    representation_ : {"linear", "lifted", "estimator"}
        What the model is trained on.
    n_features_in_ : int
        The number of features seen by ``fit``.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if the columns of X have names.

    See Also
    --------
    mixbin.DistillationClassifier : The best k rows to train on, judged by a validation set.

    Examples
    --------
    >>> import numpy as np
    >>> from mixbin import LabelCleaner
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> wrong = rng.choice(np.flatnonzero(np.abs(X[:, 0]) > 0.5), 20, replace=False)
    >>> y[wrong] = np.where(X[wrong, 0] > 0, "left", "right")
    >>> cleaner = LabelCleaner(random_state=0).fit(X, y)
    >>> bool(cleaner.suspect_[wrong].mean() >= 0.9), bool(cleaner.suspect_.sum() <= 30)
    (True, True)
    >>> str(y[wrong[0]]), str(cleaner.suggested_labels_[wrong[0]])
    ('right', 'left')
    """

    def __init__(
        self,
        estimator: Any = None,
        lift: str | None = "auto",
        cv: int = 5,
        guard: bool = True,
        max_class_loss: float = 0.9,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        time_limit: float | None = None,
        callbacks: Sequence[Callable[[PassEvent], object]] | None = None,
    ) -> None:
        self.estimator = estimator
        self.lift = lift
        self.cv = cv
        self.guard = guard
        self.max_class_loss = max_class_loss
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.time_limit = time_limit
        self.callbacks = callbacks

    @on_one_blas_thread
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_trusted: ArrayLike | None = None,
        y_trusted: ArrayLike | None = None,
        pred_probs: ArrayLike | None = None,
    ) -> Self:
        """Judge the labels, and train the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels: strings, whole numbers or booleans.
        X_trusted, y_trusted : like X and y, default=None
            Rows whose labels are known to be right. They are in every training part, with weight 5.
        pred_probs : array-like of shape (n_samples, n_classes), default=None
            Out-of-fold probabilities, with the classes sorted. They are used as they are, and no rounds are made; the guard and
            the model use the estimator or, without one, a logistic regression on the standardised columns.

        Returns
        -------
        self : LabelCleaner
            The fitted estimator.
        """
        checks.check_settings(self)
        passes = Passes(self.callbacks, self.time_limit)
        rng = generator(self.random_state)
        table, labels = checks.table_and_labels(self, X, y)
        self.classes_, y_rows = checks.classes_of(labels, self.cv)
        n, n_classes = len(y_rows), len(self.classes_)
        trusted = checks.trusted_rows(self, X_trusted, y_trusted, self.classes_)
        P = None if pred_probs is None else checks.ready_probabilities(pred_probs, n, n_classes)

        rows, codes, weights = table, y_rows, np.ones(n)
        if trusted is not None:
            rows, codes = checks.stacked(table, trusted[0]), np.concatenate([y_rows, trusted[1]])
            weights = np.concatenate([weights, np.full(len(trusted[1]), TRUSTED_WEIGHT)])
        judged = np.bincount(y_rows, minlength=n_classes) >= self.cv
        self.rare_classes_ = self.classes_[~judged]
        data = _Data(rows, codes, weights, n, judged)

        if judged.sum() < 2:
            warnings.warn(
                f"no label can be judged: fewer than two classes have {self.cv} rows; all rows are kept",
                UserWarning,
                stacklevel=2,
            )
            s, rival, doubted, above_chance = np.zeros(n), y_rows, np.zeros(n, dtype=bool), False
            learner, model = self._learner(data, None, rng, passes, choosing=False)
        else:
            folds = data.folds(self.cv, rng)
            learner, model = self._learner(data, folds, rng, passes, choosing=P is None)
            first = P
            if first is None or P is None:
                first, P = (it[:n] for it in self._probabilities(learner, data, folds, passes))
            rows_judged = judged[y_rows]
            above_chance = better_than_chance(first[rows_judged], y_rows[rows_judged], judged)
            s, rival, doubted = self._judge(P, data)
        self.label_quality_ = np.where(judged[y_rows], expit(s), UNJUDGED)
        self.suspect_ = doubted
        suggested = np.where(doubted, rival, y_rows)
        self.suggested_labels_ = self.classes_[suggested]
        self.confusion_ = np.zeros((n_classes, n_classes), dtype=np.intp)
        np.add.at(self.confusion_, (y_rows, suggested), 1)
        self.held_back_ = held_back(doubted, y_rows, s, self.max_class_loss)
        self.support_ = ~doubted | self.held_back_
        self.guard_: Verdict | None = None
        if self.guard and not self.support_.all():
            if passes.over:
                warnings.warn(
                    f"no row is dropped: fit ended after {passes.count} passes, before the guard could compare models; "
                    "give more time, or pass guard=False",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            else:
                self.guard_ = self._guard(learner, data, rng, pred_probs is not None, above_chance, passes)
            if self.guard_ is None or not self.guard_.accepted:
                self.support_ = np.ones(n, dtype=bool)
                self.held_back_ = np.zeros(n, dtype=bool)
        self._train(learner, model, data)
        return self

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Predict the class probabilities of rows by the model trained on ``support_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.
        """
        check_is_fitted(self, "support_")
        if self.model_ is None:
            table = validated(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
            with np.errstate(over="ignore"):
                return probabilities(self._columns(table), self._coef)
        given = checks.untouched("X", X)
        with sklearn_errors_about("X must be a table with the columns of fit"):
            validate_data(self, given, reset=False, skip_check_array=True)
        return self._classifier.probabilities(self.model_, given)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the classes of rows by the model trained on ``support_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        array of shape (n_samples,)
            Their classes.
        """
        check_is_fitted(self, "support_")
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that sparse tables are accepted, unless the user's classifier refuses them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.estimator is None or checks.takes_sparse(self.estimator)
        return tags

    def _learner(
        self, data: _Data, folds: Codes | None, rng: np.random.RandomState, passes: Passes, choosing: bool
    ) -> tuple[Learner, Chosen | None]:
        """Who predicts; for our own regressions also what was chosen."""
        n_classes = len(self.classes_)
        if self.estimator is not None:
            return Classifier(self.estimator, data.X, data.y, n_classes, int(rng.randint(2**31 - 1))), None
        if choosing and folds is not None:
            chosen = choose(data.X, data.y, folds, data.weights, n_classes, self.lift == "auto", self.n_jobs, rng, passes)
        else:
            chosen = Chosen(standardise(data.X, int(rng.randint(2**31 - 1))), LINEAR_ALPHA, np.nan)
        return Regression(chosen.representation(data.X), data.y, n_classes, chosen.alpha), chosen

    def _probabilities(self, learner: Learner, data: _Data, folds: Codes, passes: Passes) -> tuple[Floats, Floats]:
        """Out-of-fold probabilities of the learner for all rows: before the rounds, and P*."""

        def refit(v: Floats) -> Floats:
            P = out_of_fold(learner, folds, v * data.weights, len(self.classes_), self.n_jobs)
            passes.note("judging")
            return P

        first = refit(np.ones(len(data.y)))
        return first, reweighted(first, data.y, folds != ALWAYS, data.judged, refit, lambda: passes.over)

    def _judge(self, P: Floats, data: _Data) -> tuple[Floats, Codes, NDArray[np.bool_]]:
        """The margin of each row, its most likely other class, and whether it is a suspect."""
        y = data.y[: data.n]
        rows = data.judged[y]
        s, rival, doubted = np.zeros(data.n), y.copy(), np.zeros(data.n, dtype=bool)
        s[rows], rival[rows] = margins(P[rows], y[rows], data.judged)
        doubted[rows] = suspects(P[rows], y[rows], s[rows])
        return s, rival, doubted

    def _guard(
        self, learner: Learner, data: _Data, rng: np.random.RandomState, ready: bool, above_chance: bool, passes: Passes
    ) -> Verdict:
        """Compare models with and without suspects in fresh folds: the user's, or our regression on standardised columns."""
        n_classes, ours = len(self.classes_), isinstance(learner, Regression)
        judge, seed = learner, int(rng.randint(2**31 - 1))
        if ours:
            judge = Regression(standardise(data.X, seed)(data.X), data.y, n_classes, LINEAR_ALPHA)
        found: list[Floats | None] = []
        for _ in range(DIVISIONS if ours else 1):
            folds = data.folds(self.cv if ready else max(self.cv, FEWEST_FOLDS), rng)
            if len(np.unique(data.y[folds != ALWAYS])) < 2:
                found.append(None)
                break
            if ready:
                kept = np.ones((self.cv, len(data.y)), dtype=bool)
                kept[:, : data.n] = self.support_
            else:
                kept = kept_without(
                    _fresh(learner, loose=True), data.y, folds, data.weights, n_classes, self.max_class_loss, self.n_jobs
                )
            found.append(
                changes(_fresh(judge, loose=False), data.y, folds, data.weights, kept, n_classes, self.n_jobs, passes.note)
            )
            if passes.over or found[-1] is None:
                break
        errors = READY_ERRORS if ready else FOUND_AGAIN_ERRORS if ours else ONE_DIVISION_ERRORS
        return decide(found, data.y, folds != ALWAYS, n_classes, errors, above_chance)

    def _train(self, learner: Learner, chosen: Chosen | None, data: _Data) -> None:
        """Train the model on ``support_`` and the trusted rows."""
        used = np.concatenate([self.support_, np.ones(len(data.y) - data.n, dtype=bool)])
        self.model_: Any = None
        if isinstance(learner, Classifier):
            self.representation_ = "estimator"
            self.model_ = learner.fitted(used, data.weights)
            # The classifier is kept without the rows.
            self._classifier = Classifier(self.estimator, None, data.y[:0], len(self.classes_), learner.seed)
            return
        if chosen is None or not isinstance(learner, Regression):
            raise InvalidInput("estimator must stay the same during fit, got another one; pass a fixed one")
        self.representation_ = "linear" if isinstance(chosen.representation, Standardised) else "lifted"
        self._columns = chosen.representation
        self._coef = learner.fitted(used, data.weights)


class _Data:
    """The rows of X and then the trusted rows, with classes and weights; n is the number of the former."""

    def __init__(self, X: Any, y: Codes, weights: Floats, n: int, judged: NDArray[np.bool_]) -> None:
        self.X, self.y, self.weights, self.n, self.judged = X, y, weights, n, judged

    def folds(self, cv: int, rng: np.random.RandomState) -> Codes:
        """The fold of each row, classes divided evenly; ALWAYS for rows of classes with fewer rows than folds."""
        folds = np.full(len(self.y), ALWAYS, dtype=np.intp)
        own = self.y[: self.n]
        rows = np.flatnonzero(np.bincount(own)[own] >= cv)
        if not len(rows):
            return folds
        split = StratifiedKFold(cv, shuffle=True, random_state=int(rng.randint(2**31 - 1)))
        for fold, (_, held_out) in enumerate(split.split(rows, self.y[rows])):
            folds[rows[held_out]] = fold
        return folds


def _fresh(learner: Learner, loose: bool) -> Learner:
    """The learner for other folds: without solutions, which remember the labels of their own."""
    return learner.for_other_folds(loose) if isinstance(learner, Regression) else learner

"""Who predicts labels: our own logistic regressions, or the user's classifier, trained on weighted rows with a fold left out."""

import copy
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.estimators._common import threads
from mixbin.estimators.labels.regression import Singles, mean_squares, probabilities, train
from mixbin.problems.distillation.multinomial import Codes

ALWAYS = -1
"""The fold of rows that every model is trained on: trusted ones, and those of classes with fewer rows than folds."""
TRUSTWORTHY = 0.5
"""A classifier that takes no weights is trained on the rows with at least this weight."""


class Learner(Protocol):
    """Trains models on some rows with weights and predicts other rows."""

    def predictions(self, trained: NDArray[np.bool_], v: Floats, predicted: NDArray[np.bool_], fold: int) -> Floats:
        """Class probabilities of the rows ``predicted`` from a model trained on the rows ``trained`` with weights v."""
        ...


class Regression:
    """Our multinomial regression on the columns Z of all rows with penalty alpha.

    Each fold starts from its own last solution, never from a model that was trained on the rows left out: training ends early
    enough that such a start would still remember their labels. ``loose`` ends it earlier still.
    """

    def __init__(self, Z: Floats | Singles, y: Codes, n_classes: int, alpha: float, loose: bool = False) -> None:
        self.Z, self.y, self.n_classes, self.alpha, self.loose = Z.astype(np.float32, copy=False), y, n_classes, alpha, loose
        self.squares = mean_squares(self.Z)
        self._starts: dict[int, Floats] = {}

    def with_alpha(self, alpha: float) -> "Regression":
        """The same with another penalty, and with the solutions so far as starts."""
        other = copy.copy(self)
        other.alpha, other._starts = alpha, dict(self._starts)
        return other

    def predictions(self, trained: NDArray[np.bool_], v: Floats, predicted: NDArray[np.bool_], fold: int) -> Floats:
        """Class probabilities of the rows ``predicted`` from a model trained on the rows ``trained`` with weights v."""
        self._starts[fold] = B = self.fitted(trained, v, self._starts.get(fold))
        return probabilities(self.Z[predicted], B)

    def fitted(self, trained: NDArray[np.bool_], v: Floats, start: Floats | None = None) -> Floats:
        """The coefficients of a model trained on these rows with weights v."""
        rows = np.flatnonzero(trained)
        Z = np.take(self.Z, rows, axis=0)
        return train(Z, self.y[rows], v[rows], self.alpha, self.n_classes, start, self.squares, self.loose)

    def for_other_folds(self, loose: bool) -> "Regression":
        """The same without the solutions so far, which remember the labels of their own folds."""
        return Regression(self.Z, self.y, self.n_classes, self.alpha, loose)


class Classifier:
    """The user's classifier, a clone for each model, on the rows as the user passed them."""

    def __init__(self, estimator: Any, X: Any, y: Codes, n_classes: int, seed: int) -> None:
        self.estimator, self.X, self.y, self.n_classes, self.seed = estimator, X, y, n_classes, seed
        self.weighted = bool(has_fit_parameter(estimator, "sample_weight"))

    def fitted(self, trained: NDArray[np.bool_], v: Floats) -> Any:
        """A clone trained on these rows. Without weights: on the trustworthy ones, of each class at least the best."""
        model = clone(self.estimator)
        if "random_state" in (params := model.get_params(deep=False)) and params["random_state"] is None:
            model.set_params(random_state=self.seed)
        if not self.weighted:
            trustworthy = trained & (v >= TRUSTWORTHY)
            for k in np.setdiff1d(self.y[trained], self.y[trustworthy]):
                trustworthy[np.flatnonzero(trained & (self.y == k))[v[trained & (self.y == k)].argmax()]] = True
            trained = trustworthy
        rows = np.flatnonzero(trained)
        weights = {"sample_weight": v[rows]} if self.weighted else {}
        return model.fit(_safe_indexing(self.X, rows), self.y[rows], **weights)

    def probabilities(self, model: Any, X: Any) -> Floats:
        """The model's probabilities with a column for every class; a class that it was not trained on has 0."""
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
        classes = np.asarray(model.classes_)
        if found.shape != (X.shape[0], len(classes)) or not np.isfinite(found).all():
            raise InvalidInput(
                f"estimator must predict one finite probability per row and class, got an array of shape {found.shape} from "
                f"{type(self.estimator).__name__}; check its predict_proba"
            )
        P = np.zeros((len(found), self.n_classes))
        P[:, classes.astype(np.intp)] = found
        return P

    def predictions(self, trained: NDArray[np.bool_], v: Floats, predicted: NDArray[np.bool_], fold: int) -> Floats:
        """Class probabilities of the rows ``predicted`` from a model trained on the rows ``trained`` with weights v."""
        return self.probabilities(self.fitted(trained, v), _safe_indexing(self.X, np.flatnonzero(predicted)))


def out_of_fold(learner: Learner, folds: Codes, v: Floats, n_classes: int, n_jobs: int | None) -> Floats:
    """For each row the probabilities of the model that was not trained on its fold; 1/K for rows in no fold."""
    P = np.full((len(folds), n_classes), 1.0 / n_classes)
    numbers = range(int(folds.max()) + 1)
    work: Callable[[int], Floats] = lambda fold: learner.predictions(folds != fold, v, folds == fold, fold)  # noqa: E731
    found = Parallel(n_jobs=threads(n_jobs, len(numbers)), prefer="threads")(delayed(work)(fold) for fold in numbers)
    for fold, part in zip(numbers, found, strict=True):
        P[folds == fold] = part
    return P

"""Does it help to drop the suspects? Models with and without them are compared on held-out rows, class by class."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.estimators.labels.learners import ALWAYS, Learner, out_of_fold
from mixbin.estimators.labels.margins import SMALLEST_P
from mixbin.problems.distillation.multinomial import Codes

STANDARD_ERRORS = 1.5
"""The gain must exceed this many standard errors."""


class Verdict(NamedTuple):
    """What the guard found."""

    gain: float
    """By how much the share of labels hit rises when suspects are dropped: the mean of the classes' shares."""
    standard_error: float
    """Of the gain."""
    accepted: bool
    """Whether the gain is large enough to drop the suspects."""


def compare(
    learner: Learner, y: Codes, folds: Codes, weights: Floats, kept: NDArray[np.bool_], n_classes: int, n_jobs: int | None
) -> Verdict:
    """Train on all rows and on the kept ones, fold by fold, and judge both on all held-out rows with their labels as they are.

    Both predict the class with the largest p(k) / (its share of the rows trained on), and every class counts the same:
    otherwise a model that has lost a rare class would win by predicting the common one.
    """
    hits = []
    for used in (np.ones(len(y), dtype=bool), kept):
        # A row that is not used trains no model: its fold is judged by models that leave it out anyway.
        v = np.where(used, weights, 0.0)
        P = out_of_fold(_Using(learner, used), folds, v, n_classes, n_jobs)
        share = np.maximum(np.bincount(y, weights=v, minlength=n_classes) / v.sum(), SMALLEST_P)
        hits.append((P / share).argmax(axis=1) == y)
    gained = hits[1].astype(np.float64) - hits[0]
    means, variances = [], []
    for k in range(n_classes):
        of_class = gained[(y == k) & (folds != ALWAYS)]
        if len(of_class):
            means.append(of_class.mean())
            variances.append(of_class.var() / len(of_class))
    gain = float(np.mean(means))
    error = float(np.sqrt(np.sum(variances)) / len(means))
    return Verdict(gain, error, gain > STANDARD_ERRORS * error)


class _Using:
    """A learner that is trained on some rows only."""

    def __init__(self, learner: Learner, used: NDArray[np.bool_]) -> None:
        self.learner, self.used = learner, used

    def predictions(self, trained: NDArray[np.bool_], v: Floats, predicted: NDArray[np.bool_], fold: int) -> Floats:
        return self.learner.predictions(trained & self.used, v, predicted, fold)

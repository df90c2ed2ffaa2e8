"""Does it help to drop the suspects? Models with and without them are compared on held-out rows, class by class."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.estimators.labels.learners import ALWAYS, Learner, out_of_fold
from mixbin.estimators.labels.margins import SMALLEST_P
from mixbin.problems.distillation.multinomial import Codes

STANDARD_ERRORS = 2.0
"""The gain must exceed this many standard errors. On the eleven tables that it was chosen on, models became worse by more than
half a point in 3.4 % of the cells, with 1.5 in 5.7 %."""
CHANCE_ERRORS = 3.0
"""By so many standard errors the models must hit more labels than chance does."""


class Verdict(NamedTuple):
    """What the guard found."""

    gain: float
    """By how much the share of labels hit rises when suspects are dropped: the mean of the classes' shares."""
    standard_error: float
    """Of the gain."""
    accepted: bool
    """Whether the gain is large enough to drop the suspects, and predictions are better than chance."""
    above_chance: bool
    """Whether the predictions that the labels were judged by hit more of them than chance."""


def compare(
    learner: Learner,
    y: Codes,
    folds: Codes,
    weights: Floats,
    kept: NDArray[np.bool_],
    n_classes: int,
    n_jobs: int | None,
    above_chance: bool,
) -> Verdict:
    """Train on all rows and on the kept ones, fold by fold, and judge both on all held-out rows with their labels as they are.

    Both predict the class with the largest p(k) / (its share of the rows trained on), and every class counts the same:
    otherwise a model that has lost a rare class would win by predicting the common one.

    The suspects were found with the help of the held-out labels. Where labels have nothing to do with the columns that alone
    makes a gain, so rows are dropped only if ``above_chance``.
    """
    hits = []
    for used in (np.ones(len(y), dtype=bool), kept):
        # A row that is not used trains no model: its fold is judged by models that leave it out anyway.
        v = np.where(used, weights, 0.0)
        P = out_of_fold(_Using(learner, used), folds, v, n_classes, n_jobs)
        hits.append(_hits(P, y, v))
    gain, error = _balanced(hits[1].astype(np.float64) - hits[0], y, folds != ALWAYS, n_classes)
    return Verdict(gain, error, above_chance and gain > STANDARD_ERRORS * error, above_chance)


def better_than_chance(P: Floats, y: Codes, judged: NDArray[np.bool_]) -> bool:
    """Whether out-of-fold probabilities of judged rows hit more than one of so many classes, all classes counting the same."""
    hit = _hits(P[:, judged], np.cumsum(judged)[y] - 1, np.ones(len(y)))
    share, error = _balanced(hit.astype(np.float64), y, np.ones(len(y), dtype=bool), len(judged))
    return bool(share > 1.0 / np.count_nonzero(judged) + CHANCE_ERRORS * error)


def _hits(P: Floats, y: Codes, weights: Floats) -> NDArray[np.bool_]:
    """Whether the class with the largest p(k) / (its share of the weights) is the label."""
    share = np.bincount(y, weights=weights, minlength=P.shape[1]) / weights.sum()
    return np.asarray((P / np.maximum(share, SMALLEST_P)).argmax(axis=1) == y)


def _balanced(values: Floats, y: Codes, rows: NDArray[np.bool_], n_classes: int) -> tuple[float, float]:
    """The mean of the classes' means over some rows, and its standard error."""
    means, variances = [], []
    for k in range(n_classes):
        of_class = values[(y == k) & rows]
        if len(of_class):
            means.append(of_class.mean())
            variances.append(of_class.var() / len(of_class))
    return float(np.mean(means)), float(np.sqrt(np.sum(variances)) / len(means))


class _Using:
    """A learner that is trained on some rows only."""

    def __init__(self, learner: Learner, used: NDArray[np.bool_]) -> None:
        self.learner, self.used = learner, used

    def predictions(self, trained: NDArray[np.bool_], v: Floats, predicted: NDArray[np.bool_], fold: int) -> Floats:
        return self.learner.predictions(trained & self.used, v, predicted, fold)

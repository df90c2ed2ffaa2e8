"""Does it help to drop the suspects? Models with and without them are compared on held-out rows, class by class.

The labels of held-out rows must not have helped to find the suspects that the models are trained without: where classes overlap,
suspects that were found with their help make a gain that new rows do not see. So for each held-out part the suspects are found
again without it. Ready probabilities cannot be computed again; there the suspects stay the same, and more is asked for.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.estimators._common import threads
from mixbin.estimators.labels.learners import ALWAYS, Learner, out_of_fold
from mixbin.estimators.labels.margins import SMALLEST_P, held_back, margins, suspects
from mixbin.problems.distillation.multinomial import Codes

FOUND_AGAIN_ERRORS = 0.5
"""The gain must exceed this many standard errors where suspects are found again without the held-out rows."""
ONE_DIVISION_ERRORS = 1.5
"""The same for a user's classifier, which is compared in one division into folds only."""
READY_ERRORS = 2.5
"""The same where suspects are not found again, because the probabilities were ready. benchmarks/label_tuning.md shows how these
three numbers were chosen."""
CHANCE_ERRORS = 3.0
"""By so many standard errors the models must hit more labels than chance does."""
FEWEST_FOLDS = 3
"""With two folds, none is left once two are held out."""
DIVISIONS = 3
"""Into folds: the mean over several differs less from one seed to the next. A user's classifier is compared in one, because its
training may take long."""


class Verdict(NamedTuple):
    """What the guard found."""

    gain: float
    """By how much the share of labels hit rises when suspects are dropped: the mean of the classes' shares."""
    standard_error: float
    """Of the gain."""
    accepted: bool
    """Whether the gain is large enough to drop the suspects, the plain gain is not negative, and predictions are better than
    chance."""
    above_chance: bool
    """Whether the predictions that the labels were judged by hit more of them than chance."""
    plain_gain: float
    """The gain with every row counting the same, and not every class."""


def kept_without(
    learner: Learner, y: Codes, folds: Codes, weights: Floats, n_classes: int, max_class_loss: float, n_jobs: int | None
) -> NDArray[np.bool_]:
    """For each fold (a line) the rows that would be kept if the labels of that fold were not known.

    A row of another fold is judged by a model that is trained on neither of the two, before any round of weights.
    """
    n_folds = int(folds.max()) + 1
    pairs = list(combinations(range(n_folds), 2))

    def predicted(number: int) -> Floats:
        held = np.isin(folds, pairs[number])
        return learner.predictions(~held, weights, held, number)

    found = Parallel(n_jobs=threads(n_jobs, len(pairs)), prefer="threads")(
        delayed(predicted)(number) for number in range(len(pairs))
    )
    P = np.zeros((n_folds, len(y), n_classes))
    for pair, part in zip(pairs, found, strict=True):
        held = np.isin(folds, pair)
        for without, other in (pair, pair[::-1]):
            P[without][folds == other] = part[folds[held] == other]
    kept = np.ones((n_folds, len(y)), dtype=bool)
    judged = np.isin(np.arange(n_classes), y[folds != ALWAYS])
    for fold in range(n_folds):
        rows = np.flatnonzero((folds != fold) & (folds != ALWAYS))
        s, _ = margins(P[fold][rows], y[rows], judged)
        doubted = suspects(P[fold][rows], y[rows], s)
        kept[fold, rows] = ~doubted | held_back(doubted, y[rows], s, max_class_loss)
    return kept


def changes(
    learner: Learner,
    y: Codes,
    folds: Codes,
    weights: Floats,
    kept: NDArray[np.bool_],
    n_classes: int,
    n_jobs: int | None,
    note: Callable[[str], None] = lambda _: None,
) -> Floats | None:
    """Train on all rows and on those ``kept`` for a fold (a line), and judge both on all its rows with their labels as they are.

    The first line says for each row whether the second model hits its label and the first does not (1), or the other way round
    (-1). There both predict the class with the largest p(k) / (its share of the rows trained on): otherwise a model that has lost
    a rare class would win by predicting the common one. In the second line both predict the class with the largest p(k).
    None if a class would have no row left to train on. ``note`` is called after each of the two passes.
    """
    if any(len(np.unique(y[(folds != f) & rows])) < len(np.unique(y[folds != f])) for f, rows in enumerate(kept)):
        return None
    change = np.zeros((2, len(y)))
    for sign, used in ((-1.0, np.ones_like(kept)), (1.0, kept)):
        P = out_of_fold(_Using(learner, used), folds, weights, n_classes, n_jobs)
        for fold, rows in enumerate(used):
            held = folds == fold
            trained = np.where(held, 0.0, weights * rows)
            change[0, held] += sign * _hits(P[held], y[held], np.bincount(y, weights=trained, minlength=n_classes))
            change[1, held] += sign * (P[held].argmax(axis=1) == y[held])
        note("guard")
    return change


def decide(
    found: Sequence[Floats | None], y: Codes, rows: NDArray[np.bool_], n_classes: int, errors: float, above_chance: bool
) -> Verdict:
    """Whether to drop the suspects, by the mean of these changes over the ``rows`` that were held out.

    Every class counts the same, and the gain must exceed this many standard ``errors``. The share of all rows that are hit must
    not fall either: what several rare classes gain may cost the common ones more. Where labels have nothing to do with the
    columns there is no gain to be found, only luck, so rows are dropped only if ``above_chance``.
    """
    usable = [change for change in found if change is not None]
    if len(usable) < len(found):
        return Verdict(0.0, 0.0, False, above_chance, 0.0)
    by_class, by_row = np.mean(usable, axis=0)
    gain, error = _balanced(by_class, y, rows, n_classes)
    plain = float(by_row[rows].mean())
    return Verdict(gain, error, above_chance and gain > errors * error and plain >= 0.0, above_chance, plain)


def better_than_chance(P: Floats, y: Codes, judged: NDArray[np.bool_]) -> bool:
    """Whether out-of-fold probabilities of judged rows hit more than one of so many classes, all classes counting the same."""
    codes = np.cumsum(judged)[y] - 1
    hit = _hits(P[:, judged], codes, np.bincount(codes, minlength=np.count_nonzero(judged)))
    share, error = _balanced(hit.astype(np.float64), y, np.ones(len(y), dtype=bool), len(judged))
    return bool(share > 1.0 / np.count_nonzero(judged) + CHANCE_ERRORS * error)


def _hits(P: Floats, y: Codes, weights: Floats | Codes) -> NDArray[np.bool_]:
    """Whether the class with the largest p(k) / (its share of the weights) is the label."""
    share = weights / weights.sum()
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
    """A learner that is trained, for each fold, on some rows only."""

    def __init__(self, learner: Learner, used: NDArray[np.bool_]) -> None:
        self.learner, self.used = learner, used

    def predictions(self, trained: NDArray[np.bool_], v: Floats, predicted: NDArray[np.bool_], fold: int) -> Floats:
        return self.learner.predictions(trained & self.used[fold], v, predicted, fold)

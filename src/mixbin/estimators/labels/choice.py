"""Choose the columns and the penalty of the regressions by the labels as they are.

The judge is the share of labels that cross-validated predictions hit. Likelihood would choose too little penalty where labels are
wrong: it punishes a confident model for each of them.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from mixbin._validate import Floats
from mixbin.estimators.labels.learners import ALWAYS, Regression, out_of_fold
from mixbin.estimators.labels.passes import Passes
from mixbin.estimators.labels.representations import Lifted, Standardised, lift, standardise
from mixbin.problems.distillation.multinomial import Codes

LINEAR_ALPHA = 0.03
"""The penalty on standardised columns; the guard's models and the model beside ready probabilities have it too."""
LINEAR_ALPHAS = (0.1, LINEAR_ALPHA)
GAMMAS = (0.3, 1.0, 3.0)
LIFTED_ALPHAS = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
WORSE_IN_A_ROW = 2
"""The penalties of a representation are tried from the largest down until this many in a row are worse than its best."""
ROWS_TO_CHOOSE = 1_500
"""Of more rows than this a sample decides; the cost of the choice then no longer grows with the table."""


class Chosen(NamedTuple):
    """A representation, its penalty, and the share of labels that it hits."""

    representation: Standardised | Lifted
    alpha: float
    hits: float


def choose(
    X: Any,
    y: Codes,
    folds: Codes,
    weights: Floats,
    n_classes: int,
    lifted: bool,
    n_jobs: int | None,
    rng: np.random.RandomState,
    passes: Passes,
) -> Chosen:
    """The representation and penalty whose out-of-fold predictions hit the most labels; the simplest of equals.

    If time is over, the best of those tried so far.
    """
    seed = int(rng.randint(2**31 - 1))
    rows = _sample(y, folds, seed)
    standardised = standardise(X, seed)
    candidates: list[tuple[Standardised | Lifted, tuple[float, ...]]] = [(standardised, LINEAR_ALPHAS)]
    if lifted:
        candidates += [(one, LIFTED_ALPHAS) for one in lift(standardised, X[rows], GAMMAS, rng)]
    best = Chosen(standardised, LINEAR_ALPHA, -1.0)
    for representation, alphas in candidates:
        regression = Regression(representation(X[rows]), y[rows], n_classes, alphas[0], loose=True)
        of_this, worse = -1.0, 0
        for alpha in alphas:
            regression = regression.with_alpha(alpha)
            P = out_of_fold(regression, folds[rows], weights[rows], n_classes, n_jobs)
            passes.note("choosing")
            hits = _hits(P, y[rows], folds[rows] != ALWAYS)
            worse = 0 if hits >= of_this else worse + 1
            of_this = max(of_this, hits)
            if hits > best.hits:
                best = Chosen(representation, alpha, hits)
            if passes.over:
                return best
            if worse == WORSE_IN_A_ROW:
                break
    return best


def _hits(P: Floats, y: Codes, judged: Any) -> float:
    return float(np.mean(P.argmax(axis=1)[judged] == y[judged]))


def _sample(y: Codes, folds: Codes, seed: int) -> Codes:
    """All rows, or a sample with the same share of every pair of class and fold; rows in every fold stay."""
    rows = np.flatnonzero(folds != ALWAYS)
    if len(rows) <= ROWS_TO_CHOOSE:
        return np.arange(len(y))
    drawn = StratifiedShuffleSplit(1, train_size=ROWS_TO_CHOOSE, random_state=seed)
    strata = y[rows] * (int(folds.max()) + 1) + folds[rows]
    # A pair with a single row cannot be divided; such rows are left out of the choice.
    divisible = np.bincount(strata)[strata] >= 2
    rows = np.asarray(rows[divisible], dtype=np.intp)
    if len(rows) <= ROWS_TO_CHOOSE:
        return rows
    kept, _ = next(drawn.split(rows, strata[divisible]))
    return np.sort(np.concatenate([rows[kept], np.flatnonzero(folds == ALWAYS)]))

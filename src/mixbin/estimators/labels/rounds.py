"""Refit without what is doubted: a few rounds in which rows count the less, the more the others contradict their label."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.estimators.labels.margins import SMALLEST_P, margins
from mixbin.problems.distillation.multinomial import Codes

ROUNDS = 3
SMALLEST_WEIGHT = 1e-3
LAST_SHARE = 0.75
"""The exponent of the last probabilities in P*; the first have the rest. The last are the better ones, unless a classifier is as
restless as a forest, whose mean over two trainings is better than either."""


def reweighted(
    first: Floats,
    y: Codes,
    judged_rows: NDArray[np.bool_],
    judged: NDArray[np.bool_],
    refit: Callable[[Floats], Floats],
    over: Callable[[], bool] = lambda: False,
) -> Floats:
    """P*, proportional to P0^(1/4) P3^(3/4): the out-of-fold probabilities before the first and after the last round.

    In each round a row that is judged weighs exp(margin), at most 1; ``refit`` gives the out-of-fold probabilities for the
    weights of all rows. No further round begins once time is ``over``.
    """
    P = first
    for _ in range(ROUNDS):
        if over():
            break
        v = np.ones(len(judged_rows))
        s, _ = margins(P[judged_rows], y[judged_rows], judged)
        v[judged_rows] = np.clip(np.exp(np.minimum(s, 0.0)), SMALLEST_WEIGHT, 1.0)
        P = refit(v)
    both = np.maximum(first, SMALLEST_P) ** (1.0 - LAST_SHARE) * np.maximum(P, SMALLEST_P) ** LAST_SHARE
    return np.asarray(both / both.sum(axis=1, keepdims=True))

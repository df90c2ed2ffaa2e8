"""How much each label is doubted, and how many labels of each class are wrong.

Everything is relative to the class. A class that is rare, or whose labels are often wrong, has small probabilities throughout;
what counts is p(k) against t_k, the mean of p(k) over the rows labelled k (the thresholds of confident learning, Northcutt, Jiang
and Chuang 2021). On a table with few rows of a class, plain probabilities would call most of that class wrong.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problems.distillation.multinomial import Codes

SMALLEST_P = 1e-6
"""Probabilities below this count as this much: a forest's may be 0."""


def thresholds(P: Floats, y: Codes) -> Floats:
    """The mean of p(k) over the rows labelled k, for each class k that labels a row; 1 for others."""
    own = P[np.arange(len(y)), y]
    rows = np.bincount(y, minlength=P.shape[1])
    total = np.bincount(y, weights=own, minlength=P.shape[1])
    return np.maximum(np.where(rows > 0, total / np.maximum(rows, 1), 1.0), SMALLEST_P)


def margins(P: Floats, y: Codes, judged: NDArray[np.bool_]) -> tuple[Floats, Codes]:
    """log(p(y) / t_y) less the largest log(p(k) / t_k) of another class, and that class.

    Only classes that are ``judged`` compete.
    """
    relative = np.log(np.maximum(P, SMALLEST_P)) - np.log(thresholds(P, y))
    at = np.arange(len(y))
    own = relative[at, y].copy()
    relative[:, ~judged] = -np.inf
    relative[at, y] = -np.inf
    rival = relative.argmax(axis=1)
    return own - relative[at, rival], rival


def confident_counts(P: Floats, y: Codes) -> Floats:
    """For each class, how many of its rows are confidently of another class.

    A row is confidently of the class with the largest p(k) among those with p(k) >= t_k.
    """
    confident = np.where(thresholds(P, y) <= P, P, -1.0)
    best = confident.argmax(axis=1)
    elsewhere = (confident.max(axis=1) >= 0) & (best != y)
    return np.bincount(y[elsewhere], minlength=P.shape[1]).astype(np.float64)


def suspects(P: Floats, y: Codes, s: Floats) -> NDArray[np.bool_]:
    """Of each class the rows with the smallest margins s.

    Their number is the harmonic mean of the confident count and the number of negative margins, but at most the latter: a row
    whose own label is its most likely one is not suspected. With many classes most negative margins are errors of the model, and
    the harmonic mean stays nearer to the confident count than the plain mean does.
    """
    out = np.zeros(len(y), dtype=bool)
    for k, confident in enumerate(confident_counts(P, y)):
        rows = np.flatnonzero((y == k) & (s < 0))
        harmonic = 2.0 * confident * len(rows) / max(confident + len(rows), 1.0)
        count = min(len(rows), int(np.floor(harmonic + 0.5)))
        out[rows[np.argsort(s[rows], kind="stable")[:count]]] = True
    return out


def held_back(doubted: NDArray[np.bool_], y: Codes, s: Floats, max_class_loss: float) -> NDArray[np.bool_]:
    """The least doubtful suspects of classes that would lose more than this share of their rows, or all of them."""
    held = np.zeros(len(y), dtype=bool)
    for k, of_class in enumerate(np.bincount(y)):
        allowed = min(int(np.floor(max_class_loss * of_class + 1e-9)), int(of_class) - 1)
        rows = np.flatnonzero((y == k) & doubted)
        held[rows[np.argsort(s[rows], kind="stable")[max(allowed, 0) :]]] = True
    return held

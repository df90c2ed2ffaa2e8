"""Cross-validation for feature selection: the ridge weight, and how many features to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from mixbin._validate import Floats
from mixbin.estimators._common import threads
from mixbin.problem import Indices
from mixbin.problems.best_subset.problem import BestSubset
from mixbin.problems.best_subset.search import Search

GAMMAS = {"squared": (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0), "logistic": (1e-3, 1e-2, 1e-1, 1.0)}
"""The ridge weights that cross-validation tries, per row of the table. Logistic regressions take longer, so they get fewer."""
DEFAULT_GAMMA = 0.1
"""The ridge weight per row if there are too few rows for cross-validation."""
MOST_AUTO = 50
"""``n_features="auto"`` keeps at most this many features, and at most a third of the rows."""
EVERY_COUNT = 10
"""Up to this many features, every count is tried; beyond, counts that grow by a quarter."""
COUNT_ERRORS, GAMMA_ERRORS = 1.0, 0.5
"""Fewer features are preferred within this many standard errors of the lowest error, and less shrinkage within this many. On
eight tables, half an error for gamma gave 0.8 % less error than a whole one at ten features; with planted features, which need
no shrinkage, the lowest error alone shrank too much."""
FEW_SWAPS = {"squared": np.inf, "logistic": 2}
"""Swaps after each greedy addition in cross-validation, where many models must be searched for."""


class Chosen(NamedTuple):
    """What cross-validation chose."""

    n_features: int
    gamma: float
    """The ridge weight for the whole table."""
    errors: Floats | None = None
    """The mean error over the folds of each pair (count, gamma): squared error per row and target, or log loss per row."""
    counts: tuple[int, ...] = ()
    gammas: tuple[float, ...] = ()


def choose(
    X: Any,
    y: Floats,
    loss: str,
    counts: list[int],
    gamma: float | None,
    groups: ArrayLike | None,
    per_group: int | Mapping[Any, int],
    folds: int,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
) -> Chosen:
    """Choose a count among ``counts`` and, unless ``gamma`` is given, a ridge weight, both by cross-validation.

    Of several counts, the smallest is chosen whose error is within one standard error of the lowest (over the folds, of the
    difference): fewer features that predict as well. The ridge weight is chosen alike, within half a standard error.
    """
    n = X.shape[0]
    gammas = GAMMAS[loss] if gamma is None else (gamma / n,)
    splits = list(_splits(y, loss, folds, n, rng))
    if not splits or len(counts) * len(gammas) == 1:
        return Chosen(counts[-1] if len(counts) == 1 else counts[0], DEFAULT_GAMMA * n if gamma is None else gamma)
    work = delayed(_path_errors)
    of_folds = (work(X, y, loss, counts, gammas, groups, per_group, *split) for split in splits)
    errors = np.array(Parallel(n_jobs=threads(n_jobs, len(splits)), prefer="threads")(of_folds))
    mean = errors.mean(axis=0)
    best_gamma = int(mean.argmin()) % mean.shape[1]
    count = _smallest_near_best(errors[:, :, best_gamma], COUNT_ERRORS)
    # Shrink no more than the folds ask for: the smallest gamma that is about as good as the best one.
    at = _smallest_near_best(errors[:, count], GAMMA_ERRORS)
    chosen = n * gammas[at] if gamma is None else gamma
    return Chosen(counts[count], float(chosen), mean, tuple(counts), tuple(float(n * it) for it in gammas))


def _smallest_near_best(errors: Floats, within: float) -> int:
    """The first column of ``errors`` (folds in rows) whose mean is within some standard errors of the lowest one.

    The standard error is that of the difference between the two columns over the folds.
    """
    mean = errors.mean(axis=0)
    apart = errors - errors[:, [int(mean.argmin())]]
    return int(np.flatnonzero(apart.mean(axis=0) <= within * apart.std(axis=0, ddof=1) / np.sqrt(len(errors)))[0])


def counts_to_try(most: int) -> list[int]:
    """The counts of features that "auto" compares."""
    out = list(range(1, min(most, EVERY_COUNT) + 1))
    while out[-1] < most:
        out.append(min(most, out[-1] + max(1, out[-1] // 4)))
    return out


def quick_search(search: Search, start: Indices, loss: str) -> Indices:
    """A good subset without starts that differ: greedy additions to ``start``, then swaps."""
    return search.descend(search.greedy(start), FEW_SWAPS[loss]).support


def _splits(y: Floats, loss: str, folds: int, n: int, rng: np.random.RandomState) -> Iterator[tuple[Indices, Indices]]:
    """The rows to train on and to judge by, in each fold; none if there are too few rows."""
    if loss == "logistic":
        folds = min(folds, int(np.bincount(y.astype(np.intp)).min()))
    folds = min(folds, n // 3)
    if folds < 2:
        return
    kind = StratifiedKFold if loss == "logistic" else KFold
    yield from kind(folds, shuffle=True, random_state=rng).split(np.zeros((n, 1)), y if loss == "logistic" else None)


def _path_errors(
    X: Any,
    y: Floats,
    loss: str,
    counts: list[int],
    gammas: tuple[float, ...],
    groups: ArrayLike | None,
    per_group: int | Mapping[Any, int],
    train: Indices,
    held: Indices,
) -> Floats:
    """The error on the held rows of each pair (count, gamma), along a path of growing subsets for each gamma."""
    out = np.empty((len(counts), len(gammas)))
    first = BestSubset(X[train], y[train], counts[0], gammas[0] * len(train), loss, groups=groups, per_group=per_group)
    for i, gamma in enumerate(gammas):
        kept = np.empty(0, dtype=np.intp)
        for j, count in enumerate(counts):
            problem = first.varied(count, gamma * len(train))
            kept = quick_search(problem.search(), kept, loss)
            theta = np.zeros(problem.n_features)
            theta[kept] = 1.0
            coef, intercept = problem.model(theta)
            out[j, i] = _error(X[held] @ coef.T + intercept, y[held], loss)
    return out


def _error(predicted: Floats, y: Floats, loss: str) -> float:
    if loss == "squared":
        return float(np.square(predicted - y).mean())
    return float((np.logaddexp(0.0, predicted) - y * predicted).mean())


def kept_in_draws(
    X: Any,
    y: Floats,
    problem: BestSubset,
    settings: Mapping[str, Any],
    draws: int,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """How often each feature is kept on bootstrap draws of the rows."""
    counts, n = np.zeros(problem.n_features), X.shape[0]

    def drawn() -> Iterator[Indices]:
        # One after the other and as they are needed: the draws do not depend on the number of jobs, nor lie in memory together.
        for _ in range(draws):
            rows = rng.randint(n, size=n)
            while problem.loss == "logistic" and len(np.unique(y[rows])) < 2:
                rows = rng.randint(n, size=n)
            yield rows

    def kept(rows: Indices) -> Indices:
        one = BestSubset(X[rows], y[rows], problem.choices.k, problem.gamma, problem.loss, **settings)
        return quick_search(one.search(), np.empty(0, dtype=np.intp), problem.loss)

    for support in Parallel(n_jobs=threads(n_jobs, draws), prefer="threads")(delayed(kept)(rows) for rows in drawn()):
        counts[support] += 1.0
    return counts / draws

"""The strength of a ridge penalty by shuffled cross-validation, from sums over the rows of each fold.

A ridge regression on nine folds, and its squared error on the tenth, follow from the means and covariances of the folds. So one
pass over the rows serves for all folds and all strengths (docs/maths.md, "Judged by all rows").
"""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.blocks import FoldSums

ALPHAS = np.logspace(-5, 5, 21)
"""The strengths that are compared, as scikit-learn counts them: the penalty beside a sum, not a mean, of squared errors."""
FOLDS = 10
"""With fewer rows than this, each row is a fold."""
WITHOUT_FOLDS = 1.0
"""The strength where there is one row only and nothing can be left out: scikit-learn's default."""


def drawn_folds(n_rows: int, seed: int) -> tuple[NDArray[np.uint8], int]:
    """The fold of each row, and the number of folds: they depend on the number of rows and the seed, not on how rows are kept."""
    n_folds = min(FOLDS, n_rows)
    folds = np.empty(n_rows, dtype=np.uint8)
    folds[np.random.default_rng(seed).permutation(n_rows)] = np.arange(n_rows) % n_folds
    return folds, n_folds


def cross_validated(sums: FoldSums, scales: Floats) -> float:
    """The strength of ALPHAS with the least squared error over all rows, each predicted from the folds it is not in.

    ``scales`` are the units of the columns of X in which the coefficients are penalised. Among equals the strongest wins.
    """
    if len(sums.counts) < 2:
        return WITHOUT_FOLDS
    units = np.append(scales, np.ones(sums.sums.shape[1] - len(scales)))
    errors = np.zeros(len(ALPHAS))
    for fold in range(len(sums.counts)):
        others = np.arange(len(sums.counts)) != fold
        train = (sums.counts[others].sum(), sums.sums[others].sum(axis=0), sums.squares[others].sum(axis=0))
        test = (sums.counts[fold], sums.sums[fold], sums.squares[fold])
        mean = train[1] / train[0]
        errors += _errors(
            _around(mean, *train) / np.outer(units, units), _around(mean, *test) / np.outer(units, units), len(scales)
        )
    return float(ALPHAS[::-1][np.argmin(errors[::-1])])


def _around(mean: Floats, count: float, total: Floats, squares: Floats) -> Floats:
    """Sum (z - mean) (z - mean)', from sum z and sum z z'."""
    across = np.outer(total, mean)
    return np.asarray(squares - across - across.T + count * np.outer(mean, mean))


def _errors(train: Floats, test: Floats, d: int) -> Floats:
    """The sum of squared errors on the rows of ``test`` for each of ALPHAS, from the scatters of both around the mean of one."""
    lengths, Q = np.linalg.eigh(train[:d, :d])
    slopes = Q.T @ train[:d, d:]
    rotated, across = Q.T @ test[:d, :d] @ Q, Q.T @ test[:d, d:]
    out = np.empty(len(ALPHAS))
    for i, alpha in enumerate(ALPHAS):
        W = slopes / (np.maximum(lengths, 0.0) + alpha)[:, None]
        out[i] = np.trace(test[d:, d:]) - 2 * np.vdot(W, across) + np.vdot(W, rotated @ W)
    return np.asarray(np.maximum(out, 0.0))

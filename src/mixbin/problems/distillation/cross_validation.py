"""The strength of a ridge penalty by shuffled cross-validation, from sums over the rows of each fold.

A ridge regression on nine folds, and its squared error on the tenth, follow from the means and covariances of the folds. So one
pass over the rows serves for all folds and all strengths (docs/maths.md, "Judged by all rows").
"""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.blocks import FoldSums

ALPHAS = np.logspace(-5, 5, 81)
"""The strengths that are compared, as scikit-learn counts them: the penalty beside a sum, not a mean, of squared errors. Eight a
decade: with two, neighbours differ by 10 % in their error on new rows of a table with outlying columns, and chance decides."""
FOLDS = 10
"""With fewer rows than this, each row is a fold."""
CONSTANT = 1e-13
"""A column whose squares around its mean are this share of its squares, or less, is constant up to rounding."""
WITHOUT_FOLDS = 1.0
"""The strength where there is one row only and nothing can be left out: scikit-learn's default."""


def drawn_folds(n_rows: int, seed: int) -> tuple[NDArray[np.uint8], int]:
    """The fold of each row, and the number of folds: those of scikit-learn's ``KFold(10, shuffle=True, random_state=seed)``.

    They depend on the number of rows and the seed, not on how rows are kept.
    """
    n_folds = min(FOLDS, n_rows)
    order = np.arange(n_rows)
    np.random.RandomState(seed % 2**32).shuffle(order)
    folds = np.empty(n_rows, dtype=np.uint8)
    folds[order] = np.repeat(np.arange(n_folds), n_rows // n_folds + (np.arange(n_folds) < n_rows % n_folds))
    return folds, n_folds


def cross_validated(sums: FoldSums, scales: Floats) -> float:
    """The strength of ALPHAS with the highest mean R^2 over the folds, as scikit-learn's ``RidgeCV(cv=KFold(...))`` scores them.

    ``scales`` are the units of the columns of X in which the coefficients are penalised. Among equals the strongest wins. Folds
    of one row have no R^2: if there are any, the squared error over all rows decides.
    """
    if len(sums.counts) < 2:
        return WITHOUT_FOLDS
    d = len(scales)
    units = np.append(scales, np.ones(sums.sums.shape[1] - d))
    errors = np.zeros(len(ALPHAS))
    for fold in range(len(sums.counts)):
        others = np.arange(len(sums.counts)) != fold
        train = (sums.counts[others].sum(), sums.sums[others].sum(axis=0), sums.squares[others].sum(axis=0))
        test = (sums.counts[fold], sums.sums[fold], sums.squares[fold])
        mean = train[1] / train[0]
        missed = _errors(_around(mean, *train) / np.outer(units, units), _around(mean, *test) / np.outer(units, units), d)
        errors += missed.sum(axis=1) if sums.counts.min() < 2 else missed @ _shares(*test)[d:]
    return float(ALPHAS[::-1][np.argmin(errors[::-1])])


def _shares(count: float, total: Floats, squares: Floats) -> Floats:
    """What a squared error counts: 1 / (the squares around the mean of the fold); 0 for a constant column, which has no R^2."""
    size = np.diag(squares)
    spread = size - total**2 / count
    return np.divide(1.0, spread, out=np.zeros(len(size)), where=spread > CONSTANT * size)


def _around(mean: Floats, count: float, total: Floats, squares: Floats) -> Floats:
    """Sum (z - mean) (z - mean)', from sum z and sum z z'."""
    across = np.outer(total, mean)
    return np.asarray(squares - across - across.T + count * np.outer(mean, mean))


def _errors(train: Floats, test: Floats, d: int) -> Floats:
    """The squared errors on the rows of ``test``, for each of ALPHAS and each target, from both scatters around one mean."""
    lengths, Q = np.linalg.eigh(train[:d, :d])
    slopes = Q.T @ train[:d, d:]
    rotated, across = Q.T @ test[:d, :d] @ Q, Q.T @ test[:d, d:]
    out = np.empty((len(ALPHAS), test.shape[1] - d))
    for i, alpha in enumerate(ALPHAS):
        W = slopes / (np.maximum(lengths, 0.0) + alpha)[:, None]
        out[i] = np.diag(test[d:, d:]) - 2 * (W * across).sum(axis=0) + (W * (rotated @ W)).sum(axis=0)
    return np.asarray(np.maximum(out, 0.0))

"""The upper level of a ridge distillation: the rows that judge, and the penalty on the coefficients that they judge by.

See docs/maths.md, "Judged by all rows".

The rows that judge enter only through their mean and a factor R of their covariance, 1/n sum zhat zhat' = R'R. A penalty
a |D (W - W0)|^2, D the units of the columns, is one more block of rows (sqrt(a) D, sqrt(a) D W0') of R: it is exact, it leaves
the intercept alone, and what is computed from R (value, gradient, exchanges, the lower bound) needs no word about it.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mixbin._validate import Floats
from mixbin.data.blocks import FoldSums
from mixbin.data.rows import RowStore
from mixbin.data.training_and_validation import validation
from mixbin.problems.distillation.cross_validation import cross_validated, drawn_folds
from mixbin.problems.distillation.ridge_checks import check_squares


class Upper(NamedTuple):
    """What the upper level is made of."""

    mean: Floats  # (d + e,): of the rows that judge, relative to the centre of the candidate rows
    R: Floats  # of the rows alone: the plain loss
    penalised: Floats  # with the rows of the penalty; R itself without one
    alpha: float  # the strength a of the penalty beside the mean of squared errors
    n_rows: int  # how many rows judge


def scales_of(rows: RowStore, d: int) -> Floats:
    """The standard deviations of the columns of X; 1 for constant columns, as in scikit-learn's StandardScaler."""
    varies = rows.variances[:d] > rows.rounding[:d]
    return np.sqrt(np.where(varies, rows.variances[:d], 1.0))


def upper_level(
    rows: RowStore, X_val: Any, y_val: Any, scales: Floats, alpha: float | None, coef: Floats | None, seed: int
) -> Upper:
    """Judged by the validation rows or, without any, by all candidate rows; ``alpha=None`` chooses it by cross-validation."""
    sums: FoldSums | None
    if X_val is None:
        sums = rows.fold_sums(*drawn_folds(rows.n_rows, seed))
        mean, R = _whole(sums, np.sqrt(rows.variances))
        n = rows.n_rows
    else:
        mean, R, n, sums = validation(X_val, y_val, rows, partial(drawn_folds, seed=seed) if alpha is None else None)
        # Before the cross-validation, which needs finite sums.
        check_squares("X_val and y_val", np.square(np.vstack([mean, R])))
    if alpha is None:
        assert sums is not None
        alpha = cross_validated(sums, scales) / n
    return Upper(mean, R, with_penalty(R, scales, alpha, coef), alpha, n)


def with_penalty(R: Floats, scales: Floats, alpha: float, coef: Floats | None) -> Floats:
    """R with the rows of the penalty, made triangular once more; R itself, to the bit, if there is no penalty."""
    if alpha == 0:
        return R
    d, targets = len(scales), R.shape[1] - len(scales)
    prior = np.zeros((d, targets)) if coef is None else scales[:, None] * coef.T
    rows = np.sqrt(alpha) * np.hstack([np.diag(scales), prior])
    return np.asarray(np.linalg.qr(np.vstack([R, rows]), mode="r"))


def _whole(sums: FoldSums, units: Floats) -> tuple[Floats, Floats]:
    """The mean of all rows, and R. The covariance is scaled to correlations first: columns of small units would be rounding."""
    n = float(sums.counts.sum())
    mean = sums.sums.sum(axis=0) / n
    S = sums.squares.sum(axis=0) / n - np.outer(mean, mean)
    units = np.where(units > 0, units, 1.0)
    lengths, Q = np.linalg.eigh(S / np.outer(units, units))
    return mean, np.sqrt(np.maximum(lengths, 0.0))[:, None] * Q.T * units

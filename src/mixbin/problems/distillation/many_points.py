"""J at many selections of the rows together, each with several alpha: for sets that are small enough to compare all selections.

The moments of a selection are sums of z and z z' over its rows, so one matrix product gives those of all selections. Then the
ridge systems are solved for all selections at once: every array has the selections last, and each operation of the elimination
works on all of them. One evaluation after the other would spend its time on calls with tiny matrices.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.rows import RowStore
from mixbin.problem import PointValues
from mixbin.problems.work import OutOfWork, Work

MOST_FEATURES = 32
"""Larger systems take as long together as one after the other."""
ENTRIES_AT_ONCE = 2**17
"""The systems are solved for some selections at a time, whose matrices have about this many entries and stay in the cache."""


class Judge(NamedTuple):
    """What J needs besides the candidate rows: R and the mean of the rows that judge, and the squared units of the columns."""

    R: Floats
    mean: Floats
    squared_units: Floats


def point_values(rows: RowStore, judge: Judge, theta: NDArray[np.bool_], alpha: Floats, work: Work) -> PointValues | None:
    """J for each selection ``theta[i]`` with each ``alpha[i, j]``, up to rounding; +inf if no model can be trained.

    None if the rows are stored in blocks, if there are many features, or if ``work`` does not allow it: the work is counted
    before anything is computed.
    """
    (n, m), columns, d = theta.shape, len(judge.mean), len(judge.squared_units)
    if not rows.random_access or d > MOST_FEATURES:
        return None
    e, strengths = columns - d, alpha.shape[1]
    pairs = np.triu_indices(columns)
    system = d**3 // 3 + d * d * e + d + (len(judge.R) + 1) * columns * e
    moments = m * (pairs[0].size + columns) + columns * columns
    try:
        work.add(m * pairs[0].size + n * (moments + strengths * system))
    except OutOfWork:
        return None
    Z = rows.take(np.arange(m), np.zeros(columns))
    squares = (Z[:, pairs[0]] * Z[:, pairs[1]]).T
    values = np.empty((strengths, n))
    step = max(1, ENTRIES_AT_ONCE // (strengths * columns * columns))
    for i in range(0, n, step):
        v = theta[i : i + step].T.astype(np.float64)
        with np.errstate(all="ignore"):  # a selection without rows or a singular system gives NaN, which becomes inf
            mean, S = _moments(Z, squares, pairs, v)
            values[:, i : i + step] = _losses(judge, mean, _coefficients(S, judge.squared_units, alpha[i : i + step].T))
    return PointValues(np.where(np.isfinite(values), values, np.inf).T, work.cost)


def _moments(Z: Floats, squares: Floats, pairs: tuple[NDArray[np.intp], NDArray[np.intp]], v: Floats) -> tuple[Floats, Floats]:
    """The mean of each selection, and its Gram matrix around the mean, divided by the number of candidate rows."""
    total = v.sum(axis=0)
    mean = (Z.T @ v) / total
    upper = squares @ v
    upper -= total * mean[pairs[0]] * mean[pairs[1]]
    upper /= len(Z)
    S = np.empty((Z.shape[1], Z.shape[1], v.shape[1]))
    S[pairs] = S[pairs[::-1]] = upper
    return mean, S


def _coefficients(S: Floats, squared_units: Floats, alpha: Floats) -> Floats:
    """The coefficients W' of each ridge regression, of shape (features, strengths, targets, selections).

    They are found by elimination, without pivots because the matrices are positive definite. A pivot that is not positive makes
    the solution NaN.
    """
    d = len(squared_units)
    M = np.repeat(S[:d, None], len(alpha), axis=1)  # row, strength, column or right-hand side, selection
    for i, unit in enumerate(squared_units):
        M[i, :, i] += alpha * unit
    for i in range(d):
        pivot = np.where(M[i, :, i] > 0, M[i, :, i], np.nan)
        M[i, :, i + 1 :] /= pivot[:, None]
        for k in range(i + 1, d):
            M[k, :, i + 1 :] -= M[k, :, i][:, None] * M[i, :, i + 1 :]
    for i in range(d - 1, 0, -1):
        for k in range(i):
            M[k, :, d:] -= M[k, :, i][:, None] * M[i, :, d:]
    return M[:, :, d:]


def _losses(judge: Judge, mean: Floats, W: Floats) -> Floats:
    """J of each model, of shape (strengths, selections), as in ``RidgeDistillation.evaluate``."""
    d = len(W)
    shift = judge.mean[:, None] - mean
    missed_mean = shift[d:] - np.einsum("dlen,dn->len", W, shift[:d])
    missed = judge.R[:, d:][:, None, :, None] - np.einsum("rd,dlen->rlen", judge.R[:, :d], W)
    squares = np.einsum("len,len->ln", missed_mean, missed_mean) + np.einsum("rlen,rlen->ln", missed, missed)
    return np.asarray(0.5 * squares)

"""The ridge regression on weighted rows, in closed form (docs/maths.md, "Closed form of the ridge regression").

With z = (x, y) a row with its targets appended and K = [-W, I], the targets of a row exceed its predictions by K (z - zbar).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs

from mixbin._validate import Floats
from mixbin.errors import DivergedError

LARGEST_PENALTY = 1e307
"""Larger penalties of a coefficient are cut off here, so that the sums with variances do not overflow."""


class Weighted(NamedTuple):
    """What the closed form needs to know about the weighted rows."""

    total: float  # sum v
    rows: int  # rows with v > 0
    mean: Floats  # (d + e,)
    S: Floats  # (d + e, d + e): 1/m sum v zhat zhat'


class Fit(NamedTuple):
    """The lower level's solution for one (v, alpha)."""

    K: Floats  # (e, d + e): [-W, I]
    mean: Floats  # (d + e,): the weighted mean of the rows, relative to the problem's centre
    total: float  # sum v
    rows: int  # rows with v > 0
    factor: tuple[NDArray[np.floating], bool]  # the Cholesky factor of M, and whether it is the lower one


def closed_form(alpha: float, weighted: Weighted, scales: Floats) -> Fit:
    """The fit with the penalty alpha |D W|^2, D the ``scales`` of the d columns."""
    d, S = len(scales), weighted.S
    M = S[:d, :d].copy()
    with np.errstate(over="ignore"):  # a penalty beyond the largest number would make coefficients of 0, too
        M.reshape(-1)[:: d + 1] += np.minimum(alpha * scales**2, LARGEST_PENALTY)
    try:
        # NumPy's Cholesky, not SciPy's: each library has its own BLAS threads, which keep spinning and slow down the other's
        # products.
        factor = (np.linalg.cholesky(M).T, False)
    except np.linalg.LinAlgError:
        raise _singular(alpha) from None
    K = np.eye(len(S))[d:]
    K[:, :d] = -solved(factor, S[:d, d:]).T
    if not np.isfinite(K).all():
        raise _singular(alpha)
    return Fit(K, weighted.mean, weighted.total, weighted.rows, factor)


def solved(factor: tuple[NDArray[np.floating], bool], rhs: Floats) -> Floats:
    """The solution of a system by its Cholesky factor, as scipy.linalg.cho_solve computes it, without that function's checks."""
    return np.asarray(dpotrs(factor[0], rhs, lower=factor[1])[0])


def _singular(alpha: float) -> DivergedError:
    return DivergedError(f"the ridge system is singular at alpha = {alpha:g}; raise alpha or rescale the columns of X")

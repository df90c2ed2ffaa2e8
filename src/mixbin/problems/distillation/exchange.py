"""J after single changes of the selection, exactly and many at once: rank-two updates of the closed form (SPEC section 3).

With an intercept among the features, a = (x, 1), the lower level's normal matrix is N = 1/m sum v_i a_i a_i' + diag(s, .., s, 0).
Taking row i out and row j in changes it by A' D A with A = (a_i, a_j) and D = diag(-1/m, 1/m), so by the Woodbury identity

    coefficients' = coefficients + P A' C,   C = D (I + G D)^-1 R,   P = N^-1,  G = A P A',  R = the residuals of the two rows,

and J, quadratic in the coefficients, changes by <A P grad, C> + 1/2 tr(C' (A P H P A') C). Each term needs of a row only its
image under P and under P H P, so all pairs of some rows cost two thin products.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats

Indices = NDArray[np.intp]

FIRST_SIDE = 128
"""The exchanges between so many promising rows of each kind are evaluated at once, to have something to compare with."""
BLOCK_PAIRS = 2**18
"""Pairs that are bounded in one go."""
EXACT_PAIRS = 2**14
"""Pairs that are evaluated in one go."""


class RowTerms(NamedTuple):
    """What the update needs of some rows; the last row is an empty one, for "none"."""

    a: Floats  # (rows, d + 1): centred on the weighted mean, with a 1 appended
    P_a: Floats  # (rows, d + 1)
    residual: Floats  # (rows, e): y - prediction
    slope: Floats  # (rows, e): a' P grad


def row_terms(xhat: Floats, residual: Floats, P: Floats, grad: Floats) -> RowTerms:
    """The terms of rows ``xhat`` (centred) for P in the same coordinates and the gradient of J in the coefficients."""
    a = np.zeros((len(xhat) + 1, P.shape[0]))
    a[:-1, :-1] = xhat
    a[:-1, -1] = 1.0
    P_a = a @ P
    return RowTerms(a, P_a, np.vstack([residual, np.zeros_like(residual[:1])]), P_a @ grad)


def exchange_changes(off: RowTerms, on: RowTerms, i: Indices, j: Indices, H: Floats, weight: float) -> Floats:
    """The change of J when row off[i] loses ``weight`` and row on[j] gains it, for each pair (i, j)."""
    leverage_off, leverage_on = np.einsum("nd,nd->n", off.a, off.P_a)[i], np.einsum("nd,nd->n", on.a, on.P_a)[j]
    between = _pairwise(off.a, on.P_a, i, j)
    P_off_H, P_on_H = off.P_a @ H, on.P_a @ H
    bend_off, bend_on = np.einsum("nd,nd->n", P_off_H, off.P_a)[i], np.einsum("nd,nd->n", P_on_H, on.P_a)[j]
    bend_between = _pairwise(P_off_H, on.P_a, i, j)

    # C = D (I + G D)^-1 R for D = diag(-w, w), written out for the 2 x 2 matrix. An empty row has G and R of zero, so C of zero.
    a11, a12 = 1.0 - weight * leverage_off, weight * between
    a21, a22 = -weight * between, 1.0 + weight * leverage_on
    determinant = (a11 * a22 - a12 * a21)[:, None]
    R_off, R_on = off.residual[i], on.residual[j]
    C_off = -weight * (a22[:, None] * R_off - a12[:, None] * R_on) / determinant
    C_on = weight * (a11[:, None] * R_on - a21[:, None] * R_off) / determinant

    linear = np.einsum("ne,ne->n", off.slope[i], C_off) + np.einsum("ne,ne->n", on.slope[j], C_on)
    bend = bend_off * np.einsum("ne,ne->n", C_off, C_off) + bend_on * np.einsum("ne,ne->n", C_on, C_on)
    bend += 2.0 * bend_between * np.einsum("ne,ne->n", C_off, C_on)
    return np.asarray(linear + 0.5 * bend)


def _pairwise(left: Floats, right: Floats, i: Indices, j: Indices) -> Floats:
    """<left[i], right[j]> for each pair; all products at once where most of them are asked for."""
    if i.size * 4 >= len(left) * len(right):
        return np.asarray((left @ right.T)[i, j])
    return np.asarray(np.einsum("nd,nd->n", left[i], right[j]))


class Exchange(NamedTuple):
    """A row to take out, a row to put in, and what that changes."""

    off: int
    on: int
    change: float


def best_exchange(
    leverage: Floats,
    residual: Floats,
    slope: Floats,
    off: Indices,
    on: Indices,
    exact: Callable[[Indices, Indices], Floats],
    weight: float,
) -> Exchange:
    """The best of all exchanges, exactly, though few of them are evaluated.

    J's second-order term is never negative, so <A P grad, C> bounds a change from below; and of the two rows together it needs
    a_i' P a_j alone, which is at most the root of their leverages (Cauchy-Schwarz). What remains is a few numbers per row: a pair
    whose bound is not below the best change so far is passed over.

    Parameters
    ----------
    leverage, residual, slope : arrays over all rows
        weight * a' P a, y - prediction and a' P grad.
    off, on : index arrays
        The selected rows and the others, the most promising first.
    exact : function of (off, on)
        The change of J for each pair.
    weight : float
        1/m.
    """
    a, b = np.repeat(off[:FIRST_SIDE], min(FIRST_SIDE, on.size)), np.tile(on[:FIRST_SIDE], min(FIRST_SIDE, off.size))
    best = _better(Exchange(-1, -1, np.inf), a, b, exact)
    fit, gain = np.einsum("ne,ne->n", slope, residual), np.sqrt(leverage)
    rows = max(1, BLOCK_PAIRS // on.size)
    for start in range(0, off.size, rows):
        i = off[start : start + rows]
        keep, into = 1.0 - leverage[i], 1.0 + leverage[on]
        with np.errstate(divide="ignore", invalid="ignore"):
            mixed = np.abs(slope[i] @ residual[on].T + residual[i] @ slope[on].T)
            mixed *= np.outer(gain[i], gain[on])
            least = np.outer(keep, fit[on]) - np.outer(fit[i], into) - mixed
            alone = np.outer(keep, into)
            # The true determinant lies between these two; a row that cannot be taken out alone has no bound.
            bound = weight * least / np.where(least < 0, alone, alone + np.outer(leverage[i], leverage[on]))
            open_pairs = ~(bound >= best.change)
        for part in _parts(*np.nonzero(open_pairs)):
            best = _better(best, i[part[0]], on[part[1]], exact)
    return best


def _better(best: Exchange, off: Indices, on: Indices, exact: Callable[[Indices, Indices], Floats]) -> Exchange:
    change = exact(off, on)
    k = int(np.argmin(change))
    return Exchange(int(off[k]), int(on[k]), float(change[k])) if change[k] < best.change else best


def _parts(i: Indices, j: Indices) -> Iterator[tuple[Indices, Indices]]:
    """The pairs in pieces whose rows fit in the cache."""
    for start in range(0, i.size, EXACT_PAIRS):
        yield i[start : start + EXACT_PAIRS], j[start : start + EXACT_PAIRS]

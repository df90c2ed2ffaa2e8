"""J after single changes of the selection, exactly and many at once: rank-two updates of the closed form (SPEC section 3).

With an intercept among the features, a = (x, 1), the lower level's normal matrix is N = 1/m sum v_i a_i a_i' + diag(s, .., s, 0).
Taking row i out and row j in changes it by A' D A with A = (a_i, a_j) and D = diag(-1/m, 1/m), so by the Woodbury identity

    coefficients' = coefficients + P A' C,   C = D (I + G D)^-1 R,   P = N^-1,  G = A P A',  R = the residuals of the two rows,

and J, quadratic in the coefficients, changes by <A P grad, C> + 1/2 tr(C' (A P H P A') C). Each term needs of a row only its
image under P and under P H P, so all pairs of some rows cost two thin products.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats

Indices = NDArray[np.intp]


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

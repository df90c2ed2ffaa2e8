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
BLOCK_ROWS = 32
"""Rows to take out that are bounded together first."""
BLOCK_PAIRS = 2**16
"""Pairs that are bounded in one go."""
ROUNDING = 1e-9
"""A row whose leverage comes this close to 1 cannot be taken out alone."""
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
    rows = Bounds(leverage, residual, slope)
    for start in range(0, off.size, BLOCK_ROWS):
        i = off[start : start + BLOCK_ROWS]
        near = on[rows.block_bound(i, on) < best.change / weight]
        for left in range(0, near.size, BLOCK_PAIRS // i.size):
            j = near[left : left + BLOCK_PAIRS // i.size]
            open_pairs = np.nonzero(rows.bound(i, j) < best.change / weight)
            for part in _parts(*open_pairs):
                best = _better(best, i[part[0]], j[part[1]], exact)
    return best


class Bounds:
    """Lower bounds of the change over the weight, from what is known of the rows alone."""

    def __init__(self, leverage: Floats, residual: Floats, slope: Floats) -> None:
        self.leverage, self.root, self.residual, self.slope = leverage, np.sqrt(leverage), residual, slope
        self.fit = np.einsum("ne,ne->n", slope, residual)
        self.steep, self.far = np.linalg.norm(slope, axis=1), np.linalg.norm(residual, axis=1)

    def bound(self, i: Indices, j: Indices) -> Floats:
        """For each pair of rows i and j; -inf where row i cannot be taken out alone."""
        keep, into = 1.0 - self.leverage[i], 1.0 + self.leverage[j]
        mixed = self.slope[i] @ self.residual[j].T
        mixed += self.residual[i] @ self.slope[j].T
        np.abs(mixed, out=mixed)
        mixed *= np.outer(self.root[i], self.root[j])
        least = np.outer(keep, self.fit[j])
        least -= np.outer(self.fit[i], into)
        least -= mixed
        alone = np.outer(keep, into)
        # The true determinant lies between this and this plus the product of the leverages.
        alone += np.where(least < 0, 0.0, np.outer(self.leverage[i], self.leverage[j]))
        return np.asarray(np.divide(least, alone, out=np.full(least.shape, -np.inf), where=alone > ROUNDING))

    def block_bound(self, i: Indices, j: Indices) -> Floats:
        """For each row j, against all rows i at once."""
        keep, into, root = 1.0 - self.leverage[i], 1.0 + self.leverage[j], self.root[i]
        if keep.min() <= ROUNDING:
            return np.full(j.size, -np.inf)
        least = np.minimum(keep.min() * self.fit[j], keep.max() * self.fit[j]) - np.maximum(
            self.fit[i].max() * into, self.fit[i].max()
        )
        least -= self.root[j] * ((root * self.steep[i]).max() * self.far[j] + (root * self.far[i]).max() * self.steep[j])
        largest = keep.max() * into + self.leverage[i].max() * self.leverage[j]
        return np.asarray(least / np.where(least < 0, keep.min() * into, largest))


def _better(best: Exchange, off: Indices, on: Indices, exact: Callable[[Indices, Indices], Floats]) -> Exchange:
    change = exact(off, on)
    k = int(np.argmin(change))
    return Exchange(int(off[k]), int(on[k]), float(change[k])) if change[k] < best.change else best


def _parts(i: Indices, j: Indices) -> Iterator[tuple[Indices, Indices]]:
    """The pairs in pieces whose rows fit in the cache."""
    for start in range(0, i.size, EXACT_PAIRS):
        yield i[start : start + EXACT_PAIRS], j[start : start + EXACT_PAIRS]

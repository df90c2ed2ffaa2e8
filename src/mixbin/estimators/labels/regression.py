"""A multinomial logistic regression on weighted rows, trained loosely but quickly by L-BFGS.

The objective is that of ``problems/distillation/multinomial.py``: the weighted mean of the cross entropies plus alpha/2 |B|^2.
There it is solved to 1e-9, because gradients are taken through the solution; here only its probabilities are used, many times.
So products over the rows are in single precision, whose rounding is a thousand times smaller than what training leaves open, and
scores have a line for each class: NumPy is slow at the maximum and the sum of many short lines.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from mixbin._validate import Floats
from mixbin.problems.distillation.multinomial import Codes

Singles = NDArray[np.float32]

TOL, LOOSE_TOL = 1e-4, 5e-4
"""The largest entry of the gradient, in coordinates whose curvature is about 1; and for models of which only the hits count."""
SMALLEST_FALL, LOOSE_FALL = 1e-7, 1e-6
"""Training also ends where a step lowers the objective by less than this share of it."""
MOST_STEPS = 200
CURVATURE = 0.1
"""The curvature of the cross entropy in a score, p (1 - p), for a typical row: it scales the coordinates."""


def mean_squares(Z: Floats | Singles) -> Floats:
    """The mean square of each column."""
    return np.asarray(np.einsum("ij,ij->j", Z, Z), dtype=np.float64) / len(Z)


def train(
    Z: Floats | Singles,
    y: Codes,
    v: Floats,
    alpha: float,
    n_classes: int,
    start: Floats | None = None,
    squares: Floats | None = None,
    loose: bool = False,
) -> Floats:
    """The coefficients, of shape (n_classes, columns).

    ``squares`` are about the mean squares of the columns, if the caller knows them; they only decide how many steps it takes.
    """
    rows = Z.astype(np.float32, copy=False)
    weights = v / v.sum()
    single, own = weights.astype(np.float32), (y, np.arange(len(y)))
    scale = 1.0 / np.sqrt(CURVATURE * (mean_squares(rows) if squares is None else squares) + alpha)
    shape = n_classes, Z.shape[1]

    def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
        B = flat.reshape(shape) * scale
        scores = B.astype(np.float32) @ rows.T
        scores -= scores.max(axis=0)
        of_label = scores[own]
        P = np.exp(scores, out=scores)
        total = P.sum(axis=0)
        value = float(weights @ (np.log(total) - of_label)) + 0.5 * alpha * float(np.vdot(B, B))
        P *= single / total
        P[own] -= single
        return value, ((P @ rows + alpha * B) * scale).ravel()

    first = np.zeros(shape) if start is None else start / scale
    tol, fall = (LOOSE_TOL, LOOSE_FALL) if loose else (TOL, SMALLEST_FALL)
    options = {"gtol": tol, "ftol": fall, "maxiter": MOST_STEPS}
    found = minimize(value_and_gradient, first.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(shape) * scale)


def probabilities(Z: Floats | Singles, B: Floats) -> Floats:
    """The class probabilities of rows."""
    scores = np.asarray(np.matmul(B.astype(Z.dtype), Z.T), dtype=np.float64)
    scores -= scores.max(axis=0)
    P = np.exp(scores, out=scores)
    P /= P.sum(axis=0)
    return np.ascontiguousarray(P.T)

"""A multinomial logistic regression on weighted rows, trained loosely but quickly by L-BFGS.

The objective is that of ``problems/distillation/multinomial.py``: the weighted mean of the cross entropies plus alpha/2 |B|^2.
There it is solved to 1e-9, because gradients are taken through the solution; here only its probabilities are used, many times.
"""

import numpy as np
from scipy.optimize import minimize

from mixbin._validate import Floats
from mixbin.problems.distillation.multinomial import Codes, Multinomial

TOL = 1e-4
"""The largest entry of the gradient, in coordinates whose curvature is about 1."""
SMALLEST_FALL = 1e-7
"""Training also ends where a step lowers the objective by less than this share of it."""
MOST_STEPS = 200
CURVATURE = 0.1
"""The curvature of the cross entropy in a score, p (1 - p), for a typical row: it scales the coordinates."""


def train(Z: Floats, y: Codes, v: Floats, alpha: float, n_classes: int, start: Floats | None = None) -> Floats:
    """The coefficients, of shape (n_classes, columns)."""
    objective = Multinomial(Z, y, v / v.sum(), alpha, 1)
    scale = 1.0 / np.sqrt(CURVATURE * (objective.weights @ (Z * Z)) + alpha)
    shape = n_classes, Z.shape[1]

    def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
        B = flat.reshape(shape) * scale
        value, P = objective.value(B)
        return value, (objective.gradient(B, P) * scale).ravel()

    first = np.zeros(shape) if start is None else start / scale
    options = {"gtol": TOL, "ftol": SMALLEST_FALL, "maxiter": MOST_STEPS}
    found = minimize(value_and_gradient, first.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(shape) * scale)


def probabilities(Z: Floats, B: Floats) -> Floats:
    """The class probabilities of rows."""
    scores = Z @ B.T
    scores -= scores.max(axis=1, keepdims=True)
    P = np.exp(scores, out=scores)
    P /= P.sum(axis=1, keepdims=True)
    return P

"""How well a structure explains the training data: the evidence of a Gaussian model of the tasks.

In task t the coefficients of group l have prior variance gamma_tl, so y_t ~ N(0, C_t) with C_t = sigma_t I + X diag(gamma) X'.
Moving feature p from group l to m changes C_t by (gamma_tm - gamma_tl) x_p x_p', and the logarithm of the evidence by

    -1/2 log(1 + d h) + 1/2 d g^2 / (1 + d h),    d = gamma_tm - gamma_tl,  g = x_p' C^-1 y,  h = x_p' C^-1 x_p,

exactly, with the variances held: all moves of all features cost one solve per task. The variances come from a few steps of
gamma_l <- gamma_l sqrt(sum_l g^2 / sum_l h), from equal ones: more steps would let each structure explain itself, and a feature
in a wrong group would make that group active where the feature is.
"""

import numpy as np

from mixbin._validate import Floats
from mixbin.problems.group_lasso.compiled import (
    backward,
    cholesky,
    compiled,
    forward,
    forward_rows,
    transposed_times,
    weighted_products,
)
from mixbin.problems.group_lasso.implicit import Whole

STEPS = (5, 10)
"""Start with few steps: loosely fitted variances let features move farther."""
NOISE = 0.1
"""The variance of the noise to begin with, as a share of the targets'."""
TINY = 1e-300


@compiled
def add_gains(X: Floats, y: Floats, labels: Whole, steps: int, gains: Floats) -> float:
    """One task's log evidence, up to a constant; what each row move changes in it is added to ``gains`` (P, L)."""
    N, P = X.shape
    L = gains.shape[1]
    power, size = np.sum(y * y) / N, np.sum(X * X) / N
    if power == 0.0 or size == 0.0:
        return 0.0
    gamma, sigma = np.full(L, power / size), NOISE * power
    weights, C, a, Z = np.empty(P), np.empty((N, N)), np.empty(N), np.empty((N, P))
    g, h, squares, leverages = np.empty(P), np.empty(P), np.empty(L), np.empty(L)
    for step in range(steps + 1):
        for p in range(P):
            weights[p] = gamma[labels[p]]
        weighted_products(X, weights, X, True, C)
        for i in range(N):
            C[i, i] += sigma
        cholesky(C)
        a[:] = y
        forward(C, a)
        backward(C, a)
        transposed_times(X, a, g)
        Z[:] = X
        forward_rows(C, Z)
        h[:] = 0.0
        for i in range(N):
            for p in range(P):
                h[p] += Z[i, p] * Z[i, p]
        if step == steps:
            break
        squares[:] = 0.0
        leverages[:] = 0.0
        for p in range(P):
            squares[labels[p]] += g[p] * g[p]
            leverages[labels[p]] += h[p]
        # tr(C^-1) from sum_p weights h = N - sigma tr(C^-1).
        trace = N
        for p in range(P):
            trace -= weights[p] * h[p]
        if trace > 0.0:
            sigma *= np.sqrt(np.sum(a * a) * sigma / trace)
        for m in range(L):
            gamma[m] *= np.sqrt(squares[m] / max(leverages[m], TINY))
    for p in range(P):
        for m in range(L):
            d = gamma[m] - gamma[labels[p]]
            q = max(1.0 + d * h[p], TINY)
            gains[p, m] += 0.5 * (d * g[p] * g[p] / q - np.log(q))
    value = -0.5 * np.sum(a * y)
    for i in range(N):
        value += np.log(C[i, i])  # the factor's diagonal is stored inverted
    return value


@compiled
def evidence_gains(X: Floats, y: Floats, starts: Whole, first: int, last: int, labels: Whole, steps: int, gains: Floats) -> float:
    """The same for the tasks from ``first`` to before ``last``."""
    value = 0.0
    for t in range(first, last):
        value += add_gains(X[starts[t] : starts[t + 1]], y[starts[t] : starts[t + 1]], labels, steps, gains)
    return value


def gains_work(n: int, P: int, L: int, steps: int) -> int:
    """The multiply-adds of ``add_gains`` for n rows, P features and L groups."""
    factor = n * P + n * (n + 1) // 2 * P + n**3 // 6
    solves = n * n + n * P + n * n // 2 * P + n * P
    return (steps + 1) * (factor + solves) + 4 * P * L

"""How well a structure explains the training data: the evidence of a Gaussian model of the tasks.

In task t the coefficients of group l have prior variance gamma_tl, so y_t ~ N(0, C_t) with C_t = sigma_t I + X diag(gamma) X'.
Moving feature p from group l to m changes C_t by (gamma_tm - gamma_tl) x_p x_p', and the logarithm of the evidence by

    -1/2 log(1 + d h) + 1/2 d g^2 / (1 + d h),    d = gamma_tm - gamma_tl,  g = x_p' C^-1 y,  h = x_p' C^-1 x_p,

exactly, if the variances are held fixed. So one solve per task gives the changes by all moves of all features.

The variances start equal and are fitted by a few steps of gamma_l <- gamma_l sqrt(sum_l g^2 / sum_l h). More steps would fit them
too closely to the current structure: a feature in a wrong group would give that group a variance in the tasks that use the
feature, and the structure would seem to explain the data.
"""

from typing import NamedTuple

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

VARIANCE_STEPS = (5, 10)
"""Steps of fitting the variances, in the first and in the second series of moves. Few steps first: loosely fitted variances let
features move to groups that are very different from their own."""
FIRST_NOISE = 0.1
"""The variance of the noise before the first step, as a share of the mean square of the targets."""
SMALLEST_DIVISOR = 1e-300
"""A divisor that rounding or an empty group has made zero or negative is replaced by this."""
SMALLEST_SHARE = 1e-9
"""If less than this share of a group's leverage is left without one of its features, that feature counts as alone."""


class Fit(NamedTuple):
    """The variances of one task, fitted for a structure, and what the changes of the evidence are computed from."""

    gamma: Floats  # (L,): the prior variance of each group
    squares: Floats  # (L,): the sums of g^2 over the features of each group
    leverages: Floats  # (L,): the sums of h
    g: Floats  # (P,): X'C^-1 y
    h: Floats  # (P,): the diagonal of X'C^-1 X
    a: Floats  # (N,): C^-1 y
    C: Floats  # (N, N): the Cholesky factor of C


@compiled
def fitted(X: Floats, y: Floats, labels: Whole, L: int, power: float, size: float, steps: int) -> Fit:
    """Fit the variances by this many steps."""
    N, P = X.shape
    gamma, sigma = np.full(L, power / size), FIRST_NOISE * power
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
        squares[:] = 0.0
        leverages[:] = 0.0
        for p in range(P):
            squares[labels[p]] += g[p] * g[p]
            leverages[labels[p]] += h[p]
        if step == steps:
            break
        # sigma tr(C^-1) = N - sum_p weights_p h_p, since sum_p weights_p h_p = tr(C^-1 (C - sigma I)).
        trace = N
        for p in range(P):
            trace -= weights[p] * h[p]
        if trace > 0.0:
            sigma *= np.sqrt(np.sum(a * a) * sigma / trace)
        for m in range(L):
            gamma[m] *= np.sqrt(squares[m] / max(leverages[m], SMALLEST_DIVISOR))
    return Fit(gamma, squares, leverages, g, h, a, C)


@compiled
def log_evidence(fit: Fit, y: Floats) -> float:
    """The logarithm of the evidence of a task, up to a constant."""
    value: float = -0.5 * np.sum(fit.a * y)
    for i in range(len(y)):
        value += np.log(fit.C[i, i])  # plus, because ``cholesky`` stores the diagonal inverted
    return value


@compiled
def gain(d: float, g: float, h: float) -> float:
    """The change of the log evidence if the prior variance of one feature changes by d."""
    q = max(1.0 + d * h, SMALLEST_DIVISOR)
    change: float = 0.5 * (d * g * g / q - np.log(q))
    return change


@compiled
def add_gains(X: Floats, y: Floats, labels: Whole, steps: int, gains: Floats) -> float:
    """Return one task's log evidence, up to a constant, and add its change by each row move to ``gains`` (P, L)."""
    N, P = X.shape
    L = gains.shape[1]
    power, size = np.sum(y * y) / N, np.sum(X * X) / N
    if power == 0.0 or size == 0.0:
        return 0.0
    fit = fitted(X, y, labels, L, power, size, steps)
    for p in range(P):
        for m in range(L):
            gains[p, m] += gain(fit.gamma[m] - fit.gamma[labels[p]], fit.g[p], fit.h[p])
    return log_evidence(fit, y)


@compiled
def add_gains_by_others(X: Floats, y: Floats, labels: Whole, steps: int, gains: Floats) -> float:
    """Like ``add_gains``, but each feature is judged by the other features of its group.

    A feature raises the variance of its own group in the tasks that use it, which would speak for staying there, whatever the
    group. So the variance of its own group is taken without it: as the next step of the fit would set it from the others alone,
    if the group were fitted now. A feature without others gets the variance that all groups start from, and so does an empty
    group.
    """
    N, P = X.shape
    L = gains.shape[1]
    power, size = np.sum(y * y) / N, np.sum(X * X) / N
    if power == 0.0 or size == 0.0:
        return 0.0
    fit = fitted(X, y, labels, L, power, size, steps)
    first = power / size
    for p in range(P):
        own, g, h = labels[p], fit.g[p], fit.h[p]
        others_squares, others_leverage = max(fit.squares[own] - g * g, 0.0), fit.leverages[own] - h
        without = first
        if others_leverage > SMALLEST_SHARE * fit.leverages[own]:
            all_ratio = max(fit.squares[own] / fit.leverages[own], SMALLEST_DIVISOR)
            without = fit.gamma[own] * np.sqrt(others_squares / others_leverage / all_ratio)
        stay = gain(without - fit.gamma[own], g, h)
        for m in range(L):
            if m != own:
                there = fit.gamma[m] if fit.leverages[m] > 0.0 else first
                gains[p, m] += gain(there - fit.gamma[own], g, h) - stay
    return log_evidence(fit, y)


@compiled
def evidence_gains(
    X: Floats, y: Floats, starts: Whole, first: int, last: int, labels: Whole, steps: int, by_others: bool, gains: Floats
) -> float:
    """The gains of the tasks first, ..., last - 1, added to ``gains``; returns the sum of their log evidences.

    ``by_others`` chooses ``add_gains_by_others``, otherwise ``add_gains``.
    """
    value = 0.0
    for t in range(first, last):
        part = slice(starts[t], starts[t + 1])
        if by_others:
            value += add_gains_by_others(X[part], y[part], labels, steps, gains)
        else:
            value += add_gains(X[part], y[part], labels, steps, gains)
    return value


def gains_work(n: int, P: int, L: int, steps: int) -> int:
    """The multiply-adds of ``add_gains`` for n rows, P features and L groups."""
    factor = n * P + n * (n + 1) // 2 * P + n**3 // 6
    solves = n * n + n * P + n * n // 2 * P + n * P
    return (steps + 1) * (factor + solves) + 4 * P * L

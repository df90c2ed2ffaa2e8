"""How well a structure explains the training data: the evidence of a Gaussian model of the tasks.

In task t the coefficients of group l have prior variance gamma_tl, so y_t ~ N(0, C_t) with C_t = sigma_t I + X diag(gamma) X'.
Moving feature p from group l to m changes C_t by (gamma_tm - gamma_tl) x_p x_p', and the logarithm of the evidence by

    -1/2 log(1 + d h) + 1/2 d g^2 / (1 + d h),    d = gamma_tm - gamma_tl,  g = x_p' C^-1 y,  h = x_p' C^-1 x_p,

exactly, if the variances are held fixed. So one solve per task gives the changes by all moves of all features.

The variances start equal and are fitted by a few steps of gamma_l <- gamma_l sqrt(sum_l g^2 / sum_l h). More steps would fit them
too closely to the current structure: a feature in a wrong group would give that group a variance in the tasks that use the
feature, and the structure would seem to explain the data.
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

VARIANCE_STEPS = (5, 10)
"""Steps of fitting the variances, in the first and in the second series of moves. Few steps first: loosely fitted variances let
features move to groups that are very different from their own."""
FIRST_NOISE = 0.1
"""The variance of the noise before the first step, as a share of the mean square of the targets."""
SMALLEST_DIVISOR = 1e-300
"""A divisor that rounding or an empty group has made zero or negative is replaced by this."""
SMALLEST_SHARE = 1e-9
"""If less than this share of a group's leverage is left without one of its features, that feature counts as alone."""


@compiled
def evidence_gains(
    X: Floats, y: Floats, starts: Whole, terms: Whole, labels: Whole, steps: int, by_others: bool, gains: Floats
) -> float:
    """Add the gains of the tasks ``terms`` by each row move to ``gains`` (P, L); return their log evidences, summed.

    With ``by_others`` each feature is judged by the other features of its group. A feature raises the variance of its own group
    in the tasks that use it, which would speak for staying there, whatever the group. So the variance of its own group is taken
    without it: as the next step of the fit would set it from the others alone, if the group were fitted now. A feature without
    others gets the variance that all groups start from, and so does an empty group.
    """
    P, L = gains.shape
    value, weights, g, h = 0.0, np.empty(P), np.empty(P), np.empty(P)
    gamma, squares, leverages = np.empty(L), np.empty(L), np.empty(L)
    for k in range(len(terms)):
        t = terms[k]
        Xt, yt = X[starts[t] : starts[t + 1]], y[starts[t] : starts[t + 1]]
        N = len(yt)
        power = size = 0.0
        for i in range(N):
            power += yt[i] * yt[i]
            for p in range(P):
                size += Xt[i, p] * Xt[i, p]
        if power == 0.0 or size == 0.0:
            continue
        start, sigma = power / size, FIRST_NOISE * power / N
        gamma[:] = start
        C, a, Z = np.empty((N, N)), np.empty(N), np.empty((N, P))
        for step in range(steps + 1):
            for p in range(P):
                weights[p] = gamma[labels[p]]
            weighted_products(Xt, weights, Xt, True, C)
            for i in range(N):
                C[i, i] += sigma
                a[i] = yt[i]
                for p in range(P):
                    Z[i, p] = Xt[i, p]
            cholesky(C)
            forward(C, a)
            backward(C, a)
            transposed_times(Xt, a, g)
            forward_rows(C, Z)
            h[:] = 0.0
            for i in range(N):
                for p in range(P):
                    h[p] += Z[i, p] * Z[i, p]
            # sigma tr(C^-1) = N - sum_p weights_p h_p, since sum_p weights_p h_p = tr(C^-1 (C - sigma I)).
            trace = 1.0 * N
            squares[:] = 0.0
            leverages[:] = 0.0
            for p in range(P):
                squares[labels[p]] += g[p] * g[p]
                leverages[labels[p]] += h[p]
                trace -= weights[p] * h[p]
            if step < steps:
                if trace > 0.0:
                    length = 0.0
                    for i in range(N):
                        length += a[i] * a[i]
                    sigma *= np.sqrt(length * sigma / trace)
                for m in range(L):
                    gamma[m] *= np.sqrt(squares[m] / max(leverages[m], SMALLEST_DIVISOR))
        for i in range(N):
            value += np.log(C[i, i]) - 0.5 * a[i] * yt[i]  # plus, because ``cholesky`` stores the diagonal inverted
        for p in range(P):
            own = labels[p]
            # The best that the feature can have where it is: its group's variance, or that of the others in its group.
            without = gamma[own]
            if by_others:
                others_squares, others_leverage = max(squares[own] - g[p] * g[p], 0.0), leverages[own] - h[p]
                without = start
                if others_leverage > SMALLEST_SHARE * leverages[own]:
                    all_ratio = max(squares[own] / leverages[own], SMALLEST_DIVISOR)
                    without = gamma[own] * np.sqrt(others_squares / others_leverage / all_ratio)
            stay = 0.0
            for m in range(-1, L):  # -1 is staying
                there = without if m < 0 else gamma[m] if leverages[m] > 0.0 or not by_others else start
                d = there - gamma[own]
                q = max(1.0 + d * h[p], SMALLEST_DIVISOR)
                change = 0.5 * (d * g[p] * g[p] / q - np.log(q))
                if m < 0:
                    stay = change
                elif m != own:
                    gains[p, m] += change - stay
    return value


def gains_work(n: Whole, P: int, L: int, steps: int) -> int:
    """The multiply-adds of ``evidence_gains`` for tasks of ``n`` rows, P features and L groups."""
    factor = n * P + n * (n + 1) // 2 * P + n**3 // 6
    solves = n * n + n * P + n * n // 2 * P + n * P
    return int(np.sum((steps + 1) * (factor + solves) + 4 * P * L))

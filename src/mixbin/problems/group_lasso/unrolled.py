"""The paper's lower level: q steps of a dual Bregman forward-backward method, and reverse mode through them.

The iteration is that of docs/maths.md, "Unrolled lower level", in fewer numbers.

Starting from u = 0, the dual iterates are v_l = gamma theta_l ∘ c, where c is the sum of all w so far. So P numbers hold what the
paper writes with P x L numbers. With n_l = |theta_l ∘ c|^2 and e_l = 1 / sqrt(1 + gamma^2 n_l), and since lam gamma = 0.99 eta:

    w = B^-1 (X'y/N - 0.99 eta c ∘ sum_l e_l theta_l^2),    c <- c + w,    B = X'X/N + eta I,    gamma = 0.99 eta / lam

lam enters only through gamma in e_l, so that differentiating e_l also accounts for d gamma/d lam.
"""

import numpy as np

from mixbin._validate import Floats
from mixbin.problems.group_lasso.compiled import cholesky, compiled, forward, times, transposed_times, weighted_products

DAMPING = 0.99
"""The step gamma in units of eta / lam; the method converges for values up to 1."""


@compiled
def whitened(X: Floats, ridge: float) -> Floats:
    """R with B^-1 = (I - R'R) / eta, by Woodbury's identity: R = C^-1 X with CC' = XX' + N eta I."""
    n, P = X.shape
    C, R, column = np.empty((n, n)), np.empty((n, P)), np.empty(n)
    weighted_products(X, np.ones(P), X, True, C)
    for i in range(n):
        C[i, i] += n * ridge
    cholesky(C)
    for p in range(P):
        column[:] = X[:, p]
        forward(C, column)
        R[:, p] = column
    return R


@compiled
def apply_inverse(R: Floats, ridge: float, x: Floats, inner: Floats, out: Floats) -> None:
    """Set ``out`` to B^-1 x."""
    times(R, x, inner)
    transposed_times(R, inner, out)
    for p in range(len(x)):
        out[p] = (x[p] - out[p]) / ridge


@compiled
def run(
    X: Floats, y: Floats, R: Floats, theta2: Floats, lam: float, ridge: float, q: int, c: Floats, e: Floats, h: Floats, w: Floats
) -> float:
    """Set ``w`` to the model after q steps; returns by how much the last step changed w, relative to its largest entry.

    c, e and h = sum_l e_l theta_l^2 of every step are stored for ``reverse``.
    """
    L, P = theta2.shape
    n = len(y)
    gamma2 = (DAMPING * ridge / lam) ** 2
    inner, b, x, before = np.empty(n), np.empty(P), np.empty(P), np.zeros(P)
    transposed_times(X, y / n, b)
    c[0] = 0.0
    for k in range(q + 1):
        for p in range(P):
            x[p] = c[k, p] * c[k, p]
        times(theta2, x, e[k])
        for g in range(L):
            e[k, g] = 1.0 / np.sqrt(1.0 + gamma2 * e[k, g])
        transposed_times(theta2, e[k], h[k])
        for p in range(P):
            x[p] = b[p] - DAMPING * ridge * c[k, p] * h[k, p]
        apply_inverse(R, ridge, x, inner, w)
        if k < q:
            for p in range(P):
                c[k + 1, p] = c[k, p] + w[p]
                before[p] = w[p]
    size, moved = 0.0, 0.0
    for p in range(P):
        size, moved = max(size, abs(w[p])), max(moved, abs(w[p] - before[p]))
    return moved / size if size > 0.0 else moved


@compiled
def reverse(
    R: Floats,
    theta: Floats,
    theta2: Floats,
    lam: float,
    ridge: float,
    c: Floats,
    e: Floats,
    h: Floats,
    grad_w: Floats,
    grad: Floats,
) -> float:
    """Differentiate the steps of ``run`` in reverse, from ``grad_w`` at the last w: add dG/dtheta to ``grad``, return dG/dlam."""
    L, P = theta2.shape
    gamma2 = (DAMPING * ridge / lam) ** 2
    inner, x, bar_c, bar_h, bar_n, total = np.empty(len(R)), np.empty(P), np.zeros(P), np.empty(P), np.empty(L), np.zeros((L, P))
    bar_w, bar_gamma2 = grad_w.copy(), 0.0
    for k in range(len(c) - 1, -1, -1):
        apply_inverse(R, ridge, bar_w, inner, x)
        for p in range(P):
            x[p] *= -DAMPING * ridge
            bar_h[p] = c[k, p] * x[p]
            bar_c[p] += h[k, p] * x[p]
        times(theta2, bar_h, bar_n)
        for g in range(L):
            cube = -0.5 * bar_n[g] * e[k, g] ** 3
            # n_l is not stored; 1 + gamma^2 n_l = 1 / e_l^2 gives it back.
            bar_gamma2 += cube * (1.0 / (e[k, g] * e[k, g]) - 1.0) / gamma2
            bar_n[g] = cube * gamma2
            for p in range(P):
                total[g, p] += e[k, g] * bar_h[p] + bar_n[g] * c[k, p] * c[k, p]
        transposed_times(theta2, bar_n, x)
        for p in range(P):
            bar_c[p] += 2.0 * c[k, p] * x[p]
            bar_w[p] = bar_c[p]
    for g in range(L):
        for p in range(P):
            grad[g, p] += 2.0 * theta[g, p] * total[g, p]
    return -2.0 * gamma2 / lam * bar_gamma2

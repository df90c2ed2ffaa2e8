"""The group lasso solved to convergence, and its hypergradient by the implicit function theorem.

The equations are those of docs/maths.md, "Implicit lower level".

The norms are smoothed, sqrt(|theta_l ∘ w|^2 + delta^2), with a delta far below the size of w. Each is the minimum over s_l > 0 of
(|theta_l ∘ w|^2 + delta^2) / (2 s_l) + s_l / 2, which leaves a ridge regression in w:

    Phi(s) = min_w 1/(2N) |Xw - y|^2 + 1/2 w'Dw + lam/2 sum_l (s_l + delta^2 / s_l),    D = eta + lam sum_l theta_l^2 / s_l
           = 1/2 y'a + lam/2 sum_l (s_l + delta^2 / s_l),    a = (N I + X D^-1 X')^-1 y,    w = D^-1 X'a

Phi is convex in the L numbers s. Unlike the norms, it is smooth even for groups at zero, where D^-1 vanishes together with s_l.
Newton's method in s, with the bound s >= delta, needs the N x N factor of one reweighting and an L x L system per step; it is
Newton's method in w with the ridge regression eliminated. If a Newton step does not lower Phi, the reweighting s_l =
sqrt(|theta_l ∘ w|^2 + delta^2) is done instead, which never raises Phi.

Arrays over groups and features have shape (L, P), so that the inner loops run along the features, which are contiguous.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problems.group_lasso.compiled import (
    SMALLEST_PIVOT,
    backward,
    cholesky,
    compiled,
    forward,
    forward_rows,
    merged,
    times,
    transposed_times,
    weighted_products,
)

Bools = NDArray[np.bool_]
Whole = NDArray[np.int64]

DELTA = 1e-12
"""The smoothing delta, in units of a task's scale. It changes the objective by at most lam L delta."""
COLD_STEPS = 2
"""Number of reweightings before the first Newton step of a cold start."""
MAX_STEPS = 60
"""The largest number of steps at one value of delta."""
SMOOTHING_STAGES = 24
"""If Newton's method fails, the task is solved for this many values of delta, falling from the scale to DELTA times the scale."""
LAST_STEP = 1e-5
"""The method stops after a step that changes no s_l by more than this share; the error that is left is about its square."""
NEGLIGIBLE_STEP = 1e-9
"""A step that would change no s_l by more than this share is not made: it is not worth another factorisation."""
AT_ZERO = 1e-8
"""A group whose s_l is below this share of the scale counts as being at zero."""
LIFTED_SIZE = 1e-3
"""A group at zero that must grow restarts from this s_l, in units of the scale."""
RADIUS, LEAST_RADIUS = 2.0, 0.01
"""The largest change of log s in the first step, and the smallest value to which failures can reduce this limit."""
RISE_TOLERANCE = 1e-12
"""Phi counts as higher only if it has risen by more than this share; less is rounding."""


class Solution(NamedTuple):
    """A task's solution at some s, together with the arrays that the kernels work in."""

    s: Floats  # (L,)
    d: Floats  # (P,): the diagonal of D^-1
    K: Floats  # (N, N): the Cholesky factor of N I + X D^-1 X'
    a: Floats  # (N,): residuals / N
    w: Floats  # (P,)
    q: Floats  # (L,): |theta_l ∘ w|^2
    Y: Floats  # (N, L): K^-1 X D^-1 (theta_l^2 ∘ w)
    S: Floats  # (L, L): the scaled Hessian of Phi
    C: Floats  # (L, L): the Cholesky factor of S, or of a part of it
    work: Floats  # (P,): scratch


@merged
def blank(n: int, P: int, L: int) -> Solution:
    """Unfilled arrays for a solution, with s = 0, which means a cold start."""
    return Solution(
        np.zeros(L),
        np.empty(P),
        np.empty((n, n)),
        np.empty(n),
        np.empty(P),
        np.empty(L),
        np.empty((n, L)),
        np.empty((L, L)),
        np.empty((L, L)),
        np.empty(P),
    )


@merged
def reweight(X: Floats, y: Floats, theta2: Floats, lam: float, ridge: float, delta: float, at: Solution) -> float:
    """Solve the ridge regression at ``at.s``; returns Phi there."""
    n, P = X.shape
    L = len(at.s)
    d, w = at.d, at.w
    d[:] = ridge
    for g in range(L):
        weight = lam / at.s[g]
        for p in range(P):
            d[p] += weight * theta2[g, p]
    for p in range(P):
        d[p] = 1.0 / d[p]
    weighted_products(X, d, X, True, at.K)
    for i in range(n):
        at.K[i, i] += n
    cholesky(at.K)
    for i in range(n):
        at.a[i] = y[i]
    forward(at.K, at.a)
    backward(at.K, at.a)
    transposed_times(X, at.a, w)
    for p in range(P):
        w[p] *= d[p]
        at.work[p] = w[p] * w[p]
    times(theta2, at.work, at.q)
    value = 0.0
    for i in range(n):
        value += y[i] * at.a[i]
    for g in range(L):
        value += lam * (at.s[g] + delta * delta / at.s[g])
    return 0.5 * value


@compiled
def curvature(X: Floats, theta2: Floats, lam: float, delta: float, at: Solution) -> None:
    """Set ``at.S`` to the scaled Hessian of Phi, S_lm = sqrt(s_l s_m) / lam * d2Phi / ds_l ds_m.

    At the solution S = I - U' (D + X'X/N)^-1 U with U_l = sqrt(lam / s_l^3) theta_l^2 ∘ w, the matrix that the hypergradient
    needs for Woodbury's identity.
    """
    L, P = theta2.shape
    s, S = at.s, at.S
    for p in range(P):
        at.work[p] = at.d[p] * at.w[p]
    weighted_products(X, at.work, theta2, False, at.Y)
    forward_rows(at.K, at.Y)
    for p in range(P):
        at.work[p] *= -at.w[p]
    weighted_products(theta2, at.work, theta2, True, S)
    for i in range(len(at.Y)):
        for g in range(L):
            for m in range(g + 1):
                S[g, m] += at.Y[i, g] * at.Y[i, m]
    for g in range(L):
        for m in range(g + 1):
            S[g, m] *= lam / ((s[g] * s[m]) * np.sqrt(s[g] * s[m]))
        S[g, g] += (at.q[g] + delta * delta) / (s[g] * s[g])
    for g in range(L):
        for m in range(g):
            S[m, g] = S[g, m]


@merged
def bounded_minimum(S: Floats, rhs: Floats, low: Floats, C: Floats, x: Floats, fixed: Bools) -> None:
    """Set ``x`` to the minimiser of 1/2 x'Sx - rhs'x over x >= low, and ``fixed`` to the entries that are at the bound.

    An active-set method: all entries that fall below their bound are fixed together; then fixed entries with a negative
    multiplier, which would lower the value by leaving the bound, are freed one by one, the most negative first.
    """
    L = len(rhs)
    fixed[:] = False
    for _ in range(3 * L):
        for g in range(L):
            x[g] = low[g] if fixed[g] else rhs[g]
            for m in range(L):
                apart = fixed[g] or fixed[m]
                C[g, m] = S[g, m] if not apart else 1.0 if g == m else 0.0
                if fixed[m] and not fixed[g]:
                    x[g] -= S[g, m] * low[m]
        cholesky(C)
        forward(C, x)
        backward(C, x)
        fallen = False
        for g in range(L):
            if not fixed[g] and x[g] < low[g]:
                fixed[g] = fallen = True
        if fallen:
            continue
        worst, which = 0.0, -1
        for g in range(L):
            if fixed[g]:
                multiplier = -rhs[g]
                for m in range(L):
                    multiplier += S[g, m] * x[m]
                if multiplier < worst:
                    worst, which = multiplier, g
        if which < 0:
            return
        fixed[which] = False


@merged
def newton_step(at: Solution, one_hot: bool, delta: float, radius: float, safe: Floats) -> float:
    """Make a step of Newton's method in s, unless it is negligible; returns the largest relative change of s.

    ``safe`` are the s of a reweighting. For a one-hot theta the step is that for the minimum of Phi over s >= delta, which is
    smooth at s_l = 0 too. Otherwise it is the step for 2 log s_l = log(q_l + delta^2), of at most ``radius``, and the change is
    that of log s. This step is exact if q is a monomial in s, as for a group that theta makes small: other groups then determine
    w, and q_l does not depend on s_l. The matrix of the equations is S in both cases.
    """
    L, s = len(at.s), at.s
    rhs, low, x, fixed = np.empty(L), np.empty(L), np.empty(L), np.empty(L, np.bool_)
    for g in range(L):
        root, ratio = np.sqrt(s[g]), (safe[g] / s[g]) ** 2
        if one_hot:
            rhs[g] = 0.5 * (ratio - 1.0) * root
            low[g] = (delta - s[g]) / root
        else:
            rhs[g] = 0.5 * ratio * np.log(ratio) * root
            low[g] = max(np.log(delta / s[g]), -radius) * root
    bounded_minimum(at.S, rhs, low, at.C, x, fixed)
    change = 0.0
    for g in range(L):
        if one_hot:
            x[g] *= np.sqrt(s[g])
            change = max(change, abs(x[g]) / s[g])
        else:
            x[g] /= np.sqrt(s[g])
            change = max(change, abs(x[g]))
    if change <= NEGLIGIBLE_STEP:
        return change
    for g in range(L):
        if not one_hot:
            s[g] = max(delta, s[g] * np.exp(min(x[g], radius)))
        elif fixed[g]:
            # Near zero q / s^2 hardly depends on s. Taking it as constant, s_l^2 = q_l + delta^2 can be solved for s_l.
            s[g] = max(delta, min(s[g], delta / np.sqrt(max(1.0 - at.q[g] / (s[g] * s[g]), SMALLEST_PIVOT))))
        else:
            s[g] = max(delta, s[g] + x[g])
    return change


@merged
def solve(
    X: Floats, y: Floats, theta2: Floats, one_hot: bool, lam: float, ridge: float, scale: float, at: Solution
) -> tuple[int, float]:
    """Minimise Phi from ``at.s``, or cold if that is 0; returns the number of factorisations and the last relative step."""
    s, L = at.s, len(at.s)
    safe = np.empty(L)
    cold = s[0] == 0.0
    if cold:
        s[:] = scale
    total, change = 0, np.inf
    for stage in range(SMOOTHING_STAGES + 1):
        # Stage 0 nearly always converges. If it does not, start again with a strong smoothing and weaken it stage by stage.
        delta = scale * (DELTA if stage == 0 else DELTA ** (stage / SMOOTHING_STAGES))
        if stage == 1:
            s[:] = scale
        count, value, change, radius, monotone = 0, np.inf, np.inf, RADIUS, False
        # The loop calls the factorisation in one place only, because the compiler copies its code into every place of call.
        while count < MAX_STEPS:
            trial = reweight(X, y, theta2, lam, ridge, delta, at)
            count += 1
            if change <= LAST_STEP:
                break
            back = not monotone and not trial <= value * (1.0 + RISE_TOLERANCE)
            lifted = False
            if back:
                radius = max(0.25 * radius, LEAST_RADIUS)
            else:
                radius = radius if monotone or count == 1 else 2.0 * radius
                value = trial
                for g in range(L):
                    safe[g] = np.sqrt(at.q[g] + delta * delta)
                    # A group near zero that a reweighting would enlarge: Newton's method would need many steps for it.
                    if stage == 0 and count == 1 and not cold and s[g] < LIFTED_SIZE * scale and at.q[g] > 2.0 * s[g] * s[g]:
                        s[g], lifted = LIFTED_SIZE * scale, True
            monotone = back or lifted or (stage == 0 and cold and count <= COLD_STEPS)
            if monotone and not lifted:
                for g in range(L):
                    s[g] = safe[g]
            if monotone:
                continue
            curvature(X, theta2, lam, delta, at)
            change = newton_step(at, one_hot and stage == 0, delta, radius, safe)
            if change <= NEGLIGIBLE_STEP:
                break
        total += count
        if stage == 0 and change <= LAST_STEP:
            break
    return total, change


@merged
def factor_work(n: int, P: int, L: int) -> int:
    """The multiply-adds of one reweighting and the Newton step that follows, for n rows, P features and L groups."""
    ridge = 2 * L * P + 2 * n * P + n * (n + 1) // 2 * P + n * n * n // 6 + n * n
    return ridge + curvature_work(n, P, L) + L * L * L // 6 + L * L


@merged
def curvature_work(n: int, P: int, L: int) -> int:
    """The multiply-adds of ``curvature``."""
    return n * P + n * L * P + n * n * L // 2 + L * P + L * (L + 1) // 2 * (P + n)


@merged
def hypergradient_work(n: int, P: int, L: int) -> int:
    """The multiply-adds of ``hypergradient``: the curvature, its factor, two solves and four products with theta."""
    return curvature_work(n, P, L) + L * L * L // 6 + L * L + 2 * (2 * n * P + n * n) + 4 * L * P


@compiled
def ridge_solve(X: Floats, at: Solution, x: Floats, inner: Floats) -> None:
    """Replace ``x`` by (D + X'X/N)^-1 x."""
    P = len(x)
    for p in range(P):
        x[p] *= at.d[p]
    times(X, x, inner)
    forward(at.K, inner)
    backward(at.K, inner)
    transposed_times(X, inner, at.work)
    for p in range(P):
        x[p] -= at.d[p] * at.work[p]


@merged
def hypergradient(
    X: Floats, theta: Floats, theta2: Floats, lam: float, scale: float, at: Solution, z: Floats, grad: Floats
) -> float:
    """Add a task's dG/dtheta to ``grad`` and return its dG/dlam; ``z`` holds the gradient of the validation loss in w.

    ``z`` is overwritten by the solution of H z = that gradient, H the Hessian of the lower level. Then, with
    c_l = sum_p theta_pl^2 w_p z_p, dG/dtheta_pl = -lam [2 theta_pl w_p z_p / s_l - theta_pl w_p^2 c_l / s_l^3] and
    dG/dlam = -sum_l c_l / s_l.
    """
    n, P = X.shape
    L = len(at.s)
    s, w = at.s, at.w
    inner, c, x = np.empty(n), np.empty(L), np.empty(P)
    curvature(X, theta2, lam, DELTA * scale, at)
    cholesky(at.S)
    ridge_solve(X, at, z, inner)
    # Woodbury's identity for H = B - U U' with B = D + X'X/N: H^-1 = B^-1 + B^-1 U S^-1 U' B^-1.
    for p in range(P):
        at.work[p] = w[p] * z[p]
    times(theta2, at.work, c)
    for g in range(L):
        c[g] *= np.sqrt(lam / s[g]) / s[g]
    forward(at.S, c)
    backward(at.S, c)
    for g in range(L):
        c[g] *= np.sqrt(lam / s[g]) / s[g]
    transposed_times(theta2, c, x)
    for p in range(P):
        x[p] *= w[p]
    ridge_solve(X, at, x, inner)
    for p in range(P):
        z[p] += x[p]
        at.work[p] = w[p] * z[p]
    times(theta2, at.work, c)
    grad_lam = 0.0
    for g in range(L):
        grad_lam -= c[g] / s[g]
        first, second = -2.0 * lam / s[g], lam * c[g] / (s[g] * s[g] * s[g])
        for p in range(P):
            grad[g, p] += theta[g, p] * (first * at.work[p] + second * w[p] * w[p])
    return grad_lam

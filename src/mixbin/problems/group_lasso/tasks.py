"""The group lasso of several tasks, one after the other: models, validation losses, hypergradients, and losses after row moves.

At a binary theta most groups of most tasks are at zero (docs/maths.md, "Row moves"). Group l is at zero in the solution exactly
when |X_l'r| / N <= lam, where r are the residuals of the other groups' model. Groups that are expected to be at zero are left out
of the solve; this condition is checked afterwards, and groups that violate it are added. A row move cannot change a task in which
both of its groups are at zero before and after the move: such tasks are skipped.

All of this is one kernel on purpose. A kernel that calls another contains its code, so that each further level, and each further
place of call, is compiled again: in several kernels the same loops took three times as long to compile.
"""

import numpy as np

from mixbin._validate import Floats
from mixbin.problems.group_lasso.compiled import compiled, half_mean_square, transposed_times
from mixbin.problems.group_lasso.implicit import (
    AT_ZERO,
    DELTA,
    LIFTED_SIZE,
    Whole,
    blank,
    factor_work,
    hypergradient,
    hypergradient_work,
    solve,
)

NEARLY_ACTIVE = 1e-9
"""A group counts as leaving zero when its condition holds with a margin smaller than this share of lam^2."""


@compiled
def implicit_block(
    X: Floats,
    y: Floats,
    starts: Whole,
    X_val: Floats,
    y_val: Floats,
    starts_val: Whole,
    terms: Whole,
    theta: Floats,
    labels: Whole,
    feature: Whole,
    target: Whole,
    lam: float,
    ridge: float,
    scales: Floats,
    gradient: bool,
    state: Floats,
    values: Floats,
    steps: Floats,
    residuals: Floats,
    coef: Floats,
    grad: Floats,
    changes: Floats,
    work: Whole,
    gradient_work: Whole,
) -> float:
    """Solve these tasks from their ``state`` at ``theta`` (L, P), with ``labels`` its groups if it is one-hot, else empty.

    Sets all arrays from ``state`` to ``gradient_work`` but two, to which it adds: dG/dtheta of the tasks to ``grad``, and to
    ``changes`` the changes of their losses when ``feature[i]`` moves to group ``target[i]``. Returns the sum of their dG/dlam.
    """
    L, P = theta.shape
    one_hot = len(labels) > 0
    z, w, slope, norms, s = np.empty(P), np.empty(P), np.empty(P), np.empty(L), np.empty(L)
    slope_here, norms_here, grad_lam = np.empty(P), np.empty(L), 0.0
    groups, features = np.zeros(P, np.int64), np.empty(P, np.int64)  # features: those of the working groups, first n_features
    working, working_here, place = np.ones(L, np.bool_), np.ones(L, np.bool_), np.empty(L, np.int64)
    for p in range(len(labels)):
        groups[p] = labels[p]
    for k in range(len(terms)):
        t = terms[k]
        Xt, yt = X[starts[t] : starts[t + 1]], y[starts[t] : starts[t + 1]]
        Xv, yv = X_val[starts_val[t] : starts_val[t + 1]], y_val[starts_val[t] : starts_val[t + 1]]
        n, scale, here = len(yt), scales[t], state[k]
        steps[k], work[k] = 0.0, 0
        # Pass -1 is theta itself; the others are its row moves.
        for i in range(-1, len(feature)):
            from_group, to_group, moving = 0, 0, 0
            for g in range(L):
                s[g] = here[g]
            if i >= 0:
                moving, to_group = feature[i], target[i]
                from_group = labels[moving]
                leaves_zero = norms_here[to_group] + slope_here[moving] ** 2 > lam * lam * (1.0 - NEARLY_ACTIVE)
                if to_group == from_group or not (working_here[from_group] or working_here[to_group] or leaves_zero):
                    continue
                square = coef[k, moving] ** 2
                if working_here[from_group]:
                    s[from_group] = np.sqrt(max(here[from_group] ** 2 - square, 0.01 * here[from_group] ** 2))
                if working_here[to_group]:
                    s[to_group] = np.sqrt(here[to_group] ** 2 + square)
                elif leaves_zero:
                    s[to_group] = LIFTED_SIZE * scale
                groups[moving] = to_group
            if one_hot:
                # All groups at a cold start, afterwards those that are not at zero.
                for g in range(L):
                    working[g] = s[g] > AT_ZERO * scale or s[0] == 0.0
            change = 0.0
            for _ in range(2 * L):
                n_groups = n_features = 0
                for g in range(L):
                    place[g] = n_groups
                    n_groups += working[g]
                for p in range(P):
                    if working[groups[p]]:
                        features[n_features] = p
                        n_features += 1
                Xw, theta_w, theta2 = (
                    np.empty((n, n_features)),
                    np.zeros((n_groups, n_features)),
                    np.zeros((n_groups, n_features)),
                )
                for j in range(n_features):
                    p = features[j]
                    for row in range(n):
                        Xw[row, j] = Xt[row, p]
                    if one_hot:
                        theta_w[place[groups[p]], j] = theta2[place[groups[p]], j] = 1.0
                    else:
                        for g in range(L):
                            theta_w[g, j], theta2[g, j] = theta[g, p], theta[g, p] * theta[g, p]
                at = blank(n, n_features, n_groups)
                for g in range(L):
                    if working[g]:
                        at.s[place[g]] = s[g]
                if n_groups:
                    count, change = solve(Xw, yt, theta2, one_hot, lam, ridge, scale, at)
                    work[k] += count * factor_work(n, n_features, n_groups)
                    if i < 0:
                        steps[k] += count
                else:
                    for row in range(n):
                        at.a[row] = yt[row] / n
                for g in range(L):
                    s[g] = at.s[place[g]] if working[g] else DELTA * scale
                if not one_hot:
                    break
                transposed_times(Xt, at.a, slope)
                work[k] += Xt.size
                norms[:] = 0.0
                for p in range(P):
                    norms[groups[p]] += slope[p] * slope[p]
                unchanged = True
                for g in range(L):
                    if working[g] and s[g] <= AT_ZERO * scale and norms[g] <= lam * lam:
                        working[g] = unchanged = False
                    elif not working[g] and norms[g] > lam * lam:
                        working[g], s[g], unchanged = True, LIFTED_SIZE * scale, False
                if unchanged:
                    break
            w[:] = 0.0
            for j in range(n_features):
                w[features[j]] = at.w[j]
            value = half_mean_square(Xv, yv, w, z)
            work[k] += 2 * Xv.size
            if i >= 0:
                changes[i] += value - values[k]
                groups[moving] = from_group
                continue
            values[k], residuals[k] = value, change
            for p in range(P):
                coef[k, p], slope_here[p] = w[p], slope[p]
            for g in range(L):
                here[g], norms_here[g] = s[g], norms[g]
                working_here[g] = s[g] > AT_ZERO * scale or s[0] == 0.0
            gradient_work[k] = hypergradient_work(n, n_features, n_groups)
            if gradient and n_features:
                # A relaxed theta adds to ``grad`` itself: by way of an array of its own each product would be rounded once more.
                slope_w, grad_w = np.empty(n_features), np.zeros((n_groups, n_features)) if one_hot else grad
                for j in range(n_features):
                    slope_w[j] = z[features[j]]
                grad_lam += hypergradient(Xw, theta_w, theta2, lam, scale, at, slope_w, grad_w)
                for j in range(n_features if one_hot else 0):
                    for g in range(n_groups):
                        grad[groups[features[j]], features[j]] += grad_w[g, j]
    return grad_lam

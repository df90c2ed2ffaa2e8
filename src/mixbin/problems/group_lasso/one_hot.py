"""The group lasso at a binary theta, where most groups of most tasks are at zero (docs/maths.md, "Row moves").

Group l is at zero in the solution exactly when |X_l'r| / N <= lam, where r are the residuals of the other groups' model. Groups
that are expected to be at zero are left out of the solve; this condition is checked afterwards, and groups that violate it are
added. A row move cannot change a task in which both of its groups are at zero before and after the move: such tasks are skipped.
"""

import numpy as np

from mixbin._validate import Floats
from mixbin.problems.group_lasso.compiled import compiled, half_mean_square, transposed_times
from mixbin.problems.group_lasso.implicit import AT_ZERO, DELTA, LIFTED_SIZE, Bools, Solution, Whole, blank, factor_work, solve

NEARLY_ACTIVE = 1e-9
"""A group counts as leaving zero when its condition holds with a margin smaller than this share of lam^2."""


@compiled
def working_groups(s: Floats, scale: float) -> Bools:
    """The groups to solve for: those that are not at zero, or all of them at a cold start."""
    working = np.empty(len(s), np.bool_)
    for g in range(len(s)):
        working[g] = s[g] > AT_ZERO * scale or s[0] == 0.0
    return working


@compiled
def working_features(labels: Whole, working: Bools) -> tuple[Whole, Whole]:
    """The features of the working groups, and the position of each group among the working groups."""
    place = np.cumsum(working) - 1
    count = 0
    for p in range(len(labels)):
        count += working[labels[p]]
    features = np.empty(count, np.int64)
    count = 0
    for p in range(len(labels)):
        if working[labels[p]]:
            features[count] = p
            count += 1
    return features, place


@compiled
def restricted(X: Floats, labels: Whole, features: Whole, place: Whole, L: int) -> tuple[Floats, Floats]:
    """The parts of X and theta that belong to the working features and groups."""
    Xw, theta = np.empty((len(X), len(features))), np.zeros((L, len(features)))
    for j in range(len(features)):
        theta[place[labels[features[j]]], j] = 1.0
        for i in range(len(X)):
            Xw[i, j] = X[i, features[j]]
    return Xw, theta


@compiled
def solve_screened(
    X: Floats,
    y: Floats,
    labels: Whole,
    lam: float,
    ridge: float,
    scale: float,
    s: Floats,
    w: Floats,
    slope: Floats,
    norms: Floats,
) -> tuple[int, float, int, Whole, Floats, Floats, Solution]:
    """Solve a task over its working groups, and add and remove groups until every group satisfies the condition for zero.

    Sets ``w`` and ``s`` to the solution, ``slope`` to X'r/N and ``norms`` to the squared norms of ``slope`` over the groups.
    Returns the number of factorisations, the last relative step, the multiply-adds, and the working features with their parts of
    X, of theta and of the solution.
    """
    L = len(s)
    working = working_groups(s, scale)
    count, change, work = 0, 0.0, 0
    for _ in range(2 * L):
        features, place = working_features(labels, working)
        n_working = int(np.sum(working))
        Xw, theta = restricted(X, labels, features, place, n_working)
        at = blank(len(y), len(features), n_working)
        if n_working:
            for g in range(L):
                if working[g]:
                    at.s[place[g]] = s[g]
            more, change = solve(Xw, y, theta, True, lam, ridge, scale, at)
            count += more
            work += more * factor_work(len(y), len(features), n_working)
        else:
            at.a[:] = y / len(y)
        for g in range(L):
            s[g] = at.s[place[g]] if working[g] else DELTA * scale
        transposed_times(X, at.a, slope)
        work += X.size
        norms[:] = 0.0
        for p in range(len(labels)):
            norms[labels[p]] += slope[p] * slope[p]
        unchanged = True
        for g in range(L):
            if working[g] and s[g] <= AT_ZERO * scale and norms[g] <= lam * lam:
                working[g] = unchanged = False
            elif not working[g] and norms[g] > lam * lam:
                working[g], s[g], unchanged = True, LIFTED_SIZE * scale, False
        if unchanged:
            break
    w[:] = 0.0
    for j in range(len(features)):
        w[features[j]] = at.w[j]
    return count, change, work, features, Xw, theta, at


@compiled
def add_changes(
    X: Floats,
    y: Floats,
    X_val: Floats,
    y_val: Floats,
    labels: Whole,
    lam: float,
    ridge: float,
    scale: float,
    s: Floats,
    feature: Whole,
    target: Whole,
    changes: Floats,
) -> tuple[float, int]:
    """Return one task's validation loss, and the multiply-adds of all that follows.

    Adds the change of the loss when ``feature[i]`` moves to group ``target[i]`` to ``changes[i]``.
    """
    L, P = len(s), len(labels)
    w, slope, norms, grad = np.empty(P), np.empty(P), np.empty(L), np.empty(P)
    moved, moved_s, moved_slope, moved_norms = labels.copy(), np.empty(L), np.empty(P), np.empty(L)
    work = solve_screened(X, y, labels, lam, ridge, scale, s, w, slope, norms)[2] + 2 * X_val.size
    value = half_mean_square(X_val, y_val, w, grad)
    working, w_here = working_groups(s, scale), w.copy()
    for i in range(len(feature)):
        p, g = feature[i], target[i]
        would_leave_zero = norms[g] + slope[p] * slope[p] > lam * lam * (1.0 - NEARLY_ACTIVE)
        if g == labels[p] or not (working[labels[p]] or working[g] or would_leave_zero):
            continue
        moved[p] = g
        moved_s[:] = s
        square = w_here[p] * w_here[p]
        if working[labels[p]]:
            moved_s[labels[p]] = np.sqrt(max(s[labels[p]] ** 2 - square, 0.01 * s[labels[p]] ** 2))
        if working[g]:
            moved_s[g] = np.sqrt(s[g] ** 2 + square)
        elif would_leave_zero:
            moved_s[g] = LIFTED_SIZE * scale
        work += solve_screened(X, y, moved, lam, ridge, scale, moved_s, w, moved_slope, moved_norms)[2] + 2 * X_val.size
        changes[i] += half_mean_square(X_val, y_val, w, grad) - value
        moved[p] = labels[p]
    return value, work

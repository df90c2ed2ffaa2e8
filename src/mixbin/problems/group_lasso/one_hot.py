"""The group lasso at a binary theta, where most groups of most tasks are at zero (SPEC section 4).

Group l is at zero in the solution exactly when |X_l'r| / N <= lam, r the residuals of the other groups' model: such groups are
left out of the solve and checked afterwards. A row move can change a task only if one of its two groups is not at zero before
and after it.
"""

import numpy as np

from mixbin._validate import Floats
from mixbin.problems.group_lasso.compiled import compiled, half_mean_square, transposed_times
from mixbin.problems.group_lasso.implicit import DELTA, LIFT, SMALL, Bools, Solution, Whole, blank, factor_work, solve

MARGIN = 1e-9
"""A group this close to leaving zero (as a share of lam^2) is solved with."""


@compiled
def working_groups(s: Floats, scale: float) -> Bools:
    """The groups that are not at zero; all of them before a cold start."""
    working = np.empty(len(s), np.bool_)
    for g in range(len(s)):
        working[g] = s[g] > SMALL * scale or s[0] == 0.0
    return working


@compiled
def working_features(labels: Whole, working: Bools) -> tuple[Whole, Whole]:
    """The features of the working groups, and the place of each group among these."""
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
    """X and theta of those features and groups only."""
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
    """The solution in ``w`` and ``s``, X'r/N in ``slope``, its squared norms over the groups in ``norms``.

    Returns factors, last relative step, multiply-adds, and the working features with their part of X, of theta and of the
    solution.
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
        settled = True
        for g in range(L):
            if working[g] and s[g] <= SMALL * scale and norms[g] <= lam * lam:
                working[g] = settled = False
            elif not working[g] and norms[g] > lam * lam:
                working[g], s[g], settled = True, LIFT * scale, False
        if settled:
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
    """One task's validation loss, and the multiply-adds of all that follows.

    How the loss changes when ``feature[i]`` moves to the group ``target[i]`` is added to ``changes``.
    """
    L, P = len(s), len(labels)
    w, slope, norms, grad = np.empty(P), np.empty(P), np.empty(L), np.empty(P)
    moved, moved_s, moved_slope, moved_norms = labels.copy(), np.empty(L), np.empty(P), np.empty(L)
    work = solve_screened(X, y, labels, lam, ridge, scale, s, w, slope, norms)[2] + 2 * X_val.size
    value = half_mean_square(X_val, y_val, w, grad)
    working, w_here = working_groups(s, scale), w.copy()
    for i in range(len(feature)):
        p, g = feature[i], target[i]
        grown = norms[g] + slope[p] * slope[p] > lam * lam * (1.0 - MARGIN)
        if g == labels[p] or not (working[labels[p]] or working[g] or grown):
            continue
        moved[p] = g
        moved_s[:] = s
        square = w_here[p] * w_here[p]
        if working[labels[p]]:
            moved_s[labels[p]] = np.sqrt(max(s[labels[p]] ** 2 - square, 0.01 * s[labels[p]] ** 2))
        if working[g]:
            moved_s[g] = np.sqrt(s[g] ** 2 + square)
        elif grown:
            moved_s[g] = LIFT * scale
        work += solve_screened(X, y, moved, lam, ridge, scale, moved_s, w, moved_slope, moved_norms)[2] + 2 * X_val.size
        changes[i] += half_mean_square(X_val, y_val, w, grad) - value
        moved[p] = labels[p]
    return value, work

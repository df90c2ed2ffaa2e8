"""The l1 models of many tasks, which show which features are used together (docs/maths.md, "A start from the data")."""

import numpy as np

from mixbin._validate import Floats
from mixbin.problems.group_lasso.compiled import compiled
from mixbin.problems.group_lasso.implicit import Whole

PENALTY_SHARE = 0.1
"""The strength of the l1 penalty, as a share of the smallest strength that makes all coefficients of a task zero."""
MOST_SWEEPS, CONVERGED_CHANGE = 200, 1e-4
"""Coordinate descent ends after this many sweeps over the features, or when no coefficient changes by more than this share of the
largest one."""


@compiled
def lasso_models(X: Floats, y: Floats, starts: Whole, share: float, W: Floats) -> None:
    """Set ``W`` to the models of all tasks, argmin 1/(2N) |Xw - y|^2 + mu |w|_1, by coordinate descent."""
    P = X.shape[1]
    for t in range(len(starts) - 1):
        Xt = X[starts[t] : starts[t + 1]].T.copy()  # coordinate descent reads columns; this makes each of them contiguous
        rest = y[starts[t] : starts[t + 1]].copy()
        n, w = len(rest), W[t]
        squares, mu = np.empty(P), 0.0
        for p in range(P):
            squares[p] = np.sum(Xt[p] * Xt[p]) / n
            mu = max(mu, abs(np.sum(Xt[p] * rest)) / n)
        mu *= share
        w[:] = 0.0
        for _ in range(MOST_SWEEPS):
            change = largest = 0.0
            for p in range(P):
                if squares[p] == 0.0:
                    continue
                correlation = np.sum(Xt[p] * rest) / n + squares[p] * w[p]
                new = np.sign(correlation) * max(abs(correlation) - mu, 0.0) / squares[p]
                if new != w[p]:
                    rest -= (new - w[p]) * Xt[p]
                    change = max(change, abs(new - w[p]))
                    w[p] = new
                largest = max(largest, abs(new))
            if change <= CONVERGED_CHANGE * largest:
                break

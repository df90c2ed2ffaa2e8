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
    """Set ``W`` to the models of all tasks, argmin 1/(2N) |Xw - y|^2 + mu |w|_1, by coordinate descent that begins at ``W``."""
    P = X.shape[1]
    squares = np.empty(P)
    for t in range(len(starts) - 1):
        begin, n, w = starts[t], starts[t + 1] - starts[t], W[t]
        Xt, rest = np.empty((P, n)), np.empty(n)  # coordinate descent reads columns; this makes each of them contiguous
        for i in range(n):
            rest[i] = y[begin + i]
            for p in range(P):
                Xt[p, i] = X[begin + i, p]
        mu = 0.0
        for p in range(P):
            square = correlation = 0.0
            for i in range(n):
                square += Xt[p, i] * Xt[p, i]
                correlation += Xt[p, i] * rest[i]
            squares[p], mu = square / n, max(mu, share * abs(correlation) / n)
        for p in range(P):
            if w[p] != 0.0:
                for i in range(n):
                    rest[i] -= w[p] * Xt[p, i]
        for _ in range(MOST_SWEEPS):
            change = largest = 0.0
            for p in range(P):
                if squares[p] == 0.0:
                    continue
                correlation = 0.0
                for i in range(n):
                    correlation += Xt[p, i] * rest[i]
                correlation = correlation / n + squares[p] * w[p]
                new = np.sign(correlation) * max(abs(correlation) - mu, 0.0) / squares[p]
                if new != w[p]:
                    for i in range(n):
                        rest[i] -= (new - w[p]) * Xt[p, i]
                    change = max(change, abs(new - w[p]))
                    w[p] = new
                largest = max(largest, abs(new))
            if change <= CONVERGED_CHANGE * largest:
                break

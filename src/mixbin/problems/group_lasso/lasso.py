"""The l1 models of many tasks, which show which features are used together (docs/maths.md, "A start from the data")."""

import numpy as np

from mixbin._validate import Floats
from mixbin.problems.group_lasso.compiled import compiled
from mixbin.problems.group_lasso.implicit import Whole

SHARE = 0.1
"""The strength of the l1 penalty, as a share of the least one that leaves nothing of a task's model."""
SWEEPS, CLOSE = 200, 1e-4
"""At most so many rounds over the features, until none changes by more than this share of the largest."""


@compiled
def lasso_models(X: Floats, y: Floats, starts: Whole, share: float, W: Floats) -> None:
    """``W`` by the models of all tasks: argmin 1/(2N) |Xw - y|^2 + mu |w|_1, by coordinate descent."""
    P = X.shape[1]
    for t in range(len(starts) - 1):
        Xt = X[starts[t] : starts[t + 1]].T.copy()
        rest = y[starts[t] : starts[t + 1]].copy()
        n, w = len(rest), W[t]
        squares, mu = np.empty(P), 0.0
        for p in range(P):
            squares[p] = np.sum(Xt[p] * Xt[p]) / n
            mu = max(mu, abs(np.sum(Xt[p] * rest)) / n)
        mu *= share
        w[:] = 0.0
        for _ in range(SWEEPS):
            change = largest = 0.0
            for p in range(P):
                if squares[p] == 0.0:
                    continue
                pull = np.sum(Xt[p] * rest) / n + squares[p] * w[p]
                new = np.sign(pull) * max(abs(pull) - mu, 0.0) / squares[p]
                if new != w[p]:
                    rest -= (new - w[p]) * Xt[p]
                    change = max(change, abs(new - w[p]))
                    w[p] = new
                largest = max(largest, abs(new))
            if change <= CLOSE * largest:
                break

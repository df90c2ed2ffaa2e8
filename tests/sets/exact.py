"""Projections in rational arithmetic, by enumerating every breakpoint: slow, exact, and simple enough to be believed."""

from fractions import Fraction

import numpy as np


def knapsack(a, d, b, low, high, r, equality):
    """Minimise 1/2 sum d (x - a)^2 with sum b x = r (or <= r) and low <= x <= high."""
    a, d, b, low, high = ([Fraction(float(v)) for v in part] for part in np.broadcast_arrays(a, d, b, low, high))
    r = Fraction(r)

    def solution(t):
        return [min(max(ai - t * bi / di, li), ui) for ai, di, bi, li, ui in zip(a, d, b, low, high, strict=True)]

    def weight(t):
        return sum(bi * xi for bi, xi in zip(b, solution(t), strict=True))

    if weight(Fraction(0)) == r or (weight(Fraction(0)) < r and not equality):
        return np.array([float(v) for v in solution(Fraction(0))])
    breaks = sorted({di * (ai - v) / bi for ai, di, bi, *box in zip(a, d, b, low, high, strict=True) if bi for v in box})
    after = next((i for i, t in enumerate(breaks) if weight(t) <= r), len(breaks) - 1)
    t = breaks[after]
    if after > 0 and weight(t) < r:
        before = breaks[after - 1]
        t = before + (weight(before) - r) / (weight(before) - weight(t)) * (t - before)
    return np.array([float(v) for v in solution(t)])


def project(case, x):
    """The projection onto a set of the table, group by group."""
    flat = np.clip(np.ravel(x), 0.0, 1.0)
    for index, weights, r, equality in case.groups:
        flat[index] = knapsack(np.ravel(x)[index], 1.0, weights, 0.0, 1.0, r, equality)
    return flat.reshape(np.shape(x))

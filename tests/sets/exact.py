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


def counts_per_group(a, groups, k):
    """Minimise |x - a|^2 with low <= sum of x over each of the ``groups`` (index, low, high) <= high, and sum x = k unless None.

    With the multiplier t of the total, group g has the sum clip(g(t), low, high), where g(t) = sum clip(a - t, 0, 1).
    """
    a = [Fraction(float(v)) for v in a]
    parts = [([a[i] for i in index], Fraction(low), Fraction(high)) for index, low, high in groups]
    ends = [multiplier(part, bound) for part, *bounds in parts for bound in bounds]

    def sums(t):
        return [min(max(total(part, t), low), high) for part, low, high in parts]

    t = Fraction(0)
    if k is not None:
        breaks = sorted({*a, *(v - 1 for v in a), *ends})
        after = next(i for i, point in enumerate(breaks) if sum(sums(point)) <= k)
        t = breaks[after]
        if sum(sums(t)) < k:
            before = breaks[after - 1]
            t = before + (sum(sums(before)) - k) / (sum(sums(before)) - sum(sums(t))) * (t - before)
    x = np.empty(len(a))
    for (index, *_), (part, *_), count in zip(groups, parts, sums(t), strict=True):
        own = t if total(part, t) == count else multiplier(part, count)
        x[index] = [float(min(max(v - own, 0), 1)) for v in part]
    return x


def total(a, t):
    """Sum clip(a - t, 0, 1)."""
    return sum(min(max(v - t, Fraction(0)), Fraction(1)) for v in a)


def multiplier(a, count):
    """The t at which ``total`` is ``count``."""
    breaks = sorted({*a, *(v - 1 for v in a)})
    after = next(i for i, t in enumerate(breaks) if total(a, t) <= count)
    t = breaks[after]
    if total(a, t) == count:
        return t
    before = breaks[after - 1]
    return before + (total(a, before) - count) / (total(a, before) - total(a, t)) * (t - before)


def project(case, x):
    """The projection onto a set of the table, group by group."""
    if case.counts is not None:
        return counts_per_group(np.ravel(x), *case.counts)
    flat = np.clip(np.ravel(x), 0.0, 1.0)
    for index, weights, r, equality in case.groups:
        flat[index] = knapsack(np.ravel(x)[index], 1.0, weights, 0.0, 1.0, r, equality)
    return flat.reshape(np.shape(x))

"""Kiwiel's breakpoint search for the continuous quadratic knapsack, exact to rounding.

minimise 1/2 sum d_i (x_i - a_i)^2 subject to sum b_i x_i = r (or <= r) and l <= x <= u: the solution is
x_i = clip(a_i - t b_i/d_i, l_i, u_i) at the multiplier t where the piecewise linear sum b_i x_i(t) meets r.
"""

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.errors import InfeasibleSet
from mixbin.sets.base import Floats


def project_knapsack(
    a: ArrayLike,
    *,
    metric: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = 1.0,
    capacity: float,
    equality: bool = False,
) -> Floats:
    """The x nearest to ``a`` with lower <= x <= upper and sum weights x <= capacity (or =)."""
    a = check.array("a", a)

    def full(name: str, value: ArrayLike) -> Floats:
        return np.array(np.broadcast_to(check.array(name, value), a.shape))

    d = full("metric", 1.0 if metric is None else metric)
    b = full("weights", 1.0 if weights is None else weights)
    low, high = full("lower", lower), full("upper", upper)
    return solve_knapsack(a, d, b, low, high, check.real("capacity", capacity), equality=check.flag("equality", equality))


def solve_knapsack(a: Floats, d: Floats, b: Floats, low: Floats, high: Floats, capacity: float, *, equality: bool) -> Floats:
    """The same without the checks; all arrays of one shape."""
    x = np.clip(a, low, high)
    weight = float(np.sum(b * x))
    if weight == capacity or (weight < capacity and not equality):
        return x
    least, most = float(np.sum(np.minimum(b * low, b * high))), float(np.sum(np.maximum(b * low, b * high)))
    if capacity < least or (equality and capacity > most):
        raise check.fail("capacity", capacity, f"from {least:g} to {most:g}", error=InfeasibleSet)
    c = b / d
    breaks = np.unique(np.concatenate([((a - low) / c)[c != 0], ((a - high) / c)[c != 0]]))

    def total(t: float) -> float:
        return float(np.sum(b * np.clip(a - t * c, low, high)))

    i, j = 0, breaks.size - 1
    while j - i > 1:
        mid = (i + j) // 2
        i, j = (mid, j) if total(breaks[mid]) >= capacity else (i, mid)
    ends = total(breaks[i]), total(breaks[j])
    share = (ends[0] - capacity) / (ends[0] - ends[1]) if ends[0] > ends[1] else 0.0
    return np.asarray(np.clip(a - (breaks[i] + share * (breaks[j] - breaks[i])) * c, low, high))

"""Tabu search under a capacity: flips that cross the capacity again and again, at a price of weight that follows it.

Single exchanges alone are stuck when one heavy entry should make room for several light ones. Here theta may exceed the capacity
for a while: every step flips the entry that lowers value + price * weight most. The price rises while theta is too heavy and
falls while it is not, so the search stays near the capacity and tries many combinations there. Only points that fit count.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin.methods.tabu import Quadratic, Walk
from mixbin.problem import FALL, Floats

RATES = (0.02, 0.2)
"""Each walk draws the share by which the price changes per step from this range."""
TENURES = (3, 12)
"""Each walk draws the least number of steps that an entry stays as it is from this range."""
FARTHEST_PRICE = 1e4
"""The price stays within this factor of the first one, so that it can always return within few steps."""


def oscillate(at: Quadratic, weights: Floats, capacity: float, rng: np.random.Generator, steps: int, patience: int) -> Walk:
    """Search from ``at``, which must fit, for at most ``steps`` steps and ``patience`` since the best point was found."""
    n = at.theta.size
    half = 0.5 * np.diagonal(at.pairs)
    x, g, value, weight = at.theta.copy(), at.grad.copy(), at.value, float(weights @ at.theta)
    best, best_value, found = x.copy(), value, 0
    sign = np.where(x, -1.0, 1.0)
    free_after = np.zeros(n, dtype=np.int64)
    rate = float(rng.uniform(*RATES))
    tenure = min(int(rng.integers(*TENURES)), n // 3)
    slack = rng.integers(0, tenure + 1, size=steps).tolist()
    first = price = _first_price(g, half, sign, weights)
    step = 0
    for step in range(1, steps + 1):
        change, heavier = sign * g, sign * weights
        change += half
        lowest = best_value - FALL * abs(best_value)
        i = _best_that_fits(change, heavier, lowest - value, capacity - weight)
        if i < 0:
            priced = change + price * heavier
            priced[free_after > step] = np.inf
            i = int(priced.argmin())
        value += float(change[i])
        weight += float(heavier[i])
        g += sign[i] * at.columns[i]
        x[i], sign[i] = not x[i], -sign[i]
        free_after[i] = step + tenure + slack[step - 1]
        price *= 1.0 + rate if weight > capacity else 1.0 - rate
        price = min(max(price, first / FARTHEST_PRICE), first * FARTHEST_PRICE)
        if weight <= capacity and value < lowest:
            best, best_value, found = x.copy(), value, step
        elif step - found >= patience:
            break
    return Walk(best, best_value, step)


def _first_price(g: Floats, half: Floats, sign: Floats, weights: Floats) -> float:
    """The median of what the entries gain or lose per unit of weight."""
    price = float(np.median(np.abs(sign * g + half) / weights))
    return price if price > 0 else 1.0


def _best_that_fits(change: Floats, heavier: Floats, bar: float, room: float) -> int:
    """The flip that leads to the best value so far at a point that fits, whether tabu or not; -1 if there is none."""
    below: NDArray[np.intp] = np.flatnonzero(change < bar)
    below = below[heavier[below] <= room]
    return int(below[change[below].argmin()]) if below.size else -1

"""Kiwiel's breakpoint search for the continuous quadratic knapsack, exact to rounding.

minimise 1/2 sum d_i (x_i - a_i)^2 subject to sum b_i x_i = r (or <= r) and l <= x <= u. The solution is
x_i = clip(a_i - t b_i/d_i, l_i, u_i) at the multiplier t where sum b_i x_i(t), piecewise linear and falling, meets r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.errors import InfeasibleSet
from mixbin.sets.base import Bools, Floats

FARTHEST_ORIGIN = 1e3
"""If the multiplier lies more than this many box sizes from the origin, the search is repeated relative to a nearer origin:
entries near the multiplier would otherwise be differences of large numbers, and lose their digits."""
LARGEST_BOUND = 1e150
"""Bounds of entries may be at most this large: products of larger ones overflow."""
CORRECTIONS = 4
"""At most this many times, what rounding left of the capacity is shared out among the free entries."""
CORRECTED_ABOVE = 1e-12
"""The sum is corrected while it misses the capacity by more than this share of it."""


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
    """Minimise 1/2 sum metric (x - a)^2 over lower <= x <= upper with sum weights x <= capacity.

    Parameters
    ----------
    a : array
        The point to project, of any shape.
    metric : float or array, optional
        The positive diagonal d of the norm; 1 by default.
    weights : float or array, optional
        The weights b of the sum; 1 by default. An entry with a negative weight is solved with its sign flipped, an entry with
        weight zero is only clipped.
    lower : float or array, default 0
        The lower bounds, finite.
    upper : float or array, default 1
        The upper bounds, finite.
    capacity : float
        The right-hand side r.
    equality : bool
        Whether the sum must equal ``capacity`` instead of being at most that.

    Returns
    -------
    array of the shape of a
        The projection.

    Raises
    ------
    InfeasibleSet
        If no x within the bounds meets the capacity.

    Examples
    --------
    >>> from mixbin.sets import project_knapsack
    >>> project_knapsack([1.0, 1.0], weights=[1.0, 3.0], capacity=2.0)
    array([0.8, 0.4])
    """
    a = check.array("a", a)
    d, b = (
        _like(a, *pair)
        for pair in (("metric", 1.0 if metric is None else metric), ("weights", 1.0 if weights is None else weights))
    )
    low, high = _like(a, "lower", lower), _like(a, "upper", upper)
    for name, ends in (("lower", low), ("upper", high)):
        if np.abs(ends).max(initial=0.0) > LARGEST_BOUND:
            must = f"from {-LARGEST_BOUND:g} to {LARGEST_BOUND:g}"
            remedy = "rescale the problem; products of larger bounds overflow"
            raise check.fail(name, float(ends[np.abs(ends).argmax()]), must, remedy)
    r, equality = check.real("capacity", capacity), check.flag("equality", equality)
    if a.size and not d.min() > 0.0:
        raise check.fail("metric", float(d.min()), "positive", "use a small number such as 1e-6 instead of zero")
    if np.any(low > high):
        i = int(np.argmax(low > high))
        raise check.fail(
            "lower", float(low[i]), f"at most upper, {high[i]:g}, at index {i}", "swap them or widen the box", InfeasibleSet
        )
    least, most, largest = _reachable_sums(b, low, high)
    rounding = 1e-12 * largest
    if r < least - rounding or (equality and r > most + rounding):
        must = f"from {least:g} to {most:g}" if equality else f"at least {least:g}"
        raise check.fail("capacity", r, f"{must}, the sums that the bounds allow", "change it or widen the bounds", InfeasibleSet)
    _reachable_sums(scaled(b, r)[0], low, high)  # the search works on the scaled weights, whose sums must be finite too
    solution = solve_knapsack(a.ravel(), d, b, low, high, r, equality=equality)
    if not check.is_finite(solution):
        raise check.fail(
            "metric", float(d.min()), "of the same order as weights and a", "rescale one of them; their ratio overflows"
        )
    return solution.reshape(a.shape)


def _reachable_sums(b: Floats, low: Floats, high: Floats) -> tuple[float, float, float]:
    """The smallest and the largest value of sum b x within the bounds, and the sum of the sizes of its terms."""
    with np.errstate(over="ignore", invalid="ignore"):
        ends = np.stack([b * low, b * high])
        reach = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum()), float(np.abs(ends).max(axis=0).sum())
    if not np.isfinite(reach[2]):
        raise check.fail(
            "weights", float(np.abs(b).max()), "small enough that their sum with the bounds is finite", "scale them down"
        )
    return reach


def _like(a: Floats, name: str, value: ArrayLike) -> Floats:
    """``value`` as a vector with one number per entry of ``a``; a single number is repeated."""
    x = check.array(name, value)
    if x.shape not in ((), a.shape):
        raise check.fail(name, x, f"a number or an array of shape {a.shape}, the shape of a")
    return np.broadcast_to(x, a.shape).ravel()


def solve_knapsack(a: Floats, d: Floats, b: Floats, low: Floats, high: Floats, r: float, *, equality: bool) -> Floats:
    """What ``project_knapsack`` computes, for vectors of equal length and without its checks."""
    b, r = scaled(b, r)
    x = np.clip(a, low, high)
    if np.dot(b, x) == r or (np.dot(b, x) < r and not equality):
        return x
    with np.errstate(over="ignore"):
        weighted, sign = b / d != 0.0, np.sign(b)
    parts = (sign * a, d, np.abs(b), np.where(b < 0.0, -high, low), np.where(b < 0.0, -low, high))
    if weighted.all():
        return np.asarray(sign * _solve_equality(*parts, r) + 0.0)  # + 0.0 turns -0.0 into 0.0
    a, d, b, low, high = (part[weighted] for part in parts)
    x[weighted] = sign[weighted] * _solve_equality(a, d, b, low, high, r) + 0.0
    return x


def scaled(b: Floats, r: float) -> tuple[Floats, float]:
    """Weights and capacity divided by the power of two (which is exact) that brings the largest weight between 1/2 and 1.

    The search squares weights: unscaled, the squares of weights above 1e154 overflow and those of weights below 1e-162 vanish.
    """
    exponent = int(np.frexp(np.abs(b).max(initial=0.0))[1])
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(b, -exponent), float(np.ldexp(r, -exponent))


def _solve_equality(a: Floats, d: Floats, b: Floats, low: Floats, high: Floats, r: float) -> Floats:
    """The solution with sum b x = r, for positive weights. If r is out of reach, all entries are at the bound nearest to it."""
    if np.dot(b, high) <= r:
        return high.copy()
    if np.dot(b, low) >= r:
        return low.copy()
    with np.errstate(over="ignore"):
        c = b / d
    box = float(max(np.abs(low).max(), np.abs(high).max()))
    relative, origins = a, set[int]()
    # An entry whose breakpoints overflow does not influence the search. If all of them overflow, the solution is NaN, which the
    # caller turns into an error.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        while True:
            t = _multiplier(relative, c, b, low, high, r)
            nearest = int(np.argmin(np.abs(relative / c - t)))
            if abs(t) * float(c.max()) <= FARTHEST_ORIGIN * box or nearest in origins:
                return _corrected(np.clip(relative - t * c, low, high), c, b, low, high, r)
            origins.add(nearest)
            relative = _relative_to(nearest, a, d, b)


def _corrected(x: Floats, c: Floats, b: Floats, low: Floats, high: Floats, r: float) -> Floats:
    """``x`` with the difference of sum b x from the capacity shared out among the entries strictly between their bounds.

    The difference is rounding, but an entry of great weight magnifies the error of its last digit.
    """
    for _ in range(CORRECTIONS):
        excess = float(np.dot(b, x)) - r
        free = (x > low) & (x < high) if abs(excess) > CORRECTED_ABOVE * abs(r) else np.zeros(x.shape, dtype=np.bool_)
        slope = float(np.dot(b[free], c[free]))
        if not slope > 0.0:
            break
        x[free] = np.clip(x[free] - excess / slope * c[free], low[free], high[free])
    return x


def _multiplier(a: Floats, c: Floats, b: Floats, low: Floats, high: Floats, r: float) -> float:
    """The t at which g(t) = sum b clip(a - t c, low, high) equals r, by bisection of the sorted breakpoints."""
    rest = _Entries(a, c, b, low, high, (a - high) / c, (a - low) / c)
    points = np.sort(np.concatenate([rest.leave, rest.reach]))
    i, j = 0, points.size - 1
    # An entry without a breakpoint between points[i] and points[j] is linear there and need not be looked at again: ``total``
    # adds up the values of these entries at points[i], ``slope`` minus their slopes.
    total, slope = 0.0, 0.0
    while True:
        left, right = points[i], points[j]
        inside = ((rest.leave > left) & (rest.leave < right)) | ((rest.reach > left) & (rest.reach < right))
        decided, rest = rest.where(~inside), rest.where(inside)
        total += decided.weight(left)
        slope += float(np.sum((decided.b * decided.c)[(decided.leave <= left) & (decided.reach >= right)]))
        if rest.a.size == 0:
            break
        middle = (i + j) // 2
        fall = slope * (points[middle] - left) if slope > 0.0 else 0.0
        if total - fall + rest.weight(points[middle]) >= r:
            i, total = middle, total - fall
        else:
            j = middle
    if total <= r:
        return float(left)
    return float(min(left + (total - r) / slope, right) if slope > 0.0 else right)


class _Entries(NamedTuple):
    """Entries clip(a - t c, low, high) of weight b; each leaves its upper bound at t = leave and meets its lower one at reach."""

    a: Floats
    c: Floats
    b: Floats
    low: Floats
    high: Floats
    leave: Floats
    reach: Floats

    def where(self, mask: Bools) -> _Entries:
        index = np.flatnonzero(mask)
        return _Entries(*(part[index] for part in self))

    def weight(self, t: float) -> float:
        """The sum b x at ``t``. At and beyond a breakpoint the entry equals its bound to the last bit, however large t is.

        If the two breakpoints of an entry round to the same number, the entry jumps there from one bound to the other; the sum is
        then continuous from the right.
        """
        x = np.clip(self.a - t * self.c, self.low, self.high)
        np.copyto(x, self.high, where=t <= self.leave)
        np.copyto(x, self.low, where=t >= self.reach)
        return float(np.dot(self.b, x))


def _relative_to(j: int, a: Floats, d: Floats, b: Floats) -> Floats:
    """a_i - t b_i/d_i at t = d_j a_j/b_j, at which entry j is 0.

    The difference is computed as (a_i b_j d_i - a_j d_j b_i) / (b_j d_i) with the rounding errors of all products, because the
    two products nearly cancel for the entries that matter.
    """
    # Dividing by a power of two is exact and keeps the products from overflowing.
    exponent = int(np.frexp(np.abs(a).max())[1])
    a = np.ldexp(a, -exponent)
    q, q_error = _two_product(b[j], d)
    p, p_error = _two_product(d[j], b)
    u, u_error = _two_product(a, q)
    v, v_error = _two_product(a[j], p)
    difference = (u - v) + ((u_error - v_error) + (a * q_error - a[j] * p_error))
    return np.asarray(np.ldexp(difference / q, exponent))


def _two_product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The rounded product and its exact rounding error (Dekker's TwoProduct)."""
    p = x * y
    x_high, y_high = _upper_half(x), _upper_half(y)
    x_low, y_low = x - x_high, y - y_high
    return p, ((x_high * y_high - p) + x_high * y_low + x_low * y_high) + x_low * y_low


def _upper_half(x: Floats) -> Floats:
    """The upper 26 bits of each number (Veltkamp's splitting by 2^27 + 1)."""
    scaled = 134217729.0 * x
    return scaled - (scaled - x)

"""Differences of G along a line within the sets, and whether they agree with the slope that a gradient promises."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mixbin.problem import Floats
from mixbin.sets import BinarySet, Box

Line = Callable[[float], float]
"""G at a distance t along a direction; NaN if that point lies outside the sets."""
Value = Callable[[Floats, Floats], float]
"""G at (theta, lam)."""

LENGTHS = (1e-3, 1e-4, 1e-2, 1e-5)
"""Of the differences: a slope must agree with one of them. A wrong gradient agrees with none, while noise and bends of G spoil
some of them only."""
NOISE = 1e-10
"""Relative to the value, what a slope may differ by in any case."""
CONSISTENT = 0.1
"""Differences of two lengths confirm each other if they differ by at most this share of their distance from the slope."""
KINK = 0.5
"""G has a kink if its one-sided slopes differ by more than this share of the distance between difference and slope."""
LAST_DIGITS = 1e-14
"""A value that was computed in float64 is trusted up to this share of its size, one computed in float32 up to ..."""
LAST_DIGITS_SINGLE = 1e-6
"""... this one."""


class Comparison(NamedTuple):
    """Differences along one line beside the slope that the gradient promises."""

    agrees: bool
    seen: dict[float, float]
    """The difference for each length that stays within the sets, until one agrees."""

    def nearest(self, slope: float) -> float:
        """The difference that is nearest to the slope."""
        return min(self.seen.values(), key=lambda it: abs(it - slope))


def along_theta(value: Value, theta_set: BinarySet, theta: Floats, lam: Floats, along: Floats) -> Line:
    """G at theta + t * along."""

    def line(t: float) -> float:
        there = theta + t * along
        if there.min() < 0.0 or there.max() > 1.0 or not theta_set.contains(there):
            return np.nan
        return value(there, lam)

    return line


def along_lam(value: Value, lam_set: Box, theta: Floats, u: Floats, along: Floats) -> Line:
    """G at the lam that u + t * along stands for in the unit box."""

    def line(t: float) -> float:
        there = u + t * along
        if there.min() < 0.0 or there.max() > 1.0:
            return np.nan
        return value(theta, lam_set.decode(there))

    return line


def difference(line: Line, h: float) -> float:
    """The slope at 0 by the central difference of four points, whose error is of fourth order."""
    return (8 * (line(h) - line(-h)) - (line(2 * h) - line(-2 * h))) / (12 * h)


def compare(line: Line, slope: float, allowed: float, lengths: Sequence[float] = LENGTHS) -> Comparison:
    """Compare the slope with differences of several lengths until one agrees with it up to ``allowed``."""
    seen: dict[float, float] = {}
    for h in lengths:
        measured = difference(line, h)
        if not np.isfinite(measured):
            continue
        seen[h] = measured
        if abs(measured - slope) <= allowed:
            return Comparison(True, seen)
    return Comparison(False, seen)


def confirmed(line: Line, slope: float, compared: Comparison, value: float) -> float | None:
    """The slope by differences, if it is certain that the promised one is wrong; None if noise or a kink may be the reason.

    It is certain if differences of two neighbouring lengths agree with each other far better than with the promised slope, if an
    evaluation can be repeated, and if the slopes to both sides agree.
    """
    again = line(0.0)
    for h, measured in sorted(compared.seen.items()):
        longer = compared.seen.get(_next_length(h), np.nan)
        off = abs(measured - slope)
        # The digits that a value carries limit what its differences can tell, and so does a value that changes when repeated.
        limit = _digits(value, again) * abs(value) + 10.0 * abs(again - value)
        if not (abs(longer - measured) <= CONSISTENT * off and off * h > limit):
            continue
        right, left = (line(h) - again) / h, (again - line(-h)) / h
        if abs(right - left) <= KINK * off:
            return measured
    return None


def _next_length(h: float) -> float:
    longer = [length for length in LENGTHS if length > h]
    return min(longer, default=np.nan)


def _digits(*values: float) -> float:
    """The share of its size up to which a value is trusted: one that float32 holds exactly may have been computed in float32."""
    with np.errstate(over="ignore"):
        single = all(float(np.float32(value)) == value for value in values)
    return LAST_DIGITS_SINGLE if single else LAST_DIGITS

"""How far a point may violate a constraint and still count as a point of the set: as far as rounding can take it."""

from mixbin.sets.base import Floats

MEMBERSHIP_TOLERANCE = 1e-9
"""A constraint holds if it is violated by at most this share of its right-hand side."""


def in_unit_box(x: Floats) -> bool:
    """Whether all entries lie in [0, 1], up to rounding."""
    return bool(x.min() >= -MEMBERSHIP_TOLERANCE and x.max() <= 1.0 + MEMBERSHIP_TOLERANCE)

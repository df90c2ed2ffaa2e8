"""What membership of a set forgives: the rounding of sums and steps, nothing that a user would see."""

from mixbin.sets.base import Floats

ROUNDING = 1e-9
"""Relative to the right-hand side of a constraint."""


def in_unit_box(x: Floats) -> bool:
    """Whether all entries lie in [0, 1], up to rounding."""
    return bool(x.min() >= -ROUNDING and x.max() <= 1.0 + ROUNDING)

"""The strength of a penalty: a fixed number, or a range in which it is optimised as the continuous variable ``lam``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.sets import Box

AT_BOUND = 1e-6
"""A strength whose logarithm is this near to that of a bound counts as being there."""


@dataclass(frozen=True)
class Strength:
    """A fixed strength above 0, or a pair (low, high) of numbers above 0 between which the strength is optimised."""

    bounds: float | tuple[float, float]

    @property
    def fixed(self) -> bool:
        """Whether the strength is a fixed number, so that there is no ``lam`` to optimise."""
        return isinstance(self.bounds, float)

    def box(self, log: bool = True) -> Box:
        """The set of ``lam``: a box of shape (), or an empty box if the strength is fixed."""
        return Box.empty() if isinstance(self.bounds, float) else Box(*self.bounds, log=log)

    def value(self, lam: ArrayLike) -> float:
        """The strength at ``lam``, which must be empty if the strength is fixed."""
        x = check.array("lam", lam, shape=(0,) if self.fixed else ())
        if isinstance(self.bounds, float):
            return self.bounds
        return check.real("lam", float(x), low=0, open_low=True, remedy="project it on lam_set")

    def values(self, lam: Floats) -> Floats:
        """The strength at each of many ``lam``, which are entries of the first two axes."""
        return np.full(lam.shape[:2], self.bounds) if isinstance(self.bounds, float) else lam

    def lam(self, value: float) -> float | tuple[()]:
        """The ``lam`` at which the strength is ``value``; empty if the strength is fixed."""
        return () if self.fixed else value

    def at_bound(self, name: str, value: float, remedy: str, sides: tuple[str, ...] = ("lower", "upper")) -> str | None:
        """A sentence if ``value``, which the user calls ``name``, ended at one of these bounds of its range."""
        if isinstance(self.bounds, float):
            return None
        for bound, side in zip(self.bounds, ("lower", "upper"), strict=True):
            if side in sides and abs(np.log(value) - np.log(bound)) < AT_BOUND:
                return f"{name} ended at the {side} bound {bound:.3g} of its range; {remedy}"
        return None

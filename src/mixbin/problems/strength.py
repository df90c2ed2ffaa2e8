"""The strength of a penalty: a fixed number, or a range in which it is optimised as the continuous variable ``lam``."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.sets import Box


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

    def lam(self, value: float) -> float | tuple[()]:
        """The ``lam`` at which the strength is ``value``; empty if the strength is fixed."""
        return () if self.fixed else value

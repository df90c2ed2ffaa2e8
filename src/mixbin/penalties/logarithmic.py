"""A penalty of the family of Lucidi & Rinaldi (2010): logarithms, which are steep near binary points and flat between them."""

from dataclasses import dataclass

import numpy as np

from mixbin import _validate as check
from mixbin.penalties.base import Floats, Penalty

SMALLEST, LARGEST = 1e-50, 1e50
"""The range of alpha: outside it, alpha^2 times the weight of the penalty can overflow or vanish."""


@dataclass(frozen=True)
class Logarithmic(Penalty):
    """phi(theta) = c sum_i log(1 + theta_i (1 - theta_i) / c) with c = alpha (1 + alpha).

    This is the family's log(t + alpha) + log(1 - t + alpha), shifted so that it vanishes exactly at binary points, and scaled so
    that it has the slopes of ``Quadratic`` there, +1 at 0 and -1 at 1. It tends to ``Quadratic`` as alpha grows. Between binary
    points it is flatter: it pushes entries near one half less than ``Quadratic``, and entries near 0 or 1 just as much.

    Parameters
    ----------
    alpha : float
        From 1e-50 to 1e50. The smaller alpha is, the flatter phi is around one half.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> mb.Logarithmic(0.1).gradient(np.array([0.0, 0.5, 1.0]))
    array([ 1.,  0., -1.])
    """

    alpha: float = 0.1

    def __post_init__(self) -> None:
        remedy = "a large alpha gives Quadratic(), a small one hardly any penalty"
        check.real("alpha", self.alpha, low=SMALLEST, high=LARGEST, remedy=remedy)

    def value(self, theta: Floats) -> float:
        """phi(theta)."""
        c = self.alpha * (1.0 + self.alpha)
        # log1p, because log(1 + x) has no correct digit for x below 1e-16, which is where theta is almost binary.
        return c * float(np.log1p(theta * (1.0 - theta) / c).sum())

    def add_gradient(self, grad: Floats, theta: Floats, weight: float) -> Floats:
        """``grad + weight (1 - 2 theta) c / (c + theta (1 - theta))``."""
        c = self.alpha * (1.0 + self.alpha)
        out = (1.0 - 2.0 * theta) * (weight * c)
        out /= c + theta * (1.0 - theta)
        out += grad
        return out

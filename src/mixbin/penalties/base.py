"""What a penalty offers: phi >= 0 on [0, 1]^p, concave, zero exactly on binary points."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Penalty(ABC):
    """A concave, differentiable function phi of theta that vanishes exactly on binary points.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> isinstance(mb.Quadratic(), mb.penalties.Penalty), mb.Quadratic().value(np.array([0.0, 1.0]))
    (True, 0.0)
    """

    @abstractmethod
    def value(self, theta: Floats) -> float:
        """phi(theta)."""

    @abstractmethod
    def add_gradient(self, grad: Floats, theta: Floats, weight: float) -> Floats:
        """``grad + weight * phi'(theta)`` in a new array."""

    def gradient(self, theta: Floats) -> Floats:
        """phi'(theta)."""
        return self.add_gradient(np.zeros_like(theta), theta, 1.0)

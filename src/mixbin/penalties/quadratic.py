"""The paper's penalty, phi(theta) = sum_i theta_i (1 - theta_i)."""

import numpy as np

from mixbin.penalties.base import Floats, Penalty


class Quadratic(Penalty):
    """phi(theta) = sum_i theta_i (1 - theta_i), with gradient 1 - 2 theta (Raghavachari 1969).

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> mb.Quadratic().value(np.array([0.0, 0.5, 1.0])), mb.Quadratic().gradient(np.array([0.0, 0.5, 1.0]))
    (0.25, array([ 1.,  0., -1.]))
    """

    def value(self, theta: Floats) -> float:
        """phi(theta), summed as products theta_i (1 - theta_i): sum(theta) - theta'theta would cancel near binary points."""
        return float(np.vdot(theta, 1.0 - theta))

    def add_gradient(self, grad: Floats, theta: Floats, weight: float) -> Floats:
        """``grad + weight (1 - 2 theta)``, in three passes over one new array, since it runs in every step of a solver."""
        out = np.multiply(theta, -2.0 * weight)
        out += grad
        out += weight
        return out

    def __repr__(self) -> str:
        return "Quadratic()"

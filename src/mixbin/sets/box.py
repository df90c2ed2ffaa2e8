"""The box l <= lam <= u of the continuous hyperparameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin._digest import contents_digest
from mixbin._validate import Floats
from mixbin.errors import InfeasibleSet, InvalidInput

LARGEST_SLOPE = 1e150
"""Derivatives in lam are clipped to this size: solvers square them, and the square must not overflow."""


class Box:
    """All ``lam`` with ``lower <= lam <= upper``; ``Box.empty()`` is the box without dimensions.

    Parameters
    ----------
    lower, upper : float or array
        The bounds, of equal shape, finite.
    log : bool
        Whether solvers take their steps in log(lam), as they should for quantities that range over decades; needs ``lower > 0``.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Box(1e-3, 10.0, log=True)
    Box(0.001, 10, log=True)
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike, *, log: bool = False) -> None:
        low = np.array(check.array("lower", lower))
        high = np.array(check.array("upper", upper))
        if low.shape != high.shape:
            raise InvalidInput(
                f"lower and upper must have the same shape, got {low.shape} and {high.shape}; give one bound per entry of lam"
            )
        with np.errstate(over="ignore"):
            wide = ~np.isfinite(high - low)
        if wide.any():
            i = tuple(int(j) for j in np.argwhere(wide)[0])
            raise InvalidInput(f"upper - lower must be finite, got {low[i]} and {high[i]} at index {i}; narrow the box")
        if not np.all(low <= high):
            i = tuple(int(j) for j in np.argwhere(low > high)[0])
            raise InfeasibleSet(f"lower must not exceed upper, got {low[i]} > {high[i]} at index {i}; swap them or widen the box")
        self.log = check.flag("log", log)
        if self.log and not np.all(low > 0):
            raise InvalidInput(f"lower must be positive when log=True, got {low.min():g}; use log=False or a positive bound")
        low.flags.writeable = high.flags.writeable = False
        self.lower, self.upper = low, high
        # The bounds on the scale of the unit box, kept because every step of a solver needs them.
        self._low: Floats = np.log(low) if self.log else low
        self._width: Floats = (np.log(high) if self.log else high) - self._low

    @classmethod
    def empty(cls) -> Box:
        """The box of a problem without continuous hyperparameters, of shape (0,)."""
        return cls(np.empty(0), np.empty(0))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of lam."""
        return self.lower.shape

    @property
    def size(self) -> int:
        """The number of entries of lam."""
        return self.lower.size

    def project(self, x: ArrayLike) -> Floats:
        """``x`` clipped to the bounds."""
        return np.asarray(np.clip(check.array("x", x, shape=self.shape), self.lower, self.upper))

    def contains(self, x: ArrayLike) -> bool:
        """Whether ``x`` lies within the bounds."""
        x = check.array("x", x, shape=self.shape)
        return bool(np.all((self.lower <= x) & (x <= self.upper)))

    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """The middle of the box (the geometric one with ``log``), or with ``rng`` a uniform random point on the same scale."""
        if rng is None:
            return self.decode(np.full(self.shape, 0.5))
        return self.decode(np.asarray(check.generator("rng", rng).uniform(size=self.shape)))

    def fingerprint(self) -> str:
        """A hash of the exact bounds, by which a checkpoint recognises the box."""
        return contents_digest(self)

    def encode(self, lam: Floats) -> Floats:
        """The point of the unit box that stands for ``lam``. Solvers work there, so that all entries have comparable ranges."""
        x = np.log(lam) if self.log else lam
        return np.asarray(np.divide(x - self._low, self._width, out=np.zeros(self.shape), where=self._width > 0))

    def decode(self, u: Floats) -> Floats:
        """The ``lam`` that a point of the unit box stands for; it lies within the bounds to the last bit."""
        x = self._low + u * self._width
        return np.asarray(np.minimum(np.maximum(np.exp(x) if self.log else x, self.lower), self.upper))

    def encode_gradient(self, lam: Floats, grad: Floats) -> Floats:
        """dG/du from dG/dlam (chain rule; with ``log``, dlam/du = lam * width)."""
        with np.errstate(over="ignore"):
            slope = grad * self._width * (lam if self.log else 1.0)
        return np.asarray(np.minimum(np.maximum(slope, -LARGEST_SLOPE), LARGEST_SLOPE))

    def __repr__(self) -> str:
        log = ", log=True" if self.log else ""
        if self.size == 0:
            return "Box.empty()"
        if self.lower.ndim == 0:
            return f"Box({float(self.lower):g}, {float(self.upper):g}{log})"
        return f"Box(shape={self.shape}{log})"

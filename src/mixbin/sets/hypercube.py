"""The hypercube [0, 1]^p: every variable on its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.sets._membership import in_unit_box
from mixbin.sets._moves import singles
from mixbin.sets._weights import flip_weight, inverse
from mixbin.sets.base import BinarySet, Bools, Floats, Moves


class Hypercube(BinarySet):
    """All theta with 0 <= theta <= 1.

    Parameters
    ----------
    shape : int or tuple of int
        The shape of theta.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Hypercube(3).project([-0.5, 0.5, 1.5])
    array([0. , 0.5, 1. ])
    """

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        sides = shape if isinstance(shape, tuple) else (shape,)
        remedy = "such as Hypercube(20) or Hypercube((4, 5))"
        if not sides:
            raise check.fail("shape", shape, "a whole number or a tuple of them, not empty", remedy)
        shape = tuple(check.whole("shape", side, low=1, remedy=remedy) for side in sides)
        self.shape = check.shape_that_fits("shape", shape)

    def project(self, x: ArrayLike) -> Floats:
        """``x`` clipped to [0, 1]."""
        return np.asarray(np.clip(check.array("x", x, shape=self.shape), 0.0, 1.0))

    def vertex(self, x: ArrayLike) -> Bools:
        """Each entry rounded to the nearer of 0 and 1; 1/2 is rounded up."""
        return np.asarray(check.array("x", x, shape=self.shape) >= 0.5)

    def linear_oracle(self, g: ArrayLike) -> Floats:
        """1 where ``g`` is negative, else 0."""
        return (check.array("g", g, shape=self.shape) < 0).astype(np.float64)

    def contains(self, x: ArrayLike) -> bool:
        """Whether all entries lie in [0, 1], up to rounding."""
        return in_unit_box(check.array("x", x, shape=self.shape))

    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """1/2 everywhere, or with ``rng`` a uniform point."""
        return np.full(self.shape, 0.5) if rng is None else check.generator("rng", rng).uniform(size=self.shape)

    def moves(self, theta: ArrayLike, grad: ArrayLike | None = None) -> Iterator[Moves]:
        """All single flips."""
        theta = check.binary("theta", theta, shape=self.shape).ravel()
        index = np.arange(self.size)
        change = None
        if grad is not None:
            slope = check.array("grad", grad, shape=self.shape).ravel()
            change = np.where(theta, -slope, slope)
        return singles(np.where(theta, index, -1), np.where(theta, -1, index), change)

    def n_moves(self, theta: ArrayLike) -> int:
        """One flip per entry."""
        return check.binary("theta", theta, shape=self.shape).size

    def epsilon_star(self, theta: ArrayLike, grad: ArrayLike) -> float:
        """The largest eps with grad_i < 1/eps where theta_i = 1 and grad_i > -1/eps where theta_i = 0."""
        on = check.binary("theta", theta, shape=self.shape)
        return inverse(flip_weight(on, check.array("grad", grad, shape=self.shape)))

    def violation(self, theta: ArrayLike) -> float:
        """0: every binary point is feasible."""
        check.binary("theta", theta, shape=self.shape)
        return 0.0

    def cardinality(self) -> int:
        """2^p."""
        return int(2**self.size)

    def vertices(self) -> Iterator[Bools]:
        """All 2^p binary points."""
        for bits in itertools.product((False, True), repeat=self.size):
            yield np.array(bits).reshape(self.shape)

    def __repr__(self) -> str:
        return f"Hypercube({self.shape[0] if len(self.shape) == 1 else self.shape})"

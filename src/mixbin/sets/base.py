"""What every set of relaxed binary variables offers (docs/maths.md, "Sets"): geometry only, nothing of G."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._digest import contents_digest

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Moves = tuple[NDArray[np.intp], NDArray[np.intp]]


class BinarySet(ABC):
    """A convex, compact subset Theta of [0, 1]^p together with its binary points Theta_bin.

    Arrays that go in and come out have the set's ``shape``. Points of Theta are float64, binary points are bool.
    """

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number p of variables."""
        return math.prod(self.shape)

    @abstractmethod
    def project(self, x: ArrayLike) -> Floats:
        """The nearest point of the set in the Euclidean norm, exact to rounding; never an alias of ``x``."""

    @abstractmethod
    def vertex(self, x: ArrayLike) -> Bools:
        """The feasible binary point nearest to ``x``, which attains dist_inf; ties go to the lowest index."""

    @abstractmethod
    def linear_oracle(self, g: ArrayLike) -> Floats:
        """A point of the set that minimises <g, .>; ties go to the lowest index."""

    @abstractmethod
    def contains(self, x: ArrayLike) -> bool:
        """Whether ``x`` lies in the set, up to rounding."""

    @abstractmethod
    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """A point to begin from: the centre, or with ``rng`` a random interior point."""

    @abstractmethod
    def moves(self, theta: ArrayLike, grad: ArrayLike | None = None) -> Iterator[Moves]:
        """All single moves from a binary ``theta`` to other binary points of the set, each once, in batches.

        A batch is two arrays (off, on) of flat indices: entry off[i] becomes 0 and on[i] becomes 1, with -1 for none.
        With ``grad`` the moves whose first-order change grad[on] - grad[off] is lowest come first, within each batch exactly,
        between batches roughly, so that a caller can stop early without listing them all.
        """

    @abstractmethod
    def n_moves(self, theta: ArrayLike) -> int:
        """How many moves ``moves`` yields, without listing them."""

    @abstractmethod
    def epsilon_star(self, theta: ArrayLike, grad: ArrayLike) -> float:
        """Below this eps a binary ``theta`` is a strict local minimiser of <grad, .> + phi/eps, above it none; may be inf."""

    @abstractmethod
    def violation(self, theta: ArrayLike) -> float:
        """By how much a binary ``theta`` misses the set, in the set's own unit; 0 when it is feasible."""

    @abstractmethod
    def cardinality(self) -> int:
        """The number of binary points (an upper bound for Knapsack, where counting is as hard as solving)."""

    @abstractmethod
    def vertices(self) -> Iterator[Bools]:
        """All binary points of the set, one at a time."""

    def fingerprint(self) -> str:
        """A hash of everything that makes this set what it is, for checkpoints; equal for equal sets only.

        It covers the class and all attributes. A set that keeps something else in them, such as a cache, overrides it.
        """
        return contents_digest(self)

    exchange_key: float | Floats = 0.0
    """Entries with equal keys can exchange mass without leaving the set; broadcasts to ``shape``."""

    def tangent(self, g: ArrayLike) -> Floats:
        """``g`` without the part that no feasible direction sees (the normals of the equality constraints)."""
        return np.array(check.array("g", g, shape=self.shape))

    def tangent_size(self, g: ArrayLike) -> float:
        """The largest entry of ``tangent(g)``, in absolute value."""
        along = self.tangent(g)
        return float(max(along.max(), -along.min())) if along.size else 0.0

    def round(self, x: ArrayLike) -> Bools:
        """Simple rounding, entry by entry (1/2 goes up); may leave the set."""
        return np.asarray(check.array("x", x, shape=self.shape) >= 0.5)

    def distance_to_binary(self, x: ArrayLike) -> float:
        """dist_inf(x, Theta_bin) = max |x - vertex(x)|."""
        x = check.array("x", x, shape=self.shape)
        return float(np.max(np.abs(x - self.vertex(x))))

"""What every set of relaxed binary variables offers (docs/maths.md, "Sets"): geometry only, nothing of G."""

from __future__ import annotations

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

    Examples
    --------
    >>> import mixbin as mb
    >>> isinstance(mb.Budget(4, 2), mb.sets.BinarySet), mb.Budget(4, 2).size, mb.Budget(4, 2).n_moves([1, 1, 0, 0])
    (True, 4, 4)
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
        """A point of the set that minimises ``<g, .>``; ties go to the lowest index."""

    @abstractmethod
    def contains(self, x: ArrayLike) -> bool:
        """Whether ``x`` lies in the set, up to rounding."""

    @abstractmethod
    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """A point for a solver to start from: the centre, or with ``rng`` a random interior point."""

    @abstractmethod
    def moves(self, theta: ArrayLike, grad: ArrayLike | None = None) -> Iterator[Moves]:
        """All single moves from a binary ``theta`` to other binary points of the set, each once, in batches.

        A batch is two arrays (off, on) of flat indices: entry off[i] becomes 0 and entry on[i] becomes 1; -1 means no entry.
        With ``grad``, the moves with the lowest first-order change grad[on] - grad[off] come first: exactly so within each batch,
        roughly so from batch to batch. A caller can therefore stop early, and the moves are not all listed in memory.
        """

    @abstractmethod
    def n_moves(self, theta: ArrayLike) -> int:
        """How many moves ``moves`` yields, without listing them."""

    @abstractmethod
    def epsilon_star(self, theta: ArrayLike, grad: ArrayLike) -> float:
        """The eps* below which a binary ``theta`` is a strict local minimiser of ``<grad, .> + phi/eps``, and above which not.

        May be infinite; see docs/maths.md, "Certificates of a binary point".
        """

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
        """A hash by which a checkpoint recognises this set: equal sets have equal hashes, different sets different ones.

        The hash covers the class and all attributes. A set with attributes that do not define it, such as a cache, must override
        this method.
        """
        return contents_digest(self)

    exchange_key: float | Floats = 0.0
    """Entries with equal keys can exchange mass without leaving the set; broadcasts to ``shape``."""

    def tangent(self, g: ArrayLike) -> Floats:
        """``g`` without its component along the normals of the equality constraints, which no feasible direction can follow."""
        return np.array(check.array("g", g, shape=self.shape))

    def tangent_size(self, g: ArrayLike) -> float:
        """The largest entry of ``tangent(g)``, in absolute value."""
        along = self.tangent(g)
        return float(max(along.max(), -along.min())) if along.size else 0.0

    def round(self, x: ArrayLike) -> Bools:
        """Each entry rounded to 0 or 1 on its own (1/2 is rounded up); the result may lie outside the set."""
        return np.asarray(check.array("x", x, shape=self.shape) >= 0.5)

    def distance_to_binary(self, x: ArrayLike) -> float:
        """dist_inf(x, Theta_bin) = max |x - vertex(x)|."""
        x = check.array("x", x, shape=self.shape)
        return float(np.max(np.abs(x - self.vertex(x))))

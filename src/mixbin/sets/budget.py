"""The budget (capped simplex): v in [0, 1]^m with sum v = k, or at most k."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.errors import InfeasibleSet
from mixbin.sets._capped_simplex import project_at_most, project_capped_simplex
from mixbin.sets._mean import mean_of
from mixbin.sets._membership import MEMBERSHIP_TOLERANCE, in_unit_box
from mixbin.sets._moves import pairs
from mixbin.sets._select import largest
from mixbin.sets._weights import exchange_weight, flip_weight, inverse, removal_weight
from mixbin.sets.base import BinarySet, Bools, Floats, Moves

ENTRIES_AT_ONCE = 2**16
"""``vertices`` makes arrays of about this many entries."""


def resolve_budget(name: str, budget: object, size: int) -> int:
    """The number of entries that ``budget`` selects: a count from 1 to ``size``, or a float in (0, 1], a fraction of ``size``."""
    if isinstance(budget, Integral):
        remedy = f"select from 1 to {size} entries, or a fraction of them such as 0.1"
        return check.whole(name, budget, low=1, high=size, remedy=remedy, error=InfeasibleSet)
    remedy = "write a count without a decimal point, such as 5, and a fraction as 0.1"
    fraction = check.real(name, budget, low=0.0, high=1.0, remedy=remedy)
    count = math.floor(fraction * size + 0.5)
    if count < 1:
        must = f"a fraction that selects at least one of {size} entries"
        raise check.fail(name, budget, must, f"use at least {0.5 / size:.3g}, or a count such as 1", InfeasibleSet)
    return count


class Budget(BinarySet):
    """All v in [0, 1]^m with sum v = k, or with ``at_most`` sum v <= k.

    Parameters
    ----------
    size : int
        The number m of entries.
    k : int or float
        How many entries to select: a count from 1 to ``size``, or a float in (0, 1] for a fraction of them, rounded half up.
        ``Budget(5, 1)`` selects one entry, ``Budget(5, 1.0)`` all five.
    at_most : bool
        Whether fewer than ``k`` entries may be selected.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Budget(4, 2).project([0.9, 0.8, 0.5, 0.1])  # sums to 2
    array([0.825, 0.725, 0.425, 0.025])
    >>> mb.Budget(4, 2).vertex([0.9, 0.8, 0.5, 0.1])
    array([ True,  True, False, False])
    """

    def __init__(self, size: int, k: int | float, at_most: bool = False) -> None:
        self.shape = check.shape_that_fits("size", (check.whole("size", size, low=1),))
        self.k = resolve_budget("k", k, self.shape[0])
        self.at_most = check.flag("at_most", at_most)

    def project(self, x: ArrayLike) -> Floats:
        """clip(x - t, 0, 1) with the multiplier t that meets the budget, found by Kiwiel's breakpoint search."""
        x = check.array("x", x, shape=self.shape)
        return project_at_most(x, self.k) if self.at_most else project_capped_simplex(x, self.k)

    def vertex(self, x: ArrayLike) -> Bools:
        """True at the ``k`` largest entries; with ``at_most`` only at those of at least 1/2."""
        x = check.array("x", x, shape=self.shape)
        chosen = largest(x, self.k)
        return chosen & (x >= 0.5) if self.at_most else chosen

    def linear_oracle(self, g: ArrayLike) -> Floats:
        """1 at the ``k`` smallest entries of ``g``; with ``at_most`` only at negative ones."""
        g = check.array("g", g, shape=self.shape)
        chosen = largest(-g, self.k)
        return (chosen & (g < 0) if self.at_most else chosen).astype(np.float64)

    def contains(self, x: ArrayLike) -> bool:
        """Whether the entries lie in [0, 1] and their sum meets the budget, up to rounding."""
        x = check.array("x", x, shape=self.shape)
        return in_unit_box(x) and self._excess(float(x.sum())) <= MEMBERSHIP_TOLERANCE * self.k

    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """k/m everywhere (at most 1/2 with ``at_most``), or with ``rng`` a random point around it."""
        centre = self.k / self.size
        if self.at_most:
            centre = min(centre, 0.5)
        if rng is None:
            return np.full(self.shape, centre)
        spread = min(centre, 1.0 - centre)
        return self.project(centre + spread * check.generator("rng", rng).uniform(-1.0, 1.0, size=self.size))

    def moves(self, theta: ArrayLike, grad: ArrayLike | None = None) -> Iterator[Moves]:
        """All exchanges; with ``at_most`` also removals and, while the budget is not used up, additions."""
        theta = check.binary("theta", theta, shape=self.shape)
        if self.violation(theta):
            must = f"binary with {'at most' if self.at_most else 'exactly'} {self.k} ones"
            raise check.fail("theta", theta, must, "start from a vertex of the set")
        slope = None if grad is None else check.array("grad", grad, shape=self.shape)
        off, on = np.flatnonzero(theta), np.flatnonzero(~theta)
        if self.at_most:
            on = np.append(on, -1)
            off = np.append(off, -1) if off.size < self.k else off
        return pairs(off, on, slope)

    def n_moves(self, theta: ArrayLike) -> int:
        """The k (m - k) exchanges; with ``at_most`` also the removals and, while the budget is not used up, the additions."""
        on = int(np.count_nonzero(check.binary("theta", theta, shape=self.shape)))
        off = self.size - on
        return on * off + (on + (off if on < self.k else 0) if self.at_most else 0)

    def epsilon_star(self, theta: ArrayLike, grad: ArrayLike) -> float:
        """2 / (highest ``grad`` of the selected entries - lowest ``grad`` of the others).

        With ``at_most`` a selected entry can also be dropped alone and, if fewer than ``k`` are selected, every entry moves
        alone.
        """
        on = check.binary("theta", theta, shape=self.shape)
        g = check.array("grad", grad, shape=self.shape)
        if not self.at_most:
            return inverse(exchange_weight(on, g))
        if np.count_nonzero(on) < self.k:
            return inverse(flip_weight(on, g))
        return inverse(max(exchange_weight(on, g), removal_weight(on, g)))

    def violation(self, theta: ArrayLike) -> float:
        """|sum - k|; with ``at_most`` the excess over k only."""
        return self._excess(float(np.count_nonzero(check.binary("theta", theta, shape=self.shape))))

    def cardinality(self) -> int:
        """The binomial coefficient of m over k; with ``at_most`` the sum over all counts up to k."""
        if not self.at_most:
            return math.comb(self.size, self.k)
        # Each binomial coefficient follows from the last in whole numbers, so that the sum is exact however large it is.
        total = term = 1
        for count in range(self.k):
            term = term * (self.size - count) // (count + 1)
            total += term
        return total

    def vertices(self) -> Iterator[Bools]:
        """All selections of k entries, or with ``at_most`` of up to k."""
        for count in range(0 if self.at_most else self.k, self.k + 1):
            selections = itertools.combinations(range(self.size), count)
            # Many at a time: one array for each selection would take most of the time of a comparison of all of them.
            while some := list(itertools.islice(selections, max(1, ENTRIES_AT_ONCE // self.size))):
                v = np.zeros((len(some), self.size), dtype=np.bool_)
                np.put_along_axis(v, np.array(some, dtype=np.intp).reshape(len(some), count), True, axis=1)
                yield from v

    def tangent(self, g: ArrayLike) -> Floats:
        """``g`` without its mean; with ``at_most`` ``g`` itself."""
        g = check.array("g", g, shape=self.shape)
        return np.array(g) if self.at_most else np.asarray(g - mean_of(g))

    def tangent_size(self, g: ArrayLike) -> float:
        """The largest entry of ``tangent(g)`` in absolute value, computed without that array."""
        g = check.array("g", g, shape=self.shape)
        mean = 0.0 if self.at_most else float(mean_of(g))
        return max(float(g.max()) - mean, mean - float(g.min()))

    def _excess(self, total: float) -> float:
        return max(total - self.k, 0.0) if self.at_most else abs(total - self.k)

    def __repr__(self) -> str:
        return f"Budget({self.size}, {self.k}{', at_most=True' if self.at_most else ''})"

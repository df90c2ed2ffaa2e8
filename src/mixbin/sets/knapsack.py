"""The knapsack: weighted budgets, sum b_i v_i <= r."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.errors import InfeasibleSet
from mixbin.sets._membership import MEMBERSHIP_TOLERANCE, in_unit_box
from mixbin.sets._moves import Indices, pairs
from mixbin.sets._weights import flip_weight, inverse, removal_weight, weighted_exchange_weight
from mixbin.sets.base import BinarySet, Bools, Floats, Moves
from mixbin.sets.kiwiel import solve_knapsack

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
"""Weights and the capacity must be at least this: smaller numbers are subnormal and have fewer digits."""
UNUSABLE_WEIGHT = 1e15
"""An entry heavier than this many capacities stays at 0: the part of it that fits is below rounding."""
LARGEST_SCALED_WEIGHT = 1e150
"""Scaled weights are clipped to this, so that their products do not overflow; only weights of unusable entries are that large."""


class Knapsack(BinarySet):
    """All v in [0, 1]^m with sum weights_i v_i <= capacity.

    Parameters
    ----------
    weights : array of shape (m,)
        The weight of each entry, positive.
    capacity : float
        The largest total weight of the selected entries, positive.

    Examples
    --------
    >>> import mixbin as mb
    >>> bag = mb.Knapsack(weights=[3.0, 2.0, 2.0], capacity=4.0)
    >>> bag.contains([0, 1, 1]), bag.contains([1, 1, 0])
    (True, False)
    """

    def __init__(self, weights: ArrayLike, capacity: float) -> None:
        self.weights = np.array(check.array("weights", weights, ndim=1))
        if self.weights.size == 0:
            raise check.fail("weights", self.weights, "an array with at least one entry")
        if not self.weights.min() >= SMALLEST_NORMAL:
            i = int(self.weights.argmin())
            remedy = "leave entries without weight out of the knapsack, and always select them"
            raise check.fail("weights", float(self.weights[i]), f"positive, at least {SMALLEST_NORMAL:.3g}, at index {i}", remedy)
        if not self.weights.max() < np.finfo(np.float64).max / self.weights.size:
            raise check.fail(
                "weights",
                float(self.weights.max()),
                "small enough for a finite sum",
                "divide weights and capacity by the largest weight",
            )
        self.weights.flags.writeable = False
        self.capacity = check.real("capacity", capacity)
        if self.capacity < SMALLEST_NORMAL:
            raise check.fail(
                "capacity",
                capacity,
                f"positive, at least {SMALLEST_NORMAL:.3g}",
                "it must hold at least the smallest weight",
                InfeasibleSet,
            )
        self.shape = (self.weights.size,)
        self.exchange_key = self.weights
        # Everything except messages and the repr is computed from scaled weights of at most 1, whose products neither overflow
        # nor vanish. Entries too heavy to use do not influence the scale: they would push all other weights towards zero.
        with np.errstate(over="ignore"):
            self._light = self.weights <= UNUSABLE_WEIGHT * self.capacity
            exponent = int(np.frexp(self.weights[self._light].max(initial=self.capacity / UNUSABLE_WEIGHT))[1])
            scaled = np.ldexp(self.weights, -exponent)
            self._capacity = float(np.ldexp(self.capacity, -exponent))
        self._weights = np.clip(scaled, SMALLEST_NORMAL, LARGEST_SCALED_WEIGHT)

    @property
    def _limit(self) -> float:
        # 0.1 + 0.2 must fit into 0.3: a sum of weights is only known up to its rounding.
        return self._capacity * (1.0 + 1e-12)

    def project(self, x: ArrayLike) -> Floats:
        """clip(x - t * weights, 0, 1) with the multiplier t that meets the capacity, found by Kiwiel's breakpoint search."""
        x = check.array("x", x, shape=self.shape)
        one = np.ones_like(x)
        y, light = np.zeros_like(x), self._light
        parts = (x[light], one[light], self._weights[light], y[light], one[light])
        y[light] = solve_knapsack(*parts, self._capacity, equality=False)
        # If the weights span more orders of magnitude than float64 resolves, or if the capacity is below the rounding of their
        # sum, no multiplier meets the capacity: scale the point down into the set instead.
        y = y if check.is_finite(y) else np.where(light, np.clip(x, 0.0, 1.0), 0.0)
        weight = float(self._weights @ y)
        return y * (self._capacity / weight) if weight > self._limit else y

    def vertex(self, x: ArrayLike) -> Bools:
        """The entries of at least 1/2, taken from the largest down; an entry that no longer fits is skipped.

        This attains dist_inf. Proof: a nearer binary point would contain the first skipped entry and all entries before it, but
        these do not fit together.
        """
        x = check.array("x", x, shape=self.shape)
        chosen = np.zeros(self.size, dtype=np.bool_)
        left, room = np.flatnonzero((x >= 0.5) & (self._weights <= self._limit)), self._limit
        left = left[np.argsort(-x[left], kind="stable")]
        while left.size:
            total = np.cumsum(self._weights[left])
            fitting = int(np.searchsorted(total, room, side="right"))
            chosen[left[:fitting]] = True
            room -= total[fitting - 1]
            left = left[fitting:]
            left = left[self._weights[left] <= room]
        return chosen

    def linear_oracle(self, g: ArrayLike) -> Floats:
        """1 at the entries with negative g, the lowest g/weight first, until the capacity is used up; the last entry in part."""
        g = check.array("g", g, shape=self.shape)
        v = np.zeros(self.size)
        order = np.flatnonzero(g < 0)
        with np.errstate(over="ignore"):
            order = order[np.argsort(g[order] / self._weights[order], kind="stable")]
            room = self._capacity - np.concatenate([[0.0], np.cumsum(self._weights[order])[:-1]])
            v[order] = np.clip(room / self._weights[order], 0.0, 1.0)
        return v

    def contains(self, x: ArrayLike) -> bool:
        """Whether the entries lie in [0, 1] and their total weight within the capacity, up to rounding."""
        x = check.array("x", x, shape=self.shape)
        return in_unit_box(x) and float(self._weights @ x) <= self._capacity * (1.0 + MEMBERSHIP_TOLERANCE)

    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """Equal entries that use up the capacity (but at most 1/2 each), or with ``rng`` a random point around these."""
        centre = min(self._capacity / float(self._weights.sum()), 0.5)
        if rng is None:
            return np.full(self.shape, centre)
        return self.project(2.0 * centre * check.generator("rng", rng).uniform(size=self.size))

    def moves(self, theta: ArrayLike, grad: ArrayLike | None = None) -> Iterator[Moves]:
        """All removals, and the additions and exchanges that fit."""
        theta = check.binary("theta", theta, shape=self.shape)
        if self.violation(theta):
            raise check.fail("theta", theta, f"within the capacity {self.capacity:g}", "start from a vertex of the set")
        slope = None if grad is None else check.array("grad", grad, shape=self.shape)
        room = self._limit - float(self._weights @ theta)
        cost = np.append(self._weights, 0.0)

        def fits(off: Indices, on: Indices) -> Bools:
            return np.asarray(cost[on] - cost[off] <= room)

        off, on = np.append(np.flatnonzero(theta), -1), np.append(np.flatnonzero(~theta), -1)
        return pairs(off, on, slope, fits)

    def n_moves(self, theta: ArrayLike) -> int:
        """The removals, and the additions and exchanges that fit."""
        theta = check.binary("theta", theta, shape=self.shape)
        room = self._limit - float(self._weights @ theta)
        others = np.sort(self._weights[~theta])
        exchanges = int(np.searchsorted(others, self._weights[theta] + room, side="right").sum())
        return exchanges + int(np.count_nonzero(theta)) + int(np.searchsorted(others, room, side="right"))

    def epsilon_star(self, theta: ArrayLike, grad: ArrayLike) -> float:
        """The hypercube's bound while capacity is left; once it is used up, that of removals and of exchanges at equal weight."""
        on = check.binary("theta", theta, shape=self.shape)
        g = check.array("grad", grad, shape=self.shape)
        if float(self._weights @ on) < self._capacity * (1.0 - MEMBERSHIP_TOLERANCE):
            return inverse(flip_weight(on, g))
        return inverse(max(weighted_exchange_weight(on, g, self._weights), removal_weight(on, g)))

    def violation(self, theta: ArrayLike) -> float:
        """The total weight in excess of the capacity."""
        theta = check.binary("theta", theta, shape=self.shape)
        return float(self.weights @ theta) - self.capacity if float(self._weights @ theta) > self._limit else 0.0

    def cardinality(self) -> int:
        """2^m, an upper bound."""
        return int(2**self.size)

    def vertices(self) -> Iterator[Bools]:
        """All selections that fit; each is found by adding an entry to a smaller one that fits."""
        stack: list[tuple[tuple[int, ...], float]] = [((), self._limit)]
        while stack:
            chosen, room = stack.pop()
            v = np.zeros(self.size, dtype=np.bool_)
            v[list(chosen)] = True
            yield v
            for i in range(self.size - 1, chosen[-1] if chosen else -1, -1):
                if self._weights[i] <= room:
                    stack.append(((*chosen, i), room - float(self._weights[i])))

    def __repr__(self) -> str:
        return f"Knapsack(weights=<{self.size} of sum {self.weights.sum():g}>, capacity={self.capacity:g})"

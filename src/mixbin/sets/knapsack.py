"""The knapsack: weighted budgets, sum b_i v_i <= r."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.errors import InfeasibleSet
from mixbin.sets._membership import ROUNDING, in_unit_box
from mixbin.sets._moves import Indices, pairs
from mixbin.sets._weights import flip_weight, inverse, removal_weight, weighted_exchange_weight
from mixbin.sets.base import BinarySet, Bools, Floats, Moves
from mixbin.sets.kiwiel import solve_knapsack

TINY = float(np.finfo(np.float64).tiny)
"""Smaller numbers have fewer digits."""
HEAVY, HEAVIEST = 1e15, 1e150
"""An entry of more than HEAVY times the capacity fits to less than rounding; its scaled weight counts as HEAVIEST at most."""


class Knapsack(BinarySet):
    """All v in [0, 1]^m with sum weights_i v_i <= capacity.

    Parameters
    ----------
    weights : array of shape (m,)
        What each entry costs, positive.
    capacity : float
        What may be spent, positive.
    """

    def __init__(self, weights: ArrayLike, capacity: float) -> None:
        self.weights = np.array(check.array("weights", weights, ndim=1))
        if self.weights.size == 0:
            raise check.fail("weights", self.weights, "an array with at least one entry")
        if not self.weights.min() >= TINY:
            i = int(self.weights.argmin())
            remedy = "entries that cost nothing need no knapsack: leave them out and always take them"
            raise check.fail("weights", float(self.weights[i]), f"positive, at least {TINY:.3g}, at index {i}", remedy)
        if not self.weights.max() < np.finfo(np.float64).max / self.weights.size:
            raise check.fail(
                "weights", float(self.weights.max()), "of finite sum", "divide weights and capacity by the largest weight"
            )
        self.weights.flags.writeable = False
        self.capacity = check.real("capacity", capacity)
        if self.capacity < TINY:
            raise check.fail(
                "capacity", capacity, f"positive, at least {TINY:.3g}", "it must hold at least the smallest weight", InfeasibleSet
            )
        self.shape = (self.weights.size,)
        self.exchange_key = self.weights
        # All but what is shown is computed from weights of at most 1, whose products neither overflow nor vanish. Entries so
        # heavy that no part of them worth naming fits stay at 0, and have no say in the scale.
        with np.errstate(over="ignore"):
            self._light = self.weights <= HEAVY * self.capacity
            exponent = int(np.frexp(self.weights[self._light].max(initial=self.capacity / HEAVY))[1])
            scaled = np.ldexp(self.weights, -exponent)
            self._capacity = float(np.ldexp(self.capacity, -exponent))
        self._weights = np.clip(scaled, TINY, HEAVIEST)

    @property
    def _limit(self) -> float:
        # 0.1 + 0.2 fits into 0.3: sums of weights are only known up to their rounding.
        return self._capacity * (1.0 + 1e-12)

    def project(self, x: ArrayLike) -> Floats:
        """Kiwiel's breakpoint search for the multiplier of the weight."""
        x = check.array("x", x, shape=self.shape)
        one = np.ones_like(x)
        y, light = np.zeros_like(x), self._light
        parts = (x[light], one[light], self._weights[light], y[light], one[light])
        y[light] = solve_knapsack(*parts, self._capacity, equality=False)
        # Where weights differ by more than float64 can tell, or the capacity is below their rounding, no multiplier meets it:
        # shrink what is left over.
        y = y if check.is_finite(y) else np.where(light, np.clip(x, 0.0, 1.0), 0.0)
        weight = float(self._weights @ y)
        return y * (self._capacity / weight) if weight > self._limit else y

    def vertex(self, x: ArrayLike) -> Bools:
        """The entries of at least 1/2 from the largest down, without those that no longer fit.

        This attains dist_inf: a point that is nearer would hold the first entry left out and all before it, which do not fit.
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
        """The entries of lowest g/weight below 0 until the capacity is spent, the last one in part."""
        g = check.array("g", g, shape=self.shape)
        v = np.zeros(self.size)
        order = np.flatnonzero(g < 0)
        with np.errstate(over="ignore"):
            order = order[np.argsort(g[order] / self._weights[order], kind="stable")]
            room = self._capacity - np.concatenate([[0.0], np.cumsum(self._weights[order])[:-1]])
            v[order] = np.clip(room / self._weights[order], 0.0, 1.0)
        return v

    def contains(self, x: ArrayLike) -> bool:
        """Whether the entries lie in [0, 1] and the weight within the capacity, up to rounding."""
        x = check.array("x", x, shape=self.shape)
        return in_unit_box(x) and float(self._weights @ x) <= self._capacity * (1.0 + ROUNDING)

    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """Equal entries that use the capacity (at most 1/2), or with ``rng`` a random point around them."""
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
        """Entry by entry while there is room; without, removals and exchanges of equal weight."""
        on = check.binary("theta", theta, shape=self.shape)
        g = check.array("grad", grad, shape=self.shape)
        if float(self._weights @ on) < self._capacity * (1.0 - ROUNDING):
            return inverse(flip_weight(on, g))
        return inverse(max(weighted_exchange_weight(on, g, self._weights), removal_weight(on, g)))

    def violation(self, theta: ArrayLike) -> float:
        """The weight beyond the capacity."""
        theta = check.binary("theta", theta, shape=self.shape)
        return float(self.weights @ theta) - self.capacity if float(self._weights @ theta) > self._limit else 0.0

    def cardinality(self) -> int:
        """2^m, an upper bound."""
        return int(2**self.size)

    def vertices(self) -> Iterator[Bools]:
        """All selections that fit, by extending those that do."""
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

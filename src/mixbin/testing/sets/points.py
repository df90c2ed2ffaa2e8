"""Inputs for the methods of a set: its binary points, points anywhere, and points that ``contains`` says are feasible."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from mixbin.sets import BinarySet
from mixbin.sets.base import Bools, Floats
from mixbin.testing.broken import Subject

MOST_ENTRIES = 10
"""Up to this many entries, all 2^p binary arrays are tried, and ``contains`` says which of them belong to the set."""
MOST_POINTS = 2_000
"""Up to this many binary points, ``vertices`` lists them; of larger sets ``vertex`` samples some."""
TIED = (-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0)
BISECTIONS = 40


class Points:
    """What a set is tried at.

    Attributes
    ----------
    binary : list of bool arrays
        All binary points of the set where ``complete``, else some.
    complete : bool
        Whether ``binary`` holds all of them.
    by_membership : bool
        Whether ``binary`` was found by asking ``contains`` about every binary array.
    feasible : array of shape (points, p)
        The binary points as rows, and as many points near the boundary as there are trials: what a minimum over the set is
        compared with.
    """

    def __init__(self, subject: Subject, theta_set: BinarySet, trials: int) -> None:
        self.subject, self.theta_set, self.trials = subject, theta_set, trials
        self.rng = np.random.default_rng(subject.seed)
        self.by_membership = theta_set.size <= MOST_ENTRIES
        self.complete = self.by_membership or theta_set.cardinality() <= MOST_POINTS
        self.binary = self._binary()
        subject.require(
            len(self.binary) > 0, "contains", "must hold for at least one binary point", {}, "a binary point in the set", "none"
        )
        self.binary_rows = np.array([v.ravel() for v in self.binary], dtype=np.float64)
        self.feasible = np.vstack([self.binary_rows, *(self.on_the_boundary().ravel() for _ in range(trials))])

    def every_binary_array(self) -> list[Bools]:
        """All arrays of zeros and ones of the set's shape, in the set or not."""
        bits = np.arange(2**self.theta_set.size)[:, None] >> np.arange(self.theta_set.size) & 1
        return [np.asarray(row.reshape(self.theta_set.shape), dtype=np.bool_) for row in bits]

    def _binary(self) -> list[Bools]:
        if self.by_membership:
            return [v for v in self.every_binary_array() if self.subject.call("contains", {"x": v.astype(np.float64)})]
        if self.complete:
            # One more than there should be, so that a list without an end is noticed and does not run for ever.
            found = islice(self.theta_set.vertices(), MOST_POINTS + 1)
            return [self.feasible_binary("vertices", v, {}) for v in found]
        return [self.vertex(self.anywhere(trial)) for trial in range(self.trials)]

    def vertex(self, x: Floats) -> Bools:
        """``vertex(x)``, which must be a binary point of the set."""
        return self.feasible_binary("vertex", self.subject.call("vertex", {"x": x}), {"x": x})

    def feasible_binary(self, method: str, got: object, inputs: Mapping[str, Any]) -> Bools:
        """What a method returned, which must be a binary point of the set."""
        v = self.subject.array(method, got, inputs, self.theta_set.shape, np.bool_)
        inside = self.theta_set.contains(v.astype(np.float64))
        promise = "must return binary points of the set only"
        self.subject.require(inside, method, promise, inputs, "a point for which contains holds", v)
        return v

    def some_binary(self) -> list[Bools]:
        """As many of the binary points as there are trials, or all of fewer."""
        if len(self.binary) <= self.trials:
            return self.binary
        return [self.binary[i] for i in self.rng.choice(len(self.binary), self.trials, replace=False)]

    def anywhere(self, trial: int) -> Floats:
        """A random array, in the set or not: ordinary, with ties, all entries equal, steep, or binary."""
        shape, rng = self.theta_set.shape, self.rng
        kind = trial % 5
        if kind == 1:
            return np.asarray(rng.choice(TIED, size=shape))
        if kind == 2:
            return np.full(shape, rng.uniform(-1.0, 2.0))
        if kind == 3:
            return np.asarray(1e6 * rng.normal(size=shape))
        if kind == 4:
            return np.asarray((rng.uniform(size=shape) < 0.3).astype(np.float64))
        return np.asarray(rng.normal(0.5, 1.0, size=shape))

    def mixture(self) -> Floats:
        """A random mixture of binary points, which lies in the set because the set is convex."""
        count = int(self.rng.integers(1, 5))
        weights = self.rng.dirichlet(np.ones(count))
        chosen = self.rng.integers(len(self.binary), size=count)
        mixed = np.sum([w * self.binary[i] for w, i in zip(weights, chosen, strict=True)], axis=0)
        return np.asarray(np.clip(mixed, 0.0, 1.0))

    def on_the_boundary(self) -> Floats:
        """A point of the set near its boundary: from a mixture, as far along a direction within the set as ``contains`` allows.

        Where not every extreme point is binary, as in a knapsack, this reaches points that no mixture of binary points does.
        """
        here, along = self.mixture(), self.mixture() - self.mixture()
        longest = float(np.abs(along).max(initial=0.0))
        if longest < 1e-6:
            return here
        near, far = 0.0, 2.0 / longest
        for _ in range(BISECTIONS):
            middle = 0.5 * (near + far)
            if self.theta_set.contains(here + middle * along):
                near = middle
            else:
                far = middle
        return np.asarray(np.clip(here + near * along, 0.0, 1.0))

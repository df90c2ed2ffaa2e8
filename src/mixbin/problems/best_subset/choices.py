"""Which features may be kept together: any k of them, or k with at most so many of each group."""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problem import Indices
from mixbin.sets import BinarySet, Budget, GroupBudget

Bools = NDArray[np.bool_]


class Choices:
    """The set of theta, as searches over supports ask about it.

    Parameters
    ----------
    theta_set : Budget or GroupBudget
        Exactly k features; in groups, at most ``high`` of each.
    """

    def __init__(self, theta_set: Budget | GroupBudget) -> None:
        assert theta_set.k is not None
        self.theta_set: BinarySet = theta_set
        self.k, self.p = theta_set.k, theta_set.size
        self.groups = theta_set.codes if isinstance(theta_set, GroupBudget) else None
        self._high = theta_set.high if isinstance(theta_set, GroupBudget) else None

    def most(self, gains: Floats) -> float:
        """The largest sum of theta_j gains_j over the set."""
        return float(gains @ self.theta_set.linear_oracle(-gains))

    def most_of(self, gains: Floats, which: Indices) -> float:
        """The same over some features only: the gains of the others count as 0."""
        everywhere = np.zeros(self.p)
        everywhere[which] = gains
        return self.most(everywhere)

    def indicators(self) -> tuple[Floats | None, Floats | None]:
        """For each feature a row with a 1 in the column of its group, and one row with the most of each group."""
        if self.groups is None or self._high is None:
            return None, None
        ones = np.zeros((self.p, self._high.size))
        ones[np.arange(self.p), self.groups] = 1.0
        return ones, self._high[None].astype(np.float64)

    def best(self, scores: Floats) -> Indices:
        """The features of the highest scores that may be kept together."""
        return np.flatnonzero(self.theta_set.linear_oracle(-scores))

    def random(self, rng: np.random.Generator) -> Indices:
        """A random choice."""
        return self.best(rng.uniform(1.0, 2.0, size=self.p))

    def full(self, support: Indices) -> Bools:
        """Which features may not join ``support``, because they are in it or their group has all it may have."""
        out = np.zeros(self.p, dtype=np.bool_)
        if self.groups is not None and self._high is not None:
            out = (np.bincount(self.groups[support], minlength=self._high.size) >= self._high)[self.groups]
        out[support] = True
        return out

    def forbid(self, table: Floats, support: Indices) -> Floats:
        """A table of exchanges (see ``QuadraticModel``) with inf where an exchange leaves the set."""
        if self.groups is not None:
            own = self.groups[support]
            table[self.full(support)[None] & (own[:, None] != self.groups[None])] = np.inf
        return table

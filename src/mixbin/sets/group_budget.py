"""Counts per group: v in [0, 1]^m with between low_g and high_g ones in each group, and exactly k in all, or any number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.errors import InfeasibleSet, InvalidInput
from mixbin.sets._group_simplex import Codes, Counts, group_sums, project_counts, project_counts_with_total
from mixbin.sets._mean import mean_of
from mixbin.sets._membership import MEMBERSHIP_TOLERANCE, in_unit_box
from mixbin.sets._moves import Indices, pairs
from mixbin.sets._select import largest
from mixbin.sets._weights import exchange_weight, flip_weight, inverse
from mixbin.sets.base import BinarySet, Bools, Floats, Moves
from mixbin.sets.budget import resolve_budget

LISTED_GROUPS = 6
"""``repr`` lists the bounds of up to this many groups."""

Bounds = int | ArrayLike | Mapping[Any, int]


class GroupBudget(BinarySet):
    """All v in [0, 1]^m that select between ``low`` and ``high`` entries of each group, and ``k`` in all.

    Parameters
    ----------
    groups : array of shape (m,)
        The group of each entry: whole numbers, texts, or any labels that can be sorted.
    low, high : int, array or mapping
        The fewest and the most entries to select from each group: one count for all groups, an array with one for each group in
        sorted order, or a mapping from each group to its count. A ``high`` beyond the size of a group means all of it.
    k : int or float, optional
        How many entries to select in all: a count, or a float in (0, 1] for a fraction of them, rounded half up. By default only
        the groups' bounds count.

    Attributes
    ----------
    labels : tuple
        The groups, sorted.
    codes : array of shape (m,)
        For each entry the position of its group among ``labels``.
    low, high : arrays with one count per group
        The bounds in force. They are tightened to what the sizes of the groups and ``k`` allow, so that every count from ``low``
        to ``high`` is that of some point.
    k : int or None
        The number of entries in all.

    Raises
    ------
    InfeasibleSet
        If no selection keeps all bounds.

    Examples
    --------
    >>> import mixbin as mb
    >>> rows = mb.GroupBudget(["no", "no", "no", "no", "yes", "yes"], low={"no": 1, "yes": 1}, high=4, k=3)
    >>> rows.vertex([0.9, 0.8, 0.7, 0.1, 0.2, 0.3]).astype(int)
    array([1, 1, 0, 0, 0, 1])
    >>> rows.project([0.9, 0.8, 0.7, 0.1, 0.2, 0.3]).round(2)
    array([0.77, 0.67, 0.57, 0.  , 0.45, 0.55])
    """

    def __init__(self, groups: ArrayLike, low: Bounds, high: Bounds, k: int | float | None = None) -> None:
        self.labels, self.codes = _grouped(groups)
        self.shape = check.shape_that_fits("groups", self.codes.shape)
        self.exchange_key = self.codes.astype(np.float64)
        sizes = np.bincount(self.codes)
        least, most = (_counts(name, given, self.labels) for name, given in (("low", low), ("high", high)))
        for label, size, few, many in zip(self.labels, sizes.tolist(), least, most, strict=True):
            if few > min(many, size):
                raise InfeasibleSet(
                    f"low must be at most high and at most the size of the group, got low = {check.shown(few)} and high = "
                    f"{check.shown(many)} for group {check.shown(label)}, which has {_entries(size)}; lower low or raise high"
                )
        self.low = np.array(least, dtype=np.int64)
        self.high = np.array([min(it) for it in zip(most, sizes.tolist(), strict=True)], dtype=np.int64)
        self.k = None if k is None else resolve_budget("k", k, self.size)
        if self.k is None:
            return
        total_low, total_high = int(self.low.sum()), int(self.high.sum())
        if not total_low <= self.k <= total_high:
            must = f"from {total_low} to {total_high}, the totals that low and high allow"
            remedy = "lower low or raise k" if self.k < total_low else "raise high or lower k"
            raise check.fail("k", k, must, remedy, InfeasibleSet)
        # A group can give no more than k leaves it when all others give their least, and no fewer than when they give their most.
        self.low, self.high = (
            np.maximum(self.low, self.high + self.k - total_high),
            np.minimum(self.high, self.low + self.k - total_low),
        )

    def project(self, x: ArrayLike) -> Floats:
        """clip(x - t - mu_g, 0, 1), with a multiplier t for the total and mu_g for each group whose sum is at a bound."""
        x = check.array("x", x, shape=self.shape)
        if self.k is None:
            return project_counts(x, self.codes, self.low, self.high)
        return project_counts_with_total(x, self.codes, self.low, self.high, self.k)

    def vertex(self, x: ArrayLike) -> Bools:
        """The ``low`` largest entries of each group; then up to ``high`` in each, the largest of all until there are ``k``.

        Without ``k``, those of at least 1/2. This attains dist_inf: to exchange an entry that is on for a larger one that is off
        never increases the distance, and in these sets such exchanges lead from any binary point to this one.
        """
        x = check.array("x", x, shape=self.shape)
        return self._selected(x, x >= 0.5)

    def linear_oracle(self, g: ArrayLike) -> Floats:
        """1 at the smallest entries of ``g``, as many as each group and the total demand; without ``k`` also at negative ones."""
        g = check.array("g", g, shape=self.shape)
        return self._selected(-g, g < 0.0).astype(np.float64)

    def contains(self, x: ArrayLike) -> bool:
        """Whether the entries lie in [0, 1] and their sums keep the bounds, up to rounding."""
        x = check.array("x", x, shape=self.shape)
        if not in_unit_box(x):
            return False
        sums = group_sums(x, self.codes, self.low.size)
        below, above = self.low - sums, sums - self.high
        groups = np.all(below <= MEMBERSHIP_TOLERANCE * self.low) and np.all(
            above <= MEMBERSHIP_TOLERANCE * np.maximum(self.high, 1)
        )
        return bool(groups) and (self.k is None or abs(float(x.sum()) - self.k) <= MEMBERSHIP_TOLERANCE * self.k)

    def start(self, rng: np.random.Generator | None = None) -> Floats:
        """The point nearest to k/m everywhere (1/2 without ``k``), or with ``rng`` a random point around it."""
        centre = self.project(np.full(self.shape, 0.5 if self.k is None else self.k / self.size))
        if rng is None:
            return centre
        spread = np.minimum(centre, 1.0 - centre)
        return self.project(centre + spread * check.generator("rng", rng).uniform(-1.0, 1.0, size=self.size))

    def moves(self, theta: ArrayLike, grad: ArrayLike | None = None) -> Iterator[Moves]:
        """The exchanges within and between groups that keep all bounds; without ``k`` also such removals and additions."""
        theta = check.binary("theta", theta, shape=self.shape)
        if self.violation(theta):
            must = f"binary with counts from low to high in each group{'' if self.k is None else f' and {self.k} ones in all'}"
            raise check.fail("theta", theta, must, "start from a vertex of the set")
        slope = None if grad is None else check.array("grad", grad, shape=self.shape)
        may_fall, may_rise = (np.append(part[self.codes], True) for part in self._slack(theta))
        group = np.append(self.codes, -1)

        def keeps_bounds(off: Indices, on: Indices) -> Bools:
            return np.asarray((may_fall[off] & may_rise[on]) | (group[off] == group[on]))

        off, on = np.flatnonzero(theta), np.flatnonzero(~theta)
        if self.k is None:
            off, on = np.append(off, -1), np.append(on, -1)
        return pairs(off, on, slope, keeps_bounds)

    def n_moves(self, theta: ArrayLike) -> int:
        """How many exchanges, removals and additions keep all bounds, from the counts of the groups."""
        theta = check.binary("theta", theta, shape=self.shape)
        ones, sizes = self._ones(theta), np.bincount(self.codes)
        may_fall, may_rise = self._slack(theta)
        within = sum(int(n) * int(size - n) for n, size in zip(ones, sizes, strict=True))
        both = sum(int(n) * int(size - n) for n, size in zip(ones[may_fall & may_rise], sizes[may_fall & may_rise], strict=True))
        removals, additions = int(ones[may_fall].sum()), int((sizes - ones)[may_rise].sum())
        singles = removals + additions if self.k is None else 0
        return within + removals * additions - both + singles

    def epsilon_star(self, theta: ArrayLike, grad: ArrayLike) -> float:
        """The least of 2 / (grad of an entry that is on - grad of one that is off) over the exchanges that keep all bounds.

        Without ``k``, entries also move alone where their group's bounds allow it.
        """
        on = check.binary("theta", theta, shape=self.shape)
        g = check.array("grad", grad, shape=self.shape)
        may_fall, may_rise = (part[self.codes] for part in self._slack(on))
        # The highest grad among the ones and the lowest among the zeros of each group: an exchange within a group needs no slack.
        highest, lowest = np.full(self.low.size, -np.inf), np.full(self.low.size, np.inf)
        np.maximum.at(highest, self.codes[on], g[on])
        np.minimum.at(lowest, self.codes[~on], g[~on])
        # Halved first: the difference of two of the largest numbers would overflow.
        within = float(np.max(0.5 * highest - 0.5 * lowest))
        movable = (on & may_fall) | (~on & may_rise)
        alone = exchange_weight if self.k is not None else flip_weight
        return inverse(max(within, alone(on[movable], g[movable])))

    def violation(self, theta: ArrayLike) -> float:
        """The number of entries that groups have beyond their bounds or lack, and by which the total differs from ``k``."""
        ones = self._ones(check.binary("theta", theta, shape=self.shape))
        groups = np.maximum(self.low - ones, 0) + np.maximum(ones - self.high, 0)
        return float(groups.sum() + (0 if self.k is None else abs(int(ones.sum()) - self.k)))

    def cardinality(self) -> int:
        """The product over the groups of their numbers of selections; with ``k``, the part of it that has this total."""
        ways = {0: 1}
        for size, low, high in zip(np.bincount(self.codes).tolist(), self.low.tolist(), self.high.tolist(), strict=True):
            # Each binomial coefficient follows from the last in whole numbers, which is faster than to compute each anew.
            term = math.comb(size, low)
            choices = {low: term}
            for count in range(low, high):
                term = term * (size - count) // (count + 1)
                choices[count + 1] = term
            if self.k is None:
                ways = {0: ways[0] * sum(choices.values())}
                continue
            longer: dict[int, int] = {}
            for (total, before), (count, more) in itertools.product(ways.items(), choices.items()):
                if total + count <= self.k:
                    longer[total + count] = longer.get(total + count, 0) + before * more
            ways = longer
        return ways[0 if self.k is None else self.k]

    def vertices(self) -> Iterator[Bools]:
        """All selections, group by group."""
        members = [np.flatnonzero(self.codes == g) for g in range(self.low.size)]
        # What the groups from g on can give at least and at most.
        least, most = (np.append(np.cumsum(bound[::-1])[::-1], 0) for bound in (self.low, self.high))

        def selections(g: int, left: int) -> Iterator[list[int]]:
            if g == len(members):
                yield []
                return
            low, high = int(self.low[g]), int(self.high[g])
            if self.k is not None:
                low, high = max(low, left - int(most[g + 1])), min(high, left - int(least[g + 1]))
            for count in range(low, high + 1):
                for chosen in itertools.combinations(members[g].tolist(), count):
                    for others in selections(g + 1, left - count):
                        yield [*chosen, *others]

        for chosen in selections(0, self.k or 0):
            v = np.zeros(self.size, dtype=np.bool_)
            v[chosen] = True
            yield v

    def tangent(self, g: ArrayLike) -> Floats:
        """``g`` without its mean over each group whose count is fixed; with ``k``, also without its mean over all others."""
        g = np.array(check.array("g", g, shape=self.shape))
        fixed = self.low == self.high
        for members in (np.flatnonzero(self.codes == group) for group in np.flatnonzero(fixed)):
            g[members] -= mean_of(g[members])
        others = ~fixed[self.codes]
        if self.k is not None and others.any():
            g[others] -= mean_of(g[others])
        return g

    def _selected(self, score: Floats, wanted: Bools) -> Bools:
        """The entries of the highest scores that keep all bounds; ``wanted`` decides where there is no total."""
        by_group = np.lexsort((-score, self.codes))
        sizes = np.bincount(self.codes)
        rank = np.empty(self.size, dtype=np.int64)
        rank[by_group] = np.arange(self.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        chosen, allowed = rank < self.low[self.codes], rank < self.high[self.codes]
        if self.k is None:
            return np.asarray(chosen | (allowed & wanted))
        rest = np.flatnonzero(allowed & ~chosen)
        chosen[rest[largest(score[rest], self.k - int(self.low.sum()))]] = True
        return np.asarray(chosen)

    def _ones(self, theta: Bools) -> Counts:
        """How many entries of each group are on."""
        return np.bincount(self.codes[theta], minlength=self.low.size)

    def _slack(self, theta: Bools) -> tuple[Bools, Bools]:
        """Which groups may lose an entry, and which may gain one."""
        ones = self._ones(theta)
        return ones > self.low, ones < self.high

    def __repr__(self) -> str:
        few = self.low.size <= LISTED_GROUPS
        low, high = (str(part.tolist()) if few else f"{part.min()}..{part.max()}" for part in (self.low, self.high))
        sizes = np.bincount(self.codes)
        groups = f"<sizes {sizes.tolist()}>" if few else f"<{self.size} entries in {sizes.size} groups>"
        return f"GroupBudget({groups}, low={low}, high={high}{'' if self.k is None else f', k={self.k}'})"


def _grouped(groups: ArrayLike) -> tuple[tuple[Any, ...], Codes]:
    """The groups, sorted, and for each entry the position of its group among them."""
    labels = check.loose_array("groups", groups, "an array with one label per entry")
    if labels.ndim != 1 or labels.size == 0:
        raise check.fail("groups", labels, "an array of shape (m,) with m of at least 1", "give one label per entry")
    if labels.dtype.kind in "fc":
        check.array("groups", labels, remedy="give entries without a group a label of their own")
    try:
        found, codes = np.unique(labels, return_inverse=True)
    except (TypeError, ValueError):
        raise check.fail("groups", labels, "labels of one kind", "turn them into texts or whole numbers") from None
    return tuple(found.tolist()), np.asarray(codes, dtype=np.intp)


def _counts(name: str, given: Bounds, labels: tuple[Any, ...]) -> list[int]:
    """One count of at least 0 per group, from a count for all, one per group in sorted order, or a mapping."""
    if isinstance(given, Mapping):
        if strange := [key for key in given if key not in labels]:
            raise InvalidInput(
                f"{name} must have the groups as its keys, got {check.shown(strange[0])}; the groups are {check.listed(labels)}"
            )
        if missing := [label for label in labels if label not in given]:
            raise InvalidInput(f"{name} must have a count for every group, got none for {check.listed(missing)}; add them")
        return [_count(f"{name}[{check.shown(label)}]", given[label]) for label in labels]
    values = check.loose_array(name, given, "a count, or one count per group")
    if values.ndim == 0:
        return [_count(name, values.item())] * len(labels)
    if values.shape != (len(labels),):
        raise check.fail(name, values, f"a count or one for each of the {len(labels)} groups", "give them in the order of labels")
    return [_count(f"{name}[{i}]", value) for i, value in enumerate(values.tolist())]


def _count(name: str, value: object) -> int:
    return check.whole(name, value, low=0, remedy="give a count of entries without a decimal point")


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"

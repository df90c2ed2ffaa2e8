"""Projection onto {0 <= x <= 1, low_g <= sum of group g <= high_g}, with or without a given total, exact to rounding.

Without a total, the groups do not know of each other. The clipped entries of a group are its projection if their sum keeps the
bounds; otherwise the sum equals the bound that it breaks, and the group is projected onto that capped simplex.

With a total k, the projection is clip(a - t - mu_g, 0, 1), where mu_g is not 0 only if the sum of group g is at a bound
(docs/maths.md, "Projection onto counts per group"). So all groups whose sum is strictly between its bounds share one multiplier
t: together they are projected onto one capped simplex, whose total is k minus the bounds of the other groups, a whole number.
Which groups are at a bound is found by fixing: project as if no group were; then, by the proof at ``_fixed``, either all groups
above their upper bound are at it in the answer, or all groups below their lower bound are at that one. No multiplier is compared
with another, so that large entries cost no digits.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin.sets._capped_simplex import SUM_TOLERANCE, project_capped_simplex
from mixbin.sets.base import Bools, Floats

Counts = NDArray[np.int64]
Codes = NDArray[np.intp]


def group_sums(x: Floats, codes: Codes, n_groups: int) -> Floats:
    """The sum of the entries of each group."""
    return np.asarray(np.bincount(codes, weights=x, minlength=n_groups), dtype=np.float64)


def project_counts(a: Floats, codes: Codes, low: Counts, high: Counts) -> Floats:
    """The point of {0 <= x <= 1, low <= sums of the groups <= high} nearest to a finite vector."""
    x = np.clip(a, 0.0, 1.0)
    below, above = _misses(group_sums(x, codes, low.size), low, high)
    _settle(x, a, codes, np.where(below > 0.0, low, np.where(above > 0.0, high, -1)))
    return x


def project_counts_with_total(a: Floats, codes: Codes, low: Counts, high: Counts, k: int) -> Floats:
    """The same with sum x = k, for bounds that allow this total."""
    x = np.empty(a.size)
    settled = np.full(low.size, -1, dtype=np.int64)
    free, rest = np.ones(a.size, dtype=np.bool_), k
    while free.any():
        # A group that is settled keeps a sum of 0 here; its bounds no longer matter.
        x[free] = project_to_sum(a[free], rest)
        sums = group_sums(np.where(free, x, 0.0), codes, low.size)
        fixed = _fixed(sums, low, high, settled < 0)
        if fixed is None:
            break
        at, bound = fixed
        settled[at] = bound[at]
        rest -= int(bound[at].sum())
        free &= ~at[codes]
    _settle(x, a, codes, settled)
    return x


def _fixed(sums: Floats, low: Counts, high: Counts, free: Bools) -> tuple[Bools, Counts] | None:
    """Which of the free groups are at a bound in the answer, and these bounds; None if the sums keep all bounds.

    Proof. Let t be the multiplier that gave these sums, and F(s) the total of all sums at a multiplier s, each sum cut to its
    bounds. F does not increase, and the answer has F = k. The uncut sums add up to k, so F(t) = k - (what lies above the bounds)
    + (what is missing below). If more lies above, F(t) <= k, so the answer's multiplier is at most t. There the sums that are
    above their bound at t are no smaller, so they are cut. If more is missing below, the same holds for the lower bounds.
    """
    below, above = (np.where(free, miss, 0.0) for miss in _misses(sums, low, high))
    if not (below.any() or above.any()):
        return None
    return (above > 0.0, high) if above.sum() >= below.sum() else (below > 0.0, low)


def _misses(sums: Floats, low: Counts, high: Counts) -> tuple[Floats, Floats]:
    """By how much each sum is below its lower and above its upper bound; a miss by rounding is none."""
    below = np.where(sums < low * (1.0 - SUM_TOLERANCE), low - sums, 0.0)
    above = np.where(sums > high * (1.0 + SUM_TOLERANCE), sums - high, 0.0)
    return below, above


def _settle(x: Floats, a: Floats, codes: Codes, counts: Counts) -> None:
    """Project every group with a count of at least 0 onto the capped simplex of that sum, in place."""
    at = counts >= 0
    if not at.any():
        return
    index = np.flatnonzero(at[codes])
    index = index[np.argsort(codes[index], kind="stable")]
    ends = np.cumsum(np.bincount(codes[index], minlength=counts.size)[at])
    for members, count in zip(np.split(index, ends[:-1]), counts[at], strict=True):
        x[members] = project_to_sum(a[members], int(count))


def project_to_sum(a: Floats, k: int) -> Floats:
    """The point of {0 <= x <= 1, sum x = k} nearest to a finite vector, for 0 <= k <= its length."""
    return project_capped_simplex(a, k) if k > 0 else np.zeros(a.size)

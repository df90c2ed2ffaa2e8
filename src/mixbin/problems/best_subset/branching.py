"""Branch and bound over subsets: rounds of nodes whose relaxed problems are solved together.

A node keeps some features in and leaves others out. Its relaxed problem gives a lower bound for all subsets of the node (see
``relaxation``); a node whose bound is not below the best value known is closed. The same dual point says for each feature what
it would cost to keep it or to leave it out: features that every better subset must keep, or must leave out, are fixed at once
(safe screening). The nodes with the lowest bounds come first.
"""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problem import Indices
from mixbin.problems.best_subset.kernels import Kernel, kernel_of
from mixbin.problems.best_subset.relaxation import Steps

if TYPE_CHECKING:
    from mixbin.problems.best_subset.problem import BestSubset
    from mixbin.problems.best_subset.proof import Proof

Bools = NDArray[np.bool_]
Kinds = NDArray[np.int8]

AT_ONCE = 24
"""This many open nodes are branched on together."""
STEPS, CHECK_EVERY = 240, 12
"""Steps on a node's relaxed problem at most, and between two looks at its bound."""
FUTILE = 0.2
"""Steps on a node end when its bound can gain less than this share of what it lacks to be closed."""
MOST_NUMBERS = 2**28
"""The open nodes may hold this many coefficients (1 GB); then the proof stops with the gap that it has."""
LARGEST_KEPT = 1e38
"""The coefficients of open nodes are kept as float32, and cut off here."""
TOLERANCE = 1e-9
"""A subset counts as proved the best if no other can be lower by more than this share of its value."""


class Branching:
    """The rounds of a branch and bound. All state is in the proof, so that another call can go on with it."""

    def __init__(self, problem: "BestSubset", proof: "Proof") -> None:
        self.problem, self.proof, self.choices = problem, proof, problem.choices
        self.loss = problem.data_loss
        groups, self.high = self.choices.indicators()
        self.groups = None if groups is None else groups[proof.features]

    @cached_property
    def kernel(self) -> Kernel:
        """The loss on the features that screening left. It is made in the first round: a proof of no rounds needs none."""
        return kernel_of(self.loss, self.proof.features)

    def finished(self) -> bool:
        """Whether nothing is open, or memory is used up."""
        return self.proof.n_open == 0 or self.proof.proved or self.proof.coefs.size > MOST_NUMBERS

    def round(self) -> None:
        """Branch on the nodes with the lowest bounds, and solve their children."""
        at = self.proof
        first = np.argsort(at.bounds, kind="stable")[:AT_ONCE]
        rest = np.ones(at.n_open, dtype=np.bool_)
        rest[first] = False
        kinds, bounds, coefs, branch = at.kinds[first], at.bounds[first], at.coefs[first], at.branch[first]
        at.kinds, at.bounds, at.coefs, at.branch = at.kinds[rest], at.bounds[rest], at.coefs[rest], at.branch[rest]
        new = branch < 0
        parents = np.concatenate([np.flatnonzero(new), np.flatnonzero(~new), np.flatnonzero(~new)])
        children = kinds[parents].copy()
        split = np.flatnonzero(~new)
        here = int(new.sum()) + np.arange(2 * split.size)
        children[here, np.tile(branch[split], 2)] = np.repeat(np.array([1, -1], dtype=np.int8), split.size)
        self._solve(children, bounds[parents], coefs[parents].astype(np.float64))
        # The best value may have fallen: nodes whose bounds no longer lie below it are closed.
        open_ = at.bounds < self._cutoff
        at.kinds, at.bounds, at.coefs, at.branch = at.kinds[open_], at.bounds[open_], at.coefs[open_], at.branch[open_]
        at.lower_bound = max(at.lower_bound, float(at.bounds.min()) if at.n_open else at.value)

    @property
    def _cutoff(self) -> float:
        return self.problem.cutoff(self.proof.value, TOLERANCE)

    def _solve(self, kinds: Kinds, bounds: Floats, coefs: Floats) -> None:
        """Bound nodes, fix what screening allows, try what their relaxed problems round to, and keep open what is not closed."""
        keep = self._settled(kinds)
        kinds, bounds, coefs = kinds[keep], bounds[keep], coefs[keep]
        if len(kinds) == 0:
            return
        self.proof.n_nodes += len(kinds)
        taken, free = (kinds == 1).sum(axis=1), kinds == 0
        caps = None if self.groups is None or self.high is None else self.high - (kinds == 1) @ self.groups
        left = self.choices.k - taken
        steps = Steps(self.kernel, self.loss.gamma, free, kinds == 1, left, coefs, self.groups, caps)
        rows = np.arange(len(kinds))
        weights, coefs = np.zeros(kinds.shape), coefs.copy()
        closed = np.zeros(len(kinds), dtype=np.bool_)
        for _ in range(0, STEPS, CHECK_EVERY):
            steps.run(CHECK_EVERY)
            at, values, gains = steps.at()
            most, roof, kth, following = self._sums(steps, gains)
            bound = self.kernel.bounds(at, most)
            bounds[rows] = np.maximum(bounds[rows], bound)
            afford = self.kernel.affordable(at, roof, self._cutoff)[:, None]
            leave = steps.free & (roof[:, None] - kth[:, None] + gains <= afford)
            need = steps.free & (roof[:, None] - gains + following[:, None] <= afford)
            part = kinds[rows]
            part[leave], part[need] = -1, 1
            kinds[rows] = part
            weights[rows], coefs[rows] = steps.theta, steps.w
            shut = bounds[rows] >= self._cutoff
            closed[rows[shut]] = True
            lacks = self._cutoff - bounds[rows]
            futile = (values < self._cutoff) & (values - bounds[rows] <= FUTILE * lacks)
            going = ~(shut | futile)
            if not going.any():
                break
            steps.keep(going)
            rows = rows[going]
        kinds, bounds, coefs, weights = kinds[~closed], bounds[~closed], coefs[~closed], weights[~closed]
        if len(kinds):
            self._try(kinds, weights)
        keep = self._settled(kinds) & (bounds < self._cutoff)
        self._open(kinds[keep], bounds[keep], coefs[keep], weights[keep])

    def _sums(self, steps: Steps, gains: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """What the gains of a node's subsets can sum to, with and without groups; the least gain counted, and the next."""
        own = np.where(steps.fixed, gains, 0.0).sum(axis=1)
        order = -np.sort(-np.where(steps.free, gains, 0.0), axis=1)
        place = np.arange(len(gains))
        kth, following = order[place, steps.k - 1], order[place, np.minimum(steps.k, order.shape[1] - 1)]
        roof = own + np.cumsum(order, axis=1)[place, steps.k - 1]
        if self.groups is None or steps.caps is None:
            return roof, roof, kth, following
        codes = self.groups.argmax(axis=1)
        most = own.copy()
        for i, row in enumerate(gains):
            free = np.flatnonzero(steps.free[i])
            free = free[np.lexsort((-row[free], codes[free]))]
            sizes = np.bincount(codes[free], minlength=self.groups.shape[1])
            rank = np.arange(free.size) - (np.cumsum(sizes) - sizes)[codes[free]]
            allowed = row[free[rank < steps.caps[i][codes[free]]]]
            most[i] += np.sort(allowed)[::-1][: steps.k[i]].sum()
        return most, roof, kth, following

    def _settled(self, kinds: Kinds) -> Bools:
        """Evaluate the nodes that hold one subset only, and say which nodes hold more. Full groups and subsets are completed."""
        k = self.choices.k
        if self.groups is not None and self.high is not None:
            full = ((kinds == 1) @ self.groups >= self.high) @ self.groups.T > 0
            kinds[full & (kinds == 0)] = -1
        taken, free = (kinds == 1).sum(axis=1), (kinds == 0).sum(axis=1)
        single = (taken == k) | (taken + free == k)
        several = ~single & (taken < k) & (taken + free > k)
        ends = kinds[single]
        last = taken[single] < k
        ends[last] = np.where(ends[last] == 0, 1, ends[last])
        if self.groups is not None and self.high is not None and len(ends):
            ends = ends[((ends == 1) @ self.groups <= self.high).all(axis=1)]
        if len(ends):
            self._evaluate(np.array([np.flatnonzero(row == 1) for row in ends]))
        return np.asarray(several)

    def _try(self, kinds: Kinds, weights: Floats) -> None:
        """Evaluate the subset that each node's relaxed theta rounds to."""
        score = np.where(kinds == 1, 2.0, np.where(kinds == 0, weights, -1.0))
        if self.groups is None:
            best = np.sort(np.argsort(-score, axis=1, kind="stable")[:, : self.choices.k], axis=1)
        else:
            everywhere = np.full((len(score), self.choices.p), -2.0)
            everywhere[:, self.proof.features] = score
            place = np.full(self.choices.p, -1)
            place[self.proof.features] = np.arange(self.proof.features.size)
            best = np.array([place[self.choices.best(row)] for row in everywhere])
            best = best[(best >= 0).all(axis=1)]
        fits = np.take_along_axis(score, best, axis=1).min(axis=1, initial=2.0) >= 0.0 if len(best) == len(score) else None
        best = best if fits is None else best[fits]
        if len(best):
            self._evaluate(np.unique(best, axis=0))

    def _evaluate(self, supports: Indices) -> None:
        """Compare subsets of the features with the best one known; a better one is improved by swaps."""
        at = self.proof
        values = self.loss.values(at.features[supports])
        best = int(values.argmin())
        if not values[best] < at.value:
            return
        found = self.problem.search().descend(at.features[supports[best]])
        kept = np.zeros(self.choices.p, dtype=np.bool_)
        kept[found.support] = True
        value = self.problem.evaluate(kept.astype(np.float64), np.empty(0), gradient=False).value
        if value < at.value:
            at.theta, at.value = kept, value

    def _open(self, kinds: Kinds, bounds: Floats, coefs: Floats, weights: Floats) -> None:
        """Add nodes to the open ones. Each is branched on the feature whose relaxed weight is the largest below 1."""
        at = self.proof
        score = np.where((kinds == 0) & (weights < 1.0 - 1e-6), weights, -1.0)
        empty = score.max(axis=1, initial=-1.0) < 0
        score[empty] = np.where(kinds[empty] == 0, weights[empty], -1.0)
        at.branch = np.concatenate([at.branch, score.argmax(axis=1) if len(score) else np.empty(0, dtype=np.intp)])
        at.kinds, at.bounds = np.vstack([at.kinds, kinds]), np.concatenate([at.bounds, bounds])
        # Where to start from, not to all digits; what float32 cannot hold is cut off.
        at.coefs = np.concatenate([at.coefs, np.clip(coefs, -LARGEST_KEPT, LARGEST_KEPT).astype(np.float32)])

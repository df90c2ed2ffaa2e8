"""Search for a good subset: greedy additions, exact swaps, and starts that differ.

G relaxes to one point from everywhere because it is convex, so the relaxation is one start among several: greedy choices under
several ridge weights, what is left when the union of all answers so far is thinned out, the best answer with some of its features
replaced by others, and random features with greedy additions.
"""

from typing import NamedTuple

import numpy as np

from mixbin._validate import Floats
from mixbin.problem import FALL, Indices
from mixbin.problems.best_subset.choices import Choices
from mixbin.problems.best_subset.fit import Loss
from mixbin.problems.best_subset.swaps import QuadraticModel

GREEDY_GAMMAS = (1.0, 10.0, 100.0)
"""Greedy starts use these multiples of gamma: a larger ridge weight prefers features that are correlated with many others."""
KICKS = 60
"""A search ends when this many further starts in a row lead to nothing better. On 50 hard designs (150 rows, 500 columns with
correlation 0.9), 60 always found the best value known and 32 missed it twice."""
TRIED = 24
"""If the table of swaps is not exact, this many of its best entries are trained in every step."""
MOST_SWAPS = 1000
"""A descent ends after this many swaps; it needs about as many as there are features to keep."""
LARGEST_UNION = 4
"""The union of several answers is thinned out while it has at most this many times k features; the oldest go first."""


class Found(NamedTuple):
    """A subset, its value, and how many swaps from it are known not to lower the value."""

    support: Indices
    value: float
    swaps: int = 0
    tried: int = 0
    best_change: float = np.nan


class Search:
    """The searches over subsets of one problem.

    Parameters
    ----------
    loss : Loss
        The loss and the data.
    choices : Choices
        Which features may be kept together.
    """

    def __init__(self, loss: Loss, choices: Choices) -> None:
        self.loss, self.choices = loss, choices
        self.n_tables = 0
        """How many tables of swaps were computed, which is what a search costs."""
        self._ends: dict[bytes, Found] = {}

    def descend(self, support: Indices, most_tables: float = np.inf) -> Found:
        """Make the best swap until none lowers the value, or until ``most_tables`` tables were computed.

        A descent that meets the way of an earlier one ends where that one ended.
        """
        way = [support.tobytes()]
        if (known := self._ends.get(way[0])) is not None:
            return known
        model, swaps = self.loss.model_of(support), 0
        while swaps < most_tables:
            self.n_tables += 1
            table = self.choices.forbid(model.exchanges(), support)
            if table.size == 0 or not np.isfinite(table.min()):
                return self._ended(way, Found(support, model.value, swaps))
            i, j, value, tried = self._best_swap(model, table)
            if not value < model.value - FALL * abs(model.value) or swaps >= MOST_SWAPS:
                return self._ended(way, Found(support, model.value, swaps, tried, value - model.value))
            there = _swapped(support, i, j)
            after = self.loss.model_of(there)
            if not after.value < model.value:  # the table was off by rounding
                return self._ended(way, Found(support, model.value, swaps))
            support, model, swaps = there, after, swaps + 1
            way.append(support.tobytes())
            if (known := self._ends.get(way[-1])) is not None:
                return self._ended(way, known)
        return Found(support, model.value, swaps)

    def _ended(self, way: list[bytes], found: Found) -> Found:
        """Note where the way of a descent ended."""
        self._ends.update(dict.fromkeys(way, found))
        return found

    def _best_swap(self, model: QuadraticModel, table: Floats) -> tuple[int, int, float, int]:
        """The best swap of a table, its value, and how many swaps were looked at; an inexact table only says which to train."""
        if self.loss.exact_model:
            i, j = divmod(int(table.argmin()), table.shape[1])
            return i, j, float(table[i, j]), int(np.isfinite(table).sum())
        return self._trained_swaps(model, table)

    def _trained_swaps(self, model: QuadraticModel, table: Floats) -> tuple[int, int, float, int]:
        """Train the most promising swaps of a table: the best of them, its value, and how many there were."""
        flat = table.ravel()
        some = np.argsort(flat, kind="stable")[:TRIED] if flat.size <= 4096 else _smallest(flat, TRIED)
        some = some[np.isfinite(flat[some])]
        out, on = np.divmod(some, table.shape[1])
        # Training starts from the coefficients before the swap; the new feature has taken the place of the old one.
        supports = np.tile(model.support, (some.size, 1))
        coef = np.tile(model.coef[0], (some.size, 1))
        supports[np.arange(some.size), out], coef[np.arange(some.size), out] = on, 0.0
        best, value = self.loss.lowest(supports, coef)
        return int(out[best]), int(on[best]), value, some.size

    def greedy(self, support: Indices, factor: float = 1.0, without: Indices | None = None) -> Indices:
        """Add the feature that lowers the value most until there are k; ``without`` names features that are not added."""
        while support.size < self.choices.k:
            values = self.loss.model_of(support, factor * self.loss.gamma).additions()
            barred = self.choices.full(support)
            if without is not None:
                barred[without] = True
            if barred.all():
                barred = self.choices.full(support)
            values[barred] = np.inf
            support = np.sort(np.append(support, int(values.argmin())))
        return support

    def thinned(self, support: Indices) -> Indices:
        """Take out the feature that the value needs least until k are left."""
        while support.size > self.choices.k:
            support = np.delete(support, int(self.loss.model_of(support).removals().argmin()))
        return support

    def kicked(self, support: Indices, rng: np.random.Generator) -> Indices:
        """Replace some features, at random, by the best others."""
        k = support.size
        out = rng.choice(k, size=int(rng.integers(1, max(2, (k + 1) // 2 + 1))), replace=False)
        kept = np.delete(support, out)
        return self.greedy(kept, without=support[out])

    def half_random(self, rng: np.random.Generator) -> Indices:
        """Some features at random, and greedy additions to them: more different from the best answer than a kick."""
        drawn = rng.permutation(self.choices.random(rng))
        return self.greedy(np.sort(drawn[: drawn.size // 2]))

    def starts(self, relaxed: Floats | None) -> list[Indices]:
        """Starts that differ: greedy under several ridge weights, and the features that a relaxed theta favours."""
        empty = np.empty(0, dtype=np.intp)
        found = [self.greedy(empty, factor) for factor in GREEDY_GAMMAS]
        return found if relaxed is None else [*found, self.choices.best(relaxed)]

    def run(
        self, rng: np.random.Generator, relaxed: Floats | None = None, kicks: int = KICKS, first: Indices | None = None
    ) -> Found:
        """The best subset found by swaps from all starts, and then from changes of the best answer and half random subsets.

        It ends when ``kicks`` of these in a row lead to nothing better.
        """
        seen: dict[bytes, Found] = {}
        starts = self.starts(relaxed) if first is None else [first]
        for start in starts:
            self._note(seen, self.descend(start))
        best = min(seen.values(), key=lambda it: it.value)
        if self.choices.k in (0, self.choices.p):
            return best
        failed = 0
        while failed < kicks:
            start = self.half_random(rng) if failed % 2 else self.kicked(best.support, rng)
            self._note(seen, self.descend(start))
            if self.choices.groups is None and failed % 4 == 0:
                self._note(seen, self.descend(self._union(seen)))
            now = min(seen.values(), key=lambda it: it.value)
            failed = 0 if now.value < best.value - FALL * abs(best.value) else failed + 1
            best = now
        return best

    def _union(self, seen: dict[bytes, Found]) -> Indices:
        """The features of the best answers, thinned out to k."""
        union = np.empty(0, dtype=np.intp)
        for found in sorted(seen.values(), key=lambda it: it.value):
            larger = np.union1d(union, found.support)
            if larger.size > LARGEST_UNION * self.choices.k:
                break
            union = larger
        return self.thinned(union)

    @staticmethod
    def _note(seen: dict[bytes, Found], found: Found) -> None:
        seen.setdefault(found.support.tobytes(), found)


def _swapped(support: Indices, i: int, j: int) -> Indices:
    """The features after taking out the i-th of them and putting in feature j, in order."""
    return np.sort(np.append(np.delete(support, i), j))


def _smallest(values: Floats, count: int) -> Indices:
    """The positions of the smallest entries, in order."""
    some = np.argpartition(values, count)[:count]
    return np.asarray(some[np.lexsort((some, values[some]))])

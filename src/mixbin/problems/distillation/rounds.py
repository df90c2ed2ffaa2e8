"""Look through all exchanges of a large table in rounds, and make many exchanges between two of them.

There a round costs more than making exchanges. So each looks at all blocks, which threads share, and notes the rows of exchanges
that lower J or come close to it; then ``model_descent`` makes exchanges between these, and between the rows that promise most.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.one_blas_thread import in_threads, on_one_blas_thread
from mixbin.problem import FALL, Indices
from mixbin.problems.distillation.descent import ROWS_IN_BLOCK, lowest
from mixbin.problems.distillation.exchange import pair_changes, pair_work, single_changes
from mixbin.problems.distillation.model_descent import descend_by_model
from mixbin.problems.distillation.scan import (
    BLOCK_ROWS,
    FIRST_SIDE,
    LARGE_BLOCK,
    LEVERAGE_MARGIN,
    MOST_AFTER,
    MOST_MET,
    Scan,
    Side,
)
from mixbin.problems.work import OutOfWork, Work

NEAR_MISSES = 512
"""Exchanges are also made between this many rows of each kind that come closest to one that lowers J."""
PARTS = 8
"""A round is divided into this many parts, so that two or more threads share them."""
MANY_MET = 256
"""A part of a round ends once more rows are met whose exchanges lower J: far from the answer they would be without number."""
ROW = 32
"""Gathering a row takes as long as multiplying it by this many others."""
ALONE = 512
"""After a round, exchanges are also looked for among this many rows of each kind: those that lower J most when flipped alone."""
PRICE = 4
"""To evaluate an exchange among these costs about as much as to bound this many in a round."""


class Rounds(Scan):
    """The scan of a large table."""

    def search_all(self, most: int) -> float:
        """Look at all exchanges, then make some between the rows that were met, and so on, until none is left that lowers J.

        Returns
        -------
        float
            As for ``Scan``; NaN if about ``most`` exchanges were made.
        """
        made = 0
        while made < most:
            seen = self._round()
            if seen.best >= -FALL * abs(self.at.value):
                return seen.best
            count = self._move(descend_by_model(self.at, self.rows, self.chosen, self.weight, MOST_AFTER, self._work, seen.rows))
            if not count:  # what looked like a gain was rounding
                return np.nan
            made += count + self._exchanged_alone(seen.pairs)
        return np.nan

    def _exchanged_alone(self, pairs: int) -> int:
        """Make exchanges among the rows that lower J most when flipped alone; returns their number.

        This ends when it has cost about as much as the last round, which bounded this many ``pairs``.
        """
        made = 0
        while pairs > 0:
            gain = np.where(self.chosen, -self.weight, self.weight)
            self._work.add(gain.size * (4 + 4 * self.at.coef.shape[1]))
            alone = np.where(1.0 + gain * self.ends.leverage > LEVERAGE_MARGIN, single_changes(self.ends, gain), np.inf)
            off, on = (lowest(np.flatnonzero(kind), alone, ALONE) for kind in (self.chosen, ~self.chosen))
            change = self._changes(off, on)
            if not change.min() < -FALL * abs(self.at.value):
                break
            part = [rows[np.argsort(low)[:ROWS_IN_BLOCK]] for rows, low in ((off, change.min(axis=1)), (on, change.min(axis=0)))]
            after = descend_by_model(
                self.at, self.rows, self.chosen, self.weight, MOST_AFTER, self._work, np.concatenate(part), most_blocks=1
            )
            count = self._move(after)
            if not count:
                break
            made, pairs = made + count, pairs - PRICE * change.size
        return made

    def _round(self) -> "Seen":
        """Look at all exchanges."""
        off, on = self._sorted(self.chosen, -1.0), self._sorted(~self.chosen, 1.0)
        side, large = self.bounds.side(on), LARGE_BLOCK * BLOCK_ROWS
        # The rows that promise most come first, and at first few of them: their best change rules out most of the others.
        looked, best = [], self._easy_change(off, on)
        for rows, multiple in ((off[:BLOCK_ROWS], BLOCK_ROWS), (off[BLOCK_ROWS:large], BLOCK_ROWS), (off[large:], large)):
            looked += self._shared(_parts(rows, multiple), side, best)
            best = min(it.best for it in looked)
        near = NearMisses(self.rows.n_rows)
        for it in looked:
            near.join(it.near)
        met = [rows for it in looked for rows in it.met] + [near.rows(self.chosen), near.rows(~self.chosen)]
        return Seen(best, np.unique(np.concatenate(met)), sum(it.pairs for it in looked))

    def _easy_change(self, off: Indices, on: Indices) -> float:
        """A low change that is easy to find: between the rows that promise most, or between rows that hardly matter."""
        quiet = (rows[np.argsort(np.abs(self.bounds.fit[rows]), kind="stable")] for rows in (off, on))
        sides = [(off[:BLOCK_ROWS], on[:FIRST_SIDE]), tuple(rows[:FIRST_SIDE] for rows in quiet)]
        return min(float(self._changes(*pair).min()) for pair in sides)

    def _shared(self, parts: list[Indices], on: Side, best: float) -> "list[Looked]":
        """``_look_through`` for each of these parts, which threads share."""

        def looked_through(part: Indices) -> Looked:
            one = copy(self)
            one._work, one.bounds = self._work.part(len(parts)), copy(self.bounds)
            one.bounds._work, one.bounds.n_pairs = one._work, 0
            try:
                return one._look_through(part, on, best)
            except OutOfWork:
                return Looked(np.inf, [], NearMisses(self.rows.n_rows), 0, one._work)

        looked = in_threads(looked_through, parts)
        for it in looked:
            self._work.join(it.work)
        return looked

    def _look_through(self, off: Indices, on: Side, best: float) -> "Looked":
        """Look at the exchanges of these rows for those of ``on``, of which ``best`` is known to be possible.

        This ends once many rows are met whose exchanges lower J: then these are made first.
        """
        least, large = FALL * abs(self.at.value), LARGE_BLOCK * BLOCK_ROWS
        met: list[Indices] = []
        near, n_met = NearMisses(self.rows.n_rows), 0
        for start in range(0, off.size, BLOCK_ROWS):
            if start % large == 0:
                side = self._near(off[start : start + large], on, max(best, -least))
            open_ = self._open(off[start : start + BLOCK_ROWS], side, max(best, -least))
            # The most promising part first: its best change rules out most of the others.
            parts = sorted(open_, key=lambda it: float(it[2].min()))
            for some in (parts[:1], parts[1:]):
                left = [(i, j[bound < max(best, -least)]) for i, j, bound in some]
                left = [(i, j) for i, j in left if j.size]
                for (i, j), change in zip(left, self._changes_of(left) if left else [], strict=True):
                    by_off, by_on = change.min(axis=1), change.min(axis=0)
                    best = min(best, float(by_off.min()))
                    met += [i[by_off < -least], j[by_on < -least][:MOST_MET]]
                    n_met += met[-2].size + met[-1].size
                    near.add(i, by_off)
                    near.add(j, by_on)
            if n_met > MANY_MET:
                break
        return Looked(best, met, near, self.bounds.n_pairs, self._work)

    @on_one_blas_thread  # as in ``_changes``
    def _changes_of(self, parts: list[tuple[Indices, Indices]]) -> list[Floats]:
        """The change of J for every pair of each part.

        The rows to put in of one part are mostly those of the others, too. If so, they are gathered and multiplied once.
        """
        off, open_ = np.concatenate([i for i, _ in parts]), np.zeros(self.rows.n_rows, dtype=np.bool_)
        for _, j in parts:
            open_[j] = True
        on = np.flatnonzero(open_)
        if len(parts) == 1 or (ROW + off.size) * on.size > sum((ROW + i.size) * j.size for i, j in parts):
            return [self._changes(i, j) for i, j in parts]
        place = np.empty(self.rows.n_rows, dtype=np.intp)
        place[on] = np.arange(on.size)
        images, e = self._between(off, on), self.at.coef.shape[1]
        self._work.add(sum(pair_work(i.size * j.size, e) for i, j in parts))
        changes, first = [], 0
        for i, j in parts:
            some = slice(first, first + i.size), slice(off.size + first, off.size + first + i.size)
            between, bend_between = (images[it].take(place[j], axis=1) for it in some)
            changes.append(pair_changes(*self._pair_ends(i, j), between, bend_between, self.weight)[0])
            first += i.size
        return changes


def _parts(rows: Indices, multiple: int) -> list[Indices]:
    """At most PARTS parts of these rows, each a multiple of this many."""
    starts = np.arange(0, rows.size, multiple)
    return [rows[part[0] : part[-1] + multiple] for part in np.array_split(starts, PARTS) if part.size]


class NearMisses:
    """The rows whose exchanges come closest to lowering J.

    Once some exchanges are made, those that lower J next are mostly among these, and need not wait for the next round.
    """

    def __init__(self, n_rows: int) -> None:
        self._lowest = np.full(n_rows, np.inf)

    def add(self, rows: Indices, change: Floats) -> None:
        """Note the lowest change by an exchange of each of these rows."""
        self._lowest[rows] = np.minimum(self._lowest[rows], change)

    def join(self, other: "NearMisses") -> None:
        """Note those of another part."""
        np.minimum(self._lowest, other._lowest, out=self._lowest)

    def rows(self, kind: NDArray[np.bool_]) -> Indices:
        """At most NEAR_MISSES of the rows where ``kind`` is True."""
        rows = np.flatnonzero(kind & (self._lowest < np.inf))
        return np.asarray(rows[np.argsort(self._lowest[rows], kind="stable")[:NEAR_MISSES]])


class Seen(NamedTuple):
    """What a round has seen."""

    best: float
    """The change by the best exchange."""
    rows: Indices
    """Those of exchanges that lower J or come close to it."""
    pairs: int
    """How many pairs were bounded by themselves: what the round has cost."""


class Looked(NamedTuple):
    """What was seen in a part of a round."""

    best: float
    """The change by the best exchange."""
    met: list[Indices]
    """The rows of exchanges that lower J."""
    near: NearMisses
    pairs: int
    """As in ``Seen``."""
    work: Work

"""All exchanges looked through, exactly, though few of them are evaluated.

Of two rows together their exchange needs a_i' P a_j, at most the root of their leverages (Cauchy-Schwarz), and a second-order
term that is at least what two vectors of known lengths leave (see ``expansion``). What remains is a few numbers per row: a pair
whose bound is not below the best change so far is passed over.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.rows import ENTRIES_AT_ONCE, FetchedRows, RowStore
from mixbin.problem import FALL, Indices
from mixbin.problems.distillation.descent import descend
from mixbin.problems.distillation.exchange import ExchangeTerms, exchange_terms, pair_changes, pair_work
from mixbin.problems.distillation.expansion import Expansion, RowTerms
from mixbin.problems.work import OutOfWork, Work

FIRST_SIDE = 128
"""The exchanges between so many promising rows of each kind are evaluated at once, to have something to compare with."""
BLOCK_ROWS = 32
"""Rows to take out that are bounded together first."""
LARGE_BLOCK = 8
"""Such blocks that are bounded together before."""
BLOCK_PAIRS, SPLIT = 2**14, 4
"""Pairs that are bounded one by one and evaluated; blocks with more are split into so many parts before."""
LEVERAGE_MARGIN = 1e-9
"""A row whose leverage comes this close to 1 cannot be taken out alone."""
POOL = 4096
"""Rows of each kind, those that promise most, among which exchanges are made one after the other."""
MOST_AFTER = 500
"""Exchanges that follow from one that was found, at most."""
ENOUGH_MET, MOST_MET = 16, 256
"""Rows in exchanges that lower J are gathered until there are more than this; at most so many to put in from one block."""
MANY = 64
"""What all rows know is computed anew when so many have changed, else updated."""


class Exchange(NamedTuple):
    """A row to take out, a row to put in, and what that changes."""

    off: int
    on: int
    change: float


class Scan:
    """All candidate rows around one selection, or some of them; ``weight`` is 1/m.

    Once ``work`` is used up, every method raises OutOfWork; ``chosen`` is then the selection reached.
    """

    def __init__(
        self, rows: RowStore | FetchedRows, at: Expansion, chosen: NDArray[np.bool_], weight: float, work: Work | None = None
    ) -> None:
        self.rows, self.at, self.chosen = rows, at, chosen.copy()
        self.weight, self._work = weight, Work() if work is None else work
        self._compute()

    def best(self) -> Exchange:
        """The best of all exchanges."""
        off, on = self._sorted(self.chosen, -1.0), self._sorted(~self.chosen, 1.0)
        best = self._best_pair(Exchange(-1, -1, np.inf), off[:FIRST_SIDE], on[:FIRST_SIDE])
        for start in range(0, off.size, BLOCK_ROWS):
            i = off[start : start + BLOCK_ROWS]
            for part, j in self._open(i, on, best.change):
                best = self._best_pair(best, part, j)
        return best

    def search_all(self, most: int) -> float:
        """Make exchanges that lower J, round by round, until none is left, about ``most`` are made, or a whole round is over.

        Returns the change by the best of all exchanges that are left, none of which lowers J; NaN where that is not known.
        """
        order = self._sorted(self.chosen, -1.0)
        n_blocks = -(-order.size // BLOCK_ROWS)
        best, made, clean, k, seen = np.inf, 0, 0, 0, 0
        met: list[Indices] = []
        while clean < n_blocks:
            i = order[k * BLOCK_ROWS : (k + 1) * BLOCK_ROWS]
            least = FALL * abs(self.at.value)
            fresh = best == np.inf
            if fresh:
                on = self._sorted(~self.chosen, 1.0)
                best = float(self._changes(i, on[:FIRST_SIDE]).min())
            if fresh or k % LARGE_BLOCK == 0:
                large = slice(k // LARGE_BLOCK * LARGE_BLOCK * BLOCK_ROWS, (k // LARGE_BLOCK + 1) * LARGE_BLOCK * BLOCK_ROWS)
                near = self._near(order[large], on, max(best, -least))
            for part, j in self._open(i, near, max(best, -least)):
                change = self._changes(part, j)
                best = min(best, float(change.min()))
                met += [part[change.min(axis=1) < -least], j[change.min(axis=0) < -least][:MOST_MET]]
            clean, k, seen = clean + 1, (k + 1) % n_blocks, seen + 1
            if sum(part.size for part in met) > ENOUGH_MET or (clean == n_blocks and best < -least):
                count = self._descend(np.unique(np.concatenate(met)), order)
                if not count:  # lower by no more than rounding
                    break
                made += count
                best, clean, met = np.inf, 0, []
                if made >= most or seen >= n_blocks:
                    return np.nan
        return best

    def _descend(self, part: Indices, order: Indices) -> int:
        """Make exchanges between these rows, then where they lead to; ``order`` gets the new rows in place of the old."""
        pool = np.union1d(part, np.concatenate([self._sorted(self.chosen, -1.0)[:POOL], self._sorted(~self.chosen, 1.0)[:POOL]]))
        first = np.searchsorted(pool, part)
        near, work = self.rows.take(pool, self.at.origin), self._work
        after = descend(self.at, near, self.chosen[pool], self.weight, MOST_AFTER, work, first)
        flipped = pool[after != self.chosen[pool]]
        out, into = flipped[self.chosen[flipped]], flipped[~self.chosen[flipped]]
        order[np.isin(order, out)] = into
        self.chosen[pool] = after
        if work.used_up:
            raise OutOfWork
        changed = self.at.terms(self.rows.take(flipped, self.at.origin), work=work)
        gains = np.where(self.chosen[flipped], self.weight, -self.weight)
        before, self.at = self.at, self.at.changed(changed, gains, work)
        if flipped.size < MANY:
            self._update(changed, gains, before)
        else:
            self._compute()
        return int(out.size)

    def _compute(self) -> None:
        """Leverages, bends, residuals and slopes of all rows."""
        at, rows, e = self.at, self.rows, self.at.coef.shape[1]
        n = rows.n_rows
        self.ends = ExchangeTerms(np.empty(n), np.empty(n), np.empty((n, e)), np.empty((n, e)))
        for part in np.array_split(np.arange(n), -(-n * (len(at.P) + e) // ENTRIES_AT_ONCE)):
            terms = at.terms(rows.take(part, at.origin), work=self._work)
            self._work.add(part.size * len(at.P) * (len(at.P) + 2))
            for whole, x in zip(self.ends, exchange_terms(terms, terms.P_a @ at.H), strict=True):
                whole[part] = x
        self.bounds = Bounds(self.ends, self.weight, self._work)

    def _update(self, changed: RowTerms, gains: Floats, before: Expansion) -> None:
        """The same after some rows have changed, with one thin product (see ``descent.ExchangeBlock``)."""
        k, n, e = gains.size, len(before.P), before.coef.shape[1]
        self._work.add(2 * k * n * n + n * n * e + 2 * k * k * n + k**3 + self.rows.n_rows * k * (4 + 2 * k + e))
        P_H = changed.P_a @ before.H
        images = self._images(np.vstack([changed.P_a, P_H @ before.P, (self.at.P @ self.at.grad).T]))
        F, T, slope = images[:k].T, images[k : 2 * k].T, images[2 * k :].T
        E = np.linalg.inv(changed.a @ changed.P_a.T + np.diag(1.0 / gains))
        F_E = F @ E
        leverage = self.ends.leverage - np.einsum("nk,nk->n", F_E, F)
        bend = self.ends.bend - np.einsum("nk,nk->n", F_E, 2.0 * T - F_E @ (P_H @ changed.P_a.T))
        self.ends = ExchangeTerms(leverage, bend, self.ends.residual - F_E @ changed.residual, np.ascontiguousarray(slope))
        self.bounds = Bounds(self.ends, self.weight, self._work)

    def _images(self, thin: Floats) -> Floats:
        """``thin @ a`` for all rows."""
        d, e = len(self.at.P) - 1, self.at.coef.shape[1]
        self._work.add(self.rows.image_work(len(thin)))
        return self.rows.images(np.hstack([thin[:, :d], np.zeros((len(thin), e))]), self.at.origin) + thin[:, d:]

    def _changes(self, off: Indices, on: Indices) -> Floats:
        """The change of J for every pair of these rows; a row to put in is needed as it is, one to take out as its images."""
        d, e = len(self.at.P) - 1, self.at.coef.shape[1]
        P_a = self.at.terms(self.rows.take(off, self.at.origin), work=self._work).P_a
        self._work.add(2 * off.size * (d + 1) ** 2 + 2 * off.size * on.size * d + pair_work(off.size * on.size, e))
        thin = np.vstack([P_a, P_a @ self.at.H @ self.at.P])
        images = thin[:, :d] @ self.rows.take(on, self.at.origin)[:, :d].T + thin[:, d:]
        ends = ExchangeTerms(*(x[off][:, None] for x in self.ends))
        return pair_changes(
            ends, ExchangeTerms(*(x[on] for x in self.ends)), images[: off.size], images[off.size :], self.weight
        )[0]

    def _sorted(self, kind: NDArray[np.bool_], sign: float) -> Indices:
        """Rows of a kind, those that promise most to first order first."""
        rows = np.flatnonzero(kind)
        return np.asarray(rows[np.argsort(sign * self.bounds.fit[rows], kind="stable")])

    def _open(self, i: Indices, on: Indices, enough: float) -> Iterator[tuple[Indices, Indices]]:
        """The exchanges that the bounds leave: parts of i, each with rows to put in."""
        near = self._near(i, on, enough)
        if near.size * i.size > BLOCK_PAIRS and i.size > 1:
            # One row of high leverage loosens the bounds of all: the parts without it are soon done.
            for part in np.array_split(i, SPLIT):
                if part.size:
                    yield from self._open(part, near, enough)
            return
        j = near[(self.bounds.bound(i, near) < enough / self.weight).any(axis=0)] if near.size else near
        if j.size:
            yield i, j

    def _near(self, i: Indices, on: Indices, enough: float) -> Indices:
        """The rows to put in that the bounds for all rows i at once leave."""
        return np.asarray(on[self.bounds.block_bound(i, on) < enough / self.weight])

    def _best_pair(self, best: Exchange, off: Indices, on: Indices) -> Exchange:
        change = self._changes(off, on)
        i, j = divmod(int(np.argmin(change)), on.size)
        return Exchange(int(off[i]), int(on[j]), float(change[i, j])) if change[i, j] < best.change else best


class Bounds:
    """Lower bounds of the change over the weight, from what is known of the rows alone."""

    def __init__(self, rows: ExchangeTerms, weight: float, work: Work) -> None:
        self._work = work
        work.add(len(rows.leverage) * (4 + 3 * rows.slope.shape[1]))
        self.leverage, self.residual, self.slope = weight * np.maximum(rows.leverage, 0.0), rows.residual, rows.slope
        self.root, self.fit = np.sqrt(self.leverage), np.einsum("ne,ne->n", rows.slope, rows.residual)
        self.steep, self.far = np.linalg.norm(rows.slope, axis=1), np.linalg.norm(rows.residual, axis=1)
        self.curved = np.sqrt(0.5 * weight * np.maximum(rows.bend, 0.0))

    def bound(self, i: Indices, j: Indices) -> Floats:
        """For each pair of rows i and j; -inf where row i cannot be taken out alone."""
        self._work.add(i.size * j.size * (24 + 2 * self.slope.shape[1]))
        keep, into = (1.0 - self.leverage[i])[:, None], 1.0 + self.leverage[j]
        # |a_i' P a_j| is at most this; the true determinant lies between keep * into and that plus its square.
        cross = np.outer(self.root[i], self.root[j])
        mixed = self.slope[i] @ self.residual[j].T
        mixed += self.residual[i] @ self.slope[j].T
        np.abs(mixed, out=mixed)
        mixed *= cross
        least = keep * self.fit[j]
        least -= self.fit[i][:, None] * into
        least -= mixed
        alone = keep * into
        largest = alone + cross * cross
        possible = alone > LEVERAGE_MARGIN
        first = np.divide(least, np.where(least < 0, alone, largest), out=np.full(least.shape, -np.inf), where=possible)
        # The second-order term, 1/2 |C_i h_i + C_j h_j|^2 with |h|^2 = a' P H P a, is at least half the square of the difference
        # of the two lengths, of which each is known within what ``cross`` leaves open.
        far_i, far_j = self.far[i][:, None], self.far[j]
        spare_i, spare_j = cross * far_j, cross * far_i
        length_i, length_j = self.curved[i][:, None] * (into * far_i), self.curved[j] * (keep * far_j)
        spare = self.curved[i][:, None] * spare_i + self.curved[j] * spare_j
        apart = np.maximum(np.abs(length_i - length_j) - spare, 0.0)
        first += np.divide(apart * apart, largest * largest, out=np.zeros(least.shape), where=possible)
        return np.asarray(first)

    def block_bound(self, i: Indices, j: Indices) -> Floats:
        """For each row j, against all rows i at once."""
        self._work.add(10 * (i.size + j.size))
        keep, into, root = 1.0 - self.leverage[i], 1.0 + self.leverage[j], self.root[i]
        if keep.min() <= LEVERAGE_MARGIN:
            return np.full(j.size, -np.inf)
        least = np.minimum(keep.min() * self.fit[j], keep.max() * self.fit[j]) - np.maximum(
            self.fit[i].max() * into, self.fit[i].max()
        )
        least -= self.root[j] * ((root * self.steep[i]).max() * self.far[j] + (root * self.far[i]).max() * self.steep[j])
        largest = keep.max() * into + self.leverage[i].max() * self.leverage[j]
        return np.asarray(least / np.where(least < 0, keep.min() * into, largest))

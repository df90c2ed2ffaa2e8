"""Look through all exchanges, exactly, but evaluate only few of them.

The change by an exchange (see ``expansion``) depends on the two rows together through two quantities only. a_i' P a_j is at most
the root of the product of their leverages (Cauchy-Schwarz). The second-order term is at least the value that follows from the
lengths of two vectors (reverse triangle inequality). So a few numbers per row give a lower bound for every pair, and a pair whose
bound is not below the best change so far need not be evaluated.
"""

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.one_blas_thread import in_threads, on_one_blas_thread
from mixbin.data.rows import ENTRIES_AT_ONCE, FetchedRows, RowStore
from mixbin.data.usual_values import UsualValueRows
from mixbin.problem import FALL, Indices
from mixbin.problems.distillation.descent import descend
from mixbin.problems.distillation.exchange import ExchangeTerms, exchange_terms, pair_changes, pair_work
from mixbin.problems.distillation.expansion import Expansion, RowTerms
from mixbin.problems.distillation.model_descent import descend_by_model
from mixbin.problems.work import OutOfWork, Work

FIRST_SIDE = 128
"""The exchanges with this many of the most promising rows are evaluated first, so that the bounds have a low change to beat."""
BLOCK_ROWS = 32
"""Rows to take out are bounded together in blocks of this many rows."""
LARGE_BLOCK = 8
"""Before each block is bounded by itself, one coarser bound covers this many consecutive blocks."""
BLOCK_PAIRS, SPLIT = 2**14, 4
"""If the bound of a block leaves at most BLOCK_PAIRS pairs, each pair is bounded by itself and the pairs left are evaluated. If
the bound leaves more, the block is first split into SPLIT parts."""
LEVERAGE_MARGIN = 1e-9
"""The bounds divide by 1 - leverage: if that is below this margin, they claim nothing (-inf) and the pair is evaluated."""
POOL = 4096
"""Exchanges are made one after the other between this many rows of each kind, those that promise most."""
MOST_AFTER = 500
"""After the scan has found improving exchanges, ``descent`` makes at most this many before the scan goes on."""
ENOUGH_MET, MOST_MET = 16, 256
"""The scan collects the rows of improving exchanges until it has more than ENOUGH_MET, and then makes exchanges between them. One
block adds at most MOST_MET rows to put in."""
NEAR_MISSES = 512
"""In large tables exchanges are also made between this many rows of each kind that come closest to one that lowers J: there a
round costs more than exchanges."""
PARTS = 8
"""A round through a large table is divided into this many parts, so that two or more threads share them."""
MANY_MET = 256
"""A part of a round ends once more rows are met whose exchanges lower J: far from the answer they would be without number."""
KEPT_ENTRIES = 2**21
"""If all rows together have at most this many entries (16 MB), the scan keeps them centred instead of centring some again and
again."""
MANY = 64
"""If at least this many rows were exchanged, the terms of all rows are computed anew; if fewer, they are updated."""


class Exchange(NamedTuple):
    """A row to take out, a row to put in, and the change of J by that exchange."""

    off: int
    on: int
    change: float


class Scan:
    """The exchanges between the candidate rows of one selection, or between some of them; ``weight`` is 1/m.

    With ``by_model`` the exchanges found are made as in ``model_descent``, else as in ``descent``.

    Once ``work`` is used up, every method raises OutOfWork; ``chosen`` then holds the selection reached so far.
    """

    def __init__(
        self,
        rows: RowStore | FetchedRows,
        at: Expansion,
        chosen: NDArray[np.bool_],
        weight: float,
        work: Work | None = None,
        by_model: bool = False,
    ) -> None:
        self.rows, self.at, self.chosen, self.by_model = rows, at, chosen.copy(), by_model
        self.weight, self._work = weight, Work() if work is None else work
        few = rows.n_rows * (len(at.P) + at.coef.shape[1]) <= KEPT_ENTRIES
        self._zhat = rows.take(np.arange(rows.n_rows), at.origin) if few else None
        self._compute()

    def best(self) -> Exchange:
        """The best of all exchanges."""
        off, on = self._sorted(self.chosen, -1.0), self._sorted(~self.chosen, 1.0)
        best, side = self._best_pair(Exchange(-1, -1, np.inf), off[:FIRST_SIDE], on[:FIRST_SIDE]), self.bounds.side(on)
        for start in range(0, off.size, BLOCK_ROWS):
            i = off[start : start + BLOCK_ROWS]
            for part, j in self._open(i, side, best.change):
                best = self._best_pair(best, part, j)
        return best

    def search_all(self, most: int) -> float:
        """Go round the blocks of selected rows and make the exchanges found that lower J.

        The search ends when a whole round finds no exchange that lowers J. After making exchanges it also ends if it has made
        about ``most`` of them or has looked at every block once.

        Returns
        -------
        float
            The change by the best exchange that is left. None of these lowers J by more than rounding. NaN if exchanges were made
            and the others have not been looked through again, or if gains were found that cannot be made, by lack of digits.
        """
        if self.by_model:
            return self._search_in_rounds(most)
        order = self._sorted(self.chosen, -1.0)
        n_blocks = -(-order.size // BLOCK_ROWS)
        best, made, clean, k, seen, n_met = np.inf, 0, 0, 0, 0, 0
        met: list[Indices] = []
        while clean < n_blocks:
            i = order[k * BLOCK_ROWS : (k + 1) * BLOCK_ROWS]
            least = FALL * abs(self.at.value)
            fresh = best == np.inf
            if fresh:
                on = self._sorted(~self.chosen, 1.0)
                side = self.bounds.side(on)
                best = float(self._changes(i, on[:FIRST_SIDE]).min())
            if fresh or k % LARGE_BLOCK == 0:
                large = slice(k // LARGE_BLOCK * LARGE_BLOCK * BLOCK_ROWS, (k // LARGE_BLOCK + 1) * LARGE_BLOCK * BLOCK_ROWS)
                near = self._near(order[large], side, max(best, -least))
            for part, j in self._open(i, near, max(best, -least)):
                change = self._changes(part, j)
                by_off, by_on = change.min(axis=1), change.min(axis=0)
                best = min(best, float(by_off.min()))
                met += [part[by_off < -least], j[by_on < -least][:MOST_MET]]
                n_met += met[-2].size + met[-1].size
            clean, k, seen = clean + 1, (k + 1) % n_blocks, seen + 1
            if n_met > ENOUGH_MET or (clean == n_blocks and best < -least):
                out, into = self._descend(np.unique(np.concatenate(met)))
                order[np.isin(order, out)] = into
                count = out.size
                if not count:  # what looked like a gain was rounding
                    return np.nan
                made += count
                best, clean, n_met, met = np.inf, 0, 0, []
                if made >= most or seen >= n_blocks:
                    return np.nan
        return best

    def _search_in_rounds(self, most: int) -> float:
        """The same for a large table: look at all blocks, then make exchanges between the rows that were met, and so on.

        There it takes less time to make many exchanges at once than to look at few blocks in between.
        """
        made = 0
        while made < most:
            best, met = self._round()
            if best >= -FALL * abs(self.at.value):
                return best
            out, _ = self._descend(met)
            if not out.size:  # what looked like a gain was rounding
                return np.nan
            made += out.size
        return np.nan

    def _round(self) -> tuple[float, Indices]:
        """The change by the best of all exchanges, and the rows of those that lower J or come close to it."""
        off, on = self._sorted(self.chosen, -1.0), self._sorted(~self.chosen, 1.0)
        side, large = self.bounds.side(on), LARGE_BLOCK * BLOCK_ROWS
        starts = np.arange(large, off.size, large)
        parts = [slice(part[0], part[-1] + large) for part in np.array_split(starts, PARTS) if part.size]
        # The rows that promise most come first, and by themselves: their best change rules out most of the others.
        first = self._look_through(off[:large], side, self._easy_change(off, on))

        def looked_through(at: slice) -> Looked:
            one = copy(self)
            one._work, one.bounds = self._work.part(len(parts)), copy(self.bounds)
            one.bounds._work = one._work
            try:
                return one._look_through(off[at], side, first.best)
            except OutOfWork:
                return Looked(np.inf, [], NearMisses(), one._work)

        others = in_threads(looked_through, parts)
        for it in others:
            self._work.join(it.work)
            first.missed.join(it.missed)
        met = [rows for it in (first, *others) for rows in it.met]
        return min(it.best for it in (first, *others)), np.unique(np.concatenate(met + first.missed.rows()))

    def _easy_change(self, off: Indices, on: Indices) -> float:
        """A low change that is easy to find: between the rows that promise most, or between rows that hardly matter."""
        quiet = (rows[np.argsort(np.abs(self.bounds.fit[rows]), kind="stable")] for rows in (off, on))
        sides = [(off[:BLOCK_ROWS], on[:FIRST_SIDE]), tuple(rows[:FIRST_SIDE] for rows in quiet)]
        return min(float(self._changes(*pair).min()) for pair in sides)

    def _look_through(self, off: Indices, on: "Side", best: float) -> "Looked":
        """Look at the exchanges of these rows for those of ``on``, of which ``best`` is known to be possible.

        This ends once many rows are met whose exchanges lower J: then these are made first.
        """
        least, large = FALL * abs(self.at.value), LARGE_BLOCK * BLOCK_ROWS
        met: list[Indices] = []
        missed, n_met = NearMisses(), 0
        for start in range(0, off.size, BLOCK_ROWS):
            if start % large == 0:
                near = self._near(off[start : start + large], on, max(best, -least))
            for part, j in self._open(off[start : start + BLOCK_ROWS], near, max(best, -least)):
                change = self._changes(part, j)
                by_off, by_on = change.min(axis=1), change.min(axis=0)
                best = min(best, float(by_off.min()))
                met += [part[by_off < -least], j[by_on < -least][:MOST_MET]]
                n_met += met[-2].size + met[-1].size
                missed.add(part, by_off, j, by_on)
            if n_met > MANY_MET:
                break
        return Looked(best, met, missed, self._work)

    def _descend(self, part: Indices) -> tuple[Indices, Indices]:
        """Make exchanges between the rows of ``part``, then among the most promising rows.

        Returns the rows that were taken out and those that were put in.
        """
        work = self._work
        after = self._descended_by_model(part) if self.by_model else self._descended_in_pool(part)
        flipped = np.flatnonzero(after != self.chosen)
        out, into = flipped[self.chosen[flipped]], flipped[~self.chosen[flipped]]
        self.chosen = after
        if work.used_up:
            raise OutOfWork
        changed = self.at.terms(self._take(flipped), work=work)
        gains = np.where(self.chosen[flipped], self.weight, -self.weight)
        before, self.at = self.at, self.at.changed(changed, gains, work)
        if flipped.size < MANY:
            self._update(changed, gains, before)
        else:
            self._compute()
        return out, into

    def _descended_by_model(self, part: Indices) -> NDArray[np.bool_]:
        return descend_by_model(self.at, self.rows, self.chosen, self.weight, MOST_AFTER, self._work, part)

    def _descended_in_pool(self, part: Indices) -> NDArray[np.bool_]:
        pool = np.union1d(part, np.concatenate([self._sorted(self.chosen, -1.0)[:POOL], self._sorted(~self.chosen, 1.0)[:POOL]]))
        first, after = np.searchsorted(pool, part), self.chosen.copy()
        after[pool] = descend(self.at, self._take(pool), self.chosen[pool], self.weight, MOST_AFTER, self._work, first)
        return after

    def _take(self, rows: Indices) -> Floats:
        """These rows, relative to the expansion's origin."""
        return self.rows.take(rows, self.at.origin) if self._zhat is None else np.asarray(self._zhat[rows])

    def _compute(self) -> None:
        """Compute the leverages, bends, residuals and slopes of all rows, and their bounds."""
        at, rows, e = self.at, self.rows, self.at.coef.shape[1]
        n = rows.n_rows
        if isinstance(rows, UsualValueRows):
            self._compute_from_usual_values(rows)
            return
        self.ends = ExchangeTerms(np.empty(n), np.empty(n), np.empty((n, e)), np.empty((n, e)))
        for part in np.array_split(np.arange(n), -(-n * (len(at.P) + e) // ENTRIES_AT_ONCE)):
            terms = at.terms(self._take(part), work=self._work)
            self._work.add(part.size * len(at.P) * (len(at.P) + 2))
            for whole, x in zip(self.ends, exchange_terms(terms, terms.P_a @ at.H), strict=True):
                whole[part] = x
        self.bounds = Bounds(self.ends, self.weight, self._work)

    def _compute_from_usual_values(self, rows: UsualValueRows) -> None:
        """The same for rows that are stored by their differences from usual values, without the products P a of all rows."""
        at, e = self.at, self.at.coef.shape[1]
        d = len(at.P) - 1
        self._work.add(rows.n_rows * len(at.P) * (2 * len(at.P) + 2 + 2 * e))
        P_H_P = at.P @ at.H @ at.P
        thin = np.zeros((2 + 2 * e, d + e))
        thin[:, :d] = np.vstack([2.0 * at.P[d, :d], 2.0 * P_H_P[d, :d], -at.coef[:d].T, (at.P @ at.grad)[:d].T])
        thin[2 : 2 + e, d:] = np.eye(e)
        forms = np.zeros((2, d + e, d + e))
        forms[:, :d, :d] = at.P[:d, :d], P_H_P[:d, :d]
        images = rows.images(thin, at.origin)
        leverage = rows.squares(forms[0], at.origin) + images[0] + at.P[d, d]
        bend = rows.squares(forms[1], at.origin) + images[1] + P_H_P[d, d]
        residual, slope = images[2 : 2 + e].T - at.coef[d], images[2 + e :].T + (at.P @ at.grad)[d]
        self.ends = ExchangeTerms(leverage, bend, np.ascontiguousarray(residual), np.ascontiguousarray(slope))
        self.bounds = Bounds(self.ends, self.weight, self._work)

    def _update(self, changed: RowTerms, gains: Floats, before: Expansion) -> None:
        """Update the terms of all rows after a few were exchanged, with one thin product (see ``descent.ExchangeBlock``)."""
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
        """``thin @ a`` for every row a; one column per row."""
        d, e = len(self.at.P) - 1, self.at.coef.shape[1]
        self._work.add(self.rows.image_work(len(thin)))
        return self.rows.images(np.hstack([thin[:, :d], np.zeros((len(thin), e))]), self.at.origin) + thin[:, d:]

    @on_one_blas_thread  # as in ``descend``
    def _changes(self, off: Indices, on: Indices) -> Floats:
        """The change of J for every pair of these rows. Only those to take out are multiplied by P: they are usually fewer."""
        d, e = len(self.at.P) - 1, self.at.coef.shape[1]
        P_a = self.at.terms(self._take(off), work=self._work).P_a
        self._work.add(2 * off.size * (d + 1) ** 2 + 2 * off.size * on.size * d + pair_work(off.size * on.size, e))
        thin = np.vstack([P_a, P_a @ self.at.H @ self.at.P])
        images = thin[:, :d] @ self._take(on)[:, :d].T + thin[:, d:]
        ends = ExchangeTerms(*(x[off][:, None] for x in self.ends))
        return pair_changes(
            ends, ExchangeTerms(*(x[on] for x in self.ends)), images[: off.size], images[off.size :], self.weight
        )[0]

    def _sorted(self, kind: NDArray[np.bool_], sign: float) -> Indices:
        """The rows where ``kind`` is True, sorted by the first-order change of J, the most promising first."""
        rows = np.flatnonzero(kind)
        return np.asarray(rows[np.argsort(sign * self.bounds.fit[rows], kind="stable")])

    def _open(self, i: Indices, on: "Side", enough: float) -> Iterator[tuple[Indices, Indices]]:
        """The exchanges that the bounds do not rule out: parts of ``i``, each with the rows to put in."""
        near = self._near(i, on, enough)
        if near.rows.size * i.size > BLOCK_PAIRS and i.size > 1:
            # One row of high leverage loosens the bound of its whole block. The parts without that row have tight bounds again.
            for part in np.array_split(i, SPLIT):
                if part.size:
                    yield from self._open(part, near, enough)
            return
        j = self.bounds.open_rows(i, near, enough / self.weight) if near.rows.size else near.rows
        if j.size:
            yield i, j

    def _near(self, i: Indices, on: "Side", enough: float) -> "Side":
        """The rows to put in that the joint bound of all rows ``i`` does not rule out."""
        return on.only(self.bounds.block_open(i, on, enough / self.weight))

    def _best_pair(self, best: Exchange, off: Indices, on: Indices) -> Exchange:
        change = self._changes(off, on)
        i, j = divmod(int(np.argmin(change)), on.size)
        return Exchange(int(off[i]), int(on[j]), float(change[i, j])) if change[i, j] < best.change else best


class NearMisses:
    """The rows whose exchanges come closest to lowering J.

    Once some exchanges are made, those that lower J next are mostly among these, and need not wait for the next round.
    """

    def __init__(self) -> None:
        none, changes = np.empty(0, dtype=np.intp), np.empty(0)
        self._off, self._on = ([none], [changes]), ([none], [changes])

    def add(self, off: Indices, by_off: Floats, on: Indices, by_on: Floats) -> None:
        """Note the lowest change by an exchange of each of these rows."""
        for (rows, lows), new, low in ((self._off, off, by_off), (self._on, on, by_on)):
            rows.append(new)
            lows.append(low)
            if len(rows) > NEAR_MISSES:
                kept, change = np.concatenate(rows), np.concatenate(lows)
                lowest = np.argsort(change, kind="stable")[: 2 * NEAR_MISSES]
                rows[:], lows[:] = [kept[lowest]], [change[lowest]]

    def join(self, other: "NearMisses") -> None:
        """Note those of another part."""
        for (rows, lows), (others, other_lows) in ((self._off, other._off), (self._on, other._on)):
            rows += others
            lows += other_lows

    def rows(self) -> list[Indices]:
        """At most NEAR_MISSES rows of each side."""
        best = []
        for rows, lows in (self._off, self._on):
            kept, change = np.concatenate(rows), np.concatenate(lows)
            kept = kept[np.argsort(change, kind="stable")]
            _, first = np.unique(kept, return_index=True)
            best.append(kept[np.sort(first)[:NEAR_MISSES]])
        return best


class Looked(NamedTuple):
    """What was seen in a part of a round."""

    best: float
    """The change by the best exchange."""
    met: list[Indices]
    """The rows of exchanges that lower J."""
    missed: NearMisses
    work: Work


class Side(NamedTuple):
    """Rows to put in, with the terms that bounds need, gathered once for many blocks."""

    rows: Indices
    terms: Floats  # one line each: fit, into, bent, width, sway, leverage, lift, and the lines of the mixed term (see ``Bounds``)

    def only(self, open_: NDArray[np.bool_]) -> "Side":
        """Those where ``open_`` is True."""
        if open_.all():
            return self
        kept = np.flatnonzero(open_)
        return Side(self.rows[kept], self.terms.take(kept, axis=1))


class Bounds:
    """Lower bounds for the change of J divided by the weight, computed from the terms of each row by itself."""

    def __init__(self, rows: ExchangeTerms, weight: float, work: Work) -> None:
        self._work = work
        work.add(len(rows.leverage) * (4 + 3 * rows.slope.shape[1]))
        self.leverage, self.residual, self.slope = weight * np.maximum(rows.leverage, 0.0), rows.residual, rows.slope
        self.root, self.fit = np.sqrt(self.leverage), np.einsum("ne,ne->n", rows.slope, rows.residual)
        self.steep, self.far = np.linalg.norm(rows.slope, axis=1), np.linalg.norm(rows.residual, axis=1)
        self.curved = np.sqrt(0.5 * weight * np.maximum(rows.bend, 0.0))
        # What ``side`` gathers: factors of the bounds, which are sums of outer products.
        keep, bent, width, sway = 1.0 - self.leverage, self.curved * self.far, self.root * self.far, self.curved * self.root
        into, lift, root = 1.0 + self.leverage, self.root * self.steep, self.root[:, None]
        self._terms = np.vstack(
            [self.fit, into, bent, width, sway, self.leverage, lift, (root * rows.residual).T, (root * rows.slope).T]
        )
        self._out = np.stack([keep, -self.fit, bent, -keep, sway, width], axis=1)
        self._mixed = root * np.hstack([rows.slope, rows.residual])

    def bound(self, i: Indices, j: Indices) -> Floats:
        """A bound for each pair of rows i and j; -inf where the leverage of row i is too close to 1."""
        keep, into = (1.0 - self.leverage[i])[:, None], 1.0 + self.leverage[j]
        # weight * |a_i' P a_j| is at most ``cross``; the true determinant lies between keep * into and that plus cross^2.
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
        # The second-order term is 1/2 |C_i h_i + C_j h_j|^2 with |h|^2 = a' P H P a. By the reverse triangle inequality it is at
        # least half the squared difference of the two lengths. ``cross`` limits the error of each length.
        far_i, far_j = self.far[i][:, None], self.far[j]
        spare_i, spare_j = cross * far_j, cross * far_i
        length_i, length_j = self.curved[i][:, None] * (into * far_i), self.curved[j] * (keep * far_j)
        spare = self.curved[i][:, None] * spare_i + self.curved[j] * spare_j
        apart = np.maximum(np.abs(length_i - length_j) - spare, 0.0)
        first += np.divide(apart * apart, largest * largest, out=np.zeros(least.shape), where=possible)
        return np.asarray(first)

    def side(self, j: Indices) -> Side:
        """These rows with their terms."""
        return Side(j, self._terms.take(j, axis=1))

    def block_open(self, i: Indices, j: Side, enough: float) -> NDArray[np.bool_]:
        """Whether one bound for each row j, which holds for its pairs with all rows i, is below ``enough``.

        The bound is least / (keep * into) if least is negative, else least / largest; nothing is divided, since this is asked
        millions of times.
        """
        self._work.add(10 * (i.size + j.rows.size))
        keep, root, fit = 1.0 - self.leverage[i], self.root[i], float(self.fit[i].max())
        low, high = float(keep.min()), float(keep.max())
        if low <= LEVERAGE_MARGIN:
            return np.ones(j.rows.size, dtype=np.bool_)
        j_fit, into, _, width, _, leverage, lift = j.terms[:7]
        least = np.minimum(low * j_fit, high * j_fit)
        least -= fit * into if fit > 0 else fit
        least -= float((root * self.steep[i]).max()) * width
        least -= float((root * self.far[i]).max()) * lift
        if enough <= 0:
            return np.asarray(least < (enough * low) * into)
        return np.asarray(least < (enough * high) * into + (enough * float(self.leverage[i].max())) * leverage)

    def open_rows(self, i: Indices, j: Side, enough: float) -> Indices:
        """The rows j for which the bound of a pair with some row i is below ``enough``."""
        self._work.add(i.size * j.rows.size * (24 + 2 * self.slope.shape[1]))
        if self.leverage[i].max() >= 1.0 - LEVERAGE_MARGIN:
            return j.rows[(self.bound(i, j.rows) < enough).any(axis=0)]
        # The same as ``bound`` in fewer passes: sums of two outer products are thin matrix products.
        out, put = self._out[i], j.terms
        alone = out[:, :1] * put[1]
        largest = self.leverage[i][:, None] * put[5]
        largest += alone
        bound = out[:, :2] @ put[:2]
        mixed = self._mixed[i] @ put[7:]
        bound -= np.abs(mixed, out=mixed)
        bound /= alone if enough <= 0 else np.where(bound < 0, alone, largest)  # a bound below 0 has least < 0
        apart = out[:, 2:4] @ put[1:3]
        np.abs(apart, out=apart)
        apart -= np.matmul(out[:, 4:], put[3:5], out=mixed)
        apart /= largest
        np.maximum(apart, 0.0, out=apart)
        apart *= apart
        bound += apart
        return j.rows[(bound < enough).any(axis=0)]

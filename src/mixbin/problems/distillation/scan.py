"""Look through all exchanges, exactly, but evaluate only few of them.

The change by an exchange (see ``expansion``) depends on the two rows together through two quantities only. a_i' P a_j is at most
the root of the product of their leverages (Cauchy-Schwarz). The second-order term is at least the value that follows from the
lengths of two vectors (reverse triangle inequality). So a few numbers per row give a lower bound for every pair, and a pair whose
bound is not below the best change so far need not be evaluated.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.one_blas_thread import on_one_blas_thread
from mixbin.data.rows import ENTRIES_AT_ONCE, FetchedRows, RowStore
from mixbin.data.usual_values import UsualValueRows
from mixbin.problem import FALL, Indices
from mixbin.problems.distillation.descent import descend
from mixbin.problems.distillation.exchange import ExchangeTerms, exchange_terms, pair_changes, pair_work
from mixbin.problems.distillation.expansion import Expansion, RowTerms
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

    Once ``work`` is used up, every method raises OutOfWork; ``chosen`` then holds the selection reached so far.
    """

    def __init__(
        self,
        rows: RowStore | FetchedRows,
        at: Expansion,
        chosen: NDArray[np.bool_],
        weight: float,
        work: Work | None = None,
    ) -> None:
        self.rows, self.at, self.chosen = rows, at, chosen.copy()
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
            for part, j, _ in self._open(i, side, best.change):
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
            for part, j, _ in self._open(i, near, max(best, -least)):
                change = self._changes(part, j)
                by_off, by_on = change.min(axis=1), change.min(axis=0)
                best = min(best, float(by_off.min()))
                met += [part[by_off < -least], j[by_on < -least][:MOST_MET]]
                n_met += met[-2].size + met[-1].size
            clean, k, seen = clean + 1, (k + 1) % n_blocks, seen + 1
            if n_met > ENOUGH_MET or (clean == n_blocks and best < -least):
                before, after = self.chosen, self._descended(np.unique(np.concatenate(met)))
                order[np.isin(order, np.flatnonzero(before & ~after))] = np.flatnonzero(after & ~before)
                count = self._move(after)
                if not count:  # what looked like a gain was rounding
                    return np.nan
                made += count
                best, clean, n_met, met = np.inf, 0, 0, []
                if made >= most or seen >= n_blocks:
                    return np.nan
        return best

    def _move(self, after: NDArray[np.bool_]) -> int:
        """Go on from this selection; returns the number of exchanges that lead to it."""
        work = self._work
        flipped = np.flatnonzero(after != self.chosen)
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
        return flipped.size // 2

    def _descended(self, part: Indices) -> NDArray[np.bool_]:
        """Which rows are selected after exchanges between the rows of ``part``, then among the most promising rows."""
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
        """The change of J for every pair of these rows."""
        images = self._between(off, on)
        self._work.add(pair_work(off.size * on.size, self.at.coef.shape[1]))
        return pair_changes(*self._pair_ends(off, on), images[: off.size], images[off.size :], self.weight)[0]

    def _between(self, off: Indices, on: Indices) -> Floats:
        """G, and below it B, for every pair. Only the rows to take out are multiplied by P: they are usually fewer."""
        d = len(self.at.P) - 1
        P_a = self.at.terms(self._take(off), work=self._work).P_a
        self._work.add(2 * off.size * (d + 1) ** 2 + 2 * off.size * on.size * d)
        thin = np.vstack([P_a, P_a @ self.at.H @ self.at.P])
        return np.asarray(thin[:, :d] @ self._take(on)[:, :d].T + thin[:, d:])

    def _pair_ends(self, off: Indices, on: Indices) -> tuple[ExchangeTerms, ExchangeTerms]:
        """The terms of these rows, which broadcast to pairs."""
        return ExchangeTerms(*(x[off][:, None] for x in self.ends)), ExchangeTerms(*(x[on] for x in self.ends))

    def _sorted(self, kind: NDArray[np.bool_], sign: float) -> Indices:
        """The rows where ``kind`` is True, sorted by the first-order change of J, the most promising first."""
        rows = np.flatnonzero(kind)
        return np.asarray(rows[np.argsort(sign * self.bounds.fit[rows], kind="stable")])

    def _open(self, i: Indices, on: "Side", enough: float) -> Iterator[tuple[Indices, Indices, Floats]]:
        """The exchanges that the bounds do not rule out: parts of ``i``, rows to put in, and a bound for each of these."""
        near = self._near(i, on, enough)
        if near.rows.size * i.size > BLOCK_PAIRS and i.size > 1:
            # One row of high leverage loosens the bound of its whole block. The parts without that row have tight bounds again.
            for part in np.array_split(i, SPLIT):
                if part.size:
                    yield from self._open(part, near, enough)
            return
        if near.rows.size:
            j, bound = self.bounds.open_rows(i, near, enough / self.weight)
            if j.size:
                yield i, j, self.weight * bound

    def _near(self, i: Indices, on: "Side", enough: float) -> "Side":
        """The rows to put in that the joint bound of all rows ``i`` does not rule out."""
        return on.only(self.bounds.block_open(i, on, enough / self.weight))

    def _best_pair(self, best: Exchange, off: Indices, on: Indices) -> Exchange:
        change = self._changes(off, on)
        i, j = divmod(int(np.argmin(change)), on.size)
        return Exchange(int(off[i]), int(on[j]), float(change[i, j])) if change[i, j] < best.change else best


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
    """Lower bounds for the change of J divided by the weight, computed from the terms of each row by itself.

    ``n_pairs`` counts the pairs that were bounded by themselves.
    """

    def __init__(self, rows: ExchangeTerms, weight: float, work: Work) -> None:
        self._work, self.n_pairs = work, 0
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

    def open_rows(self, i: Indices, j: Side, enough: float) -> tuple[Indices, Floats]:
        """The rows j for which the bound of a pair with some row i is below ``enough``, and the lowest such bound."""
        self.n_pairs += i.size * j.rows.size
        self._work.add(i.size * j.rows.size * (24 + 2 * self.slope.shape[1]))
        lowest = np.fmin.reduce(
            self._pair_bounds(i, j, enough), axis=0
        )  # NaN, if only a tiny alpha tells rows apart, opens nothing
        open_ = np.flatnonzero(lowest < enough)
        return j.rows[open_], lowest[open_]

    def _pair_bounds(self, i: Indices, j: Side, enough: float) -> Floats:
        """``bound``; where it is not below ``enough``, any number that is not."""
        if self.leverage[i].max() >= 1.0 - LEVERAGE_MARGIN:
            return self.bound(i, j.rows)
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
        return np.asarray(bound)

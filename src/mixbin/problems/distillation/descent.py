"""Many exchanges one after the other, without a fit in between.

Among some rows everything an exchange needs and everything it changes is known from G = A P A', B = A P H P A', residuals and
slopes (see ``expansion``): an exchange is a rank-two update of these small matrices. Rows come to such a block from a larger
pool, where J's gradient promises most; between blocks the expansion itself is updated.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problem import FALL, Indices
from mixbin.problems.distillation.exchange import ExchangeTerms, pair_changes, pair_work
from mixbin.problems.distillation.expansion import Expansion, RowTerms
from mixbin.problems.work import OutOfWork, Work

ROWS_IN_BLOCK = 128
"""Rows of each kind in a block."""
WIDE = 8
"""Where the most promising rows have little left, half of a block is drawn from so many times as many."""
LITTLE, PATIENCE = 8, 4
"""A block with so few exchanges has little left; after so many of these in a row the pool has."""
SIDE = 32
"""Exchanges are first looked for among so many rows of each kind, those that promise most alone."""


class ExchangeBlock:
    """Some rows and what an exchange between two of them changes."""

    def __init__(self, rows: RowTerms, chosen: NDArray[np.bool_], H: Floats, weight: float, work: Work) -> None:
        k, n = rows.a.shape
        work.add(2 * k * k * n + k * n * n)
        self.G = rows.a @ rows.P_a.T
        self.B = rows.P_a @ H @ rows.P_a.T
        self.residual, self.slope = rows.residual, rows.slope
        self.chosen, self.weight = chosen.copy(), weight
        self._product, self._work = np.empty_like(self.G), work

    def descend(self, least: float, most: int) -> int:
        """Make the best exchange as long as it lowers J by more than ``least``, at most ``most`` times; the number made."""
        for count in range(most):
            try:
                off, on = np.flatnonzero(self.chosen), np.flatnonzero(~self.chosen)
                change, i, j, C = self._best(self._promising(off), self._promising(on))
                if change >= -least:
                    change, i, j, C = self._best(off, on)
                if change >= -least:
                    return count
                self._exchange([i, j], C)
            except OutOfWork:
                return count
        return most

    def _promising(self, rows: Indices) -> Indices:
        """The rows with the lowest change of J when each is taken out or put in alone."""
        if rows.size <= SIDE:
            return rows
        self._work.add(rows.size * (4 + 4 * self.residual.shape[1]))
        gain = np.where(self.chosen[rows], -self.weight, self.weight)
        at = self._ends(rows)
        C = (gain / (1.0 + gain * at.leverage))[:, None] * at.residual
        alone = (at.slope * C).sum(axis=1) + 0.5 * at.bend * (C * C).sum(axis=1)
        return np.asarray(rows[np.argpartition(alone, SIDE)[:SIDE]])

    def _ends(self, rows: Indices) -> ExchangeTerms:
        return ExchangeTerms(self.G.diagonal()[rows], self.B.diagonal()[rows], self.residual[rows], self.slope[rows])

    def _best(self, off: Indices, on: Indices) -> tuple[float, int, int, Floats]:
        """The best exchange between these rows: the change of J, the rows, and C."""
        self._work.add(pair_work(off.size * on.size, self.residual.shape[1]))
        ends = ExchangeTerms(*(x[:, None] for x in self._ends(off)))
        pairs = (off[:, None], on)
        change, C_off, C_on = pair_changes(ends, self._ends(on), self.G[pairs], self.B[pairs], self.weight)
        # Rows that nothing tells apart make entries of P overflow: what comes of them is no number and no improvement.
        change = np.where(np.isfinite(change), change, np.inf)
        i, j = divmod(int(np.argmin(change)), on.size)
        return float(change[i, j]), int(off[i]), int(on[j]), np.stack([C_off[i, j], C_on[i, j]])

    def _exchange(self, pair: list[int], C: Floats) -> None:
        """Update everything by the exchange of two rows: P loses P A' E A P, the coefficients gain P A' C."""
        k, e = self.residual.shape
        self._work.add(6 * k * k + 8 * k + 6 * k * e)
        F, T = self.G[:, pair], self.B[:, pair]
        E = np.linalg.inv(F[pair] + np.diag([-1.0 / self.weight, 1.0 / self.weight]))
        F_E, Q = F @ E, T[pair]
        self.slope = self.slope + T @ C - F_E @ (self.slope[pair] + Q @ C)
        self.residual = self.residual - F @ C
        self.B -= np.matmul(np.hstack([F_E, T]), np.hstack([T - F_E @ Q, F_E]).T, out=self._product)
        self.G -= np.matmul(F_E, F.T, out=self._product)
        self.chosen[pair] = ~self.chosen[pair]


def descend(
    at: Expansion, pool: Floats, chosen: NDArray[np.bool_], weight: float, most: int, work: Work, first: Indices | None = None
) -> NDArray[np.bool_]:
    """Which rows of the pool are chosen after exchanges within it that each lower J.

    Parameters
    ----------
    at : Expansion
        At the present selection.
    pool : array of shape (rows, d + e)
        Candidate rows, relative to the expansion's origin.
    chosen : bool array of shape (rows,)
        Those of them that are selected now.
    weight : float
        1/m.
    most : int
        The largest number of exchanges.
    work : Work
        Counts; the exchanges made so far are returned when it is used up.
    first : index array, optional
        The rows of the pool in the first block; without it those that promise most.
    """
    chosen = chosen.copy()
    rng = np.random.default_rng(0)
    d = len(at.P) - 1
    made = tired = 0
    try:
        while made < most and tired < PATIENCE:
            work.add(len(pool) * (d + 1) * 2 * at.coef.shape[1])
            residual = pool[:, d:] - pool[:, :d] @ at.coef[:d] - at.coef[d]
            P_grad = at.P @ at.grad
            promise = ((pool[:, :d] @ P_grad[:d] + P_grad[d]) * residual).sum(axis=1)
            if first is None:
                part = np.concatenate([_some(rows, score, rng if tired else None) for rows, score in _kinds(chosen, promise)])
            else:
                part, first = first, None
            rows = at.terms(pool[part], work=work)
            block = ExchangeBlock(rows, chosen[part], at.H, weight, work)
            count = block.descend(FALL * abs(at.value), most - made)
            flipped = np.flatnonzero(block.chosen != chosen[part])
            if flipped.size:
                chosen[part] = block.chosen
                gains = np.where(block.chosen[flipped], weight, -weight)
                at = at.changed(RowTerms(*(x[flipped] for x in rows)), gains, work)
            if part.size == len(pool) and count == 0:
                break
            made, tired = made + count, 0 if count > LITTLE else tired + 1
    except OutOfWork:
        pass
    return chosen


def _kinds(chosen: NDArray[np.bool_], promise: Floats) -> list[tuple[Indices, Floats]]:
    """The rows to take out and the rows to put in, each with what taking the row promises to change."""
    return [(np.flatnonzero(chosen), -promise), (np.flatnonzero(~chosen), promise)]


def _some(rows: Indices, score: Floats, rng: np.random.Generator | None) -> Indices:
    """A block's rows: those with the lowest score, or half of them drawn from those that follow."""
    if rows.size <= ROWS_IN_BLOCK:
        return rows
    if rng is None:
        return lowest(rows, score, ROWS_IN_BLOCK)
    first = lowest(rows, score, WIDE * ROWS_IN_BLOCK)
    first = first[np.argsort(score[first], kind="stable")]
    half = ROWS_IN_BLOCK // 2
    return np.concatenate([first[:half], rng.choice(first[half:], ROWS_IN_BLOCK - half, replace=False)])


def lowest(rows: Indices, score: Floats, count: int) -> Indices:
    """At most so many of the rows, those with the lowest score."""
    return rows if rows.size <= count else np.asarray(rows[np.argpartition(score[rows], count)[:count]])

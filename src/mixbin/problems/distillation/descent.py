"""Make many exchanges one after the other, without fitting the model in between.

The search works on one block of rows A at a time. G = A P A', B = A P H P A', the residuals and the slopes (see ``expansion``)
hold everything that an exchange within the block needs or changes, so making an exchange is a rank-two update of these small
matrices. Each block takes the rows of a larger pool for which the gradient of J promises most. After each block the expansion
itself is updated.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.one_blas_thread import on_one_blas_thread
from mixbin.problem import FALL, Indices
from mixbin.problems.distillation.exchange import ExchangeTerms, pair_changes, pair_work, single_changes
from mixbin.problems.distillation.expansion import Expansion, RowTerms
from mixbin.problems.work import OutOfWork, Work

ROWS_IN_BLOCK = 128
"""A block holds at most this many selected rows and at most this many rows that are not selected."""
WIDE = 8
"""After a block with few exchanges, half of the next block is drawn from the WIDE * ROWS_IN_BLOCK most promising rows."""
LITTLE, PATIENCE = 8, 4
"""A block with at most LITTLE exchanges counts as exhausted; after PATIENCE such blocks in a row the search in the pool ends."""
SIDE = 32
"""The next exchange is first looked for between the SIDE most promising rows of each kind, and between all rows of the block only
if none of those exchanges lowers J."""


class ExchangeBlock:
    """A block of rows, with the matrices that give the change of J by every exchange between two of its rows."""

    def __init__(self, rows: RowTerms, chosen: NDArray[np.bool_], H: Floats, weight: float, work: Work) -> None:
        k, n = rows.a.shape
        work.add(2 * k * k * n + k * n * n)
        self.G = rows.a @ rows.P_a.T
        self.B = rows.P_a @ H @ rows.P_a.T
        self.residual, self.slope = rows.residual, rows.slope
        self.chosen, self.weight = chosen.copy(), weight
        self._product, self.work, self.width = np.empty_like(self.G), work, n

    def descend(self, least: float, most: int) -> int:
        """Make the best exchange, again and again, while it lowers J by more than ``least``; stop after ``most`` exchanges.

        Returns the number of exchanges made.
        """
        for count in range(most):
            try:
                off, on = np.flatnonzero(self.chosen), np.flatnonzero(~self.chosen)
                change, i, j, C = self._best(self._promising(off), self._promising(on))
                if change >= -least:
                    change, i, j, C = self._best(off, on)
                if change >= -least:
                    return count
                self._exchange([i, j], C)
            except (OutOfWork, np.linalg.LinAlgError):  # equal rows that only a tiny alpha tells apart make singular matrices
                return count
        return most

    def _promising(self, rows: Indices) -> Indices:
        """The SIDE rows that lower J most when each is taken out or put in alone."""
        if rows.size <= SIDE:
            return rows
        self.work.add(rows.size * (4 + 4 * self.residual.shape[1]))
        alone = single_changes(self._ends(rows), np.where(self.chosen[rows], -self.weight, self.weight))
        return np.asarray(rows[np.argpartition(alone, SIDE)[:SIDE]])

    def _ends(self, rows: Indices) -> ExchangeTerms:
        return ExchangeTerms(self.G.diagonal()[rows], self.B.diagonal()[rows], self.residual[rows], self.slope[rows])

    def _best(self, off: Indices, on: Indices) -> tuple[float, int, int, Floats]:
        """The best exchange of a row of ``off`` for one of ``on``: the change of J, the two rows, and C of ``expansion``."""
        self.work.add(pair_work(off.size * on.size, self.residual.shape[1]))
        ends = ExchangeTerms(*(x[:, None] for x in self._ends(off)))
        pairs = (off[:, None], on)
        change, C_off, C_on = pair_changes(ends, self._ends(on), self.G[pairs], self.B[pairs], self.weight)
        # If only a tiny alpha tells rows apart, P overflows and the change is inf or NaN. Such an exchange must not win.
        change = np.where(np.isfinite(change), change, np.inf)
        i, j = divmod(int(np.argmin(change)), on.size)
        return float(change[i, j]), int(off[i]), int(on[j]), np.stack([C_off[i, j], C_on[i, j]])

    def _exchange(self, pair: list[int], C: Floats) -> None:
        """Update G, B, the residuals and the slopes for an exchange: P loses P A' E A P and the coefficients gain P A' C."""
        k, e = self.residual.shape
        self.work.add(6 * k * k + 8 * k + 6 * k * e)
        F, T = self.G[:, pair], self.B[:, pair]
        E = np.linalg.inv(F[pair] + np.diag([-1.0 / self.weight, 1.0 / self.weight]))
        F_E, Q = F @ E, T[pair]
        self.slope = self.slope + T @ C - F_E @ (self.slope[pair] + Q @ C)
        self.residual = self.residual - F @ C
        self.B -= np.matmul(np.hstack([F_E, T]), np.hstack([T - F_E @ Q, F_E]).T, out=self._product)
        self.G -= np.matmul(F_E, F.T, out=self._product)
        self.chosen[pair] = ~self.chosen[pair]


@on_one_blas_thread  # its matrices are small: a second thread gains nothing, and waits for a core where others compute
def descend(
    at: Expansion, pool: Floats, chosen: NDArray[np.bool_], weight: float, most: int, work: Work, first: Indices | None = None
) -> NDArray[np.bool_]:
    """Make exchanges within the pool that each lower J, and return which of its rows are selected afterwards.

    Parameters
    ----------
    at : Expansion
        The expansion of J at the current selection.
    pool : array of shape (rows, d + e)
        Candidate rows, relative to the expansion's origin.
    chosen : bool array of shape (rows,)
        Which rows of the pool are selected now.
    weight : float
        1/m.
    most : int
        The largest number of exchanges.
    work : Work
        Counts the multiply-adds. When it is used up, the exchanges made so far are returned.
    first : index array, optional
        The rows of the pool that form the first block; by default those that promise most.
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
    except (OutOfWork, np.linalg.LinAlgError):
        pass
    return chosen


def _kinds(chosen: NDArray[np.bool_], promise: Floats) -> list[tuple[Indices, Floats]]:
    """The selected rows and the others, each with the first-order change of J when a row of that kind is flipped."""
    return [(np.flatnonzero(chosen), -promise), (np.flatnonzero(~chosen), promise)]


def _some(rows: Indices, score: Floats, rng: np.random.Generator | None) -> Indices:
    """The rows of one kind for a block: those with the lowest score or, given ``rng``, half of them and random others."""
    if rows.size <= ROWS_IN_BLOCK:
        return rows
    if rng is None:
        return lowest(rows, score, ROWS_IN_BLOCK)
    first = lowest(rows, score, WIDE * ROWS_IN_BLOCK)
    first = first[np.argsort(score[first], kind="stable")]
    half = ROWS_IN_BLOCK // 2
    return np.concatenate([first[:half], rng.choice(first[half:], ROWS_IN_BLOCK - half, replace=False)])


def lowest(rows: Indices, score: Floats, count: int) -> Indices:
    """The ``count`` rows with the lowest score, or all rows if there are fewer."""
    return rows if rows.size <= count else np.asarray(rows[np.argpartition(score[rows], count)[:count]])

"""Make many exchanges at once in a large table: chosen by a quadratic model of J on a block of rows, and checked exactly.

See docs/maths.md, "Many exchanges at once". A block takes the rows of the whole table for which the gradient of J promises most.
Within it, an exchange changes the model's gradient by two columns of its Hessian, where ``descent`` updates four matrices. The
exchanges chosen there are then made together, if J itself falls.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.one_blas_thread import on_one_blas_thread
from mixbin.data.rows import FetchedRows, RowStore
from mixbin.problem import FALL, Indices
from mixbin.problems.distillation.descent import LITTLE, ROWS_IN_BLOCK, ExchangeBlock, lowest
from mixbin.problems.distillation.expansion import Expansion, RowTerms
from mixbin.problems.work import OutOfWork, Work

FIRST, AMONG = 4, 8
"""One in FIRST rows of a block are those that promise most. The others are drawn from the AMONG * ROWS_IN_BLOCK of each kind that
come next: the most promising ones alone would often be those that the block before has exhausted."""
MOST_DRAWN = 8
"""After this many blocks the gradient of all rows is computed again, whatever the blocks have cost."""
PATIENCE = 4
"""After this many blocks in a row with at most LITTLE exchanges, the descent ends."""
LEVERAGE_ROUNDING = 1e-6
"""Leverages lie between 0 and 1. If one of a block is further outside than this, many updates have left few digits of the
expansion, and the descent ends: the next one begins with a new fit."""


def descend_by_model(
    at: Expansion,
    rows: RowStore | FetchedRows,
    chosen: NDArray[np.bool_],
    weight: float,
    most: int,
    work: Work,
    first: Indices | None = None,
    most_blocks: float = np.inf,
) -> NDArray[np.bool_]:
    """Make exchanges that lower J until few are found, and return which rows are selected afterwards.

    Parameters
    ----------
    at : Expansion
        The expansion of J at the current selection.
    rows : row store
        The candidate rows.
    chosen : bool array of shape (m,)
        Which rows are selected now.
    weight : float
        1/m.
    most : int
        The largest number of exchanges.
    work : Work
        Counts the multiply-adds. When it is used up, the exchanges made so far are returned.
    first : index array, optional
        The rows of the first block; by default those that promise most.
    most_blocks : int, optional
        The largest number of blocks.
    """
    chosen, promising = chosen.copy(), PromisingRows(rows, work)
    made = tired = seen = 0
    try:
        while made < most and tired < PATIENCE and seen < most_blocks:
            part = promising.block(at, chosen) if first is None else first
            first = None
            at, count = _exchanged(at, rows.take(part, at.origin), part, chosen, weight, most - made, work)
            made, seen, tired = made + count, seen + 1, 0 if count > LITTLE else tired + 1
    except (OutOfWork, FewDigits, np.linalg.LinAlgError):
        pass
    return chosen


class FewDigits(Exception):
    """Ends a descent whose expansion has lost most of its digits."""


class PromisingRows:
    """Draws blocks of rows by what the gradient of J promises for them.

    Once the blocks have cost as much as the gradient of all rows, that gradient is computed again.
    """

    def __init__(self, rows: RowStore | FetchedRows, work: Work) -> None:
        self._rows, self._work = rows, work
        self._kinds: list[Indices] = []
        self._scored = self._drawn = 0
        self._rng = np.random.default_rng(0)

    def block(self, at: Expansion, chosen: NDArray[np.bool_]) -> Indices:
        """Promising rows of both kinds: selected ones and others."""
        cost = self._rows.image_work(2 * at.coef.shape[1])
        if not self._kinds or self._work.done - self._scored >= cost or self._drawn == MOST_DRAWN:
            self._work.add(cost)
            promise = _promise(at, self._rows)
            self._kinds = [_sorted(np.flatnonzero(chosen), -promise), _sorted(np.flatnonzero(~chosen), promise)]
            self._scored, self._drawn = self._work.done, 0
        start, self._drawn = self._drawn * (ROWS_IN_BLOCK // FIRST), self._drawn + 1
        return np.concatenate([self._some(kind[start:]) for kind in self._kinds])

    def _some(self, kind: Indices) -> Indices:
        if kind.size <= ROWS_IN_BLOCK:
            return kind
        first = ROWS_IN_BLOCK // FIRST
        return np.concatenate([kind[:first], self._rng.choice(kind[first:], ROWS_IN_BLOCK - first, replace=False)])


def _promise(at: Expansion, rows: RowStore | FetchedRows) -> Floats:
    """The first-order change of J, apart from the weight, when each row of the table is put in: slope times residual."""
    d, e = len(at.P) - 1, at.coef.shape[1]
    P_grad = at.P @ at.grad
    thin = np.zeros((2 * e, d + e))
    thin[:e, :d], thin[:e, d:], thin[e:, :d] = -at.coef[:d].T, np.eye(e), P_grad[:d].T
    images = rows.images(thin, at.origin)
    images -= np.concatenate([at.coef[d], -P_grad[d]])[:, None]
    return np.asarray(np.einsum("en,en->n", images[:e], images[e:]))


def _sorted(rows: Indices, score: Floats) -> Indices:
    """The rows with the lowest scores, the lowest first: as many as blocks are drawn from."""
    rows = lowest(rows, score, AMONG * ROWS_IN_BLOCK)
    return np.asarray(rows[np.argsort(score[rows], kind="stable")])


@on_one_blas_thread  # as in ``descent``
def _exchanged(
    at: Expansion, zhat: Floats, part: Indices, chosen: NDArray[np.bool_], weight: float, most: int, work: Work
) -> tuple[Expansion, int]:
    """Make exchanges between the rows ``part`` of the table; update ``chosen``, return the expansion and how many were made."""
    rows = at.terms(zhat, work=work)
    block = ExchangeBlock(rows, chosen[part], at.H, weight, work)
    leverage = weight * block.G.diagonal()
    if leverage.min() < -LEVERAGE_ROUNDING or (leverage * block.chosen).max() > 1.0 + LEVERAGE_ROUNDING:
        raise FewDigits
    least = FALL * abs(at.value)
    pairs = modelled_exchanges(block, least, most)
    while pairs:
        place, times = np.unique(pairs, return_counts=True)
        flipped = place[times % 2 == 1]
        after = at.changed(*_gained(rows, flipped, block, ~block.chosen[flipped]))
        if np.isfinite(after.value) and after.value < at.value - least:
            chosen[part[flipped]] ^= True
            return after, len(pairs)
        pairs = pairs[: len(pairs) // 2]  # those chosen first rely least on the model
    # Where rows of high leverage make the model wrong, and before the block counts as exhausted: one exchange after the other.
    count = block.descend(least, most)
    flipped = np.flatnonzero(block.chosen != chosen[part])
    if flipped.size:
        chosen[part] = block.chosen
        at = at.changed(*_gained(rows, flipped, block, block.chosen[flipped]), work)
    return at, count


def _gained(rows: RowTerms, some: Indices, block: ExchangeBlock, into: NDArray[np.bool_]) -> tuple[RowTerms, Floats]:
    """Some rows of a block and the weights that they gain: positive for those that are put in."""
    return RowTerms(*(x[some] for x in rows)), np.where(into, block.weight, -block.weight)


def model(block: ExchangeBlock) -> tuple[Floats, Floats]:
    """The gradient and the Hessian of J in the row weights v, at the rows of a block."""
    r, s = block.residual, block.slope
    with np.errstate(over="ignore", invalid="ignore"):  # if only a tiny alpha tells rows apart
        hessian = (r @ r.T) * block.B
        mixed = s @ r.T
        mixed += mixed.T.copy()
        mixed *= block.G
        hessian -= mixed
        hessian *= block.weight**2
        return block.weight * np.einsum("ke,ke->k", s, r), hessian


def modelled_exchanges(block: ExchangeBlock, least: float, most: int) -> list[tuple[int, int]]:
    """The exchanges that lower the model by more than ``least``, always the best one first: rows to take out and to put in.

    The block itself is not changed. The work of making these exchanges is counted here.
    """
    k, work = len(block.G), block.work
    off, on = np.flatnonzero(block.chosen), np.flatnonzero(~block.chosen)
    if not off.size or not on.size:
        return []
    work.add(k * k * (4 + 2 * block.residual.shape[1]))
    # The last part is for two more rows by which the expansion changes.
    per_exchange = 3 * off.size * on.size + 4 * k + 2 * block.width * (2 * k + block.width)
    grad, Q = model(block)
    half, between, change = 0.5 * Q.diagonal(), Q[off[:, None], on], np.empty((off.size, on.size))
    pairs: list[tuple[int, int]] = []
    while len(pairs) < most:
        np.add.outer(half[off] - grad[off], half[on] + grad[on], out=change)
        change -= between
        i, j = divmod(int(change.argmin()), on.size)
        if not -np.inf < change[i, j] < -least:  # NaN ends it, too
            break
        try:
            work.add(per_exchange)
        except OutOfWork:
            break
        out, into = int(off[i]), int(on[j])
        pairs.append((out, into))
        grad += Q[into]
        grad -= Q[out]
        off[i], on[j] = into, out
        between[i], between[:, j] = Q[into].take(on), Q[out].take(off)
    return pairs

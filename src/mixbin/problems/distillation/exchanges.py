"""Search for exchanges of a selected row for another that lower J: which rows the search looks at, and when it ends.

``exchange`` computes what one exchange changes, ``descent`` makes many exchanges one after the other, ``model_descent`` many at
once, and ``scan`` looks through all of them, in large tables in ``rounds``.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin._validate import Floats
from mixbin.data.rows import FetchedRows, RowStore
from mixbin.problem import Evaluation, Improved, Indices
from mixbin.problems.distillation.descent import descend, lowest
from mixbin.problems.distillation.exchange import exchange_changes
from mixbin.problems.distillation.expansion import Expansion
from mixbin.problems.distillation.model_descent import descend_by_model
from mixbin.problems.distillation.rounds import Rounds
from mixbin.problems.distillation.scan import POOL, Scan
from mixbin.problems.work import OutOfWork, Work
from mixbin.sets import Budget

MOST_PAIRS = 10**9
"""If there are more exchanges than this, skip the full scan: proving that none is left would take far longer than the search."""
FEW = 50
"""If the search among the most promising rows made at most this many exchanges, run the full scan."""
EXCHANGES, MODELLED = 500, 2000
"""One call makes about this many exchanges at most, one after the other or by the model, which takes less time: so that the run
can stop, report and write a checkpoint between calls."""
LOST_DIGITS = 1e-9
"""If J of the updated expansion differs by more than this share from J after a new fit, what a scan found with it is not used."""

UNDISTINGUISHED = np.errstate(over="ignore", invalid="ignore", divide="ignore")
"""If only a tiny alpha tells rows apart, the change by an exchange overflows, or is 0 / 0. No warning is needed: it is never
made."""


class ExpandedProblem(Protocol):
    """What the search needs from a problem."""

    theta_set: Budget
    scan_at_most: float
    """If there are more exchanges than this, the full scan is skipped."""

    @property
    def by_model(self) -> bool:
        """Whether exchanges are chosen by a model of J (see ``model_descent``)."""

    @property
    def rows(self) -> RowStore:
        """The candidate rows."""

    def evaluate(self, theta: Floats, lam: Floats) -> Evaluation:
        """J and its gradient."""

    def expansion(self, theta: ArrayLike, lam: ArrayLike, work: Work | None = None) -> Expansion:
        """J around a selection; ``work`` counts the multiply-adds."""

    def evaluation_work(self, theta: Floats) -> int:
        """The multiply-adds of one evaluation with gradient."""

    def fit_work(self, theta: NDArray[Any]) -> int:
        """The multiply-adds of one fit."""


class ExchangeSearch:
    """The search for exchanges of rows that lower J of a problem."""

    def __init__(self, problem: ExpandedProblem) -> None:
        self.problem, self.rows, self.theta_set = problem, problem.rows, problem.theta_set

    @UNDISTINGUISHED
    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices) -> Floats:
        """J after each exchange of a selected row for another, exactly, from one fit (see ``exchange``)."""
        at = self.problem.expansion(theta, lam)
        change = self._changes(at, off, on)
        return at.value + np.where(np.isfinite(change), change, np.inf)

    @UNDISTINGUISHED
    def best_move(self, theta: Floats, lam: Floats) -> tuple[int, int, float] | None:
        """The best of all exchanges (see ``scan``): the row to take out, the row to put in, and J afterwards.

        None if the rows are stored in blocks: looking through all exchanges would take many passes over the blocks.
        """
        at, chosen = self.problem.expansion(theta, lam), theta > 0.5
        if chosen.all():
            return -1, -1, np.inf
        if not self.rows.random_access:
            return None
        best = Scan(self.rows, at, chosen, 1.0 / self.rows.n_rows).best()
        return best.off, best.on, at.value + best.change

    @UNDISTINGUISHED
    def improve(self, theta: Floats, lam: Floats, max_cost: float = np.inf) -> Improved:
        """Make exchanges that each lower J, and return the selection reached.

        The search first looks among the rows that promise most (see ``descent``, and ``model_descent`` for large tables). Once
        it finds few exchanges among them, it looks through all exchanges (see ``scan``) and can then prove that none is left.
        With more than 10**9 exchanges it skips the scan and proves nothing. Rows that are stored in blocks allow no random
        access: the search fetches the rows that promise most and stays among them, and ``tried`` then counts the exchanges
        between these. ``cost`` counts the multiply-adds of the whole search, which stops before it exceeds ``max_cost``.
        """
        work, chosen = Work(self.problem.evaluation_work(theta), max_cost), theta > 0.5
        try:
            found = self._searched(theta, lam, chosen, work)
        except OutOfWork:
            found = Improved(chosen)
        return found._replace(cost=work.cost)

    def _searched(self, theta: Floats, lam: Floats, chosen: NDArray[np.bool_], work: Work) -> Improved:
        """The search itself. It updates ``chosen`` in place, so that the exchanges made survive when OutOfWork ends it."""
        if not self.rows.random_access:
            return self._among_promising(theta, lam, chosen, work)
        by_model = self.problem.by_model
        made, at = (self._by_model if by_model else self._in_pool)(theta, lam, chosen, work)
        if chosen.all() or made > FEW or self.theta_set.n_moves(chosen) > min(MOST_PAIRS, self.problem.scan_at_most):
            return Improved(chosen)
        if made:
            work.add(self.problem.fit_work(chosen))
            at = self.problem.expansion(chosen, lam, work)
        scan = (Rounds if by_model else Scan)(self.rows, at, chosen, 1.0 / self.rows.n_rows, work)
        try:
            best_change = scan.search_all(EXCHANGES)
        finally:
            chosen[:] = scan.chosen
        if np.isnan(best_change):
            return Improved(chosen)
        # Many updates of an expansion may leave few digits of it: then a scan proves nothing. One fit is little beside a scan.
        value = self.problem.expansion(chosen, lam).value
        if abs(scan.at.value - value) > LOST_DIGITS * abs(value):
            return Improved(chosen)
        return Improved(chosen, self.theta_set.n_moves(chosen), best_change)

    def _by_model(self, theta: Floats, lam: Floats, chosen: NDArray[np.bool_], work: Work) -> tuple[int, Expansion]:
        """Make exchanges chosen by a model; update ``chosen``, return their number and the expansion before."""
        at = self.problem.expansion(theta, lam, work)
        if chosen.all():
            return 0, at
        after = descend_by_model(at, self.rows, chosen, 1.0 / self.rows.n_rows, MODELLED, work)
        made = int(np.count_nonzero(after != chosen)) // 2
        chosen[:] = after
        return made, at

    def _in_pool(self, theta: Floats, lam: Floats, chosen: NDArray[np.bool_], work: Work) -> tuple[int, Expansion]:
        """The same with exchanges made one after the other among the rows that promise most."""
        at, pool = self._pool(theta, lam, chosen, work)
        if chosen.all():
            return 0, at
        after = descend(at, self.rows.take(pool, at.origin), chosen[pool], 1.0 / self.rows.n_rows, EXCHANGES, work)
        made = int(np.count_nonzero(after != chosen[pool])) // 2
        chosen[pool] = after
        return made, at

    def _among_promising(self, theta: Floats, lam: Floats, chosen: NDArray[np.bool_], work: Work) -> Improved:
        """Look through all exchanges among the rows that promise most, which are fetched."""
        at, pool = self._pool(theta, lam, chosen, work)
        if chosen.all():
            return Improved(chosen)
        near = FetchedRows(self.rows.take(pool, at.origin), at.origin)
        scan = Scan(near, at, chosen[pool], 1.0 / self.rows.n_rows, work)
        try:
            best_change = scan.search_all(EXCHANGES)
        finally:
            chosen[pool] = scan.chosen
        among = int(np.count_nonzero(scan.chosen)) * int(np.count_nonzero(~scan.chosen))
        return Improved(chosen, 0 if np.isnan(best_change) else among, best_change)

    def _pool(self, theta: Floats, lam: Floats, chosen: NDArray[np.bool_], work: Work) -> tuple[Expansion, Indices]:
        """The expansion, and the rows of each kind for which the gradient of J promises most."""
        work.add(work.unit)
        grad = self.problem.evaluate(theta, lam).grad_theta
        assert grad is not None
        at = self.problem.expansion(theta, lam, work)
        return at, np.concatenate([lowest(np.flatnonzero(chosen), -grad, POOL), lowest(np.flatnonzero(~chosen), grad, POOL)])

    def _changes(self, at: Expansion, off: Indices, on: Indices) -> Floats:
        """The change of J by each exchange. Each row is fetched once, however many exchanges it takes part in."""
        terms = []
        for side in (off, on):
            rows, place = np.unique(side[side >= 0], return_inverse=True)
            index = np.full(side.size, len(rows))
            index[side >= 0] = place
            terms.append((at.terms(self.rows.take(rows, at.origin), none=True), index))
        (out, i), (into, j) = terms
        return exchange_changes(out, into, i, j, at.H, 1.0 / self.rows.n_rows)

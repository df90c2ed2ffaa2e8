"""The search for exchanges of a selected row for another that lower J: which rows it looks at, and when it ends.

What an exchange changes is in ``exchange``, many exchanges one after the other in ``descent``, all exchanges in ``scan``.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin._validate import Floats
from mixbin.data.rows import FetchedRows, RowStore
from mixbin.problem import Evaluation, Improved, Indices
from mixbin.problems.distillation.descent import descend, lowest
from mixbin.problems.distillation.exchange import exchange_changes
from mixbin.problems.distillation.expansion import Expansion
from mixbin.problems.distillation.scan import POOL, Scan
from mixbin.problems.work import OutOfWork, Work
from mixbin.sets import Budget

MOST_PAIRS = 10**9
"""More exchanges than this are not all looked through: proving that none is left would take far longer than all before it."""
FEW = 50
"""If the search among promising rows made at most this many exchanges, all exchanges are looked through."""
EXCHANGES = 500
"""Exchanges made in one call: a run can be stopped, shown and kept in between."""

UNDISTINGUISHED = np.errstate(over="ignore", invalid="ignore")
"""Where nothing but a tiny alpha tells rows apart, exchanges overflow; such an exchange is never made."""


class ExpandedProblem(Protocol):
    """What the search asks of a problem."""

    theta_set: Budget

    @property
    def rows(self) -> RowStore:
        """The candidate rows."""

    def evaluate(self, theta: Floats, lam: Floats) -> Evaluation:
        """J and its gradient."""

    def expansion(self, theta: ArrayLike, lam: ArrayLike, work: Work | None = None) -> Expansion:
        """J around a selection; the multiply-adds go to ``work``."""

    def evaluation_work(self, theta: Floats) -> int:
        """The multiply-adds of one evaluation with gradient."""

    def fit_work(self, theta: NDArray[Any]) -> int:
        """The multiply-adds of one fit."""


class ExchangeSearch:
    """Exchanges of rows around the selections of a problem."""

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

        None for rows in blocks, where that would take many passes.
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
        """A selection reached by exchanges that each lower J; once none is left, that is known of all exchanges.

        First exchanges among the rows that promise most (see ``descent``); once these are few, anywhere (see ``scan``), unless
        there are more than a thousand million: then the search ends where it finds no more. Rows in blocks cannot be reached at
        random: the search stays among the rows that promise most, which are fetched, and knows of the exchanges between these.
        ``cost`` counts the multiply-adds of all that; the search stops before it exceeds ``max_cost``.
        """
        work, chosen = Work(self.problem.evaluation_work(theta), max_cost), theta > 0.5
        try:
            found = self._searched(theta, lam, chosen, work)
        except OutOfWork:
            found = Improved(chosen)
        return found._replace(cost=work.cost)

    def _searched(self, theta: Floats, lam: Floats, chosen: NDArray[np.bool_], work: Work) -> Improved:
        """The search itself; ``chosen`` is kept up to date, for when OutOfWork ends it."""
        work.add(work.unit)
        grad = self.problem.evaluate(theta, lam).grad_theta
        assert grad is not None
        at = self.problem.expansion(theta, lam, work)
        if chosen.all():
            return Improved(chosen)
        pool = np.concatenate([lowest(np.flatnonzero(chosen), -grad, POOL), lowest(np.flatnonzero(~chosen), grad, POOL)])
        weight, near = 1.0 / self.rows.n_rows, self.rows.take(pool, at.origin)
        if not self.rows.random_access:
            scan = Scan(FetchedRows(near, at.origin), at, chosen[pool], weight, work)
            try:
                best_change = scan.search_all(EXCHANGES)
            finally:
                chosen[pool] = scan.chosen
            among = int(np.count_nonzero(scan.chosen)) * int(np.count_nonzero(~scan.chosen))
            return Improved(chosen, 0 if np.isnan(best_change) else among, best_change)
        after = descend(at, near, chosen[pool], weight, EXCHANGES, work)
        made = np.count_nonzero(after != chosen[pool]) // 2
        chosen[pool] = after
        if made > FEW or self.theta_set.n_moves(chosen) > MOST_PAIRS:
            return Improved(chosen)
        if made:
            work.add(self.problem.fit_work(chosen))
        scan = Scan(self.rows, self.problem.expansion(chosen, lam, work), chosen, weight, work)
        try:
            best_change = scan.search_all(EXCHANGES)
        finally:
            chosen[:] = scan.chosen
        return Improved(chosen, 0 if np.isnan(best_change) else self.theta_set.n_moves(chosen), best_change)

    def _changes(self, at: Expansion, off: Indices, on: Indices) -> Floats:
        """The change of J by each exchange."""
        terms = []
        for side in (off, on):
            rows, place = np.unique(side[side >= 0], return_inverse=True)
            index = np.full(side.size, len(rows))
            index[side >= 0] = place
            terms.append((at.terms(self.rows.take(rows, at.origin), none=True), index))
        (out, i), (into, j) = terms
        return exchange_changes(out, into, i, j, at.H, 1.0 / self.rows.n_rows)

"""How few rows are enough: the rows for one budget after another, each search beginning at the rows of a neighbouring budget.

Rows for fewer rows are those of a larger selection without the rows that are missed least; rows for more are those of a smaller
selection and the rows that help most. If adding rows does not help, rows that the model already predicts are added: these leave
the model as it is. So a larger budget is found to be no worse than a smaller one.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.methods import relax_and_penalize
from mixbin.problem import Indices
from mixbin.problems.distillation.exchanges import ExchangeSearch
from mixbin.problems.distillation.references import excess_of
from mixbin.problems.distillation.ridge import RidgeDistillation
from mixbin.problems.distillation.trust import HELD, in_standard_units, n_starts, search_settings
from mixbin.progress import Callback
from mixbin.result import Status

SAMPLE, SHARE = 20_000, 10
"""Rows that are in blocks are searched among this many of them, drawn at random and fetched once, as long as the budget is at
most one in SHARE of these. All rows judge nevertheless."""
STEPS = 4
"""Rows are added or dropped in at least this many batches, after each of which the gain of every row is computed again."""
POOL = 1_000
"""Rows to add are looked for among this many, those that promise most by the gradient."""
SCANNED_ON_PATH = 100_000
"""With more exchanges than this, exchanges are searched among the most promising rows only: looking through all of them at every
budget of blog took six times as long, and led to no fewer rows."""
FINENESS = 50
"""The bisection ends once two budgets differ by one row, or by one part in so many."""
SHORTEST = 1e-3
"""Seconds for a search that is begun when the time is nearly over."""
SAFELY = 1e-6
"""A tolerance must be met by this share of it, so that rounding cannot make the answer miss it."""


class Step(NamedTuple):
    """The best selection that was found for a budget."""

    rows: Indices
    """The numbers of the rows kept, ascending."""
    alpha: float
    excess: float
    evaluations: int
    """What all searches for this budget cost."""

    @property
    def budget(self) -> int:
        """How many rows are kept."""
        return len(self.rows)


class BudgetPath:
    """Selections for several budgets of one problem, whose own budget does not matter.

    Parameters
    ----------
    problem : RidgeDistillation
        Its tables, what judges, and alpha.
    seed : int
        Seeds the searches.
    gap_tol : float
        A search ends once no choice of rows can be better by this share of the objective.
    max_evaluations : int, optional
        What all searches together may cost.
    callbacks : function of the budget, optional
        Makes the callbacks of the search for a budget, such as a progress display. If one stops a search, the path ends.
    time_limit : float, optional
        Seconds for all searches together.
    """

    def __init__(
        self,
        problem: RidgeDistillation,
        seed: int,
        gap_tol: float,
        max_evaluations: int | None = None,
        callbacks: Callable[[int], Iterable[Callback]] = lambda _: (),
        time_limit: float | None = None,
    ) -> None:
        self.problem, self.seed, self.gap_tol, self.callbacks = problem, seed, gap_tol, callbacks
        self.limit = max_evaluations
        self.deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        self._stopped = False
        self.found: dict[int, Step] = {}
        """By budget."""
        self.searches: list[Step] = []
        """What each search found, in their order."""
        self.before: Sequence[Step] = ()
        """The searches of an interrupted path of the same problem and settings, which are not made again."""
        self.noted: Callable[[], None] = lambda: None
        """Called after every search."""
        self._whole = in_standard_units(problem)
        self._sample: tuple[Indices, RidgeDistillation] | None = None

    @property
    def steps(self) -> list[Step]:
        """In the order of their budgets."""
        return [self.found[k] for k in sorted(self.found)]

    @property
    def sampled(self) -> int | None:
        """Among how many rows, drawn at random, rows were searched; None if among all."""
        return None if self._sample is None else len(self._sample[0])

    @property
    def evaluations(self) -> int:
        """What all searches cost."""
        return sum(step.evaluations for step in self.found.values())

    def smallest(self, tolerance: float) -> Step | None:
        """The smallest budget with an excess of at most ``tolerance``: doubled or halved until it is enclosed, then bisected.

        None if none of the budgets up to all rows meets the tolerance, or a limit or a callback ended the path before one did.
        """
        m, k = self.problem.rows.n_rows, min(self.problem.n_features + 1, self.problem.rows.n_rows)
        low, high = 0, m + 1  # the largest budget below ``high`` that misses the tolerance, the smallest that meets it
        while low < k < high and not self._spent():
            low, high = (low, k) if self._meets(k, tolerance) else (k, high)
            if low and high <= m:
                break
            k = k // 2 if low == 0 else min(2 * k, m)
        looked_twice: set[int] = set()
        while high <= m and not self._spent():
            if high - low > max(1, high // FINENESS):
                k = (low + high) // 2
                low, high = (low, k) if self._meets(k, tolerance) else (k, high)
            elif low in looked_twice or low == 0:
                break
            else:
                looked_twice.add(low)
                if self._meets_after_all(low, tolerance):
                    low, high = max((k for k in self.found if k < low), default=0), low
        self.even_out()
        return next((step for step in self.steps if meets(step, tolerance)), None)

    def _meets(self, k: int, tolerance: float) -> bool:
        return meets(self.step(k, tolerance), tolerance)

    def _meets_after_all(self, k: int, tolerance: float) -> bool:
        """Search again for a budget that missed the tolerance: from the rows of the next larger one, and from random rows."""
        above = self.found[min(it for it in self.found if it > k)]
        self._note(k, self._searched(k, self._reduced(above, k)))
        if not meets(self.found[k], tolerance) and n_starts(self._whole) > 1 and not self._spent():
            self._note(k, self._searched(k, None))
        return meets(self.found[k], tolerance)

    def along(self, budgets: Iterable[int], enough: float = -1.0) -> list[Step]:
        """The steps of ascending budgets up to the first with an excess of at most ``enough``: on the way up, and down again."""
        for k in budgets:
            if self._spent() and self.found:
                break
            if self.step(k).excess <= enough:
                break
        for below, above in reversed(list(zip(self.steps, self.steps[1:], strict=False))):
            if not self._spent():
                self._note(below.budget, self._searched(below.budget, self._reduced(self.found[above.budget], below.budget)))
        self.even_out()
        return self.steps

    def step(self, k: int, tolerance: float | None = None) -> Step:
        """The best selection of ``k`` rows that was found; with a tolerance, a second search is made only if the first misses."""
        if k in self.found:
            return self.found[k]
        near = self._neighbours(k)
        if not near:
            self._note(k, self._searched(k, None))
            return self.found[k]
        for rows, alpha in near:
            self._note(k, self._searched(k, (rows, alpha)))
            if self._spent() or (tolerance is not None and meets(self.found[k], tolerance)):
                break
        return self.found[k]

    def even_out(self) -> None:
        """Search again where a larger budget was worse than a smaller one, from the rows of that one."""
        for below, above in zip(self.steps, self.steps[1:], strict=False):
            below = self.found[below.budget]
            if above.excess > below.excess and not self._spent():
                self._note(above.budget, self._searched(above.budget, self._extended(below, above.budget), below.excess))

    def _note(self, k: int, step: Step) -> None:
        before = self.found.get(k)
        if before is not None:
            best = min(before, step, key=lambda it: it.excess)
            step = best._replace(evaluations=before.evaluations + step.evaluations)
        self.found[k] = step

    def _spent(self) -> bool:
        """Whether no further search may begin; the first one always may."""
        if not self.found:
            return False
        return (
            self._stopped or time.monotonic() >= self.deadline or (self.limit is not None and self.evaluations >= self.limit - 1)
        )

    def _neighbours(self, k: int) -> list[tuple[Indices, float]]:
        """Where to begin: at the next larger budget without some rows, and at the next smaller one with more rows; best first."""
        above = min((it for it in self.found if it > k), default=None)
        below = max((it for it in self.found if it < k), default=None)
        starts = [] if above is None else [self._reduced(self.found[above], k)]
        starts += [] if below is None else [self._extended(self.found[below], k)]
        return sorted(starts, key=lambda it: self._value(k, *it))

    def start(self, step: Step) -> tuple[RidgeDistillation, dict[str, Any]]:
        """The problem of a step, in the units in which rows are searched, and settings to end the search at the step itself."""
        problem = self._whole.with_budget(step.budget)
        gap = step.excess / (1 + step.excess)
        theta = self._theta(problem.rows.n_rows, None, step.rows).astype(np.float64)
        # The value is computed from all rows now, and may differ by rounding.
        settings: dict[str, Any] = {"theta0": theta, "gap_tol": max(self.gap_tol, gap * (1 + SAFELY)) + SAFELY * self.gap_tol}
        if not isinstance(problem.alpha, float):
            settings["lam0"] = np.clip(step.alpha, *problem.alpha)
        return problem, settings | {"relax_first": False, "starts": 1, "epsilon0": HELD}

    # A search. Rows are numbers in the whole table, alpha is that of the whole problem.

    def _problem(self, k: int, rows: Indices | None = None) -> tuple[Indices | None, RidgeDistillation]:
        """The problem to search on, with the candidate rows that it has: None stands for all of them."""
        if self._whole.rows.random_access or k * SHARE > SAMPLE or self._whole.rows.n_rows <= SAMPLE:
            return None, self._whole.with_budget(k)
        if self._sample is None:
            drawn = np.sort(np.random.default_rng(self.seed).choice(self._whole.rows.n_rows, SAMPLE, replace=False))
            self._sample = drawn, self._whole.among(drawn)
        drawn, problem = self._sample
        if rows is not None and not np.isin(rows, drawn).all():
            return None, self._whole.with_budget(k)
        return drawn, problem.with_budget(k)

    def _searched(self, k: int, start: tuple[Indices, float] | None, least: float = np.inf) -> Step:
        """One search; ``least`` asks to go on until the excess is at most this."""
        made = len(self.searches)
        self.searches.append(self.before[made] if made < len(self.before) else self._search(k, start, least))
        self.noted()
        return self.searches[-1]

    def _search(self, k: int, start: tuple[Indices, float] | None, least: float) -> Step:
        among, problem = self._problem(k, *(() if start is None else start[:1]))
        m = problem.rows.n_rows
        gap = min(self.gap_tol, least / (1 + least)) if np.isfinite(least) else self.gap_tol
        settings: dict[str, Any] = search_settings(problem, self.seed, gap)
        if self.gap_tol:
            problem.scan_at_most = SCANNED_ON_PATH
        if start is not None:
            settings |= {"theta0": self._theta(m, among, start[0]).astype(np.float64), "relax_first": False, "starts": 1}
            settings |= {"epsilon0": HELD}
            if not isinstance(problem.alpha, float):
                settings["lam0"] = np.clip(start[1] * self._whole.rows.n_rows / m, *problem.alpha)
        left = None if self.limit is None else max(self.limit - self.evaluations, 2)
        limits: dict[str, Any] = {"max_evaluations": left}
        if np.isfinite(self.deadline):
            limits["time_limit"] = max(self.deadline - time.monotonic(), SHORTEST)
        result = relax_and_penalize(problem, seed=self.seed, callbacks=self.callbacks(k), **limits, **settings)
        self._stopped = result.status == Status.STOPPED
        chosen = np.flatnonzero(result.theta)
        alpha = problem.strength.value(result.lam) * m / self._whole.rows.n_rows
        rows = chosen if among is None else among[chosen]
        return Step(rows, alpha, excess_of(problem, result.value), result.n_evaluations)

    def _value(self, k: int, rows: Indices, alpha: float) -> float:
        among, problem = self._problem(k, rows)
        m = problem.rows.n_rows
        theta = self._theta(m, among, rows).astype(np.float64)
        return problem.evaluate(theta, _lam(problem, alpha * self._whole.rows.n_rows / m), gradient=False).value

    @staticmethod
    def _theta(m: int, among: Indices | None, rows: Indices) -> NDArray[np.bool_]:
        theta = np.zeros(m, dtype=bool)
        theta[rows if among is None else np.searchsorted(among, rows)] = True
        return theta

    def _changed(self, step: Step, k: int, change: Callable[..., None]) -> tuple[Indices, float]:
        """The rows of a step after ``change`` has added or dropped some in a mask, and alpha for as many rows."""
        among, problem = self._problem(k, step.rows)
        m = problem.rows.n_rows
        theta = self._theta(m, among, step.rows)
        # Alpha is relative to all candidate rows, so on twice the rows the penalty is as strong at twice the alpha.
        change(problem, theta, _lam(problem, step.alpha * self._whole.rows.n_rows / m), k)
        chosen = np.flatnonzero(theta)
        return (chosen if among is None else among[chosen]), step.alpha * k / step.budget

    def _reduced(self, step: Step, k: int) -> tuple[Indices, float]:
        return self._changed(step, k, _drop)

    def _extended(self, step: Step, k: int) -> tuple[Indices, float]:
        return self._changed(step, k, _add)


def meets(step: Step, tolerance: float) -> bool:
    """Whether the excess is at most the tolerance, safely so."""
    return step.excess <= tolerance * (1 - SAFELY)


def not_met(step: Step, tolerance: float) -> str:
    """What to say if no budget met the tolerance, and ``step`` is the best one."""
    return (
        f"no number of rows that was tried has an excess of at most {tolerance:g}; {step.budget:,} rows have the least, "
        f"{step.excess:.3g}: give a larger tolerance, a wider range of alpha, or more evaluations"
    )


def _lam(problem: RidgeDistillation, alpha: float) -> Floats:
    return np.empty(0) if isinstance(problem.alpha, float) else np.asarray(np.clip(alpha, *problem.alpha))


def _drop(problem: RidgeDistillation, theta: NDArray[np.bool_], lam: Floats, k: int) -> None:
    """Drop rows down to ``k``, in batches of those whose loss alone raises J least."""
    search, surplus = ExchangeSearch(problem), int(theta.sum()) - k
    batch = -(-surplus // STEPS)
    while surplus:
        off = np.flatnonzero(theta)
        after = search.evaluate_moves(theta.astype(np.float64), lam, off, np.full(len(off), -1))
        batch = min(batch, surplus)
        theta[off[np.argsort(after, kind="stable")[:batch]]] = False
        surplus -= batch


def _add(problem: RidgeDistillation, theta: NDArray[np.bool_], lam: Floats, k: int) -> None:
    """Add rows up to ``k``, in batches of those that alone lower J most; when a batch does not lower J, a smaller one.

    The rest are rows that the model predicts best, which leave it nearly as it is.
    """
    search, missing = ExchangeSearch(problem), k - int(theta.sum())
    batch = -(-missing // STEPS)
    here = problem.evaluate(theta.astype(np.float64), lam)
    while missing and batch:
        assert here.grad_theta is not None
        others = np.flatnonzero(~theta)
        pool = others[np.argsort(here.grad_theta[others], kind="stable")[:POOL]]
        after = search.evaluate_moves(theta.astype(np.float64), lam, np.full(len(pool), -1), pool)
        order = np.argsort(after, kind="stable")
        helpful = pool[order[after[order] < here.value]][: min(batch, missing)]
        if not len(helpful):
            break
        theta[helpful] = True
        there = problem.evaluate(theta.astype(np.float64), lam)
        if there.value < here.value:
            here, missing = there, missing - len(helpful)
        else:
            theta[helpful] = False
            batch = len(helpful) // 2
    if missing:
        K, point = problem.fitted(theta.astype(np.float64), lam)
        missed = np.square(problem.rows.images(K, point)).sum(axis=0)
        missed[theta] = np.inf
        theta[np.argpartition(missed, missing - 1)[:missing]] = True

"""SAGA: steps along single terms, corrected by a table of their last gradients (Defazio, Bach & Lacoste-Julien 2014).

For G = mean of G_i: x <- project(x - step (G_j'(x) - table_j + mean of table + phi'(x)/eps)), then table_j <- G_j'(x). The table
holds gradients of G without the penalty, so it stays valid when eps changes.
"""

import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Evaluation, Floats, Indices, Warm
from mixbin.solvers.base import SHORTEST_STEP, NoFiniteValue, point
from mixbin.solvers.objective import Objective
from mixbin.solvers.sampling import (
    SAFETY,
    PassPoint,
    SampledState,
    Steps,
    check_sampling,
    chosen_steps,
    count_terms,
    gradients,
    probed,
    retried_with_shorter_steps,
    reweighted,
    sampled,
)

log = logging.getLogger("mixbin")

SHORTEST_WAY_MEASURED = 1e-4
"""If a pass moved less than this, gradient changes are not used to measure curvature: over so short a way they show the accuracy
of the lower level instead."""
ROWS_PER_PROBE = 20
"""A table with at least this many rows is probed before every pass; with fewer rows only some passes are, so that probes stay a
small share of the evaluations."""


@dataclass(frozen=True, kw_only=True)
class SagaState(SampledState):
    """The point and the table: for each row, the gradients and the value of its terms at their last evaluation."""

    table_theta: Floats
    table_lam: Floats
    values: Floats
    fresh: int
    """The row that was evaluated at exactly this point."""
    suspect: int
    """The row whose gradient changed most in the last pass, and which probably has the largest curvature."""
    reach: Floats
    """How far the last pass moved in theta and in lam; every row was evaluated within twice that distance of this point."""


@dataclass(frozen=True)
class Saga:
    """Projected SAGA with separate step sizes for theta and lam; one ``step`` is one pass over the terms of a FiniteSum.

    Parameters
    ----------
    step_size : float, optional
        The step in theta. None takes 1 / (3 L), where L is the curvature measured on the terms whose gradients change most, plus
        that of the penalty.
    step_size_lam : float, optional
        The step in lam (in its unit box); None chooses it in the same way.
    batch : int
        Terms per row of the table; the terms of a row are sampled together.
    tol : float
        The solver is done when a whole pass stays within this distance of its first point (lam in its unit box). With a fixed
        ``step_size`` it is done only when nothing moves: short steps do not mean that it has converged.
    memory_limit : int
        The size of the table in bytes, at most. A table that would be larger is made with fewer rows, each for a block of terms;
        a warning in the log and ``info["memory_rows"]`` tell. A step works on a copy of the table, so it needs twice the memory.

    Examples
    --------
    >>> import mixbin as mb
    >>> data = mb.datasets.make_group_lasso("equal", n_tasks=20, n_features=6, n_groups=2, seed=0)
    >>> problem = mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=2)  # a mean over tasks
    >>> result = mb.relax_and_penalize(problem, solver=mb.Saga(), seed=0, starts=1)
    >>> result.theta.shape
    (6, 2)
    """

    state_type: ClassVar = SagaState

    step_size: float | None = None
    step_size_lam: float | None = None
    batch: int = 1
    tol: float = 1e-6
    memory_limit: int = 2**30

    def __post_init__(self) -> None:
        check_sampling(self.step_size, self.step_size_lam, self.batch, self.tol)
        check.whole("memory_limit", self.memory_limit, low=1, remedy="in bytes")

    def init(
        self, objective: Objective, theta: Floats, lam: Floats, rng: np.random.Generator, warm: Warm | None = None
    ) -> SagaState:
        """The state after evaluating every term once, so that the first table is exact."""
        n_terms = count_terms(objective, self)
        n_rows = self._rows(n_terms, theta.size + lam.size)
        table_theta, table_lam, values = np.empty((n_rows, *theta.shape)), np.empty((n_rows, *lam.shape)), np.empty(n_rows)
        for row in range(n_rows):
            got = objective.evaluate_terms(theta, lam, _terms(row, n_rows, n_terms), warm)
            if not np.isfinite(got.value):
                raise NoFiniteValue(
                    f"theta0 and lam0 give the value {got.value}; start from a point where the model can be trained"
                )
            (table_theta[row], table_lam[row]), values[row], warm = gradients(got), got.value, got.warm
        shares = _shares(n_rows, n_terms)
        info = {**got.info, "memory_rows": float(n_rows)}
        whole = Evaluation(float(shares @ values), _mean(shares, table_theta), _mean(shares, table_lam), got.warm, info)
        flat = table_theta.reshape(n_rows, theta.size)
        largest = int(np.argmax(np.einsum("ij,ij->i", flat, flat)))
        return SagaState(
            **sampled(point(theta, lam, whole, objective.phi(theta)), rng),
            table_theta=table_theta,
            table_lam=table_lam,
            values=values,
            fresh=largest,
            suspect=largest,
            reach=np.zeros(2),
        )

    def _rows(self, n_terms: int, size: int) -> int:
        """The number of rows of the table: one per batch, or as many as fit into ``memory_limit``."""
        wanted, bytes_each = -(-n_terms // self.batch), 8 * max(size, 1)
        rows = max(1, min(wanted, self.memory_limit // bytes_each))
        if rows < wanted:
            _warn_of_fewer_rows(n_terms, rows, wanted * bytes_each, self.memory_limit)
        return rows

    def step(self, objective: Objective, state: SagaState) -> SagaState:
        """One pass over the rows in random order."""
        n_rows, automatic = len(state.values), self.step_size is None or self.step_size_lam is None
        if automatic and (state.n_passes < 3 or state.n_passes % -(-ROWS_PER_PROBE // n_rows) == 0):
            terms = _terms(state.fresh, n_rows, count_terms(objective, self))
            base = np.asarray(state.table_theta[state.fresh]), np.asarray(state.table_lam[state.fresh])
            state = probed(objective, state, terms, base)
        return retried_with_shorter_steps(lambda shrink: self._pass(objective, state, shrink), state)

    def _pass(self, objective: Objective, state: SagaState, shrink: float) -> SagaState | None:
        """One pass with all steps multiplied by ``shrink``; None if a value was infinite."""
        n_terms, n_rows = count_terms(objective, self), len(state.values)
        order = np.random.default_rng([state.seed, state.n_passes]).permutation(n_rows)
        # The suspect comes last. It is then the row evaluated at the final point, and the next probe, which needs the gradient of
        # a row there, measures the curvature of this row without an extra evaluation.
        order = np.append(order[order != state.suspect], state.suspect)
        steps = chosen_steps(objective, state, self.step_size, self.step_size_lam).times(shrink)
        at, table, curvature = PassPoint(state), _Table(state, _shares(n_rows, n_terms)), state.curvature
        d_theta, d_lam = state.grad_theta, state.grad_lam
        suspect, most = state.suspect, 0.0
        for row in order.tolist():
            at.move(objective, d_theta, d_lam, steps)
            got = objective.evaluate_terms(at.theta, at.lam, _terms(row, n_rows, n_terms), at.warm)
            if not np.isfinite(got.value):
                return None
            at.warm = got.warm
            d_theta, d_lam, change = table.direction(row, got, steps)
            if change > most:
                suspect, most = row, change
            excess = SAFETY * _least_curvature(change, state.reach, at, steps)
            if excess > 1.0 and self.step_size is None and self.step_size_lam is None:
                steps = steps.times(1.0 / excess)
                curvature = np.array([1.0 / (SAFETY * steps.theta), 1.0 / (SAFETY * steps.lam), 0.0])
        return replace(
            state,
            **at.fields(objective, *table.means()),
            info={**got.info, "memory_rows": float(n_rows)},
            step=steps.theta,
            curvature=curvature,
            table_theta=table.theta,
            table_lam=table.lam,
            values=table.values,
            fresh=int(order[-1]),
            suspect=suspect,
            reach=np.array([at.reach_theta, at.reach_lam]),
        )

    def reweight(self, objective: Objective, state: SagaState) -> SagaState:
        """The state for a new eps; the table holds gradients of G alone and stays valid."""
        return reweighted(state)

    def done(self, objective: Objective, state: SagaState) -> bool:
        """Whether a whole pass has hardly moved, or even the shortest steps lead to infinite values."""
        return state.converged or state.move <= (self.tol if self.step_size is None else SHORTEST_STEP)


class _Table:
    """A copy of the state's table for a pass to write to, with its mean."""

    def __init__(self, state: SagaState, shares: Floats) -> None:
        self.theta, self.lam, self.values = state.table_theta.copy(), state.table_lam.copy(), state.values.copy()
        self.shares, self.mean_theta, self.mean_lam = shares, state.grad_theta, state.grad_lam

    def direction(self, row: int, got: Evaluation, steps: Steps) -> tuple[Floats, Floats, float]:
        """SAGA's estimate of the gradient in theta and in lam, and the squared change of the row's gradient.

        The change is measured in the metric of the steps. The row and the mean of the table are updated.
        """
        g_theta, g_lam = gradients(got)
        d_theta, d_lam = g_theta - self.theta[row], g_lam - self.lam[row]
        self.theta[row], self.lam[row], self.values[row] = g_theta, g_lam, got.value
        share = self.shares[row]
        # Rows stand for different numbers of terms but are sampled equally often; this weight keeps the estimate unbiased.
        weight = share * len(self.shares)
        estimate = self.mean_theta + weight * d_theta, self.mean_lam + weight * d_lam
        self.mean_theta, self.mean_lam = self.mean_theta + share * d_theta, self.mean_lam + share * d_lam
        return *estimate, steps.theta * float(np.vdot(d_theta, d_theta)) + steps.lam * float(np.vdot(d_lam, d_lam))

    def means(self) -> tuple[float, Floats, Floats]:
        """Value and gradients as means over the table, summed again so that rounding errors do not add up over the passes."""
        return float(self.shares @ self.values), _mean(self.shares, self.theta), _mean(self.shares, self.lam)


def _least_curvature(change: float, reach: Floats, at: PassPoint, steps: Steps) -> float:
    """A lower bound of step * L, in the metric of the steps, from the change of a row's gradient.

    The row was last evaluated no farther away than twice the reach of the last pass plus that of this one.
    """
    theta, lam = 2.0 * reach[0] + at.reach_theta, 2.0 * reach[1] + at.reach_lam
    if theta + lam < SHORTEST_WAY_MEASURED:
        return 0.0
    return float(np.sqrt(change / (theta * theta / steps.theta + lam * lam / steps.lam)))


def _terms(row: int, n_rows: int, n_terms: int) -> Indices:
    """The terms of a row: every n_rows-th term, so that terms sorted by kind are spread over all rows."""
    return np.arange(row, n_terms, n_rows)


def _shares(n_rows: int, n_terms: int) -> Floats:
    """The share of all terms that each row stands for."""
    return np.asarray((n_terms - np.arange(n_rows) + n_rows - 1) // n_rows / n_terms)


def _mean(shares: Floats, table: Floats) -> Floats:
    return np.asarray(np.tensordot(shares, table, axes=1))


@lru_cache
def _warn_of_fewer_rows(n_terms: int, rows: int, wanted: int, limit: int) -> None:
    """Log the warning once for equal arguments: every start of a run would repeat it."""
    log.warning(
        "Saga: a table for %d terms would take %d bytes, more than memory_limit = %d; it keeps %d rows, each for up to %d terms",
        n_terms,
        wanted,
        limit,
        rows,
        -(-n_terms // rows),
    )

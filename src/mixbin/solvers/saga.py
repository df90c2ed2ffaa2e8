"""SAGA: steps along single terms, corrected by a table of their last gradients (Defazio, Bach & Lacoste-Julien 2014).

For G = mean of G_i: x <- project(x - step (G_j'(x) - table_j + mean of table + phi'(x)/eps)), then table_j <- G_j'(x). The table
holds gradients of G alone, so a new eps makes nothing in it stale.
"""

import logging
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Evaluation, Floats, Indices, Warm
from mixbin.solvers.base import SHORTEST, NoFiniteValue, point
from mixbin.solvers.objective import Objective
from mixbin.solvers.sampling import (
    SAFETY,
    SampledState,
    Steps,
    Walk,
    calmly,
    check_sampling,
    chosen_steps,
    count_terms,
    gradients,
    probed,
    reweighted,
    sampled,
)

log = logging.getLogger("mixbin")

NEAR = 1e-4
"""Over shorter ways a gradient's change says more about the accuracy of the lower level than about curvature."""
MANY_ROWS = 20
"""From so many rows on each pass can afford probes; with fewer, one in several passes does."""


@dataclass(frozen=True, kw_only=True)
class SagaState(SampledState):
    """The point and the table: per row, the gradients and the value of its terms where they were last seen."""

    table_theta: Floats
    table_lam: Floats
    values: Floats
    fresh: int
    """The row that was seen at this very point."""
    suspect: int
    """The row whose gradient changed most in the last pass: where a large curvature would hide."""
    reach: Floats
    """How far the last pass went in theta and in lam: rows were last seen within twice that of this point."""


@dataclass(frozen=True)
class Saga:
    """Projected SAGA, theta and lam with steps of their own; one ``step`` is one pass over the terms of a FiniteSum.

    Parameters
    ----------
    step_size : float, optional
        The step in theta; None takes 1 / (3 L), with L from probes of the terms that change most and from the penalty.
    step_size_lam : float, optional
        The step in lam (in its unit box), likewise.
    batch : int
        Terms per row of the table, which are sampled together.
    tol : float
        Done when a pass stays within this of its first point (lam in its unit box). A fixed ``step_size`` says nothing about
        convergence: there, done when nothing moves.
    memory_limit : int
        Bytes that the table may take. A larger one gets fewer rows, each for a block of terms; the log and
        ``info["memory_rows"]`` say so. A step works on a copy of it.
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
        """Every term once: the first table is exact."""
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
        """Rows of the table: one per batch, or as many as fit."""
        wanted, bytes_each = -(-n_terms // self.batch), 8 * max(size, 1)
        rows = max(1, min(wanted, self.memory_limit // bytes_each))
        if rows < wanted:
            _say_blocks(n_terms, rows, wanted * bytes_each, self.memory_limit)
        return rows

    def step(self, objective: Objective, state: SagaState) -> SagaState:
        """One pass over the rows in random order."""
        n_rows, automatic = len(state.values), self.step_size is None or self.step_size_lam is None
        if automatic and (state.n_passes < 3 or state.n_passes % -(-MANY_ROWS // n_rows) == 0):
            terms = _terms(state.fresh, n_rows, count_terms(objective, self))
            base = np.asarray(state.table_theta[state.fresh]), np.asarray(state.table_lam[state.fresh])
            state = probed(objective, state, terms, base)
        return calmly(lambda shrink: self._pass(objective, state, shrink), state)

    def _pass(self, objective: Objective, state: SagaState, shrink: float) -> SagaState | None:
        """The pass with steps times ``shrink``; None when a value was infinite."""
        n_terms, n_rows = count_terms(objective, self), len(state.values)
        order = np.random.default_rng([state.seed, state.n_passes]).permutation(n_rows)
        # The suspect comes last: then it is the fresh row, whose curvature is probed next, at no cost.
        order = np.append(order[order != state.suspect], state.suspect)
        steps = chosen_steps(objective, state, self.step_size, self.step_size_lam).times(shrink)
        at, table, curvature = Walk(state), _Table(state, _shares(n_rows, n_terms)), state.curvature
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
        """A new eps, of which the table knows nothing."""
        return reweighted(state)

    def done(self, objective: Objective, state: SagaState) -> bool:
        """A whole pass has moved next to nothing, or every step leads to infinite values."""
        return state.converged or state.move <= (self.tol if self.step_size is None else SHORTEST)


class _Table:
    """A copy of a state's table that a pass may write to, with its mean."""

    def __init__(self, state: SagaState, shares: Floats) -> None:
        self.theta, self.lam, self.values = state.table_theta.copy(), state.table_lam.copy(), state.values.copy()
        self.shares, self.mean_theta, self.mean_lam = shares, state.grad_theta, state.grad_lam

    def direction(self, row: int, got: Evaluation, steps: Steps) -> tuple[Floats, Floats, float]:
        """SAGA's estimate of the gradient in theta and lam; the row and the mean are renewed. Also how much the row changed."""
        g_theta, g_lam = gradients(got)
        d_theta, d_lam = g_theta - self.theta[row], g_lam - self.lam[row]
        self.theta[row], self.lam[row], self.values[row] = g_theta, g_lam, got.value
        share = self.shares[row]
        # Rows of unequal size are sampled equally often: the weight keeps the estimate unbiased.
        weight = share * len(self.shares)
        estimate = self.mean_theta + weight * d_theta, self.mean_lam + weight * d_lam
        self.mean_theta, self.mean_lam = self.mean_theta + share * d_theta, self.mean_lam + share * d_lam
        return *estimate, steps.theta * float(np.vdot(d_theta, d_theta)) + steps.lam * float(np.vdot(d_lam, d_lam))

    def means(self) -> tuple[float, Floats, Floats]:
        """Value and gradients, summed afresh so that rounding does not add up over the passes."""
        return float(self.shares @ self.values), _mean(self.shares, self.theta), _mean(self.shares, self.lam)


def _least_curvature(change: float, reach: Floats, at: Walk, steps: Steps) -> float:
    """What a row's change proves of step * L, in the metric of the steps: it was last seen no farther away than this."""
    theta, lam = 2.0 * reach[0] + at.reach_theta, 2.0 * reach[1] + at.reach_lam
    if theta + lam < NEAR:
        return 0.0
    return float(np.sqrt(change / (theta * theta / steps.theta + lam * lam / steps.lam)))


def _terms(row: int, n_rows: int, n_terms: int) -> Indices:
    """The block of a row: every n_rows-th term, so that terms sorted by kind are spread over the blocks."""
    return np.arange(row, n_terms, n_rows)


def _shares(n_rows: int, n_terms: int) -> Floats:
    """The share of each row in the terms."""
    return np.asarray((n_terms - np.arange(n_rows) + n_rows - 1) // n_rows / n_terms)


def _mean(shares: Floats, table: Floats) -> Floats:
    return np.asarray(np.tensordot(shares, table, axes=1))


@lru_cache
def _say_blocks(n_terms: int, rows: int, wanted: int, limit: int) -> None:
    """Once for all starts and jumps of a run."""
    log.warning(
        "Saga: a table for %d terms would take %d bytes, more than memory_limit = %d; it keeps %d rows, each for up to %d terms",
        n_terms,
        wanted,
        limit,
        rows,
        -(-n_terms // rows),
    )

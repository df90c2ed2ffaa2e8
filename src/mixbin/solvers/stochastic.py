"""Projected stochastic gradients with step schedules (Robbins & Monro 1951)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Floats, Warm
from mixbin.solvers.base import LONGEST_STEP, SHORTEST_STEP, first_point
from mixbin.solvers.objective import Objective
from mixbin.solvers.sampling import (
    PassPoint,
    SampledState,
    check_sampling,
    chosen_steps,
    count_terms,
    gradients,
    probed,
    retried_with_shorter_steps,
    reweighted,
    sampled,
)

SCHEDULES = ("sqrt", "inverse", "constant")


@dataclass(frozen=True, kw_only=True)
class StochasticState(SampledState):
    """The point, the gradient of the last batch there, and how many passes the schedule has run."""

    batch_theta: Floats
    batch_lam: Floats
    age: int = 0
    """Passes since the schedule started, which it does again for each eps."""


@dataclass(frozen=True)
class StochasticGradient:
    """Projected steps along the gradients of mini-batches; one ``step`` is one pass over the terms of a FiniteSum.

    Parameters
    ----------
    step_size : float, optional
        The first step in theta. None takes 1 / (3 L), where L is the curvature measured on one batch when the schedule starts.
    step_size_lam : float, optional
        The first step in lam (in its unit box); None chooses it in the same way.
    schedule : {"sqrt", "inverse", "constant"}
        Steps shrink like 1 / sqrt(1 + decay t), 1 / (1 + decay t) or not at all; t counts passes and restarts for each eps.
    decay : float
        How fast the steps shrink.
    batch : int
        Terms per gradient.
    tol : float
        The solver is done when a whole pass stays within this distance of its first point, scaled to the length of the schedule's
        first steps. With a fixed ``step_size`` it is done only when nothing moves: short steps do not mean that it has converged.

    Examples
    --------
    >>> import mixbin as mb
    >>> data = mb.datasets.make_group_lasso("equal", n_tasks=20, n_features=6, n_groups=2, seed=0)
    >>> problem = mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=2)  # a mean over tasks
    >>> result = mb.relax_and_penalize(problem, solver=mb.StochasticGradient(), seed=0, starts=1)
    >>> result.theta.shape
    (6, 2)
    """

    state_type: ClassVar = StochasticState

    step_size: float | None = None
    step_size_lam: float | None = None
    schedule: str = "sqrt"
    decay: float = 1.0
    batch: int = 10
    tol: float = 1e-6

    def __post_init__(self) -> None:
        check_sampling(self.step_size, self.step_size_lam, self.batch, self.tol)
        check.choice("schedule", self.schedule, SCHEDULES)
        check.real("decay", self.decay, low=0.0, high=LONGEST_STEP)

    def init(
        self, objective: Objective, theta: Floats, lam: Floats, rng: np.random.Generator, warm: Warm | None = None
    ) -> StochasticState:
        """The state after one evaluation of the whole sum."""
        count_terms(objective, self)
        at = first_point(objective, theta, lam, warm)
        return StochasticState(**sampled(at, rng), batch_theta=at.grad_theta, batch_lam=at.grad_lam)

    def step(self, objective: Objective, state: StochasticState) -> StochasticState:
        """One pass over the terms in random order."""
        if state.age == 0 and (self.step_size is None or self.step_size_lam is None):
            terms = np.random.default_rng([state.seed, state.n_passes, 1]).permutation(count_terms(objective, self))
            state = probed(objective, state, terms[: self.batch])
        return retried_with_shorter_steps(lambda shrink: self._pass(objective, state, shrink), state)

    def _pass(self, objective: Objective, state: StochasticState, shrink: float) -> StochasticState | None:
        """One pass with all steps multiplied by ``shrink``; None if a value was infinite."""
        n_terms = count_terms(objective, self)
        order = np.random.default_rng([state.seed, state.n_passes]).permutation(n_terms)
        batches = np.array_split(order, -(-n_terms // self.batch))
        first = chosen_steps(objective, state, self.step_size, self.step_size_lam).times(shrink)
        at = PassPoint(state)
        g_theta, g_lam = state.batch_theta, state.batch_lam
        value, mean_theta, mean_lam = 0.0, np.zeros(state.theta.shape), np.zeros(state.lam.shape)
        for k, terms in enumerate(batches):
            at.move(objective, g_theta, g_lam, first.times(self._schedule(state.age + k / len(batches))))
            got = objective.evaluate_terms(at.theta, at.lam, terms, at.warm)
            if not np.isfinite(got.value):
                return None
            at.warm = got.warm
            g_theta, g_lam = gradients(got)
            share = len(terms) / n_terms
            value += share * got.value
            mean_theta += share * g_theta
            mean_lam += share * g_lam
        return replace(
            state,
            **at.fields(objective, value, mean_theta, mean_lam),
            info=got.info,
            step=first.theta * self._schedule(state.age),
            batch_theta=g_theta,
            batch_lam=g_lam,
            age=state.age + 1,
        )

    def _schedule(self, t: float) -> float:
        """The length of a step after ``t`` passes, relative to the first."""
        if self.schedule == "constant":
            return 1.0
        shrunk = 1.0 / (1.0 + self.decay * t)
        return shrunk if self.schedule == "inverse" else float(np.sqrt(shrunk))

    def reweight(self, objective: Objective, state: StochasticState) -> StochasticState:
        """The state for a new eps: the last gradient of G is kept, the schedule restarts."""
        return replace(reweighted(state), age=0)

    def done(self, objective: Objective, state: StochasticState) -> bool:
        """Whether a whole pass has hardly moved, or even the shortest steps lead to infinite values."""
        as_first = state.move / self._schedule(max(state.age - 1, 0))
        return state.converged or as_first <= (self.tol if self.step_size is None else SHORTEST_STEP)

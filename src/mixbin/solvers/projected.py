"""Projected gradient: a fixed step, or backtracking along the projection arc (Bertsekas 1976)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Floats, Warm
from mixbin.solvers.base import LONGEST_STEP, SHORTEST_STEP, SUFFICIENT_DECREASE, State, first_point, first_steps, point
from mixbin.solvers.objective import Objective


@dataclass(frozen=True, kw_only=True)
class ProjectedState(State):
    """The point, the step sizes to try next, and how far the last step moved."""

    step_theta: float
    step_lam: float
    move: float = np.inf


@dataclass(frozen=True)
class ProjectedGradient:
    """theta <- project(theta - step_size * gradient), and lam likewise in its unit box.

    Parameters
    ----------
    step_size : float, optional
        A fixed step in theta, as in the paper. With None the solver backtracks until the value falls, starting from twice the
        last step.
    step_size_lam : float, optional
        A fixed step in lam, only together with ``step_size``; None takes ``step_size`` for lam too.
    tol : float
        With backtracking, the solver is done when a step moves (theta, lam) by at most this (lam in its unit box). With a fixed
        step, it is done only when a step moves nothing: a short fixed step does not mean that the solver has converged.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> mb.relax_and_penalize(problem, solver=mb.ProjectedGradient(), seed=0).theta
    array([False,  True, False,  True])
    """

    state_type: ClassVar = ProjectedState

    step_size: float | None = None
    step_size_lam: float | None = None
    tol: float = 1e-6

    def __post_init__(self) -> None:
        if self.step_size is not None:
            check.real("step_size", self.step_size, low=0.0, high=LONGEST_STEP, open_low=True)
        if self.step_size_lam is not None:
            check.real("step_size_lam", self.step_size_lam, low=0.0, high=LONGEST_STEP, open_low=True)
            if self.step_size is None:
                raise check.fail("step_size_lam", self.step_size_lam, "None when step_size is None", "fix both steps or none")
        check.real("tol", self.tol, low=0.0)

    def init(
        self, objective: Objective, theta: Floats, lam: Floats, rng: np.random.Generator, warm: Warm | None = None
    ) -> ProjectedState:
        """The state after one evaluation."""
        at = first_point(objective, theta, lam, warm)
        step_theta, step_lam = first_steps(objective, at)
        if self.step_size is not None:
            step_theta = self.step_size
            step_lam = self.step_size if self.step_size_lam is None else self.step_size_lam
        return ProjectedState(**vars(at), step_theta=step_theta, step_lam=step_lam)

    def step(self, objective: Objective, state: ProjectedState) -> ProjectedState:
        """One projected step; with backtracking, the step is halved until the value falls enough (Armijo's condition).

        A fixed step is halved only if G is infinite after it.
        """
        now, slope = objective.total(state.value, state.phi), objective.slope(state.grad_theta, state.theta)
        shrink = 1.0
        while True:
            theta = objective.project_theta(state.theta - shrink * state.step_theta * slope)
            lam = objective.project_lam(state.lam - shrink * state.step_lam * state.grad_lam)
            d_theta, d_lam = theta - state.theta, lam - state.lam
            descent = float(np.vdot(slope, d_theta)) + float(np.vdot(state.grad_lam, d_lam))
            if not descent < 0:
                return replace(state, converged=True)
            got = objective.evaluate(theta, lam, state.warm)
            phi = objective.phi(theta)
            fixed = self.step_size is not None and np.isfinite(got.value)
            if fixed or objective.total(got.value, phi) <= now + SUFFICIENT_DECREASE * descent:
                break
            shrink *= 0.5
            if shrink < SHORTEST_STEP:
                return replace(state, converged=True)
        longer = 1.0 if self.step_size is not None else min(2.0 * shrink, 1e100 / state.step_theta)
        return ProjectedState(
            **vars(point(theta, lam, got, phi)) | {"step": shrink * state.step_theta},
            step_theta=longer * state.step_theta,
            step_lam=longer * state.step_lam,
            move=float(np.sqrt(np.vdot(d_theta, d_theta) + np.vdot(d_lam, d_lam))),
        )

    def reweight(self, objective: Objective, state: ProjectedState) -> ProjectedState:
        """The state for a new eps, not converged."""
        return replace(state, move=np.inf, converged=False)

    def done(self, objective: Objective, state: ProjectedState) -> bool:
        """Whether the steps have become negligible, or the line search could not lower the value."""
        return state.converged or (self.step_size is None and state.move <= self.tol)

"""Frank-Wolfe (1956): theta moves towards the point of Theta that minimises the linearised objective, while G + phi/eps falls.

If the concave penalty is strong, G + phi/eps falls all the way: iterates land exactly on vertices, and nothing is projected.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Floats, Warm
from mixbin.solvers.base import SHORTEST_STEP, SUFFICIENT_DECREASE, State, first_point, first_steps, point
from mixbin.solvers.objective import Objective
from mixbin.solvers.spectral import spectral_step


@dataclass(frozen=True, kw_only=True)
class FrankWolfeState(State):
    """The point, the target that the linear oracle returned there, and the step in lam to try next."""

    target: Floats
    """The point of Theta that minimises <slope, .>."""
    gap: float
    """max <gradient, this point - x> over all x of both sets; for a convex G, a bound on how much the value can still fall."""
    largest_gap: float
    """The largest gap of the run so far, in units of which ``tol`` measures the gap."""
    step_lam: float


@dataclass(frozen=True)
class FrankWolfe:
    """Each step moves theta towards the linear oracle's target, then lam by a projected spectral step, by one line search each.

    Parameters
    ----------
    tol : float
        The solver is done when the Frank-Wolfe gap has fallen to this share of the largest gap of the run.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> mb.relax_and_penalize(problem, solver=mb.FrankWolfe(), seed=0).theta
    array([False,  True, False,  True])
    """

    state_type: ClassVar = FrankWolfeState

    tol: float = 1e-6

    def __post_init__(self) -> None:
        check.real("tol", self.tol, low=0.0)

    def init(
        self, objective: Objective, theta: Floats, lam: Floats, rng: np.random.Generator, warm: Warm | None = None
    ) -> FrankWolfeState:
        """The state after one evaluation."""
        at = first_point(objective, theta, lam, warm)
        return _with_target(objective, at, 0.0, first_steps(objective, at)[1])

    def step(self, objective: Objective, state: FrankWolfeState) -> FrankWolfeState:
        """A line search in theta, then one in lam.

        Two searches, because in a joint one theta could hold back lam or lam theta, and because the spectral step in lam needs
        the change of the gradient by a change of lam alone.
        """
        at: State = state
        in_theta = _search(objective, at, state.target, at.lam)
        t = 0.0
        if in_theta is not None:
            t, at = in_theta
        before, step_lam = at, state.step_lam
        lam = objective.project_lam(at.lam - step_lam * at.grad_lam)
        in_lam = _search(objective, at, at.theta, lam)
        if in_lam is not None:
            t_lam, at = in_lam
            d = lam - before.lam
            step_lam = spectral_step(step_lam, t_lam, float(np.vdot(d, d)), float(np.vdot(at.grad_lam - before.grad_lam, d)))
        if at is state:
            return replace(state, converged=True)
        return _with_target(objective, replace(at, step=t), state.largest_gap, step_lam)

    def reweight(self, objective: Objective, state: FrankWolfeState) -> FrankWolfeState:
        """The state for a new eps, which changes the slope and so the target."""
        return _with_target(objective, replace(state, converged=False), state.largest_gap, state.step_lam)

    def done(self, objective: Objective, state: FrankWolfeState) -> bool:
        """Whether the gap has closed, or neither line search could lower the value."""
        return state.converged or state.gap <= self.tol * state.largest_gap


def _with_target(objective: Objective, at: State, largest_gap: float, step_lam: float) -> FrankWolfeState:
    """The state at a point, with its target and its gap computed there."""
    slope = objective.slope(at.grad_theta, at.theta)
    target = objective.oracle_theta(slope)
    # In the unit box of lam the minimiser of the linearised objective is 0 or 1 in each entry.
    gap = float(np.vdot(slope, at.theta - target)) + float(np.maximum(at.grad_lam * at.lam, at.grad_lam * (at.lam - 1.0)).sum())
    own = {"target": target, "gap": gap, "largest_gap": max(largest_gap, gap), "step_lam": step_lam}
    return FrankWolfeState(**{**vars(at), **own})


def _search(objective: Objective, at: State, theta: Floats, lam: Floats) -> tuple[float, State] | None:
    """A point between ``at`` and (theta, lam) with a lower value, and its t in (0, 1]; None if the search finds none.

    If the value still falls at (theta, lam), the search returns that end itself. Otherwise it goes to the minimum of the parabola
    through the slopes at both ends, which is exact for quadratic functions.
    """
    d_theta, d_lam = theta - at.theta, lam - at.lam
    descent = float(np.vdot(objective.slope(at.grad_theta, at.theta), d_theta)) + float(np.vdot(at.grad_lam, d_lam))
    if not descent < 0:
        return None
    now = lowest = objective.total(at.value, at.phi)
    best: tuple[float, State] | None = None
    t = 1.0
    while t > SHORTEST_STEP:
        got = objective.evaluate(theta, lam, at.warm)
        shorter = 0.1
        if np.isfinite(got.value):
            there = point(theta, lam, got, objective.phi(theta))
            total = objective.total(there.value, there.phi)
            end = float(np.vdot(objective.slope(there.grad_theta, theta), d_theta)) + float(np.vdot(there.grad_lam, d_lam))
            if total <= now + SUFFICIENT_DECREASE * t * descent and total < lowest:
                best, lowest = (t, there), total
            if best is not None and (t < 1.0 or end <= 0):
                return best
            shorter = descent / (descent - end) if end > 0 else 0.5
        # Far from a parabola its minimum can lie almost at 0 or at t; these bounds make the search end.
        t *= min(max(shorter, 1e-3), 0.9)
        theta, lam = at.theta + t * d_theta, np.asarray(at.lam + t * d_lam)
    return best

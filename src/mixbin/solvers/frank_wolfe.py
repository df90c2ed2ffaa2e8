"""Frank-Wolfe (1956): theta goes towards the point of Theta that the gradient likes best, as far as G + phi/eps falls.

With a strong concave penalty that is the whole way: iterates land exactly on vertices, and nothing is projected.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Floats, Warm
from mixbin.solvers.base import SHORTEST, SUFFICIENT, State, first_point, first_steps, point
from mixbin.solvers.objective import Objective
from mixbin.solvers.spectral import spectral_step


@dataclass(frozen=True, kw_only=True)
class FrankWolfeState(State):
    """The point, what the linear oracle says there, and the step in lam to try next."""

    target: Floats
    """The point of Theta that minimises <slope, .>."""
    gap: float
    """max <gradient, this point - other> over both sets; were everything convex, a bound of what is left to gain."""
    largest_gap: float
    """Of all so far: what a gap is measured by."""
    step_lam: float


@dataclass(frozen=True)
class FrankWolfe:
    """theta moves towards the linear oracle's answer, then lam by a projected spectral step, each with its own line search.

    Parameters
    ----------
    tol : float
        Done when the Frank-Wolfe gap has fallen to this share of the largest one seen.
    """

    state_type: ClassVar = FrankWolfeState

    tol: float = 1e-6

    def __post_init__(self) -> None:
        check.real("tol", self.tol, low=0.0)

    def init(
        self, objective: Objective, theta: Floats, lam: Floats, rng: np.random.Generator, warm: Warm | None = None
    ) -> FrankWolfeState:
        """One evaluation."""
        at = first_point(objective, theta, lam, warm)
        return _aimed(objective, at, 0.0, first_steps(objective, at)[1])

    def step(self, objective: Objective, state: FrankWolfeState) -> FrankWolfeState:
        """A line search in theta, then one in lam.

        One search for both would let either hold back the other, and a spectral step in lam needs a change in lam alone.
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
        return _aimed(objective, replace(at, step=t), state.largest_gap, step_lam)

    def reweight(self, objective: Objective, state: FrankWolfeState) -> FrankWolfeState:
        """A new eps: the slope now points elsewhere."""
        return _aimed(objective, replace(state, converged=False), state.largest_gap, state.step_lam)

    def done(self, objective: Objective, state: FrankWolfeState) -> bool:
        """The gap has closed, or both line searches have met rounding."""
        return state.converged or state.gap <= self.tol * state.largest_gap


def _aimed(objective: Objective, at: State, largest_gap: float, step_lam: float) -> FrankWolfeState:
    """The state at a point, with its target and its gap."""
    slope = objective.slope(at.grad_theta, at.theta)
    target = objective.oracle_theta(slope)
    # In the unit box of lam the oracle's answer is 0 or 1, entry by entry.
    gap = float(np.vdot(slope, at.theta - target)) + float(np.maximum(at.grad_lam * at.lam, at.grad_lam * (at.lam - 1.0)).sum())
    own = {"target": target, "gap": gap, "largest_gap": max(largest_gap, gap), "step_lam": step_lam}
    return FrankWolfeState(**{**vars(at), **own})


def _search(objective: Objective, at: State, theta: Floats, lam: Floats) -> tuple[float, State] | None:
    """(t, point) on the way from ``at`` to (theta, lam): the end itself while the value still falls there, else near the minimum.

    The minimum is that of the parabola through the slopes at both ends, exact for quadratics. None when nothing falls.
    """
    d_theta, d_lam = theta - at.theta, lam - at.lam
    descent = float(np.vdot(objective.slope(at.grad_theta, at.theta), d_theta)) + float(np.vdot(at.grad_lam, d_lam))
    if not descent < 0:
        return None
    now = lowest = objective.total(at.value, at.phi)
    best: tuple[float, State] | None = None
    t = 1.0
    while t > SHORTEST:
        got = objective.evaluate(theta, lam, at.warm)
        shorter = 0.1
        if np.isfinite(got.value):
            there = point(theta, lam, got, objective.phi(theta))
            total = objective.total(there.value, there.phi)
            end = float(np.vdot(objective.slope(there.grad_theta, theta), d_theta)) + float(np.vdot(there.grad_lam, d_lam))
            if total <= now + SUFFICIENT * t * descent and total < lowest:
                best, lowest = (t, there), total
            if best is not None and (t < 1.0 or end <= 0):
                return best
            shorter = descent / (descent - end) if end > 0 else 0.5
        t *= min(max(shorter, 1e-3), 0.9)
        theta, lam = at.theta + t * d_theta, np.asarray(at.lam + t * d_lam)
    return best

"""Spectral projected gradient: Barzilai-Borwein steps, projection, nonmonotone line search (Birgin, Martinez & Raydan 2000)."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Evaluation, Floats, Warm
from mixbin.solvers.base import SHORTEST_STEP, SUFFICIENT_DECREASE, State, first_point, first_steps
from mixbin.solvers.objective import Objective

GROWTH_WITHOUT_CURVATURE = 10.0
"""Factor by which a step grows if the measured curvature is not positive, for which Barzilai and Borwein define no step."""
LONGEST = 1e300
"""No entry moves farther than this before the projection."""
STALLED = 3
"""The number of steps over which ``stall`` is measured: a single spectral step may well raise the value."""


@dataclass(frozen=True, kw_only=True)
class SpectralState(State):
    """The point, the two spectral step sizes, and (G, phi) of the last points, for the nonmonotone line search."""

    step_theta: float
    step_lam: float
    history: Floats
    move: float = np.inf
    """The length of the last projected direction, in theta and the unit box of lam together."""


@dataclass(frozen=True)
class SpectralGradient:
    """Projected Barzilai-Borwein steps with a nonmonotone line search, theta and lam scaled separately.

    Parameters
    ----------
    memory : int
        A step must improve on the worst of the last ``memory`` values; with 1 the value falls in every step.
    tol : float
        The solver is done when a full spectral step would move (theta, lam) by at most this (lam in its unit box).
    stall : float
        The solver is also done when its last three steps together have lowered the value by at most this share of it. Use it if
        values are not exact: steps that follow their errors lead nowhere. 0 is for exact values and never ends the solver.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> mb.relax_and_penalize(problem, solver=mb.SpectralGradient(), seed=0).theta
    array([False,  True, False,  True])
    """

    state_type: ClassVar = SpectralState

    memory: int = 10
    tol: float = 1e-6
    stall: float = 0.0

    def __post_init__(self) -> None:
        check.whole("memory", self.memory, low=1)
        check.real("tol", self.tol, low=0.0)
        check.real("stall", self.stall, low=0.0, high=1.0, open_high=True, remedy="0.001 is a thousandth of the value")

    def init(
        self, objective: Objective, theta: Floats, lam: Floats, rng: np.random.Generator, warm: Warm | None = None
    ) -> SpectralState:
        """The state after one evaluation; the first steps move theta by at most 1 and lam by a tenth of its range."""
        at = first_point(objective, theta, lam, warm)
        step_theta, step_lam = first_steps(objective, at)
        return SpectralState(**vars(at), step_theta=step_theta, step_lam=step_lam, history=np.array([[at.value, at.phi]]))

    def step(self, objective: Objective, state: SpectralState) -> SpectralState:
        """A step along the projected direction, as far as the line search allows, then new spectral step sizes."""
        slope = objective.slope(state.grad_theta, state.theta)
        target = _along(slope, -state.step_theta)
        target += state.theta
        target = objective.project_theta(target)
        d_theta = target - state.theta
        lam_target = objective.project_lam(state.lam - state.step_lam * state.grad_lam)
        d_lam = lam_target - state.lam
        along_theta, along_lam = float(np.vdot(slope, d_theta)), float(np.vdot(state.grad_lam, d_lam))
        descent = along_theta + along_lam
        if not descent < 0:
            return replace(state, converged=True, move=0.0)

        # Hand the array over in a list, so that the line search can free it after its first trial: theta may be very large, and
        # no later trial needs this copy.
        first = [target]
        del target, slope
        found = self._search(objective, state, first, d_theta, lam_target, d_lam, descent)
        if found is None:
            return replace(state, converged=True)
        t, theta, lam, got, phi = found
        assert got.grad_theta is not None
        assert got.grad_lam is not None
        # Barzilai-Borwein's s'y is t d'(slope_new - slope_old); both dot products are known, so the vector y is never formed.
        dd_theta, dd_lam = float(np.vdot(d_theta, d_theta)), float(np.vdot(d_lam, d_lam))
        bend_theta = float(np.vdot(objective.slope(got.grad_theta, theta), d_theta)) - along_theta
        bend_lam = float(np.vdot(got.grad_lam, d_lam)) - along_lam
        return SpectralState(
            theta=theta,
            lam=lam,
            value=got.value,
            phi=phi,
            grad_theta=got.grad_theta,
            grad_lam=got.grad_lam,
            warm=got.warm,
            step=t * state.step_theta,
            info=got.info,
            step_theta=spectral_step(state.step_theta, t, dd_theta, bend_theta),
            step_lam=spectral_step(state.step_lam, t, dd_lam, bend_lam),
            history=np.concatenate((state.history, ((got.value, phi),)))[-max(self.memory, STALLED + 1 if self.stall else 1) :],
            move=float(np.sqrt(dd_theta + dd_lam)),
        )

    def _search(
        self,
        objective: Objective,
        state: SpectralState,
        first: list[Floats],
        d_theta: Floats,
        lam_target: Floats,
        d_lam: Floats,
        descent: float,
    ) -> tuple[float, Floats, Floats, Evaluation, float] | None:
        """The first of the steps t = 1, t_1, t_2, ... that passes Armijo's test against the worst of the last values.

        None if no t above SHORTEST_STEP passes.
        """
        now = objective.total(state.value, state.phi)
        reference = max(objective.total(value, phi) for value, phi in state.history[-self.memory :].tolist())
        t, theta, lam = 1.0, first.pop(), lam_target
        while True:
            phi = objective.phi(theta)
            got = objective.evaluate(theta, lam, state.warm)
            total = objective.total(got.value, phi)
            if total <= reference + SUFFICIENT_DECREASE * t * descent:
                return t, theta, lam, got, phi
            # The parabola through the values at 0 and t and the slope at 0 has its minimum at ``best``. Bounds keep the next step
            # from being almost as long as this one, and from collapsing if the value is infinite (then bend is, and best is 0).
            bend = total - now - t * descent
            best = -0.5 * t * t * descent / bend if np.isfinite(bend) and bend > 0 else 0.0
            t = min(max(best, 0.1 * t), 0.5 * t)
            if t < SHORTEST_STEP or -t * descent < self.stall * abs(now):
                return None
            del theta, got
            theta, lam = t * d_theta, state.lam + t * d_lam
            theta += state.theta

    def reweight(self, objective: Objective, state: SpectralState) -> SpectralState:
        """The state for a new eps: values at other points belong to the old eps, so the history keeps this point alone."""
        return replace(state, history=np.array([[state.value, state.phi]]), move=np.inf, converged=False)

    def done(self, objective: Objective, state: SpectralState) -> bool:
        """Whether the steps or what they gain have become negligible, or the line search could not lower the value."""
        return state.converged or state.move <= self.tol or (self.stall > 0 and self._stalled(objective, state))

    def _stalled(self, objective: Objective, state: SpectralState) -> bool:
        totals = [objective.total(value, phi) for value, phi in state.history[-STALLED - 1 :]]
        return len(totals) > STALLED and totals[0] - min(totals[1:]) <= self.stall * abs(totals[0])


def spectral_step(step: float, t: float, dd: float, dy: float) -> float:
    """Barzilai-Borwein's step s's / s'y for s = t d; a longer step than the last one if the curvature s'y is not positive."""
    if dd <= 0:
        return step
    if dy <= 0:
        return min(step * GROWTH_WITHOUT_CURVATURE, 1e100)  # it may grow in every step, but must not overflow
    return t * dd / dy


def _along(slope: Floats, step: float) -> Floats:
    """``slope * step``. Where gradients are tiny, steps are long; products beyond LONGEST are cut off there."""
    try:
        with np.errstate(over="raise"):
            return slope * step
    except FloatingPointError:
        return np.clip(slope, -LONGEST / abs(step), LONGEST / abs(step)) * step

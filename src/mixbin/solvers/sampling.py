"""What the sampling solvers share: passes over the terms in an order that the state determines, and step sizes from curvature.

The curvature is measured by probes: evaluations of a few terms at a nearby feasible point. A probe moves theta or lam, never
both, because their scales have nothing to do with each other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mixbin import _validate as check
from mixbin.errors import InvalidInput
from mixbin.problem import Evaluation, Floats, Indices
from mixbin.solvers.base import LONGEST_STEP, SHORTEST_STEP, State, first_steps
from mixbin.solvers.objective import Objective

SAFETY = 3.0
"""Steps are 1 / (3 L), as in SAGA's analysis (Defazio, Bach & Lacoste-Julien 2014)."""
PROBE_LENGTH = 0.05
"""A probe moves no entry by more than this; theta and lam both lie in unit boxes."""
CURVATURE_DECAY = 0.9
"""Before each probe, the curvature measured so far is multiplied by this, so that old measurements fade."""
FIRST_PROBES = 4
"""Probes before the first pass. Each follows the gradient change that the last one measured, as in a power iteration, because no
direction of large curvature is known yet."""
RETRY_FACTOR = 0.25
"""A pass that meets an infinite value is repeated with its steps multiplied by this."""


@dataclass(frozen=True, kw_only=True)
class SampledState(State):
    """A point reached by sampled terms; value and gradients are means over the terms, each at its last evaluation."""

    seed: int
    """Together with ``n_passes``, this determines the order of the next pass."""
    n_passes: int = 0
    curvature: Floats
    """The measured curvature in theta, in lam, and between the two."""
    probe_theta: Floats
    """The direction of the next probe in theta."""
    probe_lam: Floats
    """The direction of the next probe in lam."""
    move: float = np.inf
    """The largest distance from its first point that the last pass reached, in theta and the unit box of lam together."""


P = TypeVar("P", bound=SampledState)


class Steps(NamedTuple):
    """Step sizes in theta and lam."""

    theta: float
    lam: float

    def times(self, factor: float) -> "Steps":
        """Both step sizes multiplied by ``factor``."""
        return Steps(factor * self.theta, factor * self.lam)


def check_sampling(step_size: object, step_size_lam: object, batch: object, tol: object) -> None:
    """Check the arguments that the sampling solvers share."""
    if step_size is not None:
        check.real("step_size", step_size, low=0.0, high=LONGEST_STEP, open_low=True)
    if step_size_lam is not None:
        check.real("step_size_lam", step_size_lam, low=0.0, high=LONGEST_STEP, open_low=True)
    check.whole("batch", batch, low=1)
    check.real("tol", tol, low=0.0)


def count_terms(objective: Objective, solver: object) -> int:
    """The number of terms of the problem; an error if the problem is not a finite sum."""
    n_terms = objective.problem.n_terms
    if n_terms is None:
        name = type(solver).__name__
        raise InvalidInput(
            f"problem must be a FiniteSum (with n_terms and evaluate_terms) for {name}, got {objective.problem.name}; "
            'use solver="spectral", which needs no terms'
        )
    return n_terms


def gradients(got: Evaluation) -> tuple[Floats, Floats]:
    """The gradients in theta and lam of an evaluation that was made with gradients."""
    assert got.grad_theta is not None
    assert got.grad_lam is not None
    return got.grad_theta, got.grad_lam


def sampled(at: State, rng: np.random.Generator) -> dict[str, Any]:
    """The fields of a SampledState at a starting point."""
    return vars(at) | {
        "seed": int(rng.integers(2**63)),
        "curvature": np.zeros(3),
        "probe_theta": np.asarray(rng.normal(size=at.theta.shape)),
        "probe_lam": np.asarray(rng.normal(size=at.lam.shape)),
    }


def reweighted(state: P) -> P:
    """The state after a change of eps, which does not change the curvature of G."""
    return replace(state, move=np.inf, converged=False)


def retried_with_shorter_steps(one_pass: Callable[[float], P | None], state: P) -> P:
    """Run the pass, and repeat it with quartered steps until all its values are finite.

    If no steps are short enough, the state counts as converged.
    """
    shrink = 1.0
    while shrink > SHORTEST_STEP:
        there = one_pass(shrink)
        if there is not None:
            return there
        shrink *= RETRY_FACTOR
    return replace(state, converged=True)


class PassPoint:
    """The current point of a pass, and how far the pass has moved from its first point."""

    def __init__(self, state: SampledState) -> None:
        self.first, self.theta, self.lam, self.warm = state, state.theta, state.lam, state.warm
        self.reach_theta = self.reach_lam = 0.0

    def move(self, objective: Objective, grad_theta: Floats, grad_lam: Floats, steps: Steps) -> None:
        """Make one projected step. The penalty's gradient is added at the current point; only G is sampled."""
        self.theta = objective.project_theta(self.theta - steps.theta * objective.slope(grad_theta, self.theta))
        self.lam = objective.project_lam(self.lam - steps.lam * grad_lam)
        d_theta, d_lam = self.theta - self.first.theta, self.lam - self.first.lam
        self.reach_theta = max(self.reach_theta, float(np.vdot(d_theta, d_theta)) ** 0.5)
        self.reach_lam = max(self.reach_lam, float(np.vdot(d_lam, d_lam)) ** 0.5)

    def fields(self, objective: Objective, value: float, grad_theta: Floats, grad_lam: Floats) -> dict[str, Any]:
        """The fields of the state at the end of the pass."""
        return {
            "theta": self.theta,
            "lam": self.lam,
            "value": value,
            "phi": objective.phi(self.theta),
            "grad_theta": grad_theta,
            "grad_lam": grad_lam,
            "warm": self.warm,
            "n_passes": self.first.n_passes + 1,
            "move": float(np.hypot(self.reach_theta, self.reach_lam)),
            "exact": False,
        }


# Steps from curvature.


def probed(objective: Objective, state: P, terms: Indices, base: tuple[Floats, Floats] | None = None) -> P:
    """The state with the curvature of these terms measured around its point; ``base`` are their gradients there, if known.

    Each probe follows the gradient change that the last one measured, and so turns towards the direction of largest curvature.
    Probes start from the warm state of the point and do not change it.
    """
    here = base or gradients(objective.evaluate_terms(state.theta, state.lam, terms, state.warm))
    curvature, v_theta, v_lam = CURVATURE_DECAY * state.curvature, state.probe_theta, state.probe_lam
    for _ in range(1 if state.n_passes else FIRST_PROBES):
        theta, lam = (
            probe_point(objective.project_theta, state.theta, v_theta),
            probe_point(objective.project_lam, state.lam, v_lam),
        )
        if theta is not None:
            y_theta, y_lam = _change(objective, state, theta, state.lam, terms, here)
            measured = np.array([np.linalg.norm(y_theta), 0.0, np.linalg.norm(y_lam)]) / np.linalg.norm(theta - state.theta)
            curvature = np.maximum(curvature, measured)
            v_theta = y_theta if measured[0] > 0 else v_theta
        if lam is not None:
            y_theta, y_lam = _change(objective, state, state.theta, lam, terms, here)
            measured = np.array([0.0, np.linalg.norm(y_lam), np.linalg.norm(y_theta)]) / np.linalg.norm(lam - state.lam)
            curvature = np.maximum(curvature, measured)
            v_lam = y_lam if measured[1] > 0 else v_lam
    return replace(state, curvature=curvature, probe_theta=v_theta, probe_lam=v_lam)


def probe_point(project: Callable[[Floats], Floats], x: Floats, direction: Floats) -> Floats | None:
    """A feasible point near ``x``, along or against ``direction``; None if the projection leads back to ``x`` both times."""
    longest = float(np.abs(direction).max(initial=0.0))
    if longest > 0:
        for length in (PROBE_LENGTH, -PROBE_LENGTH):
            other = project(x + direction * (length / longest))
            if np.abs(other - x).max() > 1e-3 * PROBE_LENGTH:
                return other
    return None


def _change(
    objective: Objective, state: SampledState, theta: Floats, lam: Floats, terms: Indices, here: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """The change of these terms' gradients from the state's point to (theta, lam), along feasible directions of theta."""
    got = objective.evaluate_terms(theta, lam, terms, state.warm)
    if not np.isfinite(got.value):
        return np.zeros(theta.shape), np.zeros(lam.shape)
    g_theta, g_lam = gradients(got)
    y_theta = g_theta - here[0]
    return objective.problem.theta_set.tangent(y_theta) if y_theta.size else y_theta, np.asarray(g_lam - here[1])


def chosen_steps(objective: Objective, state: SampledState, theta: float | None, lam: float | None) -> Steps:
    """The step sizes ``theta`` and ``lam`` if the user gave them; for None, 1 / (3 L), but at most the length of a first step."""
    in_theta, in_lam, between = state.curvature.tolist()
    L_theta, L_lam = _separated(in_theta + penalty_curvature(objective, state.theta), in_lam, between)
    most_theta, most_lam = first_steps(objective, state)
    auto_theta = min(1.0 / (SAFETY * L_theta), most_theta) if L_theta > 0 else most_theta
    auto_lam = min(1.0 / (SAFETY * L_lam), most_lam) if L_lam > 0 else most_lam
    return Steps(auto_theta if theta is None else theta, auto_lam if lam is None else lam)


def _separated(a: float, b: float, c: float) -> tuple[float, float]:
    """Curvatures A and B with A x^2 + B y^2 >= a x^2 + 2 c x y + b y^2, so that theta and lam can choose their steps separately.

    A = a + c r and B = b + c / r satisfy this for every r > 0; r = sqrt(a / b) enlarges both by the same factor. If c^2 > a b,
    which no convex function has, that r would blow up as a or b goes to 0: both are then bounded from below first.
    """
    if c <= 0:
        return a, b
    a_least, b_least = min(c, c * c / b if b > 0 else c), min(c, c * c / a if a > 0 else c)
    r = float(np.sqrt(max(a, a_least) / max(b, b_least)))
    return a + c * r, b + c / r


def penalty_curvature(objective: Objective, theta: Floats) -> float:
    """The largest curvature of phi/eps over the entries of theta, from a difference quotient towards 1/2."""
    if objective.epsilon == np.inf or theta.size == 0:
        return 0.0
    inwards = np.where(theta < 0.5, PROBE_LENGTH, -PROBE_LENGTH)
    bend = objective.penalty.gradient(theta + inwards) - objective.penalty.gradient(theta)
    return float(np.abs(bend).max()) / (PROBE_LENGTH * objective.epsilon)

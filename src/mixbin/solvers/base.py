"""The contract of a solver, and the state that first-order solvers share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from mixbin.errors import InvalidInput
from mixbin.problem import Evaluation, Floats, Warm
from mixbin.solvers.objective import Objective


@dataclass(frozen=True, kw_only=True)
class State:
    """A point with all that was computed there: arrays and scalars only, which is what a checkpoint holds."""

    theta: Floats
    lam: Floats
    """lam in the unit box (see Objective)."""
    value: float
    """G, never penalised."""
    phi: float
    grad_theta: Floats
    grad_lam: Floats
    warm: Warm
    step: float = 0.0
    """The step size in theta that led here."""
    info: Mapping[str, float] = field(default_factory=dict)
    converged: bool = False
    exact: bool = True
    """Whether value and gradients are those of the whole G at this point, not estimates from some of its terms."""


S = TypeVar("S", bound=State)

SUFFICIENT = 1e-4
"""Armijo's constant: the share of the predicted decrease that a step must deliver."""
SHORTEST = 1e-12
"""A line search that gets here has met rounding."""
LONGEST_STEP = 1e100
"""A step size that is given may be at most this: its product with a gradient must be a number."""
LEAST = 1e-300
"""Gradients below this count as if they were of this size."""
FIRST_LAM_MOVE = 0.1
"""The first step in lam goes a tenth of its range: unlike theta, its gradient says nothing about a good length."""


class Solver(Protocol[S]):
    """A continuous minimiser of G + phi/eps; ``step`` is a pure function of the state."""

    state_type: ClassVar[type[Any]]
    """The dataclass of its state, from which a checkpoint is read back."""

    def init(self, objective: Objective, theta: Floats, lam: Floats, rng: np.random.Generator, warm: Warm | None = None) -> S:
        """The state at (theta, lam), with one evaluation."""

    def step(self, objective: Objective, state: S) -> S:
        """One step."""

    def reweight(self, objective: Objective, state: S) -> S:
        """The state after a change of eps, without an evaluation."""

    def done(self, objective: Objective, state: S) -> bool:
        """Whether further steps would not change the point."""


class NoFiniteValue(InvalidInput):
    """A point to start from at which G is infinite."""


def first_point(objective: Objective, theta: Floats, lam: Floats, warm: Warm | None) -> State:
    """The state at a first point, which must have a finite value."""
    phi = objective.phi(theta)
    got = objective.evaluate(theta, lam, warm)
    if not np.isfinite(got.value):
        raise NoFiniteValue(f"theta0 and lam0 give the value {got.value}; start from a point where the model can be trained")
    return point(theta, lam, got, phi)


def point(theta: Floats, lam: Floats, got: Evaluation, phi: float) -> State:
    """The state at a point that was evaluated with gradients."""
    assert got.grad_theta is not None
    assert got.grad_lam is not None
    return State(
        theta=theta,
        lam=lam,
        value=got.value,
        phi=phi,
        grad_theta=got.grad_theta,
        grad_lam=got.grad_lam,
        warm=got.warm,
        info=got.info,
    )


def first_steps(objective: Objective, at: State) -> tuple[float, float]:
    """First step sizes: theta moves by at most 1, lam by a tenth of its range."""
    scale = objective.scale(objective.slope(at.grad_theta, at.theta))
    lam_scale = float(np.abs(at.grad_lam).max()) if at.grad_lam.size else 0.0
    # Of a gradient below LEAST the inverse overflows.
    step_theta = 1.0 / max(scale, LEAST) if scale > 0 else 1.0
    return step_theta, FIRST_LAM_MOVE / max(lam_scale, LEAST) if lam_scale > 0 else 1.0

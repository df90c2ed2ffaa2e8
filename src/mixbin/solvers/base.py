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
    """A point together with everything computed there: arrays and scalars only, because a checkpoint stores them.

    Examples
    --------
    >>> import mixbin as mb
    >>> issubclass(mb.SpectralGradient.state_type, mb.solvers.State)
    True
    """

    theta: Floats
    lam: Floats
    """lam as a point of the unit box (see ``Objective``)."""
    value: float
    """G itself, without the penalty."""
    phi: float
    grad_theta: Floats
    grad_lam: Floats
    warm: Warm
    step: float = 0.0
    """The step size in theta of the step that led to this point."""
    info: Mapping[str, float] = field(default_factory=dict)
    converged: bool = False
    exact: bool = True
    """Whether value and gradients belong to the whole G at this point; False if they are estimates from some of its terms."""


S = TypeVar("S", bound=State)

SUFFICIENT_DECREASE = 1e-4
"""Armijo's constant: a step is accepted if it achieves at least this share of the decrease that the slope predicts."""
SHORTEST_STEP = 1e-12
"""A line search gives up below this step: the decrease it could still find is lost in rounding."""
LONGEST_STEP = 1e100
"""A user's step size may be at most this, so that its product with a gradient does not overflow."""
LEAST = 1e-300
"""A smaller gradient counts as one of this size, because its inverse would overflow."""
FIRST_LAM_MOVE = 0.1
"""The first step moves lam by this share of its range: unlike theta, lam has no natural unit to guess a step length from."""


class Solver(Protocol[S]):
    """A continuous minimiser of G + phi/eps.

    ``step`` must be a pure function of the state: a run resumed from a checkpoint then continues to the same bits.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.testing.check_solver(mb.SpectralGradient())  # a solver of your own: the same call
    """

    state_type: ClassVar[type[Any]]
    """The dataclass of the solver's state; a checkpoint is read back into it."""

    def init(self, objective: Objective, theta: Floats, lam: Floats, rng: np.random.Generator, warm: Warm | None = None) -> S:
        """Return the state at (theta, lam), after one evaluation."""

    def step(self, objective: Objective, state: S) -> S:
        """Return the state after one step."""

    def reweight(self, objective: Objective, state: S) -> S:
        """Return the state after a change of eps, without an evaluation."""

    def done(self, objective: Objective, state: S) -> bool:
        """Whether the solver has converged: further steps would not change the point."""


class NoFiniteValue(InvalidInput):
    """The error for a starting point at which G is infinite."""


def first_point(objective: Objective, theta: Floats, lam: Floats, warm: Warm | None) -> State:
    """The state at a starting point, at which G must be finite."""
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

    step_theta = 1.0 / max(scale, LEAST) if scale > 0 else 1.0
    return step_theta, FIRST_LAM_MOVE / max(lam_scale, LEAST) if lam_scale > 0 else 1.0

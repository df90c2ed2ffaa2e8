"""Jumps off stationary points of the penalised problem, where a first-order solver sees no descent."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mixbin.methods.ties import gather_ties
from mixbin.problem import Floats
from mixbin.solvers import Objective, Solver, State
from mixbin.solvers.base import NoFiniteValue

STALLED = 1e-6
"""If an outer iteration moves no entry of theta by this much, theta counts as a stationary point."""
SHARES = (1.0, 0.25, 0.0625)
"""A jump off a stationary point is tried in full, then over these shares of the way, until G + phi/eps falls."""


class Jumped(NamedTuple):
    """Where to go on, and what it took."""

    state: State
    """After the jump; the same state if G + phi/eps falls nowhere."""
    epsilon: float = np.inf
    """At this eps one of the points tried would be as low; infinite if a jump was made or none was tried."""


def off_stationary_points(
    objective: Objective, solver: Solver[Any], state: State, theta_before: Floats, new_rng: Callable[[], np.random.Generator]
) -> Jumped:
    """Break ties between entries. If the outer iteration has not moved theta, jump towards the nearest vertex.

    Either is done only if G + phi/eps falls.
    """
    theta_set = objective.problem.theta_set
    gathered = gather_ties(theta_set, state.theta, state.grad_theta, new_rng())
    if gathered is not None:
        jumped = _jump(objective, solver, state, gathered, new_rng)
        if jumped.state is not state:
            return jumped
    del gathered
    if np.max(np.abs(state.theta - theta_before), initial=0.0) < STALLED:
        return _jump(objective, solver, state, theta_set.vertex(state.theta).astype(np.float64), new_rng)
    return Jumped(state)


def _jump(
    objective: Objective, solver: Solver[Any], here: State, target: Floats, new_rng: Callable[[], np.random.Generator]
) -> Jumped:
    """The state on the way to ``target``, at the first of SHARES where G + phi/eps is lower."""
    value, epsilon = here.value if here.exact else evaluated(objective, here), 0.0
    now = objective.total(value, here.phi)
    for share in SHARES:
        theta = target
        if share < 1.0:
            theta = share * (target - here.theta)
            theta += here.theta
        try:
            jumped: State = solver.init(objective, theta, here.lam, new_rng(), here.warm)
        except NoFiniteValue:
            continue
        if objective.total(jumped.value, jumped.phi) < now:
            return Jumped(jumped)
        if jumped.value > value:
            epsilon = max(epsilon, (here.phi - jumped.phi) / (jumped.value - value))
        # Free the state before the next one is made: theta may be very large.
        del jumped, theta
    return Jumped(here, epsilon or np.inf)


def evaluated(objective: Objective, state: State) -> float:
    """The exact value at a state whose ``value`` is only an estimate."""
    return objective.evaluate(state.theta, state.lam, state.warm, gradient=False).value

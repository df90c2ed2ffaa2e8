"""A tabu search that evaluates G once per step, for any G whose gradients tell something about its single moves.

Each step makes the move that the gradient and the learnt curvature promise most, even if G rises, and corrects the curvature by the
gradient that it meets. Entries that have just changed stay as they are for some steps.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixbin.methods.curvature import correct
from mixbin.methods.polish import moved
from mixbin.methods.tabu import neighbourhood, tenures
from mixbin.problem import FALL, Floats, Warm
from mixbin.solvers import Objective

Bools = NDArray[np.bool_]

PATIENCE, LEAST_PATIENCE, MOST_PATIENCE = 0.25, 8, 40
"""A walk ends after PATIENCE times n steps without a better point, within these limits."""


@dataclass(frozen=True, kw_only=True)
class WalkState:
    """Where a walk is and the best point it has seen. A checkpoint holds this state."""

    theta: Bools
    lam: Floats
    """lam scaled to the unit box."""
    value: float
    grad: Floats
    warm: Warm
    best: Bools
    best_value: float
    free_after: NDArray[np.int64]
    """The step after which each entry may change again."""
    step: int = 0
    found: int = 0
    """The step at which the best point was found."""


def begin_walk(objective: Objective, theta: Bools, lam: Floats) -> WalkState:
    """The first state; takes one evaluation."""
    got = objective.evaluate(theta.astype(np.float64), lam, None)
    assert got.grad_theta is not None
    return WalkState(
        theta=theta,
        lam=lam,
        value=got.value,
        grad=got.grad_theta.ravel(),
        warm=got.warm,
        best=theta,
        best_value=got.value,
        free_after=np.zeros(theta.size, dtype=np.int64),
    )


def walk_done(state: WalkState) -> bool:
    """Whether the walk has lost its patience. A value of inf also ends it, because it has no gradient to follow."""
    patience = min(max(int(PATIENCE * state.theta.size), LEAST_PATIENCE), MOST_PATIENCE)
    return state.step - state.found >= patience or not np.isfinite(state.value)


def walk_step(objective: Objective, state: WalkState, columns: Floats, rng: np.random.Generator) -> tuple[WalkState, Floats]:
    """One step: the state after it, and the corrected columns of the curvature."""
    theta_set = objective.problem.theta_set
    best_move = neighbourhood(theta_set, 0.5 * (columns + columns.T))
    step = state.step + 1
    lowest = state.best_value - FALL * abs(state.best_value)
    off, on, change = best_move(state.theta.ravel(), state.grad, state.free_after > step, lowest - state.value)
    if change == np.inf:
        return replace(state, value=np.inf), columns
    theta = moved(state.theta, off, on)
    got = objective.evaluate(theta.astype(np.float64), state.lam, state.warm)
    tenure_on, tenure_off = tenures(theta_set, theta.ravel())
    free_after = state.free_after.copy()
    slack = rng.integers(0, 3, size=2)
    if off >= 0:
        free_after[off] = step + tenure_off + slack[0]
    if on >= 0:
        free_after[on] = step + tenure_on + slack[1]
    if not np.isfinite(got.value):
        return replace(state, free_after=free_after, step=step), columns
    assert got.grad_theta is not None
    grad = got.grad_theta.ravel()
    columns = correct(columns, off, on, grad - state.grad)
    state = replace(state, theta=theta, value=got.value, grad=grad, warm=got.warm, free_after=free_after, step=step)
    return (replace(state, best=theta, best_value=got.value, found=step) if got.value < lowest else state), columns

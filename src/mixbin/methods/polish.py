"""Polish: from a binary point to one that no single move improves.

First many moves at once, along the linear model: the vertex nearest to theta - t grad flips what promises most, and t is halved
when the true value does not fall. Then single moves (flips, exchanges, row moves), by exact evaluation where the problem offers
it, else in the order that the gradient promises. A move is accepted only when the true value falls.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixbin.problem import FastMoves, Floats, Warm
from mixbin.solvers import Objective

REACH = 8
"""The first large step flips all that promises at least 2^-REACH of the best single move."""
AT_ONCE = 32
"""Single moves per pass, where each is an evaluation: a run can be stopped, shown and kept between passes."""
FALL = 1e-12
"""A value has fallen when it is lower by more than this share of it: rounding is no progress."""


@dataclass(frozen=True, kw_only=True)
class PolishState:
    """A binary point and how far its moves have been looked through: what a checkpoint holds."""

    theta: NDArray[np.bool_]
    lam: Floats
    """In the unit box, as solvers see it."""
    value: float
    grad: Floats
    warm: Warm
    reach: int = REACH
    """The large steps still to try; negative once single moves are looked through."""
    tried: int = 0
    """Single moves of this theta that were evaluated."""
    best_change: float = np.inf
    """The lowest change of the value among them."""
    complete: bool = False
    """All single moves were evaluated and none lowers the value."""
    moved: bool = False
    spent: int = 0
    """Evaluations used so far."""


def begin_polish(objective: Objective, theta: NDArray[np.bool_], lam: Floats, warm: Warm | None, spent: int = 0) -> PolishState:
    """The state at a binary point, with one evaluation."""
    got = objective.evaluate(theta.astype(np.float64), lam, warm)
    assert got.grad_theta is not None
    return PolishState(theta=theta, lam=lam, value=got.value, grad=got.grad_theta, warm=got.warm, spent=spent + 1)


def polish_step(objective: Objective, state: PolishState, limit: int) -> PolishState:
    """One large step, or one batch of single moves; at most ``limit`` evaluations over all steps."""
    return _large_step(objective, state) if state.reach >= 0 else _single_moves(objective, state, limit)


def polish_done(state: PolishState, limit: int) -> bool:
    """Nothing left to improve, or nothing left to spend; a value of inf has no gradient to go by."""
    return state.complete or state.spent >= limit or not np.isfinite(state.value)


def _large_step(objective: Objective, state: PolishState) -> PolishState:
    theta_set = objective.problem.theta_set
    first = next(iter(theta_set.moves(state.theta, state.grad)), None)
    if first is None or first[0].size == 0:
        return replace(state, reach=-1)
    promise = -_predicted(state.grad, *first)[0]
    if not promise > 0:
        return replace(state, reach=-1)
    t = 2.0**state.reach / promise
    target = theta_set.vertex(state.theta - t * state.grad)
    if np.array_equal(target, state.theta):
        return replace(state, reach=state.reach - 1)
    got = objective.evaluate(target.astype(np.float64), state.lam, state.warm)
    spent = state.spent + 1
    if not _falls(got.value, state.value):
        return replace(state, reach=state.reach - 1, spent=spent)
    assert got.grad_theta is not None
    return replace(state, theta=target, value=got.value, grad=got.grad_theta, warm=got.warm, moved=True, spent=spent)


def _predicted(grad: Floats, off: NDArray[np.intp], on: NDArray[np.intp]) -> Floats:
    """grad[on] - grad[off], where -1 stands for none."""
    g = np.append(grad.ravel(), 0.0)
    return np.asarray(g[on] - g[off])


def _single_moves(objective: Objective, state: PolishState, limit: int) -> PolishState:
    """The next batch of moves that was not tried yet; the first improvement found is taken."""
    skip = state.tried
    for off, on in objective.problem.theta_set.moves(state.theta, state.grad):
        if skip >= off.size:
            skip -= off.size
            continue
        return _try_batch(objective, state, off[skip:], on[skip:], limit)
    return replace(state, complete=True)


def _try_batch(objective: Objective, state: PolishState, off: NDArray[np.intp], on: NDArray[np.intp], limit: int) -> PolishState:
    if isinstance(objective.problem.problem, FastMoves):
        values = objective.evaluate_moves(state.theta.astype(np.float64), state.lam, off, on, state.warm)
        best = int(np.argmin(values))
        state = replace(
            state,
            tried=state.tried + off.size,
            best_change=min(state.best_change, float(values[best]) - state.value),
            spent=state.spent + 1,
        )
        return _accept(objective, state, off[best], on[best]) if _falls(float(values[best]), state.value) else state
    for i in range(min(off.size, limit - state.spent, AT_ONCE)):
        value = objective.evaluate(moved(state.theta, off[i], on[i]).astype(np.float64), state.lam, state.warm, False).value
        change = value - state.value
        state = replace(state, tried=state.tried + 1, best_change=min(state.best_change, change), spent=state.spent + 1)
        if _falls(value, state.value):
            return _accept(objective, state, off[i], on[i])
    return state


def _accept(objective: Objective, state: PolishState, off: np.intp, on: np.intp) -> PolishState:
    """Move, if the true value falls: all moves of the new point are open again."""
    theta = moved(state.theta, off, on)
    there = begin_polish(objective, theta, state.lam, state.warm, state.spent)
    if not _falls(there.value, state.value):
        return replace(state, spent=there.spent)
    return replace(there, reach=-1, moved=True)


def moved(theta: NDArray[np.bool_], off: np.intp | int, on: np.intp | int) -> NDArray[np.bool_]:
    """``theta`` after a single move."""
    after = theta.copy()
    flat = after.reshape(-1)
    if off >= 0:
        flat[off] = False
    if on >= 0:
        flat[on] = True
    return after


def _falls(value: float, before: float) -> bool:
    return value < before - FALL * abs(before)

"""Polish: improve a binary point until no single move lowers the true value.

Polish first makes large steps: it jumps to the vertex nearest to theta - t grad, which flips the entries that promise most in the
linear model, and halves t when the true value does not fall. Then it makes single moves (flips, exchanges, row moves). It leaves
these to the problem's own search, or has the problem evaluate many moves in one call, or else tries them one by one in the order
that the gradient promises. A move is accepted only if the true value falls.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixbin.problem import FALL, Floats, Indices, Warm
from mixbin.sets.base import Moves
from mixbin.solvers import Objective
from mixbin.solvers.base import LEAST

REACH = 8
"""The first large step has t = 2^REACH divided by the fall that the best single move promises, so that it also flips entries that
promise only 2^-REACH of that fall."""
AT_ONCE = 32
"""A pass tries at most this many single moves if each takes an evaluation, so that the run can stop, report and write a
checkpoint between passes."""
IN_ONE_CALL = 2**16
"""A pass tries about this many single moves if the problem evaluates many in one call."""
GROWTH = 4
"""After a success, at most this many times as many improving moves are made at once in the next pass."""
NONE = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, kw_only=True)
class PolishState:
    """A binary point and what polish knows about its moves. A checkpoint holds this state."""

    theta: NDArray[np.bool_]
    lam: Floats
    """lam scaled to the unit box, as solvers see it."""
    value: float
    grad: Floats
    warm: Warm
    reach: int = REACH
    """The exponent of the next large step, t = 2^reach / promise; negative once polish tries single moves."""
    together: int = 2**30
    """The largest number of improving moves that polish makes at once."""
    tried: int = 0
    """The number of single moves from this theta that were evaluated."""
    best_change: float = np.inf
    """The lowest change of the value among the moves tried."""
    complete: bool = False
    """Whether all single moves were evaluated and none lowers the value."""
    searched: bool = False
    """Whether the problem's own search has found nothing more to improve."""
    moved: bool = False
    spent: int = 0
    """Evaluations of polish so far; here a call of the problem's own search counts as one, whatever its cost."""


def begin_polish(objective: Objective, theta: NDArray[np.bool_], lam: Floats, warm: Warm | None, spent: int = 0) -> PolishState:
    """The first state at a binary point; takes one evaluation."""
    got = objective.evaluate(theta.astype(np.float64), lam, warm)
    assert got.grad_theta is not None
    return PolishState(theta=theta, lam=lam, value=got.value, grad=got.grad_theta, warm=got.warm, spent=spent + 1)


def polish_step(objective: Objective, state: PolishState, limit: int) -> PolishState:
    """Make one large step or try one batch of single moves; ``limit`` is the limit of ``spent`` over all steps."""
    return _large_step(objective, state) if state.reach >= 0 else _single_moves(objective, state, limit)


def polish_done(state: PolishState, limit: int) -> bool:
    """Whether nothing is left to improve or to spend. A value of inf also ends polish, because it has no gradient to follow."""
    return state.complete or state.searched or state.spent >= limit or not np.isfinite(state.value)


def _large_step(objective: Objective, state: PolishState) -> PolishState:
    theta_set = objective.problem.theta_set
    first = next(iter(theta_set.moves(state.theta, state.grad)), None)
    if first is None or first[0].size == 0:
        return replace(state, reach=-1)
    promise = -_predicted(state.grad, *first)[0]
    if not promise > LEAST:
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
    """The change of each move in the linear model, grad[on] - grad[off]; an index of -1 stands for no entry and adds 0."""
    g = np.append(grad.ravel(), 0.0)
    return np.asarray(g[on] - g[off])


def _single_moves(objective: Objective, state: PolishState, limit: int) -> PolishState:
    """Try the next moves that were not tried yet, and make those that lower the value."""
    if objective.problem.offers.search is not None:
        return _search(objective, state)
    moves = _untried(objective.problem.theta_set.moves(state.theta, state.grad), state.tried)
    if objective.problem.offers.moves is not None:
        return _try_together(objective, state, moves)
    off, on = next(moves, (NONE, NONE))
    if off.size == 0:
        return replace(state, complete=True)
    for i in range(min(off.size, limit - state.spent, AT_ONCE)):
        value = objective.evaluate(moved(state.theta, off[i], on[i]).astype(np.float64), state.lam, state.warm, False).value
        change = value - state.value
        state = replace(state, tried=state.tried + 1, best_change=min(state.best_change, change), spent=state.spent + 1)
        if _falls(value, state.value):
            arrived = _arrived(objective, state, moved(state.theta, off[i], on[i]))
            return arrived if arrived is not None else replace(state, spent=state.spent + 1)
    return state


def _untried(moves: Iterator[Moves], skip: int) -> Iterator[Moves]:
    """The moves after the first ``skip``."""
    for off, on in moves:
        if skip < off.size:
            yield off[skip:], on[skip:]
        skip = max(skip - off.size, 0)


def _try_together(objective: Objective, state: PolishState, moves: Iterator[Moves]) -> PolishState:
    """Evaluate many moves in one call and make the improving ones that share no entry.

    Together they may miss the set or raise the value although each alone lowers it. Then the better half of them is tried, and so
    on.
    """
    batches, count = [], 0
    for batch in moves:
        batches.append(batch)
        count += batch[0].size
        if count >= IN_ONE_CALL:
            break
    if not batches:
        return replace(state, complete=True)
    off, on = (np.concatenate(side) for side in zip(*batches, strict=True))
    values = objective.evaluate_moves(state.theta.astype(np.float64), state.lam, off, on, state.warm)
    change = float(values.min()) - state.value
    state = replace(state, tried=state.tried + off.size, best_change=min(state.best_change, change), spent=state.spent + 1)
    apart = _apart(off, on, values, state.value, state.together)
    while apart:
        theta = state.theta
        for i in apart:
            theta = moved(theta, off[i], on[i])
        if objective.problem.theta_set.violation(theta) == 0:
            value = objective.evaluate(theta.astype(np.float64), state.lam, state.warm, False).value
            state = replace(state, spent=state.spent + 1)
            arrived = _arrived(objective, state, theta) if _falls(value, state.value) else None
            if arrived is not None:
                return replace(arrived, together=GROWTH * len(apart))
        apart = apart[: len(apart) // 2]
    return state


def _search(objective: Objective, state: PolishState) -> PolishState:
    """Call the problem's own search once."""
    got = objective.improve(state.theta.astype(np.float64), state.lam, state.warm)
    state = replace(state, spent=state.spent + 1)
    moved = not np.array_equal(got.theta, state.theta)
    if moved:
        arrived = _arrived(objective, state, got.theta)
        if arrived is None:  # the gains were rounding, and which moves are left is not known
            return replace(state, spent=state.spent + 1, searched=True)
        state = arrived
    complete = got.tried >= objective.problem.theta_set.n_moves(state.theta)
    if got.tried:
        state = replace(state, tried=got.tried, best_change=got.best_change)
    return replace(state, complete=complete, searched=complete or not moved)


def _apart(off: Indices, on: Indices, values: Floats, value: float, most: int) -> list[int]:
    """At most ``most`` moves that lower the value, the best first. A move that shares an entry with a better one is left out."""
    better = np.flatnonzero(values < value - FALL * abs(value))
    touched, chosen = {-1}, []
    for i in better[np.argsort(values[better], kind="stable")]:
        if (off[i] < 0 or off[i] not in touched) and (on[i] < 0 or on[i] not in touched):
            chosen.append(int(i))
            touched |= {int(off[i]), int(on[i])}
            if len(chosen) == most:
                break
    return chosen


def _arrived(objective: Objective, state: PolishState, theta: NDArray[np.bool_]) -> PolishState | None:
    """The state at ``theta`` if the true value falls there, else None. None of the moves from the new point counts as tried."""
    arrived = begin_polish(objective, theta, state.lam, state.warm, state.spent)
    return replace(arrived, reach=-1, moved=True) if _falls(arrived.value, state.value) else None


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

"""What a problem promises that evaluates single moves itself, one that searches them, and one that evaluates many points."""

import inspect
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from mixbin.problem import Floats, Improved, Indices, PointValues
from mixbin.sets.base import Moves
from mixbin.testing.problems.evaluations import Evaluations, close

MOST_TRIED = 40
"""This many moves of a point are compared with an evaluation each."""
MOST_LISTED = 20_000
"""Up to this many moves of a point are all evaluated, to compare a search with."""
LONGEST_SEARCH = 1_000
"""Calls of ``improve`` until nothing changes."""


def check_evaluate_moves(at: Evaluations, tol: float) -> None:
    """``evaluate_moves`` returns the value that an evaluation after each move returns."""
    for _ in range(at.trials):
        theta, lam = at.binary(), at.problem.lam_set.start(at.rng)
        off, on = _some(at, theta, MOST_TRIED)
        if off.size == 0:
            continue
        warm = at.at(theta, lam).warm
        for start in (None, warm):
            values = _values(at, theta, lam, off, on, start)
            for i, j, value in zip(off, on, values, strict=True):
                inputs = {
                    "theta": theta,
                    "lam": lam,
                    "off": int(i),
                    "on": int(j),
                    "warm": "None" if start is None else "that of theta",
                }
                expected = at.at(moved(theta, i, j), lam, gradient=False).value
                promise = f"must return the value after each move, up to value_tol={tol:g}"
                at.subject.require(close(expected, float(value), tol), "evaluate_moves", promise, inputs, expected, float(value))


def check_evaluate_points(at: Evaluations, tol: float) -> None:
    """``evaluate_points`` returns the values that single evaluations return, or None if it may not cost enough."""
    lam_set = at.problem.lam_set
    theta = np.array([at.binary() for _ in range(2 * at.trials)]) > 0.5
    lam = np.array([[lam_set.start(at.rng) for _ in range(3)] for _ in theta]).reshape(len(theta), 3, *lam_set.shape)
    inputs = {"theta": theta, "lam": lam}
    got: Any = at.subject.call("evaluate_points", inputs)
    if got is None:
        return
    good = isinstance(got, PointValues) and np.shape(got.values) == (len(theta), 3)
    promise, expected = "must return a value for each point with each lam", f"PointValues of shape {(len(theta), 3)}"
    at.subject.require(good, "evaluate_points", promise, inputs, expected, got)
    for i, j in np.ndindex(len(theta), 3):
        alone = at.at(theta[i].astype(np.float64), lam[i, j], gradient=False).value
        promise = f"must return the value of each point, up to value_tol={tol:g}"
        value = float(got.values[i, j])
        where = {"theta": theta[i], "lam": lam[i, j]}
        at.subject.require(close(alone, value, tol), "evaluate_points", promise, where, alone, value)
    counted = isinstance(got.cost, (int, np.integer)) and not isinstance(got.cost, bool) and got.cost >= 1
    promise = "must return cost, what it computed in evaluations"
    at.subject.require(counted, "evaluate_points", promise, inputs, "a whole number of at least 1", got.cost)
    if got.cost > 1:
        refused = at.subject.call("evaluate_points", inputs, max_cost=got.cost // 2)
        promise = "must return None if it costs more than max_cost"
        at.subject.require(
            refused is None, "evaluate_points", promise, {**inputs, "max_cost": got.cost // 2}, None, type(refused).__name__
        )


def check_search(at: Evaluations, tol: float) -> None:
    """``best_move`` finds the best of all moves; ``improve`` lowers the value, comes to an end, and says what it knows."""
    for _ in range(at.trials):
        theta, lam = at.binary(), at.problem.lam_set.start(at.rng)
        if at.problem.theta_set.n_moves(theta) <= MOST_LISTED:
            _check_best_move(at, theta, lam, tol)
        _check_improve(at, theta, lam, tol)


def _check_best_move(at: Evaluations, theta: Floats, lam: Floats, tol: float) -> None:
    inputs = {"theta": theta, "lam": lam}
    got: Any = at.subject.call("best_move", inputs)
    if got is None:
        return
    if not isinstance(got, tuple) or len(got) != 3:
        raise at.subject.broken("best_move", "must return (off, on, value) or None", inputs, "a tuple of three, or None", got)
    off, on = _some(at, theta, MOST_LISTED)
    if off.size == 0:
        at.subject.require(got == (-1, -1, np.inf), "best_move", "must say that there is none", inputs, (-1, -1, np.inf), got)
        return
    values = _values(at, theta, lam, off, on, None)
    lowest = float(values.min())
    k = int(values.argmin())
    expected = f"({off[k]}, {on[k]}, {lowest!r}), by evaluating all {off.size} moves"
    promise = "must return the best of all single moves and the value after it"
    at.subject.require(close(lowest, float(got[2]), tol), "best_move", promise, inputs, expected, got)
    legal = bool(np.any((off == got[0]) & (on == got[1])))
    at.subject.require(legal, "best_move", "must return a single move of the set", inputs, expected, got)
    after = at.at(moved(theta, got[0], got[1]), lam, gradient=False).value
    promise = "must return the value that its move leads to"
    at.subject.require(close(after, float(got[2]), tol), "best_move", promise, inputs, f"{got[:2]} with {after!r}", got)


def _check_improve(at: Evaluations, theta: Floats, lam: Floats, tol: float) -> None:
    value = at.at(theta, lam, gradient=False).value
    for _ in range(LONGEST_SEARCH):
        inputs = {"theta": theta, "lam": lam}
        got, again = (_improved(at, inputs) for _ in range(2))
        same = np.array_equal(got.theta, again.theta) and (got.tried, got.cost) == (again.tried, again.cost)
        at.subject.require(same, "improve", "must return the same for the same arguments", inputs, got, again)
        there = got.theta.astype(np.float64)
        after = at.at(there, lam, gradient=False).value
        moved_on = not np.array_equal(there, theta)
        promise = "must return a point of lower value, or theta unchanged"
        at.subject.require(after < value or not moved_on, "improve", promise, inputs, f"a value below {value!r}", after)
        _check_tried(at, got, lam, after, inputs, tol)
        if got.cost > 1 and "max_cost" in inspect.signature(at.subject.made.improve).parameters:
            limit = got.cost // 2
            spent = _improved(at, inputs, max_cost=limit).cost
            promise = "must stop before its cost exceeds max_cost"
            at.subject.require(spent <= limit, "improve", promise, {**inputs, "max_cost": limit}, f"at most {limit}", spent)
        theta, value = there, after
        if not moved_on or got.tried >= at.problem.theta_set.n_moves(theta):
            return
    raise at.subject.broken("improve", "must come to an end", {"lam": lam}, f"at most {LONGEST_SEARCH} calls", "more")


def _improved(at: Evaluations, inputs: dict[str, Any], **limit: int) -> Improved:
    got = at.subject.call("improve", inputs, **limit)
    if not isinstance(got, Improved):
        raise at.subject.broken("improve", "must return an Improved", inputs, "a mixbin.problem.Improved", type(got).__name__)
    theta = at.subject.array("improve", got.theta, inputs, at.problem.theta_set.shape, np.bool_)
    inside = at.problem.theta_set.violation(theta) == 0
    at.subject.require(inside, "improve", "must return a binary point of theta_set", inputs, "a violation of 0", theta)
    counted = isinstance(got.cost, (int, np.integer)) and not isinstance(got.cost, bool) and got.cost >= 1
    promise = "must return cost, what the search computed in evaluations"
    at.subject.require(counted, "improve", promise, inputs, "a whole number of at least 1", got.cost)
    return got


def _check_tried(at: Evaluations, got: Improved, lam: Floats, value: float, inputs: dict[str, Any], tol: float) -> None:
    """Not more moves are said not to lower the value than there are."""
    theta, total = got.theta.astype(np.float64), at.problem.theta_set.n_moves(got.theta)
    fits = isinstance(got.tried, (int, np.integer)) and 0 <= got.tried <= total
    at.subject.require(fits, "improve", "must return tried, a number of moves", inputs, f"0 to {total}", got.tried)
    if not got.tried or total > MOST_LISTED:
        return
    off, on = _some(at, theta, MOST_LISTED)
    changes = _values(at, theta, lam, off, on, None) - value
    rounding = tol * max(abs(value), 1e-300)
    harmless = int(np.count_nonzero(changes >= -rounding))
    best = int(changes.argmin())
    promise = "must count as tried only moves of the new theta that are known not to lower the value"
    expected = f"at most {harmless} of {total} moves; ({off[best]}, {on[best]}) changes the value by {float(changes[best])!r}"
    at.subject.require(got.tried <= harmless, "improve", promise, inputs, expected, got.tried)
    lowest = float(changes.min())
    honest = got.best_change >= lowest - rounding and (got.tried < total or got.best_change <= max(lowest, 0.0) + rounding)
    promise = "must return the change by the best of the moves it counts as tried as best_change"
    expected = f"{lowest!r} if all moves were tried, else no less"
    at.subject.require(bool(honest), "improve", promise, inputs, expected, got.best_change)


def _some(at: Evaluations, theta: Floats, most: int) -> tuple[Indices, Indices]:
    """Up to ``most`` moves of a point; where there are more, those that a random gradient puts first."""
    grad = at.rng.normal(size=theta.shape)
    batches: Iterator[Moves] = at.problem.theta_set.moves(theta, grad)
    sides: tuple[list[Indices], list[Indices]] = ([np.empty(0, np.intp)], [np.empty(0, np.intp)])
    count = 0
    for off, on in islice(batches, most):
        sides[0].append(off)
        sides[1].append(on)
        count += off.size
        if count >= most:
            break
    off, on = (np.concatenate(side)[:most] for side in sides)
    return off, on


def _values(at: Evaluations, theta: Floats, lam: Floats, off: Indices, on: Indices, warm: Any) -> Floats:
    inputs = {"theta": theta, "lam": lam, "off": off, "on": on}
    values = np.asarray(at.subject.call("evaluate_moves", inputs, warm=warm), dtype=np.float64)
    promise = "must return one value per move, none of them NaN"
    fine = values.shape == off.shape and not np.isnan(values).any()
    at.subject.require(fine, "evaluate_moves", promise, inputs, f"{off.size} values", values)
    return values


def moved(theta: Floats, off: np.intp | int, on: np.intp | int) -> Floats:
    """``theta`` after a single move."""
    after = theta.copy()
    if off >= 0:
        after.flat[off] = 0.0
    if on >= 0:
        after.flat[on] = 1.0
    return after

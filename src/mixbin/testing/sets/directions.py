"""What ``linear_oracle``, ``tangent``, ``exchange_key`` and ``epsilon_star`` promise: the set as first-order methods see it."""

from collections.abc import Callable

import numpy as np

from mixbin.sets.base import Bools, Floats
from mixbin.testing.broken import Subject, shown
from mixbin.testing.sets.points import Points

ROUNDING = 1e-9
SHORT = 1e-9
"""Directions shorter than this are rounding."""
SAME_EPSILON = 1e-6


def check_linear_oracle(subject: Subject, points: Points) -> None:
    """``linear_oracle`` is a point of the set, and none has a smaller product with ``g``."""
    for trial in range(points.trials):
        g = points.anywhere(trial)
        z = subject.array("linear_oracle", subject.call("linear_oracle", {"g": g}), {"g": g}, points.theta_set.shape, np.float64)
        inside = points.theta_set.contains(z)
        subject.require(
            inside, "linear_oracle", "must return a point of the set", {"g": g}, "a point for which contains holds", z
        )
        again = subject.call("linear_oracle", {"g": g})
        subject.require(
            np.array_equal(z, again), "linear_oracle", "must return the same bits for the same input", {"g": g}, z, again
        )
        other = points.feasible[int(np.argmin(points.feasible @ g.ravel()))].reshape(g.shape)
        value, best = float(np.vdot(g, z)), float(np.vdot(g, other))
        lower = value <= best + ROUNDING * max(1.0, float(np.abs(g).sum()))
        expected = f"<g, z> of at most {best!r}, which the set has at {shown(other)}"
        got = f"{value!r} at {shown(z)}"
        subject.require(lower, "linear_oracle", "must minimise <g, z> over the set", {"g": g}, expected, got)


def check_tangent(subject: Subject, points: Points) -> None:
    """``tangent(g)`` has the products of g with all directions within the set; ``tangent_size`` is its largest entry."""
    for trial in range(points.trials):
        g, along = points.anywhere(trial), points.on_the_boundary() - points.mixture()
        got = subject.array("tangent", subject.call("tangent", {"g": g}), {"g": g}, points.theta_set.shape, np.float64)
        before, after = float(np.vdot(g, along)), float(np.vdot(got, along))
        same = abs(before - after) <= ROUNDING * max(1.0, float(np.abs(g).sum()))
        promise = "must have the product of g with every direction between two points of the set"
        subject.require(same, "tangent", promise, {"g": g, "direction": along}, before, after)
        size = subject.number("tangent_size", subject.call("tangent_size", {"g": g}), {"g": g})
        largest = float(np.abs(got).max(initial=0.0))
        promise = "must be the largest absolute entry of tangent(g)"
        same = abs(size - largest) <= ROUNDING * max(1.0, float(np.abs(g).max()))
        subject.require(same, "tangent_size", promise, {"g": g}, largest, size)


def check_no_alias(subject: Subject, points: Points) -> None:
    """Whatever takes an array returns a new one."""
    x = points.theta_set.start()
    for method in ("project", "vertex", "linear_oracle", "tangent", "round"):
        kept = x.copy()
        got = getattr(points.theta_set, method)(x)
        promise, name = "must return a new array", "g" if method in ("linear_oracle", "tangent") else "x"
        subject.require(
            not np.shares_memory(got, x), method, promise, {name: kept}, "an array of its own", f"the memory of {name}"
        )
        subject.require(np.array_equal(x, kept), method, "must not write into its arguments", {name: kept}, kept, x)


def check_exchange_key(subject: Subject, points: Points) -> None:
    """Two entries with equal keys can exchange mass without leaving the set."""
    try:
        keys = np.broadcast_to(points.theta_set.exchange_key, points.theta_set.shape).ravel()
    except ValueError:
        raise subject.broken(
            "exchange_key",
            "must broadcast to the set's shape",
            {},
            points.theta_set.shape,
            np.shape(points.theta_set.exchange_key),
        ) from None
    for _ in range(points.trials):
        p = points.mixture()
        i = int(points.rng.integers(p.size))
        alike = np.flatnonzero((keys == keys[i]) & (np.arange(p.size) != i))
        if alike.size == 0:
            continue
        j = int(points.rng.choice(alike))
        moved, mass = p.copy(), float(min(p.flat[i], 1.0 - p.flat[j]))
        moved.flat[i] -= mass
        moved.flat[j] += mass
        inputs = {"a point of the set": p, "from entry": i, "to entry": j, "mass": mass}
        inside = points.theta_set.contains(moved)
        promise = "must differ where an exchange between two entries leaves the set"
        expected = f"different keys of entries {i} and {j}, since contains does not hold after the exchange"
        subject.require(inside, "exchange_key", promise, inputs, expected, f"{keys[i]!r} for both")


def check_epsilon_star(subject: Subject, points: Points) -> None:
    """Below eps* a binary point is a strict local minimiser of <grad, .> + phi/eps, above it none.

    Along a direction d into the set phi grows like |d|_1, so 1/eps* is the largest -<grad, d> / |d|_1. Where all extreme points
    are binary, one of them attains this maximum; in general Dinkelbach's iteration finds it with ``linear_oracle``.
    """
    for trial, theta in enumerate(points.some_binary()):
        grad = points.anywhere(trial)
        inputs = {"theta": theta, "grad": grad}
        got = subject.number("epsilon_star", subject.call("epsilon_star", inputs), inputs)
        weight = _largest_weight(points, theta, grad, lambda g: np.asarray(subject.call("linear_oracle", {"g": g})))
        least = ROUNDING * max(1.0, float(np.abs(grad).max()))
        weight_told = 1.0 / got if got > 0 else np.inf
        same = abs(weight_told - weight) <= SAME_EPSILON * weight + least
        expected = f"{1.0 / weight!r}" if weight > 0 else "inf"
        promise = "must be the largest eps up to which theta is a local minimiser of <grad, .> + phi/eps over the set"
        subject.require(same, "epsilon_star", promise, inputs, expected, got)


def _largest_weight(points: Points, theta: Bools, grad: Floats, oracle: Callable[[Floats], Floats]) -> float:
    """The largest -<grad, d> / |d|_1 over directions d into the set from ``theta``, at least 0."""
    here, sign = theta.astype(np.float64), np.where(theta, -1.0, 1.0)
    gaps = points.binary_rows - here.ravel()
    sizes = np.abs(gaps).sum(axis=1)
    falls = -(gaps @ grad.ravel())
    weight = float(np.max(np.divide(falls, sizes, out=np.zeros_like(falls), where=sizes > 0.5), initial=0.0))
    while True:
        along = oracle(grad + weight * sign) - here
        size = float(np.abs(along).sum())
        better = -float(np.vdot(grad, along)) / size if size > SHORT else 0.0
        if not better > weight * (1 + ROUNDING):
            return weight
        weight = better

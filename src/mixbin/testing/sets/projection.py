"""What ``project`` promises: the nearest point of the set, judged by points that other methods and plain listing provide."""

from collections.abc import Iterator

import numpy as np

from mixbin.sets.base import Floats
from mixbin.testing.broken import Subject, shown
from mixbin.testing.sets.points import Points

CLOSE = 1e-10
"""How far a point of the set may lie from its own projection."""
NEARER = 1e-7
"""By how much another point must be nearer to count, relative to the distances: ``contains`` forgives rounding, so that points
which lie outside of the set by 1e-9 or so are among those that are compared."""


def check_projection(subject: Subject, points: Points) -> None:
    """``project`` is feasible, idempotent, repeatable, no alias of its input, and the nearest point of the set."""
    for trial in range(points.trials):
        x = points.anywhere(trial)
        p = _projected(subject, points, x)
        again = subject.call("project", {"x": x})
        subject.require(np.array_equal(again, p), "project", "must return the same bits for the same input", {"x": x}, p, again)
        twice = subject.call("project", {"x": p})
        promise = "must leave points of the set where they are"
        subject.require(np.abs(twice - p).max() <= CLOSE, "project", promise, {"x": p}, p, twice)
        _check_nearest(subject, points, x, p)
    for v in points.some_binary():
        x = v.astype(np.float64)
        got = subject.call("project", {"x": x})
        promise = "must leave binary points of the set where they are"
        subject.require(np.abs(got - x).max() <= CLOSE, "project", promise, {"x": x}, x, got)


def _projected(subject: Subject, points: Points, x: Floats) -> Floats:
    p = subject.array("project", subject.call("project", {"x": x}), {"x": x}, points.theta_set.shape, np.float64)
    inside = p.min() >= 0.0 and p.max() <= 1.0 and points.theta_set.contains(p)
    subject.require(inside, "project", "must return a point of the set", {"x": x}, "a point for which contains holds", p)
    inner = points.theta_set.start()
    aliased = np.shares_memory(points.theta_set.project(inner), inner)
    subject.require(not aliased, "project", "must never return its argument", {"x": inner}, "a new array", "the memory of x")
    return p


def _check_nearest(subject: Subject, points: Points, x: Floats, p: Floats) -> None:
    """The point p is nearest exactly when no z of the set makes an acute angle with x - p, seen from p."""
    away = x - p
    length = float(np.linalg.norm(away))
    for z in _others(subject, points, away):
        along = z - p
        reach = float(np.linalg.norm(along))
        if np.vdot(away, along) <= NEARER * max(length, 1.0) * max(reach, 1.0):
            continue
        nearer = p + min(float(np.vdot(away, along)) / reach**2, 1.0) * along
        distance = float(np.linalg.norm(x - nearer))
        expected = f"{shown(nearer)} of the set (contains holds there), at distance {distance!r}"
        raise subject.broken(
            "project", "must return the nearest point of the set", {"x": x}, expected, f"{shown(p)} at distance {length!r}"
        )


def _others(subject: Subject, points: Points, away: Floats) -> Iterator[Floats]:
    """Points of the set to compare with: that of the known ones which is worst for p, and what ``linear_oracle`` says."""
    yield points.feasible[int(np.argmax(points.feasible @ away.ravel()))].reshape(away.shape)
    corner = subject.call("linear_oracle", {"g": -away})
    if points.theta_set.contains(corner):
        yield corner

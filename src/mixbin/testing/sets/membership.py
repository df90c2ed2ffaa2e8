"""What ``contains``, ``violation``, ``start`` and ``round`` promise."""

import numpy as np

from mixbin.testing.broken import Subject
from mixbin.testing.sets.points import Points

FAR = 1e-6
"""A point that its own projection misses by more than this lies outside of the set."""
OUTSIDE = (-1e-3, 1.001)
"""Entries that no point of a subset of [0, 1]^p has."""


def check_contains(subject: Subject, points: Points) -> None:
    """``contains`` describes a convex part of [0, 1]^p; everything else is compared with it."""
    _check_box(subject, points)
    _check_convex(subject, points)


def check_same_set(subject: Subject, points: Points) -> None:
    """``contains``, ``violation`` and ``project`` mean the same set."""
    _check_violation(subject, points)
    for trial in range(points.trials):
        x = points.anywhere(trial)
        distance = float(np.abs(subject.call("project", {"x": x}) - x).max())
        inside = subject.call("contains", {"x": x})
        expected = f"False, since project(x) lies {distance:g} away from x"
        subject.require(
            distance <= FAR or not inside, "contains", "must hold for points of the set only", {"x": x}, expected, inside
        )


def _check_box(subject: Subject, points: Points) -> None:
    for value in OUTSIDE:
        x = points.mixture()
        x.flat[points.rng.integers(x.size)] = value
        inside = subject.call("contains", {"x": x})
        subject.require(not inside, "contains", "must not hold outside of [0, 1]^p", {"x": x}, "False", inside)


def _check_convex(subject: Subject, points: Points) -> None:
    for _ in range(points.trials):
        x = points.mixture()
        inside = subject.call("contains", {"x": x})
        expected = "True, since x is a mixture of binary points of the set"
        subject.require(
            bool(inside), "contains", "must hold between points of the set, which is convex", {"x": x}, expected, inside
        )


def _check_violation(subject: Subject, points: Points) -> None:
    drawn = [points.rng.uniform(size=points.theta_set.shape) < 0.5 for _ in range(points.trials)]
    for theta in points.every_binary_array() if points.by_membership else [*points.some_binary(), *drawn]:
        inputs = {"theta": theta}
        violation = subject.number("violation", subject.call("violation", inputs), inputs)
        inside = bool(subject.call("contains", {"x": theta.astype(np.float64)}))
        expected = "0" if inside else "a number above 0"
        promise = f"must be 0 exactly where contains holds (contains says {inside})"
        subject.require((violation == 0.0 if inside else violation > 0.0), "violation", promise, inputs, expected, violation)


def check_start(subject: Subject, points: Points) -> None:
    """Starts are points of the set: the centre always the same, random ones decided by the generator."""
    shape, seeds = points.theta_set.shape, [points.subject.seed, points.subject.seed, points.subject.seed + 1]
    centre = subject.call("start", {})
    drawn = [subject.call("start", {"rng": np.random.default_rng(seed)}) for seed in seeds]
    for x, name in ((centre, "()"), *((x, f"(default_rng({seed}))") for x, seed in zip(drawn, seeds, strict=True))):
        x = subject.array(f"start{name}", x, {}, shape, np.float64)
        inside = subject.call("contains", {"x": x})
        subject.require(bool(inside), f"start{name}", "must return a point of the set", {}, "contains(start) to be True", x)
    again = subject.call("start", {})
    subject.require(np.array_equal(centre, again), "start", "must return the same centre each time", {}, centre, again)
    subject.require(
        np.array_equal(drawn[0], drawn[1]),
        "start",
        "must depend on the generator alone",
        {"rng": f"seed {seeds[0]}"},
        drawn[0],
        drawn[1],
    )
    if len(points.binary) > 1:
        different = not np.array_equal(drawn[0], drawn[2])
        subject.require(
            different, "start", "must differ for different generators", {"rng": f"seeds {seeds[1:]}"}, "two points", drawn[2]
        )
    kept = centre.copy()
    centre[...] = 7.0
    again = subject.call("start", {})
    subject.require(np.array_equal(again, kept), "start", "must return a fresh array each time", {}, kept, again)


def check_round(subject: Subject, points: Points) -> None:
    """``round`` looks at one entry at a time and lets 1/2 go up."""
    for trial in range(points.trials):
        x = points.anywhere(trial)
        got = subject.array("round", subject.call("round", {"x": x}), {"x": x}, points.theta_set.shape, np.bool_)
        promise = "must be True exactly where x is at least 1/2"
        subject.require(np.array_equal(got, x >= 0.5), "round", promise, {"x": x}, x >= 0.5, got)

"""What ``vertices``, ``cardinality``, ``vertex`` and ``distance_to_binary`` promise."""

import itertools

import numpy as np

from mixbin.sets.base import Bools
from mixbin.testing.broken import Subject, shown
from mixbin.testing.sets.points import Points

ROUNDING = 1e-12


def check_listing(subject: Subject, points: Points, exact_cardinality: bool) -> None:
    """``vertices`` lists every binary point of the set once, and ``cardinality`` says how many there are."""
    count = subject.call("cardinality", {})
    whole = isinstance(count, int) and not isinstance(count, bool) and count >= 1
    subject.require(whole, "cardinality", "must return a whole number of at least 1", {}, "an int", count)
    # Without an end, or with far too many points, the listing must not run for ever.
    limit = len(points.binary) + 1 if points.complete else points.trials
    found: list[Bools] = list(itertools.islice(points.theta_set.vertices(), limit))
    for v in found:
        points.feasible_binary("vertices", v, {})
    keys = [v.tobytes() for v in found]
    twice = next((v for i, v in enumerate(found) if keys[i] in keys[:i]), None)
    subject.require(twice is None, "vertices", "must list each binary point once", {}, "each point once", f"twice {twice}")
    if not points.complete:
        return
    known = set(keys)
    missing = next((v for v in points.binary if v.tobytes() not in known), None)
    if missing is not None:
        raise subject.broken("vertices", "must list every binary point of the set", {}, missing, "a list without it")
    same = count == len(found) or (not exact_cardinality and count > len(found))
    promise = "must be the number of binary points" if exact_cardinality else "must be at least the number of binary points"
    subject.require(same, "cardinality", promise, {}, len(found), count)


def check_vertex(subject: Subject, points: Points) -> None:
    """``vertex`` is a binary point of the set, and none is nearer in the largest difference of an entry."""
    for trial in range(points.trials):
        x = points.anywhere(trial)
        v = points.vertex(x)
        again = subject.call("vertex", {"x": x})
        subject.require(np.array_equal(v, again), "vertex", "must return the same bits for the same input", {"x": x}, v, again)
        distances = np.abs(x.ravel() - points.binary_rows).max(axis=1)
        best = int(np.argmin(distances))
        distance = float(np.abs(x - v).max())
        nearest = distance <= distances[best] * (1 + ROUNDING) + ROUNDING
        expected = f"{shown(points.binary[best].astype(int))} at distance {float(distances[best])!r}"
        promise = "must return a nearest binary point of the set (in the largest difference of an entry)"
        subject.require(nearest, "vertex", promise, {"x": x}, expected, f"{shown(v.astype(int))} at distance {distance!r}")
        told = subject.number("distance_to_binary", subject.call("distance_to_binary", {"x": x}), {"x": x})
        promise = "must be the distance from x to vertex(x)"
        same = abs(told - distance) <= ROUNDING * max(distance, 1.0)
        subject.require(same, "distance_to_binary", promise, {"x": x}, distance, told)
    for v in points.binary:
        x = v.astype(np.float64)
        got = points.vertex(x)
        subject.require(np.array_equal(got, v), "vertex", "must leave a binary point of the set as it is", {"x": x}, v, got)
        told = subject.call("distance_to_binary", {"x": x})
        subject.require(told == 0.0, "distance_to_binary", "must be 0 at a binary point of the set", {"x": x}, 0.0, told)

"""What a lower bound promises: no binary theta with any lam has a lower value."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from mixbin.problem import Floats
from mixbin.result import Result
from mixbin.testing.broken import shown
from mixbin.testing.problems.evaluations import Evaluations

MOST_POINTS = 256
"""Up to this many binary points are all compared with the bound, else as many random ones as there are trials."""
ROUNDING = 1e-9


def lower_bounds(at: Evaluations) -> list[tuple[float, dict[str, Any]]]:
    """Bounds from several points, each with the point; all of them must be numbers."""
    bounds = []
    for theta, lam in (*(at.inside() for _ in range(at.trials)), (at.binary(), at.problem.lam_set.start(at.rng))):
        inputs = {"theta": theta, "lam": lam}
        bound = at.subject.number("lower_bound", at.subject.call("lower_bound", inputs), inputs)
        at.subject.require(bound < np.inf, "lower_bound", "must be below infinity", inputs, "a number, or -inf", bound)
        bounds.append((bound, inputs))
    return bounds


def check_lower_bound(at: Evaluations, bounds: list[tuple[float, dict[str, Any]]], found: Result) -> None:
    """The largest bound against the values of binary points, among them the answer ``found`` by a run."""
    bound, inputs = max(bounds, key=lambda it: it[0])
    for theta, lam in _answers(at, found):
        value = at.at(theta, lam, gradient=False).value
        low = bound <= value + ROUNDING * max(abs(value), abs(bound))
        promise = "must not exceed the value of any binary theta with any lam"
        expected = f"at most {value!r}, the value at the binary theta = {shown(theta.astype(int))} with lam = {shown(lam)}"
        at.subject.require(low, "lower_bound", promise, inputs, expected, bound)


def _answers(at: Evaluations, found: Result) -> Iterator[tuple[Floats, Floats]]:
    """Binary points, each with a random lam, and the answer of the run."""
    theta_set, lam_set = at.problem.theta_set, at.problem.lam_set
    if found.theta.dtype == np.bool_ and found.violation == 0:
        yield found.theta.astype(np.float64), found.lam
    if theta_set.cardinality() <= MOST_POINTS:
        listed = [v.astype(np.float64) for v in islice(theta_set.vertices(), MOST_POINTS)]
    else:
        listed = [at.binary() for _ in range(4 * at.trials)]
    for theta in listed:
        yield theta, lam_set.start(at.rng)
        if lam_set.size:
            yield theta, lam_set.decode(np.asarray(at.rng.integers(2, size=lam_set.shape), dtype=np.float64))

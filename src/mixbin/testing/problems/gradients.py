"""The gradients of ``evaluate`` against differences of its values, along segments that stay within the sets."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import numpy as np

from mixbin.problem import Floats
from mixbin.testing.problems.evaluations import Evaluations

LENGTHS = (1e-3, 1e-4, 1e-2, 1e-5)
"""Of the differences: the slope must agree with one of them. A wrong gradient agrees with none, while noise and bends of G spoil
some of them only."""
SMALL = 1e-2
"""Slopes below this share of the largest that the direction could have are compared with that share instead of themselves."""
NOISE = 1e-10
"""Relative to the value, what a slope may differ by in any case."""


def check_gradients(at: Evaluations, tol: float) -> None:
    """Slopes in theta along dense and sparse directions, and in each of some entries of lam."""
    for _ in range(at.trials):
        theta, lam = at.inside()
        got = at.at(theta, lam)
        if not np.isfinite(got.value):
            continue
        assert got.grad_theta is not None
        assert got.grad_lam is not None
        tangent = float(np.abs(at.problem.theta_set.tangent(got.grad_theta)).max(initial=0.0))
        for along in _directions(at, theta):
            slope, largest = float(np.vdot(got.grad_theta, along)), tangent * float(np.abs(along).sum())
            inputs = {"theta": theta, "lam": lam, "direction": along}
            _compare(at, "grad_theta", inputs, slope, largest, got.value, _along_theta(at, theta, lam, along), tol)
        box = at.problem.lam_set
        u, grad = box.encode(lam), np.atleast_1d(box.encode_gradient(lam, got.grad_lam))
        for i in islice(at.rng.permutation(lam.size), 3):
            entry = {"theta": theta, "lam": lam, "entry of lam": int(i)}
            slope, largest = float(grad.flat[i]), float(np.abs(grad).max())
            _compare(at, "grad_lam", entry, slope, largest, got.value, _along_lam(at, theta, u, int(i)), tol)


Line = Callable[[float], float]


def _compare(
    at: Evaluations, name: str, inputs: Mapping[str, object], slope: float, largest: float, value: float, line: Line, tol: float
) -> None:
    """The slope must agree with the differences of one of the lengths, of those that stay within the sets."""
    seen = []
    for h in LENGTHS:
        difference = (8 * (line(h) - line(-h)) - (line(2 * h) - line(-2 * h))) / (12 * h)
        if not np.isfinite(difference):
            continue
        seen.append(difference)
        if abs(difference - slope) <= tol * max(abs(slope), SMALL * largest) + NOISE * abs(value):
            return
    if not seen:
        return
    nearest = min(seen, key=lambda it: abs(it - slope))
    factor = f", {slope / nearest:.6g} times as much" if nearest else ""
    unit_box = (
        "in the unit box of lam (dG/dlam times the width of the box, with log=True times lam and the width of its logarithm)"
    )
    where = "along the direction" if name == "grad_theta" else unit_box
    expected = f"a slope of {nearest!r} {where}, by differences of the value"
    promise = f"must return the gradient of its value as {name}, up to gradient_tol={tol:g}"
    raise at.subject.broken("evaluate", promise, inputs, expected, f"{slope!r}{factor}")


def _directions(at: Evaluations, theta: Floats) -> Iterator[Floats]:
    """Between points of the set: two dense ones, and up to three that single moves take."""
    theta_set = at.problem.theta_set
    for _ in range(2):
        yield theta_set.start(at.rng) - theta_set.start(at.rng)
    vertex = at.binary()
    first = next(iter(theta_set.moves(vertex, at.rng.normal(size=theta_set.shape))), None)
    if first is not None:
        for k in at.rng.permutation(first[0].size)[:3]:
            along = np.zeros(theta_set.shape)
            for index, change in ((first[0][k], -1.0), (first[1][k], 1.0)):
                if index >= 0:
                    along.flat[index] = change
            yield along


def _along_theta(at: Evaluations, theta: Floats, lam: Floats, along: Floats) -> Line:
    def line(t: float) -> float:
        there = theta + t * along
        if there.min() < 0.0 or there.max() > 1.0 or not at.problem.theta_set.contains(there):
            return np.nan
        return at.at(there, lam, gradient=False).value

    return line


def _along_lam(at: Evaluations, theta: Floats, u: Floats, i: int) -> Line:
    def line(t: float) -> float:
        there = u.copy()
        there.flat[i] += t
        if not 0.0 <= there.flat[i] <= 1.0:
            return np.nan
        return at.at(theta, at.problem.lam_set.decode(there), gradient=False).value

    return line

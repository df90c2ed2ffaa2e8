"""The gradients of ``evaluate`` against differences of its values, along segments that stay within the sets."""

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from mixbin.differences import NOISE, Line, along_lam, along_theta, compare
from mixbin.problem import Floats
from mixbin.testing.problems.evaluations import Evaluations

SMALL = 1e-2
"""Slopes below this share of the largest that the direction could have are compared with that share instead of themselves."""


def check_gradients(at: Evaluations, tol: float) -> None:
    """Slopes in theta along dense and sparse directions, and in each of some entries of lam."""

    def value(theta: Floats, lam: Floats) -> float:
        return at.at(theta, lam, gradient=False).value

    for _ in range(at.trials):
        theta, lam = at.inside()
        got = at.at(theta, lam)
        if not np.isfinite(got.value):
            continue
        assert got.grad_theta is not None
        assert got.grad_lam is not None
        theta_set = at.problem.theta_set
        tangent = float(np.abs(theta_set.tangent(got.grad_theta)).max(initial=0.0))
        for along in _directions(at, theta):
            slope, largest = float(np.vdot(got.grad_theta, along)), tangent * float(np.abs(along).sum())
            inputs = {"theta": theta, "lam": lam, "direction": along}
            _compare(at, "grad_theta", inputs, slope, largest, got.value, along_theta(value, theta_set, theta, lam, along), tol)
        box = at.problem.lam_set
        u, grad = box.encode(lam), np.atleast_1d(box.encode_gradient(lam, got.grad_lam))
        for i in islice(at.rng.permutation(lam.size), 3):
            entry = {"theta": theta, "lam": lam, "entry of lam": int(i)}
            slope, largest = float(grad.flat[i]), float(np.abs(grad).max())
            along = np.zeros(box.shape)
            along.flat[i] = 1.0
            _compare(at, "grad_lam", entry, slope, largest, got.value, along_lam(value, box, theta, u, along), tol)


def _compare(
    at: Evaluations, name: str, inputs: Mapping[str, object], slope: float, largest: float, value: float, line: Line, tol: float
) -> None:
    """The slope must agree with the differences of one of the lengths, of those that stay within the sets."""
    compared = compare(line, slope, tol * max(abs(slope), SMALL * largest) + NOISE * abs(value))
    if compared.agrees or not compared.seen:
        return
    nearest = compared.nearest(slope)
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

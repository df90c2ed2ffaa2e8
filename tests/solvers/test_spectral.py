"""SpectralGradient where values have errors."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Quadratic
from mixbin.solvers import Objective


def noisy(size):
    """A convex quadratic whose values and gradients have errors of a fixed size, and the list of its values."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30)) / 5
    centre, values = rng.random(30), []

    def value(theta):
        d = A @ (theta - centre)
        values.append(1.0 + d @ d + size * rng.normal())
        return values[-1], 2 * A.T @ d + size * rng.normal(size=30)

    return mb.FunctionProblem(value, theta_set=mb.Hypercube(30)), values


def steps(stall, size, most=200):
    problem, values = noisy(size)
    objective, solver = Objective(CheckedProblem(problem), Quadratic()), mb.SpectralGradient(stall=stall)
    state = solver.init(objective, np.full(30, 0.5), np.empty(0), np.random.default_rng(0))
    for _ in range(most):
        if solver.done(objective, state):
            break
        state = solver.step(objective, state)
    return state, len(values)


def test_stall_ends_where_only_errors_are_left():
    with_stall, few = steps(1e-4, 1e-5)
    without, many = steps(0.0, 1e-5)
    assert few < 60 < 3 * few < many
    assert with_stall.value == pytest.approx(1.0, abs=2e-3)
    assert without.value == pytest.approx(1.0, abs=2e-3)


def test_stall_of_zero_changes_nothing():
    exact, _ = steps(0.0, 0.0)
    tiny, _ = steps(1e-300, 0.0)
    np.testing.assert_array_equal(exact.theta, tiny.theta)


def test_stall_is_measured_over_three_steps():
    """The history for the line search may be shorter than three steps."""
    problem, _ = noisy(0.0)
    objective, solver = Objective(CheckedProblem(problem), Quadratic()), mb.SpectralGradient(memory=1, stall=0.5)
    state = solver.init(objective, np.full(30, 0.5), np.empty(0), np.random.default_rng(0))
    taken = 0
    while not solver.done(objective, state):
        state, taken = solver.step(objective, state), taken + 1
    assert taken >= 3

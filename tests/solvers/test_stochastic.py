"""Stochastic gradients: the schedules, the passes, and a run by name."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Logarithmic, Quadratic
from mixbin.solvers import Objective, StochasticGradient
from mixbin.solvers.sampling import _separated, penalty_curvature
from tests.instances import finite_sum, strongly_convex_sum


def begun(solver, problem, epsilon=np.inf):
    objective = Objective(CheckedProblem(problem), Quadratic(), epsilon)
    start = problem.theta_set.start(), np.full(problem.lam_set.shape, 0.5)
    return objective, solver.init(objective, *start, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [("constant", [0.1, 0.1, 0.1]), ("inverse", [0.1, 0.1 / 1.5, 0.1 / 2]), ("sqrt", 0.1 / np.sqrt([1, 1.5, 2]))],
)
def test_schedules(schedule, expected):
    """t counts passes, and begins anew for each eps."""
    solver = StochasticGradient(step_size=0.1, schedule=schedule, decay=0.5)
    objective, state = begun(solver, finite_sum(mb.Budget(8, 3), 0), 10.0)
    for _ in range(2):
        steps = []
        for _ in range(3):
            state = solver.step(objective, state)
            steps.append(state.step)
        np.testing.assert_allclose(steps, expected)
        objective.epsilon /= 2
        state = solver.reweight(objective, state)


@pytest.mark.slow
def test_shrinking_steps_converge_where_constant_ones_do_not():
    problem, gap = strongly_convex_sum(200)
    reached = {}
    for schedule in ("constant", "sqrt", "inverse"):
        solver = StochasticGradient(schedule=schedule, batch=5)
        objective, state = begun(solver, problem)
        for _ in range(60):
            state = solver.step(objective, state)
        reached[schedule] = gap(state.theta, problem.lam_set.decode(state.lam))
    assert reached["inverse"] < reached["sqrt"] < reached["constant"] / 3


def test_every_term_once_per_pass():
    problem = finite_sum(mb.Budget(8, 3), 0, n_terms=23)
    for batch in (1, 5, 23, 100):
        solver = StochasticGradient(step_size=0.1, step_size_lam=0.1, batch=batch)
        objective, state = begun(solver, problem)
        before = objective.problem.n_term_evaluations
        solver.step(objective, state)
        assert objective.problem.n_term_evaluations - before == 23


def test_shrinking_steps_are_not_taken_for_convergence():
    """A step a thousand times shorter than the first moves little whatever the gradient."""
    problem = finite_sum(mb.Hypercube(8), 0, "convex")
    solver = StochasticGradient(schedule="inverse", decay=1e9)
    objective, state = begun(solver, problem)
    for _ in range(4):
        state = solver.step(objective, state)
    assert state.move < solver.tol
    assert not solver.done(objective, state)


@pytest.mark.parametrize(
    ("a", "b", "c"), [(1, 2, 1), (1e-3, 1e3, 0.9), (4, 1e6, 1e3), (0, 0, 2), (0, 5, 1), (0, 0.1, 3), (2, 0, 1)]
)
def test_curvature_apart_bounds_it_together(a, b, c):
    A, B = _separated(a, b, c)
    largest = np.linalg.eigvalsh(np.array([[a / A, c / np.sqrt(A * B)], [c / np.sqrt(A * B), b / B]]))[-1]
    assert largest <= 1 + 1e-12
    if c * c <= a * b:
        np.testing.assert_array_less([A, B], [2.001 * a, 2.001 * b])


def test_no_coupling_no_loss():
    assert _separated(3.0, 5.0, 0.0) == (3.0, 5.0)


def test_curvature_of_the_penalty():
    problem = finite_sum(mb.Budget(8, 3), 0)
    theta = problem.theta_set.start(np.random.default_rng(0))
    assert penalty_curvature(Objective(CheckedProblem(problem), Quadratic()), theta) == 0
    assert penalty_curvature(Objective(CheckedProblem(problem), Quadratic(), 0.1), theta) == pytest.approx(20)
    assert penalty_curvature(Objective(CheckedProblem(problem), Logarithmic(), 0.1), theta * 0) > 20


def test_by_name():
    for theta_set in (mb.Budget(12, 4), mb.OneHot(4, 3), mb.Hypercube(10)):
        problem = finite_sum(theta_set, 3, "indefinite", n_lam=1, n_terms=10)
        result = mb.relax_and_penalize(problem, solver="stochastic", starts=1, seed=0)
        assert result.status == mb.Status.BINARY
        assert theta_set.violation(result.theta) == 0

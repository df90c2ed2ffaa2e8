"""Frank-Wolfe: exactly on vertices under a strong penalty, a gap that says how far it is, and a run by name."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Quadratic
from mixbin.solvers import FrankWolfe, Objective
from tests.instances import quadratic

SETS = [mb.Budget(15, 4), mb.Budget(12, 4, at_most=True), mb.OneHot(5, 4), mb.Hypercube((3, 4))]


def begun(problem, epsilon, seed=0):
    rng = np.random.default_rng(seed)
    objective = Objective(CheckedProblem(problem), Quadratic(), epsilon)
    start = problem.theta_set.start(rng), np.asarray(rng.uniform(size=problem.lam_set.shape))
    return objective, FrankWolfe().init(objective, *start, rng)


@pytest.mark.parametrize("theta_set", SETS, ids=repr)
@pytest.mark.parametrize("n_lam", [0, 2])
def test_lands_exactly_on_vertices(theta_set, n_lam):
    """With 1/eps beyond all curvature of G the first step ends at the oracle's point, bit for bit, after one evaluation."""
    problem = quadratic(theta_set, 3, "convex", n_lam=n_lam)
    objective, state = begun(problem, 1e-3)
    target = state.target
    state = FrankWolfe().step(objective, state)
    assert state.step == 1.0
    assert state.theta.tobytes() == target.tobytes()
    for _ in range(50):
        if FrankWolfe().done(objective, state):
            break
        state = FrankWolfe().step(objective, state)
        assert np.array_equal(state.theta, theta_set.vertex(state.theta))
    assert FrankWolfe().done(objective, state)


def test_one_evaluation_where_the_value_is_concave():
    objective, state = begun(quadratic(mb.Budget(15, 4), 2, "concave"), np.inf)
    for _ in range(5):
        before = objective.problem.n_evaluations
        state = FrankWolfe().step(objective, state)
        assert objective.problem.n_evaluations - before <= 1


def test_line_search_is_exact_on_quadratics():
    """Two evaluations: the end, and the minimum of the parabola."""
    problem = quadratic(mb.Hypercube(12), 0, "convex")
    objective, state = begun(problem, np.inf)
    for _ in range(10):
        before, d = objective.problem.n_evaluations, state.target - state.theta
        after = FrankWolfe().step(objective, state)
        assert objective.problem.n_evaluations - before <= 2
        exact = min(1.0, -(objective.slope(state.grad_theta, state.theta) @ d) / (d @ problem.function.Q @ d))
        assert after.step == pytest.approx(exact, rel=1e-9)
        state = after


@pytest.mark.slow
@pytest.mark.parametrize("theta_set", SETS, ids=repr)
def test_the_gap_bounds_what_is_left(theta_set):
    """On a convex problem the gap is never less than G - min G."""
    problem = quadratic(theta_set, 1, "convex", n_lam=2)
    objective, state = begun(problem, np.inf)
    values, gaps = [], []
    for _ in range(200):
        values.append(state.value)
        gaps.append(state.gap)
        state = FrankWolfe().step(objective, state)
    assert np.all(np.array(values) - state.value <= np.array(gaps) * (1 + 1e-9))
    assert gaps[-1] < 0.02 * gaps[0]


@pytest.mark.parametrize("theta_set", SETS, ids=repr)
def test_by_name(theta_set):
    problem = quadratic(theta_set, 5, "indefinite", n_lam=1)
    result = mb.relax_and_penalize(problem, solver="frank-wolfe", starts=2, seed=0)
    assert result.status == mb.Status.BINARY
    assert theta_set.violation(result.theta) == 0

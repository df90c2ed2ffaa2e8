"""Every solver on every problem of one table: the value falls, the bounds hold, the warm state is carried as promised."""

from dataclasses import fields

import numpy as np
import pytest

import mixbin as mb
from mixbin.penalties import Quadratic
from mixbin.problem import CheckedProblem, Evaluation
from mixbin.solvers import SOLVERS, FixedTheta, Objective, OutOfEvaluations, ProjectedGradient
from tests.instances import quadratic

PROBLEMS = {
    "convex, hypercube": lambda: quadratic(mb.Hypercube(12), 0, "convex"),
    "convex, budget, lam": lambda: quadratic(mb.Budget(15, 4), 1, "convex", n_lam=2),
    "concave, budget": lambda: quadratic(mb.Budget(15, 4), 2, "concave"),
    "concave, at most, lam": lambda: quadratic(mb.Budget(12, 4, at_most=True), 3, "concave", n_lam=1),
    "indefinite, one-hot": lambda: quadratic(mb.OneHot(5, 4), 4, "indefinite"),
    "indefinite, knapsack": lambda: quadratic(mb.Knapsack(np.arange(1.0, 11.0), 20.0), 5, "indefinite"),
    "indefinite, hypercube, lam": lambda: quadratic(mb.Hypercube((3, 4)), 6, "indefinite", n_lam=3),
    "convex, one-hot, lam": lambda: quadratic(mb.OneHot(4, 5), 7, "convex", n_lam=1),
    "convex, knapsack": lambda: quadratic(mb.Knapsack(np.arange(1.0, 9.0), 9.5), 8, "convex"),
}
VARIANTS = {name: kind() for name, kind in SOLVERS.items()} | {"projected, fixed step": ProjectedGradient(step_size=0.02)}
EPSILONS = [np.inf, 10.0, 0.1]


@pytest.fixture(params=VARIANTS, ids=str)
def solver(request):
    return VARIANTS[request.param]


@pytest.fixture(params=PROBLEMS, ids=str)
def problem(request):
    return PROBLEMS[request.param]()


def objective_of(problem, epsilon):
    return Objective(CheckedProblem(problem), Quadratic(), epsilon)


def begin(solver, problem, epsilon, seed=0):
    rng = np.random.default_rng(seed)
    objective = objective_of(problem, epsilon)
    theta, lam = problem.theta_set.start(rng), np.asarray(rng.uniform(size=problem.lam_set.shape))
    return objective, solver.init(objective, theta, lam, rng)


def total(objective, state):
    return objective.total(state.value, state.phi)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_decreases_inside_the_sets(solver, problem, epsilon):
    objective, state = begin(solver, problem, epsilon)
    first = total(objective, state)
    for _ in range(40):
        if solver.done(objective, state):
            break
        state = solver.step(objective, state)
        assert problem.theta_set.contains(state.theta)
        assert np.all((state.lam >= 0) & (state.lam <= 1))
        assert problem.lam_set.contains(problem.lam_set.decode(state.lam))
    assert total(objective, state) < first


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_state_tells_the_truth(solver, problem, epsilon):
    """What the state says of its point is what the problem says there."""
    objective, state = begin(solver, problem, epsilon)
    for _ in range(3):
        state = solver.step(objective, state)
    lam = problem.lam_set.decode(state.lam)
    got = problem.evaluate(state.theta, lam)
    assert state.value == pytest.approx(got.value, rel=1e-12)
    np.testing.assert_allclose(state.grad_theta, got.grad_theta, rtol=1e-12)
    assert state.phi == pytest.approx(Quadratic().value(state.theta))
    weight = 0.0 if epsilon == np.inf else 1 / epsilon
    np.testing.assert_allclose(state.slope, got.grad_theta + weight * (1 - 2 * state.theta), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("epsilon", [np.inf, 5.0])
def test_step_is_pure(solver, problem, epsilon):
    objective, state = begin(solver, problem, epsilon)
    state = solver.step(objective, state)
    before = {field.name: np.copy(getattr(state, field.name)) for field in fields(state) if field.name not in ("warm", "info")}
    once, twice = solver.step(objective, state), solver.step(objective, state)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(state, name), value)
        np.testing.assert_array_equal(getattr(once, name), getattr(twice, name))


def test_reweight_evaluates_nothing(solver, problem):
    objective, state = begin(solver, problem, 10.0)
    state = solver.step(objective, state)
    count = objective.problem.n_evaluations
    objective.epsilon = 0.5
    again = solver.reweight(objective, state)
    assert objective.problem.n_evaluations == count
    np.testing.assert_allclose(again.slope, state.grad_theta + (1 - 2 * state.theta) / 0.5, rtol=1e-12, atol=1e-12)
    assert again.value == state.value


def test_finds_the_stationary_point_of_a_convex_problem(solver):
    """First-order optimality in theta and lam, measured with a unit step."""
    for name in ("convex, budget, lam", "convex, hypercube", "convex, knapsack"):
        objective, state = begin(solver, PROBLEMS[name](), np.inf)
        for _ in range(20_000):
            if solver.done(objective, state):
                break
            state = solver.step(objective, state)
        theta = objective.project_theta(state.theta - state.slope)
        np.testing.assert_allclose(theta, state.theta, atol=2e-3, err_msg=name)
        np.testing.assert_allclose(objective.project_lam(state.lam - state.grad_lam), state.lam, atol=2e-3, err_msg=name)


class Remembering:
    """A quadratic whose warm state names the point it belongs to; notes which warm states it is handed."""

    def __init__(self, theta_set):
        self._inner = quadratic(theta_set, 11)
        self.theta_set, self.lam_set = self._inner.theta_set, self._inner.lam_set
        self.handed: list[float] = []

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        self.handed.append(np.nan if warm is None else float(warm["value"]))
        got = self._inner.evaluate(theta, lam)
        return Evaluation(got.value, got.grad_theta, got.grad_lam, {"value": np.array(got.value)})


def test_warm_state_is_that_of_the_last_accepted_point(solver):
    problem = Remembering(mb.Budget(15, 4))
    objective, state = begin(solver, problem, 0.2)
    assert np.isnan(problem.handed).all()
    for _ in range(25):
        accepted = state.value
        problem.handed.clear()
        state = solver.step(objective, state)
        assert all(value == accepted for value in problem.handed)
        assert float(state.warm["value"]) == state.value


def test_a_limit_inside_a_step_leaves_the_state(solver, problem):
    objective, state = begin(solver, problem, 10.0)
    objective.may_evaluate = lambda: False
    theta = state.theta.copy()
    with pytest.raises(OutOfEvaluations):
        solver.step(objective, state)
    np.testing.assert_array_equal(state.theta, theta)


def test_only_lam(solver):
    """At a fixed theta the best lam of the table's quadratic is B theta, clipped to the box."""
    problem = PROBLEMS["convex, budget, lam"]()
    theta = problem.theta_set.vertex(np.arange(15.0)).astype(float)
    fixed = FixedTheta(objective_of(problem, np.inf), theta)
    state = solver.init(fixed, np.empty(0), np.full(2, 0.9), np.random.default_rng(0))
    for _ in range(2_000):
        if solver.done(fixed, state):
            break
        state = solver.step(fixed, state)
    best = problem.lam_set.project(problem.function.B @ theta)
    np.testing.assert_allclose(problem.lam_set.decode(state.lam), best, atol=1e-3)


def test_separate_scales_for_theta_and_lam():
    """One common step stalls when theta and lam live on scales a million apart; two do not."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(10, 10))
    Q = A @ A.T / 10 + np.eye(10)
    b = rng.normal(size=10)

    def G(theta, lam):
        gap = 1e3 * (lam - 0.3) - theta[0]
        grad = Q @ theta + b
        grad[0] -= gap
        return 0.5 * theta @ Q @ theta + b @ theta + 0.5 * gap**2, grad, 1e3 * gap

    problem = mb.FunctionProblem(G, mb.Hypercube(10), mb.Box(0.0, 1.0))
    solver = SOLVERS["spectral"]()
    objective = objective_of(problem, np.inf)
    state = solver.init(objective, np.full(10, 0.5), np.array(0.9), rng)
    for _ in range(300):
        if solver.done(objective, state):
            break
        state = solver.step(objective, state)
    # At the optimum lam follows theta exactly, and theta minimises the rest.
    assert float(state.lam) == pytest.approx(0.3 + 1e-3 * state.theta[0], abs=1e-6)
    rest = np.clip(state.theta - (Q @ state.theta + b), 0, 1)
    np.testing.assert_allclose(rest, state.theta, atol=1e-4)

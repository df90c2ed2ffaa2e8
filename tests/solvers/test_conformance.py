"""Every solver on every problem of one table: the value falls, the bounds hold, the warm state is carried as promised.

Solvers that sample terms run on the finite sums of the table, and their totals are evaluated from outside.
"""

from collections.abc import Mapping
from dataclasses import fields
from itertools import count

import numpy as np
import pytest

import mixbin as mb
from mixbin.penalties import Quadratic
from mixbin.problem import CheckedProblem, Evaluation
from mixbin.solvers import SOLVERS, FixedTheta, Objective, OutOfEvaluations, ProjectedGradient, Saga, StochasticGradient
from tests.instances import finite_sum, quadratic

FINITE = {
    "finite, convex, hypercube": lambda: finite_sum(mb.Hypercube(12), 0, "convex"),
    "finite, convex, budget, lam": lambda: finite_sum(mb.Budget(15, 4), 1, "strong", n_lam=2),
    "finite, concave, budget": lambda: finite_sum(mb.Budget(15, 4), 2, "concave"),
    "finite, concave, at most, lam": lambda: finite_sum(mb.Budget(12, 4, at_most=True), 3, "concave", n_lam=1),
    "finite, indefinite, one-hot": lambda: finite_sum(mb.OneHot(5, 4), 4, "indefinite"),
    "finite, indefinite, knapsack, lam": lambda: finite_sum(mb.Knapsack(np.arange(1.0, 11.0), 20.0), 5, "indefinite", n_lam=1),
    "finite, indefinite, hypercube, lam": lambda: finite_sum(mb.Hypercube((3, 4)), 6, "indefinite", n_lam=3),
    "finite, convex, one-hot, lam": lambda: finite_sum(mb.OneHot(4, 5), 7, "strong", n_lam=1, n_terms=3),
}
PROBLEMS = FINITE | {
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
SAMPLED = {
    "saga": Saga(),
    "saga, blocks": Saga(batch=7),
    "saga, fixed steps": Saga(step_size=0.02, step_size_lam=0.01),
    "stochastic": StochasticGradient(),
    "stochastic, single terms, fixed first step": StochasticGradient(step_size=0.02, schedule="sqrt", batch=1),
}
FIXED = {"projected, fixed step": ProjectedGradient(step_size=0.02)}
VARIANTS = {name: kind() for name, kind in SOLVERS.items()} | FIXED | SAMPLED
EPSILONS = [np.inf, pytest.param(10.0, marks=pytest.mark.slow), 0.1]
PAIRS = [(solver, problem) for solver in VARIANTS for problem in (FINITE if solver in SAMPLED else PROBLEMS)]


@pytest.fixture(params=VARIANTS, ids=str)
def solver(request):
    return VARIANTS[request.param]


@pytest.fixture(params=PAIRS, ids=" on ".join)
def pair(request):
    solver, problem = request.param
    return VARIANTS[solver], PROBLEMS[problem]()


def objective_of(problem, epsilon):
    return Objective(CheckedProblem(problem), Quadratic(), epsilon)


def begin(solver, problem, epsilon, seed=0):
    rng = np.random.default_rng(seed)
    objective = objective_of(problem, epsilon)
    theta, lam = problem.theta_set.start(rng), np.asarray(rng.uniform(size=problem.lam_set.shape))
    return objective, solver.init(objective, theta, lam, rng)


def total(objective, state):
    """G + phi/eps at the state's point, whatever the state believes."""
    problem = objective.problem.problem
    value = problem.evaluate(state.theta, problem.lam_set.decode(state.lam)).value
    return objective.total(value, objective.phi(state.theta))


def snapshot(state):
    return {field.name: np.copy(getattr(state, field.name)) for field in fields(state) if field.name not in ("warm", "info")}


def assert_same(state, taken):
    for name, value in taken.items():
        np.testing.assert_array_equal(getattr(state, name), value, err_msg=name)


def is_sampled(solver):
    return isinstance(solver, (Saga, StochasticGradient))


def for_solver(solver, name):
    """The problem of the table with this name, as a finite sum where the solver needs one."""
    return PROBLEMS[f"finite, {name}" if is_sampled(solver) else name]()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_decreases_inside_the_sets(pair, epsilon):
    solver, problem = pair
    objective, state = begin(solver, problem, epsilon)
    first = total(objective, state)
    for _ in range(8 if is_sampled(solver) else 40):
        if solver.done(objective, state):
            break
        state = solver.step(objective, state)
        assert problem.theta_set.contains(state.theta)
        assert np.all((state.lam >= 0) & (state.lam <= 1))
        assert problem.lam_set.contains(problem.lam_set.decode(state.lam))
    assert total(objective, state) < first


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_state_tells_the_truth(pair, epsilon):
    """What the state says of its point is what the problem says there, as long as it says that it is exact."""
    solver, problem = pair
    objective, state = begin(solver, problem, epsilon)
    weight = 0.0 if epsilon == np.inf else 1 / epsilon
    for _ in range(4):
        got = problem.evaluate(state.theta, problem.lam_set.decode(state.lam))
        if state.exact:
            assert state.value == pytest.approx(got.value, rel=1e-12)
            np.testing.assert_allclose(state.grad_theta, got.grad_theta, rtol=1e-12, atol=1e-14)
        assert state.phi == pytest.approx(Quadratic().value(state.theta))
        np.testing.assert_allclose(
            objective.slope(state.grad_theta, state.theta),
            state.grad_theta + weight * (1 - 2 * state.theta),
            rtol=1e-9,
            atol=1e-12,
        )
        state = solver.step(objective, state)
        assert state.exact is not is_sampled(solver)


@pytest.mark.parametrize("epsilon", [np.inf, 5.0])
def test_step_is_pure(pair, epsilon):
    solver, problem = pair
    objective, state = begin(solver, problem, epsilon)
    state = solver.step(objective, state)
    before = snapshot(state)
    once, twice = solver.step(objective, state), solver.step(objective, state)
    assert_same(state, before)
    assert_same(twice, snapshot(once))


def test_state_is_arrays_and_scalars(pair):
    """Which is what a checkpoint can hold."""
    solver, problem = pair
    objective, first = begin(solver, problem, 5.0)
    for state in (first, solver.step(objective, first), solver.reweight(objective, first)):
        assert type(state) is solver.state_type
        for field in fields(state):
            assert isinstance(getattr(state, field.name), (np.ndarray, Mapping, bool, int, float)), field.name


def test_reweight_evaluates_nothing(pair):
    solver, problem = pair
    objective, state = begin(solver, problem, 10.0)
    state = solver.step(objective, state)
    counts = objective.problem.n_full, objective.problem.n_term_evaluations
    objective.epsilon = 0.5
    again = solver.reweight(objective, state)
    assert (objective.problem.n_full, objective.problem.n_term_evaluations) == counts
    np.testing.assert_allclose(
        objective.slope(again.grad_theta, again.theta), state.grad_theta + (1 - 2 * state.theta) / 0.5, rtol=1e-12, atol=1e-12
    )
    assert again.value == state.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "problem"), [pair for pair in PAIRS if getattr(VARIANTS[pair[0]], "step_size", None) is None], ids=str
)
def test_scaling_changes_nothing(solver, problem):
    """1024 G + phi / (eps/1024) has the same path to the last bit: no automatic step compares with absolute constants."""
    solver, problem = VARIANTS[solver], PROBLEMS[problem]()
    larger = scaled(problem)
    for epsilon in (np.inf, 3.0):
        objective, state = begin(solver, problem, epsilon)
        other, there = begin(solver, larger, epsilon / 1024)
        for _ in range(5):
            state, there = solver.step(objective, state), solver.step(other, there)
            np.testing.assert_array_equal(there.theta, state.theta)
            np.testing.assert_array_equal(there.lam, state.lam)
            assert solver.done(other, there) == solver.done(objective, state)


def scaled(problem):
    if not isinstance(problem, mb.FunctionProblem):
        return type(problem)(problem.theta_set, problem.Q, problem.c, problem.B, problem.lam_set, scale=1024.0)
    return mb.FunctionProblem(
        lambda *point: tuple(1024.0 * part for part in problem.function(*point)),
        problem.theta_set,
        problem.lam_set if problem.lam_set.size else None,
    )


PATIENCE = {"frank-wolfe": (1_000, 1e-2), "saga": (200, 1e-5), "saga, blocks": (200, 1e-5)}
"""Steps and tolerance; Frank-Wolfe converges slowly inside faces."""


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_finds_the_stationary_point_of_a_convex_problem(name):
    """First-order optimality in theta and lam, measured with a unit step."""
    solver = VARIANTS[name]
    steps, tolerance = PATIENCE.get(name, (80, 5e-2) if name in SAMPLED else (20_000, 2e-3))
    for problem in ("convex, budget, lam", "convex, hypercube", "convex, knapsack"):
        if is_sampled(solver) and f"finite, {problem}" not in PROBLEMS:
            continue
        objective, state = begin(solver, for_solver(solver, problem), np.inf)
        for _ in range(steps):
            if solver.done(objective, state):
                break
            state = solver.step(objective, state)
        got = objective.evaluate(state.theta, state.lam, None)
        theta, lam = objective.project_theta(state.theta - got.grad_theta), objective.project_lam(state.lam - got.grad_lam)
        np.testing.assert_allclose(theta, state.theta, atol=tolerance, err_msg=problem)
        np.testing.assert_allclose(lam, state.lam, atol=tolerance, err_msg=problem)


class Remembering:
    """A quadratic whose warm states are numbered; notes which of them it is handed."""

    def __init__(self, theta_set, n_terms=6):
        self._inner = finite_sum(theta_set, 11, n_terms=n_terms)
        self.theta_set, self.lam_set, self.n_terms = theta_set, self._inner.lam_set, n_terms
        self._number = count()
        self.handed: list[int | None] = []
        self.given: list[int] = []

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        return self.evaluate_terms(theta, lam, np.arange(self.n_terms), warm=warm)

    def evaluate_terms(self, theta, lam, terms, *, warm=None):
        self.handed.append(None if warm is None else int(warm["number"]))
        self.given.append(next(self._number))
        got = self._inner.evaluate_terms(theta, lam, terms)
        return Evaluation(got.value, got.grad_theta, got.grad_lam, {"number": np.array(self.given[-1])})


def test_warm_state_is_that_of_the_last_accepted_point(solver):
    problem = Remembering(mb.Budget(15, 4))
    objective, state = begin(solver, problem, 0.2)
    assert problem.handed[0] is None
    for _ in range(25):
        accepted = int(state.warm["number"])
        problem.handed.clear()
        problem.given.clear()
        state = solver.step(objective, state)
        carried = int(state.warm["number"])
        if is_sampled(solver):
            # Probes and the first update start from the state; then each update hands on to the next.
            updates = -(-problem.n_terms // solver.batch)
            first = len(problem.handed) - updates
            assert all(number == accepted for number in problem.handed[: first + 1])
            assert problem.handed[first + 1 :] == problem.given[first:-1]
            assert carried == problem.given[-1]
        else:
            assert all(number == accepted for number in problem.handed)
            assert carried in (accepted, *problem.given)


def test_a_limit_inside_a_step_leaves_the_state(pair):
    """At once and, where a step is a whole pass, in the middle of it."""
    solver, problem = pair
    objective, state = begin(solver, problem, 10.0)
    before = snapshot(state)
    for allowed in range(-(-problem.n_terms // solver.batch)) if is_sampled(solver) else [0]:
        calls = count()
        objective.may_evaluate = lambda calls=calls, allowed=allowed: next(calls) < allowed
        with pytest.raises(OutOfEvaluations):
            solver.step(objective, state)
        assert_same(state, before)


@pytest.mark.parametrize("name", VARIANTS)
def test_only_lam(name):
    """At a fixed theta the best lam of the table's quadratic is B theta, clipped to the box."""
    solver = VARIANTS[name]
    problem = for_solver(solver, "convex, budget, lam")
    theta = problem.theta_set.vertex(np.arange(15.0)).astype(float)
    fixed = FixedTheta(objective_of(problem, np.inf), theta)
    state = solver.init(fixed, np.empty(0), np.full(2, 0.9), np.random.default_rng(0))
    for _ in range(80 if is_sampled(solver) else 2_000):
        if solver.done(fixed, state):
            break
        state = solver.step(fixed, state)
    B = problem.B.mean(axis=0) if is_sampled(solver) else problem.function.B
    best = problem.lam_set.project(B @ theta)
    close = 3e-2 if isinstance(solver, StochasticGradient) else 1e-3
    np.testing.assert_allclose(problem.lam_set.decode(state.lam), best, atol=close)


class Cliff:
    """A finite sum whose slope leads to theta = 0, where nothing can be trained."""

    theta_set, lam_set, n_terms = mb.Hypercube(6), mb.Box.empty(), 5

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        return self.evaluate_terms(theta, lam, np.arange(self.n_terms))

    def evaluate_terms(self, theta, lam, terms, *, warm=None):
        if theta.sum() < 0.1:
            return Evaluation(np.inf, np.full(6, np.nan), np.empty(0))
        return Evaluation(float(theta.sum()), np.ones(6), np.empty(0))


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in FIXED])
def test_infinite_values_are_kept_away_from(name):
    solver, problem = VARIANTS[name], Cliff()
    objective, state = begin(solver, problem, np.inf)
    for _ in range(30):
        if solver.done(objective, state):
            break
        state = solver.step(objective, state)
        assert np.isfinite(problem.evaluate(state.theta, state.lam).value)
    assert state.theta.sum() < 0.5


def test_no_finite_value_to_begin_with(solver):
    with pytest.raises(mb.InvalidInput, match="start from a point where the model can be trained"):
        solver.init(objective_of(Cliff(), np.inf), np.zeros(6), np.empty(0), np.random.default_rng(0))


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

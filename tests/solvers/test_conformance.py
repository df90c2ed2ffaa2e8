"""Every solver through the suite for strangers' solvers, on every problem of one table; and what this package promises beyond it.

Solvers that sample terms run on the finite sums of the table.
"""

from itertools import count

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Quadratic
from mixbin.problem import Evaluation
from mixbin.solvers import SOLVERS, FixedTheta, Objective, OutOfEvaluations, ProjectedGradient, Saga, StochasticGradient
from mixbin.testing import check_solver
from mixbin.testing.solvers.steps import Cliff
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
PAIRS = [(solver, problem) for solver in VARIANTS for problem in (FINITE if solver in SAMPLED else PROBLEMS)]
PATIENCE = {"frank-wolfe": (1_000, 1e-2), "saga": (200, 1e-5), "saga, blocks": (200, 1e-5)}
"""Steps and tolerance; Frank-Wolfe converges slowly inside faces."""


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_every_promise(name):
    check_solver(VARIANTS[name], steps=3, convex_tol=None)


@pytest.mark.ci
@pytest.mark.parametrize("name", VARIANTS)
def test_every_promise_on_more_problems(name):
    """With the stationary points of convex problems, and more steps."""
    steps, tolerance = PATIENCE.get(name, (80, 5e-2) if name in SAMPLED else (20_000, 2e-3))
    problems = {problem: make() for problem, make in (FINITE if name in SAMPLED else PROBLEMS).items()}
    walk = 8 if name in SAMPLED else 40
    check_solver(VARIANTS[name], steps=walk, convex_steps=steps, convex_tol=tolerance, problems=problems)


@pytest.fixture(params=VARIANTS, ids=str)
def solver(request):
    return VARIANTS[request.param]


def objective_of(problem, epsilon):
    return Objective(CheckedProblem(problem), Quadratic(), epsilon)


def begin(solver, problem, epsilon, seed=0):
    rng = np.random.default_rng(seed)
    objective = objective_of(problem, epsilon)
    theta, lam = problem.theta_set.start(rng), np.asarray(rng.uniform(size=problem.lam_set.shape))
    return objective, solver.init(objective, theta, lam, rng)


def is_sampled(solver):
    return isinstance(solver, (Saga, StochasticGradient))


def for_solver(solver, name):
    """The problem of the table with this name, as a finite sum where the solver needs one."""
    return PROBLEMS[f"finite, {name}" if is_sampled(solver) else name]()


@pytest.mark.parametrize("name", SAMPLED)
def test_a_limit_anywhere_in_a_pass_goes_through(name):
    """The suite tries some places only."""
    solver, problem = SAMPLED[name], finite_sum(mb.Budget(15, 4), 1, "strong", n_lam=2)
    objective, state = begin(solver, problem, 10.0)
    before = {field: np.copy(value) for field, value in vars(state).items() if field not in ("warm", "info")}
    for allowed in range(-(-problem.n_terms // solver.batch)):
        calls = count()
        objective.may_evaluate = lambda calls=calls, allowed=allowed: next(calls) < allowed
        with pytest.raises(OutOfEvaluations):
            solver.step(objective, state)
        for field, value in before.items():
            np.testing.assert_array_equal(getattr(state, field), value, err_msg=field)


def test_only_sampled_states_are_estimates(solver):
    objective, state = begin(solver, for_solver(solver, "convex, hypercube"), np.inf)
    assert state.exact
    assert solver.step(objective, state).exact is not is_sampled(solver)


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

"""Polish: ends where no single move improves, by exact moves where the problem has them, within its evaluations."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.methods.polish import PolishState, begin_polish, moved, polish_done, polish_step
from mixbin.penalties import Quadratic
from mixbin.solvers import Objective
from tests.instances import optimum, planted, quadratic, tiny_instances

SETS = [
    mb.Hypercube(10),
    mb.Hypercube((3, 4)),
    mb.Budget(14, 5),
    mb.Budget(12, 12),
    mb.Budget(14, 5, at_most=True),
    mb.OneHot(5, 4),
    mb.OneHot(4, 1),
    mb.Knapsack(np.arange(1.0, 11.0), 20.0),
]


class Fast:
    """A quadratic that answers moves at once; notes how it was asked."""

    def __init__(self, theta_set, seed):
        self.inner = quadratic(theta_set, seed)
        self.theta_set, self.lam_set = self.inner.theta_set, self.inner.lam_set
        self.asked = 0

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        return self.inner.evaluate(theta, lam)

    def evaluate_moves(self, theta, lam, off, on, *, warm=None):
        self.asked += off.size
        after = [moved(theta.astype(bool), i, j).astype(float) for i, j in zip(off, on, strict=True)]
        return np.array([self.inner.evaluate(x, lam).value for x in after])


def polished(problem, theta, limit=10_000):
    objective = Objective(CheckedProblem(problem), Quadratic())
    state = begin_polish(objective, theta, np.empty(0), None)
    values = [state.value]
    while not polish_done(state, limit):
        state = polish_step(objective, state, limit)
        values.append(state.value)
    assert objective.problem.n_evaluations == state.spent
    assert np.all(np.diff(values) <= 0)
    return state


def best_neighbour(problem, theta):
    """The lowest value among the neighbours of theta, without ``moves``: feasible points that differ in one or two entries."""
    theta_set, best = problem.theta_set, np.inf
    n = theta_set.size
    for i in range(n):
        for j in range(i, n):
            x = theta.copy().reshape(-1)
            x[i] = ~x[i]
            if j != i:
                x[j] = ~x[j]
            x = x.reshape(theta_set.shape)
            if theta_set.violation(x) or (j != i and theta.flat[i] == theta.flat[j]):
                continue
            if j != i and isinstance(theta_set, mb.Hypercube):
                continue
            best = min(best, problem.evaluate(x.astype(float), np.empty(0)).value)
    return best


@pytest.mark.parametrize("theta_set", SETS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fast", [False, True])
def test_ends_one_move_optimal(theta_set, seed, fast):
    problem = Fast(theta_set, seed) if fast else quadratic(theta_set, seed)
    start = theta_set.vertex(np.random.default_rng(seed).uniform(size=theta_set.shape))
    state = polished(problem, start)
    assert state.complete
    assert theta_set.violation(state.theta) == 0
    assert state.value == pytest.approx(problem.evaluate(state.theta.astype(float), np.empty(0)).value)
    assert state.tried == theta_set.n_moves(state.theta)
    inner = problem.inner if fast else problem
    neighbour = best_neighbour(inner, state.theta)
    assert neighbour >= state.value - 1e-9
    if np.isfinite(neighbour):
        assert state.best_change == pytest.approx(neighbour - state.value, abs=1e-9)
    if fast:
        assert problem.asked > 0 or state.tried == 0


def test_many_moves_at_once_where_the_gradient_can_be_trusted():
    """A separable G of 4,000 entries, from the worst selection: a handful of evaluations, not thousands of exchanges."""
    cost = np.random.default_rng(0).normal(size=4_000)
    problem = mb.FunctionProblem(lambda theta: (float(cost @ theta), cost), mb.Budget(4_000, 400))
    worst = problem.theta_set.vertex(cost)
    state = begin_polish(Objective(CheckedProblem(problem), Quadratic()), worst, np.empty(0), None)
    objective = Objective(CheckedProblem(problem), Quadratic())
    while state.reach >= 0:
        state = polish_step(objective, state, 1_000)
    np.testing.assert_array_equal(np.flatnonzero(state.theta), np.sort(np.argsort(cost)[:400]))
    assert objective.problem.n_evaluations < 20


def test_stops_at_its_limit():
    problem = quadratic(mb.Budget(40, 20), 0)
    start = problem.theta_set.vertex(np.random.default_rng(0).uniform(size=40))
    state = polished(problem, start, limit=15)
    assert not state.complete
    assert 15 <= state.spent <= 16


def test_resumes_in_the_middle():
    """A state that was taken apart and put together again goes on to the same end."""
    problem = quadratic(mb.Budget(14, 5), 1)
    objective = Objective(CheckedProblem(problem), Quadratic())
    start = problem.theta_set.vertex(np.random.default_rng(1).uniform(size=14))
    state = begin_polish(objective, start, np.empty(0), None)
    while not polish_done(state, 10_000):
        state = polish_step(objective, PolishState(**vars(state)), 10_000)
    np.testing.assert_array_equal(state.theta, polished(problem, start).theta)


@pytest.mark.slow
def test_default_answers_on_tiny_instances():
    """At least 90 % optimal, all feasible and one-move optimal by an independent count (all 200: benchmarks)."""
    instances = tiny_instances()[::5]
    found = 0
    for problem in instances:
        result = mb.relax_and_penalize(problem, seed=0)
        assert problem.theta_set.violation(result.theta) == 0
        assert best_neighbour(problem, result.theta) >= result.value - 1e-9 * max(1.0, abs(result.value))
        assert result.certificate.one_move_optimal
        best = optimum(problem)
        found += result.value <= best + 1e-9 * max(1.0, abs(best))
    assert found >= 0.9 * len(instances)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param("budget", marks=pytest.mark.ci), "one-hot", pytest.param("hypercube", marks=pytest.mark.ci), "spins"]
)
def test_planted_optima_of_forty_variables(kind):
    found = 0
    for seed in range(6):
        problem, star = planted(kind, seed)
        best = problem.evaluate(star.astype(float), np.empty(0)).value
        found += mb.relax_and_penalize(problem, seed=0).value <= best + 1e-9 * max(1.0, abs(best))
    assert found >= 5


def test_polish_off_and_with_a_number():
    problem = quadratic(mb.OneHot(6, 5), 3)
    off = mb.relax_and_penalize(problem, polish=False, seed=0)
    some = mb.relax_and_penalize(problem, polish=7, starts=1, seed=0)
    assert "polish" not in set(off.trace.column("phase"))
    assert off.certificate.moves_tried == 0
    assert off.certificate.one_move_optimal is None
    assert mb.relax_and_penalize(problem, seed=0).value <= off.value
    assert some.certificate.moves_tried <= 7


@pytest.mark.slow
def test_lam_follows_the_polished_theta():
    for seed in range(4):
        problem = quadratic(mb.Budget(14, 5), seed, n_lam=2)
        result = mb.relax_and_penalize(problem, seed=0)
        np.testing.assert_allclose(result.lam, problem.lam_set.project(problem.function.B @ result.theta), atol=1e-4)
        assert result.certificate.one_move_optimal

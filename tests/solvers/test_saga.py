"""SAGA: linear convergence, the table's size and what it says of it, and no stale penalty in it."""

import logging

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Quadratic
from mixbin.solvers import Objective, Saga
from tests.instances import finite_sum, strongly_convex_sum


def run(solver, problem, gap, passes):
    objective = Objective(CheckedProblem(problem), Quadratic())
    start = np.full(problem.theta_set.shape, 0.5), np.full(problem.lam_set.shape, 0.1)
    state = solver.init(objective, *start, np.random.default_rng(0))
    gaps = [gap(state.theta, problem.lam_set.decode(state.lam))]
    for _ in range(passes):
        state = solver.step(objective, state)
        gaps.append(gap(state.theta, problem.lam_set.decode(state.lam)))
    return objective, state, np.array(gaps)


def fitted(gaps):
    """The slope of log(gap) per pass, and R^2 of the line."""
    logs, passes = np.log(gaps), np.arange(len(gaps))
    slope, offset = np.polyfit(passes, logs, 1)
    return slope, 1 - np.sum((logs - slope * passes - offset) ** 2) / np.sum((logs - logs.mean()) ** 2)


@pytest.mark.ci
def test_converges_linearly():
    problem, gap = strongly_convex_sum(500)
    objective, state, gaps = run(Saga(), problem, gap, 25)
    slope, r_squared = fitted(gaps)
    assert slope < -0.5
    assert r_squared > 0.98
    assert gaps[-1] < 1e-10 * gaps[0]
    # One pass costs one evaluation of G, and at most two of its terms for the steps.
    assert objective.problem.n_term_evaluations <= 500 * 26 + 2 * 25 + 2 * 3
    got = problem.evaluate(state.theta, problem.lam_set.decode(state.lam))
    assert state.value == pytest.approx(got.value, rel=1e-10)


def test_one_term_with_a_far_larger_curvature():
    """Steps follow the largest curvature among the terms: the term that changes most is the one that is probed."""
    problem = finite_sum(mb.Hypercube(12), 0, "strong", n_terms=60)
    problem.Q[7] *= 100
    best = np.full(12, 0.5)
    problem.c -= problem.Q.mean(axis=0) @ best + problem.c.mean(axis=0)
    objective = Objective(CheckedProblem(problem), Quadratic())
    state = Saga().init(objective, np.full(12, 0.1), np.empty(0), np.random.default_rng(0))
    for _ in range(40):
        state = Saga().step(objective, state)
    assert np.linalg.norm(state.theta - best) < 0.03
    assert 0.3 < 3 * state.step * np.linalg.eigvalsh(problem.Q[7])[-1] < 10


class Logistic:
    """Logistic losses of theta-weighted features at an inverse temperature lam over five decades: flat below, steep above."""

    def __init__(self, n_terms=150, size=12, k=4):
        rng = np.random.default_rng(0)
        self.theta_set, self.lam_set, self.n_terms = mb.Budget(size, k), mb.Box(1e-3, 1e2, log=True), n_terms
        self.X = rng.normal(size=(n_terms, size)) * rng.normal(size=size) * np.logspace(0.5, -0.5, size)
        self.y = np.where(self.X[:, :k].sum(axis=1) > 0, 1.0, -1.0)

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        return self.evaluate_terms(theta, lam, np.arange(self.n_terms))

    def evaluate_terms(self, theta, lam, terms, *, warm=None):
        X, y = self.X[terms], self.y[terms]
        z = X @ theta
        value = np.logaddexp(0.0, -y * z * lam).mean()
        pull = -y * np.exp(-np.logaddexp(0.0, y * z * lam)) / len(terms)
        return mb.Evaluation(value, lam * (pull @ X), np.asarray(pull @ z))


@pytest.mark.slow
def test_curvature_that_explodes_along_the_way(monkeypatch):
    """A probe where G is flat says nothing of where it is steep: rows that change too much for the way shorten the steps."""
    problem = Logistic()

    def reached():
        objective = Objective(CheckedProblem(problem), Quadratic())
        state = Saga().init(objective, problem.theta_set.start(), np.array(0.1), np.random.default_rng(0))
        for _ in range(15):
            state = Saga().step(objective, state)
        return problem.evaluate(state.theta, problem.lam_set.decode(state.lam)).value

    assert reached() < 0.1
    monkeypatch.setattr("mixbin.solvers.saga.SHORTEST_WAY_MEASURED", np.inf)
    assert reached() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "rows"), [(10**6, 500), (8 * 14 * 60 + 7, 60), (8 * 14 * 7, 7), (1, 1)])
def test_memory(limit, rows, caplog):
    """One row per term, or as many as fit: the log and the state say so, and it converges all the same."""
    problem, gap = strongly_convex_sum(500)
    with caplog.at_level(logging.WARNING, "mixbin"):
        objective, state, gaps = run(Saga(memory_limit=limit), problem, gap, 150 if rows < 60 else 60 if rows < 500 else 1)
    assert state.info["memory_rows"] == len(state.table_theta) == len(state.table_lam) == rows
    assert rows == 1 or state.table_theta.nbytes + state.table_lam.nbytes <= limit
    if rows == 500:
        assert not caplog.records
        return
    assert gaps[-1] < (1e-10 if rows > 1 else 1e-3) * gaps[0]
    assert len(caplog.records) == 1
    text = caplog.records[0].getMessage()
    assert "500 terms" in text
    assert f"{rows} rows" in text
    assert f"memory_limit = {limit}" in text
    assert objective.problem.n_terms == 500


def test_rows_are_batches():
    problem, gap = strongly_convex_sum(500)
    _, state, gaps = run(Saga(batch=30), problem, gap, 60)
    assert len(state.values) == 17
    assert gaps[-1] < 1e-10 * gaps[0]


class Recording:
    """Notes where each of its terms is evaluated."""

    def __init__(self, problem):
        self.problem = problem
        self.theta_set, self.lam_set, self.n_terms = problem.theta_set, problem.lam_set, problem.n_terms
        self.visits = []

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        return self.problem.evaluate(theta, lam)

    def evaluate_terms(self, theta, lam, terms, *, warm=None):
        self.visits.append((terms.copy(), theta.copy(), lam.copy()))
        return self.problem.evaluate_terms(theta, lam, terms)


@pytest.mark.parametrize("batch", [1, 4])
def test_no_stale_penalty(batch):
    """After a change of eps every update is the one computed by hand: the table as it was, the penalty of now."""
    problem = Recording(finite_sum(mb.Budget(10, 3), 5, "indefinite", n_lam=2, n_terms=9))
    objective = Objective(CheckedProblem(problem), Quadratic(), 50.0)
    solver = Saga(step_size=0.03, step_size_lam=0.01, batch=batch)
    rng = np.random.default_rng(2)
    state = solver.init(objective, problem.theta_set.start(rng), np.array([0.2, 0.7]), rng)
    for _ in range(3):
        state = solver.step(objective, state)
    objective.epsilon = 0.7
    state = solver.reweight(objective, state)
    seen = {tuple(terms): (theta, lam) for terms, theta, lam in problem.visits}
    problem.visits.clear()
    after = solver.step(objective, state)

    def gradient(terms, at):
        got = problem.problem.evaluate_terms(*at, np.array(terms))
        return np.concatenate([got.grad_theta, 3.0 * got.grad_lam])

    table = {terms: gradient(terms, at) for terms, at in seen.items()}
    shares = {terms: len(terms) / 9 for terms in table}
    x, u = state.theta, state.lam
    direction = sum(shares[terms] * row for terms, row in table.items())
    for terms, theta, lam in problem.visits:
        slope = direction[:10] + (1 - 2 * x) / 0.7
        x, u = problem.theta_set.project(x - 0.03 * slope), np.clip(u - 0.01 * direction[10:], 0, 1)
        np.testing.assert_allclose(theta, x, atol=1e-12)
        np.testing.assert_allclose(lam, problem.lam_set.decode(u), atol=1e-12)
        new, old = gradient(tuple(terms), (theta, lam)), table[tuple(terms)]
        mean = sum(shares[key] * row for key, row in table.items())
        direction = mean + len(table) * shares[tuple(terms)] * (new - old)
        table[tuple(terms)] = new
    np.testing.assert_allclose(after.theta, x, atol=1e-12)
    assert sorted(np.concatenate([terms for terms, _, _ in problem.visits])) == list(range(9))


def test_order_follows_from_the_state():
    """Other seeds and later passes take other orders, the same state the same one."""
    problem = Recording(finite_sum(mb.Budget(10, 3), 5, "convex"))
    solver = Saga(step_size=0.01, step_size_lam=0.01)

    def orders(seed):
        objective = Objective(CheckedProblem(problem), Quadratic())
        state = solver.init(objective, problem.theta_set.start(), np.empty(0), np.random.default_rng(seed))
        found = []
        for _ in range(2):
            problem.visits.clear()
            state = solver.step(objective, state)
            found.append([int(terms[0]) for terms, _, _ in problem.visits])
        return found

    first, second = orders(0)
    assert first != second
    assert orders(0) == [first, second]
    assert orders(1)[0] != first


@pytest.mark.slow
@pytest.mark.parametrize("theta_set", [mb.Budget(12, 4), mb.OneHot(4, 3), mb.Hypercube(10)], ids=repr)
def test_by_name(theta_set):
    """Binary, feasible, and the same again."""
    problem = finite_sum(theta_set, 3, "indefinite", n_lam=1, n_terms=10)
    result, again = (mb.relax_and_penalize(problem, solver="saga", starts=1, inner_steps=10, seed=0) for _ in range(2))
    assert result.status == mb.Status.BINARY
    assert theta_set.violation(result.theta) == 0
    np.testing.assert_array_equal(again.theta, result.theta)
    assert again.value == result.value

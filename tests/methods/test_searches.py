"""The searches after the path: where they begin, what they learn, how they end, and that they resume to the same bits."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.methods.curvature import begin_learning, learn
from mixbin.methods.polish import moved
from mixbin.methods.portfolio import kicked, random_vertex
from mixbin.methods.quadratic_search import quadratic_search
from mixbin.methods.tabu import Quadratic
from mixbin.penalties import Quadratic as Penalty
from mixbin.problem import Improved
from mixbin.sets import BinarySet
from mixbin.solvers import Objective
from tests.instances import TINY_SETS, all_points, optimum, planted, quadratic, readme_example, tiny_on, tiny_set

NO_LAM = np.empty(0)
SETS = {name: tiny_set(name, np.random.default_rng(4)) for name in TINY_SETS}
READMES_OPTIMUM = 9.568331


class Listed(mb.Hypercube):
    """A set of a user's own, whose moves are only known by listing them."""


SETS["a user's own"] = Listed(8)


def walking(seed: int = 0) -> mb.FunctionProblem:
    """A function that is far from quadratic: the walks have to evaluate it at every step."""
    rng = np.random.default_rng([3, seed])
    A, b = rng.normal(size=(12, 16)), rng.normal(size=12)

    def function(theta):
        z = A @ theta - b
        return float(np.sum(np.log1p(np.exp(2 * z)) - z)), A.T @ (2 / (1 + np.exp(-2 * z)) - 1)

    return mb.FunctionProblem(function, mb.Budget(16, 6))


@pytest.mark.parametrize("seed", range(3))
def test_the_readmes_example_ends_at_its_optimum(seed):
    result = mb.relax_and_penalize(readme_example(), seed=seed)
    path = mb.relax_and_penalize(readme_example(), seed=seed, search="path")
    assert result.value == pytest.approx(READMES_OPTIMUM, abs=1e-6)
    assert path.value > 10.7
    assert result.n_evaluations < path.n_evaluations
    assert "found by search" in result.message
    assert (result.settings["search"], path.settings["search"]) == ("portfolio", "path")
    certificate = result.certificate
    assert certificate.searches > 1
    assert 1 <= certificate.times_best <= certificate.searches
    assert 2 <= certificate.different_answers <= certificate.searches
    assert f"{certificate.different_answers} different answers" in str(certificate)


@pytest.mark.parametrize("name", TINY_SETS)
def test_tiny_optima(name):
    """Figures for 300 instances per set: benchmarks/tiny_instances.py."""
    for problem in tiny_on(name, 6, first=700):
        result = mb.relax_and_penalize(problem, seed=0)
        assert result.value <= optimum(problem) + 1e-9
        assert result.certificate.one_move_optimal


def test_one_start_is_the_path_alone():
    one, path = (mb.relax_and_penalize(readme_example(), seed=0, starts=1, search=search) for search in ("portfolio", "path"))
    assert one.value == path.value
    assert one.n_evaluations == path.n_evaluations
    assert one.certificate.searches == 1


def test_the_budget_is_that_of_the_starts():
    for seed in range(3):
        first = mb.relax_and_penalize(walking(seed), seed=0, starts=1)
        whole = mb.relax_and_penalize(walking(seed), seed=0, starts=3)
        assert whole.n_evaluations <= 3 * first.n_evaluations
        assert whole.value <= first.value


def test_limits_hold():
    for problem in (readme_example(), walking()):
        for limit in (40, 150, 300):
            result = mb.relax_and_penalize(problem, seed=0, max_evaluations=limit)
            assert result.n_evaluations <= limit
            assert problem.theta_set.violation(result.theta) == 0


def test_an_unknown_search_is_refused():
    with pytest.raises(mb.InvalidInput, match=r"^search must be one of 'portfolio', 'path', got 'paths'"):
        mb.relax_and_penalize(readme_example(), search="paths")


@pytest.mark.parametrize("name", SETS)
def test_learnt_columns_tell_the_gradient_everywhere(name):
    theta_set = SETS[name]
    problem = quadratic(theta_set, 5)
    checked = CheckedProblem(problem)
    rng = np.random.default_rng(0)
    theta = random_vertex(theta_set, rng)
    got = checked.evaluate(theta.astype(float), NO_LAM)
    curvature = begin_learning(theta_set, theta, NO_LAM, got.value, got.grad_theta)
    while not curvature.ready:
        curvature = learn(Objective(checked, Penalty()), curvature)
    assert checked.n_evaluations <= theta_set.size + 1
    for _ in range(5):
        there = kicked(theta_set, theta, rng)
        model = curvature.model().at(there.ravel())
        true = problem.evaluate(there.astype(float), NO_LAM)
        if curvature.left_out == 0:
            assert model.value == pytest.approx(true.value, rel=1e-9, abs=1e-9)
            off, on = (np.concatenate(side) for side in zip(*theta_set.moves(there), strict=True))
            expected = np.append(true.grad_theta.ravel(), 0.0)
            predicted = np.append(model.grad, 0.0)
            np.testing.assert_allclose(predicted[on] - predicted[off], expected[on] - expected[off], atol=1e-9)


@pytest.mark.parametrize("name", SETS)
def test_a_search_of_the_model_keeps_to_the_set_and_knows_its_value(name):
    theta_set: BinarySet = SETS[name]
    for seed in range(4):
        G = quadratic(theta_set, seed).function
        rng = np.random.default_rng(seed)
        x = random_vertex(theta_set, rng).ravel()
        at = Quadratic(x, 0.5 * x @ G.Q @ x + G.c @ x, G.Q @ x + G.c, G.Q, G.Q)
        walk = quadratic_search(theta_set, at, rng)
        found = walk.theta.reshape(theta_set.shape)
        assert theta_set.violation(found) == 0
        value = 0.5 * walk.theta @ G.Q @ walk.theta + G.c @ walk.theta
        assert walk.value == pytest.approx(value, abs=1e-9)
        assert walk.value <= at.value
        points = all_points(theta_set)
        lowest = float((0.5 * np.einsum("ij,ij->i", points @ G.Q, points) + points @ G.c).min())
        assert walk.value == pytest.approx(lowest, abs=0.3 * abs(lowest) + 1e-9), "one search comes near the optimum"


@pytest.mark.parametrize("make", [readme_example, walking, lambda: quadratic(mb.Budget(10, 4), 3, n_lam=1)])
def test_a_run_that_is_stopped_in_any_phase_resumes_to_the_same_bits(make, tmp_path):
    whole = mb.relax_and_penalize(make(), seed=1)
    phases = whole.trace.column("phase")
    assert {"learn", "search"} <= set(phases)
    steps = [int(np.flatnonzero(phases == phase)[k]) for phase in ("learn", "search") for k in (0, -1)]
    for stop in steps:
        file, seen = tmp_path / f"{stop}.checkpoint", [0]

        def stopping(event, stop=stop, seen=seen):
            seen[0] += 1
            if seen[0] > stop:
                event.stop()

        mb.relax_and_penalize(make(), seed=1, checkpoint=file, callbacks=[stopping])
        resumed = mb.relax_and_penalize(make(), seed=1, checkpoint=file)
        assert np.array_equal(resumed.theta, whole.theta)
        assert (resumed.value, resumed.n_evaluations) == (whole.value, whole.n_evaluations)
        assert resumed.certificate == whole.certificate


class Proposing:
    """Offers its optimum as the point to search from next."""

    def __init__(self, proposal=None):
        self.inner = readme_example()
        self.theta_set, self.lam_set = self.inner.theta_set, self.inner.lam_set
        self.proposal = mb.enumerate_binary(self.inner).theta if proposal is None else proposal

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        return self.inner.evaluate(theta, lam)

    def propose(self, theta, lam, rng):
        assert not theta.flags.writeable
        return self.proposal


def test_proposals_are_searched_from():
    result = mb.relax_and_penalize(Proposing(), seed=0)
    assert result.value == pytest.approx(READMES_OPTIMUM, abs=1e-6)
    assert "found by search 1 from a point that the problem proposed" in result.message


@pytest.mark.parametrize(
    ("proposal", "text"),
    [
        (np.zeros(20), r"propose must return a theta that is a boolean array of shape \(20,\)"),
        (np.ones(20, dtype=bool), r"propose must return a point of Budget\(20, 5\), got one outside"),
    ],
)
def test_a_proposal_outside_the_set_is_refused(proposal, text):
    with pytest.raises(mb.InvalidInput, match=text):
        mb.relax_and_penalize(Proposing(proposal), seed=0)


def test_a_point_without_a_value_does_not_cost_the_answer():
    """The path and its polish never meet the pair of entries that breaks the function; random points do."""
    whole = readme_example()
    path = mb.relax_and_penalize(whole, seed=0, starts=1)
    broken = int(np.flatnonzero(~path.theta)[-1])

    def function(theta):
        value, grad = whole.function(theta)
        return (np.nan if set(np.unique(theta)) <= {0.0, 1.0} and theta[broken] == 1 and theta[0] == 1 else value), grad

    result = mb.relax_and_penalize(mb.FunctionProblem(function, whole.theta_set), seed=0)
    assert result.value <= path.value


def test_a_planted_hypercube():
    problem, star = planted("hypercube", 12)
    assert np.array_equal(mb.relax_and_penalize(problem, seed=0).theta, star)


def rows(seed: int, n: int, d: int, budget: int, kind: type[mb.RidgeDistillation] = mb.RidgeDistillation) -> mb.RidgeDistillation:
    rng = np.random.default_rng(seed)
    X, coef = rng.normal(size=(2 * n, d)), rng.normal(size=d)
    y = X @ coef + rng.normal(size=2 * n)
    return kind(X[:n], y[:n], X[n:], y[n:], budget=budget)


@pytest.mark.slow
def test_random_searches_find_answers_with_another_lam(monkeypatch):
    monkeypatch.setattr("mixbin.methods.comparison.MOST_POINTS", 0)  # the comparison of all points would leave nothing to search
    problems = [rows(seed, 14, 3, 5) for seed in (1, 2)]
    found = np.array([mb.relax_and_penalize(problem, seed=0).value for problem in problems])
    monkeypatch.setattr("mixbin.methods.searches.LAM_SPREAD", 0.0)
    from_the_best_lam = np.array([mb.relax_and_penalize(problem, seed=0).value for problem in problems])
    assert np.mean(found / from_the_best_lam) < 1.0 - 1e-3


class OneExchangeACall(mb.RidgeDistillation):
    """Its own search makes one exchange and returns; ``calls`` notes each lam and whether an exchange was made."""

    def improve(self, theta, lam, *, warm=None, max_cost=np.inf):
        off, on, value = self.best_move(theta, lam)
        change = value - self.evaluate(theta, lam).value
        falls = change < -1e-9
        self.calls.append((float(lam), falls))
        return Improved(moved(theta > 0.5, off, on)) if falls else Improved(theta > 0.5, self.theta_set.n_moves(theta), change)


@pytest.mark.parametrize(
    ("search", "largest", "alternates"), [("portfolio", 10_000, True), ("portfolio", 13, False), ("path", 10_000, False)]
)
def test_lam_and_the_problems_own_search_alternate(monkeypatch, search, largest, alternates):
    monkeypatch.setattr("mixbin.methods.run.LARGEST_ALTERNATION", largest)
    problem = rows(2, 14, 3, 5, OneExchangeACall)
    problem.calls = []
    result = mb.relax_and_penalize(problem, seed=0, search=search, starts=4)
    after_an_exchange = [
        (before, lam) for (before, falls), (lam, _) in zip(problem.calls, problem.calls[1:], strict=False) if falls
    ]
    assert after_an_exchange
    assert any(before == lam for before, lam in after_an_exchange) is not alternates
    assert result.certificate.one_move_optimal is True

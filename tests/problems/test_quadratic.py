"""QuadraticProblem against brute force and against the same function as a FunctionProblem."""

import numpy as np
import pytest
from scipy import sparse

import mixbin as mb
from mixbin.problems import quadratic as module
from mixbin.testing import check_problem
from tests.instances import TINY_SETS, optimum, quadratic, tiny_set

NO_LAM = np.empty(0)
SETS = {name: tiny_set(name, np.random.default_rng(8)) for name in TINY_SETS}


def both(theta_set, seed, kind="indefinite"):
    function = quadratic(theta_set, seed, kind)
    return function, mb.QuadraticProblem(function.function.Q, function.function.c, theta_set)


@pytest.mark.parametrize("name", TINY_SETS)
def test_the_promises_of_a_problem(name):
    for kind in ("convex", "indefinite"):
        function, problem = both(SETS[name], 1, kind)
        other = mb.QuadraticProblem(function.function.Q, function.function.c + 1.0, SETS[name])
        check_problem(problem, others=[other], trials=2)


@pytest.mark.parametrize("name", TINY_SETS)
def test_the_optimum_and_a_true_bound(name):
    for seed, kind in ((2, "convex"), (3, "indefinite"), (4, "concave")):
        function, problem = both(SETS[name], seed, kind)
        result = mb.relax_and_penalize(problem, seed=0)
        best = optimum(function)
        assert result.value == pytest.approx(best, abs=1e-9)
        assert result.certificate.one_move_optimal
        for theta in (SETS[name].start(), SETS[name].start(np.random.default_rng(0)), result.theta.astype(float)):
            bound = problem.lower_bound(theta, NO_LAM)
            assert bound <= best
            assert np.isfinite(bound) == (kind == "convex")


def test_a_singular_convex_function_has_a_bound():
    A = np.random.default_rng(0).normal(size=(3, 12))
    problem = mb.QuadraticProblem(A.T @ A, -A.T @ A @ np.ones(12), mb.Hypercube(12))
    assert mb.relax_and_penalize(problem, seed=0).certificate.gap == pytest.approx(0.0, abs=1e-6)


def test_sparse_dense_and_triangular_are_the_same_function():
    theta_set = mb.Budget(30, 10)
    Q = np.random.default_rng(2).normal(size=(30, 30)) * (np.random.default_rng(3).random((30, 30)) < 0.2)
    c = np.arange(30.0)
    upper = np.triu(Q + Q.T, 1) + np.diag(np.diagonal(Q))
    made = [mb.QuadraticProblem(it, c, theta_set) for it in (Q, sparse.csr_array(Q), sparse.coo_matrix(Q), upper)]
    theta = theta_set.start(np.random.default_rng(0))
    values = [problem.evaluate(theta, NO_LAM) for problem in made]
    for other in values[1:]:
        assert other.value == pytest.approx(values[0].value)
        np.testing.assert_allclose(other.grad_theta, values[0].grad_theta)


def test_beyond_the_size_of_its_search_q_stays_sparse(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_SEARCHED", 20)
    rng = np.random.default_rng(1)
    problem = mb.QuadraticProblem(sparse.random(30, 30, 0.2, rng=rng), rng.normal(size=30), mb.Budget(30, 6))
    assert sparse.issparse(problem.Q)
    check_problem(problem, trials=1)
    assert problem.lower_bound(problem.theta_set.start(), NO_LAM) == -np.inf


def test_a_limit_on_the_cost_is_kept():
    _, problem = both(mb.Budget(16, 6), 0)
    for cost in (1, 5, 20):
        assert problem.improve(problem.theta_set.vertex(np.ones(16)).astype(float), NO_LAM, max_cost=cost).cost <= cost


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((np.eye(3), np.ones(4), mb.Hypercube(4)), r"^Q must be a matrix of shape \(4, 4\)"),
        ((sparse.eye_array(3), np.ones(4), mb.Hypercube(4)), r"^Q must be a matrix of shape \(4, 4\)"),
        ((np.eye(4), np.ones(3), mb.Hypercube(4)), r"^c must be an array of shape \(4,\)"),
        ((np.full((2, 2), np.nan), np.ones(2), mb.Hypercube(2)), r"^Q must be finite"),
        ((sparse.csr_array([[np.inf, 0.0], [0.0, 1.0]]), np.ones(2), mb.Hypercube(2)), r"^Q must be a matrix of finite numbers"),
        ((sparse.csr_array(1j * np.eye(2)), np.ones(2), mb.Hypercube(2)), r"^Q must be a matrix of finite numbers"),
        ((np.full((2, 2), 1e150), np.ones(2), mb.Hypercube(2)), r"^Q must be numbers of at most 1e\+100.*divide Q and c"),
        ((sparse.eye_array(2) * -1e150, np.ones(2), mb.Hypercube(2)), r"^Q must be numbers of at most 1e\+100"),
        ((np.eye(2), [0.0, -1e200], mb.Hypercube(2)), r"^c must be numbers of at most 1e\+100"),
        ((np.eye(4), np.ones(4), 4), r"^theta_set must be a set of binary variables"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, text):
    with pytest.raises(mb.InvalidInput, match=text):
        mb.QuadraticProblem(*arguments)


@pytest.mark.parametrize("empty", [False, True])
def test_a_sparse_matrix_with_broken_indices_is_refused(empty):
    """SciPy would leave the memory of the matrix, and the process would end."""
    Q = sparse.csr_array((3, 3)) if empty else sparse.csr_array(np.eye(3))
    Q.indptr[1] = 10**6
    with pytest.raises(mb.InvalidInput, match=r"^Q must be a valid sparse matrix, got one with broken indices"):
        mb.QuadraticProblem(Q, np.ones(3), mb.Hypercube(3))

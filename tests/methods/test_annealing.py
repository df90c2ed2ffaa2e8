"""Annealing of sparse quadratic functions: classes without connections, optima that dynamic programming knows, evidence."""

import numpy as np
import pytest
from scipy import sparse

import mixbin as mb
from mixbin.methods.annealing import MOST_DESCENTS, Annealing, is_annealed
from mixbin.testing import check_problem

NO_LAM = np.empty(0)


def random_sparse(n, degree, seed):
    """A symmetric Q with about so many entries a row, some of them on the diagonal, and c."""
    rng = np.random.default_rng(seed)
    half = sparse.random_array((n, n), density=degree / (2 * n), rng=rng, data_sampler=rng.normal)
    return sparse.csr_array(half + half.T), rng.normal(size=n)


def chain(n, seed):
    """Neighbours are connected; the least value is found from left to right."""
    rng = np.random.default_rng(seed)
    pairs, c = rng.normal(size=n - 1) * 2, rng.normal(size=n)
    Q = sparse.diags_array([pairs, pairs], offsets=[1, -1], shape=(n, n))
    least = np.array([0.0, c[0]])  # with the last entry off, on
    for weight, cost in zip(pairs, c[1:], strict=True):
        least = np.array([least.min(), cost + min(least[0], least[1] + weight)])
    return Q, c, float(least.min())


@pytest.mark.parametrize(("n", "degree"), [(40, 3), (600, 12), (3_000, 5)])
def test_no_two_entries_of_a_class_are_connected(n, degree):
    Q, _ = random_sparse(n, degree, 0)
    found = Annealing(Q)
    assert sorted(found.order.tolist()) == list(range(n))
    dense = Q.toarray()
    for place, columns in found._parts:
        own = found.order[place]
        between = dense[np.ix_(own, own)]
        assert not between[~np.eye(own.size, dtype=bool)].any()
        np.testing.assert_array_equal(columns.toarray(), dense[np.ix_(found.order, own)])


def test_an_answer_is_a_binary_point_that_no_flip_improves():
    Q, c = random_sparse(700, 8, 1)
    rng = np.random.default_rng(2)
    theta = rng.random(700) < 0.5
    found, sweeps = Annealing(Q).run(theta, Q @ theta.astype(float) + c, rng, 50)
    assert 50 < sweeps <= 50 + MOST_DESCENTS
    x = found.astype(float)
    gradient = Q @ x + c
    changes = (1 - 2 * x) * gradient + 0.5 * Q.diagonal()
    assert changes.min() >= -1e-9
    assert 0.5 * x @ Q @ x + c @ x < 0.5 * theta @ Q @ theta + c @ theta


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_of_a_chain(seed):
    Q, c, best = chain(600, seed)
    problem = mb.QuadraticProblem(Q, c, mb.Hypercube(600))
    result = mb.relax_and_penalize(problem, seed=0)
    assert best - 1e-9 <= result.value <= best + 0.001 * abs(best)
    assert result.certificate.one_move_optimal


def test_a_problem_beyond_the_size_of_tabu_search_keeps_its_promises():
    Q, c = random_sparse(4_500, 6, 3)
    problem = mb.QuadraticProblem(Q, c, mb.Hypercube(4_500))
    start = problem.theta_set.vertex(np.zeros(4_500)).astype(float)
    found = problem.improve(start, NO_LAM)
    again = problem.improve(start, NO_LAM)
    np.testing.assert_array_equal(found.theta, again.theta)
    assert found.tried == 4_500
    best = problem.best_move(found.theta.astype(float), NO_LAM)
    assert best[2] >= problem.evaluate(found.theta.astype(float), NO_LAM).value - 1e-9


def test_the_conformance_suite():
    Q, c = random_sparse(500, 4, 4)
    other = mb.QuadraticProblem(Q, c + 1.0, mb.Hypercube(500))
    check_problem(mb.QuadraticProblem(Q, c, mb.Hypercube(500)), others=[other], trials=1)


@pytest.mark.parametrize("cost", [1, 30, 80, 150, 400])
def test_a_limit_on_the_cost_is_kept(cost):
    Q, c = random_sparse(800, 6, 5)
    problem = mb.QuadraticProblem(Q, c, mb.Hypercube(800))
    assert problem.improve(np.zeros(800), NO_LAM, max_cost=cost).cost <= cost


def test_a_dense_matrix_of_zeros_for_the_most_part_is_the_same_problem():
    Q, c = random_sparse(600, 5, 6)
    values = [
        mb.relax_and_penalize(mb.QuadraticProblem(it, c, mb.Hypercube(600)), seed=0, max_evaluations=3_000).value
        for it in (Q, Q.toarray())
    ]
    assert values[0] == values[1]


def test_dense_small_and_constrained_functions_are_not_annealed():
    Q, c = random_sparse(600, 5, 7)
    assert is_annealed(Q)
    assert not is_annealed(Q[:400][:, :400])
    assert not is_annealed(np.ones((600, 600)))
    star = sparse.lil_array((600, 600))
    star[0, :] = 1.0
    assert not is_annealed(sparse.csr_array(star))
    assert not sparse.issparse(mb.QuadraticProblem(Q, c, mb.Budget(600, 60)).Q)


def test_a_diagonal_matrix_has_a_closed_form():
    c = np.random.default_rng(8).normal(size=5_000)
    result = mb.relax_and_penalize(mb.QuadraticProblem(2.0 * sparse.eye_array(5_000), c, mb.Hypercube(5_000)), seed=0)
    assert result.value == pytest.approx(np.minimum(c + 1.0, 0.0).sum())


def test_a_convex_function_keeps_its_bound():
    n = 600
    laplacian = sparse.diags_array([2 * np.ones(n), -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1])
    problem = mb.QuadraticProblem(laplacian, np.random.default_rng(9).normal(size=n), mb.Hypercube(n))
    result = mb.relax_and_penalize(problem, seed=0)
    bound = problem.lower_bound(result.theta.astype(float), NO_LAM)
    assert -np.inf < bound <= result.value

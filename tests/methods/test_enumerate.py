"""Enumeration is the yardstick: it is itself compared with a brute force written independently."""

import numpy as np
import pytest

import mixbin as mb
from tests.instances import optimum, quadratic


@pytest.mark.parametrize("theta_set", [mb.Budget(9, 4), mb.OneHot(4, 3), mb.Hypercube(7)], ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_finds_the_brute_force_optimum(theta_set, seed):
    problem = quadratic(theta_set, seed)
    result = mb.enumerate_binary(problem)
    assert result.value == pytest.approx(optimum(problem))
    assert result.n_evaluations == theta_set.cardinality()
    assert problem.evaluate(result.theta.astype(float), result.lam).value == result.value


def test_knapsack_by_bits():
    weights, capacity = np.array([3.0, 1.0, 4.0, 1.0, 5.0]), 6.0
    problem = quadratic(mb.Knapsack(weights, capacity), 0)
    points = [np.array([int(b) for b in f"{i:05b}"], dtype=float) for i in range(32)]
    best = min(problem.evaluate(x, np.empty(0)).value for x in points if x @ weights <= capacity)
    assert mb.enumerate_binary(problem).value == best


def test_lam_is_minimised_at_each_point():
    problem = quadratic(mb.Budget(6, 2), 0, n_lam=1)
    result = mb.enumerate_binary(problem)
    np.testing.assert_allclose(result.lam, problem.lam_set.project(problem.function.B @ result.theta), atol=1e-4)


def test_refuses_large_sets():
    with pytest.raises(mb.InvalidInput, match="at most 1048576 binary points"):
        mb.enumerate_binary(quadratic(mb.Hypercube(100), 0))

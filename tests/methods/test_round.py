"""The baselines: top-k is feasible, simple rounding says by how much it is not, None does not round."""

import numpy as np
import pytest

import mixbin as mb
from mixbin import Status
from tests.instances import QuadraticG, quadratic


def spread_out(size=20, k=6):
    """A convex problem whose relaxed solution is k / size everywhere: simple rounding selects nothing."""
    return mb.FunctionProblem(QuadraticG(np.eye(size), np.zeros(size)), mb.Budget(size, k))


def test_top_k_is_the_vertex_of_the_relaxed_point():
    problem = quadratic(mb.Budget(20, 6), 0, "convex", n_lam=1)
    relaxed = mb.relax_and_round(problem, rounding=None, seed=0)
    rounded = mb.relax_and_round(problem, rounding="top-k", seed=0)
    assert relaxed.status is Status.RELAXED
    assert relaxed.theta.dtype == np.float64
    assert problem.theta_set.contains(relaxed.theta)
    assert rounded.status is Status.REPAIRED
    np.testing.assert_array_equal(rounded.theta, problem.theta_set.vertex(relaxed.theta))
    assert relaxed.value <= rounded.value


def test_simple_rounding_tells_its_violation():
    result = mb.relax_and_round(spread_out(), rounding="simple", seed=0)
    assert result.status is Status.INFEASIBLE
    assert result.violation == 6
    assert not result.theta.any()
    assert "by 6" in result.message


def test_simple_rounding_that_happens_to_be_feasible():
    cost = np.arange(5.0)
    problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(5, 2))
    result = mb.relax_and_round(problem, rounding="simple", seed=0)
    assert result.status is Status.REPAIRED
    assert result.violation == 0
    np.testing.assert_array_equal(result.theta, [True, True, False, False, False])


def test_an_empty_simple_selection_has_value_inf():
    """Also with a lam to re-optimise, which is then left alone."""

    def G(theta, lam):
        total = theta.sum()
        return (np.inf if total == 0 else 1 / total + float(lam) ** 2), -np.ones(20) / max(total, 1e-9) ** 2, 2 * lam

    problem = mb.FunctionProblem(G, mb.Budget(20, 6), mb.Box(0.0, 1.0))
    result = mb.relax_and_round(problem, rounding="simple", seed=0, starts=1)
    assert result.value == np.inf
    assert result.status is Status.INFEASIBLE


@pytest.mark.parametrize("rounding", ["top-k", "simple", None])
def test_as_many_evaluations_as_told(rounding):
    problem = quadratic(mb.Budget(20, 6), 0, "convex", n_lam=1)
    result = mb.relax_and_round(problem, rounding=rounding, max_evaluations=25, seed=0)
    assert result.n_evaluations <= 25


def test_lam_is_reoptimised_after_rounding_unless_told_otherwise():
    problem = quadratic(mb.Budget(20, 6), 0, "convex", n_lam=2)
    default = mb.relax_and_round(problem, seed=0, starts=1)
    kept = mb.relax_and_round(problem, seed=0, starts=1, reoptimize_lam=False)
    np.testing.assert_allclose(default.lam, problem.lam_set.project(problem.function.B @ default.theta), atol=1e-4)
    np.testing.assert_array_equal(kept.lam, kept.relaxed.lam)
    assert default.value <= kept.value


def test_stop_gives_a_feasible_answer():
    problem = spread_out()
    result = mb.relax_and_round(problem, seed=0, callbacks=[lambda event: event.stop()])
    assert result.status is Status.STOPPED
    assert result.theta.sum() == 6

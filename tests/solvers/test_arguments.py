"""What the solvers refuse, and what they say."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Quadratic
from mixbin.solvers import FixedTheta, Objective
from tests.instances import quadratic

NAN, INF = float("nan"), float("inf")
POSITIVE = [0.0, -1.0, NAN, INF, "short", True]
TOL = [-1e-9, NAN, INF, "small", None, True]
WHOLE = [0, -1, 2.5, "ten", NAN, INF, None, True]
BAD = [
    (mb.FrankWolfe, "tol", TOL),
    (mb.Saga, "step_size", POSITIVE),
    (mb.Saga, "step_size_lam", POSITIVE),
    (mb.Saga, "batch", WHOLE),
    (mb.Saga, "tol", TOL),
    (mb.Saga, "memory_limit", WHOLE),
    (mb.StochasticGradient, "step_size", POSITIVE),
    (mb.StochasticGradient, "step_size_lam", POSITIVE),
    (mb.StochasticGradient, "schedule", ["linear", None, 3, True, ["sqrt"]]),
    (mb.StochasticGradient, "decay", [-1.0, NAN, INF, "fast", None, True]),
    (mb.StochasticGradient, "batch", WHOLE),
    (mb.StochasticGradient, "tol", TOL),
]


@pytest.mark.parametrize(("kind", "name", "value"), [(k, n, v) for k, n, values in BAD for v in values], ids=str)
def test_bad_arguments(kind, name, value):
    with pytest.raises(mb.InvalidInput, match=f"^{name} must be"):
        kind(**{name: value})


@pytest.mark.parametrize("kind", [mb.Saga, mb.StochasticGradient])
def test_sampling_needs_a_finite_sum(kind):
    problem = quadratic(mb.Budget(6, 2), 0, n_lam=1)
    text = rf'^problem must be a FiniteSum \(.*\) for {kind.__name__}, got FunctionProblem; use solver="spectral"'
    with pytest.raises(mb.InvalidInput, match=text):
        mb.relax_and_penalize(problem, solver=kind(), seed=0)
    checked = CheckedProblem(problem)
    fixed = FixedTheta(Objective(checked, Quadratic()), np.zeros(6))
    with pytest.raises(mb.InvalidInput, match=text):
        kind().init(fixed, np.empty(0), np.array([0.5]), np.random.default_rng(0))
    assert checked.n_evaluations == 0

"""The published upper level: a step of it is a step of the reference code, and it can be run and compared like any problem."""

import importlib.util

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Quadratic
from mixbin.solvers import Objective
from tests.problems.test_ridge import make_data
from tests.shared_data import DATA

EMPTY = np.empty(0)


def reference():
    """``paper_step`` as it lies beside the project."""
    path = DATA.parent / "paper_step.py"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the project")
    spec = importlib.util.spec_from_file_location("paper_step", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.paper_step


def test_three_steps_are_those_of_the_reference():
    paper_step = reference()
    X, y, X_val, y_val = make_data()
    problem = mb.PublishedGradient(mb.RidgeDistillation(X, y, X_val, y_val, budget=12, alpha=0.5), batch=9, seed=4)
    solver, objective = mb.ProjectedGradient(step_size=1e-3), Objective(CheckedProblem(problem), Quadratic(), 50.0)
    v = np.full(40, 0.3)
    state = solver.init(objective, v, EMPTY, np.random.default_rng(0))
    for draw in range(3):
        rng = np.random.default_rng([4, draw])
        v = paper_step(v, X, y, X_val, y_val, s=0.5, step=1e-3, epsilon=50.0, batch=9, rng=rng)
        state = solver.step(objective, state)
        np.testing.assert_allclose(state.theta, v, atol=1e-10)


def test_all_coordinates_and_both_terms_make_the_exact_gradient():
    problem = mb.RidgeDistillation(*make_data(3), budget=12, alpha=0.5)
    theta = np.random.default_rng(0).uniform(size=40)
    first, second = problem.gradient_terms(theta)
    np.testing.assert_allclose(first / 40 + second, problem.evaluate(theta, EMPTY).grad_theta, rtol=1e-9)
    whole = mb.PublishedGradient(problem, batch=40).evaluate(theta, EMPTY)
    np.testing.assert_allclose(whole.grad_theta, first + second, rtol=1e-9)
    assert whole.value == problem.evaluate(theta, EMPTY).value


def test_it_is_pure_and_the_draw_goes_on_in_the_warm_state():
    problem = mb.PublishedGradient(mb.RidgeDistillation(*make_data(), budget=12, alpha=0.5), batch=9)
    theta = np.full(40, 0.3)
    once, twice = problem.evaluate(theta, EMPTY), problem.evaluate(theta, EMPTY)
    np.testing.assert_array_equal(once.grad_theta, twice.grad_theta)
    assert not np.array_equal(problem.evaluate(theta, EMPTY, warm=once.warm).grad_theta, once.grad_theta)


def test_a_run_with_the_published_settings():
    """Few steps, but the published schedule: it ends feasible."""
    problem = mb.RidgeDistillation(*make_data(), budget=12, alpha=0.5)
    result = mb.relax_and_penalize(
        mb.PublishedGradient(problem, batch=9),
        solver=mb.ProjectedGradient(step_size=0.05),
        epsilon0=10.0,
        beta=0.5,
        inner_steps=20,
        relax_first=False,
        starts=1,
        polish=False,
        seed=0,
    )
    assert result.theta.sum() == 12
    assert result.value == pytest.approx(problem.evaluate(result.theta.astype(float), EMPTY).value)


BAD = [("problem", None), ("batch", 0), ("batch", 41), ("batch", 1.5), ("seed", -1)]


@pytest.mark.parametrize(("name", "value"), BAD, ids=str)
def test_bad_arguments(name, value):
    arguments = {"problem": mb.RidgeDistillation(*make_data(), budget=12, alpha=0.5), "batch": 9} | {name: value}
    with pytest.raises(mb.InvalidInput, match=f"^{name} must be"):
        mb.PublishedGradient(**arguments)


def test_a_free_alpha_is_refused():
    with pytest.raises(mb.InvalidInput, match=r"^problem must be a RidgeDistillation with a fixed alpha"):
        mb.PublishedGradient(mb.RidgeDistillation(*make_data(), budget=12))

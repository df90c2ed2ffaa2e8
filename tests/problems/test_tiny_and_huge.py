"""Fits whose numbers are near the smallest or the largest: an answer, or a refusal in our words, and no warning of NumPy."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.problems.strength import Strength
from mixbin.solvers.spectral import LONGEST, _along


def table(x: float, y: float):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 3))
    return X * x, (X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=12)) * y


@pytest.mark.parametrize("y", [1e-150, 1e-155, 1e-160])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tiny_targets(y):
    X, target = table(1.0, y)
    model = mb.DistillationRegressor(budget=5, method="relax", random_state=0, max_evaluations=15).fit(X, target)
    assert np.isfinite(model.coef_).all()


def test_a_penalty_near_the_largest_number_leaves_no_coefficient():
    X, y = table(10.0, 1.0)
    problem = mb.RidgeDistillation(X, y, X, y, budget=5, alpha=1.26e308, standardize=True)
    coef, _ = problem.model(np.ones(12))
    np.testing.assert_allclose(coef, 0.0, atol=1e-300)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tiny_columns_and_a_tiny_penalty():
    X, y = table(1e-160, 1.0)
    try:
        model = mb.DistillationRegressor(budget=5, alpha=1e-300, standardize=False, random_state=0).fit(X, y)
    except (mb.DivergedError, mb.InvalidInput):
        return
    assert np.isfinite(model.coef_).all()


def test_the_bound_of_a_range_from_the_smallest_to_the_largest():
    strength = Strength((1e-300, 1e300))
    assert strength.at_bound("alpha", 1.0, "") is None
    assert "upper" in strength.at_bound("alpha", 1e300, "")


def test_a_step_that_is_too_long_is_cut_off():
    slope = np.array([1e-10, -2.0, 0.0])
    assert np.array_equal(_along(slope, -3.0), slope * -3.0)
    long = _along(slope, -1.5e308)
    np.testing.assert_allclose(long, [-1.5e298, LONGEST, 0.0])


@pytest.mark.parametrize("size", [1e-55, 1e-45, 1e-38, 1.0, 1e38, 1e45])
def test_targets_that_do_not_fit_in_the_precision_of_x(size):
    """A table of float32 has rows of float32, in which 1e-45 would be 0 and 1e45 infinite."""
    X, y = table(1.0, 1.0)
    exact = mb.RidgeDistillation(X, y, X, y, budget=5, alpha=0.1).model(np.ones(12))[0]
    single = X.astype(np.float32)
    coef = mb.RidgeDistillation(single, y * size, single, y * size, budget=5, alpha=0.1).model(np.ones(12))[0]
    np.testing.assert_allclose(coef / size, exact, rtol=1e-5)

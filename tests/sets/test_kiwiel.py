"""The general quadratic knapsack against rational arithmetic, and its errors."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mixbin.errors import InfeasibleSet, InvalidInput
from mixbin.sets import Budget, Knapsack, project_knapsack
from tests.sets import exact
from tests.sets.cases import points

few_bits = st.sampled_from([0.1, 0.5, 0.75, 1.0, 1.0, 2.0, 3.0])
scale = st.one_of(few_bits, st.floats(0.05, 20.0))
signed = st.one_of(scale, scale.map(lambda b: -b), st.just(0.0))
bound = st.one_of(st.sampled_from([-1.0, 0.0, 0.0, 1.0]), st.floats(-2, 2))


@st.composite
def problems(draw, a=None):
    size = draw(st.integers(1, 7))

    def vector(elements):
        return np.array(draw(st.lists(elements, min_size=size, max_size=size)))

    near = draw(st.sampled_from([0.0, 0.0, 1e6, 1e12, -1e15]))
    d, b = vector(scale), vector(signed)
    # With a large multiplier in front of them, entries of different weights are free at once.
    a = near * b / d + (draw(points(size)) if a is None else vector(a))
    low, width = vector(bound), vector(st.one_of(st.just(1.0), st.floats(0, 3)))
    high, equality = low + width, draw(st.booleans())
    least, most = np.minimum(b * low, b * high).sum(), np.maximum(b * low, b * high).sum()
    assume(least < most)
    share = draw(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0])))
    r = least + share * (most - least)
    return a, d, b, low, high, min(max(r, least), most), equality


@pytest.mark.slow
@settings(max_examples=6 * settings().max_examples)
@given(problem=problems())
def test_general_knapsack_is_exact(problem):
    a, d, b, low, high, r, equality = problem
    x = project_knapsack(a, metric=d, weights=b, lower=low, upper=high, capacity=r, equality=equality)
    np.testing.assert_allclose(x, exact.knapsack(*problem), rtol=0, atol=1e-9)
    assert np.all((low <= x) & (x <= high))


@settings(max_examples=2 * settings().max_examples)
@given(problem=problems(a=st.floats(-1e6, 1e6)))
def test_the_capacity_is_met(problem):
    a, d, b, low, high, r, equality = problem
    x = project_knapsack(a, metric=d, weights=b, lower=low, upper=high, capacity=r, equality=equality)
    reach = np.abs(b) @ np.maximum(np.abs(low), np.abs(high))
    assert b @ x <= r + 1e-12 * reach
    assert not equality or b @ x >= r - 1e-12 * reach


@pytest.mark.parametrize("magnitude", [1.0, 1e6, 1e12, 1e200])
def test_optimality_at_size(magnitude):
    rng = np.random.default_rng(0)
    n = 20_000
    a, d, b = magnitude * rng.normal(size=n), rng.uniform(0.5, 2, n), rng.normal(size=n)
    low, high = rng.uniform(-1, 0, n), rng.uniform(0, 1, n)
    x = project_knapsack(a, metric=d, weights=b, lower=low, upper=high, capacity=10.0, equality=True)
    assert b @ x == pytest.approx(10.0, abs=1e-10)
    # Stationarity: d (a - x) = t b on free entries, with the sign of the bound elsewhere.
    force = d * (a - x) / b
    free = (x > low) & (x < high)
    t = np.median(force[free])
    slack = 1e-9 * magnitude
    assert np.abs(force[free] - t).max() <= slack
    assert np.all((d * (a - x) - t * b)[x == high] >= -slack)
    assert np.all((d * (a - x) - t * b)[x == low] <= slack)


def test_defaults_are_the_budget_and_shapes_are_kept():
    a = np.random.default_rng(0).normal(size=(4, 5))
    flat = Budget(20, 6).project(a.ravel())
    np.testing.assert_allclose(project_knapsack(a, capacity=6, equality=True), flat.reshape(4, 5), atol=1e-14)
    assert project_knapsack(0.7, capacity=0.5).shape == ()


def test_a_point_that_fits_is_only_clipped():
    a = np.array([0.2, -1.0, 3.0])
    x = project_knapsack(a, weights=[1.0, 5.0, 0.0], capacity=1.0)
    assert np.array_equal(x, [0.2, 0.0, 1.0])
    assert not np.shares_memory(x, a)


def test_zero_weights_are_only_clipped():
    x = project_knapsack([2.0, 0.3, 0.9], weights=[0.0, 1.0, 1.0], capacity=0.4, equality=True)
    np.testing.assert_allclose(x, [1.0, 0.0, 0.4], atol=1e-15)


def test_negative_weights_are_flipped():
    x = project_knapsack([0.5, 0.5], weights=[1.0, -1.0], capacity=-0.5)
    np.testing.assert_allclose(x, [0.25, 0.75], atol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"a": [0.0, np.nan]}, InvalidInput, "a"),
        ({"a": "text"}, InvalidInput, "a"),
        ({"metric": 0.0}, InvalidInput, "metric"),
        ({"metric": [1.0, -1.0]}, InvalidInput, "metric"),
        ({"metric": [1.0, 1.0, 1.0]}, InvalidInput, "metric"),
        ({"weights": [1.0, np.inf]}, InvalidInput, "weights"),
        ({"weights": [[1.0, 1.0]]}, InvalidInput, "weights"),
        ({"weights": 1e308, "lower": -2.0, "upper": 2.0}, InvalidInput, "weights"),
        ({"lower": 2.0}, InfeasibleSet, "lower"),
        ({"lower": [0.0, "a"]}, InvalidInput, "lower"),
        ({"upper": [1.0, np.nan]}, InvalidInput, "upper"),
        ({"upper": [1.0, -1.0]}, InfeasibleSet, "lower"),
        ({"capacity": -0.1}, InfeasibleSet, "capacity"),
        ({"capacity": 2.1, "equality": True}, InfeasibleSet, "capacity"),
        ({"capacity": np.nan}, InvalidInput, "capacity"),
        ({"capacity": None}, InvalidInput, "capacity"),
        ({"equality": 1}, InvalidInput, "equality"),
    ],
)
def test_bad_arguments_are_named(arguments, error, name):
    arguments = {"a": [0.5, 0.5], "capacity": 1.0} | arguments
    with pytest.raises(error, match=rf"^{name} must be") as caught:
        project_knapsack(arguments.pop("a"), **arguments)
    assert type(caught.value) is error


def test_a_capacity_at_the_end_of_the_reach_is_met_despite_rounding():
    weights = [0.1] * 3
    x = project_knapsack([5.0, 0.0, 0.0], weights=weights, capacity=0.3, equality=True)
    np.testing.assert_allclose(x, 1.0, rtol=1e-15)
    assert Knapsack(weights, 0.3).contains(x)
    assert np.array_equal(project_knapsack([5.0, 1.0], capacity=0.0), [0.0, 0.0])

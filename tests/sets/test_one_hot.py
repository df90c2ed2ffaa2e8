"""One-hot rows: the simplex."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixbin.sets import OneHot


@given(weights=st.lists(st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-3, 1.0)), min_size=1, max_size=8).filter(any))
def test_distance_of_at_least_one_half_means_no_entry_above_one_half(weights):
    x = np.array(weights)[None, :] / np.sum(weights)
    theta_set = OneHot(1, x.size)
    assert theta_set.contains(x)
    distance = max(1.0 - x.max(), np.sort(x.ravel())[-2] if x.size > 1 else 0.0)
    assert theta_set.distance_to_binary(x) == pytest.approx(distance, abs=1e-15)
    if abs(x.max() - 0.5) > 1e-12:
        assert (theta_set.distance_to_binary(x) >= 0.5) == bool(np.all(x <= 0.5))


def test_at_one_half_the_distance_is_one_half():
    assert OneHot(1, 3).distance_to_binary([[0.5, 0.5, 0.0]]) == 0.5


def test_violation_counts_rows():
    assert OneHot(3, 2).violation([[1, 1], [0, 0], [0, 1]]) == 2.0


def test_an_entry_far_above_one_is_not_mistaken_for_a_vertex():
    assert np.array_equal(OneHot(1, 2).project([[5.0, 0.0]]), [[1.0, 0.0]])
    assert np.array_equal(OneHot(1, 2).project([[-5.0, -5.0]]), [[0.5, 0.5]])


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_long_rows_sum_to_one(scale):
    x = scale * np.random.default_rng(0).normal(size=(2, 500_000))
    x[1, 3] = 0.999  # what is left for the others is far below the rounding of their running sum
    p = OneHot(2, 500_000).project(x)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-13)
    assert np.abs(OneHot(2, 500_000).project(p) - p).max() <= 1e-15


def test_rows_of_the_simplex_come_back_to_the_bit():
    x = np.random.default_rng(0).dirichlet(np.ones(7), size=50)
    x[::2] += 1.0
    p = OneHot(50, 7).project(x)
    assert np.array_equal(OneHot(50, 7).project(p)[np.abs(p.sum(1) - 1) <= 4e-16], p[np.abs(p.sum(1) - 1) <= 4e-16])

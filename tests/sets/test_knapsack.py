"""The knapsack's own rules: rounding of sums of weights, and its greedy repair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixbin.sets import Knapsack


def test_sums_of_weights_are_forgiven_their_rounding():
    theta_set = Knapsack([0.1, 0.2, 0.3], 0.3)
    assert 0.1 + 0.2 > 0.3
    assert theta_set.contains([1, 1, 0])
    assert theta_set.violation([1, 1, 0]) == 0.0
    assert theta_set.vertex([0.9, 0.9, 0.1]).tolist() == [True, True, False]
    assert theta_set.violation([1, 0, 1]) == pytest.approx(0.1)


def test_vertex_takes_the_largest_that_fit():
    theta_set = Knapsack([3.0, 2.0, 2.0, 1.0, 9.0], 4.0)
    assert theta_set.vertex([0.9, 0.8, 0.7, 0.6, 1.0]).tolist() == [True, False, False, True, False]
    assert theta_set.vertex([0.9, 0.9, 0.9, 0.4, 0.4]).tolist() == [True, False, False, False, False]
    assert theta_set.vertex([0.1, 0.9, 0.9, 0.9, 0.2]).tolist() == [False, True, True, False, False]


@given(
    x=st.lists(st.sampled_from([0.0, 0.4, 0.5, 0.6, 0.8, 1.0]), min_size=12, max_size=12),
    weights=st.lists(st.integers(1, 9), min_size=12, max_size=12),
    capacity=st.integers(1, 40),
)
def test_vertex_equals_the_greedy_loop(x, weights, capacity):
    expected, room = np.zeros(12, bool), capacity
    for i in np.argsort(-np.array(x), kind="stable"):
        if x[i] >= 0.5 and weights[i] <= room:
            expected[i] = True
            room -= weights[i]
    assert np.array_equal(Knapsack(weights, capacity).vertex(x), expected)


def test_oracle_spends_the_capacity_on_the_best_ratios():
    theta_set = Knapsack([1.0, 2.0, 4.0], 3.0)
    assert theta_set.linear_oracle([-1.0, -6.0, -8.0]).tolist() == [0.0, 1.0, 0.25]
    assert theta_set.linear_oracle([1.0, 0.0, 2.0]).tolist() == [0.0, 0.0, 0.0]
    assert theta_set.linear_oracle([-1e300, -1e-300, 1.0]).tolist() == [1.0, 1.0, 0.0]


def test_the_weights_are_copied_and_frozen():
    weights = np.array([1.0, 2.0])
    theta_set = Knapsack(weights, 2.0)
    weights[0] = 100.0
    assert theta_set.weights[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        theta_set.weights[0] = 5.0


def test_centre():
    assert Knapsack([1.0, 3.0], 1.0).start().tolist() == [0.25, 0.25]
    assert Knapsack([1.0, 3.0], 10.0).start().tolist() == [0.5, 0.5]


@pytest.mark.parametrize("heavy", [1e6, 1e10, 1e13, 9e14])
def test_a_heavy_entry_leaves_the_others_their_share(heavy):
    """The last digit of an entry of great weight may be worth more than the capacity: none of that is taken from the others."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        weights = 10 ** rng.uniform(-3, 1, size=4)
        weights[rng.integers(4)] = heavy
        knapsack = Knapsack(weights, 10 ** rng.uniform(0, 1))
        x = knapsack.project(rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0], size=4))
        np.testing.assert_allclose(knapsack.project(x), x, rtol=0, atol=1e-14)

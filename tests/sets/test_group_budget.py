"""Counts per group: bounds that tighten each other, projections against rational arithmetic, moves and the centre."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mixbin as mb
from mixbin.errors import InfeasibleSet, InvalidInput
from mixbin.sets import Budget, GroupBudget, _capped_simplex
from tests.sets import exact
from tests.sets.cases import group_budget, points


@st.composite
def cases(draw, sizes=(1, 14), most_groups=5):
    """Sets with random groups, bounds and totals, feasible by construction: the bounds are drawn around the counts of a point."""
    m, last = draw(st.integers(*sizes)), draw(st.integers(0, most_groups - 1))
    labels = np.array(draw(st.lists(st.integers(0, last), min_size=m, max_size=m)))
    chosen = np.array(draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    names = np.unique(labels)
    counts = np.array([np.count_nonzero(chosen & (labels == name)) for name in names])
    below, above = (np.array(draw(st.lists(st.integers(0, 3), min_size=names.size, max_size=names.size))) for _ in range(2))
    k = int(counts.sum()) if counts.sum() and draw(st.booleans()) else None
    return group_budget(labels, np.maximum(counts - below, 0), counts + above, k)


@given(case=cases(), data=st.data())
def test_projection_onto_any_groups_is_exact(case, data):
    x = data.draw(points(case.set.shape))
    np.testing.assert_allclose(case.set.project(x), exact.project(case, x), rtol=0, atol=1e-12)


@pytest.mark.slow
@settings(max_examples=40)
@given(case=cases((40, 60), 3), data=st.data())
def test_projection_of_long_groups_is_exact(case, data):
    """With small constants, the code of the budget for long vectors runs on short ones."""
    small = {"SAMPLE_SIZE": 8, "MOST_SAMPLED_BREAKPOINTS": 4, "MERGED_AT_ONCE": 2, "CACHE_BLOCK": 5}
    x = data.draw(points(case.set.shape))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in small.items():
            patch.setattr(_capped_simplex, name, value)
        p = case.set.project(x)
    np.testing.assert_allclose(p, exact.project(case, x), rtol=0, atol=1e-12)


@given(case=cases((1, 9)), data=st.data())
def test_every_count_within_the_bounds_is_that_of_some_point(case, data):
    counts = np.array([np.bincount(case.set.codes, weights=v, minlength=case.set.low.size) for v in case.set.vertices()])
    assert np.array_equal(counts.min(axis=0), case.set.low)
    assert np.array_equal(counts.max(axis=0), case.set.high)
    assert len(counts) == case.set.cardinality()


def test_one_group_is_a_budget():
    x = np.random.default_rng(0).normal(size=50)
    one, budget = GroupBudget(np.zeros(50, int), 0, 50, k=7), Budget(50, 7)
    assert np.array_equal(one.project(x), budget.project(x))
    assert np.array_equal(one.vertex(x), budget.vertex(x))
    assert one.cardinality() == budget.cardinality()
    theta = budget.vertex(x)
    assert one.n_moves(theta) == budget.n_moves(theta)
    assert one.epsilon_star(theta, x) == budget.epsilon_star(theta, x)


def test_bounds_as_count_array_and_mapping_are_one_set():
    groups = ["yes", "no", "no", "yes", "no"]
    sets = [GroupBudget(groups, low, 2) for low in (1, [1, 1], np.array([1, 1]), {"no": 1, "yes": 1})]
    assert len({theta_set.fingerprint() for theta_set in sets}) == 1
    assert sets[0].labels == ("no", "yes")
    assert GroupBudget(groups, {"no": 1, "yes": 2}, {"no": 9, "yes": 9}).high.tolist() == [3, 2]


def test_bounds_that_the_total_makes_idle_are_tightened():
    theta_set = GroupBudget([0, 0, 0, 1, 1, 1], 0, 3, k=5)
    assert (theta_set.low.tolist(), theta_set.high.tolist()) == ([2, 2], [3, 3])
    assert theta_set.fingerprint() == GroupBudget([0, 0, 0, 1, 1, 1], 2, 3, k=5).fingerprint()


def test_violation_counts_entries():
    theta_set = GroupBudget([0, 0, 0, 1, 1], [1, 1], [2, 2], k=3)
    assert theta_set.violation([1, 1, 1, 0, 0]) == 2.0  # one too many in the first group, one too few in the second
    assert theta_set.violation([1, 1, 1, 1, 0]) == 2.0
    assert theta_set.violation([1, 1, 0, 0, 1]) == 0.0


def test_the_centre_keeps_equal_shares_where_the_bounds_allow_them():
    groups = np.repeat([0, 1], [80, 20])
    assert np.array_equal(GroupBudget(groups, [20, 5], [60, 15], k=50).start(), np.full(100, 0.5))
    held = GroupBudget(groups, [0, 15], [60, 20], k=50).start()
    assert np.unique(held[:80]) == pytest.approx(35 / 80)
    assert np.unique(held[80:]) == pytest.approx(0.75)


def test_messages_name_the_group_and_the_remedy():
    with pytest.raises(InfeasibleSet, match=r"low = 2 and high = 5 for group 'rare', which has 1 entry; lower low or raise high"):
        GroupBudget(["often", "often", "rare"], 2, 5)
    with pytest.raises(InfeasibleSet, match=r"^k must be from 2 to 3, the totals that .* allow, got 1; lower low or raise k"):
        GroupBudget(["a", "a", "b"], 1, 2, k=1)
    with pytest.raises(InvalidInput, match=r"^low must have a count for every group, got none for 'b'; add them"):
        GroupBudget(["a", "b"], {"a": 1}, 1)


@pytest.mark.parametrize("k", [None, 6])
def test_the_method_finds_the_best_of_all_points(k):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(12, 12))
    Q, c = A + A.T, rng.normal(size=12)
    theta_set = GroupBudget(np.arange(12) % 3, 1, [2, 3, 4], k)
    problem = mb.FunctionProblem(lambda v: (0.5 * v @ Q @ v + c @ v, Q @ v + c), theta_set)
    found, best = mb.relax_and_penalize(problem, seed=0), mb.enumerate_binary(problem)
    assert theta_set.violation(found.theta) == 0.0
    assert found.value == pytest.approx(best.value)


def test_counts_beyond_64_bits():
    """All of a group is all of it, however large the number; the smallest of such a number does not fit."""
    assert GroupBudget([0, 0, 1], 0, 10**30).high.tolist() == [2, 1]
    assert GroupBudget(["a", "b"], 0, {"a": 2**63, "b": 0}).high.tolist() == [1, 0]
    with pytest.raises(InfeasibleSet, match=r"got low = 1000\d*[.]{3} and high = 3 for group 0, which has 1 entry") as error:
        GroupBudget([0], 10**400, 3)
    assert len(str(error.value)) < 300


def test_epsilon_star_of_gradients_at_the_end_of_the_numbers():
    rows = GroupBudget([0, 0, 1, 1], [0, 1], [0, 1], k=1)
    grad = np.array([0.0, -1.7e308, -1.7e308, 1.7e308])
    assert rows.epsilon_star([False, False, False, True], grad) == pytest.approx(1 / 1.7e308)
    budget = Budget(3, 1)
    assert budget.epsilon_star([False, False, True], [0.0, -1.7e308, 1.7e308]) == pytest.approx(1 / 1.7e308)

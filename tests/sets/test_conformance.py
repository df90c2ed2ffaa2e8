"""What every set promises, checked for every set of the table: by the suite for strangers' sets, and with Hypothesis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mixbin.testing import check_set
from tests.sets import exact
from tests.sets.cases import KINDS, LARGE, SMALL, ordinary, points, random_point, tied

every_small = pytest.mark.parametrize("case", SMALL.values(), ids=SMALL.keys())
every_large = pytest.mark.parametrize("case", LARGE.values(), ids=LARGE.keys())
every_kind = pytest.mark.parametrize("kind", KINDS)
data = st.data()
some = settings(max_examples=settings().max_examples // 2)


@every_small
def test_every_promise_at_small_sizes(case):
    check_set(case.set, exact_cardinality=case.integral, exchanges=case.exchanges, others=others(case))


@pytest.mark.ci
@every_large
def test_every_promise_at_size(case):
    check_set(case.set, exact_cardinality=case.integral, trials=5)


def others(case):
    return [other.set for other in (*SMALL.values(), *LARGE.values()) if other is not case]


def moderate(case):
    return st.one_of(points_of(ordinary, case), points_of(tied, case))


def points_of(elements, case):
    return st.lists(elements, min_size=case.set.size, max_size=case.set.size).map(lambda x: np.reshape(x, case.set.shape))


# Projection


@every_small
@some
@given(data=data)
def test_projection_is_exact(case, data):
    x = data.draw(points(case.set.shape))
    np.testing.assert_allclose(case.set.project(x), exact.project(case, x), rtol=0, atol=1e-9)


@every_small
@some
@given(data=data)
def test_projection_is_feasible_and_idempotent(case, data):
    p = case.set.project(data.draw(points(case.set.shape)))
    assert p.dtype == np.float64
    assert p.shape == case.set.shape
    assert 0.0 <= p.min() <= p.max() <= 1.0
    assert case.set.contains(p)
    np.testing.assert_allclose(case.set.project(p), p, rtol=0, atol=1e-12)


@every_kind
@every_large
def test_projection_is_optimal_at_size(case, kind):
    x = random_point(case.set.shape, kind, seed=7)
    p = case.set.project(x)
    assert 0.0 <= p.min() <= p.max() <= 1.0
    for index, weights, r, equality in case.groups:
        total = float(weights @ p.ravel()[index])
        assert total <= r + 1e-12 * abs(r)
        assert not equality or total >= r - 1e-12 * abs(r)
    # p is the projection exactly when no z of the set makes an acute angle with x - p; the worst z is an extreme point.
    normal = (x - p) / max(np.abs(x - p).max(), 1e-300)
    z = case.set.linear_oracle(-normal)
    assert np.sum(normal * (z - p)) <= 1e-10 * max(1.0, np.abs(p).sum())
    np.testing.assert_allclose(case.set.project(p), p, rtol=0, atol=1e-12)


@every_kind
@every_large
def test_points_of_the_set_are_their_own_projection(case, kind):
    v = case.set.vertex(random_point(case.set.shape, kind, seed=11)).astype(float)
    assert np.array_equal(case.set.project(v), v)


# Vertices and oracles


@every_small
def test_vertices_are_binary_points_each_once(case):
    vertices = list(case.set.vertices())
    assert all(v.dtype == np.bool_ and v.shape == case.set.shape for v in vertices)
    assert all(case.set.contains(v) and case.set.violation(v) == 0.0 for v in vertices)
    assert len({v.tobytes() for v in vertices}) == len(vertices)
    feasible = [v for v in all_binary(case) if satisfies(case, v)]
    assert len(vertices) == len(feasible)
    assert len(vertices) == case.set.cardinality() if case.integral else len(vertices) <= case.set.cardinality()
    assert isinstance(case.set.cardinality(), int)


def all_binary(case):
    return (np.array([i >> j & 1 for j in range(case.set.size)], bool).reshape(case.set.shape) for i in range(2**case.set.size))


def satisfies(case, v):
    totals = [(weights @ v.ravel()[index], r, equality) for index, weights, r, equality in case.groups]
    return all(total <= r + 1e-9 * abs(r) and (not equality or total == r) for total, r, equality in totals)


@every_small
@some
@given(data=data)
def test_vertex_is_nearest_in_the_max_norm(case, data):
    x = data.draw(moderate(case))
    v = case.set.vertex(x)
    assert v.dtype == np.bool_
    assert case.set.violation(v) == 0.0
    best = min(np.abs(x - u).max() for u in case.set.vertices())
    assert np.abs(x - v).max() == best
    assert case.set.distance_to_binary(x) == best


@every_small
@some
@given(data=data)
def test_vertex_breaks_ties_by_the_lowest_index(case, data):
    x = data.draw(points_of(tied, case))
    # A tiny slope that favours low indices decides ties and nothing else.
    slope = 1e-9 * np.arange(x.size).reshape(x.shape)
    assert np.array_equal(case.set.vertex(x), case.set.vertex(x - np.where(x == 0.5, 0.0, slope)))


@every_small
@some
@given(data=data)
def test_linear_oracle_minimises_over_the_set(case, data):
    g = data.draw(moderate(case))
    z = case.set.linear_oracle(g)
    assert z.dtype == np.float64
    assert case.set.contains(z)
    value, best = np.sum(g * z), lp_minimum(case, g)
    assert value == pytest.approx(best, abs=1e-6)  # the tolerance of HiGHS
    if case.integral:
        assert value == pytest.approx(min(np.sum(g * v) for v in case.set.vertices()), abs=1e-12)


def lp_minimum(case, g):
    rows = {True: ([], []), False: ([], [])}
    for index, weights, r, equality in case.groups:
        row = np.zeros(case.set.size)
        row[index] = weights
        rows[equality][0].append(row)
        rows[equality][1].append(r)
    (a_eq, b_eq), (a_ub, b_ub) = ((a or None, b or None) for a, b in (rows[True], rows[False]))
    return linprog(g.ravel(), a_ub, b_ub, a_eq, b_eq, bounds=(0, 1)).fun


@every_small
@some
@given(data=data)
def test_linear_oracle_breaks_ties_by_the_lowest_index(case, data):
    g = data.draw(points_of(tied, case))
    slope = 1e-9 * np.arange(g.size).reshape(g.shape)
    weights = case.groups[0][1] if not case.integral else 1.0
    assert np.array_equal(case.set.linear_oracle(g), case.set.linear_oracle(g + np.where(g < 0, slope * weights, slope)))


# Membership, directions, starts


@every_small
@some
@given(data=data)
def test_violation_is_zero_exactly_on_the_set(case, data):
    theta = data.draw(points_of(st.booleans(), case)).astype(bool)
    violation = case.set.violation(theta)
    assert violation >= 0.0
    assert (violation == 0.0) == case.set.contains(theta) == satisfies(case, theta)


@every_small
def test_points_outside_are_not_contained(case):
    p = case.set.start()
    outside = [np.where(np.arange(p.size).reshape(p.shape) == 0, value, p) for value in (-1e-3, 1.001)]
    for index, _, _, equality in case.groups:
        more = p.copy()
        more.ravel()[index] = 1.0 if equality else more.ravel()[index]
        outside += [more] if equality and not np.array_equal(more, p) else []
    assert not any(case.set.contains(x) for x in outside)


@every_small
@some
@given(data=data)
def test_tangent_sees_what_feasible_directions_see(case, data):
    g, x, y = (data.draw(moderate(case)) for _ in range(3))
    direction = case.set.project(x) - case.set.project(y)
    assert np.sum(case.set.tangent(g) * direction) == pytest.approx(np.sum(g * direction), abs=1e-12)
    for index, weights, _, equality in case.groups:
        # No feasible direction sees a multiple of the normal of an equality.
        normal = np.zeros(case.set.size)
        normal[index] = weights
        assert not equality or np.allclose(case.set.tangent(normal.reshape(case.set.shape)), 0.0, atol=1e-15)


@every_large
def test_starts_are_diverse_interior_points(case):
    centre = case.set.start()
    starts = [case.set.start(np.random.default_rng(seed)) for seed in (0, 0, 1)]
    for x in (centre, *starts):
        assert x.shape == case.set.shape
        assert x.dtype == np.float64
        assert case.set.contains(x)
    assert np.array_equal(starts[0], starts[1])
    alike = [index for index, *_ in case.counts[0]] if case.counts else [np.arange(case.set.size)]
    assert all(np.ptp(centre.ravel()[index]) == 0.0 for index in alike)
    assert np.linalg.norm(starts[0] - starts[2]) > 0.3 * np.linalg.norm(np.minimum(centre, 1.0 - centre))
    assert np.mean((starts[0] > 0.0) & (starts[0] < 1.0)) > 0.5
    starts[0][...] = 7.0
    assert np.array_equal(case.set.start(), centre)


@every_small
def test_repr_says_what_it_is(case):
    assert repr(case.set).startswith(type(case.set).__name__ + "(")


def test_one_half_goes_up_where_nothing_forbids_it():
    free = [case.set for case in SMALL.values() if not case.groups]
    assert free
    for theta_set in free:
        assert np.all(theta_set.vertex(np.full(theta_set.shape, 0.5)))

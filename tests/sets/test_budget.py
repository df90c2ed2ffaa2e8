"""The budget: counts and fractions, which entries are taken, and the fast projection along all its ways."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixbin.errors import InfeasibleSet, InvalidInput
from mixbin.sets import Budget, _capped_simplex
from mixbin.sets.budget import resolve_budget
from tests.sets import exact
from tests.sets.cases import budget, points


@pytest.mark.parametrize(
    ("k", "size", "count"),
    [
        (1, 5, 1),
        (1.0, 5, 5),
        (5, 5, 5),
        (0.5, 5, 3),
        (0.1, 105, 11),
        (0.1, 104, 10),
        (0.001, 1000, 1),
        (0.0005, 1000, 1),
        (0.001, 52_397, 52),
        (np.int64(3), 5, 3),
        (np.float32(0.5), 8, 4),
        (1e-6, 10_000_000, 10),
    ],
)
def test_counts_and_fractions(k, size, count):
    assert resolve_budget("k", k, size) == count
    assert Budget(size, k).k == count


@pytest.mark.parametrize(
    ("k", "error"),
    [(0, InfeasibleSet), (-1, InfeasibleSet), (6, InfeasibleSet), (0.09, InfeasibleSet), (0.0, InfeasibleSet)]
    + [(bad, InvalidInput) for bad in (5.0, -0.5, 1.0001, math.nan, math.inf, "2", None, True, [2], 2j)],
)
def test_budgets_that_mean_nothing_name_argument_value_and_remedy(k, error):
    for name in ("k", "budget"):
        with pytest.raises(error, match=rf"^{name} must be .*, got .*; ") as caught:
            resolve_budget(name, k, 5)
        assert type(caught.value) is error


@given(x=st.integers(1, 30).flatmap(lambda n: st.lists(st.integers(-2, 2), min_size=n, max_size=n)), data=st.data())
def test_vertex_takes_the_k_largest_of_the_lowest_index(x, data):
    k = data.draw(st.integers(1, len(x)))
    by_rank = np.argsort(-np.array(x), kind="stable")[:k]
    chosen = Budget(len(x), k).vertex(x)
    assert np.array_equal(np.flatnonzero(chosen), np.sort(by_rank))
    at_most = Budget(len(x), k, at_most=True).vertex(x)
    assert np.array_equal(np.flatnonzero(at_most), [i for i in np.sort(by_rank) if x[i] >= 0.5])


def test_one_half_goes_up():
    assert Budget(3, 1, at_most=True).vertex([0.2, 0.5, 0.5]).tolist() == [False, True, False]


def test_centres_and_violations():
    assert Budget(8, 2).start()[0] == 0.25
    assert Budget(8, 6, at_most=True).start()[0] == 0.5
    assert Budget(8, 2, at_most=True).start()[0] == 0.25
    assert Budget(4, 2).violation([1, 1, 1, 0]) == 1.0
    assert Budget(4, 2).violation([0, 0, 0, 0]) == 2.0
    assert Budget(4, 2, at_most=True).violation([1, 1, 1, 1]) == 2.0
    assert Budget(4, 2, at_most=True).violation([0, 0, 0, 0]) == 0.0


def test_large_cardinality_is_exact():
    assert Budget(400, 37).cardinality() == math.comb(400, 37)
    assert Budget(400, 37, at_most=True).cardinality() == sum(math.comb(400, j) for j in range(38))


# The projection. With small constants, the code for long vectors runs on a short one.


@pytest.fixture(params=[(8, 4), (8, 0), (4, 1), (16, 16)], ids=str)
def _short_sample(request, monkeypatch):
    sample, many = request.param
    for name, value in {"SAMPLE_SIZE": sample, "MOST_SAMPLED_BREAKPOINTS": many, "MERGED_AT_ONCE": 2, "CACHE_BLOCK": 5}.items():
        monkeypatch.setattr(_capped_simplex, name, value)


@pytest.mark.slow
@pytest.mark.usefixtures("_short_sample")
@pytest.mark.parametrize("at_most", [False, True])
@given(data=st.data())
def test_sampled_projection_is_exact(at_most, data):
    size = data.draw(st.integers(33, 48))
    case = budget(size, data.draw(st.integers(1, size)), at_most)
    x = data.draw(points(size))
    p = case.set.project(x)
    np.testing.assert_allclose(p, exact.project(case, x), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("_short_sample")
@pytest.mark.parametrize("k", [1, 20, 38, 39])
def test_breakpoints_that_round_onto_each_other_end_the_search(k):
    # All a_i - 1 round to -1 and all but a few are distinct: a pivot among them must not stay inside its own bracket.
    a = np.concatenate([1e-17 * np.arange(1, 37), [0.5, 0.7, 0.9, 1.0]])
    np.testing.assert_allclose(Budget(40, k).project(a), exact.project(budget(40, k), a), rtol=0, atol=1e-15)


def test_points_with_many_zeros():
    """t is 0 here, a breakpoint of more than a thousand entries, and rounding decides on which side of it the search looks."""
    for seed in range(60, 160):
        rng = np.random.default_rng(seed)
        a = np.zeros(2000)
        positive = int(rng.integers(100, 900))
        a[:positive] = rng.uniform(size=positive)
        a *= 10 / a.sum()
        p = Budget(2000, 10).project(a)
        assert abs(p.sum() - 10) < 1e-13
        np.testing.assert_allclose(p, a, rtol=0, atol=1e-14)


SHAPES = {
    "normal": lambda rng, m: rng.normal(size=m),
    "tight": lambda rng, m: 0.1 * rng.uniform(size=m),
    "sorted": lambda rng, m: np.sort(rng.normal(size=m)),
    "descending": lambda rng, m: -np.sort(rng.normal(size=m)),
    "five values": lambda rng, m: rng.integers(0, 5, m) / 4,
    "equal": lambda rng, m: np.full(m, -7.3),
    "all but one equal": lambda rng, m: np.where(np.arange(m) == m // 2, 1.0, 0.3),
    "heavy": lambda rng, m: rng.standard_cauchy(size=m) * 1e3,
    "overflowing": lambda rng, m: rng.choice([-1.7e308, 0.0, 0.4, 1.7e308], size=m),
    "near binary": lambda rng, m: (rng.uniform(size=m) < 0.1) + 1e-4 * rng.normal(size=m),
    "one large among small": lambda rng, m: np.where(np.arange(m) == 3, 0.0, -0.9999999),
    "huge": lambda rng, m: 1e17 + 100 * rng.normal(size=m),
    "tiny": lambda rng, m: 1e-300 * rng.normal(size=m),
    "every third": lambda rng, m: np.where(np.arange(m) % 3 == 0, 50.0, rng.normal(size=m)),
}


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [1e-5, 0.001, 0.01, 0.3, 0.5, 0.99999])
@pytest.mark.parametrize("shape", SHAPES)
def test_long_vectors_meet_the_budget_to_rounding(shape, fraction):
    m = 250_000
    a = SHAPES[shape](np.random.default_rng(1), m)
    theta_set = Budget(m, fraction)
    p = theta_set.project(a)
    check_optimal(a, p, theta_set.k)
    np.testing.assert_allclose(theta_set.project(p), p, rtol=0, atol=1e-15)


@pytest.mark.parametrize("m", [50, 250_000])
@pytest.mark.parametrize("fraction", [0.02, 0.5])
@pytest.mark.parametrize("shape", ["normal", "tight", "five values", "near binary"])
def test_points_of_the_set_come_back_to_the_bit(shape, fraction, m):
    theta_set = Budget(m, fraction)
    p = theta_set.project(SHAPES[shape](np.random.default_rng(1), m))
    assert np.array_equal(theta_set.project(p), p)


@pytest.mark.parametrize("fraction", [1e-5, 0.01, 0.1, 0.5])
@pytest.mark.parametrize("shape", ["normal", "tight", "sorted", "five values", "all but one equal", "near binary", "every third"])
def test_ordinary_vectors_are_solved_from_the_sample(shape, fraction, monkeypatch):
    m, certain = 250_000, _capped_simplex._certain_bracket

    def of_the_sample(ordered, k):
        assert ordered.size < m, "the sample misled, and the k-th largest entry had to be found"
        return certain(ordered, k)

    monkeypatch.setattr(_capped_simplex, "_certain_bracket", of_the_sample)
    Budget(m, fraction).project(SHAPES[shape](np.random.default_rng(1), m))


def check_optimal(a, p, k):
    """p = clip(a - t, 0, 1) for one t: entries at 1 lie above the free ones by more, entries at 0 below."""
    assert 0.0 <= p.min() <= p.max() <= 1.0
    assert math.fsum(p) == pytest.approx(k, rel=1e-14)
    free, centre = (p > 0.0) & (p < 1.0), a[np.argmax((p > 0.0) & (p < 1.0))]
    with np.errstate(over="ignore"):
        t = (a - centre) - p
    if free.any():
        middle = np.median(t[free])
        assert np.ptp(t[free]) <= 1e-13
        assert t[p == 1.0].min(initial=np.inf) >= middle - 1e-13
        assert t[p == 0.0].max(initial=-np.inf) <= middle + 1e-13
    else:
        assert a[p == 1.0].min() - 1.0 >= a[p == 0.0].max(initial=-np.inf)


@pytest.mark.parametrize("fraction", [0.001, 0.1, 0.6])
@pytest.mark.parametrize("value", [100.0, -100.0, 0.4, 1e17])
def test_a_sample_that_misleads_costs_time_but_nothing_else(value, fraction):
    m = 250_000
    a = np.random.default_rng(1).normal(size=m)
    a[np.random.default_rng(0).integers(m, size=_capped_simplex.SAMPLE_SIZE)] = value
    theta_set = Budget(m, fraction)
    check_optimal(a, theta_set.project(a), theta_set.k)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("at_most", [False, True])
def test_at_most_three_extra_vectors(shape, at_most):
    m = 1_000_000
    a = SHAPES[shape](np.random.default_rng(1), m)
    for fraction in (0.00001, 0.01, 0.5):
        theta_set = Budget(m, fraction, at_most)
        tracemalloc.start()
        theta_set.project(a)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 3 * a.nbytes


def test_strided_and_integer_input():
    a = np.random.default_rng(0).normal(size=(100, 3))
    assert np.array_equal(Budget(100, 7).project(a[:, 1]), Budget(100, 7).project(a[:, 1].copy()))
    assert np.array_equal(Budget(4, 2).project([3, 0, 0, 5]), [1, 0, 0, 1])
    frozen = a[:, 2].copy()
    frozen.flags.writeable = False
    assert Budget(100, 7).contains(Budget(100, 7).project(frozen))


@given(st.integers(2, _capped_simplex.SHORT), st.integers(0, 2**32 - 1), st.sampled_from(["plain", "ties", "huge", "inside"]))
def test_short_vectors_give_the_bits_of_the_search_on_arrays(size, seed, kind):
    rng = np.random.default_rng(seed)
    k, a = int(rng.integers(1, size + 1)), 10.0 ** rng.integers(-3, 4) * rng.normal(size=size)
    if kind == "ties":
        a = np.round(a, 1)
    elif kind == "huge":
        a = 1e15 * a
    elif kind == "inside":
        a = Budget(size, k).project(rng.uniform(size=size))
    ordered = np.sort(a)
    bracket = _capped_simplex._certain_bracket(ordered, k)
    assert _capped_simplex._short_search(ordered, k, bracket) == _capped_simplex._search(ordered, k, bracket, certain=True)


def test_vertices_come_in_the_order_of_combinations(monkeypatch):
    whole = list(Budget(6, 3, at_most=True).vertices())
    monkeypatch.setattr("mixbin.sets.budget.ENTRIES_AT_ONCE", 24)
    parts = list(Budget(6, 3, at_most=True).vertices())
    assert len(whole) == len({v.tobytes() for v in whole}) == 1 + 6 + 15 + 20
    assert [v.sum() for v in whole] == sorted(v.sum() for v in whole)
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("seed", [2, 7, 14])
def test_a_point_of_the_set_whose_multiplier_is_zero_up_to_rounding(seed):
    """More than a thousand breakpoints, and t at the end of a half: rounding once put it outside of both halves."""
    x = np.abs(np.random.default_rng(seed).normal(size=2368).astype(np.float32)).astype(np.float64)
    budget = Budget(2368, 237)
    once = budget.project(x / x.max())
    np.testing.assert_allclose(budget.project(once), once, rtol=0, atol=1e-15)

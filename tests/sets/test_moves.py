"""Single moves: all of them, each once, to feasible points, the most promising first, and lazily."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixbin.sets import Budget, Hypercube, Knapsack, OneHot, _moves
from tests.sets.cases import SMALL, tied

every_small = pytest.mark.parametrize("case", SMALL.values(), ids=SMALL.keys())


@pytest.fixture(params=[(32, 1024, 1 << 17), (2, 3, 4), (1, 1, 1)], ids=["as shipped", "small squares", "one by one"])
def _squares(request, monkeypatch):
    """The same moves in other batches, so that the seams between them are tested at small sizes."""
    for name, value in zip(("FIRST_SIDE", "RANKED_FIRST", "LARGEST_BATCH"), request.param, strict=True):
        monkeypatch.setattr(_moves, name, value)


def neighbours(case, theta):
    """By brute force: the vertices that one move reaches."""
    for v in case.set.vertices():
        off, on = np.flatnonzero(theta & ~v), np.flatnonzero(v & ~theta)
        if max(off.size, on.size) == 1 and (case.exchanges or off.size + on.size == 1):
            yield int(off[0]) if off.size else -1, int(on[0]) if on.size else -1


def listed(batches):
    return [(int(i), int(j)) for off, on in batches for i, j in zip(off, on, strict=True)]


@pytest.mark.usefixtures("_squares")
@every_small
def test_moves_are_all_and_each_once(case):
    for seed, theta in enumerate(itertools.islice(case.set.vertices(), 30)):
        expected = sorted(neighbours(case, theta))
        assert sorted(listed(case.set.moves(theta))) == expected
        grad = np.random.default_rng(seed).normal(size=case.set.shape)
        assert sorted(listed(case.set.moves(theta, grad))) == expected


@pytest.mark.slow
@every_small
@settings(max_examples=50)
@given(data=st.data())
def test_batches_are_in_order_of_the_predicted_change(case, data):
    grad = np.array(data.draw(st.lists(tied, min_size=case.set.size, max_size=case.set.size)))
    theta = case.set.vertex(grad.reshape(case.set.shape))
    extended = np.append(grad, 0.0)
    for off, on in case.set.moves(theta, grad.reshape(case.set.shape)):
        assert off.size > 0
        assert np.all(np.diff(extended[on] - extended[off]) >= 0.0)


@pytest.mark.usefixtures("_squares")
@pytest.mark.parametrize(
    "theta_set",
    [
        Hypercube(50),
        Budget(60, 20),
        Budget(60, 3),
        Budget(60, 57),
        Budget(60, 20, at_most=True),
        OneHot(9, 6),
        Knapsack(np.linspace(1, 2, 40), 25.0),
    ],
    ids=repr,
)
def test_larger_sets_are_listed_completely_too(theta_set):
    rng = np.random.default_rng(2)
    grad = rng.normal(size=theta_set.shape)
    theta = theta_set.vertex(rng.uniform(size=theta_set.shape))
    moves = listed(theta_set.moves(theta, grad))
    assert len(set(moves)) == len(moves)
    assert sorted(moves) == sorted(listed(theta_set.moves(theta)))
    for off, on in moves:
        after = np.append(theta.ravel(), False)
        after[[off, on]] = False, True
        assert theta_set.violation(after[:-1].reshape(theta_set.shape)) == 0.0
    k = np.count_nonzero(theta)
    if isinstance(theta_set, Budget):
        slack = theta_set.at_most and k < theta_set.k
        assert len(moves) == k * (theta.size - k) + k * theta_set.at_most + (theta.size - k) * slack


@pytest.mark.slow
@pytest.mark.parametrize(
    "theta_set",
    [
        Budget(1_000_000, 0.1),
        Budget(1_000_000, 7),
        Budget(1_000_000, 0.3, at_most=True),
        Hypercube(1_000_000),
        OneHot(100_000, 10),
        Knapsack(np.random.default_rng(0).uniform(1, 2, 1_000_000), 1000.0),
    ],
    ids=repr,
)
def test_large_sets_begin_with_the_best_move_at_once(theta_set):
    rng = np.random.default_rng(4)
    grad, theta = rng.normal(size=theta_set.shape), theta_set.vertex(rng.uniform(size=theta_set.shape))
    began = time.perf_counter()
    batches = theta_set.moves(theta, grad)
    first = next(batches)
    assert time.perf_counter() - began < 5.0
    change = grad.ravel()[first[1]] * (first[1] >= 0) - grad.ravel()[first[0]] * (first[0] >= 0)
    assert np.all(np.diff(change) >= 0.0)
    sizes = [first[0].size, *(off.size for off, _ in itertools.islice(batches, 12))]
    assert max(sizes) <= 1_000_000
    if isinstance(theta_set, Budget) and not theta_set.at_most:
        flat = theta.ravel()
        assert change[0] == pytest.approx(grad.ravel()[~flat].min() - grad.ravel()[flat].max())


@pytest.mark.parametrize(
    ("theta_set", "theta"),
    [
        (Budget(4, 2), [1, 0, 0, 0]),
        (Budget(4, 2, at_most=True), [1, 1, 1, 0]),
        (OneHot(2, 2), [[1, 1], [0, 1]]),
        (OneHot(2, 2), [[0, 0], [0, 1]]),
        (Knapsack([1.0, 2.0], 2.0), [1, 1]),
    ],
)
def test_moves_from_outside_are_refused_at_the_call(theta_set, theta):
    with pytest.raises(ValueError, match="theta must be"):
        theta_set.moves(theta)

"""The table of sets under test. A new set joins every test of this folder with one line in SMALL and one in LARGE."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mixbin.sets import BinarySet, Budget, GroupBudget, Hypercube, Knapsack, OneHot


@dataclass(frozen=True)
class Case:
    """A set, and what it is: groups (flat indices, weights, right-hand side, equality) within the unit box."""

    set: BinarySet
    groups: tuple = ()
    integral: bool = True
    """All extreme points are binary."""
    exchanges: bool = True
    """A single move may switch one entry off and another on."""
    counts: tuple | None = None
    """Of counts per group: for each group (flat indices, low, high), and the total or None. ``groups`` then states the same as
    inequalities, which overlap, so that the projection does not fall apart into one for each of them."""


def hypercube(shape):
    return Case(Hypercube(shape), exchanges=False)


def budget(size, k, at_most=False):
    theta_set = Budget(size, k, at_most)
    return Case(theta_set, ((np.arange(size), np.ones(size), theta_set.k, not at_most),))


def knapsack(weights, capacity):
    weights = np.asarray(weights, float)
    return Case(Knapsack(weights, capacity), ((np.arange(weights.size), weights, capacity, False),), integral=False)


def group_budget(labels, low, high, k=None):
    labels = np.asarray(labels)
    names = np.unique(labels)
    low, high = (np.broadcast_to(bound, names.size).tolist() for bound in (low, high))
    members = [np.flatnonzero(labels == name) for name in names]
    counts = tuple((index, a, min(b, index.size)) for index, a, b in zip(members, low, high, strict=True))
    bounds = [(index, np.ones(index.size), b, a == b) for index, a, b in counts]
    bounds += [(index, -np.ones(index.size), -a, False) for index, a, b in counts if a != b]
    bounds += [(np.arange(labels.size), np.ones(labels.size), k, True)] if k else []
    return Case(GroupBudget(labels, low, high, k), tuple(bounds), counts=(counts, k))


def one_hot(rows, columns):
    cells = np.arange(rows * columns).reshape(rows, columns)
    return Case(OneHot(rows, columns), tuple((row, np.ones(columns), 1, True) for row in cells))


def table(*cases):
    named = {repr(case.set): case for case in cases}
    assert len(named) == len(cases), "two sets of the same name: one of them would not be tested"
    return named


SMALL = table(
    hypercube(1),
    hypercube((2, 3)),
    budget(1, 1),
    budget(6, 1),
    budget(6, 2),
    budget(7, 5),
    budget(5, 1.0),
    budget(8, 0.5),
    budget(6, 2, at_most=True),
    budget(4, 4, at_most=True),
    knapsack([1.0, 2.0, 3.0, 1.5, 0.7, 1.0], 4.0),
    knapsack([1.0, 1.0, 1.0, 1.0], 2.0),
    knapsack([0.1, 0.2, 0.3], 0.3),
    knapsack([5.0, 1.0, 1.0, 2.5], 3.0),
    knapsack([1.0, 2.0], 10.0),
    knapsack([1e-3, 1.0, 1e3], 2.0),
    group_budget([0, 1, 0, 1, 1, 0], 1, 2),
    group_budget([0, 1, 0, 1, 1, 0], 1, 2, k=3),
    group_budget([0, 0, 0, 0, 1, 1], [0, 1], [4, 1], k=3),
    group_budget(["b", "a", "c", "a", "c", "a", "b"], [1, 0, 2], [2, 1, 2]),
    group_budget(["b", "a", "c", "a", "c", "a", "b"], [0, 1, 0], [3, 1, 2], k=4),
    group_budget([2, 1, 2, 1, 0], 0, 1),
    group_budget([2, 1, 2, 1, 0, 0], [0, 0, 2], [0, 2, 2], k=3),
    group_budget([0, 0, 0, 0], 2, 2),
    group_budget([3], 0, 1),
    one_hot(3, 2),
    one_hot(1, 6),
    one_hot(2, 4),
    one_hot(3, 1),
)

LARGE = table(
    hypercube((20, 30)),
    budget(1000, 0.001),
    budget(1000, 0.1),
    budget(1000, 999),
    budget(1000, 300, at_most=True),
    budget(300_000, 0.1),
    budget(300_000, 3),
    knapsack(np.random.default_rng(5).uniform(0.1, 3.0, 400), 60.0),
    group_budget(np.random.default_rng(6).integers(0, 7, 1000), 20, 90),
    group_budget(np.random.default_rng(6).integers(0, 7, 1000), [0, 30, 0, 40, 10, 0, 5], [50, 60, 10, 99, 90, 20, 5], k=150),
    group_budget(np.random.default_rng(6).integers(0, 200, 900), 0, 1, k=100),
    group_budget(np.random.default_rng(7).integers(0, 3, 140_000), [3_000, 4_995, 5_500], [3_000, 5_000, 6_010], k=14_000),
    one_hot(50, 8),
    one_hot(2, 500),
)

MAGNITUDES = [1e-300, 1e-20, 1e-3, 1e7, 1e12, 1e17, 1e100, 1e300]

ordinary = st.floats(-3, 3)
tied = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0])
mixed = st.one_of(ordinary, tied, st.builds(lambda x, s: x * s, st.floats(-1, 1), st.sampled_from(MAGNITUDES)))


@st.composite
def points(draw, shape):
    """Arrays with ties, with magnitudes from 1e-300 to 1e300 in one array, or near a large common value."""
    x = draw(hnp.arrays(np.float64, shape, elements=draw(st.sampled_from([ordinary, tied, mixed]))))
    offset = draw(st.sampled_from([0.0, 0.0, 0.0, 0.1, -5.0, 1e9, -1e17, 1e300]))
    return np.clip(x + offset, -1e300, 1e300)


def random_point(shape, kind, seed):
    """The same at sizes that are too large for hypothesis to draw entry by entry."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return {
        "normal": lambda: x,
        "tight": lambda: 1e-3 * x,
        "steep": lambda: 1e8 * x,
        "tied": lambda: np.round(x * 2) / 2,
        "equal": lambda: np.full(shape, 0.3),
        "heavy": lambda: np.sign(x) * np.exp(20 * np.abs(x)),
        "binary": lambda: (x > 1.2) + 0.0,
        "offset": lambda: 1e12 + x,
    }[kind]()


KINDS = ["normal", "tight", "steep", "tied", "equal", "heavy", "binary", "offset"]

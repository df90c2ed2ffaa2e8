"""A table of bad arguments: each is refused with an error that names the argument."""

import numpy as np
import pytest

from mixbin.errors import InfeasibleSet, InvalidInput
from mixbin.sets import Box, Budget, GroupBudget, Hypercube, Knapsack, OneHot
from tests.sets.cases import SMALL

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("make", "error", "name"),
    [
        (lambda: Hypercube(0), InvalidInput, "shape"),
        (lambda: Hypercube(-3), InvalidInput, "shape"),
        (lambda: Hypercube(2.0), InvalidInput, "shape"),
        (lambda: Hypercube(()), InvalidInput, "shape"),
        (lambda: Hypercube((2, 0)), InvalidInput, "shape"),
        (lambda: Hypercube("5"), InvalidInput, "shape"),
        (lambda: Hypercube(True), InvalidInput, "shape"),
        (lambda: Budget(0, 1), InvalidInput, "size"),
        (lambda: Budget(2.5, 1), InvalidInput, "size"),
        (lambda: Budget("many", 1), InvalidInput, "size"),
        (lambda: Budget(5, 0), InfeasibleSet, "k"),
        (lambda: Budget(5, 6), InfeasibleSet, "k"),
        (lambda: Budget(5, 0, at_most=True), InfeasibleSet, "k"),
        (lambda: Budget(5, 0.01), InfeasibleSet, "k"),
        (lambda: Budget(5, 2.0), InvalidInput, "k"),
        (lambda: Budget(5, NAN), InvalidInput, "k"),
        (lambda: Budget(5, "two"), InvalidInput, "k"),
        (lambda: Budget(5, 2, at_most=1), InvalidInput, "at_most"),
        (lambda: Knapsack([], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack([1.0, 0.0], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack([1.0, -2.0], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack([1.0, NAN], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack([1.0, INF], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack([1e308, 1e308], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack([[1.0, 2.0]], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack(["1", "2"], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack([1.0, 2.0], 0.0), InfeasibleSet, "capacity"),
        (lambda: Knapsack([1.0, 2.0], -1.0), InfeasibleSet, "capacity"),
        (lambda: Knapsack([1.0, 2.0], INF), InvalidInput, "capacity"),
        (lambda: Knapsack([1.0, 2.0], [1.0]), InvalidInput, "capacity"),
        (lambda: GroupBudget([], 0, 1), InvalidInput, "groups"),
        (lambda: GroupBudget([[1, 2]], 0, 1), InvalidInput, "groups"),
        (lambda: GroupBudget([1.0, NAN], 0, 1), InvalidInput, "groups"),
        (lambda: GroupBudget([1, "a", None], 0, 1), InvalidInput, "groups"),
        (lambda: GroupBudget(3, 0, 1), InvalidInput, "groups"),
        (lambda: GroupBudget([1, 1, 2], -1, 1), InvalidInput, "low"),
        (lambda: GroupBudget([1, 1, 2], 0.5, 1), InvalidInput, "low"),
        (lambda: GroupBudget([1, 1, 2], True, 1), InvalidInput, "low"),
        (lambda: GroupBudget([1, 1, 2], [0, 0, 0], 1), InvalidInput, "low"),
        (lambda: GroupBudget([1, 1, 2], [0, 0.0], 1), InvalidInput, "low"),
        (lambda: GroupBudget([1, 1, 2], {1: 0}, 1), InvalidInput, "low"),
        (lambda: GroupBudget([1, 1, 2], 0, {1: 1, 2: 1, 3: 1}), InvalidInput, "high"),
        (lambda: GroupBudget([1, 1, 2], 0, "two"), InvalidInput, "high"),
        (lambda: GroupBudget([1, 1, 2], 0, None), InvalidInput, "high"),
        (lambda: GroupBudget([1, 1, 2], 2, 3), InfeasibleSet, "low"),
        (lambda: GroupBudget([1, 1, 2], [2, 0], 1), InfeasibleSet, "high"),
        (lambda: GroupBudget([1, 1, 2], 1, 2, k=1), InfeasibleSet, "k"),
        (lambda: GroupBudget([1, 1, 2], 0, 1, k=3), InfeasibleSet, "k"),
        (lambda: GroupBudget([1, 1, 2], 0, 1, k=0), InfeasibleSet, "k"),
        (lambda: GroupBudget([1, 1, 2], 0, 1, k=2.0), InvalidInput, "k"),
        (lambda: OneHot(0, 2), InvalidInput, "rows"),
        (lambda: OneHot(2, 0), InvalidInput, "columns"),
        (lambda: OneHot(2, 1.5), InvalidInput, "columns"),
        (lambda: Box(NAN, 1.0), InvalidInput, "lower"),
        (lambda: Box(0.0, INF), InvalidInput, "upper"),
        (lambda: Box(2.0, 1.0), InfeasibleSet, "lower"),
        (lambda: Box([0.0, 0.0], 1.0), InvalidInput, "lower"),
        (lambda: Box(0.0, 1.0, log=True), InvalidInput, "lower"),
        (lambda: Box(0.0, 1.0, log="yes"), InvalidInput, "log"),
    ],
)
def test_constructors_name_the_argument(make, error, name):
    with pytest.raises(error, match=rf"\b{name}\b") as caught:
        make()
    assert type(caught.value) is error


def spoiled(x, value):
    x = np.array(x, dtype=float)
    x.flat[-1] = value
    return x


@pytest.mark.parametrize("case", SMALL.values(), ids=SMALL.keys())
def test_methods_name_the_argument(case):
    theta_set, good = case.set, next(case.set.vertices())
    bad = [good.ravel()[:-1], good[None], 0.5, "text", np.full(theta_set.shape, "1"), None]
    bad += [spoiled(good, value) for value in (NAN, INF, -INF)]
    calls = [(getattr(theta_set, method), "x") for method in ("project", "vertex", "contains", "round", "distance_to_binary")]
    calls += [(theta_set.linear_oracle, "g"), (theta_set.tangent, "g")]
    calls += [(theta_set.violation, "theta"), (theta_set.moves, "theta"), (lambda g: theta_set.moves(good, g), "grad")]
    for method, name in calls:
        for value in bad:
            if value is None and name == "grad":
                continue
            with pytest.raises(InvalidInput, match=rf"^{name} must be"):
                method(value)
    for method in (theta_set.violation, theta_set.moves):
        with pytest.raises(InvalidInput, match=r"^theta must be binary"):
            method(spoiled(good, 0.5))
    for rng in ("seed", -1, 0.5):
        with pytest.raises(InvalidInput, match=r"^rng must be"):
            theta_set.start(rng)

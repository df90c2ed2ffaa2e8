"""A table of bad inputs: each argument of the engine with wrong type, shape, range, NaN and infinity is named, with a remedy.

The sets' own arguments have their table in tests/sets, the data of RidgeDistillation theirs in tests/problems.
"""

import numpy as np
import pytest

import mixbin as mb
from tests.instances import quadratic

NAN, INF = float("nan"), float("inf")
PROBLEM = quadratic(mb.Budget(6, 2), 0, n_lam=2)
SIX = np.full(6, 1 / 3)


def spoiled(x, value, i=0):
    x = np.array(x, dtype=float)
    x.flat[i] = value
    return x


NUMBERS = ["one", None, [0.5], True, NAN, INF, -INF, 1j]

SHARED = {
    "theta0": ["half", SIX[:5], np.zeros((6, 1)), spoiled(SIX, NAN), spoiled(SIX, INF), [["a"] * 6], 0.5],
    "lam0": ["half", [0.0], [0.0, NAN], [0.0, INF], [0.0, 2.5], [-1.5, 0.0], 0.5],
    "solver": ["newton", 3, mb.SpectralGradient, object(), ["spectral"]],
    "inner_steps": ["many", 0, -3, 2.5, NAN, INF, True, [], [5, 0], [5, "x"], (3, 2.5)],
    "max_evaluations": ["many", 0, 1, -3, 2.5, NAN, INF, True],
    "time_limit": ["soon", 0, -1.0, NAN, INF, True, [1.0]],
    "reoptimize_lam": ["yes", 1, None, 0.0],
    "starts": ["several", 0, -1, 2.5, NAN, INF, None, True],
    "seed": ["lucky", -1, 2.5, NAN, True, [1]],
    "callbacks": [3, print, ["not a function"], [print, None]],
    "checkpoint": [3, "", b"", True, ["run"], "no/such/folder/run", ".", "a\0b"],
    "checkpoint_every": [*NUMBERS, -1.0],
}
PENALIZE = {
    "epsilon0": [*NUMBERS, 0.0, -1.0, "automatic"],
    "beta": [*NUMBERS, 0.0, 1.0, -0.5, 1.5],
    "penalty": ["quadratic", 3, mb.Quadratic],
    "tol": [*NUMBERS, 0.0, 0.5, -1e-3],
    "max_outer": ["many", 0, -3, 2.5, NAN, INF, None, True],
    "relax_first": ["yes", 1, None],
    "search": ["walk", None, 1, ["path"], b"path"],
    "polish": ["well", 0, -1, 2.5, NAN, None],
    "gap_tol": [*NUMBERS, -0.1],
}
ROUND = {"rounding": ["floor", 3, True, ["top-k"]]}


def rows(method, table):
    return [(method, name, value) for name, values in table.items() for value in values]


ROWS = [
    *rows(mb.relax_and_penalize, SHARED | PENALIZE),
    *rows(mb.relax_and_round, SHARED | ROUND),
]


@pytest.mark.parametrize(("method", "name", "value"), ROWS, ids=lambda x: getattr(x, "__name__", None) or str(x)[:20])
def test_methods_name_the_argument_before_any_work(method, name, value):
    calls = []

    def counted(theta, lam):
        calls.append(1)
        return PROBLEM.function(theta, lam)

    problem = mb.FunctionProblem(counted, PROBLEM.theta_set, PROBLEM.lam_set)
    with pytest.raises(mb.InvalidInput) as caught:
        method(problem, **{name: value})
    assert str(caught.value).startswith(name)
    assert not calls


@pytest.mark.parametrize("method", [mb.relax_and_penalize, mb.relax_and_round, mb.enumerate_binary])
@pytest.mark.parametrize("problem", [None, "problem", 3, lambda theta: 0.0, mb.Budget(3, 1)])
def test_what_is_no_problem(method, problem):
    with pytest.raises(mb.InvalidInput, match=r"^problem must be a Problem"):
        method(problem)


FUNCTION = [
    ({"function": 3}, "function"),
    ({"function": None}, "function"),
    ({"theta_set": 3}, "theta_set"),
    ({"theta_set": mb.Box(0, 1)}, "theta_set"),
    ({"theta_set": mb.Budget}, "theta_set"),
    ({"lam_set": (0, 1)}, "lam_set"),
    ({"lam_set": mb.Budget(2, 1)}, "lam_set"),
    ({"value": 3}, "value"),
]


@pytest.mark.parametrize(("changed", "name"), FUNCTION, ids=str)
def test_function_problem(changed, name):
    arguments = {"function": lambda theta: (0.0, theta), "theta_set": mb.Hypercube(3)} | changed
    with pytest.raises(mb.InvalidInput, match=f"^{name} must be"):
        mb.FunctionProblem(**arguments)


SOLVERS = [
    (mb.SpectralGradient, "memory", [0, -1, 2.5, "ten", NAN, None, True]),
    (mb.SpectralGradient, "tol", [-1e-9, NAN, INF, "small", None, True]),
    (mb.SpectralGradient, "stall", [-1e-9, 1.0, NAN, INF, "small", None, True]),
    (mb.ProjectedGradient, "step_size", [0.0, -1.0, NAN, INF, "short", True]),
    (mb.ProjectedGradient, "step_size_lam", [0.0, -1.0, NAN, INF, "short", True, 0.1]),
    (mb.ProjectedGradient, "tol", [-1e-9, NAN, INF, "small", None]),
]


@pytest.mark.parametrize(("kind", "name", "value"), [(k, n, v) for k, n, values in SOLVERS for v in values], ids=str)
def test_solvers(kind, name, value):
    with pytest.raises(mb.InvalidInput, match=f"^{name} must be"):
        kind(**{name: value})


BOXES = [
    ((0.0, NAN), mb.InvalidInput, "upper"),
    ((-INF, 0.0), mb.InvalidInput, "lower"),
    (("low", 1.0), mb.InvalidInput, "lower"),
    ((None, 1.0), mb.InvalidInput, "lower"),
    (([0.0, 0.0], [1.0]), mb.InvalidInput, "lower and upper"),
    ((1.0, 0.0), mb.InfeasibleSet, "lower"),
    (([0.0, 2.0], [1.0, 1.0]), mb.InfeasibleSet, "lower"),
]


@pytest.mark.parametrize(("bounds", "error", "name"), BOXES, ids=str)
def test_boxes(bounds, error, name):
    with pytest.raises(error, match=f"^{name} must"):
        mb.Box(*bounds)


@pytest.mark.parametrize(
    ("arguments", "name"), [((0.0, 1.0, True), "lower"), ((-1.0, 1.0, True), "lower"), ((1.0, 2.0, "yes"), "log")]
)
def test_log_boxes(arguments, name):
    low, high, log = arguments
    with pytest.raises(mb.InvalidInput, match=f"^{name} must be"):
        mb.Box(low, high, log=log)


@pytest.mark.parametrize("x", [0.5, [0.5], [0.1, NAN], [0.1, INF], "ab", [["a", "b"]]], ids=str)
def test_box_methods(x):
    for method in (mb.Box([0, 0], [1, 1]).project, mb.Box([0, 0], [1, 1]).contains):
        with pytest.raises(mb.InvalidInput, match=r"^x must be"):
            method(x)


def test_every_argument_of_the_methods_is_in_the_table():
    """A new keyword without a row here is a keyword nobody checked."""
    from inspect import signature

    for method, table in ((mb.relax_and_penalize, SHARED | PENALIZE), (mb.relax_and_round, SHARED | ROUND)):
        assert set(signature(method).parameters) == {"problem", *table}

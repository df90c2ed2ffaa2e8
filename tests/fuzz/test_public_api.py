"""Odd arguments for every public name: an answer that keeps what is promised, or one of our errors that names an argument.

``pytest --fuzz N`` tries about N examples here, drawn anew.
"""

import io
import os
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import mixbin as mb
from mixbin import datasets, plot, sets
from tests.fuzz import strategies as odd
from tests.fuzz.amount import examples
from tests.fuzz.functions import ABOUT_RETURNS, Odd, odd_problems
from tests.fuzz.looks import METHODS, drawn, fitted, limited, look_at_problem, look_at_result, sets_of
from tests.fuzz.strategies import REFUSED, tried
from tests.fuzz.tables import ALPHAS, BUDGETS, class_tables, new_rows, regression_tables, task_tables
from tests.instances import finite_sum

pytestmark = pytest.mark.slow

SHARES = {
    "set constructors": (60, 0.09),
    "set methods": (60, 0.18),
    "knapsack projections": (50, 0.09),
    "boxes": (30, 0.05),
    "functions": (40, 0.12),
    "keywords": (40, 0.10),
    "points": (25, 0.06),
    "ridge": (30, 0.07),
    "softmax": (25, 0.05),
    "group lasso": (15, 0.03),
    "regressor": (20, 0.04),
    "classifier": (15, 0.03),
    "group regressor": (8, 0.015),
    "suggestions": (3, 0.003),
    "made data": (25, 0.02),
    "figures": (4, 0.007),
    "files": (20, 0.02),
    "settings": (30, 0.02),
    "bilevel": (1, 0.005),
}
assert abs(sum(share for _, share in SHARES.values()) - 1.0) < 1e-9


def fuzz(area):
    """The settings of one area."""
    return examples(*SHARES[area])


# Sets.


SIZES = st.one_of(st.integers(-1, 9), st.sampled_from([0.5, 1.0, 2**62, 2**63, 2**70, (2, 3), (2**40, 2**40), [2], (), (1, 0)]))


@st.composite
def constructions(draw):
    name = draw(st.sampled_from(["Hypercube", "Budget", "Knapsack", "OneHot", "GroupBudget"]))
    n = draw(st.integers(0, 6))
    if name == "Hypercube":
        return name, (draw(odd.mostly(SIZES)),), {}
    if name == "OneHot":
        return name, (draw(odd.mostly(SIZES)), draw(odd.mostly(SIZES))), {}
    if name == "GroupBudget":
        groups = draw(odd.mostly(st.one_of(odd.groupings(n), odd.arrays((n,)))))
        k = st.one_of(st.none(), st.integers(0, 6), st.floats(0, 1), odd.finite)
        return name, (groups, draw(odd.mostly(odd.bounds())), draw(odd.mostly(odd.bounds()))), draw(odd.few_odd({"k": k}, most=1))
    if name == "Knapsack":
        weights = draw(st.one_of(odd.arrays((n,), odd.positive), odd.arrays((n,), odd.finite)))
        return name, (weights, draw(odd.mostly(odd.positive))), {}
    k = st.one_of(st.integers(-1, 9), st.floats(-0.1, 1.1), odd.finite)
    return name, (draw(odd.mostly(SIZES)), draw(odd.mostly(k))), draw(odd.few_odd({"at_most": st.booleans()}, most=1))


@fuzz("set constructors")
@given(constructions())
def test_set_constructors(construction):
    name, args, keywords = construction
    made = tried(getattr(mb, name), *args, **keywords)
    if made is REFUSED:
        return
    assert made.size == np.prod([int(n) for n in made.shape], dtype=object)
    assert "\n" not in repr(made)
    if made.size > 1000:
        return
    assert made.fingerprint() == getattr(mb, name)(*args, **keywords).fingerprint()
    look_at_set(made)


def look_at_set(made):
    """What holds for every set, whatever it was made from."""
    for rng in (None, np.random.default_rng(0)):
        start = made.start(rng)
        assert start.shape == made.shape
        assert made.contains(start)
    assert isinstance(made.cardinality(), int)
    first = next(iter(made.vertices()))
    assert first.dtype == bool
    assert made.violation(first) == 0.0
    assert sum(off.size for off, _ in made.moves(first)) == made.n_moves(first)


def any_set():
    """Also knapsacks with weights at the ends of their range."""
    n = st.shared(st.integers(1, 5), key="knapsack")
    weights = n.flatmap(lambda k: st.lists(odd.positive, min_size=k, max_size=k))
    return st.one_of(odd.good_sets(), odd.good_sets(), st.tuples(weights, odd.positive))


def built(made):
    return tried(mb.Knapsack, *made) if isinstance(made, tuple) else made


def is_plain(x):
    """Whether ``x`` is an array of finite numbers, to compare answers with."""
    return isinstance(x, np.ndarray) and not np.ma.isMaskedArray(x) and x.dtype.kind in "f" and bool(np.isfinite(x).all())


@fuzz("set methods")
@given(st.data())
def test_set_methods(data):
    theta_set = built(data.draw(any_set()))
    if theta_set is REFUSED:
        return
    x = data.draw(odd.arrays(theta_set.shape))
    before = x.copy() if isinstance(x, np.ndarray) else x
    projected = tried(theta_set.project, x)
    if projected is not REFUSED:
        assert projected.dtype == np.float64
        assert projected.shape == theta_set.shape
        assert theta_set.contains(projected)
        again = theta_set.project(projected)
        np.testing.assert_allclose(again, projected, rtol=0, atol=1e-9)
        assert not (isinstance(x, np.ndarray) and np.shares_memory(projected, x))
        if is_plain(x):
            look_at_nearest(theta_set, x, projected)
    vertex = tried(theta_set.vertex, x)
    assert (vertex is REFUSED) == (projected is REFUSED)
    if vertex is not REFUSED:
        assert vertex.dtype == bool
        assert theta_set.violation(vertex) == 0.0
        assert theta_set.contains(vertex.astype(float))
        assert tried(theta_set.distance_to_binary, x) >= 0
    rounded = tried(theta_set.round, x)
    assert rounded is REFUSED or (rounded.dtype == bool and tried(theta_set.violation, rounded) >= 0)
    assert tried(theta_set.contains, x) in (True, False, REFUSED)
    best = tried(theta_set.linear_oracle, x)
    if best is not REFUSED:
        assert best.dtype == np.float64
        assert theta_set.contains(best)
    along = tried(theta_set.tangent, x)
    assert along is REFUSED or (along.shape == theta_set.shape and not np.isnan(along).any())
    size = tried(theta_set.tangent_size, x)
    assert size is REFUSED or size >= 0
    tried(theta_set.start, data.draw(st.one_of(st.none(), odd.seeds, odd.oddities)))
    look_at_moves(data, theta_set, x)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f" and not np.ma.isMaskedArray(x):
        np.testing.assert_array_equal(x, before, err_msg="the argument was written to")


def look_at_nearest(theta_set, x, projected):
    """No point of the set is nearer: <x - p, v - p> <= 0 for binary points v."""
    x = np.asarray(x, dtype=np.float64)
    if np.abs(x).max() > 1e6:
        return
    weights = getattr(theta_set, "weights", np.ones(1))
    if 1e-6 * weights.max() > min(weights.min(), getattr(theta_set, "capacity", np.inf)):
        return
    for k, vertex in enumerate(theta_set.vertices()):
        if k == 30:
            break
        step = vertex - projected
        assert np.vdot(x - projected, step) <= 1e-7 * (1 + np.abs(x).max()) * theta_set.size


def look_at_moves(data, theta_set, x):
    theta = data.draw(
        st.one_of(
            st.just(theta_set.vertex(theta_set.start(np.random.default_rng(1)))),
            odd.arrays(theta_set.shape, st.sampled_from([0.0, 1.0])),
            st.just(x),
        )
    )
    violation = tried(theta_set.violation, theta)
    count = tried(theta_set.n_moves, theta)
    grad = data.draw(st.one_of(st.none(), st.just(x), odd.arrays(theta_set.shape)))
    moves = tried(lambda theta, grad: list(theta_set.moves(theta, grad)), theta, grad)
    if moves is not REFUSED:
        assert violation == 0
        assert sum(off.size for off, _ in moves) == count
        for off, on in moves:
            for i, j in list(zip(off, on, strict=True))[:5]:
                there = np.array(theta, dtype=bool)
                there.flat[[i] if i >= 0 else []] = False
                there.flat[[j] if j >= 0 else []] = True
                assert theta_set.violation(there) == 0.0
    eps = tried(theta_set.epsilon_star, theta, np.zeros(theta_set.shape) if grad is None else grad)
    assert eps is REFUSED or eps >= 0


@fuzz("knapsack projections")
@given(st.data())
def test_project_knapsack(data):
    shape = data.draw(st.sampled_from([(0,), (1,), (2,), (3,), (5,), (2, 2), ()]))
    one_or_all = st.one_of(odd.finite, odd.arrays(shape, spoil=12))
    keywords = data.draw(
        odd.few_odd(
            {
                "metric": st.one_of(st.none(), odd.positive, odd.arrays(shape, odd.positive, spoil=12)),
                "weights": st.one_of(st.none(), one_or_all, odd.arrays(shape, odd.tame, spoil=12)),
                "lower": st.one_of(st.just(0.0), st.just(-1.0), one_or_all),
                "upper": st.one_of(st.just(1.0), st.just(2.0), one_or_all),
                "capacity": st.one_of(odd.tame, odd.finite),
                "equality": st.booleans(),
            },
            most=1,
        )
    )
    keywords.setdefault("capacity", 1.0)
    x = tried(sets.project_knapsack, data.draw(odd.arrays(shape)), **keywords)
    if x is REFUSED:
        return
    assert x.dtype == np.float64
    assert np.isfinite(x).all()
    low, high = (np.asarray(keywords.get(name, end), dtype=float) for name, end in (("lower", 0.0), ("upper", 1.0)))
    assert np.all((low <= x) & (x <= high)), "outside of the bounds"
    weights = keywords.get("weights")
    b = np.ones(x.shape) if weights is None else np.broadcast_to(np.asarray(weights, dtype=float), x.shape)
    with np.errstate(all="ignore"):
        total, size = float(np.sum(b * x)), float(np.sum(np.abs(b) * np.maximum(np.abs(low), np.abs(high))))
    r = float(keywords["capacity"])
    # A number of Python, not of NumPy: near 1.7e308 the sum r + slack is inf, and need not warn.
    slack = float(1e-9 * (size + abs(r)) + np.finfo(float).tiny)
    if np.isfinite(slack):
        assert total <= r + slack
        assert not keywords.get("equality") or total >= r - slack


@fuzz("boxes")
@given(st.data())
def test_boxes(data):
    shape = data.draw(st.sampled_from([(), (0,), (1,), (3,), (2, 2)]))
    bounds = st.one_of(odd.arrays(shape), odd.arrays(shape, odd.positive))
    low, high = data.draw(bounds), data.draw(bounds)
    if data.draw(st.booleans()) and is_plain(low) and is_plain(high) and low.shape == high.shape:
        low, high = np.minimum(low, high), np.maximum(low, high)
    box = tried(mb.Box, low, high, **data.draw(odd.few_odd({"log": st.booleans()}, most=1)))
    if box is REFUSED:
        return
    assert "\n" not in repr(box)
    assert len(box.fingerprint()) > 10
    for rng in (None, np.random.default_rng(0)):
        start = box.start(rng)
        assert box.contains(start)
        unit = box.encode(start)
        assert unit.shape == box.shape
        assert np.all((unit >= -1e-9) & (unit <= 1 + 1e-9))
        assert box.contains(box.decode(unit))
    x = data.draw(odd.arrays(box.shape))
    projected = tried(box.project, x)
    if projected is not REFUSED:
        assert box.contains(projected)
        np.testing.assert_array_equal(box.project(projected), projected)
    assert tried(box.contains, x) in (True, False, REFUSED)
    tried(box.start, data.draw(st.one_of(st.none(), odd.seeds, odd.oddities)), about=("rng",))


# Functions that return odd things.


@fuzz("functions")
@given(st.data())
def test_functions_that_return_odd_things(data):
    problem = data.draw(odd_problems())
    method = data.draw(st.sampled_from(sorted(METHODS)))
    most = data.draw(st.integers(2, 60))
    solver = data.draw(st.sampled_from(["spectral", "projected", "frank-wolfe"]))
    extra = {} if method == "penalize" else {"rounding": data.draw(st.sampled_from(["top-k", "simple", None]))}
    result = tried(METHODS[method], problem, seed=0, max_evaluations=most, starts=2, solver=solver, **extra, about=ABOUT_RETURNS)
    if result is not REFUSED:
        look_at_result(result, problem, most)


# Keywords of the methods.


def solvers():
    return st.one_of(
        st.sampled_from(["spectral", "projected", "frank-wolfe", "saga", "stochastic"]),
        st.builds(
            mb.SpectralGradient,
            memory=st.integers(1, 3),
            tol=st.sampled_from([0.0, 1e-6, 1e300]),
            stall=st.sampled_from([0.0, 1e-4, 0.5]),
        ),
        st.builds(mb.ProjectedGradient, step_size=st.one_of(st.none(), odd.steps), tol=st.sampled_from([0.0, 1e-6])),
        st.builds(mb.FrankWolfe, tol=st.sampled_from([0.0, 1e-6, 1.0])),
        st.builds(mb.Saga, step_size=st.one_of(st.none(), odd.steps), batch=st.integers(1, 30), memory_limit=st.integers(1, 999)),
        st.builds(
            mb.StochasticGradient,
            step_size=st.one_of(st.none(), odd.steps),
            schedule=st.sampled_from(["sqrt", "inverse", "constant"]),
            decay=st.sampled_from([0.0, 1.0, 1e100]),
        ),
    )


def stop_at(n):
    seen = []

    def callback(event):
        seen.append(event.distance)
        if len(seen) == n:
            event.stop()

    return callback


PATHS = st.one_of(
    st.sampled_from(["", ".", "/", "no/such/folder/file", "x" * 300, "a\x00b", b"bytes", Path("no such file"), "\udcff"]),
    odd.oddities,
)

SHARED = {
    "solver": solvers(),
    "max_evaluations": st.integers(2, 80),
    "inner_steps": st.one_of(st.none(), st.integers(1, 5), st.lists(st.integers(1, 5), min_size=1, max_size=3)),
    "time_limit": st.one_of(st.none(), st.sampled_from([1e-9, 0.05, 1e300])),
    "reoptimize_lam": st.booleans(),
    "starts": st.one_of(st.just("auto"), st.integers(1, 3)),
    "seed": odd.seeds,
    "callbacks": st.builds(lambda n: [stop_at(n)], st.integers(1, 50)),
    "checkpoint": st.one_of(st.none(), st.just("kept"), PATHS),
    "checkpoint_every": st.sampled_from([0.0, 1e-9, 10.0, 1e300]),
}
PENALIZE = SHARED | {
    "epsilon0": st.one_of(st.just("auto"), odd.positive),
    "beta": st.one_of(st.floats(1e-3, 0.999), st.sampled_from([5e-324, 1e-300, 1 - 1e-16])),
    "tol": st.one_of(st.floats(1e-6, 0.499), st.sampled_from([5e-324, 0.5 - 1e-16])),
    "penalty": st.one_of(st.none(), st.builds(mb.Quadratic), st.builds(mb.Logarithmic, alpha=st.floats(1e-50, 1e50))),
    "max_outer": st.sampled_from([1, 2, 30]),
    "relax_first": st.booleans(),
    "polish": st.one_of(st.booleans(), st.integers(1, 30)),
    "gap_tol": st.one_of(st.just(0.0), st.floats(0.0, 2.0)),
    "search": st.sampled_from(["portfolio", "path"]),
}
ROUND = SHARED | {"rounding": st.sampled_from(["top-k", "simple", None])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@fuzz("keywords")
@given(st.data())
def test_keywords_of_the_methods(folder, data):
    if data.draw(st.booleans()):
        theta_set = data.draw(odd.good_sets(6))
        n_lam = data.draw(st.integers(0, 2))
        problem = finite_sum(theta_set, data.draw(st.integers(0, 20)), n_lam=n_lam, n_terms=data.draw(st.sampled_from([1, 5])))
    else:
        problem = data.draw(odd_problems(spoiled=False))
    name = data.draw(st.sampled_from(sorted(METHODS)))
    keywords = data.draw(odd.few_odd(PENALIZE if name == "penalize" else ROUND))
    # A run that is not limited is of no use here.
    keywords.setdefault("max_evaluations", 60)
    if keywords["max_evaluations"] is None or isinstance(keywords["max_evaluations"], np.integer | int):
        keywords["max_evaluations"] = min(keywords["max_evaluations"] or 60, 80)
    if data.draw(st.booleans()):
        keywords["theta0"] = data.draw(odd.arrays(problem.theta_set.shape))
    if data.draw(st.booleans()):
        keywords["lam0"] = data.draw(st.one_of(st.just(problem.lam_set.start()), odd.arrays(problem.lam_set.shape)))
    # Checkpoints are written in a folder of the test.
    shutil.rmtree(folder)
    folder.mkdir()
    with chdir(folder):
        result = tried(METHODS[name], problem, **keywords, about=ABOUT_RETURNS)
    if result is not REFUSED:
        look_at_result(result, problem, keywords["max_evaluations"])


@fuzz("points")
@given(st.data())
def test_points_of_problems(data):
    """``FunctionProblem`` itself, ``certify`` and ``enumerate_binary``."""
    spoiled = data.draw(st.booleans())
    problem = data.draw(odd_problems(most=5, spoiled=spoiled))
    args = [problem.function, problem.theta_set, problem.lam_set]
    k = data.draw(st.integers(0, 5))
    if k < 3:
        args[k] = data.draw(odd.oddities)
        tried(mb.FunctionProblem, *args, **data.draw(odd.few_odd({"value": st.none()}, most=1)))
    theta_set = problem.theta_set
    theta = data.draw(
        st.one_of(
            st.just(theta_set.vertex(theta_set.start(np.random.default_rng(0)))),
            odd.arrays(theta_set.shape, st.sampled_from([0.0, 1.0])),
            odd.oddities,
        )
    )
    lam = data.draw(st.one_of(st.just(problem.lam_set.start()), odd.arrays(problem.lam_set.shape, spoil=2), st.none()))
    keywords = data.draw(odd.few_odd({"max_moves": st.integers(0, 20), "seed": odd.seeds}, most=1))
    about = ("value", "grad_theta", "grad_lam", "function")
    certificate = tried(mb.certify, problem, theta, lam, **keywords, about=about)
    if certificate is not REFUSED:
        assert str(certificate)
        assert certificate.moves_tried <= certificate.moves_total
        assert certificate.epsilon_star >= 0
    tried(mb.certify, data.draw(odd.oddities), theta)
    tried(mb.enumerate_binary, data.draw(odd.oddities))
    large = mb.FunctionProblem(problem.function, mb.Hypercube(data.draw(st.sampled_from([21, 40, 2000, 2**20, 2**30]))))
    assert tried(mb.enumerate_binary, large) is REFUSED
    if theta_set.cardinality() <= 32:
        result = tried(mb.enumerate_binary, problem, about=about)
        if result is not REFUSED:
            look_at_result(result, problem)


# Problems that are made from data.


RIDGE = {
    "budget": BUDGETS,
    "alpha": ALPHAS,
    "outer_alpha": st.one_of(st.sampled_from([0, "cv"]), odd.positive),
    "outer_coef": st.one_of(st.none(), odd.arrays((3,)), odd.arrays((2, 3))),
    "standardize": st.booleans(),
    "cv_seed": odd.seeds,
    "compact": st.booleans(),
}


@fuzz("ridge")
@given(st.data())
def test_ridge_distillation(data):
    parts = regression_tables(data.draw)
    keywords = data.draw(odd.few_odd(RIDGE, most=1))
    keywords.setdefault("budget", 3)
    parts = parts if data.draw(st.booleans()) else parts[:2]
    if data.draw(st.integers(0, 4)) == 4:
        keywords["chunks"] = data.draw(odd.mostly(st.sampled_from([[9], [4, 5], (3, 3, 3), [4], 20, [0, 9], []]), one_in=3))
    problem = tried(mb.RidgeDistillation, *parts, **keywords)
    if problem is not REFUSED:
        look_at_problem(data, problem, about=("outer_coef", "outer_alpha"))
        made = tried(
            mb.PublishedGradient, problem, **data.draw(odd.few_odd({"batch": st.integers(0, 9), "seed": odd.seeds}, most=1))
        )
        if made is not REFUSED:
            about = ("alpha", "X", "theta0", "value", "grad_theta")
            result = tried(mb.relax_and_penalize, made, seed=0, max_evaluations=5, starts=1, about=about)
            if result is not REFUSED:
                look_at_result(result, made)


@fuzz("softmax")
@given(st.data())
def test_softmax_distillation(data):
    parts = class_tables(data.draw)
    keywords = data.draw(
        odd.few_odd(
            {
                "budget": st.one_of(st.none(), BUDGETS),
                "alpha": ALPHAS,
                "judge_loss": st.just("cross-entropy"),
                "temperature": st.one_of(odd.positive, odd.tame),
                "balanced": st.booleans(),
                "class_shares": st.one_of(st.none(), st.floats(0, 1), odd.finite),
                "path_tol": st.one_of(st.none(), odd.positive),
            },
            most=2,
        )
    )
    parts = parts if data.draw(st.booleans()) else parts[:2]
    problem = tried(mb.SoftmaxDistillation, *parts, **keywords)
    if problem is not REFUSED:
        look_at_problem(data, problem, most=8, about=("temperature",))


@pytest.fixture(scope="module")
def kernels():
    """Those of the group lasso are compiled once, or read from the cache."""
    X, y = np.random.default_rng(0).normal(size=(2, 4, 3)), np.ones((2, 4))
    for lower in ("implicit", "unrolled"):
        mb.relax_and_penalize(mb.GroupLassoStructure(X, y, X, y, n_groups=2, lower=lower, n_jobs=1), seed=0, max_evaluations=60)


GROUPS = {
    "n_groups": st.integers(2, 4),
    "ridge": st.one_of(odd.positive, st.floats(1e-6, 1.0)),
    "lam_bounds": st.one_of(odd.positive, odd.pairs, st.sampled_from([(1e-3, 1.0), 0.1])),
    "lam_scale": st.sampled_from(["log", "linear"]),
    "lower": st.sampled_from(["implicit", "unrolled"]),
    "q": st.integers(1, 20),
    "start": st.sampled_from(["data", "training", "random"]),
    "moves": st.sampled_from(["supported", "all"]),
    "n_jobs": st.just(1),
}


@fuzz("group lasso")
@given(st.data())
def test_group_lasso_structure(kernels, data):
    parts = task_tables(data.draw)
    keywords = data.draw(odd.few_odd(GROUPS, most=1))
    keywords.setdefault("n_groups", 2)
    keywords.setdefault("n_jobs", 1)
    problem = tried(mb.GroupLassoStructure, *parts, **keywords)
    if problem is not REFUSED:
        look_at_problem(data, problem, most=6, about=("task",))


# Estimators.


ESTIMATOR = {
    "alpha": ALPHAS,
    "method": st.sampled_from(["penalize", "top-k", "simple", "relax"]),
    "validation_fraction": st.one_of(st.floats(0.05, 0.95), st.floats(0.05, 0.95), odd.finite),
    "random_state": st.one_of(
        st.integers(0, 9), st.none(), st.sampled_from([2**31, 2**32 - 1, 2**32, -1]), st.builds(np.random.RandomState, st.just(0))
    ),
    "max_evaluations": st.integers(2, 15),
    "verbose": st.booleans(),
    "time_limit": st.one_of(st.none(), st.sampled_from([1e-9, 0.05, 1e300])),
    "callbacks": st.one_of(st.none(), st.builds(lambda n: [stop_at(n)], st.integers(1, 50))),
}
ABOUT_ESTIMATOR = (
    *ESTIMATOR,
    "outer_coef",
    "tolerance",
    "class_shares",
    "balanced",
    "judge_loss",
    "fit_intercept",
    "budget",
    "temperature",
    "n_groups",
    "lam",
    "ridge",
    "n_jobs",
    "theta0",
    "value",
    "lam_bounds",
    "method",
    "judge",
    "standardize",
    "outer_alpha",
    "gap_tol",
)


@fuzz("regressor")
@given(st.data())
def test_distillation_regressor(data):
    judge = {
        "judge": st.sampled_from(["auto", "full", "validation"]),
        "standardize": st.booleans(),
        "outer_alpha": st.sampled_from(["cv", 0, 1e-3, 1e9]),
        "gap_tol": st.sampled_from([0, 1e-3, 10.0]),
        "outer_coef": st.one_of(st.none(), odd.arrays((3,)), odd.arrays((2, 3))),
        "tolerance": odd.positive,
    }
    keywords = data.draw(odd.few_odd(ESTIMATOR | {"budget": st.one_of(BUDGETS, st.just("auto"))} | judge, most=1))
    keywords.setdefault("budget", 3)
    model = mb.DistillationRegressor(**limited(keywords))
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((1, 3)))
    parts = regression_tables(data.draw)
    parts = parts if data.draw(st.booleans()) else parts[:2]
    if fitted(model.fit, *parts, about=ABOUT_ESTIMATOR) is REFUSED:
        return
    look_at_result(model.result_, sets_of(model), keywords["max_evaluations"])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.alpha_ > 0
    assert model.support_.dtype == bool
    X = new_rows(data, model.n_features_in_)
    predicted = fitted(model.predict, X)
    if predicted is not REFUSED:
        assert np.isfinite(predicted).all()
        assert not hasattr(X, "shape") or len(predicted) == X.shape[0]
        assert fitted(model.score, np.zeros((2, model.n_features_in_)), np.zeros((2, *predicted.shape[1:]))) <= 1


@fuzz("classifier")
@given(st.data())
def test_distillation_classifier(data):
    extra = {
        "budget": st.one_of(st.none(), BUDGETS),
        "temperature": st.one_of(odd.positive, st.just(3.0)),
        "judge_loss": st.sampled_from([None, "bounded", "cross-entropy"]),
        "balanced": st.booleans(),
        "class_shares": st.one_of(st.none(), st.floats(0, 1), odd.finite),
        "validation_fraction": st.one_of(st.none(), st.floats(0.05, 0.95)),
    }
    keywords = limited(data.draw(odd.few_odd(ESTIMATOR | extra, most=1)))
    model = mb.DistillationClassifier(**keywords)
    parts = class_tables(data.draw)
    parts = parts if data.draw(st.booleans()) else parts[:2]
    if fitted(model.fit, *parts, about=ABOUT_ESTIMATOR) is REFUSED:
        return
    look_at_result(model.result_, sets_of(model))
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    X = new_rows(data, model.n_features_in_)
    shares = fitted(model.predict_proba, X)
    if shares is not REFUSED:
        assert shares.shape[1] == len(model.classes_)
        assert not hasattr(X, "shape") or len(shares) == X.shape[0]
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        predicted = fitted(model.predict, X)
        assert np.isin(predicted, model.classes_).all()
        assert fitted(model.score, X, predicted) == 1.0


GROUP_ESTIMATOR = {
    **ESTIMATOR,
    "n_groups": st.integers(2, 4),
    "lam": st.one_of(st.none(), st.just("cv"), odd.positive, odd.pairs),
    "ridge": st.one_of(st.floats(1e-6, 1.0), odd.positive),
    "n_jobs": st.just(1),
    "fit_intercept": st.booleans(),
}
del GROUP_ESTIMATOR["alpha"]


def long_tables(draw):
    """One table with the task of each row."""
    X, y, X_val, y_val = task_tables(draw)
    try:
        with odd.quiet():
            flat = [np.concatenate([np.atleast_2d(t) for t in X]), np.concatenate([np.ravel(t) for t in y])]
    except (TypeError, ValueError, IndexError):
        return [X, y, X_val, y_val], {}
    ids = draw(
        st.sampled_from([list(range(3)), ["a", "b", "c"], [("a", 1), ("b", 2), 3], [1, 1.0, True], [None, 1, 2], [np.nan, 1, 2]])
    )
    tasks = [ids[i % 3] for i in range(len(flat[0]))]
    return flat, {"tasks": draw(odd.mostly(st.just(tasks)))}


@fuzz("group regressor")
@given(st.data())
def test_group_structure_regressor(kernels, data):
    keywords = limited(data.draw(odd.few_odd(GROUP_ESTIMATOR, most=1)))
    keywords.setdefault("n_groups", 2)
    keywords.setdefault("n_jobs", 1)
    model = mb.GroupStructureRegressor(**keywords)
    parts, tasks = long_tables(data.draw) if data.draw(st.booleans()) else (task_tables(data.draw), {})
    parts = parts if data.draw(st.booleans()) else parts[:2]
    if fitted(model.fit, *parts, **tasks, about=ABOUT_ESTIMATOR) is REFUSED:
        return
    look_at_result(model.result_, sets_of(model))
    assert np.isfinite(model.coef_).all()
    assert model.labels_.shape == (model.n_features_in_,)
    X = parts[0] if data.draw(st.booleans()) else odd.shaped(data.draw, np.zeros((len(model.coef_), 2, model.n_features_in_)), 2)
    predicted = fitted(model.predict, X, **tasks, about=("tasks",))
    if predicted is not REFUSED:
        assert all(np.isfinite(part).all() for part in predicted)
        fitted(model.score, X, predicted, **tasks, about=("tasks",))
        fitted(model.score, X, odd.shaped(data.draw, np.zeros(3), 2), **tasks, about=("tasks",))


@fuzz("suggestions")
@given(st.data())
def test_suggest_n_groups(kernels, data):
    parts = task_tables(data.draw)
    candidates = data.draw(
        odd.mostly(st.sampled_from([(2,), [2, 3], (2, 99), (99,), {2}, (1,), (), np.array([2, 3]), "23"]), one_in=3)
    )
    keywords = data.draw(odd.few_odd({"ridge": odd.positive, "method": st.just("top-k"), "random_state": odd.seeds}, most=1))
    got = fitted(
        mb.suggest_n_groups, *parts, candidates=candidates, max_evaluations=4, n_jobs=1, **keywords, about=ABOUT_ESTIMATOR
    )
    if got is not REFUSED:
        assert got.suggested in got.candidates
        assert np.isfinite(got.values).all()


# Everything else.


@fuzz("made data")
@given(
    odd.few_odd(
        {
            "groups": st.sampled_from(["equal", "inequal", "random"]),
            "a": st.one_of(st.floats(-0.1, 1.1), odd.finite),
            "n_tasks": st.integers(0, 4),
            "n_samples": st.integers(1, 5),
            "n_features": st.integers(0, 12),
            "n_groups": st.integers(0, 5),
            "noise": st.one_of(st.floats(0, 2), odd.finite),
            "seed": odd.seeds,
        }
    )
)
def test_made_data(keywords):
    keywords = {"n_tasks": 3, "n_samples": 4, "n_features": 8, "n_groups": 2} | keywords
    made = tried(datasets.make_group_lasso, **keywords)
    if made is not REFUSED:
        assert np.isfinite(made.X).all()
        assert np.isfinite(made.y).all()
        assert made.theta.sum() == keywords["n_features"]
        assert "\n" not in repr(made)


@pytest.fixture(scope="module")
def result():
    theta_set = mb.Budget(6, 2)
    problem = mb.FunctionProblem(Odd(theta_set, 0, 0, {}, "always", 0), theta_set)
    return mb.relax_and_penalize(problem, seed=0, max_evaluations=60)


@fuzz("figures")
@given(st.data())
def test_figures(result, data):
    n = data.draw(st.integers(0, 6))
    words = st.one_of(st.just(""), st.text(max_size=20), st.sampled_from(["$x_", "a\x00b", "\\frac", "x" * 500, "𝔘nicode ü"]))
    kind = data.draw(st.sampled_from(["trace", "distance", "selection", "structure", "evolution"]))
    if kind == "trace":
        figure = tried(plot.trace, data.draw(st.one_of(st.just(result), st.just(result.trace), odd.oddities)), about=("start",))
    elif kind == "distance":
        steps = data.draw(st.one_of(odd.arrays((n,)), st.just(np.arange(float(n)))))
        distance = data.draw(odd.arrays((n,), st.one_of(st.floats(0, 1), st.just(np.nan))))
        curve = tried(plot.distance_curve, steps, distance, data.draw(odd.mostly(words)), data.draw(odd.mostly(words)))
        figure = curve if curve is REFUSED else tried(plot.distance, curve)
    elif kind == "selection":
        mask = data.draw(odd.arrays((n,), st.sampled_from([0.0, 1.0])))
        values = data.draw(st.one_of(st.none(), odd.arrays((n,))))
        figure = tried(plot.selection, mask, values, data.draw(odd.mostly(words)))
    elif kind == "structure":
        theta = data.draw(odd.arrays((n, 2), st.floats(0, 1)))
        names = data.draw(odd.mostly(st.one_of(st.none(), st.lists(words, min_size=n, max_size=n))))
        marks = data.draw(odd.mostly(st.one_of(st.none(), st.lists(st.integers(-1, 9), min_size=n, max_size=n))))
        figure = tried(plot.structure, theta, names, marks, data.draw(odd.mostly(words)))
    else:
        curves = ["validation", "validation_rounded", "n_selected", "integrality", "test", "test_rounded", "rmse"]
        made = {name: odd.arrays((n,), st.one_of(odd.finite, st.sampled_from(odd.NOT_FINITE)), spoil=30) for name in curves}
        made |= {"steps": st.just(np.arange(float(n))), "unit": words, "budget": st.integers(0, 9), "title": words}
        it = tried(plot.Evolution, **{name: data.draw(strategy) for name, strategy in made.items()})
        figure = it if it is REFUSED else tried(plot.evolution, it)
    if figure is not REFUSED:
        drawn(figure.figure)


@fuzz("files")
@given(st.data())
def test_files(result, tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / f"fuzz-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    path = folder / "result"
    kind = data.draw(st.sampled_from(["bytes", "archive", "path", "save", "data"]))
    if kind == "bytes":
        path.write_bytes(data.draw(st.binary(max_size=200)))
        assert tried(mb.Result.load, path, about=(path.name,)) is REFUSED
    elif kind == "archive":
        names = st.sampled_from(["header", "theta", "lam", "trace_G", "x"])
        members = data.draw(st.dictionaries(names, odd.arrays((2,), spoil=2), max_size=4))
        out = io.BytesIO()
        plain = {name: a for name, a in members.items() if isinstance(a, np.ndarray) and a.dtype != object}
        np.savez(out, **{name: np.asarray(a) for name, a in plain.items()})
        path.write_bytes(out.getvalue())
        assert tried(mb.Result.load, path, about=(path.name,)) is REFUSED
    elif kind == "path":
        place = data.draw(PATHS)
        assert tried(mb.Result.load, place, about=(os.path.basename(str(folder)),)) is REFUSED
    elif kind == "save":
        place = data.draw(PATHS)
        # What is a name is written, in the folder of this test and not where the test was started.
        if isinstance(place, str | bytes | Path):
            place = os.path.join(os.fsencode(folder) if isinstance(place, bytes) else str(folder), place)
        tried(result.save, place)
    else:
        place = data.draw(PATHS)
        if place is not None:
            tried(data.draw(st.sampled_from([datasets.load_blog, datasets.load_music])), place)


CONSTRUCTORS = {
    mb.Logarithmic: {"alpha": odd.positive},
    mb.SpectralGradient: {"memory": st.integers(0, 9), "tol": odd.finite, "stall": odd.finite},
    mb.ProjectedGradient: {"step_size": odd.finite, "step_size_lam": odd.finite, "tol": odd.finite},
    mb.FrankWolfe: {"tol": odd.finite},
    mb.Saga: {
        "step_size": odd.finite,
        "step_size_lam": odd.finite,
        "batch": st.integers(0, 9),
        "tol": odd.finite,
        "memory_limit": st.integers(0, 99),
    },
    mb.StochasticGradient: {
        "step_size": odd.finite,
        "step_size_lam": odd.finite,
        "schedule": st.just("sqrt"),
        "decay": odd.finite,
        "batch": st.integers(0, 9),
        "tol": odd.finite,
    },
    mb.Implicit: {"solver": st.sampled_from(["auto", "cg"]), "tol": odd.finite, "max_steps": st.integers(0, 9)},
    mb.Unrolled: {"q": st.integers(0, 9)},
    mb.FirstOrder: {"weight": odd.finite, "steps": st.one_of(st.none(), st.integers(0, 9))},
    mb.Minimise: {
        "max_steps": st.integers(0, 9),
        "newton": st.integers(-1, 9),
        "tol": odd.finite,
        "limit": odd.finite,
        "solver": st.just("auto"),
    },
    mb.FixedPoint: {"step": st.just(len), "max_steps": st.integers(0, 9), "tol": odd.finite, "limit": odd.finite},
    mb.OwnSolver: {"solve": st.just(len), "tol": odd.finite, "limit": odd.finite},
    mb.paper_settings: {
        "experiment": st.sampled_from(["blog", "music", "groups"]),
        "beta": st.one_of(st.none(), st.floats(0, 1), odd.finite),
        "steps": st.one_of(st.none(), st.integers(100, 1000)),
        "n_tasks": st.integers(0, 900),
    },
}
FIRST = {mb.FixedPoint: {"step": len}, mb.OwnSolver: {"solve": len}, mb.paper_settings: {"experiment": "blog"}}


@fuzz("settings")
@given(st.data())
def test_settings_and_records(result, data):
    make = data.draw(st.sampled_from(list(CONSTRUCTORS)))
    made = tried(make, **FIRST.get(make, {}) | data.draw(odd.few_odd(CONSTRUCTORS[make], most=1)))
    if made is not REFUSED and make is mb.Logarithmic:
        theta = np.array([0.0, 0.3, 0.5, 1.0])
        assert 0 <= made.value(theta) < 10
        assert np.isfinite(made.gradient(theta)).all()
    if made is not REFUSED and make is mb.paper_settings:
        assert 0 < made["beta"] < 1
    numbers = st.one_of(odd.finite, st.sampled_from(odd.NOT_FINITE))
    assert str(mb.Certificate(*(data.draw(numbers) for _ in range(4)), 3, 5, data.draw(numbers), data.draw(numbers)))
    tried(result.trace.column, data.draw(odd.oddities), about=("column",))
    parts = regression_tables(data.draw)
    made = tried(
        mb.paper_problem,
        data.draw(odd.mostly(st.sampled_from(["blog", "groups"]))),
        *parts,
        **data.draw(odd.few_odd({"budget": BUDGETS, "seed": odd.seeds}, most=1)),
        about=("alpha", "batch"),
    )


@fuzz("bilevel")
@given(st.data())
def test_bilevel(data):
    from jax import tree
    from jax.flatten_util import ravel_pytree

    def flat(w):
        return ravel_pytree(w)[0]

    keywords = {
        "outer": st.just(lambda w, theta, lam: ((flat(w) - 1.0) ** 2).sum()),
        "inner": st.just(lambda w, theta, lam: (theta.sum() + 1.0) * (flat(w) ** 2).sum() - flat(w).sum()),
        "w0": st.one_of(st.just(0.0), odd.arrays((2,)), st.just({"a": 1.0, "b": [np.zeros(2)]})),
        "theta_set": st.just(mb.Budget(3, 1)),
        "lower": st.none(),
    }
    made = {name: data.draw(strategy) for name, strategy in keywords.items()}
    spoiled = data.draw(st.sampled_from(["", "w0", *keywords, "lam_set", "hypergradient", "n_terms", "outer_terms"]))
    if spoiled and spoiled != "w0":
        made[spoiled] = data.draw(odd.oddities)
    problem = tried(mb.bilevel, **made)
    if problem is not REFUSED and (isinstance(made["w0"], dict) or sum(map(np.size, tree.leaves(made["w0"]))) == 1):
        got = tried(mb.relax_and_penalize, problem, seed=0, max_evaluations=4, starts=1, about=("value", "w0", "limit"))
        if got is not REFUSED:
            look_at_result(got, problem)

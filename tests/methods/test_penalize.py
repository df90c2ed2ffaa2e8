"""Algorithm 1: always binary and feasible, not stopped at the start, ties broken, the same bits from the same seed."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import mixbin as mb
from mixbin import Status
from mixbin.methods import run
from mixbin.methods.journal import Journal
from tests.instances import QuadraticG, optimum, quadratic, tiny_instances

SETS = [
    mb.Hypercube(9),
    mb.Hypercube((3, 4)),
    mb.Budget(20, 6),
    mb.Budget(20, 20),
    mb.Budget(1, 1),
    mb.Budget(20, 6, at_most=True),
    mb.OneHot(6, 5),
    mb.OneHot(4, 1),
    mb.Knapsack(np.arange(1.0, 13.0), 30.0),
]


@pytest.mark.parametrize("theta_set", SETS, ids=repr)
@pytest.mark.parametrize("kind", ["convex", "concave", "indefinite"])
@pytest.mark.parametrize("n_lam", [0, pytest.param(2, marks=pytest.mark.ci)])
def test_answer_is_binary_feasible_and_its_value_true(theta_set, kind, n_lam):
    problem = quadratic(theta_set, 3, kind, n_lam)
    result = mb.relax_and_penalize(problem, seed=0)
    assert result.theta.dtype == np.bool_
    assert result.theta.shape == theta_set.shape
    assert theta_set.violation(result.theta) == 0
    assert result.violation == 0
    assert problem.lam_set.contains(result.lam)
    assert result.status is Status.BINARY
    again = problem.evaluate(result.theta.astype(float), result.lam)
    assert result.value == again.value
    if n_lam:
        best = problem.lam_set.project(problem.function.B @ result.theta.ravel())
        np.testing.assert_allclose(result.lam, best, atol=1e-4)


def separable(cost):
    return lambda theta: (float(np.vdot(cost, theta)), cost)


def test_a_budget_of_a_tenth_of_a_percent_does_not_stop_at_the_start():
    """max min(theta, 1 - theta) = 0.001 < tol at the start; the distance to binary points is 0.999."""
    rng = np.random.default_rng(0)
    cost = rng.normal(size=5_000)
    result = mb.relax_and_penalize(mb.FunctionProblem(separable(cost), mb.Budget(5_000, 5)), seed=0)
    assert result.status is Status.BINARY
    assert set(np.flatnonzero(result.theta)) == set(np.argsort(cost)[:5])
    outer = result.trace.to_frame().query("phase == 'penalise' and distance == distance")
    assert outer["distance"].iloc[0] == 0 or len(outer) > 1
    assert 0.9 < problem_start_distance(mb.Budget(5_000, 5)) < 1


def problem_start_distance(theta_set):
    return theta_set.distance_to_binary(theta_set.start())


def test_one_hot_with_200_columns_does_not_stop_at_the_start():
    cost = np.random.default_rng(1).normal(size=(3, 200))
    theta_set = mb.OneHot(3, 200)
    assert np.max(np.minimum(theta_set.start(), 1 - theta_set.start())) < 1e-2
    result = mb.relax_and_penalize(mb.FunctionProblem(separable(cost), theta_set), seed=0, starts=1)
    assert result.status is Status.BINARY
    np.testing.assert_array_equal(result.theta.argmax(1), cost.argmin(1))


def with_duplicates(theta_set, copies, seed):
    """G depends on each class of ``copies`` identical coordinates through its sum only, and the best sums are fractional."""
    rng = np.random.default_rng(seed)
    n_classes = theta_set.size // copies
    S = np.kron(np.eye(n_classes), np.ones(copies))
    A = rng.normal(size=(n_classes, n_classes))
    Q = S.T @ (A @ A.T / n_classes + np.eye(n_classes)) @ S
    target = rng.uniform(0.2, copies - 0.2, size=n_classes)
    return mb.FunctionProblem(QuadraticG(Q, -Q @ (S.T @ target) / copies), theta_set)


@pytest.mark.parametrize("copies", [2, 3, 15])
@pytest.mark.parametrize("seed", [0, *(pytest.param(it, marks=pytest.mark.ci) for it in range(1, 5))])
@pytest.mark.parametrize("kind", ["budget", "at most", "hypercube", "one-hot", "knapsack"])
def test_exact_duplicates_end_binary_and_feasible(copies, seed, kind):
    size = 4 * copies
    theta_set = {
        "budget": mb.Budget(size, int(0.45 * size)),
        "at most": mb.Budget(size, int(0.45 * size), at_most=True),
        "hypercube": mb.Hypercube(size),
        "one-hot": mb.OneHot(4, copies),
        "knapsack": mb.Knapsack(np.repeat([1.0, 2.0, 1.0, 3.0], copies), 0.8 * size),
    }[kind]
    result = mb.relax_and_penalize(with_duplicates(theta_set, copies, seed), seed=0, starts=1)
    assert result.status is Status.BINARY, result.message
    assert theta_set.violation(result.theta) == 0


def test_a_whole_set_of_duplicates():
    """All coordinates identical: every selection is as good, one must still be taken."""
    for theta_set in (mb.Budget(15, 7), mb.OneHot(5, 3), mb.Hypercube(6)):
        flat = mb.FunctionProblem(lambda theta: (0.0, np.zeros(theta.shape)), theta_set)
        result = mb.relax_and_penalize(flat, seed=0)
        assert result.status is Status.BINARY
        assert theta_set.violation(result.theta) == 0


@pytest.mark.slow
def test_the_enumerated_optimum_on_tiny_instances():
    """At least 70 % with defaults; the share with one start is lower but not hopeless (figures: benchmarks/tiny_instances.py)."""
    instances = tiny_instances()[::8]
    found = {"auto": 0, 1: 0}
    for problem in instances:
        best = optimum(problem)
        for starts in found:
            result = mb.relax_and_penalize(problem, starts=starts, seed=0)
            assert problem.theta_set.violation(result.theta) == 0
            assert result.value >= best - 1e-9
            found[starts] += result.value <= best + 1e-9 * max(1.0, abs(best))
    assert found["auto"] >= 0.7 * len(instances)
    assert 0.4 * len(instances) <= found[1] <= found["auto"]


def answer_bits(seed: int, search: str = "portfolio") -> str:
    problem = quadratic(mb.Budget(40, 11), 5, "indefinite", n_lam=2)
    result = mb.relax_and_penalize(problem, search=search, seed=seed)
    frame = result.trace.to_frame().drop(columns="seconds")
    parts = (result.theta.tobytes(), result.lam.tobytes(), np.float64(result.value).tobytes(), frame.to_csv().encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()


@pytest.mark.slow
def test_same_seed_same_bits_twice_and_in_two_processes():
    here = answer_bits(7)
    assert answer_bits(7) == here
    code = "from tests.methods.test_penalize import answer_bits; print(answer_bits(7))"
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, env=os.environ | {"PYTHONPATH": path}
    )
    assert there.stdout.strip() == here
    assert answer_bits(8, "path") != answer_bits(7, "path")


def test_a_generator_as_seed_and_no_seed_can_be_repeated():
    problem = quadratic(mb.Budget(12, 4), 0)
    given = mb.relax_and_penalize(problem, seed=np.random.default_rng(3))
    assert mb.relax_and_penalize(problem, seed=np.random.default_rng(3)).seed == given.seed
    free = mb.relax_and_penalize(problem)
    again = mb.relax_and_penalize(problem, seed=free.seed)
    np.testing.assert_array_equal(free.theta, again.theta)


def test_scaling_G_changes_nothing():
    """eps_0 and the steps follow the scale of G."""
    problem = quadratic(mb.Budget(20, 6), 1)
    G = problem.function
    thousandfold = mb.FunctionProblem(QuadraticG(1024 * G.Q, 1024 * G.c), problem.theta_set)
    a, b = mb.relax_and_penalize(problem, seed=0), mb.relax_and_penalize(thousandfold, seed=0)
    np.testing.assert_array_equal(a.theta, b.theta)
    assert b.n_evaluations == a.n_evaluations
    assert b.value == pytest.approx(1024 * a.value)


def test_an_offset_of_the_gradient_that_the_budget_cannot_see_changes_nothing():
    problem = quadratic(mb.Budget(20, 6), 2)
    G = problem.function
    shifted = mb.FunctionProblem(QuadraticG(G.Q, G.c + 64.0), problem.theta_set)
    a, b = mb.relax_and_penalize(problem, seed=0, starts=1), mb.relax_and_penalize(shifted, seed=0, starts=1)
    assert b.trace.column("epsilon")[-1] == pytest.approx(a.trace.column("epsilon")[-1])
    np.testing.assert_array_equal(a.theta, b.theta)


@pytest.mark.parametrize("limit", [2, 3, 5, 17, 60])
def test_max_evaluations_is_kept_and_the_answer_feasible(limit):
    problem = quadratic(mb.Budget(30, 7), 0, "convex", n_lam=1)
    calls = []

    def counting(theta, lam):
        calls.append(1)
        return problem.function(theta, lam)

    counted = mb.FunctionProblem(counting, problem.theta_set, problem.lam_set)
    counted.check_first_gradient = False  # its calls are not counted
    result = mb.relax_and_penalize(counted, max_evaluations=limit, seed=0)
    assert len(calls) == result.n_evaluations <= limit
    assert problem.theta_set.violation(result.theta) == 0
    if limit <= 17:
        assert result.status is Status.REPAIRED
        assert "max_evaluations" in result.message


def test_max_outer_ends_in_repair():
    problem = quadratic(mb.Budget(30, 7), 0, "convex")
    result = mb.relax_and_penalize(problem, max_outer=1, seed=0)
    assert result.status is Status.REPAIRED
    assert "max_outer = 1" in result.message
    assert result.theta.sum() == 7


def test_time_limit_ends_in_a_feasible_answer(monkeypatch):
    looks = iter(range(10**6))
    monkeypatch.setattr(Journal, "seconds", lambda self: 0.001 * next(looks))
    problem = quadratic(mb.Budget(30, 7), 0, "convex")
    result = mb.relax_and_penalize(problem, time_limit=0.03, seed=0)
    assert result.theta.sum() == 7
    assert result.status is Status.REPAIRED
    assert "time_limit" in result.message
    with pytest.raises(mb.InvalidInput, match="time_limit must leave room"):
        mb.relax_and_penalize(problem, time_limit=1e-9, seed=0)


def test_more_starts_are_never_worse_and_auto_depends_on_size_only():
    for seed in range(5):
        problem = quadratic(mb.OneHot(5, 4), seed)
        for search in ("path", "portfolio"):
            one, four = (mb.relax_and_penalize(problem, search=search, starts=starts, seed=0) for starts in (1, 4))
            assert four.value <= one.value
    small, large = quadratic(mb.Budget(30, 3), 0), mb.FunctionProblem(separable(np.arange(2_001.0)), mb.Budget(2_001, 3))
    assert mb.relax_and_penalize(small, search="path", seed=0).trace.column("start").max() == 7
    assert mb.relax_and_penalize(small, seed=0).trace.column("start").max() > 0
    assert mb.relax_and_penalize(large, seed=0).trace.column("start").max() == 0


def test_theta0_lam0_and_epsilon0_are_used():
    problem = quadratic(mb.Budget(10, 3), 0, n_lam=1)
    theta0 = np.zeros(10)
    theta0[:3] = 1.0
    seen = []
    mb.relax_and_penalize(
        problem, theta0=theta0, lam0=[1.5], epsilon0=7.0, starts=1, seed=0, relax_first=False, beta=0.25, callbacks=[seen.append]
    )
    assert seen[0].epsilon == 7.0
    assert {event.epsilon for event in seen if event.phase == "penalise"} <= {7.0 * 0.25**k for k in range(50)}
    first = []
    mb.relax_and_penalize(problem, theta0=theta0, lam0=[1.5], starts=1, seed=0, callbacks=[first.append])
    np.testing.assert_array_equal(first[0].theta, theta0)
    assert first[0].lam == pytest.approx([1.5])


def test_a_penalty_too_weak_to_move_theta_grows_faster_until_it_can():
    """G is lowest at 0.4 everywhere."""
    target = np.full(12, 0.4)
    problem = mb.FunctionProblem(lambda theta: (0.5 * np.sum((theta - target) ** 2), theta - target), mb.Hypercube(12))
    ratios, first = {}, {}
    for search in ("portfolio", "path"):
        result = mb.relax_and_penalize(problem, seed=0, starts=1, search=search, epsilon0=1e9)
        assert result.value == pytest.approx(0.96)
        frame = result.trace.to_frame().query("phase == 'penalise' and start == 0")
        epsilon = frame.groupby("outer")["epsilon"].first().to_numpy()
        ratios[search], first[search] = epsilon[1:] / epsilon[:-1], epsilon[1]
    np.testing.assert_allclose(ratios["path"], 0.5)
    np.testing.assert_allclose(ratios["portfolio"][1:], 0.5)
    powers = 1e9 * 0.5 ** np.arange(60)
    # The points tried: all zeros, and a quarter and a sixteenth of the way there.
    jump = max((12 * (0.24 - x * (1 - x))) / (6 * (0.4 - x) ** 2) for x in (0.0, 0.3, 0.375))
    assert first["portfolio"] == pytest.approx(powers[powers <= run.GRADUAL * jump].max())


def test_inner_steps_as_a_schedule():
    problem = quadratic(mb.Budget(30, 7), 0, "convex")
    result = mb.relax_and_penalize(problem, inner_steps=[4, 2], starts=1, seed=0)
    frame = result.trace.to_frame().query("phase == 'penalise'")
    most = frame.groupby("outer")["inner"].max()
    assert most[0] <= 4
    assert (most[1:] <= 2).all()
    assert result.trace.to_frame().query("phase == 'relax'")["inner"].max() <= 50


@pytest.mark.parametrize("solver", ["spectral", "projected", mb.SpectralGradient(memory=1), mb.ProjectedGradient(step_size=0.05)])
def test_solvers_by_name_and_object(solver):
    problem = quadratic(mb.Budget(12, 4), 0)
    result = mb.relax_and_penalize(problem, solver=solver, seed=0)
    assert result.theta.sum() == 4
    assert result.status is Status.BINARY


def test_reoptimize_lam_off_keeps_the_lam_of_the_penalised_stage():
    problem = quadratic(mb.Budget(12, 4), 0, n_lam=2)
    kept = mb.relax_and_penalize(problem, reoptimize_lam=False, starts=1, seed=0)
    assert "lam" not in set(kept.trace.column("phase"))
    better = mb.relax_and_penalize(problem, starts=1, seed=0)
    np.testing.assert_array_equal(kept.theta, better.theta)
    assert better.value <= kept.value
    assert "lam" in set(better.trace.column("phase"))


def test_lam_on_a_log_scale_finds_small_values():
    """The best lam is 1e-4 in a box of eight decades: steps in lam itself would never see it."""

    def G(theta, lam):
        gap = np.log(lam / 1e-4) - 0.1 * theta[0]
        grad = np.zeros(4)
        grad[0] = -0.1 * gap
        return 0.5 * float(gap) ** 2 + theta[1], grad + np.eye(4)[1], gap / lam

    problem = mb.FunctionProblem(G, mb.Budget(4, 2), mb.Box(1e-6, 1e2, log=True))
    result = mb.relax_and_penalize(problem, seed=0)
    assert float(result.lam) == pytest.approx(1e-4 * np.exp(0.1 * result.theta[0]), rel=1e-4)


def test_relaxed_stage_is_reported_and_can_be_left_out():
    problem = quadratic(mb.Budget(12, 4), 0, "convex")
    result = mb.relax_and_penalize(problem, seed=0)
    assert result.relaxed.value <= result.value
    assert problem.theta_set.contains(result.relaxed.theta)
    assert result.relaxed.value == pytest.approx(problem.evaluate(result.relaxed.theta, result.relaxed.lam).value)
    assert mb.relax_and_penalize(problem, relax_first=False, seed=0).relaxed is None


def test_trace_has_its_columns():
    result = mb.relax_and_penalize(quadratic(mb.Budget(12, 4), 0, n_lam=1), seed=0, starts=2)
    frame = result.trace.to_frame()
    expected = [
        "start",
        "phase",
        "outer",
        "inner",
        "epsilon",
        "G",
        "phi",
        "step",
        "n_evaluations",
        "lam",
        "distance",
        "integrality",
        "n_selected",
        "seconds",
    ]
    assert list(frame.columns) == expected
    outer = frame[frame["distance"].notna()]
    assert (outer["integrality"] <= 0.5).all()
    assert (outer["distance"] >= outer["integrality"] - 1e-12).all()
    assert (np.diff(frame["n_evaluations"]) >= 0).all()
    assert outer["seconds"].is_monotonic_increasing


def test_callbacks_see_read_only_arrays_and_can_stop():
    problem = quadratic(mb.Budget(30, 7), 0, "convex")
    seen = []

    def stop_at_ten(event):
        seen.append(event)
        with pytest.raises(ValueError, match="read-only"):
            event.theta[0] = 0.0
        assert 0 <= event.distance <= 1
        if len(seen) == 10:
            event.stop()

    result = mb.relax_and_penalize(problem, seed=0, callbacks=[stop_at_ten])
    assert len(seen) == 10
    assert result.status is Status.STOPPED
    assert result.theta.dtype == np.bool_
    assert result.theta.sum() == 7
    assert result.value == problem.evaluate(result.theta.astype(float), result.lam).value


def test_warm_state_is_carried_and_the_answer_is_cold():
    problem = quadratic(mb.Budget(12, 4), 0)
    warms = []

    class Warm:
        theta_set, lam_set = problem.theta_set, problem.lam_set

        def evaluate(self, theta, lam, *, warm=None, gradient=True):
            warms.append(warm)
            return problem.evaluate(theta, lam)._replace(warm={"state": theta.copy()}, info={"lower_steps": 3.0})

    result = mb.relax_and_penalize(Warm(), starts=1, polish=False, seed=0)
    assert warms[0] is None
    assert warms[-1] is None
    assert all(warm is not None for warm in warms[1:-1])
    assert (result.trace.column("lower_steps") == 3.0).all()


def test_a_start_without_finite_value_is_refused():
    problem = mb.FunctionProblem(lambda theta: (np.inf, np.zeros(3)), mb.Hypercube(3))
    with pytest.raises(mb.InvalidInput, match="theta0 and lam0 give the value inf"):
        mb.relax_and_penalize(problem, seed=0)


def test_infinite_values_on_the_way_are_stepped_back_from():
    """An empty selection cannot be trained on: its value is inf, and the search stays away from it."""

    def G(theta):
        total = theta.sum()
        return (np.inf, np.full(6, np.nan)) if total < 0.5 else (total + 1 / total, np.full(6, 1 - 1 / total**2))

    result = mb.relax_and_penalize(mb.FunctionProblem(G, mb.Hypercube(6)), seed=0)
    assert result.theta.sum() == 1
    assert np.isfinite(result.value)


def test_a_small_limit_leaves_something_for_polish():
    """With a few hundred evaluations the search alone ends far from a good selection; polish must still get its turn."""
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
    y, y_val = X @ [1.0, 2.0, 3.0], X_val @ [1.0, 2.0, 3.0]
    y[::2] = 5 * rng.normal(size=30)
    problem = mb.RidgeDistillation(X, y, X_val, y_val, budget=6)
    result = mb.relax_and_penalize(problem, max_evaluations=100, seed=0)
    assert result.n_evaluations <= 100
    assert "polish" in set(result.trace.column("phase"))
    assert result.value <= mb.relax_and_round(problem, max_evaluations=100, seed=0).value

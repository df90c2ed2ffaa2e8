"""The lower levels of GroupLassoStructure: what they cost, how that grows, and why they are compiled with numba.

    python benchmarks/group_lasso_kernels.py [--repeats 15] [--jobs 1] [--quick]

Times are the best of several runs in one process. Exit code 1 when a limit is missed: a hypergradient of all 500 tasks, started
from a theta nearby, within ten times that of one task by the published unrolled method (q = 500) in the same compiled form; and
cost linear in the number of tasks within a third.

Measured with one thread on a machine with two cores, both busy with other work (--jobs 1; P = 100, N = 20, L = 10, T = 500):

- one Newton step of all tasks: numba 4.9 ms, batched NumPy 12.3 ms, so numba; JAX was not installed and is not compared;
- one unrolled hypergradient of one task: 2.3 ms as published, 1.10 ms as lower='unrolled', which carries P numbers and not P x L;
- all tasks, implicit, warm: 24.4 ms inside the simplex, 25.0 half way to a vertex, 25.9 near it, 12.2 at it, or 10.8, 11.1, 11.5
  and 5.4 published ones: a narrow miss of the limit in that run (8.7, 9.4, 9.9 and 3.2 in one with --jobs 2);
- cold: 29.6 to 61.2 ms;
- 47 to 50 us a task from 125 to 2000 tasks; times 3.1 from 50 to 400 features; times 7.5 from 5 to 50 groups;
- all 900 row moves at the true structure: 14.6 s; first evaluation: 24.2 s to compile, 0.6 s from the cache.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from mixbin.datasets.group_lasso import make_group_lasso
from mixbin.problems.group_lasso import GroupLassoStructure
from mixbin.problems.group_lasso.compiled import compiled, half_mean_square, times, transposed_times
from mixbin.problems.group_lasso.implicit import DELTA, blank, curvature, reweight

MOST_UNROLLED, LINEAR = 10.0, 1.33
LAM, RIDGE = 0.05, 1e-3


@compiled
def published_hypergradient(X, y, X_val, y_val, B_inverse, theta, lam, ridge, q, grad):
    """The dual method as printed: v and u of shape (groups, features), w by the inverse of X'X/N + eta I; reverse mode."""
    L, P = theta.shape
    gamma = 0.99 * ridge / lam
    v, e, w = np.zeros((q + 1, L, P)), np.empty((q + 1, L)), np.empty((q + 1, P))
    b, r, z = np.empty(P), np.empty(P), np.empty(P)
    transposed_times(X, y / len(y), b)
    for k in range(q + 1):
        r[:] = b
        for g in range(L):
            square = 0.0
            for p in range(P):
                square += v[k, g, p] * v[k, g, p]
            e[k, g] = 1.0 / np.sqrt(1.0 + square)
            for p in range(P):
                r[p] -= theta[g, p] * lam * e[k, g] * v[k, g, p]
        times(B_inverse, r, w[k])
        if k < q:
            for g in range(L):
                for p in range(P):
                    v[k + 1, g, p] = v[k, g, p] + gamma * theta[g, p] * w[k, p]
    value = half_mean_square(X_val, y_val, w[q], z)
    bar_v, bar_w, bar_r = np.zeros((L, P)), z, r
    bar_lam = bar_gamma = 0.0
    for k in range(q, -1, -1):
        if k < q:
            bar_w[:] = 0.0
            for g in range(L):
                for p in range(P):
                    bar_w[p] += gamma * theta[g, p] * bar_v[g, p]
                    grad[g, p] += gamma * w[k, p] * bar_v[g, p]
                    bar_gamma += theta[g, p] * w[k, p] * bar_v[g, p]
        times(B_inverse, bar_w, bar_r)
        for g in range(L):
            inner = 0.0
            for p in range(P):
                inner -= v[k, g, p] * theta[g, p] * bar_r[p]
                grad[g, p] -= lam * e[k, g] * v[k, g, p] * bar_r[p]
            bar_lam += e[k, g] * inner
            for p in range(P):
                bar_v[g, p] -= lam * e[k, g] * (theta[g, p] * bar_r[p] + e[k, g] * e[k, g] * inner * v[k, g, p])
    return value, bar_lam - bar_gamma * gamma / lam


@compiled
def numba_step(X, y, theta2, lam, ridge, s):
    """One reweighting of every task with the Hessian of Phi, as in ``implicit``."""
    total = 0.0
    for t in range(len(X)):
        at = blank(X.shape[1], X.shape[2], len(s))
        at.s[:] = s
        total += reweight(X[t], y[t], theta2, lam, ridge, DELTA, at)
        curvature(X[t], theta2, lam, DELTA, at)
        total += at.S[0, 0]
    return total


def numpy_step(X, y, theta2, lam, ridge, s):
    """The same in batched NumPy."""
    N = X.shape[1]
    d = 1.0 / (ridge + lam * (theta2.T / s).sum(axis=1))
    K = (X * d) @ X.transpose(0, 2, 1) + N * np.eye(N)
    a = np.linalg.solve(K, y[..., None])
    w = d * (X.transpose(0, 2, 1) @ a)[..., 0]
    q = np.square(w) @ theta2.T
    value = 0.5 * np.einsum("tn,tn->t", y, a[..., 0]) + 0.5 * lam * np.sum(s + DELTA**2 / s)
    A = theta2 * w[:, None, :]
    Y = X @ (A * d).transpose(0, 2, 1)
    S = np.einsum("tln,tnm->tlm", Y.transpose(0, 2, 1), np.linalg.solve(K, Y)) - (A * d) @ A.transpose(0, 2, 1)
    S *= lam / np.outer(s, s) ** 1.5
    return float((value + S[:, 0, 0] + (q[:, 0] + DELTA**2) / s[0] ** 2).sum())


def best(function: Callable[[], object], repeats: int) -> float:
    """The seconds of the fastest run, after one that does not count."""
    function()
    runs = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        runs.append(time.perf_counter() - began)
    return min(runs)


def make(T: int, P: int, L: int, jobs: int, lower: str = "implicit"):
    data = make_group_lasso("equal", n_tasks=T, n_features=P, n_groups=L)
    return data, GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=L, lower=lower, n_jobs=jobs)


def nearby(theta: np.ndarray) -> np.ndarray:
    """theta after a step as a solver makes them: every entry changed by a few per cent (at a vertex only lam is changed)."""
    moved = theta * np.exp(0.03 * np.random.default_rng(1).normal(size=theta.shape))
    return moved / moved.sum(axis=1, keepdims=True)


def thetas(truth: np.ndarray) -> dict[str, np.ndarray]:
    inside = np.random.default_rng(0).dirichlet(np.ones(truth.shape[1]), size=len(truth))
    return {"inside the simplex": inside, "half way": 0.5 * truth + 0.5 * inside, "near a vertex": 0.98 * truth + 0.02 * inside}


def warm_and_cold(problem, theta: np.ndarray, repeats: int) -> tuple[float, float, float, float]:
    """Seconds and lower-level steps of a full hypergradient, from a theta nearby and from nothing."""
    lam = np.array(LAM)
    warm = problem.evaluate(nearby(theta), 1.02 * lam).warm
    runs = [best(lambda start=start: problem.evaluate(theta, lam, warm=start), repeats) for start in (warm, None)]
    steps = [problem.evaluate(theta, lam, warm=start).info["lower_steps"] for start in (warm, None)]
    return runs[0], runs[1], steps[0], steps[1]


def first_call() -> tuple[float, float]:
    """Seconds of the first evaluation in a new process, without and with a filled cache of compiled kernels."""
    code = (
        "import time, numpy as np\n"
        "from mixbin.problems.group_lasso import GroupLassoStructure\n"
        "x = np.random.default_rng(0).normal(size=(3, 5, 4))\n"
        "problem = GroupLassoStructure(x, x[..., 0], x, x[..., 0], n_groups=2)\n"
        "began = time.perf_counter()\n"
        "problem.evaluate(problem.theta_set.start(), problem.lam_set.start())\n"
        "print(time.perf_counter() - began)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        runs = [
            subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
            for _ in range(2)
        ]
    return float(runs[0].stdout), float(runs[1].stdout)


def compare_kernels(data, repeats: int) -> None:
    theta2 = np.ascontiguousarray(np.square(thetas(data.theta)["half way"]).T)
    arguments = (data.X, data.y, theta2, LAM, RIDGE, np.linspace(0.1, 0.5, len(theta2)))
    fast, batched = (best(lambda step=step: step(*arguments), repeats) for step in (numba_step, numpy_step))
    off = abs(numba_step(*arguments) / numpy_step(*arguments) - 1)
    print(f"one Newton step of {len(data.X)} tasks: numba {1e3 * fast:.1f} ms, batched NumPy {1e3 * batched:.1f} ms", end="")
    print(f" ({batched / fast:.1f} times as long; both agree to {off:.0e})")


def compare_unrolled(data, jobs: int, repeats: int) -> tuple[float, float]:
    """Seconds of one task's unrolled hypergradient: as printed, and as ``lower="unrolled"`` computes it."""
    theta, lam = thetas(data.theta)["half way"], np.array(LAM)
    unrolled = GroupLassoStructure(data.X[:2], data.y[:2], data.X_val[:2], data.y_val[:2], lower="unrolled", n_jobs=jobs)
    B_inverse = np.linalg.inv(data.X[0].T @ data.X[0] / data.X.shape[1] + RIDGE * np.eye(data.X.shape[2]))
    theta_t, grad = np.ascontiguousarray(theta.T), np.zeros(theta.T.shape)
    arguments = (data.X[0], data.y[0], data.X_val[0], data.y_val[0], B_inverse, theta_t, LAM, RIDGE, 500, grad)
    value, grad_lam = published_hypergradient(*arguments)
    got = unrolled.evaluate_terms(theta, lam, np.array([0]))
    np.testing.assert_allclose([got.value, got.grad_lam], [value, grad_lam], rtol=1e-6)
    np.testing.assert_allclose(got.grad_theta, grad.T, atol=1e-6 * np.abs(grad).max())
    printed = best(lambda: published_hypergradient(*arguments), repeats)
    return printed, best(lambda: unrolled.evaluate_terms(theta, lam, np.array([0])), repeats)


def growth(title: str, sizes: list[tuple[int, int, int]], jobs: int, repeats: int) -> list[float]:
    print(title)
    each = []
    for T, P, L in sizes:
        data, problem = make(T, P, L, jobs)
        warm, cold, *_ = warm_and_cold(problem, thetas(data.theta)["half way"], repeats)
        each.append(warm / T)
        seconds = f"warm {1e3 * warm:8.1f} ms   cold {1e3 * cold:8.1f} ms   {1e6 * warm / T:6.0f} us a task, warm"
        print(f"  T {T:5d}  P {P:4d}  L {L:3d}   {seconds}")
    return each


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=1, help="threads over the tasks (default: 1)")
    parser.add_argument("--quick", action="store_true", help="leave out compile times and the sizes beyond the published one")
    options = parser.parse_args()
    jobs, repeats = options.jobs, options.repeats
    if not options.quick:
        print("first evaluation: {:.1f} s when the kernels are compiled, {:.1f} s when they are cached".format(*first_call()))

    data, problem = make(500, 100, 10, jobs)
    compare_kernels(data, repeats)
    printed, ours = compare_unrolled(data, jobs, repeats)
    print(f"one task, unrolled q = 500: {1e3 * printed:.1f} ms as published, {1e3 * ours:.2f} ms as lower='unrolled'")
    print(f"all 500 tasks, implicit, {jobs} thread(s):            times one published (times one lower='unrolled')")
    worst = 0.0
    for name, theta in (thetas(data.theta) | {"binary": data.theta.astype(float)}).items():
        *runs, from_warm, from_cold = warm_and_cold(problem, theta, repeats)
        worst = max(worst, runs[0] / printed)
        for kind, seconds, count in zip(("warm", "cold"), runs, (from_warm, from_cold), strict=True):
            ratios = f"{seconds / printed:5.1f} ({seconds / ours:5.1f})"
            print(f"  {name:<19}{kind}  {1e3 * seconds:6.1f} ms  {ratios}  {count:4.1f} factors")
    off, on = next(iter(problem.theta_set.moves(data.theta)))
    at = problem.evaluate(data.theta.astype(float), np.array(0.015)).warm
    problem.evaluate_moves(data.theta, np.array(0.015), off[:1], on[:1], warm=at)
    began = time.perf_counter()
    problem.evaluate_moves(data.theta, np.array(0.015), off, on, warm=at)
    print(f"all {len(off)} row moves at the true structure, lam 0.015: {time.perf_counter() - began:.1f} s")

    small = [(125, 100, 10), (250, 100, 10), (500, 100, 10)]
    each = growth("growth with the tasks", small if options.quick else [*small, (1000, 100, 10), (2000, 100, 10)], jobs, repeats)
    if not options.quick:
        growth("growth with the features", [(500, 50, 10), (500, 100, 10), (500, 200, 10), (500, 400, 10)], jobs, repeats)
        growth("growth with the groups", [(500, 100, 5), (500, 100, 10), (500, 100, 20), (500, 100, 50)], jobs, repeats)
    linear = max(each) / min(each)
    print(f"worst: {worst:.1f} published hypergradients of one task (at most {MOST_UNROLLED:g})", end="")
    print(f"; time per task varies by {linear:.2f} over the sizes (at most {LINEAR:g})")
    passed = worst <= MOST_UNROLLED and linear <= LINEAR
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())

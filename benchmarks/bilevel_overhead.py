"""What mb.bilevel costs: its own overhead per evaluation, compile time, and memory against the number of inner steps.

    python benchmarks/bilevel_overhead.py

The overhead is the time of ``problem.evaluate`` less that of the same compiled functions called on arrays that JAX already
holds, on a model so small that the arithmetic is negligible; 50 pairs in turn, medians. Memory is what XLA plans for
temporaries of the compiled evaluation. Exit code 1 at 1 ms of overhead, or where the implicit hypergradient's memory grows with
the steps.
"""

import statistics
import time

import jax
import numpy as np

import mixbin as mb
from mixbin.problems.bilevel._jax import double

LIMIT = 1e-3


def ridge(rows, columns, hypergradient=None, lower=None):
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(2, rows, columns))
    y, y_val = rng.normal(size=(2, rows))

    def inner(w, v, s):
        return (v * (X @ w - y) ** 2).mean() + s * (w**2).sum()

    def outer(w, v, s):
        return 0.5 * ((X_val @ w - y_val) ** 2).mean()

    def step(w, v, s):
        return w - 0.1 * jax.grad(inner)(w, v, s)

    sets = {"theta_set": mb.Budget(rows, 0.5), "lam_set": mb.Box(0.1, 1.0)}
    made = mb.FixedPoint(step, max_steps=lower, limit=10.0) if lower else None
    return mb.bilevel(outer, None if lower else inner, np.zeros(columns), lower=made, hypergradient=hypergradient, **sets)


def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def temporaries(problem):
    """Bytes that the compiled evaluation needs beside its arguments and results."""
    point = problem._w0, problem.theta_set.start(), problem.lam_set.start()
    parts = (
        [problem._with_gradient] if isinstance(problem.hypergradient, mb.Unrolled) else [problem._solver, problem._with_gradient]
    )
    with double():
        return max(part.lower(*point).compile().memory_analysis().temp_size_in_bytes for part in parts)


def main():
    problem = ridge(20, 2)
    theta, lam = problem.theta_set.start(), problem.lam_set.start()
    first = seconds(lambda: problem.evaluate(theta, lam))
    warm = problem.evaluate(theta, lam).warm
    with double():
        there = [jax.device_put(x) for x in (warm["w"], theta, lam)]

    def bare():
        with double():
            w = problem._solver(*there)[0]
            jax.block_until_ready(problem._with_gradient(w, *there[1:]))

    bare()
    whole, alone = zip(
        *((seconds(lambda: problem.evaluate(theta, lam, warm=warm)), seconds(bare)) for _ in range(50)), strict=True
    )
    overhead = statistics.median(whole) - statistics.median(alone)
    print(f"compile time (first evaluation)   {first:8.2f} s")
    print(f"one evaluation                    {1e3 * statistics.median(whole):8.3f} ms")
    print(f"the compiled functions alone      {1e3 * statistics.median(alone):8.3f} ms")
    print(f"mixbin's own overhead             {1e3 * overhead:8.3f} ms (limit {1e3 * LIMIT:g})")
    print("temporary memory, 200 rows, 50 columns:")
    implicit, unrolled = [], []
    for steps in (100, 1_000, 10_000):
        implicit.append(temporaries(ridge(200, 50, mb.Implicit("neumann"), steps)))
        unrolled.append(temporaries(ridge(200, 50, mb.Unrolled(steps), steps)))
        print(f"  {steps:6} steps   implicit {implicit[-1]:9,} bytes   unrolled with checkpoints {unrolled[-1]:9,} bytes")
    passed = overhead < LIMIT and max(implicit) == min(implicit)
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())

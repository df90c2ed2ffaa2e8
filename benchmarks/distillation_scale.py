"""Distillation at size: what an evaluation costs as rows leave, and what a table of the music set's size needs in memory.

    python benchmarks/distillation_scale.py [--rows 231857] [--columns 90] [--validation 51630] [--time-limit S] [--single]

1. One evaluation with 1/8, 1/4, 1/2 and all of the rows active, in turn so that a busy machine disturbs all alike: the value
   alone, and the value with the gradient, which has one more thin product with all rows.
2. A default run at 10 % on a synthetic table of the music set's full size: peak memory above that after loading, in units of X.

Exit code 1 where an active row's price varies by more than a factor of 1.5 (value alone) or memory exceeds 2 times X.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

import mixbin as mb

SHARES = (0.125, 0.25, 0.5, 1.0)
MOST_MEMORY, MOST_SPREAD = 2.0, 1.5


def synthetic(rows: int, columns: int, dtype: type, seed: int):
    """Columns with correlations and different scales; every tenth row's target comes from another model."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(0).normal(size=(columns, columns)) / columns**0.5
    X = (rng.normal(size=(rows, columns)) @ mix + 0.3 * rng.normal(size=(rows, columns))).astype(dtype)
    X *= np.random.default_rng(1).uniform(0.1, 30.0, columns).astype(dtype)
    coef = np.random.default_rng(2).normal(size=(2, columns))
    y = np.where(rng.uniform(size=rows) < 0.1, X @ coef[1], X @ coef[0]) + rng.normal(size=rows)
    return X, y


def peak_memory(reset: bool = False) -> int:
    """The largest resident size of this process since the last reset, in bytes (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("needs Linux")


def active_rows(problem: mb.RidgeDistillation, rounds: int = 7) -> float:
    """Seconds per share of active rows; the spread of the price of an active row."""
    m = problem.theta_set.shape[0]
    order = np.random.default_rng(0).permutation(m)
    seconds: dict[tuple[float, bool], list[float]] = {(s, g): [] for s in SHARES for g in (False, True)}
    for k in range(rounds):
        for share in SHARES:
            for gradient in (False, True):
                v = np.zeros(m)
                v[order[: int(share * m)]] = 0.1 + 1e-9 * k  # another point each time: the last one is remembered
                began = time.perf_counter()
                problem.evaluate(v, np.empty(0), gradient=gradient)
                seconds[share, gradient].append(time.perf_counter() - began)
                problem.evaluate(np.eye(1, m)[0], np.empty(0), gradient=False)
    prices = []
    for share in SHARES:
        value, both = (statistics.median(seconds[share, g]) for g in (False, True))
        prices.append(value / share)
        print(f"{share:6.3f} of the rows: value {1e3 * value:7.1f} ms, with gradient {1e3 * both:7.1f} ms")
    spread = max(prices) / min(prices)
    print(f"the price of an active row (value alone) varies by a factor of {spread:.2f}")
    return spread


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=231_857)
    parser.add_argument("--columns", type=int, default=90)
    parser.add_argument("--validation", type=int, default=51_630)
    parser.add_argument("--time-limit", type=float, default=None, help="seconds for the run (default: to the end)")
    parser.add_argument("--single", action="store_true", help="float32 instead of float64")
    args = parser.parse_args()
    dtype = np.float32 if args.single else np.float64
    X, y = synthetic(args.rows, args.columns, dtype, 3)
    X_val, y_val = synthetic(args.validation, args.columns, dtype, 4)
    loaded = peak_memory(reset=True)

    alpha = 1e-4
    problem = mb.RidgeDistillation(X, y, X_val, y_val, budget=0.1, alpha=alpha)
    began = time.perf_counter()
    result = mb.relax_and_penalize(problem, seed=0, time_limit=args.time_limit)
    seconds = time.perf_counter() - began
    memory = (peak_memory() - loaded) / X.nbytes
    evaluation = []
    for k in range(5):
        start = time.perf_counter()
        problem.evaluate(np.full(len(y), 0.1 + 1e-9 * k), np.empty(0))
        evaluation.append(time.perf_counter() - start)
    table = f"{args.rows:,} x {args.columns} {np.dtype(dtype).name}, {args.validation:,} validation rows"
    print(f"{table}, to {result.n_selected:,} rows:")
    print(f"  {result.status}, validation {result.value:.6g}. {result.message}. {result.certificate}")
    for name, rows in (("selected", result.theta), ("all", np.ones(len(y), dtype=bool))):
        model = Ridge(alpha=len(y) * alpha).fit(X[rows], y[rows])
        print(f"  scikit-learn's Ridge on {name} rows: validation {0.5 * np.mean((model.predict(X_val) - y_val) ** 2):.6g}")
    whole = seconds / statistics.median(evaluation)
    print(f"  {result.n_evaluations} evaluations, {seconds:.0f} s = {whole:.0f} evaluations of all rows with gradient")
    print(f"  peak memory above that after loading: {memory:.2f} times X ({X.nbytes / 1e6:.0f} MB)")
    spread = active_rows(problem)
    passed = memory <= MOST_MEMORY and spread <= MOST_SPREAD
    print("PASS" if passed else "FAIL", f"(memory at most {MOST_MEMORY} times X, spread at most {MOST_SPREAD})")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())

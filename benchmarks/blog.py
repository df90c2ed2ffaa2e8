"""Blog, alpha = 100, one run per budget: losses, exchange optimality, and the time in steps of the published algorithm.

    python benchmarks/blog.py [--budgets 10 20 30] [--permutations 0] [--processor-time]

The unit of time is one step of the published algorithm on the same data, timed before and after each run. On a machine that
others use, too, set OPENBLAS_NUM_THREADS=1 and compare processor time. The code of the step is read from ../shared/paper_step.py
beside the project. Test losses come from scikit-learn's Ridge trained anew on the selected rows. The data are found as
``mixbin.datasets.load_blog`` finds them (set MIXBIN_DATA to their folder).
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

import mixbin as mb

ALPHA = 100.0
MOST_STEPS = 20


def step_seconds(data, n: int, clock=time.perf_counter) -> float:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "shared"))
    from paper_step import paper_step

    v = np.full(len(data.y), 0.1)
    seconds = []
    for _ in range(n):
        began = clock()
        paper_step(v, data.X, data.y, data.X_val, data.y_val, s=ALPHA, rng=np.random.default_rng(0))
        seconds.append(clock() - began)
    return statistics.median(seconds)


def losses(data, X, y, theta) -> tuple[float, float]:
    """Validation and test loss of scikit-learn's Ridge on the selected rows."""
    model = Ridge(alpha=len(y) * ALPHA).fit(X[theta], y[theta])
    parts = ((data.X_val, data.y_val), (data.X_test, data.y_test))
    validation, test = (0.5 * float(np.mean((model.predict(A) - b) ** 2)) for A, b in parts)
    return validation, test


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", type=int, nargs="+", default=[10, 20, 30], help="in per cent")
    parser.add_argument("--permutations", type=int, default=0, help="further runs on shuffled rows")
    parser.add_argument("--processor-time", action="store_true", help="compare the time of the processor, not of the clock")
    args = parser.parse_args()
    clock = time.process_time if args.processor_time else time.perf_counter
    data = mb.datasets.load_blog()
    worst = 0.0
    for seed in range(args.permutations + 1):
        order = np.arange(len(data.y)) if seed == 0 else np.random.default_rng(seed).permutation(len(data.y))
        X, y = data.X[order], data.y[order]
        for budget in args.budgets:
            before = step_seconds(data, 3, clock)
            began = clock()
            problem = mb.RidgeDistillation(X, y, data.X_val, data.y_val, budget=budget / 100, alpha=ALPHA)
            result = mb.relax_and_penalize(problem, seed=0)
            seconds = clock() - began
            steps = seconds / statistics.mean([before, step_seconds(data, 3, clock)])
            worst = max(worst, steps)
            validation, test = losses(data, X, y, result.theta)
            rows = "given order" if seed == 0 else f"permutation {seed}"
            print(
                f"{budget} %, {rows}: validation {validation:.3f}, test {test:.3f}, {result.n_selected} rows, {result.status}, "
                f"one-move optimal: {result.certificate.one_move_optimal}; {result.n_evaluations} evaluations, {seconds:.1f} s = "
                f"{steps:.1f} published steps",
                flush=True,
            )
    print("PASS" if worst <= MOST_STEPS else "FAIL", f"(at most {MOST_STEPS} steps)")
    return 0 if worst <= MOST_STEPS else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""How fast SAGA converges on a strongly convex finite sum, and what its table takes: the whole table, and one cut down to blocks.

    python benchmarks/saga_rate.py [--terms 500] [--passes 25]

Fits log(G - min G) against passes over the terms by least squares. Exit code 1 unless the line falls, is one (R^2 at least 0.98)
and ends below 1e-10 of where it began, with as many rows as terms.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Quadratic
from mixbin.solvers import Objective

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.instances import strongly_convex_sum

R_SQUARED, GAP = 0.98, 1e-10


def run(solver, problem, gap, passes):
    """The last state, the gaps after 0, 1, ... passes, term evaluations per pass, and seconds per pass."""
    objective = Objective(CheckedProblem(problem), Quadratic())
    start = problem.theta_set.start(), np.full(problem.lam_set.shape, 0.1)
    state = solver.init(objective, *start, np.random.default_rng(0))
    gaps = [gap(state.theta, problem.lam_set.decode(state.lam))]
    before, began = objective.problem.n_term_evaluations, time.perf_counter()
    for _ in range(passes):
        state = solver.step(objective, state)
        gaps.append(gap(state.theta, problem.lam_set.decode(state.lam)))
    seconds = (time.perf_counter() - began) / passes
    return state, np.array(gaps), (objective.problem.n_term_evaluations - before) / passes, seconds


def fitted(gaps):
    """The factor per pass and R^2 of the line through log(gap)."""
    logs, passes = np.log(gaps), np.arange(len(gaps))
    slope, offset = np.polyfit(passes, logs, 1)
    return float(np.exp(slope)), float(1 - np.sum((logs - slope * passes - offset) ** 2) / np.sum((logs - logs.mean()) ** 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terms", type=int, default=500)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--passes", type=int, default=25)
    args = parser.parse_args()
    problem, gap = strongly_convex_sum(args.terms, args.size)
    row = 8 * (args.size + problem.lam_set.size)
    good = True
    for name, limit, rows in (("whole table", 2**30, args.terms), ("a tenth of it", args.terms // 10 * row, args.terms // 10)):
        state, gaps, evaluations, seconds = run(mb.Saga(memory_limit=limit), problem, gap, args.passes)
        rate, r_squared = fitted(gaps)
        taken = state.table_theta.nbytes + state.table_lam.nbytes
        passed = rate < 1 and r_squared >= R_SQUARED and gaps[-1] <= GAP * gaps[0] and state.info["memory_rows"] == rows
        good &= passed or rows < args.terms
        print(f"{name}: {args.terms} terms of {args.size} + {problem.lam_set.size} variables")
        print(f"  memory      {int(state.info['memory_rows'])} rows, {taken:,} bytes (limit {limit:,})")
        print(f"  gap         times {rate:.3f} per pass, R^2 = {r_squared:.4f}, {gaps[0]:.2e} -> {gaps[-1]:.2e}")
        print(f"  cost        {evaluations:.1f} term evaluations and {1e3 * seconds:.0f} ms per pass")
        print("  PASS" if passed else "  FAIL" if rows == args.terms else "  (no requirement)")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

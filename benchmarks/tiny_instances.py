"""How often relax_and_penalize finds the enumerated optimum of 200 random tiny problems (indefinite quadratics, three sets).

    python benchmarks/tiny_instances.py

Prints the share for the default number of starts and for one start, the evaluations used, and whether all answers were feasible.
"""

import sys
from pathlib import Path

import numpy as np

import mixbin as mb

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.instances import optimum, tiny_instances


def main() -> int:
    instances = tiny_instances()
    best = np.array([optimum(problem) for problem in instances])
    kinds = np.array([type(problem.theta_set).__name__ for problem in instances])
    for starts in ("auto", 1):
        results = [mb.relax_and_penalize(problem, starts=starts, seed=0) for problem in instances]
        found = np.array([result.value for result in results]) <= best + 1e-9 * np.maximum(1.0, np.abs(best))
        feasible = sum(p.theta_set.violation(r.theta) == 0 for p, r in zip(instances, results, strict=True))
        evaluations = np.mean([result.n_evaluations for result in results])
        by_set = ", ".join(f"{kind} {found[kinds == kind].mean():.1%}" for kind in dict.fromkeys(kinds))
        print(
            f"starts={starts!r}: optimum in {found.mean():.1%} ({by_set}); "
            f"{feasible} of {len(instances)} feasible; {evaluations:.0f} evaluations"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

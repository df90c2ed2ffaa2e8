"""How often relax_and_penalize finds a known optimum: 200 random tiny problems and planted problems of 40 variables.

    python benchmarks/tiny_instances.py

Tiny: indefinite quadratics on three sets, compared with all binary points. Planted: see ``tests.instances.planted``. Feasibility
and one-move optimality are checked apart from the run, by ``certify`` on the answer alone.
"""

import sys
from pathlib import Path

import numpy as np

import mixbin as mb

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.instances import optimum, planted, tiny_instances


def found(value: float, best: float) -> bool:
    return value <= best + 1e-9 * max(1.0, abs(best))


def tiny() -> None:
    instances = tiny_instances()
    best = [optimum(problem) for problem in instances]
    kinds = np.array([type(problem.theta_set).__name__ for problem in instances])
    for settings in ({}, {"starts": 1}, {"polish": False}, {"polish": False, "starts": 1}):
        results = [mb.relax_and_penalize(problem, seed=0, **settings) for problem in instances]
        hit = np.array([found(result.value, value) for result, value in zip(results, best, strict=True)])
        feasible = sum(p.theta_set.violation(r.theta) == 0 for p, r in zip(instances, results, strict=True))
        optimal = sum(mb.certify(p, r.theta).one_move_optimal is True for p, r in zip(instances, results, strict=True))
        evaluations = np.mean([result.n_evaluations for result in results])
        by_set = ", ".join(f"{kind} {hit[kinds == kind].mean():.1%}" for kind in dict.fromkeys(kinds))
        print(
            f"tiny, {settings or 'defaults'}: optimum in {hit.mean():.1%} ({by_set}); of {len(instances)} answers {feasible} "
            f"feasible, {optimal} one-move optimal; {evaluations:.0f} evaluations"
        )


def forty() -> None:
    for kind in ("budget", "one-hot", "hypercube", "spins"):
        hit = 0
        for seed in range(50):
            problem, star = planted(kind, seed)
            best = problem.evaluate(star.astype(float), np.empty(0)).value
            hit += found(mb.relax_and_penalize(problem, seed=0).value, best)
        print(f"planted, 40 variables, {kind}: optimum in {hit / 50:.0%} of 50")


if __name__ == "__main__":
    tiny()
    forty()

"""relax_and_penalize with its defaults against random binary points polished by exact moves, at equal cost, on six problems.

    python benchmarks/random_vertices.py [--first SEED] [--n NUMBER] [--only KIND ...]

The rival draws random binary points and makes single moves that lower G, as polish does, until it has used as many evaluations as
the run of relax_and_penalize. Prints the mean of (G - G of the rival) / |G of the rival| in per cent with its standard error over
NUMBER (20) paired problems; below zero relax_and_penalize is better.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.methods.polish import begin_polish, polish_done, polish_step
from mixbin.methods.portfolio import random_vertex
from mixbin.penalties import Quadratic
from mixbin.solvers import Objective, OutOfEvaluations

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.instances import quadratic

LONGEST_POLISH = 2_000


def best_subset(seed: int) -> mb.FunctionProblem:
    """8 of 40 features with correlation 0.9 between neighbours; the lower level is a ridge regression on theta * X."""
    rng = np.random.default_rng([9, seed])
    place = np.arange(40)
    X = rng.multivariate_normal(np.zeros(40), 0.9 ** np.abs(place[:, None] - place), size=80)
    coef = np.zeros(40)
    coef[rng.choice(40, 8, replace=False)] = rng.choice([-1.0, 1.0], 8)
    y = X @ coef + rng.normal(size=80)

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        # min_w 1/(2n) |X D w - y|^2 + 1e-3/2 |w|^2 with D = diag(theta), and its derivative in theta by the envelope theorem.
        A = X * theta
        w = np.linalg.solve(A.T @ A / 80 + 1e-3 * np.eye(40), A.T @ y / 80)
        miss = A @ w - y
        return 0.5 * miss @ miss / 80 + 0.5e-3 * w @ w, w * (X.T @ miss) / 80

    return mb.FunctionProblem(function, mb.Budget(40, 8))


def distillation(seed: int) -> mb.RidgeDistillation:
    rng = np.random.default_rng([11, seed])
    X, coef = rng.normal(size=(160, 6)), rng.normal(size=6)
    y = X @ coef + rng.normal(size=160)
    return mb.RidgeDistillation(X[:80], y[:80], X[80:], y[80:], budget=12, alpha=0.1)


def groups(seed: int) -> mb.GroupLassoStructure:
    data = mb.datasets.make_group_lasso("equal", n_tasks=30, n_features=12, n_groups=3, n_samples=10, seed=seed)
    return mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=3, n_jobs=1)


KINDS: dict[str, Callable[[int], Any]] = {
    "convex": lambda seed: quadratic(mb.Budget(60, 20), seed, "convex"),
    "concave": lambda seed: quadratic(mb.Budget(60, 20), seed, "concave"),
    "indefinite": lambda seed: quadratic(mb.Hypercube(60), seed, "indefinite"),
    "best subset": best_subset,
    "distillation": distillation,
    "groups": groups,
}


def rival(problem: Any, cost: int, seed: int, lam: np.ndarray) -> float:
    """The lowest G over random binary points, each polished by single moves at this lam, within ``cost`` evaluations."""
    checked = CheckedProblem(problem)
    checked.max_evaluations = float(cost)
    objective = Objective(checked, Quadratic(), may_evaluate=lambda: checked.n_evaluations < cost)
    rng, best, u = np.random.default_rng([77, seed]), np.inf, checked.lam_set.encode(lam)
    try:
        while checked.n_evaluations < cost:
            state = replace(begin_polish(objective, random_vertex(checked.theta_set, rng), u, None), reach=-1)
            best = min(best, state.value)
            while not polish_done(state, LONGEST_POLISH):
                state = polish_step(objective, state, LONGEST_POLISH)
                best = min(best, state.value)
    except OutOfEvaluations:
        pass
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    chosen = parser.parse_args()
    for name in chosen.only:
        shares, costs = [], []
        for seed in range(chosen.first, chosen.first + chosen.n):
            problem = KINDS[name](seed)
            result = mb.relax_and_penalize(problem, seed=seed)
            other = rival(problem, result.n_evaluations, seed, result.lam)
            shares.append(100 * (result.value - other) / abs(other))
            costs.append(result.n_evaluations)
        mean, error = np.mean(shares), np.std(shares, ddof=1) / np.sqrt(len(shares))
        worse = sum(share > 1e-9 for share in shares)
        print(
            f"{name}: {mean:+.4f} % (standard error {error:.4f}), better in {sum(s < -1e-9 for s in shares)}, worse in {worse} "
            f"of {len(shares)}; {np.mean(costs):.0f} evaluations",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""How often relax_and_penalize finds a known optimum, and at which cost: tiny problems on every set, and 40 planted variables.

    python benchmarks/tiny_instances.py [--first SEED] [--n NUMBER]

Tiny: NUMBER (300) indefinite quadratics per set, of the seeds from SEED (0) on, compared with all binary points; the cost is the
sum of ``n_evaluations``. Planted: see ``tests.instances.planted``. Feasibility and one-move optimality are checked apart from the
run, by ``certify`` on the answer alone.
"""

import argparse
import sys
import time
from pathlib import Path

import mixbin as mb

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.instances import TINY_SETS, optimum, planted, readme_example, tiny_on


def found(value: float, best: float) -> bool:
    return value <= best + 1e-9 * max(1.0, abs(best))


def tiny(first: int, n: int) -> None:
    for name in TINY_SETS:
        instances = tiny_on(name, n, first)
        began = time.process_time()
        results = [mb.relax_and_penalize(problem, seed=0) for problem in instances]
        seconds = (time.process_time() - began) / n
        pairs = list(zip(instances, results, strict=True))
        hits = sum(found(result.value, optimum(problem)) for problem, result in pairs)
        feasible = sum(p.theta_set.violation(r.theta) == 0 for p, r in pairs)
        optimal = sum(mb.certify(p, r.theta).one_move_optimal is True for p, r in pairs)
        print(
            f"tiny, {name}: optimum in {hits / n:.1%}; of {n} answers {feasible} feasible, {optimal} one-move optimal; "
            f"cost {sum(result.n_evaluations for result in results):,} evaluations, {1e3 * seconds:.0f} ms each",
            flush=True,
        )


def readme() -> None:
    best = mb.enumerate_binary(readme_example()).value
    results = [mb.relax_and_penalize(readme_example(), seed=seed) for seed in range(10)]
    values = sorted({round(result.value, 2) for result in results})
    cost = sum(result.n_evaluations for result in results)
    hits = sum(found(result.value, best) for result in results)
    print(f"README's example: optimum {best:.2f} for {hits} of 10 seeds, values {values}; cost {cost:,} evaluations", flush=True)


def forty(first: int) -> None:
    for kind in ("budget", "one-hot", "hypercube", "spins"):
        hits = cost = 0
        for seed in range(first, first + 50):
            problem, star = planted(kind, seed)
            best = problem.evaluate(star.astype(float), problem.lam_set.start()).value
            result = mb.relax_and_penalize(problem, seed=0)
            hits += found(result.value, best)
            cost += result.n_evaluations
        print(f"planted, 40 variables, {kind}: optimum in {hits / 50:.0%} of 50; cost {cost:,} evaluations", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--n", type=int, default=300)
    chosen = parser.parse_args()
    readme()
    forty(chosen.first)
    tiny(chosen.first, chosen.n)

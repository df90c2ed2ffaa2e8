"""What checkpoints cost: a run of a million variables with and without them, at the default interval.

    python benchmarks/checkpoint_cost.py [--size 1000000] [--seconds 60]

Runs a separable problem for a number of steps, with a checkpoint, and adds up the time spent in writing it. Exit code 1 when
that is 5 % of the run's time or more.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import mixbin as mb
from mixbin.checkpoint import Checkpoint

LIMIT = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    curvature, slope = rng.uniform(0.5, 2.0, args.size), rng.normal(size=args.size)

    def separable(theta):
        bent = curvature * theta
        return 0.5 * float(bent @ theta) + float(slope @ theta), bent + slope

    written = []
    save = Checkpoint.save

    def timed(self, state):
        began = time.perf_counter()
        save(self, state)
        written.append(time.perf_counter() - began)

    Checkpoint.save = timed
    problem = mb.FunctionProblem(separable, mb.Budget(args.size, args.size // 10))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.checkpoint"
        began = time.perf_counter()
        # A fixed step never converges, so the run goes on until its time is up.
        result = mb.relax_and_penalize(
            problem,
            solver=mb.ProjectedGradient(step_size=1e-4),
            inner_steps=1_000_000,
            relax_first=False,
            seed=0,
            time_limit=args.seconds,
            polish=False,
            checkpoint=path,
        )
        seconds = time.perf_counter() - began
        size = path.stat().st_size
    share = sum(written) / seconds
    print(f"{args.size:,} variables, {result.n_evaluations} evaluations in {seconds:.1f} s")
    print(f"{len(written)} checkpoints of {size / 1e6:.0f} MB, {np.median(written):.2f} s each (median): {share:.1%} of the time")
    print("PASS" if share < LIMIT else "FAIL")
    return 0 if share < LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())

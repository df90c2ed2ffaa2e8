"""The budget projection against np.sort of the same vector: at most twice its time and three extra vectors of memory.

Run ``python benchmarks/projection.py [--size 10000000] [--repeats 7]``. Both are timed alternately in one process and the best
of each is taken, so that the ratio says something on a busy machine too. The exit code is 1 when a limit is missed.
"""

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mixbin.sets import Budget

MOST_SORTS, MOST_VECTORS = 2.0, 3.0
FRACTIONS = (0.01, 0.5)


def shapes(size: int) -> dict[str, Callable[[], NDArray[np.float64]]]:
    rng = np.random.default_rng(0)
    return {
        "normal": lambda: rng.normal(size=size),
        "uniform, tight": lambda: 0.1 * rng.uniform(size=size),
        "already sorted": lambda: np.sort(rng.normal(size=size)),
        "many ties": lambda: rng.integers(0, 5, size) / 4,
        "all equal": lambda: np.full(size, 0.3),
        "heavy-tailed": lambda: rng.standard_cauchy(size=size),
    }


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def extra_vectors(function: Callable[[], object], vector: NDArray[np.float64]) -> float:
    """Peak memory of the call in vectors of that length, its result included."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / vector.nbytes


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and memory of the budget projection against np.sort.")
    parser.add_argument("--size", type=int, default=10_000_000, help="entries (default: 10 million, where the limits apply)")
    parser.add_argument("--repeats", type=int, default=7, help="runs of which the best counts (default: 7)")
    options = parser.parse_args()

    print(f"Budget.project of {options.size:,} float64 entries, best of {options.repeats}")
    print(f"{'input':<16}{'k':>6}{'sort':>10}{'project':>10}{'ratio':>8}{'extra vectors':>15}")
    worst_ratio = worst_vectors = 0.0
    for name, make in shapes(options.size).items():
        x = make()
        for fraction in FRACTIONS:
            budget = Budget(options.size, fraction)
            runs = [(seconds(lambda: np.sort(x)), seconds(lambda: budget.project(x))) for _ in range(options.repeats)]  # noqa: B023
            sort, project = (min(column) for column in zip(*runs, strict=True))
            vectors = extra_vectors(lambda: budget.project(x), x)  # noqa: B023
            print(
                f"{name:<16}{fraction:>6.0%}{1e3 * sort:>7.0f} ms{1e3 * project:>7.0f} ms{project / sort:>8.2f}{vectors:>15.2f}"
            )
            worst_ratio, worst_vectors = max(worst_ratio, project / sort), max(worst_vectors, vectors)
    passed = worst_ratio <= MOST_SORTS and worst_vectors <= MOST_VECTORS
    print(
        f"worst: {worst_ratio:.2f} sorts (at most {MOST_SORTS:g}), {worst_vectors:.2f} extra vectors (at most {MOST_VECTORS:g})"
    )
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

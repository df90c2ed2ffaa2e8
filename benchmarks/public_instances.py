"""Public instances with known records: QUBO (gka, Biq Mac library) and quadratic knapsacks (Billionnet and Soutif).

    python benchmarks/public_instances.py [--seed SEED] [--random NUMBER]

Reads gka.tar.gz and qkp.tar.gz from ../shared/data/binary, and skips what is not there. Each instance is solved as a
FunctionProblem, which knows value and gradient alone, and as a QuadraticProblem. Prints how often the best known value is found,
the gap, and the seconds of one core. If dwave-samplers is installed, its simulated annealing and tabu search solve the QUBO in
the same run. --random adds QUBO like Beasley's (n = 250, density 10 %), where the gap is to the best value of all solvers.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import csv
import io
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import mixbin as mb
from mixbin.sets import BinarySet

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "binary"


@dataclass(frozen=True)
class Instance:
    """1/2 x'Qx + c'x over a set, and the best known value (NaN if none is known)."""

    name: str
    Q: np.ndarray
    c: np.ndarray
    theta_set: BinarySet
    best: float


def read(archive: str) -> dict[str, str]:
    """The texts of the files in an archive, by their names without folder and ending; none if the archive is missing."""
    path = DATA / archive
    if not path.is_file():
        print(f"{archive} is not in {DATA}: skipped")
        return {}
    with tarfile.open(path) as tar:
        files = [member for member in tar.getmembers() if member.isfile()]
        return {Path(member.name).stem: tar.extractfile(member).read().decode() for member in files}


def records(texts: dict[str, str]) -> dict[str, float]:
    return {row["name"]: float(row["best"]) for row in csv.DictReader(io.StringIO(texts.pop("best", "name,best")))}


def gka() -> list[Instance]:
    texts = read("gka.tar.gz")
    best, made = records(texts), []
    for name in sorted(best):
        numbers = texts[name].split()
        n, Q = int(numbers[0]), np.zeros((int(numbers[0]),) * 2)
        i, j, q = np.array(numbers[2:], dtype=float).reshape(-1, 3).T
        i, j = i.astype(int) - 1, j.astype(int) - 1
        np.add.at(Q, (i, j), q)
        np.add.at(Q, (j, i), q)
        # The diagonal was added twice, and the pairs count twice in the instance: 1/2 x'(2Q)x with the diagonal once.
        Q = 2.0 * Q - np.diag(np.diagonal(Q))
        made.append(Instance(name, Q, np.zeros(n), mb.Hypercube(n), best[name]))
    return made


def qkp() -> list[Instance]:
    texts = read("qkp.tar.gz")
    best, made = records(texts), []
    for name in sorted(best):
        lines = texts[name].split("\n")
        # The first line is a name, and comments may follow the numbers.
        words = iter(" ".join(lines[1:]).split())
        numbers = []
        for word in words:
            try:
                numbers.append(float(word))
            except ValueError:
                break
        n = int(numbers[0])
        linear, at = np.array(numbers[1 : n + 1]), n + 1
        profits = np.zeros((n, n))
        for i in range(n - 1):
            profits[i, i + 1 :] = numbers[at : at + n - 1 - i]
            at += n - 1 - i
        capacity, weights = numbers[at + 1], np.array(numbers[at + 2 : at + 2 + n])
        made.append(Instance(name, -(profits + profits.T), -linear, mb.Knapsack(weights, capacity), -best[name]))
    return made


def beasley_like(number: int, seed: int) -> list[Instance]:
    made = []
    for k in range(number):
        rng = np.random.default_rng([250, seed, k])
        upper = np.triu(rng.integers(-100, 101, size=(250, 250)) * (rng.random((250, 250)) < 0.1))
        made.append(Instance(f"random{k}", 2.0 * (upper + upper.T), np.zeros(250), mb.Hypercube(250), np.nan))
    return made


def as_function(it: Instance, seed: int) -> float:
    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        product = it.Q @ x
        return 0.5 * x @ product + it.c @ x, product + it.c

    return mb.relax_and_penalize(mb.FunctionProblem(function, it.theta_set), seed=seed).value


def as_quadratic(it: Instance, seed: int) -> float:
    return mb.relax_and_penalize(mb.QuadraticProblem(it.Q, it.c, it.theta_set), seed=seed).value


def rivals() -> dict[str, Callable[[Instance, int], float]]:
    if find_spec("dwave") is None:
        print("dwave-samplers is not installed: skipped")
        return {}
    from dwave.samplers import SimulatedAnnealingSampler, TabuSampler

    def model(it: Instance) -> dict[tuple[int, int], float]:
        upper = np.triu(it.Q, 1) + np.diag(0.5 * np.diagonal(it.Q) + it.c)
        return {(int(i), int(j)): float(upper[i, j]) for i, j in zip(*np.nonzero(upper), strict=True)}

    def annealing(it: Instance, seed: int) -> float:
        return float(SimulatedAnnealingSampler().sample_qubo(model(it), num_reads=20, seed=seed).first.energy)

    def tabu(it: Instance, seed: int) -> float:
        return float(TabuSampler().sample_qubo(model(it), num_reads=10, timeout=30, seed=seed).first.energy)

    return {"dwave annealing, 20 reads": annealing, "dwave tabu, 10 reads": tabu}


def compare(title: str, instances: list[Instance], solvers: dict[str, Callable[[Instance, int], float]], seed: int) -> None:
    values, seconds = {}, {}
    for name, solve in solvers.items():
        values[name], seconds[name] = [], []
        for it in instances:
            began = time.process_time()
            values[name].append(solve(it, seed))
            seconds[name].append(time.process_time() - began)
    known = np.array([it.best for it in instances])
    best = np.where(np.isnan(known), np.min(list(values.values()), axis=0), known)
    for name in solvers:
        gaps = 100 * (np.array(values[name]) - best) / np.abs(best)
        missed = [it.name for it, gap in zip(instances, gaps, strict=True) if gap > 1e-9]
        print(
            f"{title}, {name}: best value in {len(instances) - len(missed)} of {len(instances)}, mean gap {gaps.mean():.4f} %, "
            f"worst {gaps.max():.3f} %; {np.mean(seconds[name]):.2f} s each, at most {np.max(seconds[name]):.2f} s"
            + (f"; missed {', '.join(missed)}" if missed else ""),
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--random", type=int, default=0)
    chosen = parser.parse_args()
    own = {"FunctionProblem": as_function, "QuadraticProblem": as_quadratic}
    others = rivals()
    for title, instances, solvers in (
        ("gka", gka(), own | others),
        ("quadratic knapsacks", qkp(), own),
        ("random, n = 250", beasley_like(chosen.random, chosen.seed), own | others),
    ):
        if instances:
            compare(title, instances, solvers, chosen.seed)

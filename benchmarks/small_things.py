"""Things that must be instant, as ratios in one run: a table of 2,309 rows, tiny instances, a small folder of Parquet files.

    python benchmarks/small_things.py [--only gas tiny folder]

- gas: ``DistillationRegressor(budget=130)`` on the training rows of split 0 against ``RidgeCV(cv=10)`` on the same rows; the data
  are found in ../shared/data/uci, and the case is left out without them.
- tiny: ``relax_and_penalize`` on instances with 14 rows and 5 to keep, against one evaluation of such an instance; and how often
  its value is not above the lowest of all selections, each with 400 values of lam.
- folder: ``mixbin distill`` on a folder of eight Parquet files, 1 MB together, against one file with the same rows.

All times are those of the processor, not of the clock: other programs on the machine do not count.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mixbin as mb

UCI = Path(__file__).resolve().parents[2] / "shared" / "data" / "uci"


def seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def gas() -> None:
    from sklearn.linear_model import RidgeCV

    if not UCI.is_dir():
        print(f"gas: left out, {UCI} is missing")
        return
    table = np.loadtxt(UCI / "gas-data.csv.gz", delimiter=",")
    test = np.loadtxt(UCI / "gas-test_mask.csv.gz", delimiter=",", ndmin=2)[:, 0] > 0
    X, y = table[~test, :-1], table[~test, -1]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    base = seconds(lambda: RidgeCV(alphas=10.0 ** np.arange(-5, 5.1, 0.5), cv=10).fit(X, y))
    ours = seconds(lambda: mb.DistillationRegressor(budget=130, random_state=0).fit(X, y))
    print(f"gas, {len(y):,} x {X.shape[1]}, 130 rows: {ours:.1f} s, {ours / base:.1f} times RidgeCV(cv=10) ({base:.2f} s)")


def instance(seed: int) -> mb.RidgeDistillation:
    rng = np.random.default_rng(seed)
    X, X_val, w = rng.normal(size=(14, 3)), rng.normal(size=(20, 3)), rng.normal(size=3)
    y, y_val = X @ w + rng.normal(size=14), X_val @ w + 0.5 * rng.normal(size=20)
    return mb.RidgeDistillation(X, y, X_val, y_val, budget=5)


def lowest(problem: mb.RidgeDistillation) -> float:
    """The lowest G over all selections, with lam on a grid."""
    theta = np.array(list(problem.theta_set.vertices()))
    lam = problem.lam_set.decode(np.linspace(0.0, 1.0, 400))
    return float(problem.evaluate_points(theta, np.tile(lam, (len(theta), 1))).values.min())


def tiny(count: int = 30) -> None:
    problems = [instance(seed) for seed in range(count)]
    mb.relax_and_penalize(instance(count), seed=0)  # whatever is loaded at the first use
    results: list[mb.Result] = []
    ours = seconds(lambda: results.extend(mb.relax_and_penalize(it, seed=0) for it in problems)) / count
    theta, lam = problems[0].theta_set.start(), problems[0].lam_set.start()
    weights = [theta * (1.0 - 1e-9 * i) for i in range(500)]  # equal weights would be recognised
    one = seconds(lambda: [problems[0].evaluate(it, lam) for it in weights]) / len(weights)
    hits = sum(result.value <= lowest(problem) for problem, result in zip(problems, results, strict=True))
    evaluations = np.mean([result.n_evaluations for result in results])
    print(
        f"tiny, {count} instances, 5 of 14 rows: {ours:.3f} s each, {ours / one:.0f} times one evaluation ({1e3 * one:.3f} ms); "
        f"{evaluations:.0f} evaluations each; the best of all selections in {hits} of {count}"
    )


def folder() -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 20))
    y = X @ rng.normal(size=20) + rng.normal(size=6_000)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(20)]).assign(y=y)
    with tempfile.TemporaryDirectory() as made:
        path = Path(made)
        (path / "folder").mkdir()
        table.to_parquet(path / "one.parquet", index=False)
        for i in range(8):
            table[750 * i : 750 * (i + 1)].to_parquet(path / "folder" / f"part-{i}.parquet", index=False)
        times = [_command(path / name, path / f"{name} run") for name in ("one.parquet", "folder")]
    print(
        f"folder, 1 MB in 8 files: {times[1]:.1f} s, {times[1] / times[0]:.2f} times the same rows as one file ({times[0]:.1f} s)"
    )


def _command(train: Path, out: Path) -> float:
    """The processor time of the command and of all processes that it starts."""
    before = os.times()
    args = [sys.executable, "-m", "mixbin", "distill", train, "--target", "y", "--budget", "5%", "--max-evaluations", "300"]
    subprocess.run([*args, "--out", out, "--json"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    cases = {"gas": gas, "tiny": tiny, "folder": folder}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*cases], default=[*cases])
    for name in parser.parse_args().only:
        cases[name]()


if __name__ == "__main__":
    main()

"""How few rows are enough for an excess of 1 %: rows, excess, seconds, and whether the path of budgets keeps its promises.

    python benchmarks/how_few_rows.py --uci FOLDER [--blog] [--parquet FOLDER]

FOLDER of --uci has NAME-data.csv.gz with the target last; --blog loads BlogFeedback; --parquet is the folder that
benchmarks/dask_scale.py made (4 million rows), read by ``mixbin distill --tolerance 1%`` with two workers of 600 MB. Seconds of
tables in memory are processor time of this process, beside those of RidgeCV(cv=10) on the same table; those of the folder are
seconds of the clock. A path keeps its promises if the excess falls with the budget, no budget
below the one found meets the tolerance, and the fitted model is within it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

import mixbin as mb
from mixbin.problems.distillation.references import References

TOLERANCE, MEMORY = 0.01, "600MB"
UCI = ("elevators", "skillcraft")


def kept(path: dict[int, float], found: int, excess: float) -> bool:
    """Whether the path keeps its promises; prints it."""
    rows = sorted(path)
    print("   ", ", ".join(f"{k}: {100 * path[k]:.3g} %" for k in rows))
    falls = all(path[a] >= path[b] for a, b in pairwise(rows))
    first = found == min(k for k in rows if path[k] <= TOLERANCE)
    print(
        f"    falls: {falls}; no smaller budget met the tolerance: {first}; excess within it: {excess <= TOLERANCE}", flush=True
    )
    return falls and first and excess <= TOLERANCE


def in_memory(name: str, X: np.ndarray, y: np.ndarray) -> bool:
    began = time.process_time()
    RidgeCV(alphas=np.logspace(-5, 5, 21), cv=10).fit(StandardScaler().fit_transform(X), y)
    unit = time.process_time() - began
    began = time.process_time()
    model = mb.DistillationRegressor(budget="auto", tolerance=TOLERANCE, random_state=0).fit(X, y)
    seconds = time.process_time() - began
    problem = mb.RidgeDistillation(X, y, budget=model.budget_, outer_alpha="cv", standardize=True)
    drawn = [draw.ratio for draw in References(problem, 0).random([model.budget_])[0]]
    print(
        f"{name}: {model.budget_:,} of {len(y):,} rows, excess {100 * model.excess_:.3f} %, error on rows not kept "
        f"{model.unkept_ratio_:.4f} times that of all rows (random rows {np.mean(drawn):.3f} ± {np.std(drawn):.3f}), "
        f"{seconds:.1f} s ({seconds / unit:.1f} times RidgeCV)"
    )
    return kept(model.budget_path_, model.budget_, model.excess_)


def parquet(folder: Path) -> bool:
    with tempfile.TemporaryDirectory() as out:
        words = [
            "--target",
            "y",
            "--tolerance",
            "1%",
            "--workers",
            "2",
            "--memory-limit",
            MEMORY,
            "--out",
            f"{out}/run",
            "--json",
        ]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "mixbin", "distill", str(folder / "train"), *words], capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - began
    summary = json.loads(done.stdout)
    main, curve = summary["methods"][-1], summary["curve"]
    print(
        f"{folder.name}: {main['rows']:,} of {summary['rows']:,} rows, excess {100 * summary['excess']:.3f} %, error on rows not "
        f"kept {main['ratio']:.4f} times that of all rows, {seconds:.0f} s of the clock, {summary['passes']} passes; the search "
        f"alone {main['seconds']:.0f} s"
    )
    print("   ", summary["verdict"])
    return kept(dict(zip(curve["rows"], curve["excess"], strict=True)), curve["found"], summary["excess"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uci", type=Path)
    parser.add_argument("--blog", action="store_true")
    parser.add_argument("--parquet", type=Path)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    good = True
    for name in UCI if args.uci else ():
        table = np.loadtxt(args.uci / f"{name}-data.csv.gz", delimiter=",")
        good = in_memory(name, table[:, :-1], table[:, -1]) and good
    if args.blog:
        data = mb.datasets.load_blog()
        good = in_memory("blog", data.X, data.y) and good
    if args.parquet:
        good = parquet(args.parquet) and good
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

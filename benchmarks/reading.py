"""Reading a large CSV with text: the reader of the commands beside pandas and scikit-learn's transformers by hand, in one run.

    python benchmarks/reading.py [--rows 1000000]

Each way runs in a process of its own, which reports its processor time and its peak of memory; the file is written once, into the
temporary folder, and removed. Both ways give the same numbers, which is checked by their sums.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

NUMBERS, TEXTS = 24, (2, 5, 12, 25, 60)
"""Columns of numbers, and how many different texts each column of text has; with the target 30 columns."""


def write(file: Path, rows: int) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    table = {f"x{i}": rng.normal(size=rows).round(4) for i in range(NUMBERS)}
    for i, k in enumerate(TEXTS):
        table[f"t{i}"] = np.array([f"word {j}" for j in range(k)])[rng.integers(k, size=rows)]
    table["x0"][rng.random(rows) < 0.01] = np.nan
    pd.DataFrame(table | {"y": rng.normal(size=rows).round(4)}).to_csv(file, index=False)


def ours(file: Path) -> tuple[float, tuple[int, ...]]:
    from mixbin.data.reader import Reader

    reader = Reader("y", ())
    part = reader.train(file)
    reader.learn([part])
    X = reader.numbers(part)
    return float(X.sum()), X.shape


def by_hand(file: Path) -> tuple[float, tuple[int, ...]]:
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    table = pd.read_csv(file)
    X = table.drop(columns="y")
    numbers, texts = ([name for name in X if name[0] == kind] for kind in "xt")
    how = {"drop": "if_binary", "max_categories": 30, "handle_unknown": "infrequent_if_exist", "sparse_output": False}
    made = ColumnTransformer([("n", SimpleImputer(strategy="median"), numbers), ("t", OneHotEncoder(**how), texts)])
    out = made.fit_transform(X)
    return float(out.sum()), out.shape


def medians(rows: int) -> str:
    """How long the medians of the columns of numbers take by NumPy and by scikit-learn."""
    from sklearn.impute import SimpleImputer

    X = np.random.default_rng(0).normal(size=(rows, NUMBERS))
    seconds = []
    for fill in (lambda: np.nanmedian(X, axis=0), lambda: SimpleImputer(strategy="median").fit(X)):
        began = time.process_time()
        fill()
        seconds.append(time.process_time() - began)
    return f"medians: numpy {seconds[0]:.2f} s, SimpleImputer {seconds[1]:.2f} s, {seconds[0] / seconds[1]:.2f} of it"


WAYS = {"ours": ours, "by hand": by_hand}


def measure(way: str, file: Path) -> dict[str, float]:
    began, wall = time.process_time(), time.perf_counter()
    total, shape = WAYS[way](file)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "cpu": time.process_time() - began,
        "wall": time.perf_counter() - wall,
        "megabytes": peak,
        "sum": total,
        "rows": shape[0],
        "columns": shape[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--file", type=Path)
    args = parser.parse_args()
    if args.way:
        print(json.dumps(measure(args.way, args.file)))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        write(file, args.rows)
        found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(3):
            for way in WAYS:
                command = [sys.executable, __file__, "--way", way, "--file", str(file)]
                run = subprocess.run(
                    command, check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
                )
                found[way].append(json.loads(run.stdout))
    best = {way: {name: min(it[name] for it in runs) for name in runs[0]} for way, runs in found.items()}
    assert np.isclose(best["ours"]["sum"], best["by hand"]["sum"], rtol=1e-9)
    print(f"{args.rows:,} rows x 30 columns, {len(TEXTS)} of them text, as {best['ours']['columns']:.0f} columns; best of 3")
    for way, it in best.items():
        print(f"{way:8}  {it['cpu']:6.2f} s of processor  {it['wall']:6.2f} s  {it['megabytes']:7,.0f} MB")
    ratios = {name: best["ours"][name] / best["by hand"][name] for name in ("cpu", "wall", "megabytes")}
    print("ours / by hand: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))
    print(medians(args.rows))


if __name__ == "__main__":
    main()

"""Distillation on Dask: cost against rows, one worker against two, a pass against its computations, a run in little memory.

    python benchmarks/dask_scale.py --data FOLDER [--rows 4000000] [--evaluations 60] [--parts scale workers ...]

FOLDER gets the table (50 features, 1.6 GB of Parquet at 4 million rows, twice) unless it is there. Speeds are ratios within one
run; the load of the machine is printed beside them. Figures go to benchmarks/dask_scale.json, the plot to
docs/how-far-it-scales.svg.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FEATURES, GROUP, VALIDATION = 50, 62_500, 50_000
MEMORY = "600MB"
OPTIONS = f"--target y --budget 1% --alpha 0.001 --workers 2 --memory-limit {MEMORY} --json".split()
NO_LAM = np.empty(0)
LEAST_SPEEDUP, MOST_RATIO, MOST_CLIENT, MOST_BEND = 1.4, 2.5, 500.0, 1.3
MOST_LATE = 0.6


def generate(folder: Path, rows: int, nullable: bool = True) -> None:
    """Columns that may have missing values, as Arrow and pandas write them, or are declared to have none."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    coef = rng.normal(size=FEATURES)
    names = [*(f"x{j}" for j in range(FEATURES)), "y"]
    schema = pa.schema([pa.field(name, pa.float64(), nullable) for name in names])

    def table(n):
        X = rng.normal(size=(n, FEATURES))
        X[:, 0] += 2000.0
        y = X @ coef + 0.3 * X[:, 1] ** 2 + rng.normal(size=n) * np.where(rng.random(n) < 0.3, 5.0, 0.5)
        return pa.table([*X.T, y], schema=schema)

    (folder / "train").mkdir(parents=True)
    for i in range(rows // GROUP):
        parquet.write_table(table(GROUP), folder / "train" / f"part-{i}.parquet", compression="NONE", use_dictionary=False)
    parquet.write_table(table(VALIDATION), folder / "validation.parquet")


def build(folder: Path, rows: int):
    """The problem on the first rows of the table, on the cluster at hand."""
    import mixbin as mb

    train = mb.ParquetFolder(folder / "train", target=-1)
    held = mb.ParquetFolder(folder / "validation.parquet", like=train)
    X, y = (it.blocks[: rows // GROUP] for it in (train.X.in_parts, train.y))
    return mb.RidgeDistillation(X, y, held.X, held.y, budget=0.01, alpha=1e-3)


def timed(problem, repeats: int = 3) -> float:
    """Median seconds of an evaluation with its gradient, which is two passes, all rows with weight."""
    seconds = []
    for k in range(repeats + 1):
        v = np.full(problem.theta_set.size, 0.01 + 1e-7 * k)
        began = time.perf_counter()
        problem.evaluate(v, NO_LAM)
        seconds.append(time.perf_counter() - began)
    # The first warms the workers up.
    return statistics.median(seconds[1:])


@contextmanager
def workers_that(copy: bool = True):
    """Two workers that copy tables to their disks, or read them from their own files in every pass."""
    from mixbin.data import block_copies
    from mixbin.data.workers import local_workers

    share, block_copies.SHARE = block_copies.SHARE, block_copies.SHARE if copy else 0.0
    try:
        with local_workers(2, MEMORY, threads=1):
            yield
    finally:
        block_copies.SHARE = share


def late(folder: Path, rows: int, rounds: int = 7, copies: bool = True) -> dict:
    """An evaluation with gradient when 1 % of the rows have weight against one when all have, in turn, both reading X anew.

    From one late evaluation to the next, a twentieth of the rows with weight gives it to the rows that the gradient promises most
    for, as a run does that follows the gradient.
    """
    from mixbin.data import dask_blocks

    dask_blocks.KEPT_SHARE = 0.0
    early, seconds, read = [], [], []
    with workers_that(copies):
        one, other = build(folder, rows), build(folder, rows)
        k = one.theta_set.k
        gradient = one.evaluate(np.full(rows, 0.01), NO_LAM).grad_theta
        theta = np.zeros(rows)
        theta[np.argpartition(gradient, k)[:k]] = 1.0
        gradient = one.evaluate(theta, NO_LAM).grad_theta
        for _ in range(rounds):
            early.append(timed(other, 1))
            on, off = np.flatnonzero(theta), np.flatnonzero(theta == 0)
            theta[on[np.argpartition(-gradient[on], k // 20)[: k // 20]]] = 0.0
            theta[off[np.argpartition(gradient[off], k // 20)[: k // 20]]] = 1.0
            before, began = one.rows.statistics().bytes_read, time.perf_counter()
            gradient = one.evaluate(theta, NO_LAM).grad_theta
            seconds.append(time.perf_counter() - began)
            read.append((one.rows.statistics().bytes_read - before) / (8 * rows * (FEATURES + 1)))
    ratios, tables = np.divide(seconds, early), ", ".join(f"{it:.2f}" for it in read)
    ratio = statistics.median(ratios)
    print(
        f"{rows:,} rows, 1 % with weight: {statistics.median(seconds):.2f} s an evaluation, all with weight "
        f"{statistics.median(early):.2f} s: ratio {ratio:.2f} (rounds {min(ratios):.2f} to {max(ratios):.2f}); tables read in a "
        f"late one: {tables}; load {load()}",
        flush=True,
    )
    return {
        "rows": rows,
        "early": statistics.median(early),
        "late": statistics.median(seconds),
        "ratio": ratio,
        "read": read,
        "load": load(),
    }


def load() -> str:
    return " ".join(f"{it:.1f}" for it in os.getloadavg())


def scale(folder: Path, rows: int) -> dict:
    """Seconds an evaluation against rows, which are read anew in every pass."""
    sizes = [rows // 8, rows // 4, rows // 2, rows]
    found = {}
    from mixbin.data import dask_blocks
    from mixbin.data.workers import local_workers

    dask_blocks.KEPT_SHARE = 0.0
    with local_workers(2, MEMORY, threads=1):
        for n in sizes:
            found[n] = timed(build(folder, n))
            print(f"{n:>9,} rows: {found[n]:.2f} s an evaluation with gradient, load {load()}", flush=True)
    per_row = [found[n] / n for n in sizes]
    bend = max(later / min(per_row[: i + 1]) for i, later in enumerate(per_row))
    print(f"the price of a row grows by a factor of at most {bend:.2f} from {sizes[0]:,} rows on")
    return {"seconds": found, "bend": bend, "load": load()}


def workers(folder: Path, rows: int) -> dict:
    """One worker against two, on half of the rows, twice in turn."""
    from mixbin.data import dask_blocks
    from mixbin.data.workers import local_workers

    dask_blocks.KEPT_SHARE = 0.0
    seconds = {1: [], 2: []}
    for n in (1, 2, 1, 2):
        with local_workers(n, MEMORY, threads=1):
            seconds[n].append(timed(build(folder, rows // 2)))
    one, two = (statistics.median(seconds[n]) for n in (1, 2))
    print(
        f"{rows // 2:,} rows: one worker {one:.2f} s, two {two:.2f} s: {one / two:.2f} times as fast, load {load()}", flush=True
    )
    return {"one": one, "two": two, "speedup": one / two, "load": load()}


def raw(folder: Path, first: int, last: int) -> dict[str, float]:
    """Blocks without Dask, in this process: seconds of reading them, and of values and gradients once they are in memory."""
    from mixbin.data import blocks
    from mixbin.data.parquet import ParquetFolder
    from mixbin.data.parquet_pieces import PieceRows
    from mixbin.data.parts import Columns, LoadedRows

    train = ParquetFolder(folder / "train", target=-1)
    centre, K, A = np.zeros(FEATURES + 1), np.ones((1, FEATURES + 1)), np.ones((1, FEATURES + 1))
    double, spent = np.dtype(np.float64), dict.fromkeys(("reading", "value", "gradient"), 0.0)
    for piece in train.pieces[first // GROUP : last // GROUP]:
        weights = blocks.Weights(np.full(piece.rows, 0.01))
        began = time.perf_counter()
        both = PieceRows(piece, [*train.features, train.target], double).loaded()
        spent["reading"] += time.perf_counter() - began
        X = LoadedRows([Columns(part.columns[:-1]) for part in both.parts()], PieceRows(piece, train.features, double))
        y = np.concatenate([part.columns[-1] for part in both.parts()])
        began = time.perf_counter()
        blocks.moments(X, y, weights, centre)
        summed = time.perf_counter()
        blocks.gradient(X, y, K, A, np.zeros(1), centre)
        spent["value"] += summed - began
        spent["gradient"] += time.perf_counter() - summed
    return spent


def one_pass(folder: Path, rows: int, rounds: int = 9, copies: bool = True) -> dict:
    """Time a pass on two workers against the computations of its blocks alone, by two processes at once, in turn."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    halves = [(folder, 0, rows // 2), (folder, rows // 2, rows)]
    got, alone = [], []
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool, workers_that(copies):
        began = time.perf_counter()
        problem = build(folder, rows)
        first = time.perf_counter() - began
        storage = problem.rows.statistics().storage
        timed(problem, 1)
        for k in range(rounds + 1):
            one = list(pool.map(raw, *zip(*halves, strict=True)))
            if k:  # the first warms the processes up
                alone.append({name: statistics.mean(it[name] for it in one) for name in one[0]})
                got.append(timed(problem, 1))
    mean, reading = statistics.median(got) / 2, statistics.median(it["reading"] for it in alone)
    computing = statistics.median(it["value"] + it["gradient"] for it in alone) / 2
    ratios = sorted(it / (one["value"] + one["gradient"]) for it, one in zip(got, alone, strict=True))
    found = {
        "pass": mean,
        "alone": computing,
        "reading": reading,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "ratio_with_reading": mean / (computing + reading),
        "first": first,
        "storage": storage,
        "load": load(),
    }
    print(
        f"{storage}, {first:.1f} s for the first look at it\n"
        f"a pass over {rows:,} rows: {mean:.2f} s on two workers; without Dask, by two processes, its block computations alone "
        f"{computing:.2f} s, and reading {reading:.2f} s: ratio {found['ratio']:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), "
        f"{found['ratio_with_reading']:.2f} to both; load {load()}",
        flush=True,
    )
    return found


def run(folder: Path, evaluations: int) -> dict:
    """``mixbin distill`` to 1 % with two workers of 600 MB; the peak memory of the command's own process."""
    with tempfile.TemporaryDirectory() as out:
        files = ["--validation", str(folder / "validation.parquet"), "--out", f"{out}/run"]
        command = [sys.executable, "-m", "mixbin", "distill", str(folder / "train"), *OPTIONS, *files]
        began = time.perf_counter()
        process = subprocess.Popen([*command, "--max-evaluations", str(evaluations)], stdout=subprocess.PIPE, text=True)
        peak = 0.0
        while process.poll() is None:
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            peak = max(peak, int(found[1]) * 1024 / 1e6) if found else peak
            time.sleep(0.2)
        seconds = time.perf_counter() - began
        summary = json.loads(process.stdout.read())
    last = summary["methods"][-1]
    print(
        f"{summary['rows']:,} rows to {last['rows']:,}: validation {last['validation_loss']:.6g} (all rows "
        f"{summary['methods'][0]['validation_loss']:.6g}), {last['evaluations']} evaluations, {summary['passes']} passes, "
        f"{summary['bytes_read'] / 1e9:.0f} GB read, {seconds:.0f} s; {summary['storage']}; "
        f"client peak {peak:.0f} MB, load {load()}",
        flush=True,
    )
    return {
        "seconds": seconds,
        "client_peak_mb": peak,
        **{name: summary[name] for name in ("passes", "bytes_read")},
        "load": load(),
    }


def text_table(folder: Path, rows: int) -> None:
    """Numbers and texts, compressed, as pandas writes them."""
    import pandas as pd

    rng = np.random.default_rng(1)
    folder.mkdir(parents=True)
    for i in range(rows // GROUP):
        frame = pd.DataFrame({f"x{j}": rng.normal(size=GROUP) for j in range(10)})
        for j in range(5):
            frame[f"kind {j}"] = rng.choice([f"value {k}" for k in range(8)], GROUP)
        frame["y"] = frame["x0"] + (frame["kind 0"] == "value 3") + rng.normal(size=GROUP)
        frame.to_parquet(folder / f"part-{i}.parquet", index=False)


def copies(folder: Path, rows: int, evaluations: int) -> dict:
    """``mixbin distill`` of a table with texts, with copies on the workers' disks and without, in turn."""
    table = folder / "with text"
    if not table.is_dir():
        text_table(table, rows)
    never = {f"DASK_DISTRIBUTED__WORKER__MEMORY__{name}": "False" for name in ("TARGET", "SPILL")}
    seconds: dict[str, list[float]] = {"copied": [], "read anew": []}
    found = {}
    for how in ("copied", "read anew") * 2:
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, "-m", "mixbin", "distill", str(table), *OPTIONS, "--out", f"{out}/run"]
            environment = os.environ | (never if how == "read anew" else {})
            began = time.perf_counter()
            text = subprocess.run(
                [*command, "--max-evaluations", str(evaluations)], env=environment, check=True, stdout=subprocess.PIPE, text=True
            ).stdout
            seconds[how].append(time.perf_counter() - began)
        summary = json.loads(text)
        assert how in summary["storage"], summary["storage"]
        found[how] = {name: summary[name] for name in ("rows", "passes", "bytes_read", "storage")}
        found[how]["loss"] = summary["methods"][-1]["full_loss"]
    assert found["copied"]["loss"] == found["read anew"]["loss"]
    ratio = statistics.median(seconds["copied"]) / statistics.median(seconds["read anew"])
    said = ", ".join(f"{how} {' and '.join(f'{it:.0f}' for it in some)} s" for how, some in seconds.items())
    print(f"{rows:,} rows with texts, {found['copied']['passes']} passes: {said}: ratio {ratio:.2f}; load {load()}", flush=True)
    return {"seconds": seconds, "ratio": ratio, "runs": found, "load": load()}


def block() -> dict:
    """CPU time a row of one block at 50 and 100 features, in microseconds, and of reading, in nanoseconds a byte."""
    from mixbin.data import blocks
    from mixbin.data.parquet import ParquetFolder
    from mixbin.data.parquet_pieces import PieceRows

    def median(function, repeats=15):
        seconds = []
        for _ in range(repeats):
            began = time.process_time()
            function()
            seconds.append(time.process_time() - began)
        return statistics.median(seconds)

    found = {}
    for d in (50, 100):
        n = GROUP // 2
        Z = np.random.default_rng(0).normal(size=(d + 1, n)).T
        X, y, zero = Z[:, :-1], Z[:, -1], np.zeros(d + 1)
        weights, thin = blocks.Weights(np.full(n, 0.01)), np.ones((1, d + 1))
        value = median(lambda X=X, y=y, w=weights, c=zero: blocks.moments(X, y, w, c))
        gradient = median(lambda X=X, y=y, k=thin, c=zero: blocks.gradient(X, y, k, k, np.zeros(1), c))
        found[f"value_{d}"], found[f"gradient_{d}"] = 1e6 * value / n, 1e6 * gradient / n
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), GROUP)
        train = ParquetFolder(Path(folder) / "train", target=-1)
        columns, (piece,) = [*train.features, train.target], train.pieces
        reading = median(lambda: PieceRows(piece, columns, np.dtype(np.float64)).loaded())
    found["reading"] = 1e9 * reading / (8 * piece.rows * len(columns))
    print(" ".join(f"{name} {it:.3f}" for name, it in found.items()), f"load {load()}", flush=True)
    return found


def client(rows: int) -> dict:
    """What the client does by itself: seconds a step beside the evaluations, and vectors of theta's size at the peak."""
    import tracemalloc

    import mixbin as mb

    cost, inside = np.round(np.random.default_rng(0).normal(size=rows), 3), [0.0]

    def function(theta):
        began = time.process_time()
        found = float(0.5 * theta @ theta + cost @ theta), theta + cost
        inside[0] += time.process_time() - began
        return found

    problem = mb.FunctionProblem(function, mb.Budget(rows, 0.01))
    began = time.process_time()
    result = mb.relax_and_penalize(problem, seed=0, max_evaluations=60)
    seconds = (time.process_time() - began - inside[0]) / result.n_evaluations
    tracemalloc.start()
    mb.relax_and_penalize(problem, seed=0, max_evaluations=60)
    vectors = tracemalloc.get_traced_memory()[1] / (8 * rows)
    tracemalloc.stop()
    print(f"client: {seconds:.3f} s CPU an evaluation at {rows:,} rows, {vectors:.1f} vectors, load {load()}", flush=True)
    return {"seconds": seconds, "rows": rows, "vectors": vectors}


def plot(figures: dict) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    seconds = {int(n): it for n, it in figures["scale"]["seconds"].items()}
    rows, price = np.array(sorted(seconds)), np.array([seconds[n] for n in sorted(seconds)])
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.plot(rows / 1e6, price, "o", color="#1f5fa8", label="measured, two workers")
    slope = float(rows @ price / (rows @ rows))
    line = np.array([0, rows[-1]])
    axes.plot(line / 1e6, slope * line, color="#1f5fa8", linewidth=1, label=f"{1e6 * slope:.2g} s a million rows")
    if "workers" in figures:
        axes.plot(rows[-1] / 2e6, figures["workers"]["one"], "s", color="#c4541c", label="measured, one worker")
    axes.set(xlabel="million rows of 50 features", ylabel="seconds an evaluation with gradient", xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(HERE.parent / "docs" / "how-far-it-scales.svg")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--evaluations", type=int, default=60)
    parser.add_argument("--parts", nargs="+", default=["scale", "workers", "pass", "late", "copies", "block", "client", "run"])
    args = parser.parse_args()
    if not (args.data / "train").is_dir():
        generate(args.data, args.rows)
    kept = HERE / "dask_scale.json"
    figures = json.loads(kept.read_text()) if kept.exists() else {}
    if "scale" in args.parts:
        figures["scale"] = scale(args.data, args.rows)
    if "workers" in args.parts:
        figures["workers"] = workers(args.data, args.rows)
    if "pass" in args.parts:
        figures["pass"] = one_pass(args.data, args.rows)
        declared = args.data / "without missing values"
        if not declared.is_dir():
            generate(declared, args.rows, nullable=False)
        print("the same rows in columns that are declared to have no missing value:")
        figures["pass, none missing"] = one_pass(declared, args.rows)
        print("the first table, read from its own files in every pass:")
        figures["pass, no copies"] = one_pass(args.data, args.rows, copies=False)
    if "late" in args.parts:
        figures["late"] = late(args.data, args.rows)
        print("the same, read from its own files in every pass:")
        figures["late, no copies"] = late(args.data, args.rows, copies=False)
    if "copies" in args.parts:
        figures["copies"] = copies(args.data, args.rows // 2, args.evaluations)
    if "block" in args.parts:
        figures["block"] = block()
    if "client" in args.parts:
        figures["client"] = client(args.rows)
    if "run" in args.parts:
        figures["run"] = run(args.data, args.evaluations)
    kept.write_text(json.dumps(figures, indent=2) + "\n")
    if "scale" in figures:
        plot(figures)
    tests = {
        f"two workers at least {LEAST_SPEEDUP} times as fast": figures.get("workers", {}).get("speedup", 9) >= LEAST_SPEEDUP,
        f"a pass at most {MOST_RATIO} times its computations": figures.get("pass", {}).get("ratio", 0) <= MOST_RATIO,
        "the same, none missing": figures.get("pass, none missing", {}).get("ratio", 0) <= MOST_RATIO,
        f"a late evaluation at most {MOST_LATE} of an early one": figures.get("late", {}).get("ratio", 0) <= MOST_LATE,
        "the same without copies": figures.get("late, no copies", {}).get("ratio", 0) <= MOST_LATE,
        f"client below {MOST_CLIENT:.0f} MB": figures.get("run", {}).get("client_peak_mb", 0) < MOST_CLIENT,
        f"the price of a row grows by at most {MOST_BEND}": figures.get("scale", {}).get("bend", 0) <= MOST_BEND,
    }
    print("PASS" if all(tests.values()) else "FAIL", *(f"{name}: {'yes' if it else 'no'};" for name, it in tests.items()))
    return 0 if all(tests.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())

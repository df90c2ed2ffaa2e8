"""Blog in 7 uneven blocks: whole runs in memory, in memory over the same blocks, on Dask's threads and on two worker processes.

    python benchmarks/blog_dask.py [--budget 0.1]

On Dask the rows must be those of the same blocks in memory, and the validation loss within 0.1 % of the plain problem's. The data
are found as ``mixbin.datasets.load_blog`` finds them (set MIXBIN_DATA to their folder).
"""

import argparse
import time
import warnings

import dask
import dask.array as da
import numpy as np
from threadpoolctl import threadpool_limits

import mixbin as mb

CHUNKS = (3_000, 12_000, 7_000, 1_397, 20_000, 5_000, 4_000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=0.1)
    args = parser.parse_args()
    data = mb.datasets.load_blog()
    keywords = {"budget": args.budget, "alpha": 100.0}
    held = data.X_val, data.y_val

    def solved(name, X, y, **more):
        began = time.perf_counter()
        result = mb.relax_and_penalize(mb.RidgeDistillation(X, y, *held, **keywords, **more), seed=0)
        seconds = time.perf_counter() - began
        print(f"{name}: validation {result.value:.6f}, {result.n_evaluations} evaluations, {seconds:.0f} s", flush=True)
        return result

    def on_dask(name):
        X, y = da.from_array(data.X, chunks=(CHUNKS, -1)), da.from_array(data.y, chunks=(CHUNKS,))
        return solved(name, X, y)

    with threadpool_limits(1):
        plain = solved("in memory", data.X, data.y)
        blocks = solved("in memory, 7 blocks", data.X, data.y, chunks=CHUNKS)
        with dask.config.set(scheduler="threads"):
            found = [on_dask("Dask, threads")]
        from distributed import Client, LocalCluster

        warnings.filterwarnings("ignore", message="Sending large graph")
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local, Client(local):
            found.append(on_dask("Dask, two worker processes"))
    same = all(np.array_equal(it.theta, blocks.theta) for it in found)
    gap = max(abs(it.value / plain.value - 1.0) for it in found)
    passed = same and gap <= 1e-3
    print(
        "PASS" if passed else "FAIL", f"(rows as over the same blocks: {same}; validation loss within {gap:.2e} of the plain one)"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())

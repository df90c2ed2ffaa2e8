"""The answers of the engine, to the bit: recorded once, and compared after a change that must not alter them.

    python benchmarks/same_records.py write FILE [--only NAME ...]
    python benchmarks/same_records.py compare FILE [--only NAME ...]

``write`` solves every case below with a fixed seed and without a limit on the evaluations, and keeps theta, lam and value (as
exact bits) with the number of evaluations. ``compare`` solves them again and prints a table; it exits with 1 if theta, lam or
value of any case differ. The number of evaluations is shown and may differ. PYTHONPATH chooses the version of mixbin. Blog is
found as ``mixbin.datasets.load_blog`` finds it (set MIXBIN_DATA to its folder).
"""

import os

# The number of BLAS threads decides the order of sums: one thread, in both runs.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import mixbin as mb

ALPHA = 100.0
# Versions before the portfolio know the search along the path only, and have no keyword for it.
PATH = {"search": "path"} if "search" in inspect.signature(mb.relax_and_penalize).parameters else {}
# The bits of docs/results; versions before ``compact`` have no others.
RECORDED = {"compact": False} if "compact" in inspect.signature(mb.RidgeDistillation).parameters else {}
SETS = {
    "hypercube": mb.Hypercube(24),
    "budget": mb.Budget(30, 9),
    "at most": mb.Budget(30, 9, at_most=True),
    "knapsack": mb.Knapsack(np.arange(1.0, 25.0), 90.0),
    "one-hot": mb.OneHot(8, 5),
}


@cache
def blog():
    return mb.datasets.load_blog()


def blog_fixed() -> mb.RidgeDistillation:
    data = blog()
    return mb.RidgeDistillation(data.X, data.y, data.X_val, data.y_val, budget=0.1, alpha=ALPHA, **RECORDED)


def blog_eighth() -> mb.RidgeDistillation:
    data = blog()
    return mb.RidgeDistillation(data.X[::8], data.y[::8], data.X_val[::8], data.y_val[::8], budget=0.1)


def in_blocks() -> mb.RidgeDistillation:
    """Rows in blocks, where the search stays among the rows that were fetched."""
    data = blog()
    X, y = data.X[:6_000], data.y[:6_000]
    return mb.RidgeDistillation(X, y, data.X_val[::8], data.y_val[::8], budget=0.1, alpha=ALPHA, chunks=[2_000] * 3)


def groups(kind: str) -> mb.GroupLassoStructure:
    data = mb.datasets.make_group_lasso(kind, n_tasks=120, n_features=40, n_groups=4, seed=1)
    return mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=4)


def digits() -> tuple[np.ndarray, ...]:
    """A seventh of the labels wrong, and rows to validate on."""
    X, y = load_digits(return_X_y=True)
    X, rng = X / 16.0, np.random.default_rng(0)
    order = rng.permutation(len(y))
    rows, held = order[:300], order[300:500]
    labels = y[rows].copy()
    labels[::7] = rng.integers(10, size=labels[::7].size)
    return X[rows], labels, X[held], y[held]


def classifier() -> mb.Result:
    return mb.DistillationClassifier(random_state=0).fit(*digits()).result_


def quadratic(theta_set) -> mb.FunctionProblem:
    """An indefinite quadratic with a lam of two entries."""
    rng = np.random.default_rng(7)
    p = theta_set.size
    A, c, B = rng.normal(size=(p, p)), rng.normal(size=p), rng.normal(size=(2, p)) / np.sqrt(p)
    Q = (A + A.T) / 2

    def function(theta, lam):
        x = theta.ravel()
        gap = lam - B @ x
        grad = (Q @ x + c - B.T @ gap).reshape(theta.shape)
        return 0.5 * x @ Q @ x + c @ x + 0.5 * gap @ gap, grad, gap

    return mb.FunctionProblem(function, theta_set, mb.Box([-1.0, -1.0], [2.0, 2.0]))


def penalized(problem: Callable[[], object], **settings) -> mb.Result:
    return mb.relax_and_penalize(problem(), seed=0, **PATH, **settings)


def rounded(problem: Callable[[], object], **settings) -> mb.Result:
    return mb.relax_and_round(problem(), seed=0, **settings)


def softmax() -> mb.SoftmaxDistillation:
    return mb.SoftmaxDistillation(*digits())


def cases() -> dict[str, Callable[[], mb.Result]]:
    made: dict[str, Callable[[], mb.Result]] = {
        "blog, 10 %, alpha = 100": partial(penalized, blog_fixed),
        "blog, an eighth, alpha optimised": partial(penalized, blog_eighth),
        "blog, in blocks": partial(penalized, in_blocks),
        "blog, an eighth, rounded": partial(rounded, blog_eighth, inner_steps=60),
        "groups, equal": partial(penalized, partial(groups, "equal")),
        "groups, inequal": partial(penalized, partial(groups, "inequal")),
        "groups, equal, without polish": partial(penalized, partial(groups, "equal"), polish=False),
        "groups, equal, rounded": partial(rounded, partial(groups, "equal"), inner_steps=40),
        "digits": partial(penalized, softmax, polish=60),
        "digits, classifier": classifier,
        "digits, rounded": partial(rounded, softmax, inner_steps=40),
    }
    for name, theta_set in SETS.items():
        problem = partial(quadratic, theta_set)
        made[f"quadratic, {name}"] = partial(penalized, problem)
        made[f"quadratic, {name}, without polish"] = partial(penalized, problem, polish=False)
        made[f"quadratic, {name}, rounded"] = partial(rounded, problem)
    made["quadratic, budget, simple rounding"] = partial(rounded, partial(quadratic, SETS["budget"]), rounding="simple")
    made["quadratic, budget, relaxed"] = partial(rounded, partial(quadratic, SETS["budget"]), rounding=None)
    return made


def bits(array: np.ndarray) -> str:
    """All bits of a short array, a hash of those of a long one."""
    raw = np.ascontiguousarray(array).tobytes()
    return raw.hex() if len(raw) <= 64 else hashlib.sha256(raw).hexdigest()


def record(result: mb.Result) -> dict[str, object]:
    return {
        "theta": f"{result.theta.dtype} {result.theta.shape} {bits(result.theta)}",
        "lam": f"{result.lam.shape} {bits(result.lam)}",
        "value": float(result.value).hex(),
        "n_evaluations": int(result.n_evaluations),
    }


def solved(name: str, case: Callable[[], mb.Result]) -> dict[str, object]:
    began = time.perf_counter()
    got = record(case())
    print(
        f"{name}: value {float.fromhex(str(got['value'])):.8g}, {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True
    )
    return got


def compare(before: dict[str, dict[str, object]], after: dict[str, dict[str, object]]) -> int:
    """Print the table; 1 if theta, lam or value of a case differ."""
    worst = 0
    width = max(map(len, after))
    print(f"{'case':{width}}  same bits  evaluations")
    for name, there in after.items():
        here = before.get(name)
        if here is None:
            print(f"{name:{width}}  not recorded")
            worst = 1
            continue
        different = [key for key in ("theta", "lam", "value") if here[key] != there[key]]
        worst = max(worst, bool(different))
        same = "yes" if not different else f"NO: {', '.join(different)}"
        print(f"{name:{width}}  {same:9}  {here['n_evaluations']} -> {there['n_evaluations']}")
    return int(worst)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="+", default=[], help="cases whose names begin with one of these")
    args = parser.parse_args()
    before = json.loads(args.file.read_text()) if args.what == "compare" else {}
    chosen = {name: case for name, case in cases().items() if not args.only or name.startswith(tuple(args.only))}
    got = {name: solved(name, case) for name, case in chosen.items()}
    if args.what == "compare":
        return compare(before, got)
    args.file.write_text(json.dumps(got, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

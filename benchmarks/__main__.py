"""The fast ratios in one table, with the recorded values beside them.

    python -m benchmarks [--quick] [--only NAME ...] [--write | --write-before]

Run it in the project's folder. Each row is processor time of mixbin over processor time of something fixed, measured in this run,
so that a slow or a busy machine changes both. ``--quick`` takes smaller sizes, for CI. ``--write`` stores what was measured in
ratios.json as the recorded values; ``--write-before`` stores it as the column "before", for an older version of mixbin, whose
source PYTHONPATH names. What needs data that are missing is skipped, with the reason.

Exit code 1 if a ratio is more than four times its recorded value: such a change is no noise, smaller ones may be.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

# One BLAS thread: with more, processor time depends on how many cores are free. Before NumPy is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

import mixbin as mb  # noqa: E402

RECORDED = Path(__file__).with_name("ratios.json")
MOST = 4.0
"""A ratio beyond this many times the recorded one is a failure."""
SHARED = Path(__file__).resolve().parents[2] / "shared"


class Skipped(Exception):
    """Why a ratio cannot be measured here."""


def seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """The least processor time of some calls."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def process_seconds(code: str, **environment: str) -> float:
    """The processor time of a fresh Python process and of all that it starts."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=os.environ | environment)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def projection(quick: bool) -> float:
    size = 1_000_000 if quick else 4_000_000
    x, budget = np.random.default_rng(0).normal(size=size), mb.Budget(size, 0.01)
    return seconds(lambda: budget.project(x), 5) / seconds(lambda: np.sort(x), 5)


def engine(quick: bool) -> float:
    from benchmarks.engine_overhead import run

    own, passes = run(200_000 if quick else 1_000_000, 30)
    return float(min(own) / min(passes))  # both by the clock: the least of many is what nobody disturbed


def blog_step(quick: bool) -> float:
    if not (SHARED / "paper_step.py").is_file():
        raise Skipped("../shared/paper_step.py, the published step, is missing")
    path = SHARED / "data" / "BlogFeedback.zip"
    if "MIXBIN_DATA" not in os.environ and not path.is_file():
        raise Skipped("../shared/data/BlogFeedback.zip is missing, and MIXBIN_DATA names no folder with it")
    sys.path.insert(0, str(SHARED))
    from paper_step import paper_step

    data = mb.datasets.load_blog(None if "MIXBIN_DATA" in os.environ else path)
    part = slice(None, None, 4) if quick else slice(None)
    X, y = data.X[part], data.y[part]
    problem = mb.RidgeDistillation(X, y, data.X_val, data.y_val, budget=0.1, alpha=100.0)
    theta, lam, rng = np.full(len(y), 0.1), problem.lam_set.start(), np.random.default_rng(0)
    thetas = [theta * rng.uniform(0.9, 1.1, size=len(y)) for _ in range(3)]
    ours = min(seconds(lambda it=it: problem.evaluate(it, lam)) for it in thetas)
    return ours / seconds(lambda: paper_step(theta, X, y, data.X_val, data.y_val, s=100.0, rng=rng), 3)


def rows_run(quick: bool) -> float:
    """The same size in both tables: with fewer rows the search is another one."""
    from benchmarks.distillation_scale import synthetic

    (X, y), held = synthetic(20_000, 30, np.float64, 10), synthetic(5_000, 30, np.float64, 20)
    problem = mb.RidgeDistillation(X, y, *held, budget=0.05, alpha=0.1)
    thetas = [problem.theta_set.start() * c for c in (1.0, 0.99, 0.98)]
    evaluation = min(seconds(lambda it=it: problem.evaluate(it, np.empty(0))) for it in thetas)
    return seconds(lambda: mb.relax_and_penalize(problem, seed=0)) / evaluation


def tiny(quick: bool) -> float:
    from benchmarks.small_things import instance

    count = 5 if quick else 20
    problems = [instance(seed) for seed in range(count)]
    mb.relax_and_penalize(instance(count), seed=0)  # whatever is loaded at the first use
    ours = seconds(lambda: [mb.relax_and_penalize(it, seed=0) for it in problems]) / count
    theta, lam = problems[0].theta_set.start(), problems[0].lam_set.start()
    weights = [theta * (1.0 - 1e-9 * i) for i in range(500)]  # equal weights would be recognised
    return ours / (seconds(lambda: [problems[0].evaluate(it, lam) for it in weights]) / len(weights))


def gas(quick: bool) -> float:
    from sklearn.linear_model import RidgeCV

    uci = SHARED / "data" / "uci"
    if not (uci / "gas-data.csv.gz").is_file():
        raise Skipped("../shared/data/uci/gas-data.csv.gz is missing")
    table = np.loadtxt(uci / "gas-data.csv.gz", delimiter=",")
    if quick:
        table = table[::4]
    X, y = table[:, :-1], table[:, -1]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    base = seconds(lambda: RidgeCV(alphas=10.0 ** np.arange(-5, 5.1, 0.5), cv=10).fit(X, y))
    return seconds(lambda: mb.DistillationRegressor(budget=len(y) // 18, random_state=0).fit(X, y)) / base


def importing(quick: bool) -> float:
    repeats = range(3 if quick else 10)
    base = min(process_seconds("import numpy, scipy.linalg") for _ in repeats)
    return min(process_seconds("import numpy, scipy.linalg, mixbin") for _ in repeats) / base


GROUPS = """
import mixbin as mb
data = mb.datasets.make_group_lasso("equal", n_tasks=60, n_samples=12, n_features=24, n_groups=4, seed=0)
problem = mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=4)
mb.relax_and_penalize(problem, seed=0)
"""
BILEVEL = """
import numpy as np, mixbin as mb
X = np.random.default_rng(0).normal(size=(20, 2))
problem = mb.bilevel(
    lambda w, v, s: ((X @ w - 1.0) ** 2).mean(), lambda w, v, s: (v * (X @ w - X[:, 0]) ** 2).mean() + s * (w**2).sum(),
    np.zeros(2), theta_set=mb.Budget(20, 0.5), lam_set=mb.Box(0.1, 1.0),
)
theta, lam = problem.theta_set.start(), problem.lam_set.start()
problem.evaluate(theta, lam)
problem.evaluate(theta, lam, gradient=False)
"""


@cache
def kernels() -> tuple[tempfile.TemporaryDirectory[str], float]:
    """A folder for compiled kernels, and the processor time of the group problem that found it empty."""
    folder = tempfile.TemporaryDirectory()
    return folder, process_seconds(GROUPS, NUMBA_CACHE_DIR=folder.name)


def first_groups(quick: bool) -> float:
    return kernels()[1] / process_seconds("import sklearn.cluster")


def second_groups(quick: bool) -> float:
    folder = kernels()[0].name
    second = min(process_seconds(GROUPS, NUMBA_CACHE_DIR=folder) for _ in range(1 if quick else 3))
    return second / process_seconds("import sklearn.cluster")


def first_jax(quick: bool) -> float:
    try:
        base = process_seconds("import jax, optimistix, lineax; jax.numpy.ones(3) + 1")
    except subprocess.CalledProcessError:
        raise Skipped("JAX is not installed; pip install 'mixbin[jax]'") from None
    return process_seconds(BILEVEL) / base


def one_pass(quick: bool) -> float:
    rng = np.random.default_rng(0)
    n, p = 50_000 if quick else 200_000, 50
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    problem = mb.RidgeDistillation(X, y, X[:2_000], y[:2_000], budget=0.1, alpha=1.0, chunks=[n // 4] * 4)
    theta, lam = rng.uniform(0.0, 0.2, size=n), problem.lam_set.start()
    coef = rng.normal(size=(p, 2))

    def raw() -> None:
        for part in np.split(np.arange(n), 4):
            rows = X[part[0] : part[-1] + 1]
            (rows.T * theta[part]) @ rows
            rows @ coef

    ours = min(seconds(lambda c=c: problem.evaluate(theta * c, lam)) for c in (1.0, 0.99, 0.98))
    return ours / seconds(raw, 3)


@dataclass(frozen=True)
class Ratio:
    """One row of the table."""

    measure: Callable[[bool], float]
    words: str


RATIOS = {
    "projection": Ratio(projection, "Budget.project over np.sort"),
    "engine": Ratio(engine, "an inner step without evaluation, in passes over theta"),
    "one pass": Ratio(one_pass, "an evaluation in blocks over its raw products"),
    "blog step": Ratio(blog_step, "an evaluation on blog over a published step"),
    "rows run": Ratio(rows_run, "a whole search on 20,000 x 30 over one evaluation"),
    "tiny": Ratio(tiny, "a search on 14 rows over one evaluation"),
    "gas": Ratio(gas, "DistillationRegressor over RidgeCV(cv=10)"),
    "import": Ratio(importing, "import mixbin over import numpy, scipy"),
    "first groups": Ratio(first_groups, "a first small group problem over import sklearn"),
    "second groups": Ratio(second_groups, "the same with compiled kernels on disk"),
    "first JAX": Ratio(first_jax, "a first bilevel problem over import jax"),
}


def verdict(now: float, recorded: float | None) -> str:
    """What the last column says; "TOO SLOW" is a failure."""
    if recorded is None:
        return "not recorded"
    return "TOO SLOW" if now > MOST * recorded else "ok"


def table(
    names: list[str], quick: bool, recorded: Mapping[str, float], before: Mapping[str, float] = MappingProxyType({})
) -> tuple[dict[str, float], bool]:
    """Measure and print the rows; returns what was measured, and whether any was too slow."""
    measured, failed = {}, False
    print(f"{'ratio':<15}{'before':>9}{'now':>9}{'recorded':>10}{'of it':>8}  verdict (processor seconds spent): what it is")
    for name in names:
        began, silent = sum(os.times()[:4]), io.StringIO()
        first = f"{name:<15}{f'{before[name]:.3g}' if name in before else '-':>9}"
        try:
            with contextlib.redirect_stdout(silent):
                now = RATIOS[name].measure(quick)
        except Skipped as reason:
            print(f"{first}{'-':>9}{'-':>10}{'-':>8}  skipped: {reason}", flush=True)
            continue
        measured[name] = now
        usual = recorded.get(name)
        shown = f"{'-':>10}{'-':>8}" if usual is None else f"{usual:>10.3g}{now / usual:>8.2f}"
        said = verdict(now, usual)
        failed |= said == "TOO SLOW"
        print(f"{first}{now:>9.3g}{shown}  {said} ({sum(os.times()[:4]) - began:.0f} s): {RATIOS[name].words}", flush=True)
    return measured, failed


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes, in under a minute of processor time")
    parser.add_argument("--only", nargs="+", choices=[*RATIOS], default=[*RATIOS], metavar="NAME", help=", ".join(RATIOS))
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--write", action="store_true", help="store the ratios as the recorded ones")
    kept.add_argument("--write-before", action="store_true", help='store the ratios as those of an older version, "before"')
    args = parser.parse_args()
    sizes = "quick" if args.quick else "full"
    stored = json.loads(RECORDED.read_text()) if RECORDED.is_file() else {}
    writes = f"before, {sizes}" if args.write_before else sizes if args.write else None
    beside = {} if writes else stored.get(sizes, {})
    measured, failed = table(args.only, args.quick, beside, stored.get(f"before, {sizes}", {}))
    if writes:
        stored[writes] = stored.get(writes, {}) | {name: float(f"{value:.3g}") for name, value in measured.items()}
        RECORDED.write_text(json.dumps(stored, indent=1) + "\n")
        return 0
    print(f"FAIL: beyond {MOST:g} times a recorded value" if failed else "PASS")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())

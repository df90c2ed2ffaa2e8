"""How answers hold on new data, and what they cost: DistillationRegressor beside RidgeCV on all rows and on random rows.

    python benchmarks/newdata.py [--blog] [--seeds 1] [--uci FOLDER]

Tables made here have columns of very different scale; ratios are test errors (RMSE) divided by those of RidgeCV on all training
rows. Seconds are those of this process. A fit may take 3 times RidgeCV(cv=10) on the same table, and 2 s; at 5 % of the rows the
ratio may be 1.02. --uci adds the tables of a folder, NAME-data.csv.gz with the target last: only the seconds count
there. --blog adds 1 % of the rows of BlogFeedback: an excess of at most 0.25 % within 60 published steps.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import mixbin as mb

ALPHAS = np.logspace(-5, 5, 21)
MOST_RATIO, MOST_TIMES, MORE_SECONDS = 1.02, 3.0, 2.0
BLOG_EXCESS, BLOG_STEPS = 0.0025, 60


def tables(seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    """Name, X, y and how many of the last columns are one-hot."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4000, 2))
    yield "two columns", x * [1e6, 1.0] + [3e6, 0.0], 1e4 * x[:, 1] + x[:, 0] + 5e3 * rng.normal(size=4000), 0
    # Like house prices: areas, years, counts, grades, a few categories.
    area, year = np.exp(rng.normal(7.3, 0.35, 2900)), rng.integers(1880, 2010, 2900)
    counts, grades = rng.poisson(2.0, (2900, 6)), rng.integers(1, 11, (2900, 4))
    place = np.eye(25)[rng.integers(0, 25, 2900)]
    X = np.column_stack([area, area * rng.uniform(0.3, 1.2, 2900), year, counts, grades, place])
    price = 60 * area + 400 * (year - 1970) + 9000 * grades[:, 0] + place @ rng.normal(0, 2e4, 25) + 2e4 * rng.standard_t(4, 2900)
    yield "like Ames", X, price, 25
    # Like blocks of houses: incomes, populations with a heavy tail, averages with outliers, coordinates.
    income, population = rng.gamma(3, 1.3, 9000), np.exp(rng.normal(7, 0.8, 9000))
    average = 5 + np.exp(rng.normal(0, 1.2, 9000)) * (rng.random(9000) < 0.02) * 20 + rng.normal(size=9000)
    where = rng.normal(size=(9000, 2)) * [2.1, 2.0] + [35.6, -119.5]
    X = np.column_stack([income, rng.integers(1, 53, 9000), average, population, population / 3, where])
    yield "like California", X, 0.43 * income - 0.4 * (where @ [1.0, 1.0] + 84) + 0.7 * rng.normal(size=9000), 0


def rmse(model, X, y) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blog", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--uci", type=Path)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    good = True
    for seed in range(args.seeds):
        for name, X, y, one_hot in tables(seed):
            test = np.random.default_rng([seed, 1]).random(len(y)) < 0.25
            scaler = StandardScaler().fit(X[~test])
            Z, Z_test = scaler.transform(X[~test]), scaler.transform(X[test])
            began = time.process_time()
            full = RidgeCV(alphas=ALPHAS, cv=KFold(10, shuffle=True, random_state=0)).fit(Z, y[~test])
            unit = time.process_time() - began
            base, m = rmse(full, Z_test, y[test]), len(Z)
            k = m // 20
            draws = [np.random.default_rng(s).choice(m, k, replace=False) for s in range(5)]
            random = np.mean([rmse(RidgeCV(alphas=ALPHAS, cv=10).fit(Z[i], y[~test][i]), Z_test, y[test]) for i in draws]) / base
            for kind in ("dense", "sparse") if one_hot else ("dense",):
                table = sparse.csr_array(X[~test]) if kind == "sparse" else X[~test]
                began = time.process_time()
                model = mb.DistillationRegressor(budget=k, random_state=0).fit(table, y[~test])
                seconds, ratio = time.process_time() - began, rmse(model, X[test], y[test]) / base
                good = good and ratio <= MOST_RATIO and seconds <= MOST_TIMES * unit + MORE_SECONDS
                print(
                    f"{name}, {kind}, seed {seed}: {k} of {m} rows, ratio {ratio:.4f} (random rows {random:.4f}), excess "
                    f"{model.excess_:.2g}, {seconds:.2f} s (RidgeCV {unit:.2f} s)",
                    flush=True,
                )
    for file in sorted(args.uci.glob("*-data.csv.gz")) if args.uci else ():
        good = in_time(file) and good
    if args.blog:
        good = blog() and good
    print("PASS" if good else "FAIL", f"(ratio at most {MOST_RATIO}, {MOST_TIMES:g} times RidgeCV + {MORE_SECONDS:g} s)")
    return 0 if good else 1


def in_time(file: Path) -> bool:
    """A table in standard units, with as many rows as features and two more, and with a twentieth of the rows."""
    table = np.loadtxt(file, delimiter=",")
    X, y = StandardScaler().fit_transform(table[:, :-1]), table[:, -1]
    began = time.process_time()
    RidgeCV(alphas=ALPHAS, cv=10).fit(X, y)
    unit, good = time.process_time() - began, True
    for k in (X.shape[1] + 2, len(X) // 20):
        began = time.process_time()
        model = mb.DistillationRegressor(budget=k, random_state=0).fit(X, y)
        seconds = time.process_time() - began
        good = good and seconds <= MOST_TIMES * unit + MORE_SECONDS
        name = file.name.removesuffix("-data.csv.gz")
        print(f"{name}: {k} of {len(X)} rows, excess {model.excess_:.2g}, {seconds:.2f} s (RidgeCV {unit:.2f} s)", flush=True)
    return good


def blog() -> bool:
    """One per cent of the rows of BlogFeedback, all rows judging."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "shared"))
    from paper_step import paper_step

    data = mb.datasets.load_blog()
    steps = []
    for _ in range(3):
        began = time.process_time()
        paper_step(np.full(len(data.y), 0.1), data.X, data.y, data.X_val, data.y_val, rng=np.random.default_rng(0))
        steps.append(time.process_time() - began)
    began = time.process_time()
    model = mb.DistillationRegressor(budget=0.01, random_state=0).fit(data.X, data.y)
    seconds = time.process_time() - began
    taken = seconds / float(np.median(steps))
    print(
        f"blog: {int(model.support_.sum())} of {len(data.y)} rows, excess {100 * model.excess_:.3f} %, {seconds:.1f} s = "
        f"{taken:.1f} published steps; {model.result_.message}",
        flush=True,
    )
    return model.excess_ <= BLOG_EXCESS and taken <= BLOG_STEPS


if __name__ == "__main__":
    raise SystemExit(main())

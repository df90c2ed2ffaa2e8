"""Rows for a kernel model, and what else they are good for: all rows, chosen rows, random rows, rows near the centres of k-means.

    python benchmarks/kernel_rows.py --uci FOLDER [--tables elevators skillcraft] [--splits 1] [--share 0.1]

The model is that of docs/how-few-rows.md: StandardScaler, Nystroem with 200 components and the default gamma, and
DistillationRegressor(standardize=False) at a share of the rows. All other rows train RidgeCV on the same features. Errors are
RMSE on the test rows of a split, divided by that of all rows; random rows are the mean of ten draws. The last line is that of a
random forest of 100 trees, trained on the columns themselves of the same rows (random rows: three draws), and of rows that were
chosen for a linear model.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.metrics import pairwise_distances_argmin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixbin as mb

DRAWS, FORESTS = 10, 3
ALPHAS = np.logspace(-5, 5, 21)


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def near_centres(Z: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The rows nearest to the centres of k-means; two centres may have the same one."""
    centres = MiniBatchKMeans(k, random_state=seed, n_init=1).fit(Z).cluster_centers_
    return np.unique(pairwise_distances_argmin(centres, Z))


def compare(X: np.ndarray, y: np.ndarray, test: np.ndarray, share: float, seed: int) -> dict[str, dict[str, float]]:
    train, k = ~test, round(share * int((~test).sum()))
    features = (StandardScaler(), Nystroem(n_components=200, random_state=seed))
    model = make_pipeline(*features, mb.DistillationRegressor(budget=share, standardize=False, random_state=seed))
    model.fit(X[train], y[train])
    Z, Z_test = model[:-1].transform(X[train]), model[:-1].transform(X[test])

    def ridge(rows: np.ndarray) -> float:
        return rmse(RidgeCV(alphas=ALPHAS).fit(Z[rows], y[train][rows]).predict(Z_test), y[test])

    def forest(rows: np.ndarray) -> float:
        trees = RandomForestRegressor(100, random_state=seed, n_jobs=1).fit(X[train][rows], y[train][rows])
        return rmse(trees.predict(X[test]), y[test])

    everything = np.arange(int(train.sum()))
    drawn = [np.random.default_rng([seed, i]).choice(everything, k, replace=False) for i in range(DRAWS)]
    near = near_centres(model[0].transform(X[train]), k, seed)
    ours = np.flatnonzero(model[-1].support_)
    linear = mb.DistillationRegressor(budget=share, random_state=seed).fit(X[train], y[train])
    full = ridge(everything)
    kernel = {
        "all rows": 1.0,
        "chosen": rmse(model.predict(X[test]), y[test]) / full,
        "random": float(np.mean([ridge(rows) for rows in drawn])) / full,
        "k-means": ridge(near) / full,
    }
    trees = forest(everything)
    forests = {
        "all rows": 1.0,
        "chosen for the kernel model": forest(ours) / trees,
        "chosen for a linear model": forest(np.flatnonzero(linear.support_)) / trees,
        "random": float(np.mean([forest(rows) for rows in drawn[:FORESTS]])) / trees,
        "k-means": forest(near) / trees,
    }
    print(
        f"  {k:,} of {len(everything):,} rows; RMSE of all rows: kernel {full:.4g}, forest {trees:.4g}; "
        f"excess {model[-1].excess_:.2g}",
        flush=True,
    )
    return {"kernel ridge": kernel, "random forest": forests}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uci", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=["elevators", "skillcraft"])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.1)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    for name in args.tables:
        table = np.loadtxt(args.uci / f"{name}-data.csv.gz", delimiter=",")
        masks = np.loadtxt(args.uci / f"{name}-test_mask.csv.gz", delimiter=",").astype(bool)
        print(name)
        found = [compare(table[:, :-1], table[:, -1], masks[:, i], args.share, i) for i in range(args.splits)]
        for model in found[0]:
            mean = {rows: np.mean([of[model][rows] for of in found]) for rows in found[0][model]}
            print(f"  {model}: " + ", ".join(f"{rows} {value:.3f}" for rows, value in mean.items()), flush=True)


if __name__ == "__main__":
    main()

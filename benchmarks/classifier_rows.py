"""Rows for a classifier when classes are unequal and labels wrong: DistillationClassifier(budget=0.05) beside random rows.

    python benchmarks/classifier_rows.py [--seeds 0 1 2 3 4]

make_classification(6000, 12, n_informative=6, flip_y=0, class_sep=1.2) with 87 and 97 % of one class: 3,000 training rows of
which 8 % are flipped, 3,000 clean test rows. "balanced" is the mean over ten draws of 75 rows of each class, "all" all rows, both
with the alpha of the answer. Exit code 1 if a class is lost, or if the answer does not beat balanced rows in every measure.
"""

import argparse

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import mixbin as mb


def measures(coef, intercept, X, y):
    """Accuracy, balanced accuracy and AUC of a model with two rows of coefficients."""
    scores = X @ (coef[1] - coef[0]) + intercept[1] - intercept[0]
    return np.mean((scores > 0) == y), balanced_accuracy_score(y, scores > 0), roc_auc_score(y, scores)


def run(weight, seed):
    """The measures of the answer, of balanced random rows and of all rows, and whether every class is kept."""
    X, y = make_classification(6000, 12, n_informative=6, weights=[weight], flip_y=0, class_sep=1.2, random_state=seed)
    rng = np.random.default_rng(seed)
    X, X_test, y, y_test = X[:3000], X[3000:], y[:3000].copy(), y[3000:]
    wrong = rng.permutation(3000)[:240]
    y[wrong] = 1 - y[wrong]
    model = mb.DistillationClassifier(budget=0.05, random_state=0).fit(X, y)
    problem = mb.SoftmaxDistillation(X, y, budget=0.05, alpha=model.alpha_)
    draws = []
    for _ in range(10):
        theta = np.zeros(3000)
        for label in (0, 1):
            theta[rng.choice(np.flatnonzero(y == label), 75, replace=False)] = 1.0
        draws.append(measures(*problem.model(theta), X_test, y_test))
    answers = [measures(*problem.model(rows), X_test, y_test) for rows in (model.weights_, np.ones(3000))]
    return answers[0], np.mean(draws, axis=0), answers[1], len(np.unique(y[model.support_])) == 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    missed = False
    for weight in (0.87, 0.97):
        runs = [run(weight, seed) for seed in parser.parse_args().seeds]
        means = [np.mean([it[i] for it in runs], axis=0) for i in range(3)]
        missed |= not all(it[3] for it in runs) or bool(np.any(means[0] <= means[1]))
        print(f"{weight:g} of one class       accuracy  balanced accuracy  AUC")
        for name, row in zip(("chosen", "balanced", "all"), means, strict=True):
            print(f"  {name:20} {row[0]:8.4f} {row[1]:14.4f} {row[2]:10.4f}", flush=True)
    print("FAIL" if missed else "PASS")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())

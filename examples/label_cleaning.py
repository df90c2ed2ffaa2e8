"""Find wrong labels in scikit-learn's digits without knowing how many there are.

    python examples/label_cleaning.py [--noise 0.2] [--seed 0]

Of 900 training rows some labels are changed at random; 300 rows with labels that are trusted decide which rows to drop.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits

import mixbin as mb


def noisy_digits(noise, seed, n_train=900, n_val=300):
    """Training rows with wrong labels, clean validation and test rows, and which training labels are wrong."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    train, val, test = np.split(rng.permutation(len(X)), [n_train, n_train + n_val])
    X = X / 16
    labels, wrong = y[train].copy(), np.zeros(n_train, dtype=bool)
    wrong[rng.choice(n_train, round(noise * n_train), replace=False)] = True
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, wrong.sum())) % 10
    return (X[train], labels), (X[val], y[val]), (X[test], y[test]), wrong


def f1(dropped, wrong):
    """The harmonic mean of precision and recall of the dropped rows."""
    return 2 * (dropped & wrong).sum() / (dropped.sum() + wrong.sum())


def clean(noise=0.2, seed=0, n_train=900, n_val=300):
    """F1 of the dropped rows, and the test accuracy with all rows and with those that are kept."""
    train, val, test, wrong = noisy_digits(noise, seed, n_train, n_val)
    model = mb.DistillationClassifier(random_state=seed).fit(*train, *val)
    everything = mb.DistillationClassifier(budget=1.0, random_state=seed).fit(*train, *val)
    return f1(~model.support_, wrong), everything.score(*test), model.score(*test), int((~model.support_).sum())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    score, before, after, dropped = clean(args.noise, args.seed)
    print(f"{round(900 * args.noise)} of 900 labels are wrong; {dropped} rows are dropped: F1 {score:.3f}")
    print(f"accuracy on the test rows: {before:.3f} trained on all rows, {after:.3f} on those that are kept")

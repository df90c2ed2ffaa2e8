"""Find wrong labels in scikit-learn's digits without knowing how many there are.

    python examples/label_cleaning.py [--noise 0.2] [--seed 0]

Of 900 training rows some labels are changed at random. LabelCleaner finds them from these rows alone; with 300 more rows whose
labels are trusted it finds them again.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits

import mixbin as mb


def noisy_digits(noise, seed, n_train=900, n_val=300):
    """Training rows with wrong labels, clean further rows and test rows, and which training labels are wrong."""
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


def clean(noise=0.2, seed=0, n_train=900, n_val=300, trusted=False):
    """The fitted cleaner, F1 of its suspects, and its test accuracy."""
    train, val, test, wrong = noisy_digits(noise, seed, n_train, n_val)
    cleaner = mb.LabelCleaner(random_state=seed).fit(*train, *(val if trusted else ()))
    return cleaner, f1(cleaner.suspect_, wrong), cleaner.score(*test)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{round(900 * args.noise)} of 900 labels are wrong")
    for trusted in (False, True):
        cleaner, score, accuracy = clean(args.noise, args.seed, trusted=trusted)
        how = "with 300 trusted rows" if trusted else "from these rows alone"
        print(f"{how}: {cleaner.suspect_.sum()} suspects, F1 {score:.3f}; accuracy on test rows {accuracy:.3f}")
        if cleaner.guard_ is not None:
            verdict, decision = cleaner.guard_, "dropped" if cleaner.guard_.accepted else "all rows kept"
            print(f"  guard: {100 * verdict.gain:+.1f} points, standard error {100 * verdict.standard_error:.1f}: {decision}")

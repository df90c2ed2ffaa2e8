"""How fast DistillationClassifier is, and how many wrong labels it finds, beside an earlier version in the same run.

    python benchmarks/classifier_speed.py --before FOLDER [--seeds 10 11 12 13 14]

FOLDER is a checkout of the earlier version; without it, this version is measured alone. 3,000 rows with 50 columns and 10 classes
of which 20 or 40 % of the labels are changed at random: classes by the largest of 10 linear scores with noise, Gaussian clouds,
and make_classification with two clusters a class. 1,000 rows with right labels judge, or all 3,000. Seconds are processor time,
the better of two fits in one thread; F1 is that of the rows dropped, accuracy that on 3,000 rows with right labels. Exit code 1
if this version is less than 5 times as fast in all, or has a lower mean F1.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

ROWS, COLUMNS, K, JUDGES, TESTS = 3_000, 50, 10, 1_000, 3_000
WANTED = 5.0


def linear_scores(rng, seed, size):
    X = rng.normal(size=(size, COLUMNS))
    return X, (X @ rng.normal(size=(COLUMNS, K)) + rng.normal(size=(size, K))).argmax(axis=1)


def clouds(rng, seed, size):
    centres, y = rng.normal(size=(K, COLUMNS)), rng.integers(K, size=size)
    return centres[y] + 3.5 * rng.normal(size=(size, COLUMNS)), y


def clusters(rng, seed, size):
    from sklearn.datasets import make_classification

    return make_classification(size, COLUMNS, n_informative=20, n_classes=K, flip_y=0, class_sep=2.0, random_state=seed)


MAKERS = {"linear": linear_scores, "clouds": clouds, "clusters": clusters}


def draw(name, rate, seed):
    """Training rows with wrong labels, rows that judge, test rows, and which labels are wrong."""
    rng = np.random.default_rng(seed)
    X, y = MAKERS[name](rng, seed, ROWS + JUDGES + TESTS)
    wrong = np.zeros(ROWS, dtype=bool)
    wrong[rng.choice(ROWS, round(rate * ROWS), replace=False)] = True
    labels = np.where(wrong, (y[:ROWS] + rng.integers(1, K, ROWS)) % K, y[:ROWS])
    ends = [ROWS, ROWS + JUDGES]
    (X, *others), (_, *truths) = np.split(X, ends), np.split(y, ends)
    return (X, labels), (others[0], truths[0]), (others[1], truths[1]), wrong


def answer():
    """Read cases from the input, one a line, and write seconds, F1, accuracy and evaluations."""
    from sklearn.metrics import f1_score

    import mixbin as mb

    warnings.simplefilter("ignore")
    train, judges, *_ = draw("linear", 0.2, 0)
    mb.DistillationClassifier(random_state=0, max_evaluations=3).fit(*train, *judges)  # loads the modules
    for line in sys.stdin:
        name, rate, seed, validated = json.loads(line)
        train, judges, test, wrong = draw(name, rate, seed)
        seconds = []
        for _ in range(2):
            model = mb.DistillationClassifier(random_state=0)
            began = time.process_time()
            model.fit(*train, *(judges if validated else ()))
            seconds.append(time.process_time() - began)
        found = f1_score(wrong, ~model.support_)
        print(json.dumps([min(seconds), found, model.score(*test), model.result_.n_evaluations]), flush=True)


def ask(worker, case):
    worker.stdin.write(json.dumps(case) + "\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12, 13, 14])
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        return answer()
    here = Path(__file__).resolve().parent.parent
    workers = {}
    for version, folder in (("before", args.before), ("now", here)):
        if folder is not None:
            environment = os.environ | {"PYTHONPATH": str(folder.resolve() / "src"), "OPENBLAS_NUM_THREADS": "1"}
            command = [sys.executable, __file__, "--answer"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            workers[version] = subprocess.Popen(command, env=environment, **pipes)
    missed = False
    print("judged by     case            " + "".join(f"{v:>8}: seconds    F1  accuracy  evaluations" for v in workers))
    for validated in (True, False):
        totals = {version: [] for version in workers}
        for name, rate in itertools.product(MAKERS, (0.2, 0.4)):
            text = f"{'1,000 rows' if validated else 'all rows':13} {name:9} {rate:4.0%} "
            got = {v: [] for v in workers}
            for seed in args.seeds:
                for version, worker in workers.items():
                    got[version].append(ask(worker, (name, rate, seed, validated)))
            for version in workers:
                seconds, f1, accuracy, evaluations = np.mean(got[version], axis=0)
                text += f"{seconds:18.3f} {f1:8.3f} {accuracy:8.3f} {evaluations:9.0f}"
                totals[version] += got[version]
            print(text, flush=True)
        means = {v: np.mean(totals[v], axis=0) for v in workers}
        for version, (seconds, f1, accuracy, _) in means.items():
            print(f"  {version}: {seconds:.3f} s, F1 {f1:.3f}, accuracy {accuracy:.4f}")
        if "before" in means:
            each = np.array(totals["before"])[:, 0] / np.array(totals["now"])[:, 0]
            ratio = means["before"][0] / means["now"][0]
            spread = f"from {each.min():.1f} to {each.max():.1f}, median {np.median(each):.1f}"
            print(f"  {ratio:.1f} times as fast in all; by fit {spread}")
            missed |= ratio < WANTED or means["now"][1] < means["before"][1]
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    print("FAIL" if missed else "PASS")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())

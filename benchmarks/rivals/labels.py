"""Which labels are wrong: the cells of benchmarks/labels.py with each method by itself, and the protocol of OpenDataVal.

OpenDataVal (Jiang et al. 2023) gives 1,000 training and 100 validation rows, flips 20 % of the labels of both, and separates the
values of the rows into two clusters. Its package needs versions that are not installed together with ours; the evaluators below
are written in a few lines each, with a logistic regression as their model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks import labels
from benchmarks.rivals.cells import Cell, Family, Method, Quantity, Record
from benchmarks.rivals.compare import mean

import mixbin as mb

VALIDATION_ROWS, FLIPPED, SUBSETS = 100, 0.2, 300
QUICK, VALUED = ("digits", "satimage", "spambase"), ("twonorm", "magic", "segment")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Training rows, which of their labels are wrong, test rows, and validation rows where the protocol has them."""

    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    X_val: np.ndarray | None = None
    y_val: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Suspects:
    """The rows flagged, and a score that is lower for rows more suspect."""

    flagged: np.ndarray
    score: np.ndarray


def load(table: str, seed: int) -> dict[str, Labelled]:
    return {named(*noise): Labelled(*labels.draw(table, *noise, seed)) for noise in labels.NOISE}


def named(kind: str, rate: float) -> str:
    return f"{kind} noise {100 * rate:.0f} %"


def load_valued(table: str, seed: int) -> dict[str, Labelled]:
    """The first rows of the test part, with labels flipped too, are for validation."""
    X, y, wrong, X_test, y_test = labels.draw(table, "uniform", FLIPPED, seed)
    rng = np.random.default_rng([seed, 100])
    val, y_val = X_test[:VALIDATION_ROWS], y_test[:VALIDATION_ROWS].copy()
    flipped = rng.choice(VALIDATION_ROWS, round(FLIPPED * VALIDATION_ROWS), replace=False)
    y_val[flipped] = (y_val[flipped] + rng.integers(1, y.max() + 1, len(flipped))) % (y.max() + 1)
    return {"": Labelled(X, y, wrong, X_test[VALIDATION_ROWS:], y_test[VALIDATION_ROWS:], val, y_val)}


def mixbin(data: dict[str, Labelled], cell: Cell, ours: object) -> Suspects:
    it = data[cell.budget]
    cleaner = mb.LabelCleaner(random_state=cell.seed).fit(it.X, it.y)
    return Suspects(cleaner.suspect_, cleaner.label_quality_)


def finder(name: str) -> Method:
    def solve(data: dict[str, Labelled], cell: Cell, ours: object) -> Suspects:
        it = data[cell.budget]
        return Suspects(*labels.finders()[name](it.X, it.y, cell.seed))

    return Method(solve, ("cleanlab.filter",) if name.startswith("cleanlab") else ())


def knn_shapley(it: Labelled, seed: int) -> np.ndarray:
    """Exact Shapley values of a nearest-neighbour classifier on the validation rows (Jia et al. 2019)."""
    n, k = len(it.y), labels.NEIGHBOURS
    order = np.argsort((it.X * it.X).sum(axis=1) - 2 * it.X_val @ it.X.T, axis=1, kind="stable")
    right = (it.y[order] == it.y_val[:, None]).astype(float)
    i = np.arange(1, n)
    steps = (right[:, :-1] - right[:, 1:]) / k * np.minimum(k, i) / i
    s = np.concatenate([steps, right[:, -1:] / n], axis=1)[:, ::-1].cumsum(axis=1)[:, ::-1]
    values = np.zeros(n)
    np.add.at(values, order.ravel(), s.ravel() / len(it.y_val))
    return values


def influence(it: Labelled, seed: int) -> np.ndarray:
    """How the validation loss of a logistic regression would rise without a row (Koh and Liang 2017)."""
    n, classes = len(it.y), int(it.y.max()) + 1
    model = labels.logistic(n).fit(it.X, it.y)
    A, V = (np.column_stack([X, np.ones(len(X))]) for X in (it.X, it.X_val))
    P, Q = (full(model.predict_proba(X), model.classes_, classes) for X in (it.X, it.X_val))
    size = A.shape[1]
    H = np.zeros((classes * size, classes * size))
    for a in range(classes):
        for b in range(classes):
            weight = P[:, a] * ((a == b) - P[:, b])
            H[a * size : (a + 1) * size, b * size : (b + 1) * size] = (A * weight[:, None]).T @ A / n
    H += labels.ALPHA * np.eye(len(H))
    slope = (Q - np.eye(classes)[it.y_val]).T @ V / len(V)
    moved = np.linalg.solve(H, slope.ravel()).reshape(classes, size)
    return ((P - np.eye(classes)[it.y]) * (A @ moved.T)).sum(axis=1) / n


def full(P: np.ndarray, seen: np.ndarray, classes: int) -> np.ndarray:
    out = np.zeros((len(P), classes))
    out[:, seen] = P
    return out


def utility(it: Labelled, rows: np.ndarray) -> float:
    if len(np.unique(it.y[rows])) < 2:
        return 0.0
    return labels.logistic(len(rows)).fit(it.X[rows], it.y[rows]).score(it.X_val, it.y_val)


def banzhaf(it: Labelled, seed: int) -> np.ndarray:
    """Data Banzhaf (Wang and Jia 2023): mean utility of random subsets with a row less that of those without it."""
    rng, n = np.random.default_rng(seed), len(it.y)
    inside = rng.random((SUBSETS, n)) < 0.5
    worth = np.array([utility(it, np.flatnonzero(rows)) for rows in inside])
    return (worth @ inside) / np.maximum(inside.sum(axis=0), 1) - (worth @ ~inside) / np.maximum((~inside).sum(axis=0), 1)


def leave_one_out(it: Labelled, seed: int) -> np.ndarray:
    everything = np.arange(len(it.y))
    base = utility(it, everything)
    return np.array([base - utility(it, np.delete(everything, i)) for i in everything])


def chance(it: Labelled, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(len(it.y))


def evaluator(value_of) -> Method:
    def solve(data: dict[str, Labelled], cell: Cell, ours: object) -> Suspects:
        value = value_of(data[""], cell.seed)
        return Suspects(labels.two_means(value), value)

    return Method(solve)


def measure(data: dict[str, Labelled], cell: Cell, answer: Suspects) -> dict[str, float]:
    it = data[cell.budget]
    found = labels.measured(answer.flagged, answer.score, it.wrong, (it.X, it.y, it.X_test, it.y_test))
    return {name: found[name] for name in ("f1", "ap", "accuracy") if np.isfinite(found[name])}


METHODS = {"mixbin": Method(mixbin)} | {name: finder(name) for name in labels.finders()}
VALUES = {
    "mixbin": Method(mixbin),
    "KNN-Shapley": evaluator(knn_shapley),
    "Data-OOB": finder("Data-OOB"),
    "influence function": evaluator(influence),
    "Data Banzhaf": evaluator(banzhaf),
    "leave one out": evaluator(leave_one_out),
    "random values": evaluator(chance),
}


def cells(quick: bool) -> list[Cell]:
    noise = [("uniform", 0.4), ("feature", 0.2)] if quick else labels.NOISE
    return [
        Cell("labels", table, named(*kind), seed, method)
        for table in (QUICK if quick else labels.REPORTED)
        for seed in labels.SEEDS[:2]
        for kind in noise
        for method in METHODS
    ]


def valued_cells(quick: bool) -> list[Cell]:
    return [
        Cell("label-values", table, "", seed, method)
        for table in VALUED
        for seed in range(2 if quick else 5)
        for method in VALUES
    ]


def overall(records: Sequence[Record]) -> list[str]:
    """The means over all tables, and the full benchmark of labels from benchmarks/labels.json."""
    import json

    out = []
    if labels.FILE.is_file():
        some = [c for key, c in json.loads(labels.FILE.read_text()).items() if not key.startswith(labels.APART)]
        named = "; ".join(
            f"{method} {mean([c[method]['f1'] for c in some]):.3f} / {mean([c[method]['ap'] for c in some]):.3f}"
            for method in some[-1]
            if method != "all rows"
        )
        out.append(f"`benchmarks/labels.py` has {len(some)} cells of the same kind; F1 / average precision, means: {named}.")
    return out


QUANTITIES = (
    Quantity("f1", "F1 of the rows flagged", less=False, least=0.002),
    Quantity("ap", "average precision", less=False, least=0.002),
    Quantity("accuracy", "test accuracy after dropping them (%)", less=False, least=0.001),
)
LABELS = Family(
    name="labels",
    title="Which labels are wrong",
    words="Labels of at most 1,000 training rows were changed; each method flags rows by its own threshold, and ranks all rows.",
    cells=cells,
    load=load,
    methods=METHODS,
    measure=measure,
    quantities=QUANTITIES,
    remarks=overall,
)
LABEL_VALUES = Family(
    name="label-values",
    title="Which labels are wrong, by the protocol of OpenDataVal",
    words=(
        "1,000 training rows and 100 validation rows, 20 % of the labels of both flipped; values are separated into two "
        "clusters. mixbin does not look at the validation rows. Evaluators are our few lines each: "
        "the package needs older versions of NumPy and pandas."
    ),
    cells=valued_cells,
    load=load_valued,
    methods=VALUES,
    measure=measure,
    quantities=QUANTITIES,
)

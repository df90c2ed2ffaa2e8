"""Which features belong together: many regressions that share the groups of a group lasso.

Tables "inequal" and "random" are the published synthetic tasks, with 100 tasks instead of 500; the others are drawn as in
benchmarks/group_settings.py, with correlated columns, heavy tails and unequal groups. Every method returns a structure. Its lam
is then the best for it by validation loss, found by the same search for all; that search is part of a rival's time, and mixbin
has its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks.group_settings import best_lam, draw_setting, draw_tasks
from benchmarks.rivals.cells import Cell, Family, Method, Quantity, Record
from benchmarks.rivals.compare import good, mean
from benchmarks.rivals.rows import times_of_ours
from sklearn.cluster import SpectralClustering
from sklearn.linear_model import Lasso
from sklearn.metrics import adjusted_rand_score

import mixbin as mb

PUBLISHED = {"inequal, smallest coefficient 0.1": ("inequal", 0.1), "random, smallest coefficient 0.3": ("random", 0.3)}
TASKS = 100
DRAWN = {f"drawn setting {k}": k for k in (2, 7, 11, 14, 19)}
FIRST_SEED = 1000
"""The search was tuned on drawn settings of seeds below."""
LAMS = tuple(float(lam) for lam in np.geomspace(0.003, 0.1, 5))
"""The strengths that the method of 2018 compares by their validation loss."""
PENALTY_SHARE = 0.2
"""The penalty of the lasso before spectral clustering, as a share of the one that leaves no feature."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """Training, validation and test rows of all tasks, and the true group of each feature."""

    train: tuple[np.ndarray, np.ndarray]
    val: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    labels: np.ndarray

    @property
    def n_groups(self) -> int:
        return int(self.labels.max()) + 1

    def problem(self, **settings) -> mb.GroupLassoStructure:
        return mb.GroupLassoStructure(*self.train, *self.val, **{"n_groups": self.n_groups, "n_jobs": 1} | settings)


@dataclass(frozen=True, eq=False)
class Structure:
    """Groups of features, (features, groups), and the strength of the penalty."""

    theta: np.ndarray
    lam: float


def load(table: str, seed: int) -> Tasks:
    if table in PUBLISHED:
        data = mb.datasets.make_group_lasso(*PUBLISHED[table], n_tasks=TASKS, seed=seed)
        tasks = Tasks((data.X, data.y), (data.X_val, data.y_val), (data.X_test, data.y_test), data.labels)
    else:
        rng = np.random.default_rng([FIRST_SEED + seed, DRAWN[table]])
        setting = draw_setting(DRAWN[table], rng)
        (train, val, test), labels = draw_tasks(setting, rng, parts=3)
        tasks = Tasks(train, val, test, labels)
    _compile(tasks)
    return tasks


def _compile(tasks: Tasks) -> None:
    """Compile the kernels, or read them from the cache, before any clock runs: cells are forked from this process."""
    for settings in ({}, {"lower": "unrolled", "lam_scale": "linear", "start": "random"}):
        problem = tasks.problem(**settings)
        mb.relax_and_penalize(problem, seed=0, max_evaluations=10)
        problem.evaluate_terms(problem.theta_set.start(), problem.lam_set.start(), np.arange(1))
    problem.propose(np.eye(tasks.n_groups)[tasks.labels], problem.lam_set.start(), np.random.default_rng(0))


def tuned(data: Tasks, theta: np.ndarray) -> Structure:
    """The structure with the lam that is best for it by validation loss."""
    theta = np.asarray(theta, dtype=np.float64)
    return Structure(theta, best_lam(data.problem(n_groups=theta.shape[1]), theta)[1])


def mixbin(data: Tasks, cell: Cell, ours: object) -> Structure:
    result = mb.relax_and_penalize(data.problem(), seed=cell.seed)
    return Structure(result.theta.astype(np.float64), float(result.lam))


def path_alone(data: Tasks, cell: Cell, ours: object) -> Structure:
    result = mb.relax_and_penalize(data.problem(), seed=cell.seed, search="path")
    return Structure(result.theta.astype(np.float64), float(result.lam))


def top_one(data: Tasks, cell: Cell, ours: object) -> Structure:
    """From mixbin's own start: what the penalty and the polish add is the difference to this."""
    return tuned(data, mb.relax_and_round(data.problem(), seed=cell.seed).theta)


def of_2018(data: Tasks, cell: Cell, ours: object) -> Structure:
    """Frecon, Salzo and Pontil (2018): a relaxed structure from a random start for each lam; the best lam, then top-1."""
    best, least = None, np.inf
    for lam in LAMS:
        problem = data.problem(lam_bounds=lam, start="random")
        result = mb.relax_and_round(problem, rounding=None, seed=cell.seed, starts=1)
        if result.value < least:
            best, least = problem.theta_set.vertex(result.theta), result.value
    return tuned(data, best)


def published(data: Tasks, cell: Cell, ours: object) -> Structure:
    """Relax and penalize as published: SAGA, unrolled lower level, random start, eps halved, at its full length."""
    problem = data.problem(lower="unrolled", lam_scale="linear", start="random")
    settings = mb.paper_settings("groups", n_tasks=len(data.train[0]))
    return tuned(data, mb.relax_and_penalize(problem, seed=cell.seed, **settings).theta)


def spectral(data: Tasks, cell: Cell, ours: object) -> Structure:
    """Features that the lassos of the tasks use together, clustered by scikit-learn; no bilevel problem."""
    X, y = data.train
    used = np.abs([_lasso(A, b) for A, b in zip(X, y, strict=True)])
    used -= used.mean(axis=0)
    norms = np.linalg.norm(used, axis=0)
    used /= np.where(norms > 0, norms, 1.0)
    affinity = np.maximum(used.T @ used, 0.0) + 1e-6
    labels = SpectralClustering(data.n_groups, affinity="precomputed", random_state=cell.seed).fit_predict(affinity)
    return tuned(data, np.eye(data.n_groups)[labels])


def _lasso(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    largest = np.abs(A.T @ b).max() / len(b)
    return Lasso(PENALTY_SHARE * largest, fit_intercept=False).fit(A, b).coef_


def no_structure(data: Tasks, cell: Cell, ours: object) -> Structure:
    """Every feature is its own group: a lasso per task, with one lam for all tasks."""
    return tuned(data, np.eye(len(data.labels)))


def oracle(data: Tasks, cell: Cell, ours: object) -> Structure:
    return tuned(data, np.eye(data.n_groups)[data.labels])


def measure(data: Tasks, cell: Cell, answer: Structure) -> dict[str, float]:
    problem, lam = data.problem(n_groups=answer.theta.shape[1]), np.asarray(answer.lam)
    judged = problem.evaluate(answer.theta, lam, gradient=False).value
    return {
        "error": problem.loss(answer.theta, lam, *data.test),
        "judged": judged,
        "index": float(adjusted_rand_score(data.labels, answer.theta.argmax(axis=1))),
        "lam": answer.lam,
    }


METHODS = {
    "mixbin": Method(mixbin),
    "mixbin, search='path'": Method(path_alone),
    "relaxation from mixbin's start, then top-1": Method(top_one),
    "method of 2018 (relaxed, best of five lam, top-1)": Method(of_2018),
    "published algorithm": Method(published),
    "spectral clustering alone": Method(spectral),
    "no structure (lasso per task)": Method(no_structure),
    "oracle": Method(oracle),
}


def cells(quick: bool) -> list[Cell]:
    drawn = list(DRAWN)[:2] if quick else list(DRAWN)
    return [
        Cell("groups", table, "", seed, method)
        for table in (*PUBLISHED, *drawn)
        for seed in range(3 if quick else 5)
        for method in METHODS
        # The slowest two take longer than all others together.
        if not (quick and seed and method.startswith(("published", "method of 2018")))
    ]


def reasons(records: Sequence[Record]) -> list[str]:
    """Where the structure is not the true one, what it gains."""
    out = []
    for (table, _), methods in good(records).items():
        its = [it["measures"] for it in methods.get("mixbin", {}).values() if it["measures"]["index"] < 1 - 1e-9]
        if its:
            judged, error = (mean([it[name] for it in its]) for name in ("judged", "error"))
            out.append(
                f"on {table}, in {len(its)} of the draws, where mixbin's structure is not the true one, its validation loss is "
                f"{judged:.3f} and its error on new rows {error:.3f} times that of the true one."
            )
    return out


def remarks(records: Sequence[Record]) -> list[str]:
    """How far mixbin is from the true structure, and what that costs: a lower validation loss is no better structure."""
    out = []
    for (table, _), methods in good(records).items():
        its = [it["measures"] for it in methods.get("mixbin", {}).values()]
        if its:
            found, below = sum(it["index"] > 1 - 1e-9 for it in its), sum(it["judged"] < 1 - 1e-9 for it in its)
            out.append(
                f"{table}: mixbin's error on new rows is {mean([it['error'] for it in its]):.4f} times that of the true "
                f"structure, which it found exactly in {found} of {len(its)} draws"
                + (f"; in {below} its validation loss is lower, so it is not the search that misses the truth." if below else ".")
            )
    return out + times_of_ours(records)


FAMILY = Family(
    name="groups",
    title="Which features belong together",
    words=(
        "Error: squared error on new rows of the same tasks, and validation loss, which is what is minimised, both divided by "
        "those of the true structure at its best lam. Lam is the best by validation loss for every structure."
    ),
    cells=cells,
    load=load,
    methods=METHODS,
    measure=measure,
    quantities=(
        Quantity("error", "error on new rows", least=0.0005),
        Quantity("judged", "validation loss", least=0.0005),
        Quantity("index", "adjusted Rand index", less=False, least=0.002),
    ),
    references=frozenset({"oracle", "mixbin, search='path'"}),
    relative_to="oracle",
    remarks=remarks,
    reasons=reasons,
)

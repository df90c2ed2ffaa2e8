"""The paper's own problem: which rows to train a ridge regression of fixed strength on, judged by validation rows.

BlogFeedback and the excerpt of YearPredictionMSD with alpha = 100 in the units of the file. Losses are recomputed with
scikit-learn's Ridge on the chosen rows (benchmarks/blog.py); the error is the RMSE on test rows.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from benchmarks.blog import ALPHA, losses
from benchmarks.feature_tables import DATA
from benchmarks.rivals import selections
from benchmarks.rivals.cells import Cell, Family, Method, Missing, Quantity, Record
from benchmarks.rivals.compare import good, mean
from benchmarks.rivals.rows import blog, times_of_ours

import mixbin as mb

JUDGED_BY_ALL = "mixbin, judged by candidate and validation rows"
PARTS = 100
"""The greedy coreset adds this part of the budget at a time; the page says what a model for each row would take."""


@dataclass(eq=False)
class Answer:
    """The rows chosen and, where a method tells, when it had which value."""

    theta: np.ndarray
    path: list[tuple[float, float]] = field(default_factory=list)


def load(table: str, seed: int) -> mb.datasets.uci.RegressionData:
    if table == "blog":
        return blog()
    path = DATA / "YearPredictionMSD_random7000.csv.gz"
    if not path.is_file():
        raise Missing(f"../shared/data/{path.name} is not there")
    data = mb.datasets.load_music(path)
    if not seed:
        return data
    # Seed 0 has the parts of the loader; every other seed draws parts of the same sizes.
    X, y = np.vstack([data.X, data.X_val, data.X_test]), np.concatenate([data.y, data.y_val, data.y_test])
    order, cuts = np.random.default_rng([seed, 25]).permutation(len(y)), np.cumsum([len(data.y), len(data.y_val)])
    train, val, test = np.split(order, cuts)
    return replace(data, X=X[train], y=y[train], X_val=X[val], y_val=y[val], X_test=X[test], y_test=y[test])


def problem_of(data: mb.datasets.uci.RegressionData, cell: Cell) -> mb.RidgeDistillation:
    share = float(cell.budget[:-2]) / 100
    return mb.RidgeDistillation(data.X, data.y, data.X_val, data.y_val, budget=share, alpha=ALPHA)


def mixbin(data: mb.datasets.uci.RegressionData, cell: Cell, ours: object) -> Answer:
    began, path = time.process_time(), []

    def watch(event: mb.progress.Event) -> None:
        if event.phase in ("polish", "search") and (not path or event.value < path[-1][1]) and event.distance == 0:
            path.append((time.process_time() - began, event.value))

    result = mb.relax_and_penalize(problem_of(data, cell), seed=cell.seed, callbacks=[watch])
    return Answer(result.theta, [*path, (time.process_time() - began, result.value)])


def judged_by_all(data: mb.datasets.uci.RegressionData, cell: Cell, ours: object) -> Answer:
    """The same candidates, judged by the candidate and the validation rows, to see what the judge is to blame for."""
    X, y = np.vstack([data.X, data.X_val]), np.concatenate([data.y, data.y_val])
    share = float(cell.budget[:-2]) / 100
    problem = mb.RidgeDistillation(data.X, data.y, X, y, budget=share, alpha=ALPHA)
    return Answer(mb.relax_and_penalize(problem, seed=cell.seed).theta)


def rounding(data: mb.datasets.uci.RegressionData, cell: Cell, ours: object) -> Answer:
    problem = problem_of(data, cell)
    return Answer(problem.theta_set.vertex(mb.relax_and_round(problem, seed=cell.seed).theta))


def published(data: mb.datasets.uci.RegressionData, cell: Cell, ours: Record | None) -> Answer:
    """For ten times our time, its schedule of eps shortened to the steps that this allows."""
    experiment = "blog" if cell.table == "blog" else "music"
    parts = (data.X, data.y, data.X_val, data.y_val)
    problem = mb.paper_problem(experiment, *parts, budget=float(cell.budget[:-2]) / 100, seed=cell.seed)
    theta, lam = problem.theta_set.start(), problem.lam_set.start()
    began, tried = time.process_time(), 0
    while time.process_time() - began < 0.5:
        problem.evaluate(theta * (1 - 1e-9 * tried), lam)
        tried += 1
    each = (time.process_time() - began) / tried
    steps = int(np.clip(10 * ours["seconds"] / each if ours else 0, 200, 29_100))
    return Answer(mb.relax_and_penalize(problem, seed=cell.seed, **mb.paper_settings(experiment, steps=steps)).theta)


def greedy(data: mb.datasets.uci.RegressionData, cell: Cell, ours: object) -> Answer:
    """Greedy bilevel coreset (Borsos, Mutny and Krause 2020), a hundredth of the budget at a time."""
    problem = problem_of(data, cell)
    theta, lam, k = np.zeros(len(data.y)), problem.lam_set.start(), problem.theta_set.k
    theta[np.abs(data.y - data.y.mean()).argmin()] = 1.0
    while theta.sum() < k:
        slope = np.where(theta > 0, np.inf, problem.evaluate(theta, lam).grad_theta)
        more = int(min(-(-k // PARTS), k - theta.sum()))
        theta[np.argpartition(slope, more)[:more]] = 1.0
    return Answer(theta)


def chosen(select, data: mb.datasets.uci.RegressionData, cell: Cell, ours: object) -> Answer:
    deviation = data.X.std(axis=0)
    Z = (data.X - data.X.mean(axis=0)) / np.where(deviation > 1e-12, deviation, 1.0)
    k = problem_of(data, cell).theta_set.k
    theta = np.zeros(len(data.y), dtype=bool)
    theta[select(Z, data.y, k, np.random.default_rng([cell.seed, 7]))[0]] = True
    return Answer(theta)


def measure(data: mb.datasets.uci.RegressionData, cell: Cell, answer: Answer) -> dict[str, float]:
    validation, test = losses(data, data.X, data.y, answer.theta > 0.5)
    return {"error": (2 * test) ** 0.5, "judged": validation, "rows": int((answer.theta > 0.5).sum())}


METHODS = {
    "mixbin": Method(mixbin),
    JUDGED_BY_ALL: Method(judged_by_all),
    "relaxation, then top-k": Method(rounding),
    "random": Method(partial(chosen, selections.random)),
    "leverage, equal weights": Method(partial(chosen, selections.leverage)),
    "D-optimal exchange": Method(partial(chosen, selections.d_optimal)),
    "herding": Method(partial(chosen, selections.herding)),
    "greedy bilevel coreset, 1 % at a time": Method(greedy),
    "published algorithm": Method(published, limit=400.0),
}


def cells(quick: bool) -> list[Cell]:
    return [
        Cell("validation-rows", table, budget, seed, method, 20.0 if quick else 60.0)
        for table in ("music excerpt", "blog")
        for seed in range(1 if quick and table == "blog" else 3)
        for budget in (["20 %"] if quick else ["10 %", "20 %", "30 %"])
        for method in METHODS
        if not (table == "blog" and method == JUDGED_BY_ALL)
    ]


def passed(mine: Record, other: Record) -> str:
    """When mixbin has a better value than another method's last."""
    reached = next((at for at, value in mine["path"] if value <= other["measures"]["judged"]), None)
    if reached is None:
        return f"mixbin never reaches it ({mine['measures']['judged']:.2f})"
    return (
        f"mixbin has a better binary answer after {reached:.1f} s, {reached / max(other['seconds'], 1e-2):.2f} times as long, "
        f"and ends at {mine['measures']['judged']:.2f} after {mine['seconds']:.1f} s"
    )


def remarks(records: Sequence[Record]) -> list[str]:
    """When mixbin reaches the best rival's value, and what the greedy coreset would cost row by row."""
    out = []
    groups: dict[tuple[str, str, int], dict[str, Record]] = {}
    for it in records:
        if it["state"] == "ok":
            groups.setdefault((it["table"], it["budget"], it["seed"]), {})[it["method"]] = it
    for (table, budget, seed), its in groups.items():
        mine, others = its.get("mixbin"), [it for name, it in its.items() if not name.startswith("mixbin")]
        if mine is None or not others:
            continue
        others.sort(key=lambda it: it["measures"]["judged"])
        # Of blog, whose cells take longest, every rival is named.
        for place, other in enumerate(others if table == "blog" else others[:1]):
            told = f"{other['method']}, {other['measures']['judged']:.2f} after {other['seconds']:.1f} s; {passed(mine, other)}"
            said = "the best rival by validation loss is " if not place else ""
            out.append(f"{table}, {budget}, seed {seed}: {said}{told}.")
    for it in records:
        if it["state"] == "ok" and it["method"].startswith("greedy"):
            each = it["seconds"] / PARTS
            out.append(
                f"{it['table']}, {it['budget']}, seed {it['seed']}: the greedy coreset spends {each:.2g} s on a model; one "
                f"for each of {it['measures']['rows']:,.0f} rows would take {each * it['measures']['rows'] / 60:.2g} minutes."
            )
    return out + times_of_ours(records)


def reasons(records: Sequence[Record]) -> list[str]:
    """What the validation rows as the only judge cost on new rows."""
    out = []
    for (table, budget), methods in good(records).items():
        pairs = [
            (it, methods["mixbin"][seed]) for seed, it in methods.get(JUDGED_BY_ALL, {}).items() if seed in methods["mixbin"]
        ]
        if pairs:
            wide, narrow = (mean([pair[i]["measures"]["error"] for pair in pairs]) for i in (0, 1))
            others = {name: mean([it["measures"]["error"] for it in its.values()]) for name, its in methods.items()}
            rival = min((name for name in others if not name.startswith("mixbin")), key=others.__getitem__)
            out.append(
                f"{table}, {budget}: error on new rows {narrow:.2f} where the validation rows judge, {wide:.2f} where the "
                f"candidate rows do, too; the best rival, {rival}, has {others[rival]:.2f}."
            )
    return out


FAMILY = Family(
    name="validation-rows",
    title="Rows judged by validation rows, the paper's problem",
    words="Error: RMSE on test rows of a ridge regression of the published strength on the rows, judged by validation rows.",
    cells=cells,
    load=load,
    methods=METHODS,
    measure=measure,
    quantities=(Quantity("error", "error on new rows", least=0.0005), Quantity("judged", "validation loss", least=0.0005)),
    references=frozenset({JUDGED_BY_ALL}),
    remarks=remarks,
    reasons=reasons,
)

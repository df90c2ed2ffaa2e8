"""The five tables from the records of the runs (docs/maths.md, "Tables and figures of the paper")."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mixbin.reproduction import distillation, groups
from mixbin.reproduction.job import Job, Record
from mixbin.reproduction.orderings import Comparison, findings
from mixbin.reproduction.plan import BETAS, Plan
from mixbin.reproduction.published import cell, remarks
from mixbin.reproduction.table import Entry, Finding, Row, Table

Records = Callable[[Sequence[Job]], list[Record]]
"""A function that returns the records of finished jobs."""

STRUCTURES = {
    "oracle-r": "oracle, lam of relaxed",
    "relaxed": "relaxed",
    "simple": "simple",
    "top-1": "top-1",
    "oracle-p": "oracle, lam of penalize",
    "penalize": "penalize",
}
DATA = {"blog": "blog", "music": "music", "music-excerpt": "music (excerpt: 7,000 random rows)"}
ROUNDED = ("simple", "top-k", "penalize")
NO_ROW = "no row left"
SAME_EVALUATIONS = (
    "The baselines may use as many evaluations of G as penalize did in the same run; lam is not tuned again after rounding."
)
START_FROM_DATA = (
    "Every method starts from the structure that the data suggest, which on these data is mostly the true one already; the "
    "published runs start at random (--solver paper does too)."
)
RETRAINED = (
    "Every loss is that of scikit-learn's Ridge trained anew on the rows (relaxed: with the weights) that the method chose."
)
NEEDS_MUSIC = (
    "music: the full file is not in the folder that MIXBIN_DATA names, so its rows are the published figures alone; put "
    "YearPredictionMSD.txt there."
)


def make(name: str, plan: Plan, records: Records) -> Table:
    """Make the table with this name from the records of the plan's runs."""
    return {"table1": table1, "table2": table2, "table3": table3, "table4": table4, "table5": table5}[name](plan, records)


def table1(plan: Plan, records: Records) -> Table:
    """Validation and test errors of the group structures."""
    kinds = {"validation": ("G", 4), "test": ("test", 4)}
    return _structures(1, "G of the group structures", "G", kinds, plan, records)


def table2(plan: Plan, records: Records) -> Table:
    """Reconstruction errors of the group structures: the distance of the models from the true ones."""
    kinds = {"spectral norm": ("error", 2), "Frobenius norm": ("frobenius", 2), "adjusted Rand index": ("index", 3)}
    return _structures(2, "reconstruction error of the group structures", "error", kinds, plan, records)


def _structures(number: int, title: str, printed: str, kinds: dict[str, tuple[str, int]], plan: Plan, records: Records) -> Table:
    found = {setting: records(plan.runs_of("groups", setting)) for setting in groups.SETTINGS}
    rows, by_method = [], {}
    for method, label in STRUCTURES.items():
        for kind, (quantity, decimals) in kinds.items():
            if quantity == "index" and method.startswith("oracle"):
                continue
            there = quantity == printed
            entries = tuple(
                Entry(
                    _values(found[setting], "methods", method, quantity),
                    decimals,
                    cell(number, "groups", setting, method, printed) if there else None,
                )
                for setting in groups.SETTINGS
            )
            rows.append(Row((label, kind), entries))
            if there:
                by_method[method] = entries
    comparisons = [
        Comparison(next(iter(kinds)), setting, "penalize", other, (by_method["penalize"][i], by_method[other][i]))
        for other in ("oracle-p", "relaxed", "simple", "top-1")
        for i, setting in enumerate(groups.SETTINGS)
    ]

    def reason(it: Comparison) -> str | None:
        return _same_structure(it, found[it.where])

    unassigned = [record["methods"]["simple"]["unassigned"] for runs in found.values() for record in runs]
    notes = [
        SAME_EVALUATIONS,
        f"Simple rounding leaves features in no group in {sum(n > 0 for n in unassigned)} of {len(unassigned)} runs "
        f"(at most {max(unassigned)} of 100).",
        _statuses(record for runs in found.values() for record in runs),
    ]
    if plan.solver == "default":
        notes.append(START_FROM_DATA)
    if number == 1:
        notes.insert(0, "Published figures stand beside the validation errors, which is what the authors' script computes.")
    return Table(
        number,
        title,
        ("method", "measured"),
        groups.SETTINGS,
        tuple(rows),
        remarks(number),
        tuple(notes),
        findings(comparisons, reason),
    )


def table3(plan: Plan, records: Records) -> Table:
    """Data distillation."""
    columns = {"validation": 2, "relaxed": 2, "selected": 1, "test": 2, "rmse": 2}
    rows, comparisons, runs = [], [], []
    for experiment in _shown(plan):
        for budget in plan.budgets:
            found = records(plan.runs_of(experiment, budget)) if experiment in plan.distilled else []
            runs += found
            of_method = {}
            for method in ROUNDED:
                of_method[method] = tuple(
                    Entry(
                        _values(found, *_place(method, quantity)),
                        decimals,
                        cell(3, experiment, budget, method, quantity),
                        NO_ROW if found and quantity != "relaxed" else "-",
                    )
                    for quantity, decimals in columns.items()
                )
                tau = f"{found[0]['budget']:,}" if found else _published_tau(experiment, budget)
                rows.append(Row((DATA[experiment], f"{budget} %", tau, method), of_method[method]))
            mine = of_method["penalize"]
            comparisons += [
                Comparison(quantity, f"{experiment} {budget} %", "penalize", other, (mine[i], of_method[other][i]))
                for other in ("simple", "top-k")
                for i, quantity in enumerate(columns)
                if quantity in ("validation", "test")
            ]
    notes = [
        SAME_EVALUATIONS,
        RETRAINED,
        "relaxed is the validation loss before rounding; rmse is on the test rows.",
        _statuses(runs),
    ]
    if plan.music != "music":
        notes.append(NEEDS_MUSIC)
    if plan.size.every > 1:
        notes.append("With fewer rows the penalty, which counts per row, weighs less: losses are not those of all rows.")
    return Table(
        3,
        "data distillation",
        ("data", "budget", "rows", "method"),
        ("validation loss", "before rounding", "rows kept", "test loss", "RMSE"),
        tuple(rows),
        remarks(3),
        tuple(notes),
        findings(comparisons, lambda it: None),
    )


def table4(plan: Plan, records: Records) -> Table:
    """The ablation of beta, groups."""
    columns = {"outer": 2, "G": 4, "error": 2, "frobenius": 2, "index": 3}
    rows, runs = {}, []
    for beta in BETAS:
        found = records(plan.runs_of("groups", groups.ABLATION_SETTING, beta))
        runs += found
        rows[beta] = tuple(
            Entry(
                _values(found, *_ablated(name)),
                decimals,
                cell(4, "groups", groups.ABLATION_SETTING, f"beta {beta:g}", name),
            )
            for name, decimals in columns.items()
        )
    return Table(
        4,
        f"ablation of beta, groups, {groups.ABLATION_SETTING}",
        ("beta",),
        ("values of eps", "G", "error, spectral", "error, Frobenius", "adjusted Rand index"),
        tuple(Row((f"{beta:g}",), entries) for beta, entries in rows.items()),
        remarks(4),
        (_statuses(runs), _whose_beta(plan, "groups"), *([START_FROM_DATA] if plan.solver == "default" else [])),
        _ablation(rows, tuple(columns), ("G", "error"), 0.5, groups.ABLATION_SETTING, plan),
    )


def table5(plan: Plan, records: Records) -> Table:
    """The ablation of beta, data distillation."""
    columns = {"outer": 1, "validation": 2, "test": 2, "rmse": 2}
    rows, runs = [], []
    orderings: list[Finding] = []
    for experiment in _shown(plan):
        of_beta = {}
        for beta in BETAS:
            found = records(plan.runs_of(experiment, distillation.ABLATED, beta)) if experiment in plan.distilled else []
            runs += found
            of_beta[beta] = tuple(
                Entry(
                    _values(found, *_ablated(name)),
                    decimals,
                    cell(5, experiment, distillation.ABLATED, f"beta {beta:g}", name),
                )
                for name, decimals in columns.items()
            )
            rows.append(Row((DATA[experiment], f"{beta:g}"), of_beta[beta]))
        orderings += _ablation(of_beta, tuple(columns), ("validation", "test"), 0.9, f"{experiment} 20 %", plan)
    notes = [RETRAINED, _statuses(runs), _whose_beta(plan, "blog")]
    if plan.music != "music":
        notes.append(NEEDS_MUSIC)
    return Table(
        5,
        "ablation of beta, data distillation at 20 %",
        ("data", "beta"),
        ("values of eps", "validation loss", "test loss", "RMSE"),
        tuple(rows),
        remarks(5),
        tuple(notes),
        tuple(orderings),
    )


def _values(records: Iterable[Record], *place: str) -> tuple[float, ...]:
    """The number at that place of each record, without the records that have none there."""
    found: list[float] = []
    for record in records:
        value: Any = record
        for name in place:
            value = None if value is None else value.get(name)
        if value is not None:
            found.append(value)
    return tuple(found)


def _place(method: str, quantity: str) -> tuple[str, ...]:
    """The place of a column of table 3 in the record of a distillation.

    penalize rounds nothing, so it has no value before rounding.
    """
    if quantity != "relaxed" or method == "penalize":
        return "methods", method, quantity
    return "methods", "relaxed", "validation"


def _ablated(name: str) -> tuple[str, ...]:
    return ("outer",) if name == "outer" else ("methods", "penalize", name)


def _shown(plan: Plan) -> tuple[str, ...]:
    """The data sets of tables 3 and 5: those of the paper, and the excerpt of music if only that is available."""
    return ("blog", "music") if plan.music != "music-excerpt" else ("blog", "music", "music-excerpt")


def _published_tau(experiment: str, budget: str) -> str:
    tau = cell(3, experiment, budget, "budget", "tau")
    return "-" if tau is None else f"{tau.mean:,.0f}"


def _statuses(records: Iterable[Record]) -> str:
    """A sentence on how the runs of penalize ended and how long they took."""
    listed = list(records)
    if not listed:
        return "Nothing was run."
    binary = sum(record["status"] == "BINARY" for record in listed)
    seconds = sorted(record["seconds"]["penalize"] for record in listed)
    return (
        f"The penalty made theta binary in {binary} of {len(listed)} runs of penalize (elsewhere the nearest feasible binary "
        f"point was taken), which took {seconds[0]:.0f} to {seconds[-1]:.0f} s each, on one thread."
    )


def _whose_beta(plan: Plan, experiment: str) -> str:
    return f"beta = {plan.usual_beta(experiment):g} is that of the other tables here: the same runs."


def _same_structure(it: Comparison, records: Sequence[Record]) -> str | None:
    """The reason if both methods found the true structure in every run: then they can differ only by lam."""
    ends = [name for name in (it.first, it.second) if not name.startswith("oracle")]
    if all(record["methods"][name]["index"] == 1.0 for record in records for name in ends):
        known = "has" if len(ends) == 1 else "and " + ends[1] + " have"
        return f"{ends[0]} {known} the true structure in every run, so the two differ by lam alone" + (
            " and by the fractions of the relaxation" if "relaxed" in ends else ""
        )
    return None


def _ablation(
    rows: dict[float, tuple[Entry, ...]], names: tuple[str, ...], judged: Sequence[str], best: float, where: str, plan: Plan
) -> tuple[Finding, ...]:
    """The orderings of the published best beta against the others that do not hold here."""
    comparisons = [
        Comparison(f"{name}, {where},", f"beta {beta:g}", f"beta {best:g}", "it", (rows[best][i], rows[beta][i]))
        for i, name in enumerate(names)
        if name in judged
        for beta in rows
        if beta != best
    ]

    def reason(it: Comparison) -> str | None:
        if plan.solver != "default":
            return None
        if "index" in names and all(set(entries[names.index("index")].values) == {1.0} for entries in rows.values()):
            return "every beta ends with the true structure"
        place = names.index(it.quantity.split(",")[0])
        means = [entries[place].mean for entries in rows.values()]
        spread = 100 * (max(means) / min(means) - 1)  # type: ignore[type-var,operator]
        return f"polishing evens out what beta does: the five betas lie within {spread:.2g} % of each other"

    return findings(comparisons, reason)

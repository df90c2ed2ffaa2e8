"""The pictures of a page about chosen rows: the curve, the methods side by side, and where the kept rows lie."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixbin import plot
from mixbin.plot import Bar
from mixbin.problems.distillation.budget_curve import BudgetCurve
from mixbin.reporting.blocks import Block, Cell, Drawing, Figures, Grid, Prose, Section
from mixbin.reporting.figures import NARROW, Drawings
from mixbin.reporting.record import Record
from mixbin.reporting.runs import SPREAD
from mixbin.studies.distillation.verdict import measured_on, rows_in_words

KINDS = {"rmse": "RMSE", "accuracy": "share of right classes"}
FEWEST = (
    "What each number of rows costs; the dotted line marks the rows that were kept. First by the objective that judges, against "
    "the best linear model there is; then on the rows that were not kept, against all rows."
)
AROUND = (
    "What other numbers of rows drawn at random would cost, beside the rows that were kept. First by the objective that judges, "
    "against the best linear model there is; then on the rows that were not kept, against all rows."
)


def curve(drawings: Drawings, facts: Mapping[str, Any]) -> list[Section]:
    """How few rows are enough."""
    if "curve" not in facts:
        return []
    data = BudgetCurve.from_json(facts["curve"])
    caption = AROUND if facts.get("tolerance") is None else FEWEST
    drawing = drawings.curves(plot.budget_curve(data), caption, narrow=plot.budget_curve(data, across=False))
    return [Section("How few rows are enough?", [drawing])]


def methods(drawings: Drawings, record: Record) -> list[Block]:
    """All rows, random rows and the methods, as dots."""
    part = measured_on(record)
    kind = next((kind for kind in KINDS if record.main.numbers.get(f"{part}_{kind}") is not None), None)
    if part is None or kind is None:
        return []
    name = f"{part}_{kind}"
    bars = [
        Bar(line.method, value, line.numbers.get(f"{name}{SPREAD}") or 0.0, line is record.main)
        for line in record.lines
        if (value := line.numbers.get(name)) is not None and np.isfinite(value)
    ]
    label = f"{KINDS[kind]} on {rows_in_words(record)}"
    caption = "The methods side by side. The dotted line is all rows; a bar is the spread over draws of random rows."
    wide, narrow = plot.compared(bars, label), plot.compared(bars, label, NARROW)
    return [drawings.curves(wide, caption, narrow=narrow)]


def of_rows(drawings: Drawings, facts: Mapping[str, Any]) -> list[Block]:
    """The target of the kept rows, and where they lie among all rows."""
    found: list[Drawing] = [drawings.selection(facts["selection"])] if "selection" in facts else []
    at = facts.get("where")
    if at is not None:
        figure = plot.where_kept(at["all"], at["kept"], at["shares"], at["n_kept"])
        figure.set_size_inches(NARROW, 3.4)
        caption = "Where the kept rows lie: features in standard deviations, along the two directions in which rows differ most."
        if len(at["kept"]) < at["n_kept"]:
            caption += f" {len(at['kept']):,} of the kept rows are shown."
        found.append(drawings.curves(figure, caption))
    return [Figures(found)] if found else []


def path(facts: Mapping[str, Any]) -> list[Block]:
    """The budgets of the search for the smallest one."""
    curve = BudgetCurve.from_json(facts["curve"])
    share = f"{100 * facts['tolerance']:g} %"
    said = (
        f"The budget was doubled or halved until one with an excess of at most {share} and one above it were found, then "
        "bisected; each search began at the rows of a neighbouring budget. The excess is the distance from the best linear "
        f"model, by the objective that judges. All searches together cost {curve.n_evaluations:,} evaluations."
    )
    if facts.get("searched_among") is not None:
        said += f" Rows were searched among {facts['searched_among']:,} of all rows, drawn at random; all rows judged."
    random = zip(curve.random_excess.tolist(), curve.random_excess_spread.tolist(), strict=True)
    drawn = [Cell(f"{100 * mean:.3g} %", f"± {100 * spread:.2g} %") for mean, spread in random]
    ours = zip(curve.rows.tolist(), curve.excess.tolist(), curve.ratio.tolist(), strict=True)
    found = [[Cell(f"{k:,}"), Cell(f"{100 * excess:.3g} %"), Cell(f"{ratio:.4f}")] for k, excess, ratio in ours]
    rows = [[*cells, last] for cells, last in zip(found, drawn, strict=True)]
    strong = int(np.flatnonzero(curve.rows == curve.found)[0]) if curve.found is not None else -1
    heads = ["rows", "excess", "error on rows not kept / that of all rows", "excess of random rows"]
    return [Prose([said]), Grid(heads, rows, strong=strong)]

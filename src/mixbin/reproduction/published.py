"""The five tables of the paper, every cell as printed, with remarks for their readers.

Tables and figures are named by their printed numbers (docs/maths.md, "Tables and figures of the paper").
"""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from mixbin._validate import fail, whole

TABLES, FIGURES = 5, 6
LABELS = {
    "tab:table1": "table1",
    "tab:table2": "table2",
    "tab:table3": "table3",
    "tab:table11": "table4",
    "tab:table12": "table5",
    "fig:1": "figure1",
    "fig:12": "figure2",
    "fig:11": "figure3",
    "fig:2": "figure4",
    "fig:3": "figure5",
    "fig:4": "figure6",
}
"""The paper's LaTeX labels, whose numbers are not the printed ones."""


class Key(NamedTuple):
    """Where a cell stands: the table's printed number, the data, the column or budget, the method, and what was measured."""

    table: int
    dataset: str
    setting: str
    method: str
    quantity: str


class Cell(NamedTuple):
    """A printed mean, its standard deviation over the runs (None for a budget), the mean's decimals, and whether it is bold."""

    mean: float
    sd: float | None
    decimals: int
    bold: bool


@cache
def published() -> Mapping[Key, Cell]:
    """All cells of the five tables, in printed order."""
    cells = {}
    text = (files("mixbin.reproduction") / "published.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        key = Key(int(row["table"]), row["dataset"], row["setting"], row["method"], row["quantity"])
        decimals = len(row["mean"].partition(".")[2])
        cells[key] = Cell(float(row["mean"]), float(row["sd"]) if row["sd"] else None, decimals, row["bold"] == "1")
    return MappingProxyType(cells)


def cell(table: int, dataset: str, setting: str, method: str, quantity: str) -> Cell | None:
    """One printed cell; None where the paper prints nothing."""
    return published().get(Key(table, dataset, setting, method, quantity))


def canonical(name: str) -> str:
    """The printed number, "table1" to "table5" or "figure1" to "figure6", of a table or figure named by it or by LaTeX label."""
    printed = [f"table{i}" for i in range(1, TABLES + 1)] + [f"figure{i}" for i in range(1, FIGURES + 1)]
    names = LABELS | {label.removeprefix("tab:"): number for label, number in LABELS.items()} | {one: one for one in printed}
    found = names.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise fail("what", name, "one of " + ", ".join(printed), "or a LaTeX label of the paper: " + ", ".join(LABELS))
    return found


def remarks(table: int) -> tuple[str, ...]:
    """What a reader of the table must know and its caption does not say (docs/maths.md, "Misprints in the paper")."""
    return REMARKS[whole("table", table, low=1, high=TABLES)]


_THREE_RUNS = "The caption says 3 runs, the text 5; 3 are assumed."
_ORACLES = "oracle-r is the true structure at the lambda of the relaxation, oracle-p at that of penalize."
_SPECTRAL = "The error is printed as a Frobenius norm, but the figures are the spectral norm; on such data Frobenius is 24 to 43."
_RMSE = "RMSE is the mean over runs of sqrt(2 * test loss), not that of the mean test loss."

REMARKS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        1: (
            "The caption says test error; the authors' script evaluates validation data.",
            _THREE_RUNS,
            _ORACLES,
            "Where simple ties with the best (inequal 0.3 and 0.5) it is not printed bold.",
        ),
        2: (
            _SPECTRAL,
            "The columns inequal 0.3 and 0.5 look swapped: own runs of the oracle give 4.0, 4.5, 5.1 for 0.1, 0.3, 0.5.",
            _THREE_RUNS,
            _ORACLES,
        ),
        3: (
            "blog at 30 %: in one of the five runs simple rounded nearly all rows up, far over the budget.",
            "The relaxed values, in brackets, belong to weights that are not binary; rounded by top-k they fell at music 30 %.",
            _RMSE,
            "The text swaps the roles of blog's rows: the first 1,089 are the test set, the other 6,535 the validation set.",
        ),
        4: (
            _SPECTRAL,
            "The text calls G the test error; the authors' script evaluates validation data.",
            "The number of runs is not given; 4.33 ± 0.58 outer iterations are 4, 4 and 5, so 3 runs.",
            "beta 0.5 is the setting of table 2, which prints 6.04 for inequal 0.3 and this 5.54 for inequal 0.5 (see there).",
        ),
        5: (
            "The number of runs is not given; 14.2 ± 0.45 outer iterations are four times 14 and once 15, so 5 runs.",
            "blog, beta 0.9: 291.3 is no mean of five whole numbers, and the deviations (25.52 for the validation loss) are not "
            "those of table 3 (0.34), whose means it repeats.",
            "music, beta 0.9 is the setting of table 3, which prints 54.20 and 55.45 instead of 54.23 and 55.48.",
            _RMSE,
        ),
    }
)

"""``--tolerance`` instead of ``--budget``: find the smallest budget, and keep what was found in case of an interruption."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixbin._files import foreign, read_json, write_json
from mixbin.problems import RidgeDistillation
from mixbin.problems.distillation.budget_curve import BudgetCurve, curve_of, random_curve
from mixbin.problems.distillation.budget_path import BudgetPath, Step, not_met
from mixbin.problems.distillation.references import References
from mixbin.progress import ProgressDisplay
from mixbin.studies.study import Spent

RUNGS = 8
"""The curve of a run with a budget shows random rows at about this many budgets."""
REACH = 32
"""From one in so many of the rows kept, to so many times as many."""


class Fewest:
    """The search for the smallest budget of one run."""

    def __init__(self, problem: RidgeDistillation, tolerance: float, seed: int, gap_tol: float, most: int | None) -> None:
        self.tolerance = tolerance
        self.path = BudgetPath(problem, seed, min(gap_tol, tolerance / (1 + tolerance)), most)
        self.step: Step | None = None
        self.doubt: str | None = None

    def run(self, kept: Path, quiet: bool) -> Spent:
        """Find it; every search is written to the file ``kept``, and those that are there are not made again."""
        began, before = time.perf_counter(), 0.0
        if kept.exists():
            self.path.before, before = _read(kept, self.path.problem.rows.n_rows)

        def note() -> None:
            seconds = before + time.perf_counter() - began
            if len(self.path.searches) > len(self.path.before):
                write_json(kept, {"searches": [_plain(it) for it in self.path.searches], "seconds": seconds})

        self.path.noted = note
        if not quiet:
            self.path.callbacks = lambda k: [ProgressDisplay(f"{k:,} rows")]
        self.step = self.path.smallest(self.tolerance)
        if self.step is None:
            self.step = min(self.path.steps, key=lambda it: it.excess)
            self.doubt = not_met(self.step, self.tolerance)
        return Spent(self.path.evaluations, before + time.perf_counter() - began)

    def start(self) -> tuple[RidgeDistillation, Mapping[str, Any]]:
        """The problem with the budget found, and settings that begin and end the search at its rows."""
        assert self.step is not None
        settings = self.path.start(self.step)[1]
        return self.path.problem.with_budget(self.step.budget), settings

    def curve(self, references: References) -> BudgetCurve:
        """What each budget of the path costs."""
        return curve_of(self.path, references, self.tolerance)


def curve_around(references: References, k: int, at: Mapping[str, float]) -> BudgetCurve:
    """The curve of a run with a budget: random rows at budgets around it, and the answer at its own."""
    m = references.problem.rows.n_rows
    low, high = max(2.0, k / REACH), float(min(m - 1, k * REACH))
    budgets = sorted({k, *(int(x) for x in np.geomspace(low, max(high, low), RUNGS) if 1 <= x < m)})
    alone: dict[str, Any] = {
        name: np.array([at[name] if it == k else np.nan for it in budgets]) for name in ("excess", "error", "ratio")
    }
    everything = references.errors(np.empty(0, dtype=np.intp), references.all_rows)[0]
    alone |= random_curve(references, budgets)
    return BudgetCurve(rows=np.array(budgets), **alone, n_rows=m, all_rows_error=everything, found=k)


def _plain(step: Step) -> dict[str, Any]:
    return {**step._asdict(), "rows": step.rows.tolist()}


def _read(file: Path, m: int) -> tuple[Sequence[Step], float]:
    """The searches of an interrupted run, and their seconds."""
    entries = read_json(file)
    try:
        steps = [
            Step(np.array(it["rows"], dtype=np.intp), float(it["alpha"]), float(it["excess"]), int(it["evaluations"]))
            for it in entries["searches"]
        ]
        good = all(step.rows.ndim == 1 and step.rows.size and 0 <= step.rows.min() <= step.rows.max() < m for step in steps)
        seconds = float(entries["seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise foreign(file, f"{type(error).__name__}: {error}") from None
    if not good:
        raise foreign(file, "it has rows that the table has not")
    return steps, seconds

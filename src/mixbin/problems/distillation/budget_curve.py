"""The curve behind "how few rows are enough": what each number of rows costs, beside random rows and all rows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from mixbin._html import html_comparison
from mixbin._numbers import readable
from mixbin._validate import Floats
from mixbin.problems.distillation.budget_path import BudgetPath, Step, meets
from mixbin.problems.distillation.references import DRAWS, Draw, References

LEAST_EXCESS = 1e-3
"""Without budgets of the caller's, the curve ends at the first one with at most this excess."""


@dataclass(frozen=True, eq=False)
class BudgetCurve:
    """What each number of rows costs.

    Errors are roots of mean squared errors on the candidate rows that were not kept. The excess is ``(J - J*) / J*``: J is the
    objective that judges, and ``J*`` its least value for any linear model. Arrays have an entry per budget, ascending; for random
    rows they are means over the draws, and their spread is the standard deviation of one draw.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + rng.normal(size=200)
    >>> curve = mb.budget_curve(X, y, [5, 20, 80], random_state=0)
    >>> curve.rows
    array([ 5, 20, 80])
    >>> bool((curve.excess < curve.random_excess).all())
    True
    """

    rows: Any
    """The budgets."""
    excess: Floats
    """The least that was found with at most so many rows."""
    error: Floats
    """On the rows that were not kept, for the selection of ``excess``; NaN if all rows are kept."""
    ratio: Floats
    """That error divided by the error of a ridge regression on all rows, on the same rows."""
    random_excess: Floats
    random_excess_spread: Floats
    random_error: Floats
    random_error_spread: Floats
    random_ratio: Floats
    random_ratio_spread: Floats
    n_rows: int
    """How many candidate rows there are."""
    all_rows_error: float
    """The error of a ridge regression on all rows, on these same rows: it was trained on them."""
    tolerance: float | None = None
    found: int | None = None
    """The smallest of the budgets with an excess of at most ``tolerance``."""
    n_evaluations: int = 0
    """What all searches cost, in models trained."""

    def _repr_html_(self) -> str:
        """The budgets beside random rows, for notebooks."""
        heads = ["rows kept", "excess", "error", "error beside all rows", "random rows: excess", "error", "error beside all rows"]
        columns = self.excess, self.error, self.ratio, self.random_excess, self.random_error, self.random_ratio
        lines = [[f"{k:,}", *(readable(float(it), 3) for it in of)] for k, *of in zip(self.rows, *columns, strict=True)]
        chosen = None if self.found is None else self.rows.tolist().index(self.found)
        of_all = f"all {self.n_rows:,} rows have an error of {readable(self.all_rows_error, 3)}"
        return html_comparison(f"mixbin: how few rows; {of_all}", heads, lines, chosen)

    def to_json(self) -> dict[str, Any]:
        """All of it as lists and numbers; numbers that are not finite become None."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, entries: Any) -> "BudgetCurve":
        """The inverse of ``to_json``."""
        arrays = {it.name for it in fields(cls)[:10]}

        def array(values: Any) -> Any:
            return np.array([np.nan if x is None else x for x in values], dtype=np.float64)

        kept = {name: array(value) if name in arrays else value for name, value in entries.items()}
        return cls(**kept | {"rows": kept["rows"].astype(np.intp)})


class _At(NamedTuple):
    """The selection that stands for a budget."""

    excess: float
    error: float
    ratio: float


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(it) for it in value.tolist()]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def curve_of(path: BudgetPath, references: References, tolerance: float | None = None, draws: int = DRAWS) -> BudgetCurve:
    """The curve of the budgets that a path has visited."""
    steps = path.steps
    best: list[_At] = []
    for step, zhat in zip(steps, references.fetched([step.rows for step in steps]), strict=True):
        at = _at(step, zhat, path, references)
        # A selection of fewer rows also keeps to a larger budget.
        best.append(at if not best or at.excess <= best[-1].excess else best[-1])
    found = None if tolerance is None else next((step.budget for step in steps if meets(step, tolerance)), None)
    return BudgetCurve(
        rows=np.array([step.budget for step in steps]),
        **{name: np.array([getattr(it, name) for it in best]) for name in _At._fields},
        **random_curve(references, [step.budget for step in steps], draws),
        n_rows=path.problem.rows.n_rows,
        all_rows_error=references.errors(np.empty(0, dtype=np.intp), references.all_rows)[0],
        tolerance=tolerance,
        found=found,
        n_evaluations=path.evaluations,
    )


def random_curve(references: References, budgets: Sequence[int], draws: int = DRAWS) -> dict[str, Floats]:
    """The part of the curve that is about random rows."""
    found: list[list[Draw]] = references.random(budgets, draws)
    out: dict[str, Floats] = {}
    for name in ("excess", "error", "ratio"):
        values = np.array([[getattr(draw, name) for draw in of] for of in found])
        out |= {f"random_{name}": values.mean(axis=1), f"random_{name}_spread": values.std(axis=1)}
    return out


def ladder(n_rows: int, n_features: int) -> list[int]:
    """Budgets to try where the caller names none: from a few rows up, each half as large again as the last one."""
    out, k = [], max(2.0, n_features / 4)
    while k < n_rows:
        out.append(int(k))
        k = max(1.5 * k, k + 1)
    return out or [n_rows]


def _at(step: Step, zhat: Floats, path: BudgetPath, references: References) -> _At:
    problem = path.problem.with_budget(step.budget)
    model = references.trained(problem, zhat, step.alpha)
    return _At(step.excess, *references.measured(step.rows, zhat, model))

"""What each number of rows costs, beside random rows and all rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mixbin import _validate as check
from mixbin.errors import InvalidInput
from mixbin.estimators._common import generator
from mixbin.estimators.distillation import DistillationRegressor
from mixbin.problems.distillation.budget_curve import LEAST_EXCESS, BudgetCurve, curve_of, ladder
from mixbin.problems.distillation.budget_path import BudgetPath
from mixbin.problems.distillation.references import DRAWS, References
from mixbin.sets.budget import resolve_budget

MOST_DRAWS = 100_000
"""More random draws are refused: their mean and spread are known far better than anyone needs."""
OWN = ("budget", "method", "random_state", "tolerance", "verbose")
"""Parameters of DistillationRegressor that a curve has no use for, or gets as its own arguments."""


def budget_curve(
    X: Any,
    y: Any,
    budgets: Iterable[int | float] | None = None,
    X_val: Any = None,
    y_val: Any = None,
    *,
    draws: int = DRAWS,
    random_state: int | np.random.RandomState | None = None,
    **params: Any,
) -> BudgetCurve:
    """Choose rows for several budgets, each search beginning at the rows of the budget before, and draw as many at random.

    ``mixbin.plot.budget_curve`` draws the curve. To get the smallest budget for a tolerance, use
    ``DistillationRegressor(budget="auto")``.

    Parameters
    ----------
    X, y, X_val, y_val
        As in ``DistillationRegressor.fit``: arrays, sparse tables, Dask collections.
    budgets : sequence of int or float, optional
        Counts of rows, or fractions of the candidate rows. By default they grow by a half from a quarter of the number of
        features, until the excess is at most 0.001.
    draws : int, default=10
        How many times random rows are drawn.
    random_state : int, RandomState instance or None, default=None
        Seeds folds, searches and draws.
    **params
        Other parameters of ``DistillationRegressor``, such as ``judge`` or ``standardize``. ``time_limit`` is for all budgets
        together: the curve ends with the last one that was begun.

    Returns
    -------
    BudgetCurve
        What each budget costs, beside random rows.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> y = X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=500)
    >>> curve = mb.budget_curve(X, y, [5, 10, 20], random_state=0)
    >>> curve.rows.tolist(), bool(np.all(np.diff(curve.excess) <= 0)), bool(np.all(curve.excess < curve.random_excess))
    ([5, 10, 20], True, True)
    """
    known = sorted(set(DistillationRegressor().get_params()) - set(OWN))
    if unknown := [name for name in params if name not in known]:
        raise InvalidInput(f"params must be among {', '.join(known)}, got {unknown[0]!r}; budgets gives the numbers of rows")
    check.whole("draws", draws, low=1, high=MOST_DRAWS, remedy="10 draws tell how much random rows differ")
    model = DistillationRegressor(budget="auto", random_state=random_state, **params)
    problem, seed = model.problem_of(X, y, X_val, y_val, generator(random_state))
    watching = model.callbacks or ()
    path = BudgetPath(problem, seed, float(model.gap_tol), model.max_evaluations, lambda _: watching, model.time_limit)
    m = problem.rows.n_rows
    if budgets is None:
        path.along(ladder(m, problem.n_features), LEAST_EXCESS)
    else:
        if isinstance(budgets, str | bytes) or not isinstance(budgets, Iterable):
            raise check.fail("budgets", budgets, "numbers of rows", "such as [20, 50, 0.1]")
        counts = {resolve_budget("budgets", budget, m) for budget in budgets}
        if not counts:
            raise check.fail("budgets", budgets, "at least one number of rows", "such as [20, 50, 0.1]")
        path.along(sorted(counts))
    return curve_of(path, References(problem, seed), draws=draws)

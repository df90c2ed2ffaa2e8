"""What each number of rows costs: the curve of ``mixbin.budget_curve``, beside random rows."""

from typing import TYPE_CHECKING

import numpy as np

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.plot.curves import BLUE, GREY, ORANGE, Look, limit, line, tidy
from mixbin.plot.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mixbin.problems.distillation.budget_curve import BudgetCurve

LEAST = 1e-3
"""Per cent. Values below this are drawn here: nobody needs to tell them apart, and 0 has no place on a log axis."""


def budget_curve(curve: "BudgetCurve", *, across: bool = True) -> "Figure":
    """Draw the excess and the error on rows that were not kept against the number of rows, chosen and random.

    The two panels stand side by side, or below each other.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = X @ [1.0, 2.0] + rng.normal(size=60)
    >>> figure = mb.plot.budget_curve(mb.budget_curve(X, y, [5, 20], random_state=0))
    >>> len(figure.axes)
    2
    """
    from mixbin.problems.distillation.budget_curve import BudgetCurve  # here: the page of another study does not need it

    if not isinstance(curve, BudgetCurve):
        raise check.fail("curve", curve, "a BudgetCurve", "make one with mixbin.budget_curve")
    check.flag("across", across)
    figure = new_figure(9.6, 3.4) if across else new_figure(4.9, 5.8)
    first, second = figure.subplots(1, 2) if across else figure.subplots(2, 1)
    draw_excess(first, curve)
    draw_error(second, curve)
    handles, labels = (second if second.lines else first).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    return figure


def draw_excess(axes: "Axes", curve: "BudgetCurve") -> None:
    """How far each number of rows is from the best model there is, in per cent of the objective that judges."""
    _band(axes, curve, curve.random_excess, curve.random_excess_spread)
    _curve(axes, curve, curve.excess, ORANGE, "chosen rows")
    if curve.tolerance is not None:
        limit(axes, 100 * curve.tolerance, "tolerance")
    _mark(axes, curve)
    axes.set_ylabel("worse than the best model, %\n(by the objective that judges)", fontsize=9)
    _axes(axes)


def draw_error(axes: "Axes", curve: "BudgetCurve") -> None:
    """How far the error on rows that were not kept is above that of all rows, in per cent."""
    if not np.isfinite([curve.ratio, curve.random_ratio]).any():
        axes.set_axis_off()
        axes.text(0.5, 0.5, "all rows are kept: none is left\nto measure the error on", ha="center", va="center", fontsize=9)
        return
    _band(axes, curve, curve.random_ratio - 1, curve.random_ratio_spread)
    _curve(axes, curve, curve.ratio - 1, ORANGE, "chosen rows")
    _mark(axes, curve)
    axes.set_ylabel("error above that of all rows, %\n(RMSE on rows not kept)", fontsize=9)
    _axes(axes)


def _percent(share: Floats) -> Floats:
    return np.asarray(np.maximum(100 * share, LEAST))


def _curve(axes: "Axes", curve: "BudgetCurve", share: Floats, look: Look, label: str) -> None:
    if np.isfinite(share).any():
        line(axes, curve.rows.astype(np.float64), _percent(share), look, label)


def _band(axes: "Axes", curve: "BudgetCurve", share: Floats, spread: Floats) -> None:
    """Random rows: their mean, and one standard deviation to either side; below, as the same factor, for a log axis."""
    rows = curve.rows.astype(np.float64)
    shown = np.isfinite(share) & (share > 0)
    low = np.divide(share**2, share + spread, out=np.zeros(len(share)), where=shown)
    low, high = _percent(low), _percent(share + spread)
    axes.fill_between(rows[shown], low[shown], high[shown], color=BLUE.colour, alpha=0.18, linewidth=0)
    _curve(axes, curve, share, BLUE, "random rows, mean and spread")


def _mark(axes: "Axes", curve: "BudgetCurve") -> None:
    """The budget that was found."""
    if curve.found is not None:
        axes.axvline(curve.found, color=GREY.colour, linestyle=":", linewidth=1.4)


def _axes(axes: "Axes") -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rows kept", fontsize=9)
    tidy(axes)

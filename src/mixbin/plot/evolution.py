"""The evolution of a run that selects rows: five panels, before and after rounding, as in figures 4, 5 and 6 of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.plot.curves import (
    BLUE,
    ORANGE,
    SMALL_FONT,
    Look,
    checked_steps,
    limit,
    line,
    needs_log_axis,
    tidy,
    with_gaps,
    wrapped,
)
from mixbin.plot.figure import checked_axes, first_axes, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HALF_SQUARES = "½ mean squared error"
ROUNDED_CURVES = ("validation_rounded", "test_rounded", "rmse")


@dataclass(frozen=True, eq=False, kw_only=True)
class Evolution:
    """What the five panels show.

    An entry is not finite if rounding left no row to train on; such entries are not drawn, and a note counts them.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> names = ("validation", "validation_rounded", "n_selected", "integrality", "test", "test_rounded", "rmse")
    >>> it = mb.plot.Evolution(steps=[0, 1], unit="steps", budget=2, **dict.fromkeys(names, np.array([2.0, 1.0])))
    >>> it.validation, it.unit
    (array([2., 1.]), 'steps')
    """

    steps: Floats
    """How many of ``unit`` the run had made at each point."""
    unit: str
    """What ``steps`` counts; this is the label of the horizontal axes."""
    validation: Floats
    """The validation loss J(v) before rounding."""
    validation_rounded: Floats
    """The validation loss after rounding."""
    n_selected: Floats
    """The number of selected rows after rounding."""
    budget: int
    integrality: Floats
    """max_i min(v_i, 1 - v_i)."""
    test: Floats
    test_rounded: Floats
    rmse: Floats
    """The RMSE on the test rows after rounding."""
    title: str = ""
    rounded: bool = True
    """Whether the method rounds. If not, nothing is drawn "after rounding", and ``rmse`` belongs to v itself."""

    def __post_init__(self) -> None:
        steps = checked_steps(self.steps)
        if steps.size == 0 or np.any(np.diff(steps) < 0):
            raise check.fail("steps", self.steps, "at least one number, in ascending order")
        check.whole("budget", self.budget, low=0, high=check.LARGEST_SIZE)
        check.flag("rounded", self.rounded)
        for name in CURVES:
            # The dataclass is frozen, and lists given by a user must become arrays.
            object.__setattr__(self, name, with_gaps(name, getattr(self, name), steps.shape))


CURVES = tuple(field.name for field in fields(Evolution) if field.name not in ("unit", "budget", "title", "rounded"))


def evolution(it: Evolution, *, ax: "Sequence[Axes] | None" = None) -> "Axes":
    """Draw validation loss, selected rows, integrality, test loss and RMSE along the steps, as in the paper.

    Parameters
    ----------
    it : Evolution
        The curves. They come from runs that were measured at every step, which a Result does not keep.
    ax : sequence of 6 Axes, optional
        Where to draw the five panels and their key; by default a figure of its own.

    Returns
    -------
    Axes
        The axes of the validation loss; ``.figure`` is the figure.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> curve = np.array([3.0, 2.0, 1.0])
    >>> names = ("validation", "validation_rounded", "n_selected", "integrality", "test", "test_rounded", "rmse")
    >>> it = mb.plot.Evolution(steps=[0, 1, 2], unit="steps", budget=2, **dict.fromkeys(names, curve))
    >>> axes = mb.plot.evolution(it)
    >>> len(axes.figure.axes)
    6
    """
    if ax is None:
        return first_axes(evolution_figure(it))
    six = [checked_axes(one) for one in np.ravel(np.asarray(ax, dtype=object))]
    if len(six) != 6:
        raise check.fail("ax", ax, "6 Axes", "pass those of plt.subplots(2, 3)")
    _panels(np.array(six, dtype=object).reshape(2, 3), it)
    return six[0]


def evolution_figure(it: Evolution) -> "Figure":
    """The figure of all panels."""
    figure = new_figure(9.0, 4.9)
    figure.set_layout_engine("constrained", wspace=0.04, hspace=0.06)
    _panels(figure.subplots(2, 3), it)
    figure.suptitle(wrapped(it.title, 110), fontsize=11, parse_math=False)
    return figure


def _panels(grid: Any, it: Evolution) -> None:
    (a, b, c), (d, e, key) = grid
    after = BLUE if it.rounded else ORANGE
    _losses(a, "(a) validation loss", it, it.validation, it.validation_rounded)
    _single(b, "(b) selected rows", it, it.n_selected, after)
    limit(b, it.budget, "budget")
    top = max([float(it.budget), *it.n_selected[np.isfinite(it.n_selected)].tolist(), 1.0])
    b.set(ylim=(-0.03 * top, 1.1 * top), ylabel="rows")
    _single(c, "(c) integrality", it, it.integrality, ORANGE)
    c.set(ylim=(-0.02, 0.55), ylabel="max$_i$ min($v_i$, 1 − $v_i$)")
    _losses(d, "(d) test loss", it, it.test, it.test_rounded)
    _single(e, "(e) RMSE on the test rows", it, it.rmse, after)
    _scale(e, "in units of the target", it.rmse)
    span = float(it.steps[-1] - it.steps[0]) or 1.0
    for axes in (a, b, c, d, e):
        axes.set_xlim(it.steps[0] - 0.03 * span, it.steps[-1] + 0.03 * span)
        axes.set_xlabel(wrapped(it.unit, 30, 90), fontsize=9, parse_math=False)
        tidy(axes, across=4, up=4)
        if not any(np.isfinite(curve.get_ydata()).any() for curve in axes.get_lines()):
            # An empty panel gets no ticks: they would suggest a scale.
            axes.set_yticks([])
    _key(key, a, it)


def _losses(axes: "Axes", title: str, it: Evolution, before: Floats, after: Floats) -> None:
    _single(axes, title, it, before, ORANGE, "before rounding" if it.rounded else "")
    if it.rounded:
        line(axes, it.steps, after, BLUE, "after rounding")
    _scale(axes, HALF_SQUARES, *([before, after] if it.rounded else [before]))


def _single(axes: "Axes", title: str, it: Evolution, curve: Floats, look: Look, label: str = "") -> None:
    line(axes, it.steps, curve, look, label)
    axes.set_title(title, fontsize=10, loc="left")


def _scale(axes: "Axes", label: str, *curves: Floats) -> None:
    """Use a log axis if a linear one would hide all but the largest values, and say so in the label."""
    log = needs_log_axis(*curves)
    if log:
        axes.set_yscale("log")
    axes.set_ylabel(label + (" (log)" if log else ""), fontsize=9)


def _key(axes: "Axes", first: "Axes", it: Evolution) -> None:
    """Fill the sixth cell of the grid with the legend and a note on points that are not drawn."""
    axes.axis("off")
    if it.rounded:
        handles, labels = first.get_legend_handles_labels()
        axes.legend(handles, labels, loc="upper left", fontsize=9, frameon=False, handlelength=3.5)
    axes.text(0.02, 0.0, _note(it), fontsize=SMALL_FONT, va="bottom", ha="left", transform=axes.transAxes)


def _note(it: Evolution) -> str:
    """A text that says how many points are not drawn, and why."""
    drawn = [name for name in CURVES[1:] if it.rounded or not name.endswith("_rounded")]
    after = [name for name in drawn if it.rounded and name in ROUNDED_CURVES]
    notes = []
    for when, names in (("after rounding, ", after), ("before rounding, " if it.rounded else "", set(drawn) - set(after))):
        missing = np.any([~np.isfinite(getattr(it, name)) for name in names], axis=0)
        if np.any(missing):
            why = "no row is left" if np.all(it.n_selected[missing] == 0) else "not finite"
            points = f"{np.count_nonzero(missing):,} of {it.steps.size:,} points"
            notes.append(wrapped(f"{when}{points} are not drawn: {why}", 38))
    return "\n".join(notes)

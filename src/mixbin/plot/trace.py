"""The course of a run: G, the distance to binary points and eps over the evaluations."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.plot.curves import BLUE, GREEN, GREY, ORANGE, PURPLE, SMALL_FONT, limit, line, needs_log_axis, number, thin, tidy
from mixbin.plot.figure import checked_axes, first_axes, new_figure
from mixbin.result import Result, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PHASES = {"relax": BLUE, "penalise": ORANGE, "lam": PURPLE, "polish": GREEN}
ALWAYS_SHOWN = 0.95
"""A linear axis always shows this share of the values of G, the lowest ones."""
FAR_ABOVE = 4.0
"""If G rises above the shown values by more than this many times their range, the higher values are not drawn, and the panel's
title says how many they are."""


@dataclass(frozen=True, eq=False)
class TraceCurves:
    """What the figure of a run shows: one start, with at most 2,000 points per curve.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> curves = mb.plot.trace_curves(mb.relax_and_penalize(problem, seed=0))
    >>> curves.start, str(curves.phase[0])
    (0, 'relax')
    """

    start: int
    n_starts: int
    n_rows: int
    """The number of rows of the trace that belong to the start, whether they are drawn or not."""
    evaluations: Floats
    """The number of evaluations of G since the run began, at each point of ``G`` and ``phase``."""
    G: Floats
    phase: NDArray[np.str_]
    outer_evaluations: Floats
    """The number of evaluations at the end of each outer iteration."""
    distance: Floats
    """dist_inf(theta, Theta_bin) at the end of each outer iteration."""
    epsilon_evaluations: Floats
    """The number of evaluations when each value of eps was first used, and at the end of the penalised stage; empty without a
    penalty."""
    epsilon: Floats


def trace_curves(result: Result | Trace, start: int | None = None) -> TraceCurves:
    """The curves of one start of a run.

    Parameters
    ----------
    result : Result or Trace
        What a method returned, or its ``trace``.
    start : int, optional
        The number of the start, from 0; by default the start that gave the result (for a Trace, the one with the lowest last G).

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> curves = mb.plot.trace_curves(mb.relax_and_penalize(problem, seed=0))
    >>> curves.G.shape == curves.evaluations.shape
    True
    """
    if not isinstance(result, (Result, Trace)):
        raise check.fail("result", result, "a Result or a Trace", "pass what relax_and_penalize or relax_and_round returned")
    path = result.trace if isinstance(result, Result) else result
    column = {name: path.column(name) for name in ("start", "n_evaluations", "G", "epsilon", "distance")} if len(path) else {}
    drawable = np.isfinite(column["G"]) & np.isfinite(column["n_evaluations"]) if column else np.zeros(0, dtype=bool)
    if not drawable.any():
        raise InvalidInput("result must have a trace with evaluations and G, got none; enumerate_binary keeps no trace")
    phase = path.column("phase")
    # A trace without a column of starts comes from a method with a single start.
    starts = np.nan_to_num(column["start"])
    numbers = np.unique(starts[drawable]).astype(int).tolist()
    chosen = _winner(result, starts, column["G"], phase, drawable) if start is None else check.whole("start", start, low=0)
    if chosen not in numbers:
        raise check.fail("start", start, f"one of the starts with rows in the trace ({', '.join(map(str, numbers))})")
    own = np.flatnonzero(drawable & (starts == chosen))
    evaluations, G, phase = column["n_evaluations"][own], column["G"][own], phase[own]
    changes = np.flatnonzero(phase[1:] != phase[:-1])
    shown = thin(G, keep=np.concatenate([changes, changes + 1]))
    outer = np.flatnonzero(np.isfinite(column["distance"][own]))
    distance = column["distance"][own][outer]
    outer_shown = thin(distance)
    used = _first_used(column["epsilon"][own], phase == "penalise")
    return TraceCurves(
        start=chosen,
        n_starts=len(numbers),
        n_rows=own.size,
        evaluations=evaluations[shown],
        G=G[shown],
        phase=phase[shown],
        outer_evaluations=evaluations[outer][outer_shown],
        distance=distance[outer_shown],
        epsilon_evaluations=evaluations[used],
        epsilon=column["epsilon"][own][used],
    )


def _winner(result: Result | Trace, starts: Floats, G: Floats, phase: NDArray[np.str_], drawable: NDArray[np.bool_]) -> int:
    """The start that gave the result: its last G is the result's value, and its last relaxed G the result's relaxed value."""
    numbers = np.unique(starts[drawable])
    last = np.array([G[drawable & (starts == start)][-1] for start in numbers])
    if isinstance(result, Trace):
        return int(numbers[np.argmin(last)])
    gaps = np.abs(last - result.value)
    relaxed = result.relaxed
    if relaxed is None:
        return int(numbers[np.argmin(gaps)])
    relax_ends = [G[drawable & (starts == start) & (phase == "relax")] for start in numbers]
    relaxed_gaps = np.array([abs(ends[-1] - relaxed.value) if ends.size else np.inf for ends in relax_ends])
    if np.all(phase == "relax"):
        return int(numbers[np.argmin(relaxed_gaps)])
    # Several starts often end in the same point, up to rounding; the relaxed values tell them apart.
    equal = gaps <= gaps.min() + 1e-9 * abs(result.value)
    if not np.isfinite(relaxed_gaps[equal]).any():  # a search after the path, which has no relaxed stage of its own
        return int(numbers[np.argmin(gaps)])
    return int(numbers[np.argmin(np.where(equal, relaxed_gaps, np.inf))])


def _first_used(epsilon: Floats, penalised: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The rows in which eps changes, and the last row with a penalty."""
    rows = np.flatnonzero(penalised & np.isfinite(epsilon))
    if rows.size == 0:
        return rows
    new = np.concatenate([[True], epsilon[rows][1:] != epsilon[rows][:-1]])
    new[-1] = True
    rows = rows[new]
    return np.asarray(rows[thin(epsilon[rows])])


def trace(result: Result | Trace, start: int | None = None, *, ax: "Axes | None" = None) -> "Axes":
    """Draw G with its phases, the distance to binary points and eps along a run; see ``trace_curves``.

    Parameters
    ----------
    result : Result or Trace
        What a method returned, or its ``trace``.
    start : int, optional
        The number of the start; by default the one that gave the result.
    ax : Axes, optional
        Draw G alone, in these axes. By default a figure of its own has all three panels.

    Returns
    -------
    Axes
        The axes of G; ``.figure`` is the whole figure.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> axes = mb.plot.trace(mb.relax_and_penalize(problem, seed=0))
    >>> len(axes.figure.axes)
    3
    """
    if ax is None:
        return first_axes(trace_figure(result, start))
    axes, curves = checked_axes(ax), trace_curves(result, start)
    _value_panel(axes, curves)
    axes.set_xlabel("evaluations of G")
    axes.legend(fontsize=SMALL_FONT, frameon=False)
    return axes


def trace_figure(result: Result | Trace, start: int | None = None, *, across: bool = False) -> "Figure":
    """The figure of all panels, below each other or, with ``across``, side by side."""
    curves = trace_curves(result, start)
    panels = [_value_panel]
    panels += [_distance_panel] if curves.distance.size else []
    panels += [_epsilon_panel] if curves.epsilon.size else []
    if across:
        figure = new_figure(3.2 * len(panels), 2.9)
        all_axes = figure.subplots(1, len(panels), sharex=True, squeeze=False)[0]
    else:
        figure = new_figure(6.5, 0.9 + 1.7 * len(panels))
        all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(all_axes, panels, strict=True):
        panel(axes, curves)
    for axes in all_axes:
        for change in _changes(curves):
            axes.axvline(change, color=GREY.colour, linewidth=0.6, alpha=0.6, zorder=0)
    for axes in all_axes if across else all_axes[-1:]:
        axes.set_xlabel("evaluations of G")
    figure.align_ylabels()
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=SMALL_FONT, frameon=False, handlelength=3)
    return figure


def _value_panel(axes: "Axes", curves: TraceCurves) -> None:
    named = set()
    for begin, end in _segments(curves.phase):
        phase = str(curves.phase[begin])
        # Each phase is drawn from the last point of the phase before, so that the curve has no gaps.
        part = slice(max(begin - 1, 0), end)
        look = PHASES.get(phase, GREY)
        line(axes, curves.evaluations[part], curves.G[part], look, "" if phase in named else phase, joined=begin > 0)
        named.add(phase)
    notes = [f"start {curves.start}, one of {curves.n_starts}"] if curves.n_starts > 1 else []
    label = "G"
    top = float(np.quantile(curves.G, ALWAYS_SHOWN))
    low, high = float(curves.G.min()), float(curves.G.max())
    if needs_log_axis(curves.G[top >= curves.G]):
        axes.set_yscale("log")
        label = "G (log scale)"
    elif high - top > FAR_ABOVE * (top - low) > 0:
        above = top + 0.1 * (top - low) < curves.G
        axes.set_ylim(low - 0.08 * (top - low), top + 0.1 * (top - low))
        notes.append(f"not shown: {np.count_nonzero(above)} points further up, to {number(high)}")
    axes.set_ylabel(label)
    axes.set_title("; ".join(notes), fontsize=SMALL_FONT, loc="right")
    tidy(axes, across=8, up=4)


def _distance_panel(axes: "Axes", curves: TraceCurves) -> None:
    line(axes, curves.outer_evaluations, curves.distance, GREY)
    limit(axes, 0.5, "1/2")
    axes.set_ylim(-0.04, 1.04)
    axes.set_ylabel("distance to binary")
    tidy(axes, across=8)


def _epsilon_panel(axes: "Axes", curves: TraceCurves) -> None:
    x, y = curves.epsilon_evaluations, curves.epsilon
    axes.set_yscale("log")
    axes.step(x, y, where="post", color=GREY.colour, linewidth=1.4, marker="o", markersize=3.5, markevery=max(1, x.size // 30))
    axes.set_ylabel("ε (log scale)")
    tidy(axes, across=8, up=4)


def _segments(phase: NDArray[np.str_]) -> list[tuple[int, int]]:
    """(first, last + 1) of each run of rows in the same phase."""
    inner = (np.flatnonzero(phase[1:] != phase[:-1]) + 1).tolist()
    return list(zip([0, *inner], [*inner, phase.size], strict=True))


def _changes(curves: TraceCurves) -> list[float]:
    """The evaluations at which a phase ends; only the first eight, because more vertical lines would fill the panel."""
    return [float(curves.evaluations[end - 1]) for _, end in _segments(curves.phase)[:-1]][:8]

"""The distance to binary points along a run, figures 2 and 3 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.plot.curves import BLUE, checked_steps, limit, line, tidy, with_gaps, wrapped
from mixbin.plot.figure import checked_axes, first_axes, new_figure
from mixbin.result import Result, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class DistanceCurve:
    """What the figure of the distance shows.

    Examples
    --------
    >>> import mixbin as mb
    >>> curve = mb.plot.distance_curve([0, 10, 20], [0.5, 0.3, 0.0], unit="steps")
    >>> curve.distance, curve.xlabel
    (array([0.5, 0.3, 0. ]), 'steps')
    """

    steps: Floats
    distance: Floats
    """dist_inf(theta, Theta_bin) after each of the steps."""
    title: str
    xlabel: str
    half: float = 0.5
    """Below this distance, a small enough eps makes every local minimiser binary (docs/maths.md, "Guarantees")."""


def distance_curve(steps: ArrayLike, distance: ArrayLike, title: str = "", unit: str = "evaluations of G") -> DistanceCurve:
    """The distance to binary points after each of ``steps``.

    Parameters
    ----------
    steps : array of shape (n,)
        How many of ``unit`` the run had made at each point, in ascending order.
    distance : array of shape (n,)
        dist_inf(theta, Theta_bin), from 0 to 1. Points with NaN are left out; the trace of a run has NaN between two outer
        iterations, where the distance is not computed.
    title : str
        The title of the figure.
    unit : str
        What ``steps`` counts; this is the label of the horizontal axis.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> mb.plot.distance_curve([0, 10, 20], [0.5, np.nan, 0.0]).steps
    array([ 0., 20.])
    """
    x = checked_steps(steps)
    y = with_gaps("distance", distance, x.shape)
    if np.any(np.diff(x) < 0):
        raise check.fail("steps", x, "in ascending order", "sort both arrays by steps")
    looked = ~np.isnan(y)
    if not looked.any() or y[looked].min() < 0 or y[looked].max() > 1:
        raise check.fail("distance", y, "numbers from 0 to 1, at least one")
    return DistanceCurve(steps=x[looked], distance=y[looked], title=title, xlabel=unit)


def distance(result: Result | Trace | DistanceCurve, *, ax: Axes | None = None) -> Axes:
    """Draw the distance to binary points along a run, with a line at one half.

    Parameters
    ----------
    result : Result, Trace or DistanceCurve
        What a method returned, its ``trace``, or a curve by ``distance_curve``.
    ax : Axes, optional
        Where to draw; by default a figure of its own.

    Returns
    -------
    Axes
        The axes; ``.figure`` is the figure.

    Examples
    --------
    >>> import mixbin as mb
    >>> curve = mb.plot.distance_curve([0, 10, 20], [0.5, 0.3, 0.0])
    >>> axes = mb.plot.distance(curve)  # or a Result
    >>> axes.get_xlabel()
    'evaluations of G'
    """
    curve = result if isinstance(result, DistanceCurve) else _curve_of(result)
    if ax is None:
        return first_axes(distance_figure(curve))
    axes = checked_axes(ax)
    _draw(axes, curve)
    return axes


def _curve_of(result: Result | Trace) -> DistanceCurve:
    """The distances in the trace of a run."""
    if not isinstance(result, (Result, Trace)):
        raise check.fail("result", result, "a Result, a Trace or a DistanceCurve", "pass what a method returned")
    path = result.trace if isinstance(result, Result) else result
    found = path.column("distance") if len(path) else np.empty(0)
    if not np.isfinite(found).any():
        raise InvalidInput("result must have distances in its trace, got none; pass the result of relax_and_penalize")
    return distance_curve(path.column("n_evaluations"), found)


def distance_figure(curve: DistanceCurve) -> Figure:
    """The figure of a curve."""
    figure = new_figure(4.2, 3.0)
    _draw(figure.subplots(), curve)
    return figure


def _draw(axes: Axes, curve: DistanceCurve) -> None:
    line(axes, curve.steps, curve.distance, BLUE._replace(line="-"))
    limit(axes, curve.half, "1/2" if curve.half == 0.5 else f"{curve.half:g}")
    axes.set_ylim(-0.03, 1.03)
    first, last = float(curve.steps[0]), float(curve.steps[-1])
    if 0 <= first < last - first:
        # Begin the axis at 0: the relaxed stage belongs to the run, though the distance was computed only at its end.
        axes.set_xlim(left=-0.02 * last)
    axes.set_xlabel(wrapped(curve.xlabel, 55), parse_math=False)
    axes.set_ylabel("distance to binary points, dist$_∞$(θ, Θ$_{bin}$)", fontsize=9)
    axes.set_title(wrapped(curve.title, 55), fontsize=10, parse_math=False)
    tidy(axes)

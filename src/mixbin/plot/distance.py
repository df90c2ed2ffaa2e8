"""The distance to binary points along a run, figures 2 and 3 of the paper."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.plot.curves import BLUE, checked_steps, limit, line, tidy, with_gaps, wrapped
from mixbin.plot.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class DistanceCurve:
    """What the figure of the distance shows."""

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
    """
    x = checked_steps(steps)
    y = with_gaps("distance", distance, x.shape)
    if np.any(np.diff(x) < 0):
        raise check.fail("steps", x, "in ascending order", "sort both arrays by steps")
    looked = ~np.isnan(y)
    if not looked.any() or y[looked].min() < 0 or y[looked].max() > 1:
        raise check.fail("distance", y, "numbers from 0 to 1, at least one")
    return DistanceCurve(steps=x[looked], distance=y[looked], title=title, xlabel=unit)


def distance(curve: DistanceCurve) -> "Figure":
    """Draw the distance along the steps, with a line at one half."""
    figure = new_figure(4.2, 3.0)
    axes = figure.subplots()
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
    return figure

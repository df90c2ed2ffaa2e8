"""Pictures about chosen rows: how the methods compare, and where the kept rows lie among all rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mixbin._validate import Floats
from mixbin.plot.curves import BLUE, GREY, ORANGE, SMALL_FONT, number, tidy, wrapped
from mixbin.plot.figure import new_figure
from mixbin.plot.selection import ALL_ROWS_COLOUR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGE = 0.005
"""This share of the points on each side may lie beyond the axes; such points are drawn at the edge."""


class Bar(NamedTuple):
    """A method in the picture: its error, and the spread of it over several draws.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.plot.Bar("random rows", 1.3, spread=0.1)
    Bar(name='random rows', value=1.3, spread=0.1, ours=False)
    """

    name: str
    value: float
    spread: float = 0.0
    ours: bool = False


def compared(bars: Sequence[Bar], label: str, width: float = 9.6) -> "Figure":
    """Draw the errors of several methods as dots on one axis, each with its spread; a line marks the first one.

    Examples
    --------
    >>> import mixbin as mb
    >>> bars = [mb.plot.Bar("all rows", 1.0), mb.plot.Bar("random rows", 1.3, spread=0.1)]
    >>> figure = mb.plot.compared(bars, "error on new rows")
    """
    figure = new_figure(width, 0.75 + 0.33 * len(bars))
    axes = figure.subplots()
    places = np.arange(len(bars))[::-1]
    axes.axvline(bars[0].value, color=GREY.colour, linestyle=":", linewidth=1.4)
    for place, bar in zip(places, bars, strict=True):
        colour = ORANGE.colour if bar.ours else BLUE.colour if bar.spread else GREY.colour
        axes.errorbar(bar.value, place, xerr=bar.spread or None, fmt="o", color=colour, markersize=7, capsize=4, elinewidth=1.6)
        axes.annotate(
            number(bar.value),
            (bar.value, place),
            (0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=SMALL_FONT,
            color=colour,
        )
    axes.set_ylim(-0.6, len(bars) - 0.25)
    tidy(axes)
    axes.set_yticks(places, [bar.name for bar in bars], fontsize=9)
    axes.grid(axis="x", color="0.5", alpha=0.25, linewidth=0.6)
    axes.set_xlabel(wrapped(label, int(10 * width)), fontsize=9)
    axes.margins(x=0.08)
    return figure


def where_kept(points: ArrayLike, kept: ArrayLike, shares: Sequence[float], n_kept: int) -> "Figure":
    """Draw rows in the plane of their first two principal components, and the kept ones among them.

    Parameters
    ----------
    points : array of shape (n, 2)
        Some of all rows.
    kept : array of shape (k, 2)
        Some or all of the kept rows.
    shares : pair of floats
        The share of the variance that each component has.
    n_kept : int
        How many rows were kept.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> points = np.random.default_rng(0).normal(size=(100, 2))
    >>> figure = mb.plot.where_kept(points, points[:5], shares=(0.6, 0.4), n_kept=5)
    >>> figure.axes[0].get_xlabel()
    'first principal component (60 % of the variance)'
    """
    rows, chosen = np.asarray(points, dtype=np.float64), np.asarray(kept, dtype=np.float64).reshape(-1, 2)
    low, high = (_edges(np.concatenate([rows, chosen])[:, i]) for i in (0, 1))
    figure = new_figure(6.0, 3.4)
    axes = figure.subplots()
    limits = np.array([low, high])
    inside, marked = (np.clip(it, limits[:, 0], limits[:, 1]) for it in (rows, chosen))
    axes.plot(*inside.T, ".", color=ALL_ROWS_COLOUR, markersize=3, label=f"{len(rows):,} of all rows", rasterized=False)
    size = 5.5 if len(chosen) < 200 else 3.0
    axes.plot(*marked.T, "o", color=BLUE.colour, markersize=size, markerfacecolor="none", label=f"the {n_kept:,} kept")
    tidy(axes)
    axes.set_xlabel(f"first principal component ({100 * shares[0]:.0f} % of the variance)", fontsize=9)
    axes.set_ylabel(f"second ({100 * shares[1]:.0f} %)", fontsize=9)
    figure.legend(loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    return figure


def _edges(x: Floats) -> tuple[float, float]:
    """Where the axis begins and ends: a few points far away do not push all others together."""
    low, high = np.quantile(x, [EDGE, 1 - EDGE]).tolist()
    room = 0.04 * ((high - low) or 1.0)
    return low - room, high + room

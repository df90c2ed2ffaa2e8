"""Draw the figures of ``mixbin.plot`` for a page: narrow enough for a phone if possible, with the numbers behind them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import plot
from mixbin.plot.curves import number
from mixbin.plot.selection import SelectionShares, distinct_labels, draw_shares, selection_shares
from mixbin.plot.structure import StructureMap
from mixbin.reporting.blocks import Drawing, Text
from mixbin.reporting.svg import Panel, box, curve_panels, inline
from mixbin.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NARROW = 4.9
"""A figure of this width in inches fits the screen of a phone without scaling."""


class Drawings:
    """Draws the figures of one page. Each gets its own prefix for SVG ids, which would otherwise clash."""

    def __init__(self) -> None:
        self.made = 0

    def path(self, result: Result) -> Drawing:
        """A figure of the path of a run."""
        figure = plot.trace(result)
        figure.set_size_inches(NARROW, figure.get_size_inches()[1])
        caption = (
            "The path of the search. Above: G, the validation loss; the colours are its stages. Then how far the point was from "
            "a yes-or-no one, and eps: the smaller, the stronger the penalty on fractions."
        )
        return self._drawing(figure, caption, curve_panels)

    def selection(self, data: Mapping[str, Any]) -> Drawing:
        """A figure of how the target is distributed over all rows and over the selected rows."""
        shares = shares_of(data)
        figure = draw_shares(shares)
        figure.set_size_inches(NARROW, 3.4)

        def panels(figure: "Figure") -> list[Panel]:
            return [_bars(figure, shares)]

        caption = "How the values of the target are spread over all candidate rows, and over those that were kept."
        return self._drawing(figure, caption, panels)

    def structures(self, maps: Sequence[StructureMap], caption: Text) -> Drawing:
        """A figure of which feature is in which group."""

        def panels(figure: "Figure") -> list[Panel]:
            return [_cells(axes, it) for axes, it in zip(figure.axes, maps, strict=False)]

        return self._drawing(plot.draw(*maps), caption, panels)

    def curves(self, figure: "Figure", caption: Text) -> Drawing:
        """Any other figure that consists of curves."""
        return self._drawing(figure, caption, curve_panels)

    def _drawing(self, figure: "Figure", caption: Text, panels: Any) -> Drawing:
        self.made += 1
        # Fix the layout now: the positions of the panels, read below, must be those in the SVG.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        svg = inline(figure, f"f{self.made}-", str(caption))
        return Drawing(svg, panels(figure), caption, round(float(figure.get_size_inches()[0]) * 72, 1))


def selection_data(theta: NDArray[Any], values: ArrayLike, name: str) -> dict[str, Any]:
    """The numbers of the figure of the selected rows, in a form for JSON. The infinite end of an open bin becomes None."""
    shares = selection_shares(np.asarray(theta) > 0, values, name)
    arrays = {side: getattr(shares, side).tolist() for side in ("low", "high", "all_rows", "selected")}
    ends = {side: [x if np.isfinite(x) else None for x in arrays[side]] for side in ("low", "high")}
    return arrays | ends | {"n_rows": shares.n_rows, "n_selected": shares.n_selected, "name": name}


def shares_of(data: Mapping[str, Any]) -> SelectionShares:
    """The inverse of ``selection_data``."""
    return SelectionShares(
        low=np.array([-np.inf if x is None else x for x in data["low"]], dtype=np.float64),
        high=np.array([np.inf if x is None else x for x in data["high"]], dtype=np.float64),
        all_rows=np.array(data["all_rows"], dtype=np.float64),
        selected=np.array(data["selected"], dtype=np.float64),
        n_rows=data["n_rows"],
        n_selected=data["n_selected"],
        name=data["name"],
    )


def _bars(figure: "Figure", shares: SelectionShares) -> Panel:
    axes = figure.axes[0]
    n = shares.low.size
    if shares.single_values:
        names, edges = distinct_labels(shares.low), (np.arange(n + 1) - 0.5).tolist()
    else:
        names, edges = [_span(low, high) for low, high in zip(shares.low, shares.high, strict=True)], list(range(n + 1))
    return {
        "kind": "bars",
        "box": box(axes),
        "x": {"name": shares.name, "range": list(map(float, axes.get_xlim()))},
        "edges": edges,
        "names": names,
        "values": [
            {"name": f"all {shares.n_rows:,} rows", "shares": [f"{100 * x:.3g} %" for x in shares.all_rows.tolist()]},
            {"name": f"the {shares.n_selected:,} selected", "shares": [f"{100 * x:.3g} %" for x in shares.selected.tolist()]},
        ],
    }


def _span(low: float, high: float) -> str:
    if np.isinf(low):
        return f"below {number(high)}"
    return f"{number(low)} or more" if np.isinf(high) else f"{number(low)} to {number(high)}"


def _cells(axes: Any, it: StructureMap) -> Panel:
    return {
        "kind": "cells",
        "box": box(axes),
        "title": it.title,
        "rows": list(it.row_labels),
        "columns": list(it.column_labels),
        "cells": [[float(f"{x:.3g}") for x in row] for row in it.matrix.tolist()],
    }

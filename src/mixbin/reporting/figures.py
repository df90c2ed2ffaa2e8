"""Draw the figures of ``mixbin.plot`` for a page: narrow enough for a phone if possible, with the numbers behind them.

A figure is an <svg> element with the colours of the page and ids of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from mixbin import plot
from mixbin.plot.curves import number
from mixbin.plot.figure import new_figure, svg_text
from mixbin.plot.selection import SelectionShares, distinct_labels, draw_shares, selection_shares
from mixbin.plot.structure import StructureMap
from mixbin.plot.trace import trace_figure
from mixbin.reporting.blocks import Drawing, Text
from mixbin.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NARROW = 4.9
"""A figure of this width in inches fits the screen of a phone without scaling."""
WIDE = 9.6
"""A figure of this width fills a page on a wide screen."""
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
THEME = {
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#737373": "var(--grey)",
    "#b8b8b8": "var(--bar)",
    "#d55e00": "var(--orange)",
    "#0072b2": "var(--blue)",
    "#009e73": "var(--green)",
    "#aa4a88": "var(--purple)",
}
"""The colours of ``mixbin.plot`` and the CSS variables that replace them, which differ between light and dark mode."""
DIGITS = 6
"""The numbers that the page shows when the reader points at a curve have this many digits."""

Panel = dict[str, Any]


class Drawings:
    """Draws the figures of one page. Each gets its own prefix for SVG ids, which would otherwise clash."""

    def __init__(self) -> None:
        self.made = 0

    def path(self, result: Result) -> Drawing:
        """A figure of the path of a run."""
        figure = trace_figure(result)
        figure.set_size_inches(NARROW, figure.get_size_inches()[1])
        caption = (
            "The path of the search. First G, which the search lowers; the colours are its stages. Then how far the point was "
            "from a yes-or-no one, and eps: the smaller, the stronger the penalty on fractions."
        )
        wide = trace_figure(result, across=True)
        wide.set_size_inches(WIDE, 2.9)
        return self.curves(wide, caption, narrow=figure)

    def selection(self, data: Mapping[str, Any]) -> Drawing:
        """A figure of how the target is distributed over all rows and over the selected rows."""
        shares = shares_of(data)
        figure = draw_shares(shares)
        figure.set_size_inches(NARROW, 3.4)

        def panels(figure: Figure) -> list[Panel]:
            return [_bars(figure, shares)]

        caption = "How the values of the target are spread over all candidate rows, and over those that were kept."
        return self._drawing(figure, caption, panels)

    def quality(self, counts: Mapping[str, Sequence[int]]) -> Drawing:
        """A histogram of the quality of labels from 0 to 1: all rows, and the doubtful ones among them."""
        every, doubtful = counts["all"], counts["suspects"]
        bins, figure = len(every), new_figure(NARROW, 2.6)
        axes = figure.subplots()
        edges = np.linspace(0, 1, bins + 1)
        axes.bar(edges[:-1], every, 1 / bins, align="edge", color="#b8b8b8", edgecolor="#ffffff", label="all rows")
        axes.bar(edges[:-1], doubtful, 1 / bins, align="edge", color="#d55e00", edgecolor="#ffffff", label="doubtful")
        axes.set(xlim=(0, 1), xlabel="quality of the label", ylabel="rows")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper center")

        def panels(figure: Figure) -> list[Panel]:
            values = (("all rows", every), ("doubtful", doubtful))
            bars = {"edges": edges.tolist(), "names": [_span(edges[i], edges[i + 1]) for i in range(bins)]}
            named = [{"name": name, "shares": [f"{x:,}" for x in of]} for name, of in values]
            x = {"name": "quality", "range": [0.0, 1.0]}
            return [{"kind": "bars", "box": box(figure.axes[0]), "x": x, **bars, "values": named}]

        return self._drawing(
            figure, "How many labels have which quality; below one half another class is the more likely.", panels
        )

    def structures(self, maps: Sequence[StructureMap], caption: Text) -> Drawing:
        """A figure of which feature is in which group."""

        def panels(figure: Figure) -> list[Panel]:
            return [_cells(axes, it) for axes, it in zip(figure.axes, maps, strict=False)]

        return self._drawing(plot.draw(*maps), caption, panels)

    def curves(self, figure: Figure, caption: Text, narrow: Figure | None = None) -> Drawing:
        """Any other figure that consists of curves; ``narrow`` is drawn for narrow screens."""
        drawing = self._drawing(figure, caption, curve_panels)
        return drawing if narrow is None else replace(drawing, narrow=self._drawing(narrow, caption, curve_panels))

    def _drawing(self, figure: Figure, caption: Text, panels: Any) -> Drawing:
        self.made += 1
        # The SVG first: it fixes the positions of the panels.
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


def _bars(figure: Figure, shares: SelectionShares) -> Panel:
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


def inline(figure: Figure, prefix: str, label: str) -> Markup:
    """The figure as an <svg> element. ``prefix`` keeps its ids apart from those of other figures on the page."""
    root = ElementTree.fromstring(svg_text(figure))
    for parent in list(root.iter()):
        for child in list(parent):
            # The style sheet in the file would apply to the whole page. The page has the same rules for its figures only.
            if child.tag in (f"{SVG}metadata", f"{SVG}style"):
                parent.remove(child)
    for element in root.iter():
        _own(element, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", label)
    ElementTree.register_namespace("", SVG[1:-1])
    text = ElementTree.tostring(root, encoding="unicode")
    # This markup may stay unescaped: matplotlib drew it, and ElementTree has escaped all text in it.
    return Markup(re.sub(r'(<svg\b[^>]*?) xmlns="[^"]*"', r"\1", text, count=1))


def _own(element: ElementTree.Element, prefix: str) -> None:
    attributes = element.attrib
    if "id" in attributes:
        attributes["id"] = prefix + attributes["id"]
    if LINK in attributes:
        attributes["href"] = "#" + prefix + attributes.pop(LINK)[1:] if attributes[LINK].startswith("#") else attributes.pop(LINK)
    for name, value in attributes.items():
        if "url(#" in value:
            attributes[name] = value.replace("url(#", f"url(#{prefix}")
    if "d" in attributes:
        attributes["d"] = " ".join(attributes["d"].split())
    if "style" in attributes:
        style = re.sub(r"font-family: [^;]*;? ?", "", attributes["style"])
        attributes["style"] = re.sub(r"(fill|stroke): (#[0-9a-f]{6})", _themed, style)
    if element.tag == f"{SVG}text" and "fill" not in attributes.get("style", ""):
        attributes["fill"] = THEME["#000000"]
    if element.text is not None and not element.text.strip():
        element.text = None
    if element.tail is not None and not element.tail.strip():
        element.tail = "\n" if element.tag == f"{SVG}path" else None


def _themed(match: re.Match[str]) -> str:
    return f"{match[1]}: {THEME.get(match[2], match[2])}"


def box(axes: Axes) -> list[float]:
    """The edges of a panel in the units of the SVG: left, top, right, bottom."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    across, down = figure.get_size_inches() * 72
    place = axes.get_position()
    return [round(float(x), 2) for x in (place.x0 * across, (1 - place.y1) * down, place.x1 * across, (1 - place.y0) * down)]


def curve_panels(figure: Figure) -> list[Panel]:
    """The curves of a figure, with the data to find the point that the reader points at. The layout must be final."""
    return [panel for axes in figure.axes if (panel := _curves(axes, _legend(figure)))["lines"]]


def _legend(figure: Figure) -> dict[str, str]:
    """The label of each colour, from the curves that have a label."""
    named = [line for axes in figure.axes for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    return {_colour(line.get_color()): str(line.get_label()) for line in named}


def _curves(axes: Axes, legend: dict[str, str]) -> Panel:
    lines: list[Panel] = []
    for line in axes.get_lines():
        # Lines that only mark a height or a place are not drawn in data coordinates.
        if line.get_transform() != axes.transData or line.get_linestyle() == "None":
            continue
        x, y = (np.asarray(values, dtype=np.float64) for values in line.get_data())
        colour = _colour(line.get_color())
        shown = np.isfinite(x) & np.isfinite(y)
        if lines and shown.any() and (_numbers(x[:1]), _numbers(y[:1])) == (lines[-1]["x"][-1:], lines[-1]["y"][-1:]):
            # A path that goes on in another colour repeats the last point of the line before. That line already has the point.
            shown[0] = False
        name = legend.get(colour, "") or plain(axes.get_ylabel())
        lines.append({"name": name, "colour": THEME.get(colour, colour), "x": _numbers(x[shown]), "y": _numbers(y[shown])})
    return {
        "kind": "curves",
        "box": box(axes),
        "x": {"name": _label(axes), "range": list(map(float, axes.get_xlim())), "log": axes.get_xscale() == "log"},
        "y": {"name": plain(axes.get_ylabel()), "range": list(map(float, axes.get_ylim())), "log": axes.get_yscale() == "log"},
        "lines": [line for line in lines if line["x"]],
    }


def _label(axes: Axes) -> str:
    """The label of the horizontal axis. In a column of panels only the last has one, so look at the others too."""
    shared = [axes, *axes.get_shared_x_axes().get_siblings(axes)]
    return next((plain(it.get_xlabel()) for it in shared if it.get_xlabel()), "")


def plain(text: str) -> str:
    """A label without the TeX marks of a formula."""
    return " ".join(re.sub(r"[${}]", "", text).split())


def _colour(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour)


def _numbers(values: Any) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]

"""Put a matplotlib figure into a page: with the colours of the page, unique ids, and the numbers behind its curves."""

import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from mixbin.plot.figure import svg_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def inline(figure: "Figure", prefix: str, label: str) -> Markup:
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


def box(axes: "Axes") -> list[float]:
    """The edges of a panel in the units of the SVG: left, top, right, bottom."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    across, down = figure.get_size_inches() * 72
    place = axes.get_position()
    return [round(float(x), 2) for x in (place.x0 * across, (1 - place.y1) * down, place.x1 * across, (1 - place.y0) * down)]


def curve_panels(figure: "Figure") -> list[Panel]:
    """The curves of a figure, with the data to find the point that the reader points at. The layout must be final."""
    return [panel for axes in figure.axes if (panel := _curves(axes, _legend(figure)))["lines"]]


def _legend(figure: "Figure") -> dict[str, str]:
    """The label of each colour, from the curves that have a label."""
    named = [line for axes in figure.axes for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    return {_colour(line.get_color()): str(line.get_label()) for line in named}


def _curves(axes: "Axes", legend: dict[str, str]) -> Panel:
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


def _label(axes: "Axes") -> str:
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

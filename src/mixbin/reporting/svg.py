"""A matplotlib figure as part of a page: colours that follow the page's, ids of its own, and the numbers behind its curves."""

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
"""The colours of ``mixbin.plot``, by those of the page, which differ between light and dark."""
DIGITS = 6
"""Of a number that is shown where one points."""

Panel = dict[str, Any]


def inline(figure: "Figure", prefix: str, label: str) -> Markup:
    """The figure as an <svg> that can stand in a page beside others."""
    root = ElementTree.fromstring(svg_text(figure))
    for parent in list(root.iter()):
        for child in list(parent):
            # The style sheet of the file would hold for the whole page, which has these rules for its figures.
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
    # The only markup that is not escaped: made by matplotlib, and written by a library that escapes all text in it.
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
    """Where the panel is, in the units of the SVG: left, top, right, bottom."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    across, down = figure.get_size_inches() * 72
    place = axes.get_position()
    return [round(float(x), 2) for x in (place.x0 * across, (1 - place.y1) * down, place.x1 * across, (1 - place.y0) * down)]


def curve_panels(figure: "Figure") -> list[Panel]:
    """The curves of a figure whose layout is done, with what is needed to find the point that one points at."""
    return [panel for axes in figure.axes if (panel := _curves(axes, _legend(figure)))["lines"]]


def _legend(figure: "Figure") -> dict[str, str]:
    """What a colour stands for, of the curves that are named."""
    named = [line for axes in figure.axes for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    return {_colour(line.get_color()): str(line.get_label()) for line in named}


def _curves(axes: "Axes", legend: dict[str, str]) -> Panel:
    lines: list[Panel] = []
    for line in axes.get_lines():
        # Lines that mark a height or a place are not in the coordinates of the data.
        if line.get_transform() != axes.transData or line.get_linestyle() == "None":
            continue
        x, y = (np.asarray(values, dtype=np.float64) for values in line.get_data())
        colour = _colour(line.get_color())
        shown = np.isfinite(x) & np.isfinite(y)
        if lines and shown.any() and (_numbers(x[:1]), _numbers(y[:1])) == (lines[-1]["x"][-1:], lines[-1]["y"][-1:]):
            # A path that goes on in another colour begins with the last point of the one before, which is told there.
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
    """Of the horizontal axis, which in a column of panels only the last names."""
    shared = [axes, *axes.get_shared_x_axes().get_siblings(axes)]
    return next((plain(it.get_xlabel()) for it in shared if it.get_xlabel()), "")


def plain(text: str) -> str:
    """A label without the marks of a formula."""
    return " ".join(re.sub(r"[${}]", "", text).split())


def _colour(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour)


def _numbers(values: Any) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]

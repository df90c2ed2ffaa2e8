"""Figures made without pyplot: they open no window, share no global state, and can be drawn in threads."""

import io
import re
import warnings
from typing import TYPE_CHECKING, Any, cast

from mixbin import _validate as check

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that can occur in a user's names but not in XML."""


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches; a notebook displays it when a cell returns it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # attaches itself to the figure, which cannot be drawn or saved without a canvas
    return figure


def first_axes(figure: "Figure") -> "Axes":
    """The first axes of a figure of our own, which a notebook shows as the whole figure; ``.figure.axes`` are all of them."""
    axes: Any = figure.axes[0]

    def png() -> bytes:
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=100)
        return out.getvalue()

    axes._repr_png_ = png
    return cast("Axes", axes)


def checked_axes(ax: object) -> "Axes":
    """``ax``, if it is Axes to draw in."""
    if not hasattr(ax, "get_figure") or not hasattr(ax, "plot"):
        raise check.fail("ax", ax, "Axes of matplotlib, or None", "pass those of plt.subplots(), or leave it out")
    return cast("Axes", ax)


def svg_text(figure: "Figure", about: str | None = None) -> str:
    """The figure as SVG, with ``about`` in its metadata. Text stays text, and the same figure gives the same bytes.

    The layout of the figure is final afterwards.
    """
    import matplotlib

    out = io.StringIO()
    no_layout: Any = {"figure.autolayout": False, "figure.constrained_layout.use": False}
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mixbin"} | no_layout), warnings.catch_warnings():
        # Ignore matplotlib's warning about letters that its own font lacks: the text stays text, and the reader's font has them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        if (engine := figure.get_layout_engine()) is not None:
            # matplotlib would draw the whole figure once more for its layout.
            engine.execute(figure)
            figure.set_layout_engine(None)  # not "none", which leaves an engine in its place
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "mixbin", "Description": about})
    return NO_XML.sub("\N{REPLACEMENT CHARACTER}", out.getvalue())

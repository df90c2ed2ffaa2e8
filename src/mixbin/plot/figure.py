"""Figures without pyplot: no window, no global state, safe in threads."""

import io
import re
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that a name may have and XML may not."""


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches; notebooks show it as it is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def svg_text(figure: "Figure", about: str | None = None) -> str:
    """The figure as SVG: its text stays text, and the same figure gives the same bytes; ``about`` is kept in its metadata."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mixbin"}), warnings.catch_warnings():
        # Text stays text, so that the reader's font has the letters that matplotlib's lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "mixbin", "Description": about})
    return NO_XML.sub("\N{REPLACEMENT CHARACTER}", out.getvalue())

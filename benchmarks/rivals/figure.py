"""Quality against time: one panel per table, one point per method, at its mean over the seeds."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.rivals import compare
from benchmarks.rivals.cells import Family, Record
from matplotlib.ticker import NullFormatter

from mixbin._files import replacing
from mixbin.plot.figure import new_figure, svg_text

MOST_PANELS = 9
LEAST_SECONDS = 1e-3
"""Shorter times are drawn here: the axis is logarithmic."""
COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf", "#ff7f0e")
MARKERS = "osv^D"
TITLE_WIDTH = 36
"""Letters in a line of a title."""


def points(family: Family, records: Sequence[Record]) -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """(seconds, first quantity) of each method, by table and budget; what is drawn, without pixels."""
    key = family.quantities[0].key
    out = {}
    for place, methods in compare.good(records).items():
        some = {}
        for method, of in methods.items():
            its = [it for it in of.values() if key in it["measures"]]
            if its and method not in family.references:
                spent = compare.mean([it["seconds"] for it in its])
                some[method] = max(spent, LEAST_SECONDS), compare.mean([it["measures"][key] for it in its])
        if len(some) > 1:
            out[place] = some
    return out


def quality_against_time(family: Family, records: Sequence[Record], file: Path) -> bool:
    """Draw into an SVG file; False if there is nothing to draw."""
    panels = dict(list(points(family, records).items())[:MOST_PANELS])
    if not panels:
        return False
    methods = list(dict.fromkeys(method for some in panels.values() for method in some))
    methods.sort(key=lambda method: method != family.ours)
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(max(7.0, 3.3 * columns), 2.6 * rows + 0.3 * (1 + len(methods) // 3))
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax, ((table, budget), some) in zip(axes.flat, panels.items(), strict=False):
        for place, method in enumerate(methods):
            if method in some:
                ax.plot(*some[method], MARKERS[place // len(COLOURS)], color=COLOURS[place % len(COLOURS)],
                        markersize=8 if method == family.ours else 5, label=method)  # fmt: skip
        title = textwrap.fill(f"{table}, {budget}" if budget else table, TITLE_WIDTH)
        ax.set(xscale="log", title=title, xlabel="seconds", ylabel=textwrap.fill(family.quantities[0].title, TITLE_WIDTH))
        ax.title.set_fontsize(9)
        ax.xaxis.label.set_fontsize(8)
        ax.yaxis.label.set_fontsize(8)
        ax.tick_params(labelsize=8)
        # At least two labels of powers of ten, and no others: those between them overlap.
        low, high = ax.get_xlim()
        if np.floor(np.log10(high)) <= np.ceil(np.log10(low)):
            ax.set_xlim(10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(high)))
        ax.xaxis.set_minor_formatter(NullFormatter())
        values = [value for _, value in some.values()]
        if family.quantities[0].less and min(values) > 0 and max(values) > 3 * min(values):
            ax.set_yscale("log")
    for ax in list(axes.flat)[len(panels) :]:
        ax.remove()
    lines = [
        axes.flat[0].plot([], [], MARKERS[i // len(COLOURS)], color=COLOURS[i % len(COLOURS)])[0] for i in range(len(methods))
    ]
    figure.legend(lines, methods, loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    with replacing(file) as out:
        out.write(svg_text(figure, f"{family.title}: {family.quantities[0].title} against seconds").encode())
    return True

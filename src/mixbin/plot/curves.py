"""What the figures with curves share: colours, lines that can be told apart in grey, thinning of long curves, tick labels."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._validate import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 2000
"""A curve with more points than this is thinned to its ends and the extreme points of each stretch."""
MARKERS = 9
"""About this many markers are set along a curve; they tell curves apart in print without colours."""
LOG_AXIS_FROM = 10.0
"""Curves are drawn on a log axis if their largest value is more than this many times their smallest."""
SMALL_FONT = 8
"""Size in points of all texts except titles and axis labels."""


class Look(NamedTuple):
    """How a curve is drawn. The colours are those of Okabe and Ito, which can be told apart with every kind of colour vision."""

    colour: str
    line: str | tuple[int, tuple[float, ...]]
    marker: str


ORANGE = Look("#D55E00", "-", "o")
BLUE = Look("#0072B2", (0, (4, 1.5)), "s")
GREEN = Look("#009E73", "-", "^")
PURPLE = Look("#AA4A88", "-", "D")
"""Darker than Okabe and Ito's purple, which is too pale for a line on white."""
GREY = Look("0.45", "-", "o")
"""For a panel with one curve only, and for limits; readable on white and on black."""

LARGEST_DRAWN = 1e100
"""Values beyond this are drawn as infinite: matplotlib squares coordinates, and the squares of larger ones overflow."""
LONGEST_TEXT = 300
"""Titles and labels are cut after this many letters; a figure has room for no more."""


def with_gaps(name: str, value: object, shape: tuple[int, ...]) -> Floats:
    """``value`` as a curve of that shape, some of whose numbers may be missing or infinite."""
    raw = check.loose_array(name, value, f"an array of numbers of shape {shape}, one per step")
    if raw.dtype.kind not in "buif" or raw.shape != shape:
        raise check.fail(name, value, f"an array of numbers of shape {shape}, one per step")
    with np.errstate(over="ignore"):
        y = raw.astype(np.float64)

    return np.where(np.abs(y) > LARGEST_DRAWN, np.copysign(np.inf, y), y)


def checked_steps(steps: ArrayLike) -> Floats:
    """The horizontal coordinates of a curve, checked."""
    x = check.array("steps", steps, ndim=1)
    if x.size and np.abs(x).max() > LARGEST_DRAWN:
        raise check.fail("steps", x, f"numbers of at most {LARGEST_DRAWN:g}", "count in a larger unit")
    return x


def thin(y: Floats, most: int = MOST_POINTS, keep: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
    """The indices of the points to draw: both ends, ``keep``, and of each stretch the lowest, the highest and a missing point."""
    if y.size <= most:
        return np.arange(y.size, dtype=np.intp)
    kept = np.array([0, y.size - 1], dtype=np.intp)
    if keep is not None and keep.size <= most // 2:
        kept = np.concatenate([kept, keep])
    missing = ~np.isfinite(y)
    lowest, highest = np.where(missing, np.inf, y), np.where(missing, -np.inf, y)
    first = np.unique(np.linspace(0, y.size, max((most - kept.size) // 3, 1), endpoint=False).astype(np.intp))
    chosen = [kept]
    for begin, end in zip(first, np.append(first[1:], y.size), strict=True):
        part = slice(begin, end)
        picked = [int(np.argmin(lowest[part])), int(np.argmax(highest[part]))]
        if missing[part].any():
            picked.append(int(np.argmax(missing[part])))
        chosen.append(begin + np.array(picked, dtype=np.intp))
    return np.unique(np.concatenate(chosen))


def line(axes: Axes, x: Floats, y: Floats, look: Look, label: str = "", joined: bool = False) -> None:
    """Draw a curve, with gaps where it is not finite; a point between two gaps becomes a dot.

    With ``joined``, the first point belongs to the curve before this one and has no marker.
    """
    index = thin(y)
    x, y = x[index], np.where(np.isfinite(y[index]), y[index], np.nan)
    finite = np.flatnonzero(np.isfinite(y))[int(joined) :]
    marks = finite[:: max(1, -(-finite.size // MARKERS))].tolist()
    style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markersize": 3.5}
    axes.plot(x, y, linestyle=look.line, linewidth=1.4, markevery=marks, label=label or "_", **style)
    padded = np.concatenate([[np.nan], y, [np.nan]])
    alone = np.isfinite(y) & np.isnan(padded[:-2]) & np.isnan(padded[2:])
    if alone.any():
        axes.plot(x[alone], y[alone], linestyle="none", **style)


def limit(axes: Axes, height: float, label: str) -> None:
    """Draw a dotted horizontal line with its name to the right of the panel, where it hides no curve."""
    axes.axhline(height, color=GREY.colour, linestyle=":", linewidth=1.4, zorder=3)
    axes.annotate(
        label,
        (1.0, height),
        xycoords=("axes fraction", "data"),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL_FONT,
        annotation_clip=False,
    )


def needs_log_axis(*curves: Floats) -> bool:
    """Whether these curves are positive and span such a range that only a log axis shows all of them."""
    values = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
    return bool(values.size and values.min() > 0 and values.max() / LOG_AXIS_FROM > values.min())


def tidy(axes: Axes, across: int = 5, up: int = 5) -> None:
    """Set at most ``across`` and ``up`` steps between ticks, with plain numbers, a faint grid and no frame."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    for axis, many in ((axes.xaxis, across), (axes.yaxis, up)):
        if axis.get_scale() == "log":
            low, high = np.log10(axis.get_view_interval())
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high - low < 2 else (1.0,), numticks=many + 1))
            axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(nbins=many, steps=[1, 2, 2.5, 5, 10]))
            axis.set_major_formatter(FuncFormatter(lambda value, _, axis=axis: tick_label(value, axis.get_majorticklocs())))
    axes.tick_params(labelsize=SMALL_FONT, length=2)
    axes.grid(axis="y", color="0.5", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def tick_label(value: float, ticks: Floats) -> str:
    """The text of one of several evenly spaced ticks, with just enough digits to tell it from the next: 25,000, 0.05, 2.5e7."""
    largest = float(np.max(np.abs(ticks)))
    step = float(np.min(np.diff(ticks))) if len(ticks) > 1 else largest
    if abs(value) < 1e-9 * step or step == 0:
        return "0"
    # One digit more than the first digit of the step, because a step can be 2.5.
    if 1e-4 <= largest < 1e7:
        decimals = max(0, 1 - int(np.floor(np.log10(step) + 1e-9)))
        return _stripped(f"{value:{_comma(largest)}.{decimals}f}")
    return _scientific(value, int(np.ceil(np.log10(largest / step))) + 2)


def number(value: float) -> str:
    """A number as text with four digits, or without decimals from 10,000 on: 25,341 and 0.05, 2.5e7 and 2e-5."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    if not 1e-3 <= abs(value) < 1e6:
        return _scientific(value, 4)
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _comma(largest: float) -> str:
    """The thousands separator: a comma from 10,000 on, none below, so that years have none."""
    return "," if largest >= 1e4 else ""


def _scientific(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{min(digits, 17) - 1}e}".partition("e")
    return f"{_stripped(mantissa)}e{int(exponent)}"


def _stripped(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def as_text(name: object) -> str:
    """A user's name for something as text: numbers and tuples are names, too, and some objects cannot be rendered."""
    try:
        return str(name)
    except Exception:  # a user's __str__ may raise anything
        return check.shown(name)


def wrapped(text: str, width: int, longest: int = LONGEST_TEXT) -> str:
    """The text broken into lines of at most ``width`` letters, and cut after ``longest`` letters."""
    text = text if isinstance(text, str) else check.shown(text)
    return "\n".join(textwrap.wrap(text if len(text) <= longest else text[: longest - 1] + "…", width))

"""Histograms of a quantity over all rows of a table and over the selected rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.plot.curves import BLUE, as_text, number, tidy, wrapped
from mixbin.plot.figure import checked_axes, first_axes, new_figure
from mixbin.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SINGLE_VALUES = 20
"""If there are at most this many distinct values, each has a bar of its own."""
MOST_BINS = 30
"""The largest number of bins, about."""
HEAVY_TAIL = 10.0
"""Values have heavy tails if their range is at least this many times the range of the middle four fifths of them."""
OPEN_BIN_SHARE = 0.02
"""About this share of the rows goes into an open bin at either end."""
LETTERS_BELOW_AXIS = 60
"""Tick labels of up to this many letters in all fit below the axis."""
ALL_ROWS_COLOUR = "0.72"
"""The grey of the bars for all rows."""


@dataclass(frozen=True, eq=False)
class SelectionShares:
    """What the figure of a selection shows: the shares of all rows and of the selected rows in the same bins.

    Examples
    --------
    >>> import mixbin as mb
    >>> shares = mb.plot.selection_shares([True, False, True, False], [1.0, 2.0, 2.0, 3.0], name="price")
    >>> shares.name, shares.n_selected, shares.single_values
    ('price', 2, True)
    """

    low: Floats
    """The lower edge of each bin, which belongs to the bin; -inf for an open first bin."""
    high: Floats
    """The upper edge of each bin, which belongs to the next bin, or to the bin itself if it is the last; inf for an open last
    bin. Equal to ``low`` for a bin of one value."""
    all_rows: Floats
    """The share of all rows in each bin; sums to 1."""
    selected: Floats
    """The share of the selected rows in each bin; sums to 1, or to 0 if no row is selected."""
    n_rows: int
    n_selected: int
    name: str

    @property
    def single_values(self) -> bool:
        """Whether each bin holds a single value."""
        return bool(np.all(self.low == self.high))


def selection_shares(theta: ArrayLike, values: ArrayLike | None = None, name: str = "") -> SelectionShares:
    """The shares of all rows and of the selected rows in the bins of a histogram.

    Parameters
    ----------
    theta : bool array of shape (m,)
        Which rows were selected.
    values : array of shape (m,), optional
        A quantity of each row, such as the target; by default the row's number, from 0. Up to 20 distinct values get a bin each.
        Heavy tails get bins that grow (1, 2, 5, 10, ...), or one open bin if the values are far from 0.
    name : str
        The name of the quantity, for the axis.

    Examples
    --------
    >>> import mixbin as mb
    >>> shares = mb.plot.selection_shares([True, False, True, False], [1.0, 2.0, 2.0, 3.0])
    >>> shares.low, shares.all_rows, shares.selected
    (array([1., 2., 3.]), array([0.25, 0.5 , 0.25]), array([0.5, 0.5, 0. ]))
    """
    return _shares("theta", theta, values, name)


def _shares(argument: str, mask: ArrayLike, values: ArrayLike | None, name: str) -> SelectionShares:
    """``selection_shares``; ``argument`` is what errors call the mask, since two public functions take one."""
    raw = check.loose_array(argument, mask, "a mask of shape (m,) with an entry per row of the table")
    if raw.ndim != 1 or raw.size == 0:
        raise check.fail(argument, mask, "a mask of shape (m,) with an entry per row of the table")
    chosen = check.binary(argument, raw, shape=raw.shape)
    if values is None:
        x, name = np.arange(raw.size, dtype=np.float64), name or "row number, from 0"
    else:
        x = check.array("values", values, shape=raw.shape, remedy="pass one number per row of the table")
    low, high, bins = _bins(x)
    counts = [np.bincount(bins[rows], minlength=low.size).astype(np.float64) for rows in (slice(None), chosen)]
    all_rows, selected = (count / max(float(count.sum()), 1.0) for count in counts)
    return SelectionShares(low, high, all_rows, selected, raw.size, int(np.count_nonzero(chosen)), name)


def _bins(x: Floats) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """The lower and upper edges of bins for these values, and the bin of each value."""
    distinct, bins = np.unique(x, return_inverse=True)
    if distinct.size <= MOST_SINGLE_VALUES:
        return distinct, distinct, bins.astype(np.intp)
    edges = _edges(x)
    # Assign values by the inner edges only, so that every value gets a bin even if rounding moved an outer edge past it.
    return edges[:-1], edges[1:], np.searchsorted(edges[1:-1], x, side="right")


def _edges(x: Floats) -> Floats:
    least, most = float(x.min()), float(x.max())
    # This method returns quantiles that are values themselves: interpolating between two large values could overflow.
    tail_low, low, high, tail_high = np.quantile(
        x, [OPEN_BIN_SHARE, 0.1, 0.9, 1 - OPEN_BIN_SHARE], method="inverted_cdf"
    ).tolist()
    with np.errstate(over="ignore"):
        reach, middle, inner = np.subtract([most, high, tail_high], [least, low, tail_low]).tolist()
    if reach < HEAVY_TAIL * middle and np.isfinite(reach):
        return _even(least, most)
    growing = _growing(x)
    of_the_middle = np.searchsorted(growing, [low, high])
    if low <= 0 <= high or of_the_middle[1] - of_the_middle[0] > 2 or not 0 < inner < np.inf:
        return growing
    even = _even(tail_low, tail_high)
    below, above = ([-np.inf] if least < even[0] else []), ([np.inf] if most > even[-1] else [])
    return np.concatenate([below, even, above])


def _even(least: float, most: float) -> Floats:
    """Evenly spaced edges at multiples of a round number, from at most ``least`` to above ``most``."""
    rough = (most - least) / (MOST_BINS - 2)
    if rough < 1e-300:
        return np.linspace(least, most, 3)
    power = int(np.floor(np.log10(rough)))
    factor = next(factor for factor in (1, 2, 5, 10, 20) if factor * 10.0**power >= rough)
    first = np.floor(least / (factor * 10.0**power))
    multiples = factor * (first + np.arange(MOST_BINS + 2))
    # Divide by 10, do not multiply by 0.1: 3 / 10 is the number that people write as 0.3, 3 * 0.1 is not.
    edges = np.unique(multiples * 10.0**power if power >= 0 else multiples / 10.0**-power)
    return edges[: int(np.searchsorted(edges, most, side="right")) + 1]


def _growing(x: Floats) -> Floats:
    """Edges at 0, ±1, ±2, ±5, ±10, ... times a power of ten below which few values lie, on those sides of 0 that have values."""
    size = np.abs(x[x != 0])
    first, last = np.floor(np.log10([np.quantile(size, 0.05, method="inverted_cdf"), size.max()])).astype(int).tolist()
    factors: tuple[float, ...] = (1.0, 2.0, 5.0)
    if 3 * (last - first + 1) > MOST_BINS / (1 if x.min() >= 0 or x.max() <= 0 else 2):
        factors = (1.0,)
        first = max(first, last - MOST_BINS // 2 + 2)
    with np.errstate(over="ignore"):
        sizes = np.array([factor * 10.0**power for power in range(first, last + 1) for factor in factors] + [np.inf])
    # The axis ends at the first edge above all values; if none of the edges so far is, that is the next power of ten.
    if last < 308:
        sizes[-1] = 10.0 ** (last + 1)
    parts = [np.zeros(1)]
    # >= and not >: if there are zeros beside negative values, they need a bin above 0.
    if x.max() >= 0:
        parts.append(sizes[: int(np.searchsorted(sizes, x.max(), side="right")) + 1])
    if x.min() < 0:
        parts.append(-sizes[: int(np.searchsorted(sizes, -x.min(), side="left")) + 1])
    return np.unique(np.concatenate(parts))


def selection(result: Result | ArrayLike, values: ArrayLike | None = None, name: str = "", *, ax: Axes | None = None) -> Axes:
    """Draw the histograms of a quantity over all rows and over the selected rows; see ``selection_shares``.

    Parameters
    ----------
    result : Result, or bool array of shape (m,)
        What a method returned for a problem of rows, or which rows were selected, such as ``support_`` of an estimator.
    values : array of shape (m,), optional
        A quantity of each row, such as the target; by default the row's number.
    name : str
        The name of the quantity, for the axis.
    ax : Axes, optional
        Where to draw; by default a figure of its own.

    Returns
    -------
    Axes
        The axes; ``.figure`` is the figure.

    Examples
    --------
    >>> import mixbin as mb
    >>> axes = mb.plot.selection([True, False, True, False], [1.0, 2.0, 2.0, 3.0], name="price")
    >>> axes.get_xlabel()
    'price'
    """
    shares = _shares("result", result.theta if isinstance(result, Result) else result, values, name)
    if ax is None:
        return first_axes(draw_shares(shares))
    axes = checked_axes(ax)
    _draw(axes, shares)
    axes.legend(ncols=2, fontsize=9, frameon=False)
    return axes


def draw_shares(shares: SelectionShares) -> Figure:
    """Draw the histograms of shares that ``selection_shares`` has computed."""
    figure = new_figure(6.0, 3.4)
    _draw(figure.subplots(), shares)
    figure.legend(loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    return figure


def _draw(axes: Axes, shares: SelectionShares) -> None:
    all_label, selected_label = f"all {shares.n_rows:,} rows", f"the {shares.n_selected:,} selected"
    edge: dict[str, Any] = {"edgecolor": BLUE.colour, "linewidth": 1.4}
    n_bins = shares.low.size
    if shares.single_values:
        at = np.arange(n_bins)
        axes.bar(at - 0.2, 100 * shares.all_rows, 0.4, color=ALL_ROWS_COLOUR, label=all_label)
        axes.bar(at + 0.2, 100 * shares.selected, 0.4, color="none", hatch="////", label=selected_label, **edge)
        beside = 0.1 + max(0, 3 - n_bins) / 2
        axes.set_xlim(-0.5 - beside, n_bins - 0.5 + beside)
    else:
        at = np.arange(n_bins + 1)
        axes.stairs(100 * shares.all_rows, at, fill=True, color=ALL_ROWS_COLOUR, label=all_label)
        axes.stairs(100 * shares.selected, at, label=selected_label, color=BLUE.colour, linewidth=1.6)
        axes.set_xlim(-0.3, n_bins + 0.3)
    tidy(axes)
    _ticks(axes, shares)
    axes.set_ylabel("share of these rows, %")
    uneven = not shares.single_values and not _is_even(shares)
    label = as_text(shares.name) + ("; bins grow away from 0" if uneven else "")
    axes.set_xlabel(wrapped(label, 70), parse_math=False)


def _is_even(shares: SelectionShares) -> bool:
    widths = (shares.high - shares.low)[np.isfinite(shares.low) & np.isfinite(shares.high)]
    return bool(np.allclose(widths, widths[0]))


def _ticks(axes: Axes, shares: SelectionShares) -> None:
    """Set as many tick labels as fit: at the edges of the bins, or below each bin of a single value; open bins get "<" or "≥"."""
    if shares.single_values:
        at, labels = np.arange(shares.low.size, dtype=np.float64), distinct_labels(shares.low)
    else:
        edges = np.append(shares.low, shares.high[-1])
        at, labels = np.arange(edges.size, dtype=np.float64), distinct_labels(edges)
        if np.isinf(edges[0]):
            at, labels = np.append(0.5, at[2:]), [f"< {labels[1]}", *labels[2:]]
        if np.isinf(edges[-1]):
            at, labels = np.append(at[:-2], at[-1] - 0.5), [*labels[:-2], f"≥ {labels[-2]}"]
    width = max(map(len, labels)) + 2
    every = max(1, -(-len(labels) * width // LETTERS_BELOW_AXIS))
    kept = list(range(0, len(labels), every))
    # An open last bin always gets its label; a label too close to it is left out.
    if not shares.single_values and np.isinf(shares.high[-1]) and kept[-1] != len(labels) - 1:
        kept = [i for i in kept if at[-1] - at[i] >= every] + [len(labels) - 1]
    axes.set_xticks(at[kept], [labels[i] for i in kept])


def distinct_labels(values: Floats) -> list[str]:
    """The values as texts, with as few digits as tell them apart."""
    short = [number(value) for value in values.tolist()]
    if len(set(short)) == len(short):
        return short
    for digits in range(5, 17):
        labels = [f"{value:.{digits}g}" for value in values.tolist()]
        if len(set(labels)) == len(labels):
            return labels
    return [repr(value) for value in values.tolist()]

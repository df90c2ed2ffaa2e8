"""Which rows of a table were selected: how a quantity is spread over all rows and over those that were kept."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.plot.curves import BLUE, number, tidy, wrapped
from mixbin.plot.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 20
"""Distinct values that have a bar each."""
MOST_BINS = 30
HEAVY = 10.0
"""Values that reach this many times as far as the middle four fifths have heavy tails."""
TAIL = 0.02
"""The share of the rows in an open bin, about."""
LABELS = 60
"""Letters that fit below the axis."""
ALL = "0.72"


@dataclass(frozen=True, eq=False)
class SelectionShares:
    """What a figure of a selection shows: shares of all rows and of the selected, in the same bins."""

    low: Floats
    """Where each bin begins (it belongs to the bin); -inf for an open first bin."""
    high: Floats
    """Where it ends (the next bin's beginning; the last bin has its end); inf for an open last bin. Bins of one value: as low."""
    all_rows: Floats
    """The share of all rows in each bin; sums to 1."""
    selected: Floats
    """The share of the selected rows in each bin; sums to 1, or to 0 where no row is selected."""
    n_rows: int
    n_selected: int
    name: str

    @property
    def single_values(self) -> bool:
        """Whether each bin is one value."""
        return bool(np.all(self.low == self.high))


def selection_shares(theta: ArrayLike, values: ArrayLike | None = None, name: str = "") -> SelectionShares:
    """Where the selected rows lie among all rows.

    Parameters
    ----------
    theta : bool array of shape (m,)
        Which rows were selected.
    values : array of shape (m,), optional
        A quantity of each row, such as the target; the number of the row, from 0, unless given. At most 20 distinct values have
        a bin each; tails that reach far have bins that grow (1, 2, 5, 10, ...), or an open bin where the values are far from 0.
    name : str
        What the quantity is.
    """
    raw = check.loose_array("theta", theta, "a mask of shape (m,) with an entry per row of the table")
    if raw.ndim != 1 or raw.size == 0:
        raise check.fail("theta", theta, "a mask of shape (m,) with an entry per row of the table")
    chosen = check.binary("theta", raw, shape=raw.shape)
    if values is None:
        x, name = np.arange(raw.size, dtype=np.float64), name or "row number, from 0"
    else:
        x = check.array("values", values, shape=raw.shape, remedy="pass one number per row of the table")
    low, high, bins = _bins(x)
    counts = [np.bincount(bins[rows], minlength=low.size).astype(np.float64) for rows in (slice(None), chosen)]
    all_rows, selected = (count / max(float(count.sum()), 1.0) for count in counts)
    return SelectionShares(low, high, all_rows, selected, raw.size, int(np.count_nonzero(chosen)), name)


def _bins(x: Floats) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Bins for these values, and which bin each value is in."""
    distinct, bins = np.unique(x, return_inverse=True)
    if distinct.size <= FEW:
        return distinct, distinct, bins.astype(np.intp)
    edges = _edges(x)
    # Only inner edges decide, so that each value has a bin even where the outer edges suffer from rounding.
    return edges[:-1], edges[1:], np.searchsorted(edges[1:-1], x, side="right")


def _edges(x: Floats) -> Floats:
    least, most = float(x.min()), float(x.max())
    # Quantiles that are among the values: no sum of two large ones overflows.
    tail_low, low, high, tail_high = np.quantile(x, [TAIL, 0.1, 0.9, 1 - TAIL], method="inverted_cdf").tolist()
    with np.errstate(over="ignore"):
        reach, middle, inner = np.subtract([most, high, tail_high], [least, low, tail_low]).tolist()
    if reach < HEAVY * middle and np.isfinite(reach):
        return _even(least, most)
    growing = _growing(x)
    of_the_middle = np.searchsorted(growing, [low, high])
    if low <= 0 <= high or of_the_middle[1] - of_the_middle[0] > 2 or not 0 < inner < np.inf:
        return growing
    even = _even(tail_low, tail_high)
    below, above = ([-np.inf] if least < even[0] else []), ([np.inf] if most > even[-1] else [])
    return np.concatenate([below, even, above])


def _even(least: float, most: float) -> Floats:
    """Edges that are multiples of a round number, from ``least`` or just below it to above ``most``."""
    rough = (most - least) / (MOST_BINS - 2)
    if rough < 1e-300:
        return np.linspace(least, most, 3)
    power = int(np.floor(np.log10(rough)))
    factor = next(factor for factor in (1, 2, 5, 10, 20) if factor * 10.0**power >= rough)
    first = np.floor(least / (factor * 10.0**power))
    multiples = factor * (first + np.arange(MOST_BINS + 2))
    # 3 / 10, where 3 * 0.1 has a rounding error.
    edges = np.unique(multiples * 10.0**power if power >= 0 else multiples / 10.0**-power)
    return edges[: int(np.searchsorted(edges, most, side="right")) + 1]


def _growing(x: Floats) -> Floats:
    """Edges at 0, ±1, ±2, ±5, ±10, ... times a unit below which few values lie, on the sides that have values."""
    size = np.abs(x[x != 0])
    first, last = np.floor(np.log10([np.quantile(size, 0.05, method="inverted_cdf"), size.max()])).astype(int).tolist()
    factors: tuple[float, ...] = (1.0, 2.0, 5.0)
    if 3 * (last - first + 1) > MOST_BINS / (1 if x.min() >= 0 or x.max() <= 0 else 2):
        factors = (1.0,)
        first = max(first, last - MOST_BINS // 2 + 2)
    with np.errstate(over="ignore"):
        sizes = np.array([factor * 10.0**power for power in range(first, last + 1) for factor in factors] + [np.inf])
    # The first edge that no value reaches ends the axis: 10 to the next power where all of these are too small.
    if last < 308:
        sizes[-1] = 10.0 ** (last + 1)
    parts = [np.zeros(1)]
    # Not only above 0: the zeros have a bin of their own, beside the negative values.
    if x.max() >= 0:
        parts.append(sizes[: int(np.searchsorted(sizes, x.max(), side="right")) + 1])
    if x.min() < 0:
        parts.append(-sizes[: int(np.searchsorted(sizes, -x.min(), side="left")) + 1])
    return np.unique(np.concatenate(parts))


def selection(theta: ArrayLike, values: ArrayLike | None = None, name: str = "") -> "Figure":
    """Histograms of a quantity over all rows and over the selected; see ``selection_shares``."""
    return draw_shares(selection_shares(theta, values, name))


def draw_shares(shares: SelectionShares) -> "Figure":
    """The histograms of shares that are known."""
    figure = new_figure(6.0, 3.4)
    axes = figure.subplots()
    all_label, selected_label = f"all {shares.n_rows:,} rows", f"the {shares.n_selected:,} selected"
    edge: dict[str, Any] = {"edgecolor": BLUE.colour, "linewidth": 1.4}
    n_bins = shares.low.size
    if shares.single_values:
        at = np.arange(n_bins)
        axes.bar(at - 0.2, 100 * shares.all_rows, 0.4, color=ALL, label=all_label)
        axes.bar(at + 0.2, 100 * shares.selected, 0.4, color="none", hatch="////", label=selected_label, **edge)
        beside = 0.1 + max(0, 3 - n_bins) / 2
        axes.set_xlim(-0.5 - beside, n_bins - 0.5 + beside)
    else:
        at = np.arange(n_bins + 1)
        axes.stairs(100 * shares.all_rows, at, fill=True, color=ALL, label=all_label)
        axes.stairs(100 * shares.selected, at, label=selected_label, color=BLUE.colour, linewidth=1.6)
        axes.set_xlim(-0.3, n_bins + 0.3)
    tidy(axes)
    _ticks(axes, shares)
    axes.set_ylabel("share of these rows, %")
    uneven = not shares.single_values and not _is_even(shares)
    label = str(shares.name) + ("; bins grow away from 0" if uneven else "")
    axes.set_xlabel(wrapped(label, 70), parse_math=False)
    figure.legend(loc="outside upper center", ncols=2, fontsize=9, frameon=False)
    return figure


def _is_even(shares: SelectionShares) -> bool:
    widths = (shares.high - shares.low)[np.isfinite(shares.low) & np.isfinite(shares.high)]
    return bool(np.allclose(widths, widths[0]))


def _ticks(axes: "Axes", shares: SelectionShares) -> None:
    """Numbers below the edges of the bins, or below the bins of one value; open bins say so. As many as fit."""
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
    every = max(1, -(-len(labels) * width // LABELS))
    kept = list(range(0, len(labels), every))
    # An open last bin is always named, instead of a number that is too near.
    if not shares.single_values and np.isinf(shares.high[-1]) and kept[-1] != len(labels) - 1:
        kept = [i for i in kept if at[-1] - at[i] >= every] + [len(labels) - 1]
    axes.set_xticks(at[kept], [labels[i] for i in kept])


def distinct_labels(values: Floats) -> list[str]:
    """The values in as few digits as tell them apart."""
    short = [number(value) for value in values.tolist()]
    if len(set(short)) == len(short):
        return short
    for digits in range(5, 17):
        labels = [f"{value:.{digits}g}" for value in values.tolist()]
        if len(set(labels)) == len(labels):
            return labels
    return [repr(value) for value in values.tolist()]

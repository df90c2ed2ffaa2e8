"""Heat maps of group structures: one row per feature, one column per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.plot.curves import as_text
from mixbin.plot.figure import checked_axes, first_axes, new_figure
from mixbin.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

COLOURS = "Blues"
"""A colour map from white to dark, which reads the same with colour blindness and in print without colours."""
LONGEST_NAME = 24
"""Names are cut after this many letters."""
MOST_ROWS = 100
"""If there are more features than this, only every second, third, ... one is named."""
MOST_CELLS = 50_000
"""A map with more cells than this is drawn as an image within the SVG, instead of as shapes."""
ROW, COLUMN = 0.145, 0.3
"""Height and width of a cell in inches."""
SMALL_ROW, SMALL_COLUMN, SMALL_NAMED = 0.06, 0.15, 10
"""Height and width of a cell, and the number of features that are named, if more than two maps stand side by side."""


@dataclass(frozen=True, eq=False)
class StructureMap:
    """What the heat map of a structure shows.

    Examples
    --------
    >>> import mixbin as mb
    >>> it = mb.plot.structure_map([[1, 0], [0, 1], [1, 0]], title="found")
    >>> it.matrix.shape, it.title
    ((3, 2), 'found')
    """

    matrix: Floats
    """(features, groups), in the order in which they are drawn."""
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    order: NDArray[np.intp]
    """The index of the feature in each row."""
    title: str


def structure_map(
    theta: ArrayLike, names: Sequence[str] | None = None, labels: ArrayLike | None = None, title: str = ""
) -> StructureMap:
    """The map of a structure with its features sorted by group, so that each group shows as a block.

    Parameters
    ----------
    theta : array of shape (features, groups)
        The structure, binary or relaxed, with entries in [0, 1].
    names : sequence of str, optional
        The names of the features; by default their numbers, from 0.
    labels : array of shape (features,), optional
        The group of each feature in another structure, such as the true one. The features are then sorted by that structure, and
        the groups of ``theta`` by the groups of it that they overlap most: equal structures give equal maps.
    title : str
        The title of the map.

    Examples
    --------
    >>> import mixbin as mb
    >>> it = mb.plot.structure_map([[1, 0], [0, 1], [1, 0]], names=["age", "rent", "size"])
    >>> it.row_labels, it.order.tolist()
    (('age', 'size', 'rent'), [0, 2, 1])
    """
    return _map("theta", theta, names, labels, title)


def _map(argument: str, theta: ArrayLike, names: Sequence[str] | None, labels: ArrayLike | None, title: str) -> StructureMap:
    """``structure_map``; ``argument`` is what errors call the structure, since two public functions take one."""
    values = _checked(argument, theta)
    n_features, n_groups = values.shape
    if names is not None and not np.iterable(names):
        raise check.fail("names", names, "a sequence of names, one per feature")
    names = [str(i) for i in range(n_features)] if names is None else [as_text(name) for name in names]
    if len(names) != n_features:
        raise InvalidInput(f"names must have one entry per feature, got {len(names)} for {n_features} features")
    columns = np.arange(n_groups)
    if labels is not None:
        other = one_hot(labels)
        if len(other) != n_features:
            raise InvalidInput(f"labels must have one entry per feature, got {len(other)} for {n_features} features")
        columns = _matched(values, other)
        order = np.argsort(other.argmax(axis=1), kind="stable")
    else:
        largest = values.max(axis=1)
        own = np.where(largest > 0, values.argmax(axis=1), n_groups)
        order = np.lexsort([-largest, own])
    return StructureMap(
        matrix=values[np.ix_(order, columns)],
        row_labels=tuple(names[i] for i in order),
        column_labels=tuple(str(group) for group in columns),
        order=order,
        title=title,
    )


def structure(
    result: Result | ArrayLike,
    names: Sequence[str] | None = None,
    labels: ArrayLike | None = None,
    title: str = "found",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw a heat map of a structure, beside the true one if ``labels`` gives it; see ``structure_map``.

    Parameters
    ----------
    result : Result, or array of shape (features, groups)
        What a method returned for a problem of groups, or the structure.
    names, labels, title
        As in ``structure_map``.
    ax : Axes, optional
        Draw what was found alone, in these axes. By default a figure of its own, with the true structure if it is given.

    Returns
    -------
    Axes
        The axes of the structure; ``.figure`` is the figure.

    Examples
    --------
    >>> import mixbin as mb
    >>> axes = mb.plot.structure([[1, 0], [0, 1], [1, 0]], names=["age", "rent", "size"])
    >>> axes.get_title()
    'found'
    """
    found = _map("result", result.theta if isinstance(result, Result) else result, names, labels, title)
    if ax is None:
        return first_axes(_beside_the_true_one(found, names, labels))
    axes = checked_axes(ax)
    _panel(axes, found, named=True, most=MOST_ROWS)
    return axes


def structure_figure(
    theta: ArrayLike, names: Sequence[str] | None = None, labels: ArrayLike | None = None, title: str = "found"
) -> Figure:
    """The figure of a structure, and of the true one if ``labels`` gives it."""
    return _beside_the_true_one(structure_map(theta, names, labels, title), names, labels)


def _beside_the_true_one(found: StructureMap, names: Sequence[str] | None, labels: ArrayLike | None) -> Figure:
    if labels is None:
        return draw(found)
    return draw(found, structure_map(one_hot(labels), names, labels, "true"))


def draw(*maps: StructureMap) -> Figure:
    """Draw heat maps side by side; maps with the same order of features show their names once.

    Examples
    --------
    >>> import mixbin as mb
    >>> found = mb.plot.structure_map([[1, 0], [0, 1], [1, 0]], title="found")
    >>> true = mb.plot.structure_map([[1, 0], [1, 0], [0, 1]], title="true")
    >>> figure = mb.plot.draw(found, true)
    """
    if not maps:
        raise InvalidInput("maps must hold at least one structure, got none; make one with structure_map")
    for it in maps:
        if not isinstance(it, StructureMap):
            raise check.fail("maps", it, "structures", "make them with structure_map, and pass draw(first, second)")
    rows, columns = max(len(it.matrix) for it in maps), sum(it.matrix.shape[1] for it in maps)
    small = len(maps) > 2
    row, column, most = (SMALL_ROW, SMALL_COLUMN, SMALL_NAMED) if small else (ROW, COLUMN, MOST_ROWS)
    height = min(max(row * rows, 1.5), row * MOST_ROWS) + 1.2
    width = max(column * columns, 1.2 * len(maps)) + 2.0 + 0.3 * len(maps)
    figure = new_figure(width, height)
    figure.set_layout_engine("constrained", wspace=0.06)
    ratios = [it.matrix.shape[1] for it in maps]
    panels = figure.subplots(1, len(maps), squeeze=False, width_ratios=ratios)[0]
    drawn: Any = None
    for j, (axes, it) in enumerate(zip(panels, maps, strict=True)):
        drawn = _panel(axes, it, named=j == 0 or it.row_labels != maps[0].row_labels, most=most)
    _legend(figure, panels, drawn, binary=all(np.isin(it.matrix, (0.0, 1.0)).all() for it in maps))
    return figure


def _panel(axes: Axes, it: StructureMap, named: bool, most: int) -> ScalarMappable:
    rows, columns = it.matrix.shape
    if it.matrix.size > MOST_CELLS:
        drawn: ScalarMappable = axes.pcolormesh(it.matrix, cmap=COLOURS, vmin=0.0, vmax=1.0, rasterized=True)
    else:
        drawn = _cells(axes, it.matrix)
    axes.set(xlim=(0, columns), ylim=(rows, 0))
    axes.set_title(as_text(it.title), fontsize=10, parse_math=False)
    axes.set_xlabel("group")
    across, down = -(-columns // 40), -(-rows // most)
    # A user's names are plain text: a $ in a name must not begin a formula.
    plain: dict[str, Any] = {"parse_math": False}
    axes.set_xticks(np.arange(0, columns, across) + 0.5, it.column_labels[::across], fontsize=8, **plain)
    if named:
        axes.set_ylabel("feature, sorted by group" + (f" (1 in {down} named)" if down > 1 else ""))
        axes.set_yticks(np.arange(0, rows, down) + 0.5, [_short(name) for name in it.row_labels[::down]], fontsize=7, **plain)
    else:
        axes.set_yticks([])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    return drawn


def _cells(axes: Axes, matrix: Floats) -> ScalarMappable:
    """Draw the entries that are not 0 on a grid in the colour of 0: a structure has few of them."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    rows, columns = matrix.shape
    row, column = np.nonzero(matrix)
    corners = np.stack([column, row], axis=1)[:, None] + np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    drawn = PolyCollection(corners.astype(np.float64), array=matrix[row, column], cmap=COLOURS, edgecolors="none")
    drawn.set_clim(0.0, 1.0)
    axes.set_facecolor(drawn.cmap(0.0))
    axes.add_collection(drawn)
    ends = [[(0, i), (columns, i)] for i in range(rows + 1)] + [[(j, 0), (j, rows)] for j in range(columns + 1)]
    grid = Path(np.reshape(ends, (-1, 2)), [Path.MOVETO, Path.LINETO] * len(ends))
    axes.add_patch(PathPatch(grid, fill=False, edgecolor="0.85", linewidth=0.3, zorder=drawn.get_zorder()))
    return drawn


def _legend(figure: Figure, panels: Any, drawn: ScalarMappable, binary: bool) -> None:
    """Add a legend of the colours: two of them for binary structures, else a colour bar."""
    if not binary:
        figure.colorbar(drawn, ax=list(panels), label="membership", shrink=0.6, pad=0.02)
        return
    from matplotlib.patches import Patch

    colours = drawn.to_rgba(np.array([1.0, 0.0])).tolist()
    handles = [
        Patch(facecolor=colour, edgecolor="0.6", label=label)
        for colour, label in zip(colours, ("in the group", "not in it"), strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8, frameon=False)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def one_hot(labels: ArrayLike) -> Floats:
    """The structure in which features with equal labels form a group; the groups are in the order of their labels."""
    raw = check.loose_array("labels", labels, "whole numbers, one per feature")
    if raw.ndim != 1 or raw.size == 0 or raw.dtype.kind not in "iub":
        raise check.fail("labels", raw, "whole numbers, one per feature")
    groups = np.unique(raw)
    return np.asarray(raw[:, None] == groups, dtype=np.float64)


def _checked(argument: str, theta: ArrayLike) -> Floats:
    values = check.array(argument, theta, ndim=2, remedy="pass a structure of shape (features, groups)")
    if values.size == 0 or values.min() < 0 or values.max() > 1:
        raise check.fail(argument, theta, "a structure of shape (features, groups) with entries in [0, 1]")
    return values


def _matched(theta: Floats, other: Floats) -> NDArray[np.intp]:
    """The columns of theta: first the best match of each column of ``other``, then the remaining columns in their order."""
    from scipy.optimize import linear_sum_assignment

    own, matched = linear_sum_assignment(-(theta.T @ other))
    first = own[np.argsort(matched)]
    return np.concatenate([first, np.setdiff1d(np.arange(theta.shape[1]), first)]).astype(np.intp)

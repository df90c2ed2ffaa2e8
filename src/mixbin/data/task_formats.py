"""Regression tasks in the three formats users have them in.

An array of shape (tasks, rows, features), a list with one table per task, or one table with the task of each row.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.data.tasks import packed
from mixbin.errors import InvalidInput

Layout = Literal["array", "list", "rows"]
SHOWN = 5
"""How many ids an error message names."""


class Rows(NamedTuple):
    """Rows of several tasks in one table."""

    X: Floats
    each: NDArray[np.intp]
    """The task of each row, as a position in ``ids``."""
    ids: list[Hashable]


class Regressions(NamedTuple):
    """A table and a vector of targets per task."""

    X: list[Floats]
    y: list[Floats]
    ids: list[Hashable]


def layout(X: Any) -> Layout:
    """Which of the formats this is; what is none of them counts as "rows", where it is refused."""
    if hasattr(X, "columns"):
        return "rows"
    if isinstance(X, np.ndarray) and (X.dtype != object or X.ndim != 1):
        return "array" if X.ndim == 3 else "rows"
    if not isinstance(X, (Sequence, np.ndarray)) or isinstance(X, (str, bytes)) or len(X) == 0:
        return "rows"
    return "list" if _ndim(X[0]) == 2 else "rows"


def _ndim(entry: Any) -> int:
    try:
        return int(np.ndim(entry))
    except Exception:  # lists of different lengths, or whatever an object's own conversion raises
        return -1


def regressions(X: Any, y: Any, tasks: Any, suffix: str = "") -> Regressions:
    """The tasks to train or validate on; ``suffix`` completes the names of the arguments."""
    names = f"X{suffix}", f"y{suffix}", f"tasks{suffix}"
    if layout(X) != "rows":
        if tasks is not None:
            raise check.fail(
                names[2], tasks, f"None where {names[0]} has one table per task", "the order of the tables tells the tasks apart"
            )
        data = packed(names[0], X, names[1], y)
        cuts = data.starts[1:-1]
        return Regressions(np.split(data.X, cuts), np.split(data.y, cuts), list(range(data.n_tasks)))
    rows = labelled(names[0], X, names[2], tasks)
    targets = check.array(names[1], y, shape=(len(rows.X),), remedy="give every row one target")
    order, cuts = np.argsort(rows.each, kind="stable"), np.cumsum(np.bincount(rows.each))[:-1]
    return Regressions(np.split(rows.X[order], cuts), np.split(targets[order], cuts), rows.ids)


def matched(val: Regressions, ids: list[Hashable]) -> Regressions:
    """The validation rows in the order of the training tasks."""
    position = {name: t for t, name in enumerate(val.ids)}
    missing = [name for name in ids if name not in position]
    if missing:
        raise InvalidInput(
            f"tasks_val must name every task of tasks, got no row of {listed(missing)}; "
            "give every task rows to validate on, or leave it out of X"
        )
    extra = set(position).difference(ids)
    if extra:
        raise InvalidInput(
            f"tasks_val must name tasks of tasks only, got {listed(name for name in val.ids if name in extra)}; "
            "leave these rows out, or give the task rows in X"
        )
    order = [position[name] for name in ids]
    return Regressions([val.X[t] for t in order], [val.y[t] for t in order], ids)


def labelled(X_name: str, X: Any, tasks_name: str, tasks: Any) -> Rows:
    """One table with the task of each row."""
    remedy = "pass (tasks, rows, features), a list with one table per task, or one table and the task of each row"
    table = check.array(X_name, X, ndim=2, remedy=remedy if _ndim(X) != 2 else "")
    if 0 in table.shape:
        raise check.fail(X_name, table, "a table that is not empty", "give at least one row and one feature")
    if tasks is None:
        raise InvalidInput(f"{tasks_name} must name the task of each row where {X_name} is one table, got None; {remedy}")
    names = named(tasks_name, tasks, len(table), f"row of {X_name}")
    position: dict[Hashable, int] = {}
    each = np.fromiter((position.setdefault(name, len(position)) for name in names), dtype=np.intp, count=len(names))
    return Rows(table, each, list(position))


def entries(X: Any) -> list[Floats]:
    """One table per task."""
    if layout(X) == "array":
        tables = list(check.array("X", X))
    else:
        tables = [check.array(f"X[{t}]", entry, ndim=2) for t, entry in enumerate(X)]
    if not tables:
        raise check.fail("X", X, "tables of at least one task")
    return tables


def named(name: str, tasks: Any, count: int, what: str) -> list[Hashable]:
    """One id per row or table."""
    must, remedy = f"one id per {what}, {count} of them", "such as numbers or names"
    if isinstance(tasks, (str, bytes)) or not np.iterable(tasks):
        raise check.fail(name, tasks, must, remedy)
    ids = list(tasks)
    if len(ids) != count:
        raise InvalidInput(f"{name} must be {must}, got {len(ids)}; {remedy}")
    for i, task in enumerate(ids):
        try:
            hash(task)
            missing = task is None or bool(task != task)
        except (TypeError, ValueError):
            missing = True
        if missing:
            raise InvalidInput(f"{name}[{i}] must be an id, got {check.shown(task)}; {remedy}")
    return ids


def as_array(ids: list[Hashable]) -> NDArray[Any]:
    """The ids as an array: of numbers or text where they are all of one kind, else of objects."""
    if len({type(name) for name in ids}) == 1 and not isinstance(ids[0], tuple):
        plain = np.array(ids)
        if plain.shape == (len(ids),) and plain.tolist() == ids:
            return plain
    array = np.empty(len(ids), dtype=object)
    for t, name in enumerate(ids):
        array[t] = name
    return array


def listed(names: Iterable[Hashable]) -> str:
    """The first few of these ids."""
    names = [name.item() if isinstance(name, np.generic) else name for name in names]
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + rest

"""Regression tasks in the three formats in which users have them.

An array of shape (tasks, rows, features), a list with one table per task, or one table with the task of each row.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats, listed
from mixbin.data.tasks import Tasks, packed
from mixbin.errors import InvalidInput
from mixbin.problem import Indices

Ids = list[Hashable]
"""What tasks are called."""
Layout = Literal["array", "list", "rows"]


def layout(X: Any) -> Layout:
    """The format of X; whatever is in no format counts as "rows", which is refused later."""
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


def tasks_of(X: Any, y: Any, ids: Any, suffix: str = "") -> tuple[Tasks, Ids]:
    """The tasks to train or validate on, with their ids; ``suffix`` completes the names of the arguments."""
    X_name, y_name, ids_name = f"X{suffix}", f"y{suffix}", f"tasks{suffix}"
    if layout(X) != "rows":
        if ids is not None:
            must = f"None where {X_name} has one table per task"
            raise check.fail(ids_name, ids, must, "the order of the tables tells the tasks apart")
        tasks = packed(X_name, X, y_name, y)
        return tasks, list(range(tasks.n_tasks))
    table, each, names = labelled(X_name, X, ids_name, ids)
    targets = check.array(y_name, y, shape=(len(table),), remedy="give every row one target")
    order, ends = np.argsort(each, kind="stable"), np.cumsum(np.bincount(each))
    return Tasks(table[order], targets[order], np.concatenate([[0], ends])), names


def matched(val: Tasks, val_ids: Ids, ids: Ids) -> Tasks:
    """The validation rows in the order of the training tasks."""
    position = {name: t for t, name in enumerate(val_ids)}
    if missing := [name for name in ids if name not in position]:
        raise InvalidInput(
            f"tasks_val must name every task of tasks, got no row of {listed(missing, 5)}; "
            "give every task rows to validate on, or leave it out of X"
        )
    if extra := set(position).difference(ids):
        raise InvalidInput(
            f"tasks_val must name tasks of tasks only, got {listed([name for name in val_ids if name in extra], 5)}; "
            "leave these rows out, or give the task rows in X"
        )
    return val.in_order([position[name] for name in ids])


def labelled(X_name: str, X: Any, ids_name: str, ids: Any) -> tuple[Floats, Indices, Ids]:
    """One table, the task of each row as a position, and the ids of the tasks at these positions."""
    remedy = "pass (tasks, rows, features), a list with one table per task, or one table and the task of each row"
    table = check.array(X_name, X, ndim=2, remedy=remedy if _ndim(X) != 2 else "")
    if 0 in table.shape:
        raise check.fail(X_name, table, "a table that is not empty", "give at least one row and one feature")
    if ids is None:
        raise InvalidInput(f"{ids_name} must name the task of each row where {X_name} is one table, got None; {remedy}")
    names = named(ids_name, ids, len(table), f"row of {X_name}")
    position: dict[Hashable, int] = {}
    each = np.fromiter((position.setdefault(name, len(position)) for name in names), dtype=np.intp, count=len(names))
    return table, each, list(position)


def entries(X: Any) -> list[Floats]:
    """One table per task."""
    if layout(X) == "array":
        tables = list(check.array("X", X))
    else:
        tables = [check.array(f"X[{t}]", entry, ndim=2) for t, entry in enumerate(X)]
    if not tables:
        raise check.fail("X", X, "tables of at least one task")
    return tables


def named(name: str, tasks: Any, count: int, what: str) -> Ids:
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


def as_array(ids: Ids) -> NDArray[Any]:
    """The ids as an array: of numbers or text if all are of one kind, else of objects."""
    if len({type(name) for name in ids}) == 1 and not isinstance(ids[0], tuple):
        plain = np.array(ids)
        if plain.shape == (len(ids),) and plain.tolist() == ids:
            return plain
    array = np.empty(len(ids), dtype=object)
    for t, name in enumerate(ids):
        array[t] = name
    return array

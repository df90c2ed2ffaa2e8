"""Many regression tasks as flat arrays for the kernels: the rows of all tasks below each other, and where each task starts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput


class Tasks(NamedTuple):
    """Rows of several tasks with their targets; task t has the rows from ``starts[t]`` to ``starts[t + 1]``."""

    X: Floats
    """(all rows, features), contiguous."""
    y: Floats
    starts: NDArray[np.int64]

    @property
    def n_tasks(self) -> int:
        """How many tasks there are."""
        return len(self.starts) - 1

    @property
    def n_features(self) -> int:
        """The columns of every task."""
        return int(self.X.shape[1])

    def scales(self) -> Floats:
        """The size of a model that would predict each task's targets from one feature; 1 where there is nothing to predict."""
        squares = [np.add.reduceat(a, self.starts[:-1]) for a in (np.square(self.y), np.square(self.X).mean(axis=1))]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scales = np.sqrt(squares[0] / squares[1])
        return np.where(np.isfinite(scales) & (scales > 0), scales, 1.0)

    def half_mean_squares(self, W: Floats) -> Floats:
        """1/(2N) |Xw - y|^2 of each task, for one model a task."""
        each = np.repeat(np.arange(self.n_tasks), np.diff(self.starts))
        missed = np.einsum("np,np->n", self.X, W[each]) - self.y
        return np.asarray(0.5 * np.add.reduceat(np.square(missed), self.starts[:-1]) / np.diff(self.starts))


def together(first: Tasks, second: Tasks) -> Tasks:
    """The rows of both, task by task."""
    each = [np.repeat(np.arange(part.n_tasks), np.diff(part.starts)) for part in (first, second)]
    order = np.argsort(np.concatenate(each), kind="stable")
    X, y = np.concatenate([first.X, second.X])[order], np.concatenate([first.y, second.y])[order]
    return Tasks(X, y, first.starts + second.starts)


def packed(X_name: str, X: Any, y_name: str, y: Any) -> Tasks:
    """The tasks in an array of shape (tasks, rows, features) with targets (tasks, rows), or in lists with an entry per task."""
    tables = _entries(X_name, X, 2, "(tasks, rows, features)", "table")
    targets = _entries(y_name, y, 1, "(tasks, rows)", "vector of targets")
    if len(targets) != len(tables):
        raise InvalidInput(
            f"{y_name} must have the tasks of {X_name}, got {len(targets)} tasks against {len(tables)}; "
            "give every task its targets"
        )
    for t, (table, target) in enumerate(zip(tables, targets, strict=True)):
        if table.shape[1] != tables[0].shape[1]:
            raise InvalidInput(
                f"{X_name}[{t}] must have the features of {X_name}[0], "
                f"got {table.shape[1]} columns against {tables[0].shape[1]}; "
                "all tasks share the features"
            )
        if len(target) != len(table):
            raise InvalidInput(
                f"{y_name}[{t}] must have one target per row of {X_name}[{t}], got {len(target)} targets for {len(table)} rows"
            )
    rows = np.array([len(table) for table in tables], dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rows)])
    tasks = Tasks(np.ascontiguousarray(np.concatenate(tables)), np.concatenate(targets), starts)
    with np.errstate(over="ignore"):
        for name, a in ((X_name, tasks.X), (y_name, tasks.y)):
            if not np.isfinite(np.square(a).sum()):
                raise InvalidInput(f"{name} must have squares that fit in float64, got entries that overflow; rescale them")
    return tasks


def _entries(name: str, value: Any, ndim: int, shape: str, kind: str) -> list[Floats]:
    """One finite array per task, with rows (and columns)."""
    must, remedy = (
        f"an array of shape {shape} or a list with one {kind} per task",
        "give at least one row and one feature per task",
    )
    if isinstance(value, np.ndarray) and value.dtype != object:
        if value.ndim != ndim + 1:
            raise check.fail(name, value, must)
        whole = check.array(name, value)
        if 0 in whole.shape:
            raise check.fail(name, value, must, remedy)
        return list(whole)
    if not isinstance(value, (Sequence, np.ndarray)) or isinstance(value, (str, bytes)) or len(value) == 0:
        raise check.fail(name, value, must, remedy)
    entries = [check.array(f"{name}[{t}]", entry, ndim=ndim) for t, entry in enumerate(value)]
    for t, entry in enumerate(entries):
        if 0 in entry.shape:
            raise check.fail(f"{name}[{t}]", entry, f"a {kind} that is not empty", remedy)
    return entries

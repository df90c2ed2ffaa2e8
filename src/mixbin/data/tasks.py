"""Many regression tasks over the same features: the rows of all tasks below each other, and where each task starts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.data.tables import split
from mixbin.errors import InvalidInput
from mixbin.problem import Indices


class Tasks(NamedTuple):
    """Rows of several tasks with their targets; task t has the rows from ``starts[t]`` to ``starts[t + 1]``, at least one."""

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

    @property
    def n_rows(self) -> int:
        """The rows of all tasks together."""
        return len(self.y)

    @property
    def tables(self) -> list[Floats]:
        """The rows of each task, as views."""
        return np.split(self.X, self.starts[1:-1])

    @property
    def targets(self) -> list[Floats]:
        """The targets of each task, as views."""
        return np.split(self.y, self.starts[1:-1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of rows of each task."""
        return np.diff(self.starts)

    def where(self, mask: NDArray[np.bool_]) -> "Tasks":
        """The rows at which ``mask`` is True; it must be True in every task."""
        counts = np.add.reduceat(mask, self.starts[:-1], dtype=np.int64)
        return Tasks(self.X[mask], self.y[mask], _starts(counts))

    def in_order(self, order: Sequence[int]) -> "Tasks":
        """The same tasks in another order."""
        tables, targets = self.tables, self.targets
        return stacked([tables[t] for t in order], [targets[t] for t in order])

    def means(self) -> "Means":
        """The means of each task's columns and targets."""
        X, y = (np.add.reduceat(a, self.starts[:-1], axis=0) for a in (self.X, self.y))
        return Means(X / self.sizes[:, None], y / self.sizes)

    def minus(self, means: "Means") -> "Tasks":
        """The same rows with these means taken off the columns and the targets of each task."""
        each = np.repeat(np.arange(self.n_tasks), self.sizes)
        return Tasks(self.X - means.X[each], self.y - means.y[each], self.starts)

    def scales(self) -> Floats:
        """The size of a model that would predict each task's targets from one feature; 1 where there is nothing to predict."""
        squares = [np.add.reduceat(a, self.starts[:-1]) for a in (np.square(self.y), np.square(self.X).mean(axis=1))]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scales = np.sqrt(squares[0] / squares[1])
        return np.where(np.isfinite(scales) & (scales > 0), scales, 1.0)

    def half_mean_squares(self, W: Floats) -> Floats:
        """1/(2N) |Xw - y|^2 of each task, for one model a task."""
        each = np.repeat(np.arange(self.n_tasks), self.sizes)
        missed = np.einsum("np,np->n", self.X, W[each]) - self.y
        return np.asarray(0.5 * np.add.reduceat(np.square(missed), self.starts[:-1]) / self.sizes)

    def loss(self, coef: Floats) -> float:
        """The mean over the tasks of half the mean squared error of their models."""
        # By BLAS and not by ``half_mean_squares``: the last bits differ, and reports show these.
        tasks = zip(self.tables, self.targets, coef, strict=True)
        return float(np.mean([np.mean(np.square(X @ w - y)) / 2 for X, y, w in tasks]))


class Means(NamedTuple):
    """The means of the columns and the targets of several tasks."""

    X: Floats
    """(tasks, features)."""
    y: Floats
    """(tasks,)."""

    def intercepts(self, coef: Floats) -> Floats:
        """The intercept of each task's model, for a model that was trained on rows without these means."""
        return np.asarray(self.y - np.einsum("tp,tp->t", self.X, coef))


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])


def stacked(tables: Sequence[Floats], targets: Sequence[Floats]) -> Tasks:
    """The tasks in lists with a table and a vector of targets per task."""
    counts = np.array([len(table) for table in tables], dtype=np.int64)
    return Tasks(np.ascontiguousarray(np.concatenate(tables)), np.concatenate(targets), _starts(counts))


def numbered(n: int) -> list[str]:
    """The names of tasks or features that have none."""
    return [str(i) for i in range(n)]


def together(first: Tasks, second: Tasks) -> Tasks:
    """The rows of both, task by task."""
    each = [np.repeat(np.arange(part.n_tasks), part.sizes) for part in (first, second)]
    order = np.argsort(np.concatenate(each), kind="stable")
    X, y = np.concatenate([first.X, second.X])[order], np.concatenate([first.y, second.y])[order]
    return Tasks(X, y, first.starts + second.starts)


@dataclass(frozen=True, eq=False)
class TaskData:
    """Training, validation and test rows of the same tasks, their names, and the truth behind them where it is known."""

    tasks: list[str]
    features: list[str]
    train: Tasks
    validation: Tasks | None = None
    test: Tasks | None = None
    labels: Indices | None = None
    """The true group of each feature."""
    coef: Floats | None = None
    """(tasks, features): the true models."""
    split_off: list[list[int]] | None = None
    """The rows of each task that were split off for validation."""
    reading: dict[str, Any] = field(default_factory=dict)
    """How the files were read, where that need be told."""

    def with_validation(self, fraction: float | None, seed: int) -> "TaskData":
        """With validation rows split off at random from every task."""
        return self.without(drawn_for_validation(self.tasks, self.train.sizes.tolist(), fraction, seed))

    def without(self, split_off: Sequence[Indices]) -> "TaskData":
        """With these rows of every task, which are then for validation, not among the training rows."""
        held_out = np.zeros(self.train.n_rows, dtype=bool)
        for start, rows in zip(self.train.starts, split_off, strict=False):
            held_out[start + rows] = True
        train, validation = self.train.where(~held_out), self.train.where(held_out)
        return replace(self, train=train, validation=validation, split_off=[rows.tolist() for rows in split_off])


def drawn_for_validation(tasks: Sequence[str], sizes: Sequence[int], fraction: float | None, seed: int) -> list[Indices]:
    """The rows of every task that are split off for validation, drawn at random."""
    rng = np.random.default_rng(seed)
    return [
        split(rows, fraction, rng, f"task {name}", "give validation rows")[1] for name, rows in zip(tasks, sizes, strict=True)
    ]


def packed(X_name: str, X: Any, y_name: str, y: Any) -> Tasks:
    """The tasks in an array of shape (tasks, rows, features) with targets (tasks, rows), or in lists with an entry per task."""
    tables = _entries(X_name, X, 2, "(tasks, rows, features)", "table")
    targets = _entries(y_name, y, 1, "(tasks, rows)", "vector of targets")
    if len(targets) != len(tables):
        got = f"{len(targets)} tasks against {len(tables)}"
        raise InvalidInput(f"{y_name} must have the tasks of {X_name}, got {got}; give every task its targets")
    for t, (table, target) in enumerate(zip(tables, targets, strict=True)):
        if table.shape[1] != tables[0].shape[1]:
            got = f"{table.shape[1]} columns against {tables[0].shape[1]}"
            raise InvalidInput(f"{X_name}[{t}] must have the features of {X_name}[0], got {got}; all tasks share the features")
        if len(target) != len(table):
            got = f"{len(target)} targets for {len(table)} rows"
            raise InvalidInput(f"{y_name}[{t}] must have one target per row of {X_name}[{t}], got {got}")
    tasks = stacked(tables, targets)
    with np.errstate(over="ignore"):
        for name, a in ((X_name, tasks.X), (y_name, tasks.y)):
            if not np.isfinite(np.square(a).sum()):
                raise InvalidInput(f"{name} must have squares that fit in float64, got entries that overflow; rescale them")
    return tasks


def _entries(name: str, value: Any, ndim: int, shape: str, kind: str) -> list[Floats]:
    """One finite array per task, with rows (and columns)."""
    must = f"an array of shape {shape} or a list with one {kind} per task"
    remedy = "give at least one row and one feature per task"
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

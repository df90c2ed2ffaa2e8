"""A row store whose rows are in blocks, and the executors that compute on the blocks.

An executor holds the blocks of X and y and applies functions of ``blocks`` to them. ``LocalBlocks`` does so in this process,
``dask_blocks.DaskBlocks`` on Dask; another distributed back end is one more class with the methods of ``Executor``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.data import blocks
from mixbin.data.blocks import Folds, FoldSums, Survey
from mixbin.data.rows import Statistics, rounding_of
from mixbin.problem import Indices

Function = Callable[..., Any]
"""Called with X and y of a block and its further arguments."""
Merge = Callable[[list[Any]], Any]
Arguments = Sequence[tuple[Any, ...] | None]
"""The further arguments for each block; blocks with None are left out."""


class Executor(Protocol):
    """Holds the blocks of a table and computes on them."""

    surveys: list[Survey]
    """What a first look at each block has found; no block is empty."""

    def map(self, function: Function, arguments: Arguments) -> Iterator[Any]:
        """``function(X, y, *arguments)`` of each block, in the order of the blocks."""

    def reduce(self, function: Function, merge: Merge, arguments: Arguments) -> Any:
        """The same merged into one, in the order of ``blocks.tree``; at least one block has arguments."""

    def digest(self) -> str:
        """A text by which a checkpoint recognises the data."""

    def statistics(self) -> Statistics:
        """How large the blocks are, where they are, and how often they were gone through."""


class LocalBlocks:
    """Blocks of arrays in this process: to the bit what the same blocks give on a cluster."""

    def __init__(self, X: Floats, y: Floats, chunks: Sequence[int]) -> None:
        self._ends, self._passes = np.cumsum(chunks), 0
        self._blocks = list(zip(np.split(X, self._ends[:-1]), np.split(y, self._ends[:-1]), strict=True))
        self.surveys: list[Survey] = list(self.map(blocks.survey, [()] * len(chunks)))

    def map(self, function: Function, arguments: Arguments) -> Iterator[Any]:
        """Compute one block after the other."""
        self._passes += 1
        return (function(*block, *args) for block, args in zip(self._blocks, arguments, strict=True) if args is not None)

    def reduce(self, function: Function, merge: Merge, arguments: Arguments) -> Any:
        """The same, merged by a tree."""
        return blocks.tree(list(self.map(function, arguments)), merge)

    def digest(self) -> str:
        """A hash of the data and of where they are cut."""
        return digest(*(part for block in self._blocks for part in block), self._ends)

    def statistics(self) -> Statistics:
        """The blocks are in memory and never read again."""
        size = sum(part.nbytes for part in self.surveys)
        return Statistics(f"{size / 1e6:,.0f} MB in {len(self.surveys)} blocks, in this process", self._passes, size)


class BlockRows:
    """A ``RowStore`` (see ``rows``) of blocks: reaching a row means a pass over the block that holds it."""

    random_access = False

    def __init__(self, executor: Executor) -> None:
        self.executor, self.digest, self.statistics = executor, executor.digest, executor.statistics
        # An executor that keeps few rows with weight near its workers wants to know which ones may get weight next.
        self._expect: Callable[[Floats], None] | None = getattr(executor, "expect", None)
        self.ends = np.cumsum([part.rows for part in executor.surveys])
        self.n_rows = int(self.ends[-1])
        self.centre, self.variances = blocks.surveyed(executor.surveys)
        self.rounding = rounding_of(self.centre, self.n_rows)

    def moments(self, v: Floats, total: float) -> tuple[Floats, Floats]:
        """The weighted mean and 1/m sum v_i zhat_i zhat_i', in one pass over the blocks with weight."""
        weights = [blocks.weights_of(part) for part in np.split(v, self.ends[:-1])]
        arguments = [None if it is None else (it, self.centre) for it in weights]
        found = self.executor.reduce(blocks.moments, blocks.merged, arguments)
        return found.mean, found.scatter / self.n_rows

    def fold_sums(self, folds: NDArray[np.uint8], n_folds: int) -> FoldSums:
        """The sums of each fold, in one pass."""
        return sums_of_folds(self.executor, folds, n_folds, self.centre)

    def gradient(self, K: Floats, A: Floats, offset: Floats, mean: Floats) -> Floats:
        """(K zhat)' (A zhat / m - offset) for all rows, in one pass."""
        out, done = np.empty(self.n_rows), 0
        for part in self._map(blocks.gradient, K, A / self.n_rows, offset, self.centre + mean):
            out[done : done + len(part)] = part
            done += len(part)
        if self._expect is not None:
            self._expect(out)
        return out

    def images(self, thin: Floats, mean: Floats) -> Floats:
        """``thin @ zhat`` for all rows, in one pass."""
        return np.hstack(list(self._map(blocks.images, thin, self.centre + mean)))

    def take(self, rows: Indices, mean: Floats) -> Floats:
        """Zhat of these rows, from the blocks that hold them."""
        order = np.argsort(rows, kind="stable")
        shift = self.centre + mean
        begins = self.ends - np.diff(self.ends, prepend=0)
        parts = np.split(rows[order], np.searchsorted(rows[order], self.ends[:-1]))
        local = [part - begin for part, begin in zip(parts, begins, strict=True)]
        out, done = np.empty((len(rows), len(shift))), 0
        # As they come: all of them beside ``out`` would be twice the memory.
        for part in self.executor.map(blocks.taken, [(part, shift) if part.size else None for part in local]):
            out[order[done : done + len(part)]] = part
            done += len(part)
        return out

    def moment_work(self, v: Floats) -> int:
        """The multiply-adds of ``moments``: the rows with weight, against each other's columns and summed."""
        columns = len(self.centre)
        return int(np.count_nonzero(v)) * columns * (columns + 1)

    def image_work(self, thin: int) -> int:
        """The multiply-adds of ``images`` for so many rows of ``thin``: every number of every row."""
        return thin * self.n_rows * len(self.centre)

    def _map(self, function: Function, *arguments: Any) -> Iterator[Any]:
        return self.executor.map(function, [arguments] * len(self.ends))


def sums_of_folds(executor: Executor, folds: NDArray[np.uint8], n_folds: int, centre: Floats) -> FoldSums:
    """The sums over the rows of each fold (see ``blocks.FoldSums``), in one pass."""
    ends = np.cumsum([part.rows for part in executor.surveys])
    arguments = [(Folds(part), n_folds, centre) for part in np.split(folds, ends[:-1])]
    found: FoldSums = executor.reduce(blocks.fold_sums, blocks.added_folds, arguments)
    return found


def summary_of_blocks(executor: Executor, centre: Floats) -> tuple[Floats, Floats, int]:
    """The mean of the rows, their R factor (see ``rows.summary``) and their number, in one pass."""
    arguments = [(centre,)] * len(executor.surveys)
    return blocks.summary_of(executor.reduce(blocks.triangle, blocks.stacked, arguments))

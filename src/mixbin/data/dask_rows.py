"""Candidate rows that are a Dask array or dataframe: every pass is a Dask graph, and X and y stay with the workers.

Weights go out (8 bytes a row, fewer where few rows have one), partial sums and one derivative a row come back. What blocks
compute, and in which order sums are made, is in ``blocks``.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.data.blocks import WIDTH, BlockRows, Survey, Weights, stacked, summary_of, survey, tree, triangle
from mixbin.data.dask_tasks import Source, Wanted, applied, merged, sources_of
from mixbin.data.parts import InParts
from mixbin.errors import ClusterLost, InvalidInput, WorkersLost

log = logging.getLogger("mixbin")

Names = tuple[str, str]
"""Of the two arguments, for messages."""
FITS = 0.5
"""X and y are kept in the cluster's memory where they take at most this share of it: workers spill to disk from 0.6 on."""
M_MMAP_THRESHOLD, LARGE_ARRAY = -3, 2**20
"""glibc's name for the size from which memory is not taken from the heap, and that size."""
TRIES = 5
"""A pass is begun so often when workers die under it."""
NOTICED = 1.0
"""Seconds until a lost scheduler is known to be lost."""
TASKS = 4
"""Each thread of a worker has at least so many tasks in a pass, so that all end at about the same time."""


def is_dask(value: object) -> TypeGuard[Any]:
    """Whether a value is a Dask collection; Dask is not imported for this."""
    if "dask" not in sys.modules:
        return False
    from dask import is_dask_collection

    return bool(is_dask_collection(value))


class BadBlock(InvalidInput):
    """A block that cannot be used, with its number."""

    def __init__(self, message: str, block: int) -> None:
        super().__init__(message)
        self.block = block


class DaskBlocks:
    """Two Dask arrays as ``dask_tables`` gives them, block by block, and the cluster that holds them.

    Where ``keep`` is asked for, they are persisted if they fit.
    """

    def __init__(self, table: Any, targets: Any, names: Names, keep: bool = True) -> None:
        from dask.base import get_scheduler, tokenize
        from distributed import Client

        self.names, self._blocks = names, list[Source]()
        self.token = str(tokenize(table, targets))
        self._get = get_scheduler(collections=[table]) or table.__dask_scheduler__
        client = getattr(self._get, "__self__", None)
        self.client: Client | None = client if isinstance(client, Client) else None
        self._address = None if self.client is None else self.client.scheduler.address
        self._threads = 0 if self.client is None else sum(self.client.nthreads().values())
        self.bytes_read = self.passes = 0
        size = table.nbytes + targets.nbytes
        self.kept = False
        if keep and size == size:  # blocks of dataframes have no known size before they are surveyed
            table, targets = self._keep_if_it_fits(table, targets, size)
        self._set(table, targets)
        surveys = self._surveyed()
        if keep and size != size:
            self._set(*self._keep_if_it_fits(table, targets, sum(part.nbytes for part in surveys)))
        # Partitions that a filter has left empty are passed over from here on.
        self._blocks = [block for block, part in zip(self._blocks, surveys, strict=True) if part.rows]
        self.surveys = [part for part in surveys if part.rows]
        self._sizes = [part.nbytes for part in self.surveys]
        self.bytes_read = sum(self._sizes)
        kept = "kept in memory" if self.kept else "read anew in every pass, since memory holds less than twice that"
        self.storage = f"{sum(self._sizes) / 1e6:,.0f} MB in {len(self._sizes)} blocks, {kept}"
        log.log(logging.WARNING if keep and not self.kept else logging.INFO, "%s and %s: %s", *names, self.storage)

    def _keep_if_it_fits(self, table: Any, targets: Any, size: float) -> tuple[Any, Any]:
        """Persist both where there is room for them; what has been persisted before stays where it is."""
        import dask

        before = self.client is not None and _persisted(table) and _persisted(targets)
        self.kept = before or size <= FITS * self._memory()
        if before or not self.kept:
            return table, targets
        table, targets = dask.persist(table.map_blocks(_held, dtype=table.dtype), targets, scheduler=self._get)
        return table, targets

    def _memory(self) -> float:
        """Of all workers, or of this machine."""
        from distributed.system import MEMORY_LIMIT

        if self.client is None:
            return float(MEMORY_LIMIT)
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return float(sum(worker["memory_limit"] or MEMORY_LIMIT for worker in workers))

    def _set(self, table: Any, targets: Any) -> None:
        import dask

        # Held here, since the workers forget what no collection refers to any more.
        self._tables = table, targets
        # Optimised together and not fused: what X and y of a block are both made of, a file say, would be read once for each.
        with dask.config.set({"optimization.fuse.active": False}):
            self._blocks = sources_of(*dask.optimize(table, targets))
        self._sizes = [0] * len(self._blocks)

    def _surveyed(self) -> list[Survey]:
        """One pass over everything: what is wrong is told with its block."""
        got: list[Survey] = list(self.map(survey, [(self.names,)] * len(self._blocks)))
        X, y = self.names
        for number, part in enumerate(got):
            if part.wrong is not None:
                raise BadBlock(f"block {number} of {X} and {y}: {part.wrong}; remove or replace the values in that block", number)
            if part.rows != part.rows_y:
                raise InvalidInput(
                    f"{X} and {y} must have the same blocks, got {part.rows} and {part.rows_y} rows in block {number}; "
                    "make them from the same partitions"
                )
        if not any(part.rows for part in got):
            raise InvalidInput(f"{X} must have rows, got {len(got)} blocks without any; check how it was read")
        return got

    @property
    def n_workers(self) -> int | None:
        """How many processes compute now; None for threads of this one."""
        return None if self.client is None else len(self.client.scheduler_info(n_workers=-1)["workers"])

    def map(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> Iterator[Any]:
        """What the blocks of a task give comes together, so that all of it is never here twice."""
        yield from self._passed(function, None, arguments)

    def reduce(
        self, function: Callable[..., Any], merge: Callable[[list[Any]], Any], arguments: Sequence[tuple[Any, ...] | None]
    ) -> Any:
        """The same, merged by the tasks of the tree."""
        return next(iter(list(self._passed(function, merge, arguments))))

    def summary(self, centre: Floats) -> tuple[Floats, Floats, int]:
        """The mean of the rows, their R factor (see ``rows.summary``) and their number, in one pass."""
        return summary_of(self.reduce(triangle, stacked, [(centre,)] * len(self._blocks)))

    def _passed(
        self,
        function: Callable[..., Any],
        merge: Callable[[list[Any]], Any] | None,
        arguments: Sequence[tuple[Any, ...] | None],
    ) -> Iterator[Any]:
        """One pass; what is missing of it is begun again when a worker has died and taken weights with it."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        wanted = [(block, args) for block, args in zip(self._blocks, arguments, strict=True) if args is not None]
        done = tries = 0
        while wanted and done < (len(wanted) if merge is None else 1):
            try:
                for got in self._compute(function, merge, wanted[done:]):
                    done += 1
                    yield got
            except Exception as error:
                tries += 1
                if isinstance(error, OSError):
                    time.sleep(NOTICED)  # the client is told of a closed connection by others than who met it
                if self.client is not None and self.client.status != "running":
                    raise ClusterLost(
                        f"the Dask scheduler at {self._address} is lost; start a cluster and make the same call again: "
                        "with a checkpoint it goes on from there"
                    ) from error
                if isinstance(error, KilledWorker):
                    raise WorkersLost(
                        "workers have died again and again under the same blocks, perhaps for want of memory; give them more, or "
                        "make the blocks smaller, and make the same call again: with a checkpoint it goes on from there"
                    ) from error
                if self.client is None or not isinstance(error, (FutureCancelledError, OSError)) or tries == TRIES:
                    raise
                log.warning("a worker was lost; its blocks are computed again")
        self.passes += 1
        if not self.kept:
            self.bytes_read += sum(size for size, args in zip(self._sizes, arguments, strict=True) if args is not None)
        _give_back()

    def _compute(
        self, function: Callable[..., Any], merge: Callable[[list[Any]], Any] | None, wanted: Sequence[Wanted]
    ) -> Iterator[Any]:
        """Tasks of a few blocks each, begun a few at a time: workers compute while the client still sends what others need."""
        import dask

        apply, node = (dask.delayed(it, pure=False, traverse=False) for it in (applied, merged))
        size = self._task_size(len(wanted))
        shared = {it.key: it for source, _ in wanted if source.recipe is not None for it in source.inputs}
        if self.client is not None and shared:  # held through the pass, since not all tasks are known from its beginning
            shared = dict(zip(shared, self.client.compute(list(shared.values())), strict=True))
        tasks = []
        for i in range(0, len(wanted), size):
            sources, arguments = zip(*wanted[i : i + size], strict=True)
            weights = None
            if isinstance(next(iter(arguments[0]), None), Weights):
                weights, arguments = [it[0] for it in arguments], tuple(it[1:] for it in arguments)
                if self.client is not None:  # straight to a worker: in a graph the scheduler would have to unpack them
                    (weights,) = self.client.scatter([weights], hash=False)
            recipes = [source.recipe for source in sources]
            inputs = [shared.get(it.key, it) for source in sources for it in source.inputs]
            task = apply(function, merge if size == WIDTH else None, recipes, list(arguments), weights, *inputs)
            tasks.append(task if self.client is None else self.client.compute(task))
        if merge is not None:
            if size < WIDTH:
                tasks = [node(merge, tasks[i : i + WIDTH // size]) for i in range(0, len(tasks), WIDTH // size)]
            tasks = [tree(tasks, lambda parts: node(merge, parts))]
        if self.client is None:
            tasks = dask.compute(*tasks, scheduler=self._get)
        elif merge is not None:
            tasks = [self.client.compute(tasks[0])]
        for task in tasks:
            yield from task if self.client is None else self.client.gather(task)

    def _task_size(self, blocks: int) -> int:
        """Blocks in a task, a power of 2: each task has its price. What is kept in memory stays where it is, one in each."""
        if self._threads == 0 or self.kept:
            return 1
        return int(2 ** np.floor(np.log2(np.clip(blocks / (TASKS * self._threads), 1, WIDTH))))


class DaskRows(BlockRows):
    """The candidate rows of a Dask table."""

    def __init__(self, blocks: DaskBlocks) -> None:
        super().__init__(blocks.surveys)
        self.blocks = blocks

    def map(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> Iterator[Any]:
        """In tasks of one block or some."""
        return self.blocks.map(function, arguments)

    def reduce(
        self, function: Callable[..., Any], merge: Callable[[list[Any]], Any], arguments: Sequence[tuple[Any, ...] | None]
    ) -> Any:
        """The same, and the tasks of the tree."""
        return self.blocks.reduce(function, merge, arguments)

    def digest(self) -> str:
        """Dask's own token: the data are not read for it."""
        return self.blocks.token


def rows_where(table: Any, mask: NDArray[np.bool_]) -> Any:
    """The rows of a Dask array at which ``mask`` is True, in the same blocks, some maybe empty; workers are sent a bit a row."""
    import dask.array as da
    from dask import delayed
    from dask.base import tokenize

    name = f"rows-{tokenize(table, mask)}"
    keep = delayed(_kept, pure=True, traverse=False)
    parts, begin = [], 0
    for i, (block, rows) in enumerate(zip(table.to_delayed(optimize_graph=False).ravel(), table.chunks[0], strict=True)):
        wanted = mask[begin : begin + rows]
        begin += rows
        part = keep(block, np.packbits(wanted), dask_key_name=f"{name}-{i}")
        parts.append(da.from_delayed(part, (int(wanted.sum()), *table.shape[1:]), dtype=table.dtype))
    return da.concatenate(parts)


def _held(block: Any) -> Any:
    """A block in memory."""
    return block.held() if isinstance(block, InParts) else block


def _kept(block: Any, bits: NDArray[np.uint8]) -> Any:
    """Some rows of a block, in the layout that it has."""
    mask = np.unpackbits(bits, count=len(block)).view(np.bool_)
    if isinstance(block, InParts):
        return block.where(mask)
    return np.compress(mask, block.T, axis=-1).T if block.flags.f_contiguous else block[mask]


@cache
def _heap() -> Any:
    """The C library, where it is glibc, told to keep large arrays out of its heap."""
    from ctypes import CDLL

    library = CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "malloc_trim"):
        return None
    library.mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY)
    return library


def _give_back() -> None:
    """Hand freed memory back to the system: blocks and thetas that come and go would leave the heap full of holes."""
    if (heap := _heap()) is not None:
        heap.malloc_trim(0)


def _persisted(collection: Any) -> bool:
    from distributed import futures_of

    return bool(len(futures_of(collection)) >= collection.npartitions)


def dask_tables(X: Any, y: Any, names: Names) -> tuple[Any, Any]:
    """Rows and targets as Dask arrays in the same blocks, as far as that can be told without reading them."""
    table, targets = _table(names, X), _targets(names, y)
    _check_blocks(names, table, targets)
    return table, targets


def _table(names: Names, value: Any) -> Any:
    """X as a Dask array of numbers with all its columns in each block."""
    name, kind = names[0], "a Dask array of shape (rows, columns) or a Dask dataframe"
    if not is_dask(value):
        raise InvalidInput(
            f"{name} must be {kind} where {names[1]} is one of Dask, got {type(value).__name__}; "
            f"use dask.array.from_array({name}, chunks=({names[1]}.chunks[0], -1))"
        )
    table = _as_array(name, value, kind)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidInput(f"{name} must be {kind}, got shape {table.shape}; reshape it or check how it was read")
    if table.numblocks[1] > 1:
        raise InvalidInput(
            f"{name} must have all its columns in each block, got {table.numblocks[1]} blocks of columns; "
            f"use {name}.rechunk({{1: -1}})"
        )
    return table


def _targets(names: Names, value: Any) -> Any:
    name = names[1]
    kind = f"a Dask array or series with the rows and blocks of {names[0]}"
    if not is_dask(value):
        raise InvalidInput(
            f"{name} must be {kind}, got {type(value).__name__}; use dask.array.from_array({name}, chunks={names[0]}.chunks[0])"
        )
    y = _as_array(name, value, kind)
    if y.ndim not in (1, 2) or 0 in y.shape[1:]:
        raise InvalidInput(f"{name} must be {kind}, got shape {y.shape}; give one target per row, or a column for each")
    if y.ndim == 2 and y.numblocks[1] > 1:
        raise InvalidInput(
            f"{name} must have all its columns in each block, got {y.numblocks[1]} blocks of columns; "
            f"use {name}.rechunk({{1: -1}})"
        )
    return y


def _as_array(name: str, value: Any, kind: str) -> Any:
    """A Dask array with numbers in it; only those that were dataframes may have blocks of unknown size."""
    import dask.array as da
    from dask.utils import is_dataframe_like, is_series_like

    if isinstance(value, da.Array):
        if np.isnan(value.shape).any():
            raise InvalidInput(
                f"{name} must have blocks of known size, got unknown chunk sizes; call {name}.compute_chunk_sizes() first"
            )
        if 0 in value.shape:
            raise InvalidInput(f"{name} must have rows and columns, got shape {value.shape}; check how it was read")
        _check_dtype(name, value.dtype, "its entries")
        return value
    if not is_dataframe_like(value) and not is_series_like(value):
        raise InvalidInput(f"{name} must be {kind}, got {type(value).__name__}; see dask.array.from_delayed")
    check.plain_table(name, value)
    if value.ndim == 2:
        for column, dtype in value.dtypes.items():
            _check_dtype(name, dtype, f"column {column!r}")
    else:
        _check_dtype(name, value.dtype, "its entries")
    return value.to_dask_array()


def _check_dtype(name: str, dtype: Any, what: str) -> None:
    if getattr(dtype, "kind", "O") not in "buif":
        raise InvalidInput(f"{name} must hold numbers, got {what} of dtype {dtype}; turn them into numbers or leave them out")


def _check_blocks(names: Names, X: Any, y: Any) -> None:
    """Dataframes tell the sizes of their blocks only when they are surveyed."""
    a, b = X.chunks[0], y.chunks[0]
    known = not np.isnan([*a, *b]).any()
    if len(a) == len(b) and (not known or a == b):
        return
    if len(a) != len(b):
        how = f"{len(a)} and {len(b)} blocks"
    else:
        number = next(i for i in range(len(a)) if a[i] != b[i])
        how = f"{a[number]} and {b[number]} rows in block {number}"
    remedy = f"use {names[1]}.rechunk({{0: {names[0]}.chunks[0]}})" if known else "make them from the same partitions"
    raise InvalidInput(f"{names[0]} and {names[1]} must have the same blocks, got {how}; {remedy}")

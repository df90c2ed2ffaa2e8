"""Blocks of Dask arrays and dataframes: every pass over them is a Dask graph, and X and y stay with the workers.

The client sends weights (8 bytes a row, fewer if few rows have weight) and receives partial sums and one derivative a row.
"""

import logging
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import numpy as np

from mixbin._validate import Floats
from mixbin.data.block_copies import Copies, remove_copies
from mixbin.data.block_rows import Arguments, Function, Merge
from mixbin.data.blocks import BRANCHES, Folds, Survey, Weights, gradient, survey, tree
from mixbin.data.dask_tables import Names
from mixbin.data.dask_tasks import Source, Wanted, applied, merged, sources_of
from mixbin.data.freed_memory import return_freed_memory
from mixbin.data.near_rows import KeptRecipe, NearRows, gradient_and_rows, without_rows
from mixbin.data.parts import RowsInParts, TargetInParts
from mixbin.data.rows import Statistics
from mixbin.errors import ClusterLost, InvalidInput, WorkersLost

log = logging.getLogger("mixbin")

KEPT_SHARE = 0.5
"""X and y are kept in the cluster's memory if they take at most this share of it: workers spill to disk from 0.6 on."""
NEAR_SHARE = 0.2
"""If X is read from its own files, few rows with weight are kept in memory if they take at most this share of it."""
SENT_AT_ONCE = 2**21
"""Weights of up to this many bytes are sent for all tasks of a pass together."""
TRIES = 5
"""A pass is begun this often when workers die under it."""
LOSS_NOTICED = 1.0
"""Seconds after which the client knows that the scheduler is lost."""
TASKS_PER_THREAD = 4
"""Each thread of a worker gets at least this many tasks in a pass, so that all threads end at about the same time."""


class BadBlock(InvalidInput):
    """A block that cannot be used; ``block`` is its number."""

    def __init__(self, message: str, block: int) -> None:
        super().__init__(message)
        self.block = block


class DaskBlocks:
    """The executor (see ``block_rows``) of two Dask arrays that ``dask_tables`` has checked.

    With ``keep`` they are persisted on the cluster if they fit, or else copied to the workers' disks if that is worth it.
    """

    def __init__(self, table: Any, targets: Any, names: Names, keep: bool = True) -> None:
        from dask.base import get_scheduler, tokenize
        from distributed import Client

        self.names, self._blocks = names, list[Source]()
        self._token = str(tokenize(table, targets))
        self._get = get_scheduler(collections=[table]) or table.__dask_scheduler__
        client = getattr(self._get, "__self__", None)
        self.client: Client | None = client if isinstance(client, Client) else None
        self._address = None if self.client is None else self.client.scheduler.address
        self._threads = 0 if self.client is None else sum(self.client.nthreads().values())
        self._bytes_read = self._passes = 0
        size = table.nbytes + targets.nbytes
        self.kept = False
        self._near: NearRows | None = None
        self._copies: Copies | None = None
        if keep and size == size:  # NaN for dataframes, whose blocks have no known size before they are surveyed
            self._keep(table, targets, size)
        else:
            self._set(table, targets)
        surveys = self._surveyed()
        if keep and size != size:
            self._keep(table, targets, sum(part.nbytes for part in surveys))
        # Partitions that a filter has left empty are left out from here on.
        self._blocks = [block for block, part in zip(self._blocks, surveys, strict=True) if part.rows]
        self.surveys = [part for part in surveys if part.rows]
        self._sizes = [part.nbytes for part in self.surveys]
        self._bytes_read = sum(self._sizes)
        # Of copies, a value maps what it needs: keeping its rows at hand gained nothing and cost the gradient half as much again.
        if not self.kept and self.client is not None and self._copies is None:
            rows, columns = [part.rows for part in self.surveys], len(self.surveys[0].mean)
            self._near = NearRows(rows, self._sizes, columns, NEAR_SHARE * self._memory())
        read = "read anew in every pass" if self._copies is None else "copied to the workers' disks and read there in every pass"
        why = "more than half of the memory, so " if keep else ""  # others are gone through so seldom that they are never kept
        kept = "kept in memory" if self.kept else why + read
        self._storage = f"{sum(self._sizes) / 1e6:,.0f} MB in {len(self._sizes)} blocks, {kept}"
        log.log(logging.WARNING if keep and not self.kept else logging.INFO, "%s and %s: %s", *names, self._storage)

    def _keep(self, table: Any, targets: Any, size: float) -> None:
        """Persist both if there is room for them, or else copy them to disk; what the user has persisted stays where it is."""
        import dask

        before = self.client is not None and _persisted(table) and _persisted(targets)
        self.kept = before or size <= KEPT_SHARE * self._memory()
        if self.kept and not before:
            loaded = (it.map_blocks(_loaded, dtype=it.dtype) for it in (table, targets))
            table, targets = dask.persist(*loaded, scheduler=self._get)
        self._set(table, targets)
        if not self.kept and self.client is not None and (copies := Copies(self.client)).fit(size):
            self._copies, self._blocks = copies, copies.of(self._blocks)
            weakref.finalize(self, remove_copies, self.client, copies.folder).atexit = False

    def _memory(self) -> float:
        """The memory of all workers, or of this machine."""
        from distributed.system import MEMORY_LIMIT

        if self.client is None:
            return float(MEMORY_LIMIT)
        return float(sum(worker["memory_limit"] or MEMORY_LIMIT for worker in self._workers().values()))

    def _workers(self) -> dict[str, Any]:
        assert self.client is not None
        return dict(self.client.scheduler_info(n_workers=-1)["workers"])

    def _set(self, table: Any, targets: Any) -> None:
        import dask

        # Referred to here, since the workers forget what no collection refers to any more.
        self._tables = table, targets
        # Optimised together and not fused: otherwise a file that holds X and y of a block would be read once for each.
        with dask.config.set({"optimization.fuse.active": False}):
            self._blocks = sources_of(*dask.optimize(table, targets))
        self._sizes = [0] * len(self._blocks)

    def _surveyed(self) -> list[Survey]:
        """Look at all blocks in one pass; an error names the block that cannot be used."""
        surveys: list[Survey] = list(self.map(survey, [(self.names,)] * len(self._blocks)))
        X, y = self.names
        for number, part in enumerate(surveys):
            if part.wrong is not None:
                raise BadBlock(f"block {number} of {X} and {y}: {part.wrong}; remove or replace the values in that block", number)
            if part.rows != part.rows_y:
                raise InvalidInput(
                    f"{X} and {y} must have the same blocks, got {part.rows} and {part.rows_y} rows in block {number}; "
                    "make them from the same partitions"
                )
        if not any(part.rows for part in surveys):
            raise InvalidInput(f"{X} must have rows, got {len(surveys)} blocks without any; check how it was read")
        return surveys

    def digest(self) -> str:
        """Dask's own token, for which the data are not read."""
        return self._token

    def statistics(self) -> Statistics:
        """What was read so far, and the workers that there are now."""
        n_workers = None if self.client is None else len(self._workers())
        return Statistics(self._storage, self._passes, self._bytes_read, n_workers)

    def map(self, function: Function, arguments: Arguments) -> Iterator[Any]:
        """Yield results task by task, so that the client never holds two copies of all of them."""
        keeping = self._near.gradient_arguments(arguments) if self._near is not None and function is gradient else None
        if keeping is None:
            yield from self._run_pass(function, None, arguments)
            return
        assert self._near is not None
        for number, (out, rows, source) in enumerate(self._run_pass(gradient_and_rows, None, keeping)):
            self._near.keep(number, rows, source)
            yield out

    def reduce(self, function: Function, merge: Merge, arguments: Arguments) -> Any:
        """The same, merged by the workers along the tree. Rows with weight that workers keep are not read."""
        if self._near is None or not any(args is not None and isinstance(args[0], Weights) for args in arguments):
            return next(iter(list(self._run_pass(function, merge, arguments))))
        sources, changed, read = self._near.sources(self._blocks, arguments)
        return next(iter(list(self._run_pass(function, merge, changed, sources, read))))

    def expect(self, gradient: Floats) -> None:
        """Note how low the gradient goes: rows that may get weight next are kept together with those that have it."""
        if self._near is not None:
            self._near.expect(gradient)

    def _run_pass(
        self,
        function: Function,
        merge: Merge | None,
        arguments: Arguments,
        sources: Sequence[Source] | None = None,
        read: Sequence[bool] | None = None,
    ) -> Iterator[Any]:
        """One pass; if a worker dies and takes weights with it, what is missing of the pass is begun again."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        blocks = self._blocks if sources is None else sources
        wanted = [(block, args) for block, args in zip(blocks, arguments, strict=True) if args is not None]
        done = tries = 0
        while wanted and done < (len(wanted) if merge is None else 1):
            try:
                for result in self._compute(function, merge, wanted[done:]):
                    done += 1
                    yield result
            except Exception as error:
                tries += 1
                if isinstance(error, OSError):
                    time.sleep(LOSS_NOTICED)  # another thread tells the client that the connection is closed
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
        self._passes += 1
        if self._copies is not None:
            self._copies.locate()
        if not self.kept:
            read = [args is not None for args in arguments] if read is None else read
            self._bytes_read += sum(size for size, was_read in zip(self._sizes, read, strict=True) if was_read)
        return_freed_memory()

    def _compute(self, function: Function, merge: Merge | None, wanted: Sequence[Wanted]) -> Iterator[Any]:
        """Tasks of a few blocks each. Where weights are sent, workers compute while the client sends what others need."""
        import dask
        from dask.delayed import Delayed

        apply, node, rest = (dask.delayed(it, pure=False, traverse=False) for it in (applied, merged, without_rows))
        size = self._task_size(len(wanted))
        shared = {
            it.key: it for source, _ in wanted if source.recipe is not None for it in source.inputs if isinstance(it, Delayed)
        }
        if self.client is not None and shared:  # kept through the pass, since not all tasks are known when it begins
            shared = dict(zip(shared, self.client.compute(list(shared.values())), strict=True))
        parts = [wanted[i : i + size] for i in range(0, len(wanted), size)]
        weighted = isinstance(next(iter(wanted[0][1]), None), (Weights, Folds))
        # Each sending and each submission has its price. Many weights are sent for as many tasks at once as can begin: a long
        # sending would hold up the scheduler, which shares a thread with it.
        many = weighted and sum(it.nbytes for _, args in wanted for it in args[0] if it is not None) > SENT_AT_ONCE
        at_once = max(1, self._threads) if many and self.client is not None else len(parts)
        # Results are fetched in the order of the tasks, and Dask begins those with the lowest names first: so most results are
        # fetched while workers still compute others.
        name, tasks, left = f"mixbin-{uuid4().hex}", list[Any](), list[Any]()
        for begin in range(0, len(parts), at_once):
            some, new = parts[begin : begin + at_once], list[Any]()
            weights: Sequence[Any] = [[args[0] for _, args in part] if weighted else None for part in some]
            if weighted and self.client is not None:  # straight to workers: the scheduler would have to unpack what is in a graph
                weights = self.client.scatter(weights, hash=False)
            for part, own in zip(some, weights, strict=True):
                sources, arguments = zip(*part, strict=True)
                recipes = [source.recipe for source in sources]
                inputs = [shared.get(it.key, it) for source in sources for it in source.inputs]
                others = [it[1:] if weighted else it for it in arguments]
                key, in_task = f"{name}-{len(tasks) + len(new):07d}", merge if size == BRANCHES else None
                with self._beside_copies(sources):
                    new.append(apply(function, in_task, recipes, others, own, *inputs, dask_key_name=key))
            if self.client is not None and function is gradient_and_rows:  # the rows stay with the worker
                both = self.client.compute([*new, *(rest(it, dask_key_name=f"{it.key}-rest") for it in new)])
                left, new = both[: len(new)], both[len(new) :]
            elif self.client is not None:
                new = self.client.compute(new)
            tasks += new
        if merge is not None:
            if size < BRANCHES:
                tasks = [node(merge, *tasks[i : i + BRANCHES // size]) for i in range(0, len(tasks), BRANCHES // size)]
            tasks = [tree(tasks, lambda parts: node(merge, *parts))]
        if self.client is None:
            tasks = dask.compute(*tasks, scheduler=self._get)
        elif merge is not None:
            tasks = [self.client.compute(tasks[0])]
        for number, task in enumerate(tasks):
            results = task if self.client is None else self.client.gather(task)
            if left:
                yield from ((*it, Source(KeptRecipe(i), [left[number]])) for i, it in enumerate(results))
            else:
                yield from results

    def _beside_copies(self, sources: Sequence[Source]) -> Any:
        """A context whose tasks go to the machine that has the copies of these blocks, or elsewhere if it is busy or gone."""
        import dask

        workers = None if self._copies is None else self._copies.workers_for(sources)
        return nullcontext() if workers is None else dask.annotate(workers=workers, allow_other_workers=True)

    def _task_size(self, blocks: int) -> int:
        """Blocks in a task, a power of 2, since each task has its price; 1 if blocks are in memory, so that none is moved."""
        if self._threads == 0 or self.kept:
            return 1
        return int(2 ** np.floor(np.log2(np.clip(blocks / (TASKS_PER_THREAD * self._threads), 1, BRANCHES))))


def _loaded(block: Any) -> Any:
    """A block in memory."""
    if isinstance(block, TargetInParts):
        return np.asarray(block)
    return block.loaded() if isinstance(block, RowsInParts) else block


def _persisted(collection: Any) -> bool:
    from distributed import futures_of

    return bool(len(futures_of(collection)) >= collection.npartitions)

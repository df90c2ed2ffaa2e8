"""Copies of blocks as plain numbers on the workers' disks, for a table that is read in every pass.

Unpacking Parquet takes as long as computing with it, turning text into numbers far longer. So a worker that has made a block
leaves its numbers in a file. Later passes map that file into memory, where it needs no unpacking. The numbers and their types are
those of the block, so the sums are, too, to the bit.

This pays as long as the operating system holds the copies in memory that nobody else needs. A table beyond that would come from
the disk in every pass, and its own files are usually smaller.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from mixbin.data.dask_tasks import Recipe, Source
from mixbin.data.parts import BlockTable, BlockTarget, Columns, RowsInParts, TargetInParts, columns_of, parts_of

SHARE = 0.5
"""Copies take at most this share of a machine's free disk space, and of its free memory."""
LEFT_FREE = 2**30
"""Bytes of the disk that a copy never takes."""
PART_BYTES = 2**25
"""Bytes of a block that are mapped at a time: they count as memory of the worker."""
IN_MEMORY = {"tmpfs", "ramfs"}
OVER_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "ceph", "glusterfs", "fuse.sshfs", "afs"}
UNFIT = IN_MEMORY | OVER_NETWORK
"""Kinds of file systems on which copies gain nothing."""


class Room(NamedTuple):
    """What a worker has for copies."""

    host: str
    disk: float
    memory: float


def room(dask_worker: Any) -> Room | None:
    """Run on a worker. None if it has no disk of its own, or Dask is told not to spill to it."""
    import psutil
    from distributed.comm import get_address_host
    from distributed.system import MEMORY_LIMIT

    manager = dask_worker.memory_manager
    if manager.memory_target_fraction is False and manager.memory_spill_fraction is False:
        return None
    folder = Path(dask_worker.local_directory).resolve()
    mounts = [it for it in psutil.disk_partitions(all=True) if folder.is_relative_to(it.mountpoint)]
    if mounts and max(mounts, key=lambda it: len(it.mountpoint)).fstype in UNFIT:
        return None
    memory = min(float(psutil.virtual_memory().available), float(MEMORY_LIMIT))
    return Room(get_address_host(dask_worker.address), float(shutil.disk_usage(folder).free), memory)


class Copies:
    """What the client knows about the copies of a table."""

    def __init__(self, client: Any) -> None:
        self.client, self.folder = client, f"mixbin-{uuid4().hex}"
        self._workers_at = dict[str, list[str]]()
        """The workers of each machine."""
        self._home, self._copied = dict[int, str](), 0
        """The machine of each block, if there are several; how many blocks are copied."""

    def fit(self, nbytes: float) -> bool:
        """Whether all machines have room for their shares of a table."""
        rooms: dict[str, Room | None] = self.client.run(room)
        self._workers_at = {}
        for address, it in rooms.items():
            if it is None:
                return False
            self._workers_at.setdefault(it.host, []).append(address)
        share = nbytes / max(1, len(self._workers_at))
        return bool(rooms) and all(it is not None and share <= SHARE * min(it.disk, it.memory) for it in rooms.values())

    def of(self, sources: Sequence[Source]) -> list[Source]:
        """The same blocks, of which workers leave copies; blocks for which steps are shared with others are left as they are."""
        found = [
            it if it.recipe is None or it.inputs else Source(CopyRecipe(it.recipe, self.folder, number), [])
            for number, it in enumerate(sources)
        ]
        self._copied = sum(isinstance(it.recipe, CopyRecipe) for it in found)
        return found

    def locate(self) -> None:
        """Ask where the copies are, unless that is known. On a single machine every worker finds all of them."""
        if len(self._workers_at) > 1 and len(self._home) < self._copied:
            found: dict[str, list[int]] = self.client.run(numbers_of_copies, self.folder)
            host_of = {address: host for host, workers in self._workers_at.items() for address in workers}
            self._home = {number: host_of[worker] for worker, there in found.items() if worker in host_of for number in there}

    def workers_for(self, sources: Sequence[Source]) -> list[str] | None:
        """The workers beside the copies of most of these blocks; None if all workers are, or none is."""
        numbers = [it.recipe.number for it in sources if isinstance(it.recipe, CopyRecipe)]
        homes = Counter(self._home[number] for number in numbers if number in self._home)
        return self._workers_at[homes.most_common(1)[0][0]] if homes else None


def remove_copies(client: Any, folder: str) -> None:
    """Have all workers remove their copies; nobody waits for it. When a worker ends, Dask removes all that it has left."""
    if client.status == "running":
        with suppress(RuntimeError):  # the loop has ended in between
            client.loop.add_callback(client.run, _remove, folder, on_error="ignore")


def _remove(folder: str, dask_worker: Any) -> None:
    shutil.rmtree(Path(dask_worker.local_directory) / folder, ignore_errors=True)


def numbers_of_copies(folder: str, dask_worker: Any) -> list[int]:
    """Run on a worker: the blocks of which it has copies."""
    return [int(it.stem) for it in (Path(dask_worker.local_directory) / folder).glob("*.arrow")]


class CopyRecipe(Recipe):
    """Takes X and y of a block from its copy, or makes them by another recipe and leaves a copy."""

    def __init__(self, recipe: Recipe, folder: str, number: int) -> None:
        super().__init__(recipe.graph, recipe.inputs, recipe.outputs)
        self.folder, self.number = folder, number

    def follow(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """X and y, from a file if there is one or if one can be written."""
        from distributed import get_worker

        own = Path(get_worker().local_directory)
        name = f"{self.folder}/{self.number}.arrow"
        # Workers of one machine have their folders beside each other.
        for file in chain([own / name], own.parent.glob(f"*/{name}")):
            if (found := opened(file)) is not None:
                return found
        X, y = super().follow(inputs)
        return (opened(own / name) if written(own / name, X, y) else None) or (X, y)


def written(file: Path, X: Any, y: Any) -> bool:
    """Write a block to a file, part by part; False if that cannot be done."""
    import pyarrow as pa

    if not isinstance(X, (np.ndarray, RowsInParts)) or not len(X) or len(X) != len(y):
        return False
    if not {X.dtype.kind, y.dtype.kind} <= set("buif"):  # what cannot be used is left as it is, for the survey to tell
        return False
    temporary = file.with_name(f"{uuid4().hex}.part")
    try:
        file.parent.mkdir(exist_ok=True)
        if shutil.disk_usage(file.parent).free < LEFT_FREE + X.nbytes:
            return False
        with pa.OSFile(str(temporary), "wb") as out:
            _write(out, X, y)
        os.replace(temporary, file)
        return True
    except (OSError, pa.ArrowException):
        # No room, or numbers that Arrow does not have. If the block itself cannot be read, computing with it will tell.
        return False
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _write(out: Any, X: BlockTable, y: BlockTarget) -> None:
    import pyarrow as pa

    said = {"rows": len(X), "columns": X.shape[1], "dtype": X.dtype.str, "y": ",".join(map(str, y.shape)), "y_dtype": y.dtype.str}
    step, writer = max(1, PART_BYTES // (8 * (X.shape[1] + 1))), None
    for part, targets, _ in parts_of(X, y):
        for begin in range(0, len(part), step):
            rows = slice(begin, begin + step)
            columns = [*_columns(part[rows]), *_columns(targets[rows].reshape(len(targets[rows]), -1))]
            batch = pa.record_batch([pa.array(it) for it in columns], names=[str(j) for j in range(len(columns))])
            if writer is None:
                facts = {name: str(it) for name, it in said.items()}
                writer = pa.ipc.new_file(out, batch.schema.with_metadata(facts))
            writer.write_batch(batch)
    assert writer is not None
    writer.close()


def _columns(rows: NDArray[Any] | Columns) -> list[NDArray[Any]]:
    found = columns_of(rows)
    return [np.ascontiguousarray(it) for it in (np.asarray(rows).T if found is None else found)]


def opened(file: Path) -> "tuple[CopiedRows, CopiedTarget] | None":
    """X and y of a copy; None if it is gone or damaged."""
    import pyarrow as pa

    try:
        with pa.memory_map(str(file)) as source:
            reader = pa.ipc.open_file(source)
            facts = {name.decode(): it.decode() for name, it in (reader.schema.metadata or {}).items()}
            batches = reader.num_record_batches
        X = CopiedRows(file, batches, (int(facts["rows"]), int(facts["columns"])), np.dtype(facts["dtype"]))
        return X, CopiedTarget(X, tuple(map(int, facts["y"].split(","))), np.dtype(facts["y_dtype"]))
    except (OSError, pa.ArrowException, KeyError):
        return None


class CopiedRows(RowsInParts):
    """X of a copy: a part of the file is mapped at a time."""

    def __init__(self, file: Path, batches: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self.file, self.batches, self.shape, self.dtype = file, batches, shape, dtype

    def parts(self) -> Iterator[Columns]:
        """The columns as they lie in the file."""
        for part, _ in self.both():
            yield part

    def both(self) -> Iterator[tuple[Columns, list[NDArray[Any]]]]:
        """The columns of X, and those of y."""
        for columns in self.read():
            yield Columns(columns[: self.shape[1]]), columns[self.shape[1] :]

    def read(self, first: int = 0) -> Iterator[list[NDArray[Any]]]:
        """The columns from ``first`` on, part by part. A part is unmapped once nobody refers to it any more."""
        import pyarrow as pa

        for number in range(self.batches):
            with pa.memory_map(str(self.file)) as source:
                batch = pa.ipc.open_file(source).get_batch(number)
            yield [np.asarray(it.to_numpy(zero_copy_only=False)) for it in batch.columns[first:]]


class CopiedTarget(TargetInParts):
    """Y of a copy."""

    def __init__(self, X: CopiedRows, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._X, self.shape, self.dtype = X, shape, dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        columns = zip(*self._X.read(self._X.shape[1]), strict=True)
        found = np.stack([np.concatenate(it) for it in columns], axis=-1).reshape(self.shape)
        return found.astype(dtype or self.dtype, copy=False)

    def beside(self, X: BlockTable) -> Iterator[tuple[NDArray[Any] | Columns, NDArray[Any]]]:
        """The parts of X, each with its part of y, which lies in the same file."""
        if not isinstance(X, CopiedRows) or X.file != self._X.file:
            yield from super().beside(X)
            return
        for part, targets in X.both():
            yield part, targets[0] if len(self.shape) == 1 else np.stack(targets, axis=-1)

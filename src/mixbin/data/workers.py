"""Dask workers on this machine."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mixbin import _validate as check
from mixbin.data.dask_tables import check_dask_installed

MOST = 4096
"""More workers, or threads of one, are refused: no machine has that many cores."""

KEPT_FREE = {"MMAP_THRESHOLD": 2**23, "TRIM_THRESHOLD": 2**25}
"""For glibc: arrays of fewer bytes are taken from the heap, and so much free memory at its end is kept."""


@contextmanager
def local_workers(workers: int | None = None, memory_limit: str | None = None, threads: int | None = None) -> Iterator[Any]:
    """Worker processes on this machine, for Dask collections and Parquet folders; they end with the ``with`` block.

    Each computes on one BLAS thread: more beside Dask's threads would be too many for the cores, and one each gives the same bits
    for any number of workers. Needs Dask: ``pip install "mixbin[dask]"``.

    Parameters
    ----------
    workers : int, optional
        The number of processes; by default one a core.
    memory_limit : str, optional
        The memory of each worker, such as "2GB"; by default an equal share of the machine's.
    threads : int, optional
        The threads of each worker; by default all workers together have one a core.

    Yields
    ------
    distributed.Client
        A client of the workers, which is the default for all Dask computations inside the block.

    See Also
    --------
    ParquetFolder : A table that workers read block by block.

    Notes
    -----
    In a script this belongs below ``if __name__ == "__main__":``, since the workers import the script.

    Examples
    --------
    >>> import dask.array as da, numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X, y = da.from_array(rng.normal(size=(90, 3)), chunks=(30, -1)), da.from_array(rng.normal(size=90), chunks=30)
    >>> with mb.local_workers(1, memory_limit="1GB"):
    ...     problem = mb.RidgeDistillation(X, y, X, y, budget=9, alpha=0.1)
    ...     problem.rows.statistics().n_workers
    1
    """
    check_dask_installed("a local worker")
    import dask
    from distributed import Client, LocalCluster

    for name, number in (("workers", workers), ("threads", threads)):
        if number is not None:
            check.whole(name, number, low=1, high=MOST, remedy="None takes one a core")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n = workers or cores
    # By default Dask samples a hundred times a second what each worker is doing and checks fifty times whether it still answers:
    # nobody looks at this here, and on few cores it costs time.
    quiet = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
    # Dask has the workers return freed memory at once, so that every block takes new pages: 3 % of a pass (1.55 s instead of
    # 1.60 s for an evaluation of 4 million rows). Larger arrays than these still go back at once.
    memory = {f"distributed.nanny.pre-spawn-environ.MALLOC_{name}_": size for name, size in KEPT_FREE.items()}
    with (
        dask.config.set(quiet | memory),
        LocalCluster(
            n_workers=n,
            threads_per_worker=threads or max(1, cores // n),
            memory_limit=checked_memory("memory_limit", memory_limit) or "auto",
            dashboard_address=":0",
            # An error on a worker is raised here, too, and need not be logged.
            silence_logs=logging.CRITICAL,
        ) as local,
        Client(local, direct_to_workers=True) as client,
    ):
        yield client


def checked_memory(name: str, value: str | None) -> str | None:
    """A size in words that Dask understands, or None."""
    from dask.utils import parse_bytes

    if value is None:
        return None
    try:
        enough = isinstance(value, str) and parse_bytes(value) > 0
    except (ValueError, OverflowError):
        enough = False
    if not enough:
        raise check.fail(name, value, "a size", "write one such as 2GB")
    return value

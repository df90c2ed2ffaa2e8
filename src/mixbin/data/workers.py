"""Dask workers on this machine."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def local_workers(workers: int | None, memory_limit: str | None, threads: int | None = None) -> Iterator[Any]:
    """A client of workers on this machine: one process a core unless told otherwise, with one thread for BLAS each.

    BLAS threads beside Dask's would be too many for the cores, and one each gives the same bits for any number of workers.
    """
    import dask
    from distributed import Client, LocalCluster

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n = workers or cores
    # Dask looks a hundred times a second at what each worker is doing and fifty times whether it still answers: nobody asks for
    # it here, and on few cores it is felt.
    quiet = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
    with (
        dask.config.set(quiet),
        LocalCluster(
            n_workers=n,
            threads_per_worker=threads or max(1, cores // n),
            memory_limit=memory_limit or "auto",
            dashboard_address=":0",
            # What fails on a worker fails here, too, and is told once.
            silence_logs=logging.CRITICAL,
        ) as local,
        Client(local, direct_to_workers=True) as client,
    ):
        yield client

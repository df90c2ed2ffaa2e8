"""Memory that was freed goes back to the system, where somebody waits for it.

The C library and Arrow keep what they have freed, and what is small and still in use keeps large pieces from going back.
"""

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

M_MMAP_THRESHOLD, LARGE_ARRAY = -3, 2**20
"""glibc's name for the size from which memory is not taken from the heap, and that size for the client."""
NEARLY_FULL = 0.6
"""A worker returns freed memory above this share of its limit: from 0.7 on Dask spills, from 0.8 on the worker gets no tasks."""


@cache
def _heap() -> Any:
    """The C library if it is glibc, else None."""
    from ctypes import CDLL

    library = CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, "malloc_trim") else None


@cache
def _large_arrays_off_the_heap() -> None:
    if (heap := _heap()) is not None:
        heap.mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY)


def return_freed_memory() -> None:
    """On the client, after each pass: blocks and thetas that come and go would leave the heap full of holes."""
    _large_arrays_off_the_heap()
    _trim()


def return_freed_memory_of_worker() -> None:
    """On a worker, after each task, if its memory is nearly full: a worker that Dask has paused for that would stay so."""
    import psutil
    from distributed import get_worker

    try:
        limit = get_worker().memory_manager.memory_limit
    except ValueError:  # a thread of this process, not of a worker
        return
    if limit and psutil.Process().memory_info().rss > NEARLY_FULL * limit:
        if (arrow := sys.modules.get("pyarrow")) is not None:
            arrow.default_memory_pool().release_unused()
        _trim()


def called(function: Callable[..., T], *arguments: Any) -> T:
    """A task of its own: call the function, then return freed memory."""
    try:
        return function(*arguments)
    finally:
        return_freed_memory_of_worker()


def _trim() -> None:
    if (heap := _heap()) is not None:
        heap.malloc_trim(0)

"""One BLAS thread for what must have the same bits everywhere.

A product that BLAS divides among threads is summed in another order than on one thread, so its last bits depend on the number
of threads: workers of a cluster usually have one, a process of its own has as many as there are cores.
"""

import functools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator
from typing import Any, TypeVar

import numpy as np

Part = TypeVar("Part")
Out = TypeVar("Out")


class OneBlasThread(ContextDecorator):
    """The limit lasts while at least one thread of this process is inside: BLAS has one setting for the whole process."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None
        self._outside = 1

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._outside = _blas_threads()
                self._limit = _blas().limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()

    @property
    def threads_outside(self) -> int:
        """The number of BLAS threads that the limit has taken the place of."""
        with self._lock:
            return self._outside if self._inside else _blas_threads()


@functools.cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _blas_threads() -> int:
    return max((library["num_threads"] for library in _blas().info()), default=1)


on_one_blas_thread = OneBlasThread()
"""Decorates functions during which BLAS has one thread."""


def in_threads(compute: Callable[[Part], Out], parts: Sequence[Part]) -> list[Out]:
    """``compute`` of every part, on as many threads as BLAS has, each with one BLAS thread; the results are in order.

    BLAS divides a product among its threads by lines of the result, and is slower on two threads than on one if these are few. A
    sum over many rows is better divided by rows. Given the parts, the bits do not depend on the number of threads.
    """
    n_threads = min(len(parts), on_one_blas_thread.threads_outside)
    errors = np.geterr()

    def quietly(part: Part) -> Out:
        with np.errstate(**errors):  # a new thread would begin with NumPy's own settings
            return compute(part)

    with on_one_blas_thread:
        if n_threads < 2:
            return [compute(part) for part in parts]
        return list(_threads(n_threads).map(quietly, parts))


@functools.cache
def _threads(n: int) -> ThreadPoolExecutor:
    """Threads that stay: starting some takes as long as a tenth of a pass over a table of 100 MB."""
    return ThreadPoolExecutor(n, thread_name_prefix="mixbin")


if hasattr(os, "register_at_fork"):  # the threads of a process do not live on in its forks
    os.register_at_fork(after_in_child=_threads.cache_clear)

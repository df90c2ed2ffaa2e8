"""One BLAS thread for what must have the same bits everywhere.

A product that BLAS divides among threads is summed in another order than on one thread, so its last bits depend on the number
of threads: workers of a cluster usually have one, a process of its own has as many as there are cores.
"""

import functools
import threading
from contextlib import ContextDecorator
from typing import Any


class OneBlasThread(ContextDecorator):
    """The limit lasts while at least one thread of this process is inside: BLAS has one setting for the whole process."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _blas().limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


@functools.cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


on_one_blas_thread = OneBlasThread()
"""Decorates functions during which BLAS has one thread."""

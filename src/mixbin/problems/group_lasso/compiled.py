"""What the compiled kernels share: the compiler with its settings, and products and Cholesky solves of small matrices.

This module is imported on the first evaluation only, because numba takes a second to load. BLAS and LAPACK are no faster at these
sizes, and their threads would compete with the threads over the tasks.
"""

import hashlib
import logging
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mixbin._validate import Floats

F = TypeVar("F", bound=Callable[..., object])

log = logging.getLogger(__name__)

COMPILING = "mixbin: compiling the kernels of group problems, once on this machine"
"""What a user sees on stderr and in the log when numba begins to compile, and not when it finds the kernels on disk."""

SMALLEST_PIVOT = 1e-14
"""A pivot smaller than this share of its diagonal entry is nothing but rounding, and is replaced by that share."""
SOURCE_HASH = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()[:12]
"""A hash of all files of this folder, from which the kernels are compiled."""


RULES = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
"""The compiler may reorder sums and fuse products to use vector instructions. It does so once: on one machine, every run executes
the same machine code and gives the same bits, whatever the number of threads."""


def say_when_compiling() -> None:
    """Print COMPILING on stderr and log it when numba compiles a kernel of this folder, once per process."""
    events = import_module("numba.core.event")
    said: list[bool] = []

    def on_start(_: Any, event: Any) -> None:
        if not said and event.data["dispatcher"].py_func.__module__.startswith(__package__):
            said.append(True)
            log.info(COMPILING)
            print(f"{COMPILING} (some 10 seconds of processor time) ...", file=sys.stderr, flush=True)

    methods = {"on_start": on_start, "on_end": lambda *_: None}
    events.register("numba:compile", type("SayWhenCompiling", (events.Listener,), methods)())


say_when_compiling()


def compiled(function: F) -> F:
    """``function`` compiled to machine code, which numba stores on disk for later runs.

    What a new user waits for is this compiler, so kernels are written for it: plain loops over entries, because assigning an
    array to a slice alone takes it 1.5 seconds and a sum 0.1; few literal flags as arguments, because it makes a version for
    each; few levels of calls, because a kernel contains the code of those that it calls and is optimised as a whole.
    """
    # numba's cache notices changes in the kernel's own file, but not in the files of kernels that it calls. The name is part of
    # the cache's key, so a hash of all files in the name makes numba compile again when any of them changes.
    function.__qualname__ += f"_{SOURCE_HASH}"
    kernel: F = import_module("numba").njit(cache=True, no_cfunc_wrapper=True, **RULES)(function)
    return kernel


def merged(function: F) -> F:
    """``function`` as part of the kernel that calls it, for a function called in one place; it is not compiled by itself."""
    part: F = import_module("numba").njit(inline="always", **RULES)(function)
    return part


@compiled
def weighted_products(A: Floats, weights: Floats, B: Floats, lower: bool, C: Floats) -> None:
    """Set ``C`` to A diag(weights) B'; with ``lower``, set only its lower triangle.

    Entries are computed two by two, so that each row is read half as often; an odd last row is computed twice.
    """
    m, P = A.shape
    n = len(B)
    scaled = np.empty((2, P))
    for i in range(0, m, 2):
        i1 = min(i + 1, m - 1)
        for p in range(P):
            scaled[0, p] = A[i, p] * weights[p]
            scaled[1, p] = A[i1, p] * weights[p]
        for j in range(0, i1 + 1 if lower else n, 2):
            j1 = min(j + 1, n - 1)
            c00 = c01 = c10 = c11 = 0.0
            for p in range(P):
                c00 += scaled[0, p] * B[j, p]
                c01 += scaled[0, p] * B[j1, p]
                c10 += scaled[1, p] * B[j, p]
                c11 += scaled[1, p] * B[j1, p]
            C[i, j], C[i, j1], C[i1, j], C[i1, j1] = c00, c01, c10, c11


@compiled
def times(A: Floats, x: Floats, out: Floats) -> None:
    """Set ``out`` to A x."""
    for i in range(A.shape[0]):
        total = 0.0
        for p in range(A.shape[1]):
            total += A[i, p] * x[p]
        out[i] = total


@compiled
def transposed_times(A: Floats, x: Floats, out: Floats) -> None:
    """Set ``out`` to A'x."""
    out[:] = 0.0
    for i in range(A.shape[0]):
        for p in range(A.shape[1]):
            out[p] += A[i, p] * x[i]


@compiled
def cholesky(A: Floats) -> None:
    """Replace the lower triangle of ``A`` by its Cholesky factor, with the diagonal stored inverted (1 / C_jj)."""
    n = len(A)
    for j in range(n):
        total = A[j, j]
        least = SMALLEST_PIVOT * abs(total)
        for k in range(j):
            total -= A[j, k] * A[j, k]
        inverse = 1.0 / np.sqrt(max(total, least))
        A[j, j] = inverse
        for i in range(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total * inverse


@compiled
def forward(C: Floats, x: Floats) -> None:
    """Replace ``x`` by C^-1 x, for a factor C from ``cholesky``."""
    for i in range(len(x)):
        total = x[i]
        for k in range(i):
            total -= C[i, k] * x[k]
        x[i] = total * C[i, i]


@compiled
def forward_rows(C: Floats, X: Floats) -> None:
    """Replace ``X`` by C^-1 X, for a factor C from ``cholesky``; all columns at once.

    Four rows are subtracted at a time, one after the other, so that a row is stored a quarter as often.
    """
    n, m = X.shape
    for i in range(n):
        fours = i - i % 4
        for k in range(0, fours, 4):
            for j in range(m):
                X[i, j] = (
                    X[i, j]
                    - C[i, k] * X[k, j]
                    - C[i, k + 1] * X[k + 1, j]
                    - C[i, k + 2] * X[k + 2, j]
                    - C[i, k + 3] * X[k + 3, j]
                )
        for k in range(fours, i):
            for j in range(m):
                X[i, j] -= C[i, k] * X[k, j]
        for j in range(m):
            X[i, j] *= C[i, i]


@compiled
def backward(C: Floats, x: Floats) -> None:
    """Replace ``x`` by C'^-1 x, for a factor C from ``cholesky``."""
    for i in range(len(x) - 1, -1, -1):
        x[i] *= C[i, i]
        for k in range(i):
            x[k] -= C[i, k] * x[i]


@compiled
def half_mean_square(X: Floats, y: Floats, w: Floats, grad: Floats) -> float:
    """Return 1/(2n) |Xw - y|^2 and set ``grad`` to its gradient in w."""
    n = len(y)
    miss = np.empty(n)
    times(X, w, miss)
    value = 0.0
    for i in range(n):
        miss[i] = (miss[i] - y[i]) / n
        value += miss[i] * miss[i]
    transposed_times(X, miss, grad)
    return 0.5 * value * n

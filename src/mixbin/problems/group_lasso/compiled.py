"""What the compiled kernels share: the compiler with its settings, products and Cholesky solves of small matrices.

Imported on the first evaluation only: numba takes a second to load. BLAS and LAPACK are no faster at these sizes, and their
threads would compete with those over the tasks.
"""

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import numpy as np

from mixbin._validate import Floats

F = TypeVar("F", bound=Callable[..., object])

TINY = 1e-14
"""A pivot below this share of its diagonal entry is rounding."""
SOURCES = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()[:12]
"""All files that kernels are made of."""


def compiled(function: F) -> F:
    """``function`` as machine code, kept on disk for later runs.

    Sums may be reordered and products fused when a kernel is compiled, for vector instructions: the same machine code, and so the
    same bits, in every run on one machine, whatever the number of threads.
    """
    # numba's cache sees changes in the kernel's own file, not in those of the kernels it calls; the name is part of its key.
    function.__qualname__ += f"_{SOURCES}"
    settings = {
        "cache": True,
        "nogil": True,
        "no_cfunc_wrapper": True,
        "error_model": "numpy",
        "fastmath": {"reassoc", "contract"},
    }
    kernel: F = import_module("numba").njit(**settings)(function)
    return kernel


@compiled
def weighted_products(A: Floats, weights: Floats, B: Floats, lower: bool, C: Floats) -> None:
    """``C`` by A diag(weights) B'; with ``lower``, no more than its lower triangle.

    Two by two entries at a time, each row read half as often; an odd last row is computed twice.
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
    """``out`` by A x."""
    for i in range(A.shape[0]):
        total = 0.0
        for p in range(A.shape[1]):
            total += A[i, p] * x[p]
        out[i] = total


@compiled
def transposed_times(A: Floats, x: Floats, out: Floats) -> None:
    """``out`` by A'x."""
    out[:] = 0.0
    for i in range(A.shape[0]):
        for p in range(A.shape[1]):
            out[p] += A[i, p] * x[i]


@compiled
def cholesky(A: Floats) -> None:
    """The lower triangle of ``A`` by its Cholesky factor, whose diagonal is stored inverted."""
    n = len(A)
    for j in range(n):
        total = A[j, j]
        least = TINY * abs(total)
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
    """``x`` by C^-1 x, for a factor from ``cholesky``."""
    for i in range(len(x)):
        total = x[i]
        for k in range(i):
            total -= C[i, k] * x[k]
        x[i] = total * C[i, i]


@compiled
def forward_rows(C: Floats, X: Floats) -> None:
    """``X`` by C^-1 X, for a factor from ``cholesky``; all columns at once."""
    n, m = X.shape
    for i in range(n):
        for k in range(i):
            for j in range(m):
                X[i, j] -= C[i, k] * X[k, j]
        for j in range(m):
            X[i, j] *= C[i, i]


@compiled
def backward(C: Floats, x: Floats) -> None:
    """``x`` by C'^-1 x, for a factor from ``cholesky``."""
    for i in range(len(x) - 1, -1, -1):
        x[i] *= C[i, i]
        for k in range(i):
            x[k] -= C[i, k] * x[i]


@compiled
def half_mean_square(X: Floats, y: Floats, w: Floats, grad: Floats) -> float:
    """1/(2n) |Xw - y|^2, with its gradient in w in ``grad``."""
    n = len(y)
    miss = np.empty(n)
    times(X, w, miss)
    value = 0.0
    for i in range(n):
        miss[i] = (miss[i] - y[i]) / n
        value += miss[i] * miss[i]
    transposed_times(X, miss, grad)
    return 0.5 * value * n

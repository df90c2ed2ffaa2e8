"""The four tables of distillation (arrays, sparse matrices or Dask collections), checked against each other, and their stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.data.block_rows import BlockRows, LocalBlocks, summary_of_blocks, sums_of_folds
from mixbin.data.blocks import Folds, FoldSums, fold_sums, summary_of, triangle
from mixbin.data.kinds import is_dask
from mixbin.data.rows import DenseRows, RowStore, SparseRows, summary
from mixbin.data.usual_values import for_speed
from mixbin.errors import InvalidInput

Draw = Callable[[int], tuple[NDArray[np.uint8], int]]
"""Draws the fold of each of so many rows, and says how many folds there are."""


def checked(X: Any, y: Any, X_val: Any, y_val: Any) -> tuple[Any, Any, Any, Any]:
    """The four tables with shapes that fit each other; Dask collections become Dask arrays, whose rows are not read yet.

    X_val and y_val may both be None.
    """
    X, y = _pair("X", X, "y", y)
    if (X_val is None) != (y_val is None):
        missing, given = ("X_val", "y_val") if X_val is None else ("y_val", "X_val")
        raise InvalidInput(f"{missing} must be given together with {given}, got None; pass both or none of them")
    if X_val is None:
        return X, y, None, None
    X_val, y_val = _pair("X_val", X_val, "y_val", y_val)
    if X_val.shape[1] != X.shape[1]:
        raise InvalidInput(
            f"X_val must have the columns of X, got {X_val.shape[1]} columns against {X.shape[1]}; "
            "pass the same features in the same order"
        )
    if y_val.shape[1:] != y.shape[1:]:
        raise InvalidInput(f"y_val must have the targets of y, got shape {y_val.shape} against {y.shape}; shape them alike")
    return X, y, X_val, y_val


def candidates(X: Any, y: Any, chunks: Sequence[int] | None, compact: bool) -> RowStore:
    """The rows to choose from; ``compact`` allows to store large tables for speed."""
    if is_dask(X):
        if chunks is not None:
            raise InvalidInput(f"chunks must be None for a Dask X, got {check.shown(chunks)}; it has its own")
        from mixbin.data.dask_blocks import DaskBlocks

        return BlockRows(DaskBlocks(X, y, ("X", "y")))
    if chunks is None:
        if sparse.issparse(X):
            return SparseRows(X, y)
        return for_speed(DenseRows(X, y)) if compact else DenseRows(X, y)
    if sparse.issparse(X):
        raise InvalidInput("chunks must be None for a sparse X; pass X.toarray() to work in blocks")
    remedy = "give the rows of each block, one after the other"
    if not np.iterable(chunks):
        raise check.fail("chunks", chunks, "a sequence of whole numbers", remedy)
    sizes = [check.whole(f"chunks[{i}]", size, low=1, remedy=remedy) for i, size in enumerate(chunks)]
    if sum(sizes) != len(X):
        raise check.fail("chunks", chunks, f"blocks that make up the {len(X)} rows of X", remedy)
    return BlockRows(LocalBlocks(X, y, sizes))


def validation(X_val: Any, y_val: Any, rows: RowStore, draw: Draw | None = None) -> tuple[Floats, Floats, int, FoldSums | None]:
    """The mean of the validation rows relative to the centre of ``rows``, their R factor (see ``rows.summary``) and number.

    If the candidate rows are in blocks, validation rows in memory are one block: so the same blocks give the same bits. If
    ``draw`` draws folds, the sums over the rows of each fold come last.
    """
    if is_dask(X_val):
        from mixbin.data.dask_blocks import DaskBlocks

        executor = DaskBlocks(X_val, y_val, ("X_val", "y_val"), keep=False)
        mean, R, n = summary_of_blocks(executor, rows.centre)
        return mean, R, n, None if draw is None else sums_of_folds(executor, *draw(n), rows.centre + mean)
    if isinstance(rows, BlockRows):
        mean, R, _ = summary_of(triangle(X_val, y_val, rows.centre))
    else:
        mean, R = summary(X_val, y_val, rows.centre)
    n = int(X_val.shape[0])
    if draw is None:
        return mean, R, n, None
    folds, n_folds = draw(n)
    if sparse.issparse(X_val) and not isinstance(rows, BlockRows):
        return mean, R, n, SparseRows(X_val, y_val).fold_sums(folds, n_folds)
    return mean, R, n, fold_sums(X_val, y_val, Folds(folds), n_folds, rows.centre + mean)


def block_summary(X: Any, y: Any, centre: Floats, names: tuple[str, str]) -> tuple[Floats, Floats, int]:
    """The mean, the R factor and the number of rows in Dask's blocks, which are not kept, or of rows in memory as one block."""
    if is_dask(X):
        from mixbin.data.dask_blocks import DaskBlocks

        return summary_of_blocks(DaskBlocks(X, y, names, keep=False), centre)
    return summary_of(triangle(X, y, centre))


def _pair(name: str, X: Any, y_name: str, y: Any) -> tuple[Any, Any]:
    if is_dask(X) or is_dask(y):
        from mixbin.data.dask_tables import dask_tables

        return dask_tables(X, y, (name, y_name))
    table = _table(name, X)
    return table, _targets(y_name, y, name, table.shape[0])


def _table(name: str, value: Any) -> Any:
    """A dense array of float64 or float32, or a sparse matrix, of finite numbers, with rows and columns."""
    if sparse.issparse(value):
        check.plain_table(name, value)
        table = sparse.csr_array(value)
        check.array(name, table.data)
    else:
        table = check.array(name, value, keep_single=True)
    if table.ndim != 2 or 0 in table.shape:
        must = "a table of shape (rows, columns), neither of them 0"
        raise check.fail(name, value, must, "reshape it or check how it was read")
    return table


def _targets(name: str, value: ArrayLike, table: str, rows: int) -> Floats:
    y = check.array(name, value)
    if y.ndim not in (1, 2) or len(y) != rows or 0 in y.shape:
        raise check.fail(name, y, f"an array of shape ({rows},) or ({rows}, targets)", f"give one target per row of {table}")
    return np.asarray(y)

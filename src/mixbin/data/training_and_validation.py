"""The four tables of distillation as they are handed over (arrays, sparse matrices, of Dask), checked against each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.data.blocks import BlockRows, LocalBlocks, summary_of, triangle
from mixbin.data.dask_rows import DaskBlocks, DaskRows, dask_tables, is_dask
from mixbin.data.rows import DenseRows, Rows, SparseRows, summary
from mixbin.errors import InvalidInput


def checked(X: Any, y: Any, X_val: Any, y_val: Any) -> tuple[Any, Any, Any, Any]:
    """The four tables, each with the shape that the others ask for; Dask collections as Dask arrays, not read yet."""
    X, y = _pair("X", X, "y", y)
    X_val, y_val = _pair("X_val", X_val, "y_val", y_val)
    if X_val.shape[1] != X.shape[1]:
        raise InvalidInput(
            f"X_val must have the columns of X, got {X_val.shape[1]} columns against {X.shape[1]}; "
            "pass the same features in the same order"
        )
    if y_val.shape[1:] != y.shape[1:]:
        raise InvalidInput(f"y_val must have the targets of y, got shape {y_val.shape} against {y.shape}; shape them alike")
    return X, y, X_val, y_val


def candidates(X: Any, y: Any, chunks: Sequence[int] | None) -> Rows:
    """The rows to choose from."""
    if is_dask(X):
        if chunks is not None:
            raise InvalidInput(f"chunks must be None for a Dask X, got {check.shown(chunks)}; it has its own")
        return DaskRows(DaskBlocks(X, y, ("X", "y")))
    if chunks is None:
        return SparseRows(X, y) if sparse.issparse(X) else DenseRows(X, y)
    if sparse.issparse(X):
        raise InvalidInput("chunks must be None for a sparse X; pass X.toarray() to work in blocks")
    remedy = "give the rows of each block, one after the other"
    if not np.iterable(chunks):
        raise check.fail("chunks", chunks, "a sequence of whole numbers", remedy)
    sizes = [check.whole(f"chunks[{i}]", size, low=1, remedy=remedy) for i, size in enumerate(chunks)]
    if sum(sizes) != len(X):
        raise check.fail("chunks", chunks, f"blocks that make up the {len(X)} rows of X", remedy)
    return LocalBlocks(X, y, sizes)


def validation(X_val: Any, y_val: Any, rows: Rows) -> tuple[Floats, Floats]:
    """The mean of the validation rows relative to the centre of ``rows``, and their R factor (see ``rows.summary``).

    Where either table is in blocks, a table in memory is one block: the same blocks then give the same bits.
    """
    if is_dask(X_val):
        mean, R, _ = DaskBlocks(X_val, y_val, ("X_val", "y_val"), keep=False).summary(rows.centre)
        return mean, R
    if isinstance(rows, BlockRows):
        mean, R, _ = summary_of(triangle(X_val, y_val, rows.centre))
        return mean, R
    return summary(X_val, y_val, rows.centre)


def _pair(name: str, X: Any, y_name: str, y: Any) -> tuple[Any, Any]:
    if is_dask(X) or is_dask(y):
        return dask_tables(X, y, (name, y_name))
    table = _table(name, X)
    return table, _targets(y_name, y, name, table.shape[0])


def _table(name: str, value: Any) -> Any:
    """A dense array of float64 or float32, or a sparse matrix of finite numbers, with rows and columns."""
    if sparse.issparse(value):
        check.plain_table(name, value)
        table = sparse.csr_array(value)
        check.array(name, table.data)
    else:
        table = check.array(name, value, keep_single=True)
    if table.ndim != 2 or 0 in table.shape:
        raise check.fail(
            name, value, "a table of shape (rows, columns), neither of them 0", "reshape it or check how it was read"
        )
    return table


def _targets(name: str, value: ArrayLike, table: str, rows: int) -> Floats:
    y = check.array(name, value)
    if y.ndim not in (1, 2) or len(y) != rows or 0 in y.shape:
        raise check.fail(name, y, f"an array of shape ({rows},) or ({rows}, targets)", f"give one target per row of {table}")
    return np.asarray(y)

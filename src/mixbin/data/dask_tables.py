"""Dask arrays and dataframes as the tables of a problem: what may be passed, checked as far as possible without reading rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin.data.kinds import is_dask
from mixbin.data.parts import RowsInParts, TargetInParts
from mixbin.errors import InvalidInput

Names = tuple[str, str]
"""The names of the arguments X and y, for messages."""


def check_dask_installed(what: str) -> None:
    """Say how to install Dask if ``what`` needs it and it is missing."""
    try:
        import dask.array  # noqa: F401
        import distributed  # noqa: F401
    except ImportError:
        raise InvalidInput(f"{what} needs Dask, which is not installed; pip install 'mixbin[dask]'") from None


def dask_tables(X: Any, y: Any, names: Names) -> tuple[Any, Any]:
    """X and y as Dask arrays with the same blocks of rows; what cannot be used is refused."""
    table_kind = "a Dask array of shape (rows, columns) or a Dask dataframe"
    if not is_dask(X):
        raise InvalidInput(
            f"{names[0]} must be {table_kind} where {names[1]} is one of Dask, got {type(X).__name__}; "
            f"use dask.array.from_array({names[0]}, chunks=({names[1]}.chunks[0], -1))"
        )
    target_kind = f"a Dask array or series with the rows and blocks of {names[0]}"
    if not is_dask(y):
        raise InvalidInput(
            f"{names[1]} must be {target_kind}, got {type(y).__name__}; "
            f"use dask.array.from_array({names[1]}, chunks={names[0]}.chunks[0])"
        )
    table = _as_array(names[0], X, table_kind, (2,), "reshape it or check how it was read")
    targets = _as_array(names[1], y, target_kind, (1, 2), "give one target per row, or a column for each")
    _check_blocks(names, table.chunks[0], targets.chunks[0])
    return table, targets


def _as_array(name: str, value: Any, kind: str, dimensions: tuple[int, ...], remedy: str) -> Any:
    """A Dask array of numbers with all its columns in each block; only dataframes may have blocks of unknown size."""
    import dask.array as da
    from dask.utils import is_dataframe_like, is_series_like

    if isinstance(value, da.Array):
        # X and y of a Parquet folder have another form, in which workers never hold a block as one array.
        table = getattr(value, "in_parts", value)
        if np.isnan(table.shape).any():
            raise InvalidInput(
                f"{name} must have blocks of known size, got unknown chunk sizes; call {name}.compute_chunk_sizes() first"
            )
        if 0 in table.shape:
            raise InvalidInput(f"{name} must have rows and columns, got shape {table.shape}; check how it was read")
        _check_dtype(name, table.dtype, "its entries")
    elif is_dataframe_like(value) or is_series_like(value):
        check.plain_table(name, value)
        for what, dtype in value.dtypes.items() if value.ndim == 2 else [(None, value.dtype)]:
            _check_dtype(name, dtype, "its entries" if what is None else f"column {what!r}")
        table = value.to_dask_array()
    else:
        raise InvalidInput(f"{name} must be {kind}, got {type(value).__name__}; see dask.array.from_delayed")
    if table.ndim not in dimensions or 0 in table.shape[1:]:
        raise InvalidInput(f"{name} must be {kind}, got shape {table.shape}; {remedy}")
    if table.ndim == 2 and table.numblocks[1] > 1:
        raise InvalidInput(
            f"{name} must have all its columns in each block, got {table.numblocks[1]} blocks of columns; "
            f"use {name}.rechunk({{1: -1}})"
        )
    return table


def _check_dtype(name: str, dtype: Any, what: str) -> None:
    if getattr(dtype, "kind", "O") not in "buif":
        raise InvalidInput(f"{name} must hold numbers, got {what} of dtype {dtype}; turn them into numbers or leave them out")


def _check_blocks(names: Names, a: tuple[Any, ...], b: tuple[Any, ...]) -> None:
    """The same sizes of blocks; those of dataframes are NaN and are known only when the blocks are surveyed."""
    known = not np.isnan([*a, *b]).any()
    if len(a) == len(b) and (not known or a == b):
        return
    if len(a) != len(b):
        how = f"{len(a)} and {len(b)} blocks"
    else:
        number = next(i for i in range(len(a)) if a[i] != b[i])
        how = f"{a[number]} and {b[number]} rows in block {number}"
    remedy = f"use {names[1]}.rechunk({{0: {names[0]}.chunks[0]}})" if known else "make them from the same partitions"
    raise InvalidInput(f"{names[0]} and {names[1]} must have the same blocks, got {how}; {remedy}")


def rows_where(table: Any, mask: NDArray[np.bool_]) -> Any:
    """The rows of a Dask array at which ``mask`` is True, in the same blocks, which may become empty.

    Workers are sent one bit a row.
    """
    import dask.array as da
    from dask import delayed
    from dask.base import tokenize

    table = getattr(table, "in_parts", table)
    name = f"rows-{tokenize(table, mask)}"
    keep = delayed(_kept, pure=True, traverse=False)
    parts, begin = [], 0
    for i, (block, rows) in enumerate(zip(table.to_delayed(optimize_graph=False).ravel(), table.chunks[0], strict=True)):
        wanted = mask[begin : begin + rows]
        begin += rows
        part = keep(block, np.packbits(wanted), dask_key_name=f"{name}-{i}")
        parts.append(da.from_delayed(part, (int(wanted.sum()), *table.shape[1:]), dtype=table.dtype))
    return da.concatenate(parts)


def _kept(block: Any, bits: NDArray[np.uint8]) -> Any:
    """The kept rows of a block, in the layout that it has."""
    mask = np.unpackbits(bits, count=len(block)).view(np.bool_)
    if isinstance(block, TargetInParts):
        block = np.asarray(block)
    if isinstance(block, RowsInParts):
        return block.where(mask)
    return np.compress(mask, block.T, axis=-1).T if block.flags.f_contiguous else block[mask]

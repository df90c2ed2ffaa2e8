"""A folder of Parquet files as one table that is never read whole: its pieces are the blocks of a Dask array.

Files are taken in the order of their names, numbers in them as numbers; rows are counted from 0 through all of them. Workers read
by Arrow, column after column, the needed columns only.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._files import replacing
from mixbin.data import tables
from mixbin.data.parts import Columns, RowsInParts
from mixbin.data.unpacking import check_utf8, first_line
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES = 2**25
"""So much is read at a time, many of which fit a worker: small row groups together, large ones in parts."""
BUFFER_BYTES = 2**16
"""So much of each column of a large row group is fetched at a time."""
MOST_PIECES = 2_000
"""Of very large tables blocks are larger: Dask's scheduler takes a few milliseconds for each of their tasks."""
SUFFIXES = (".parquet", ".parq", ".pq")


class Piece(NamedTuple):
    """One row group of a file, or several small ones that follow each other: what a block is made from."""

    file: str
    groups: tuple[int, ...]
    rows: int
    row: int
    """The number of the first row in the whole table."""
    row_in_file: int

    def batches(self, columns: list[str]) -> "Iterator[pa.RecordBatch]":
        """These columns, no more than ``PIECE_BYTES`` at a time."""
        from pyarrow import parquet

        at_once = max(1, PIECE_BYTES // (8 * len(columns)))
        # What is mapped counts as memory of the worker, so of a large group only a bit of each column is fetched at a time.
        large = self.rows > 2 * at_once
        how: dict[str, Any] = {"pre_buffer": False, "buffer_size": BUFFER_BYTES} if large else {"memory_map": True}
        rows = 0
        with reading(self.file), parquet.ParquetFile(self.file, **how) as file:
            for batch in file.iter_batches(at_once, row_groups=self.groups, columns=columns, use_threads=False):
                rows += len(batch)
                yield batch
        if rows != self.rows:
            raise InvalidInput(f"{self.file} must hold the rows that its end says, got {rows} of {self.rows}; write it anew")


@contextmanager
def reading(file: str | Path) -> Iterator[None]:
    """Say which file is damaged; what the system refuses for a while is tried again by others."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InvalidInput) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise InvalidInput(f"{file} cannot be read as Parquet ({first_line(error)}); write it anew or take it out") from None


class Pair(NamedTuple):
    """Two Dask arrays with the same blocks."""

    X: Any
    y: Any


class PieceRows(RowsInParts):
    """The rows of a piece, read when they are asked for."""

    def __init__(self, piece: Piece, columns: Sequence[str], dtype: np.dtype[Any]) -> None:
        self.piece, self.columns, self.dtype = piece, list(columns), dtype
        self.shape = piece.rows, len(self.columns)

    def parts(self) -> Iterator[Columns]:
        """Columns in Arrow's memory, as they come out of the file; what has no value becomes NaN."""
        for batch in self.piece.batches(self.columns):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            yield Columns([_numbers(columns[name]) for name in self.columns])


@dataclass(frozen=True, eq=False)
class ParquetFolder:
    """What the files' footers say."""

    path: Path
    files: list[Path]
    metadata: list[Any]
    schemas: list["pa.Schema"]

    @cached_property
    def head(self) -> tables.Table:
        """The table without its rows, to look columns up in."""
        import pyarrow as pa

        # Not ``empty_table``, which would import pandas for it: 50 MB.
        return tables.Table(self.path, True, False, pa.Table.from_batches([], self.schemas[0]))

    def __len__(self) -> int:
        return sum(data.num_rows for data in self.metadata)

    def check(self, columns: Sequence[str], like: "ParquetFolder | None" = None) -> None:
        """Every file must have these columns, as numbers."""
        first = (like or self).files[0]
        for file, schema in zip(self.files, self.schemas, strict=True):
            if lost := [name for name in columns if name not in schema.names]:
                raise InvalidInput(
                    f"{file} must have the columns of {first}, but lacks {tables.listed(lost)}; "
                    "add what is missing or take the file out"
                )
            for name in columns:
                if not _is_number(kind := schema.field(name).type):
                    raise InvalidInput(
                        f"column {name!r} of {file} must hold numbers, got the type {kind}; "
                        f"leave the column out with --ignore {name!r}, or write the file anew"
                    )

    def pieces(self, width: int) -> list[Piece]:
        """The table cut into blocks for that many columns: whole row groups, of which no part could be read alone."""
        most = max(1, PIECE_BYTES // (8 * width), len(self) // MOST_PIECES)
        made, row = [], 0
        for file, data in zip(self.files, self.metadata, strict=True):
            in_file = 0
            for groups, rows in _together([data.row_group(i).num_rows for i in range(data.num_row_groups)], most):
                made.append(Piece(str(file), groups, rows, row, in_file))
                row, in_file = row + rows, in_file + rows
        return made

    def token(self) -> str:
        """What the table is recognised by: names, sizes and times of its files, which are not read."""
        from dask.base import tokenize

        stats = [file.stat() for file in self.files]
        relative = [str(file.relative_to(self.path)) if self.path.is_dir() else file.name for file in self.files]
        return str(tokenize(relative, [(it.st_size, it.st_mtime_ns) for it in stats], [data.num_rows for data in self.metadata]))

    def arrays(self, features: Sequence[str], target: str) -> Pair:
        """X and y as Dask arrays, one block for each piece; those of X are ``PieceRows``."""
        import dask.array as da
        from dask import delayed
        from dask.base import tokenize

        columns = [*features, target]
        single = all(str(schema.field(name).type) == "float" for schema in self.schemas for name in columns)
        dtype = np.dtype(np.float32 if single else np.float64)
        name = f"parquet-{tokenize(self.token(), columns, dtype)}"
        rows, column = (delayed(it, pure=True, traverse=False) for it in (PieceRows, read_column))
        X, y = [], []
        for i, piece in enumerate(self.pieces(len(columns))):
            block = rows(piece, list(features), dtype, dask_key_name=f"{name}-X-{i}")
            X.append(da.from_delayed(block, (piece.rows, len(features)), dtype=dtype))
            targets = column(piece, target, dtype, dask_key_name=f"{name}-y-{i}")
            y.append(da.from_delayed(targets, (piece.rows,), dtype=dtype))
        return Pair(da.concatenate(X), da.concatenate(y))


def open_folder(path: Path) -> ParquetFolder:
    """The Parquet files in a folder, or a single one."""
    from dask.utils import natural_sort_key
    from pyarrow import parquet

    if path.is_dir():
        found = [it for it in path.rglob("*") if it.suffix in SUFFIXES and it.is_file()]
        hidden = [it for it in found if any(part[0] in "._" for part in it.relative_to(path).parts)]
        files = sorted(set(found) - set(hidden), key=lambda it: natural_sort_key(str(it.relative_to(path))))
        if not files:
            raise InvalidInput(f"{path} must hold Parquet files ({', '.join(SUFFIXES)}), got none; check the folder")
    else:
        files = [path]
    metadata, schemas = [], []
    for file in files:
        check_utf8(file)
        try:
            with reading(file):
                footer = parquet.read_metadata(file)
                schema = footer.schema.to_arrow_schema()
        except OSError as error:
            raise InvalidInput(f"{file} cannot be read ({error.strerror}); check its permissions, or take it out") from None
        tables.check_names(file, schema.names, "rename one and write the file anew")
        metadata.append(footer)
        schemas.append(schema)
    folder = ParquetFolder(path, files, metadata, schemas)
    if not len(folder):
        raise InvalidInput(f"{path} must hold rows of numbers, got none in {len(files)} files; check the files")
    return folder


def read_column(piece: Piece, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """One column of a piece."""
    return np.concatenate([part.columns[0] for part in PieceRows(piece, [name], dtype).parts()], dtype=dtype)


def _numbers(values: "pa.Array") -> NDArray[Any]:
    import pyarrow as pa
    from pyarrow import compute

    floats = values if pa.types.is_floating(values.type) else compute.cast(values, pa.float64(), safe=False)
    return np.asarray(floats.to_numpy(zero_copy_only=False))


def write_rows(piece: Piece, rows: NDArray[np.intp], weights: NDArray[np.float64] | None, folder: str, target: str) -> int:
    """Some rows of a piece with all their columns, after the file and the numbers they have there; how many they are."""
    import pyarrow as pa
    from pyarrow import parquet

    found, begin = [], 0
    for batch in piece.batches(parquet.read_schema(piece.file).names):
        low, high = np.searchsorted(rows, [begin, begin + len(batch)])
        found.append(batch.take(pa.array(rows[low:high] - begin)))
        begin += len(batch)
    table = pa.Table.from_batches(found)
    name = str(Path(piece.file).relative_to(folder)) if piece.file != folder else Path(piece.file).name
    first: dict[str, Any] = {
        "row": pa.array(piece.row + rows),
        "file": pa.array([name] * len(rows)).dictionary_encode(),
        "row_in_file": pa.array(piece.row_in_file + rows),
    }
    if weights is not None:
        first["weight"] = pa.array(weights)
    kept = [name for name in table.column_names if name not in first]
    whole = pa.table({**first, **{name: table.column(name) for name in kept}})
    with replacing(target) as out:
        parquet.write_table(whole, out)
    return len(rows)


def _together(sizes: Sequence[int], most: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Neighbouring row groups with at most so many rows together, or a single larger one."""
    groups: list[int] = []
    rows = 0
    for i, size in enumerate(sizes):
        if groups and rows + size > most:
            yield tuple(groups), rows
            groups, rows = [], 0
        groups.append(i)
        rows += size
    if groups and rows:
        yield tuple(groups), rows


def _is_number(kind: "pa.DataType") -> bool:
    from pyarrow import types

    return any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))

"""Pieces of Parquet files, which become the blocks of a table: read by Arrow, column after column, the needed columns only."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._files import replacing
from mixbin._validate import Floats
from mixbin.data.parts import Columns, RowsInParts, TargetInParts
from mixbin.data.unpacking import first_line
from mixbin.errors import InvalidInput
from mixbin.problem import Indices

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES = 2**25
"""Bytes that are read at a time, many times less than a worker's memory: small row groups together, large ones in parts."""
BUFFER_BYTES = 2**16
"""Bytes of each column of a large row group that are fetched at a time."""
MOST_PIECES = 2_000
"""Very large tables have larger blocks instead of more: Dask's scheduler takes a few milliseconds for each task."""

PLACE = ("row", "file", "row_in_file")
"""The first columns of rows that were written: their number in the table, and the file and the number they have there."""


class Piece(NamedTuple):
    """The rows of one block: one row group of a file, or several small ones that follow each other."""

    file: str
    groups: tuple[int, ...]
    rows: int
    row: int
    """The number of the first row in the whole table."""
    row_in_file: int

    def batches(self, columns: list[str], width: int = 0) -> "Iterator[pa.RecordBatch]":
        """These columns, at most ``PIECE_BYTES`` at a time, also as ``width`` columns of numbers if they become more."""
        from pyarrow import parquet

        at_once = max(1, PIECE_BYTES // (8 * max(width, len(columns))))
        # A mapped file counts as memory of the worker, so only a little of each column of a large group is fetched at a time.
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
    """Name the file that is damaged; errors of the operating system pass, since Dask tries again."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InvalidInput) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise InvalidInput(f"{file} cannot be read as Parquet ({first_line(error)}); write it anew or take it out") from None


class PieceRows(RowsInParts):
    """Some columns of a piece, which are read whenever they are asked for."""

    def __init__(self, piece: Piece, columns: Sequence[str], dtype: np.dtype[Any]) -> None:
        self.piece, self.columns, self.dtype = piece, list(columns), dtype
        self.shape = piece.rows, len(self.columns)

    def parts(self) -> Iterator[Columns]:
        """Columns in Arrow's memory as they come out of the file; missing values become NaN."""
        for batch in self.piece.batches(self.columns):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            yield Columns([_numbers(columns[name]) for name in self.columns])


def _numbers(values: "pa.Array") -> NDArray[Any]:
    import pyarrow as pa
    from pyarrow import compute

    floats = values if pa.types.is_floating(values.type) else compute.cast(values, pa.float64(), safe=False)
    return np.asarray(floats.to_numpy(zero_copy_only=False))


class PieceTarget(TargetInParts):
    """One column of a piece. It is read together with the other columns of the piece, because opening a file has its price."""

    def __init__(self, piece: Piece, column: str, dtype: np.dtype[Any]) -> None:
        self.piece, self.column, self.dtype = piece, column, dtype
        self.shape = (piece.rows,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(PieceRows(self.piece, [self.column], self.dtype), dtype)[:, 0]

    def beside(self, X: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
        """The parts of X, each with its part of this column."""
        if type(X) is not PieceRows or X.piece != self.piece:
            yield from super().beside(X)
            return
        for part in PieceRows(self.piece, [*X.columns, self.column], X.dtype).parts():
            yield Columns(part.columns[:-1]), part.columns[-1]


def write_rows(piece: Piece, rows: Indices, weights: Floats | None, folder: str, target: str) -> int:
    """Write some rows of a piece with all their columns, after the file and the numbers they have there; how many they are."""
    import pyarrow as pa
    from pyarrow import parquet

    found, begin = [], 0
    for batch in piece.batches(parquet.read_schema(piece.file).names):
        low, high = np.searchsorted(rows, [begin, begin + len(batch)])
        found.append(batch.take(pa.array(rows[low:high] - begin)))
        begin += len(batch)
    table = pa.Table.from_batches(found)
    name = str(Path(piece.file).relative_to(folder)) if piece.file != folder else Path(piece.file).name
    place = pa.array(piece.row + rows), pa.array([name] * len(rows)).dictionary_encode(), pa.array(piece.row_in_file + rows)
    first: dict[str, Any] = dict(zip(PLACE, place, strict=True))
    if weights is not None:
        first["weight"] = pa.array(weights)
    kept = [name for name in table.column_names if name not in first]
    whole = pa.table({**first, **{name: table.column(name) for name in kept}})
    with replacing(target) as out:
        parquet.write_table(whole, out)
    return len(rows)


def is_saved_part(file: Path) -> bool:
    """Whether ``write_rows`` wrote a file: then its columns begin with the place that each row came from."""
    from pyarrow import ArrowException, parquet

    try:
        return list(parquet.read_schema(file).names[: len(PLACE)]) == list(PLACE)
    except (OSError, ArrowException):
        return False


def pieces_of(files: Sequence[Path], metadata: Sequence[Any], columns: int) -> list[Piece]:
    """The rows of all files cut into pieces for that many columns."""
    all_rows = sum(data.num_rows for data in metadata)
    most = max(1, PIECE_BYTES // (8 * columns), all_rows // MOST_PIECES)
    pieces, row = [], 0
    for file, data in zip(files, metadata, strict=True):
        in_file = 0
        for groups, rows in _neighbours([data.row_group(i).num_rows for i in range(data.num_row_groups)], most):
            pieces.append(Piece(str(file), groups, rows, row, in_file))
            row, in_file = row + rows, in_file + rows
    return pieces


def _neighbours(sizes: Sequence[int], most: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Neighbouring row groups with at most ``most`` rows together, or a single larger one."""
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

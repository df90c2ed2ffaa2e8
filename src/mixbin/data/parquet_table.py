"""A small folder of Parquet files, read into memory as one table by this process, without Dask."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin.data.blocks import survey
from mixbin.data.parquet import ParquetFolder
from mixbin.data.parquet_pieces import PieceRows, read_column, write_rows
from mixbin.errors import InvalidInput


class FolderInMemory(ParquetFolder):
    """The same files, columns and errors as ``ParquetFolder``, but plain arrays."""

    def _check_installed(self) -> None:
        """Nothing beyond PyArrow is needed."""

    def numbers(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """X and y of all files, one after the other; a number that is missing or infinite is refused by file, row and column."""
        X, y = np.empty((len(self), len(self.features)), self._dtype), np.empty(len(self), self._dtype)
        for piece in self.pieces:
            rows = slice(piece.row, piece.row + piece.rows)
            X[rows] = np.asarray(PieceRows(piece, self.features, self._dtype))
            y[rows] = read_column(piece, self.target, self._dtype)
            wrong = survey(X[rows], y[rows]).wrong
            if wrong is not None:
                raise InvalidInput(f"{piece.file}: {wrong}; leave such rows out or fill them in")
        return X, y

    def _written(self, tasks: Sequence[tuple[Any, ...]]) -> list[int]:
        """Write these rows here; how many each task has written."""
        return [write_rows(*task) for task in tasks]

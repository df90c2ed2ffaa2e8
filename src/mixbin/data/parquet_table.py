"""A small folder of Parquet files, read into memory as one table by this process, without Dask."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixbin.data.blocks import survey
from mixbin.data.dask_blocks import BadBlock
from mixbin.data.parquet import ParquetFolder

T = TypeVar("T")


class FolderInMemory(ParquetFolder):
    """The same files, columns and errors as ``ParquetFolder``, but plain arrays."""

    def _check_installed(self) -> None:
        """Nothing beyond PyArrow is needed."""

    def numbers(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """X and y of all files, one after the other; a number that is missing or infinite is refused by file, row and column."""
        X, y = np.empty((len(self), self.width), self._dtype), np.empty(len(self), self._dtype)
        for number, piece in enumerate(self.pieces):
            rows = slice(piece.row, piece.row + piece.rows)
            X[rows], y[rows] = np.asarray(self.rows_of(piece)), self.target_of(piece)
            wrong = None if self.recipe is not None else survey(X[rows], y[rows]).wrong
            if wrong is not None:
                raise BadBlock(f"{piece.file}: {wrong}; leave such rows out or fill them in", number)
        return X, y

    def computed(self, function: Callable[..., T], tasks: Sequence[tuple[Any, ...]]) -> list[T]:
        """Call a function with each of these arguments, here."""
        return [function(*task) for task in tasks]

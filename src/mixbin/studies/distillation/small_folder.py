"""A folder of Parquet files that fits comfortably in memory: read as one table, where workers would only add their own time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin.data.parquet import parquet_files
from mixbin.data.parquet_table import FolderInMemory
from mixbin.studies.distillation.parquet import ParquetRegression

SMALL_BYTES = 10**8
"""Tables of up to 100 MB, as float64, are read: one pass of workers over so little data takes longer than reading it."""
AS_NUMBERS = 8
"""Columns that a column of text is taken for, before its texts are known."""


def is_small(paths: Sequence[Path]) -> bool:
    """Whether all numbers of these files and folders take at most SMALL_BYTES; False if one of them cannot be read.

    Whoever reads the files for the study then says what is wrong with them.
    """
    from pyarrow import ArrowException, parquet

    total = 0
    try:
        for path in paths:
            for file in parquet_files(path):
                footer = parquet.read_metadata(file)
                kinds = [footer.schema.column(i).physical_type for i in range(footer.num_columns)]
                columns = len(kinds) + (AS_NUMBERS - 1) * kinds.count("BYTE_ARRAY")
                total += 8 * footer.num_rows * columns
                if total > SMALL_BYTES:
                    return False
    except (ArrowException, OSError, ValueError):
        return False
    return True


class Folder(FolderInMemory):
    """A folder whose errors name the options of the command."""

    _target_word, _ignore_word, _numbers_only = "--target", "--ignore", False


class SmallFolderRegression(ParquetRegression):
    """The same study, record and files as for a folder on workers; the rows are in this process."""

    needs_workers, folder_type = False, Folder

    @contextmanager
    def resources(self) -> Iterator[None]:
        """No workers."""
        yield

    def tables(self, folders: Sequence[Any], there: Mapping[Any, NDArray[np.bool_]]) -> tuple[Any, Any]:
        """X and y of several folders, one after the other, as arrays; of some rows where ``there`` names them."""
        parts = []
        for folder in folders:
            X, y = folder.numbers()
            mask = there.get(folder)
            parts.append((X, y) if mask is None or mask.all() else (X[mask], y[mask]))
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])

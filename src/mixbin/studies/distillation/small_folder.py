"""A folder of Parquet files that fits comfortably in memory: read as one table, where workers would only add their own time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mixbin.data.parquet import parquet_files
from mixbin.data.parquet_table import FolderInMemory
from mixbin.data.tables import split
from mixbin.data.training_and_validation import block_summary
from mixbin.problems import RidgeDistillation
from mixbin.studies.distillation.parquet import ParquetRegression

SMALL_BYTES = 10**8
"""Tables of up to 100 MB, as float64, are read: one pass of workers over so little data takes longer than reading it."""


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
                total += 8 * footer.num_rows * footer.num_columns
                if total > SMALL_BYTES:
                    return False
    except (ArrowException, OSError, ValueError):
        return False
    return True


class Folder(FolderInMemory):
    """A folder whose errors name the options of the command."""

    _target_word, _ignore_word = "--target", "--ignore"


class SmallFolderRegression(ParquetRegression):
    """The same study, record and files as for a folder on workers; the rows are in this process."""

    needs_workers = False

    @contextmanager
    def resources(self) -> Iterator[None]:
        """No workers."""
        yield

    def load(self) -> None:
        """All tables as arrays, with a validation part split off where none is given."""
        options = self.options
        self.folder = folder = Folder(options.train, options.target, options.ignore)
        self.features, self.target = folder.features, folder.target
        X, y = folder.numbers()
        self.rows = np.arange(len(y))
        if options.validation:
            X_val, y_val = self._read(options.validation)
        else:
            self.rows, held = split(len(y), options.validation_fraction, options.seed, "TRAIN", "give --validation")
            X, y, X_val, y_val = X[self.rows], y[self.rows], X[held], y[held]
        self.validation_rows = len(y_val)
        budget = self.budget
        assert budget is not None
        self.problem = RidgeDistillation(X, y, X_val, y_val, budget=budget, alpha=options.alpha)
        self.test_rows = None
        if options.test:
            held_out = self._read(options.test)
            self.test_rows = block_summary(*held_out, np.zeros(len(self.features) + 1), ("--test", "its target"))

    def _read(self, paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
        """X and y of several files or folders, one after the other."""
        parts = [Folder(path, like=self.folder).numbers() for path in paths]
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])

"""Rows that come in parts, as a file larger than memory is read: X of a block may be an array, a sparse matrix or such rows.

A part of a file has each column in an array of its own: putting the columns together would be one more copy of X, and reading is
most of the work of a pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Numbers = NDArray[Any]
SPARSE_ENTRIES = 2**20
"""Entries of a sparse matrix, zeros included, that are written out at a time."""


class Columns:
    """Rows whose columns are arrays of their own, which may differ in type."""

    def __init__(self, columns: Sequence[Numbers]) -> None:
        self.columns = columns
        self.shape = len(columns[0]), len(columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> "Columns":
        return Columns([column[rows] for column in self.columns])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        found = np.column_stack(self.columns)
        return found if dtype is None else found.astype(dtype, copy=False)  # None would mean float64


class RowsInParts(ABC):
    """Rows that can be gone through part by part, any number of times."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return np.concatenate([np.asarray(part) for part in self.parts()], dtype=dtype or self.dtype)

    @abstractmethod
    def parts(self) -> Iterator[Columns]:
        """All rows, in their order."""

    def where(self, mask: NDArray[np.bool_]) -> "RowsInParts":
        """The rows at which ``mask`` is True."""
        return MaskedRows(self, mask)

    @property
    def nbytes(self) -> int:
        """The bytes that the rows take in memory."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def loaded(self) -> "RowsInParts":
        """The same rows in memory."""
        return LoadedRows(list(self.parts()), self)


class LoadedRows(RowsInParts):
    """Parts that have been read into memory."""

    def __init__(self, parts: list[Columns], source: RowsInParts) -> None:
        self._parts, self.shape, self.dtype = parts, source.shape, source.dtype

    def parts(self) -> Iterator[Columns]:
        """The parts as they were read."""
        return iter(self._parts)

    def loaded(self) -> RowsInParts:
        """These rows themselves."""
        return self

    def __sizeof__(self) -> int:
        # Dask asks for this when it looks for room in a worker's memory.
        return self.nbytes


class MaskedRows(RowsInParts):
    """The rows of others at which a mask is True."""

    def __init__(self, rows: RowsInParts, mask: NDArray[np.bool_]) -> None:
        self._rows, self._mask, self.dtype = rows, mask, rows.dtype
        self.shape = int(np.count_nonzero(mask)), rows.shape[1]

    def parts(self) -> Iterator[Columns]:
        """The kept rows of each part."""
        begin = 0
        for part in self._rows.parts():
            yield part[self._mask[begin : begin + len(part)]]
            begin += len(part)


class TargetInParts(ABC):
    """The target of rows that come in parts, which may be read together with them."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        """The target of all rows."""

    def beside(self, X: "BlockTable") -> "Iterator[tuple[Numbers | Columns, Numbers]]":
        """The parts of X, each with its part of the target."""
        return _beside(X, np.asarray(self))


BlockTable = Numbers | RowsInParts
"""What X of a block may be; also SciPy's sparse matrices, which have no types."""
BlockTarget = Numbers | TargetInParts
"""What y of a block may be."""


def parts_of(X: BlockTable, y: BlockTarget) -> Iterator[tuple[Numbers | Columns, Numbers, slice]]:
    """X and y of consecutive rows, and where these rows are in the block; parts without rows are left out."""
    begin = 0
    for part, targets in y.beside(X) if isinstance(y, TargetInParts) else _beside(X, y):
        rows = slice(begin, begin + len(part))
        begin = rows.stop
        if len(part):
            yield part, targets, rows


def _beside(X: BlockTable, y: Numbers) -> Iterator[tuple[Numbers | Columns, Numbers]]:
    begin = 0
    for part in _parts(X):
        yield part, y[begin : begin + len(part)]
        begin += len(part)


def _parts(X: Any) -> Iterator[Numbers | Columns]:
    if isinstance(X, RowsInParts):
        return X.parts()
    step = max(1, SPARSE_ENTRIES // X.shape[1])
    return (X[i : i + step].toarray() for i in range(0, X.shape[0], step)) if sparse.issparse(X) else iter([X])


def columns_of(X: Numbers | Columns) -> Sequence[Numbers] | None:
    """The columns, if each lies in one piece of memory; else None."""
    if isinstance(X, Columns):
        return X.columns
    return list(X.T) if X.strides[0] == X.itemsize and not X.flags.c_contiguous else None

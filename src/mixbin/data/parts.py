"""What X of a block may be: an array, a sparse matrix, or rows that come in parts, as a file larger than memory is read.

A part of a file has each column in an array of its own: putting them together would be one more copy of X, and reading is most
of the work of a pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Numbers = NDArray[Any]


class Columns:
    """Rows whose columns are arrays of their own, not always of the same type."""

    def __init__(self, columns: Sequence[Numbers]) -> None:
        self.columns = columns
        self.shape = len(columns[0]), len(columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> "Columns":
        return Columns([column[rows] for column in self.columns])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return np.column_stack(self.columns).astype(dtype, copy=False)


class InParts(ABC):
    """Rows that come in parts, one after the other and as often as they are asked for."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def parts(self) -> Iterator[Columns]:
        """All rows, in their order."""

    def where(self, mask: NDArray[np.bool_]) -> "InParts":
        """The rows at which ``mask`` is True."""
        return Some(self, mask)

    @property
    def nbytes(self) -> int:
        """In memory."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def held(self) -> "InParts":
        """The same rows in memory."""
        return Held(list(self.parts()), self)


class Held(InParts):
    """Parts in memory."""

    def __init__(self, parts: list[Columns], like: InParts) -> None:
        self._parts, self.shape, self.dtype = parts, like.shape, like.dtype

    def parts(self) -> Iterator[Columns]:
        """As they were read."""
        return iter(self._parts)

    def held(self) -> InParts:
        """Itself."""
        return self

    def __sizeof__(self) -> int:
        # What Dask takes into account when it looks for room.
        return self.nbytes


class Some(InParts):
    """Some of the rows."""

    def __init__(self, rows: InParts, mask: NDArray[np.bool_]) -> None:
        self._rows, self._mask, self.dtype = rows, mask, rows.dtype
        self.shape = int(np.count_nonzero(mask)), rows.shape[1]

    def parts(self) -> Iterator[Columns]:
        """Those of each part."""
        begin = 0
        for part in self._rows.parts():
            yield part[self._mask[begin : begin + len(part)]]
            begin += len(part)


Block = Numbers | InParts
"""SciPy's sparse matrices too, which have no types."""
SPARSE_ENTRIES = 2**20
"""Numbers of a sparse matrix that are written out, zeros included, at a time."""


def parts_of(X: Block, y: Numbers) -> Iterator[tuple[Numbers | Columns, Numbers, slice]]:
    """X and y of consecutive rows, and where these are in the block."""
    begin = 0
    for part in _parts(X):
        rows = slice(begin, begin + len(part))
        begin = rows.stop
        if len(part):
            yield part, y[rows], rows


def _parts(X: Any) -> Iterator[Numbers | Columns]:
    if isinstance(X, InParts):
        yield from X.parts()
    elif sparse.issparse(X):
        step = max(1, SPARSE_ENTRIES // X.shape[1])
        yield from (X[i : i + step].toarray() for i in range(0, X.shape[0], step))
    else:
        yield X


def columns_of(X: Numbers | Columns) -> Sequence[Numbers] | None:
    """The columns, where each is in one place."""
    if isinstance(X, Columns):
        return X.columns
    return list(X.T) if X.strides[0] == X.itemsize and not X.flags.c_contiguous else None

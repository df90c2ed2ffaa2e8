"""The cells of a column of text, given as its different texts and how often each occurs."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin.data.cells import Cells, Trouble, Unreadable
from mixbin.data.column_survey import Texts
from mixbin.data.dialect import Dialect
from mixbin.data.leaves import Leaf, leaves_of
from mixbin.data.typed_columns import TypedColumns

if TYPE_CHECKING:
    import pyarrow as pa


class CountedCells(Cells):
    """The cells of a column of which each different text is given once, with its number."""

    def __init__(self, name: str, texts: Texts, dialect: Dialect) -> None:
        import pyarrow as pa

        found, self.times, self._rows = texts.columns()
        super().__init__(name, pa.chunked_array([pa.array(found, pa.string())]), dialect)
        gone = np.array([dialect.is_missing(text) for text in found], dtype=bool)
        self._distinct = found, np.where(gone, -1, np.arange(len(found)))

    def counts(self) -> NDArray[np.intp]:
        """How many rows have each of the different texts."""
        return np.where(self.distinct[1] >= 0, self.times, 0).astype(np.intp)

    def trouble(self, kind: str, texts: Any, **more: Any) -> Unreadable:
        """The error for a column in which some texts are wrong; its row is counted through all files."""
        first = min(texts, key=lambda it: self._rows[it])
        return Unreadable(Trouble(kind, self.name, int(self._rows[first]), repr(self.distinct[0][first]), **more))


def typed_texts(name: str, texts: Texts, typed: TypedColumns) -> "tuple[Leaf, pa.ChunkedArray, NDArray[np.int64]] | None":
    """The different texts of a column as what they are, and how often each occurs; None if they all are words for a gap."""
    import pyarrow as pa

    cells = CountedCells(name, texts, typed.dialect)
    kind = typed.kinds[name]
    if kind.name == "nothing":
        return None
    ((leaf, values),) = leaves_of(pa.table([cells.read(kind)], names=[name]))
    return leaf, values, cells.times

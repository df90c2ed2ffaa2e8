"""The columns of a table as they are read: numbers, dates and so on, by the type of the column or by what its cells are."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mixbin._validate import Floats
from mixbin.data import tables
from mixbin.data.cells import Cells, Kind, Trouble, Unreadable
from mixbin.data.dialect import Dialect
from mixbin.data.tables import holds_numbers, holds_text

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TypedColumns:
    """Reads columns; ``kinds`` is what has been found out about those of text, which holds for later tables."""

    dialect: Dialect
    encode: bool = True
    """Whether anything but numbers is accepted."""
    as_text: frozenset[str] = frozenset()
    """Columns that are text whatever they look like."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    targets: dict[str, Kind] = field(default_factory=dict)
    """The same of columns that must hold numbers."""

    def feature(self, name: str, values: "pa.ChunkedArray", is_parquet: bool = False) -> "pa.ChunkedArray":
        """One column by its type; what has been learnt about the column holds for later tables."""
        import pyarrow as pa

        if not self.encode:
            numbers = self.numbers(name, values, is_parquet)
            gone = np.flatnonzero(np.isnan(numbers))
            if gone.size:
                raise Unreadable(Trouble("missing", name, int(gone[0]), ""))
            return pa.chunked_array([pa.array(numbers)])
        if name in self.as_text:
            return Cells(name, as_text(values), self.dialect).read(Kind("text"))
        if holds_numbers(values.type):
            self._agree(name, Kind("number"), values)
            return (
                values
                if pa.types.is_boolean(values.type)
                else pa.chunked_array([pa.array(self.numbers(name, values, is_parquet), from_pandas=True)])
            )
        if not holds_text(values.type):
            return values
        cells = Cells(name, values, self.dialect)
        known = self.kinds.get(name)
        if known is None or known.name == "number":
            quick = cells.quick_numbers()
            if quick is not None and not (known is None and _has_codes(cells.values)):
                self.kinds.setdefault(name, Kind("number"))
                return pa.chunked_array([pa.array(self._finite(name, quick), from_pandas=True)])
        kind = known or cells.kind()
        self.kinds[name] = kind
        read = cells.read(kind)
        if kind.name == "number":
            self._finite(name, np.asarray(read.to_numpy()))
        return read

    def _agree(self, name: str, kind: Kind, values: "pa.ChunkedArray") -> None:
        """Refuse numbers in a column that was something else in the first table."""
        known = self.kinds.setdefault(name, kind)
        if known.name not in ("number", "yes or no", "nothing"):
            raise Unreadable(Trouble("number", name, 0, f"{values[0]} where the first table has a {known.name}"))

    def numbers(self, name: str, values: "pa.ChunkedArray", is_parquet: bool = False) -> Floats:
        """A column that must hold numbers, a missing one NaN."""
        if holds_text(values.type) and not (is_parquet and not self.encode):
            cells = Cells(name, values, self.dialect)
            quick = cells.quick_numbers()
            if quick is None:
                # Whatever other kind the cells are, it is no number; but a decimal comma has its own remedy.
                kind = self.targets.get(name) or cells.kind()
                if kind.name not in ("number", "text", "nothing"):
                    raise cells.trouble("number", np.flatnonzero(cells.counts()))
                if kind.name == "number":
                    self.targets[name] = kind
                quick = np.asarray(cells.read(Kind("number", unit=kind.unit)).to_numpy(), dtype=np.float64)
            return self._finite(name, quick)
        if not holds_numbers(values.type):
            row = int(np.flatnonzero(values.is_valid().to_numpy())[0]) if values.null_count < len(values) else 0
            raise Unreadable(Trouble("number", name, row, shown(values[row : row + 1])))
        import pyarrow as pa
        from pyarrow import compute

        numbers = np.asarray(compute.cast(values, pa.float64(), safe=False).to_numpy())
        return self._finite(name, self.dialect.without_missing(numbers))

    def _finite(self, name: str, numbers: Floats) -> Floats:
        wrong = np.flatnonzero(np.isinf(numbers))
        if wrong.size:
            raise Unreadable(Trouble("infinite", name, int(wrong[0]), ""))
        return numbers


def as_text(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Any values as text; whole numbers without a decimal point."""
    import pyarrow as pa
    from pyarrow import types

    if not types.is_floating(values.type):
        return values.cast(pa.string())
    # By value, and not by column: then a part of a column gives the texts of the whole.
    numbers = values.cast(pa.float64())
    found, codes = np.unique(np.asarray(numbers.to_numpy()), return_inverse=True)
    texts = pa.array(found).cast(pa.string()).to_pylist()
    whole = [str(int(it)) if it.is_integer() else text for it, text in zip(found.tolist(), texts, strict=True)]
    there = ~np.isnan(found)
    return pa.chunked_array([pa.array([text if ok else None for text, ok in zip(whole, there, strict=True)]).take(codes)])


def _has_codes(values: "pa.ChunkedArray") -> bool:
    """Whether some of the cells are whole numbers that begin with a zero, such as postal codes."""
    from pyarrow import compute

    # Few cells begin with a zero, so that only these are looked at closely.
    zero = values.filter(compute.starts_with(values, "0"))
    return bool(compute.any(compute.match_substring_regex(zero, r"^0[0-9]+$")).as_py())


def shown(values: "pa.ChunkedArray") -> str:
    """The first of some values, for messages."""
    value = tables.as_python(values)[0]
    return repr(value) if isinstance(value, str) else str(value)

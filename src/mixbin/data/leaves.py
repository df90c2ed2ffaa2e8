"""The columns of a table by what they hold, nested ones taken apart: leaves, and the numbers or texts of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats, listed
from mixbin.data.tables import holds_numbers, holds_text
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

MOST_NAMED = 20
"""A message about columns names this many of them."""
MOST_ENTRIES = 256
"""Lists with more entries are not taken apart."""
PARTS = ("year", "month", "day", "hour")
"""What a date becomes; the hour, with minutes and seconds as its fractions, only where there is one."""
MOST_TEXTS = 1_000_000
"""Of a folder of Parquet files: a column with more different texts is left out. They are counted in memory."""
DIFFERENT = "nearly all its texts differ"
EMPTY, ALIKE = "it has no value", "it has one text only"
MANY = f"it has more than {MOST_TEXTS:,} different texts"
LEFT_OUT = (EMPTY, ALIKE, DIFFERENT, MANY)
"""Why a column is left out."""


@dataclass(frozen=True)
class Leaf:
    """A column, or a part of one that is nested, and what it becomes."""

    path: tuple[str | int, ...]
    """The column, then the fields and entries below it."""
    kind: str
    """"number", "yes or no", "date", "time", "duration", "text", or why it is left out."""
    parts: tuple[str, ...] = ()
    """Of dates: the parts that are used."""

    @property
    def name(self) -> str:
        """The column with its fields and entries."""
        first, *below = self.path
        return str(first) + "".join(f"[{it}]" if isinstance(it, int) else f".{it}" for it in below)

    @property
    def is_left_out(self) -> bool:
        """Whether nothing becomes of it."""
        return self.kind in LEFT_OUT


class NotEncodable(InvalidInput):
    """Columns of types that cannot be turned into numbers, by name."""

    def __init__(self, columns: dict[str, str]) -> None:
        said = ", ".join(f"{listed([name])} ({kind})" for name, kind in list(columns.items())[:MOST_NAMED])
        said += f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
        super().__init__(
            f"these columns cannot be turned into numbers: {said}; leave them out, or turn them into numbers yourself"
        )
        self.columns = columns


def leaves_of(table: "pa.Table", like: Sequence[Leaf] | None = None) -> list[tuple[Leaf, "pa.ChunkedArray"]]:
    """The columns of a table, nested ones taken apart. All that cannot be encoded are refused at once."""
    bad: dict[str, str] = {}
    out: list[tuple[Leaf, pa.ChunkedArray]] = []
    for name in table.column_names:
        try:
            out += _apart((name,), table.column(name))
        except TypeError as error:
            bad[name] = str(error)
    if bad:
        raise NotEncodable(bad)
    if like is None:
        return out
    by_path = {leaf.path: (leaf, values) for leaf, values in out}
    there = {leaf.path: found for leaf in like if (found := _at(leaf.path, by_path)) is not None}
    lost = {
        leaf.name: f"learnt as {leaf.kind}, but now {there[leaf.path][0].kind if leaf.path in there else 'not there'}"
        for leaf in like
        if not leaf.is_left_out and not fits(leaf, there.get(leaf.path))
    }
    if lost:
        raise NotEncodable(lost)
    return [(leaf, there[leaf.path][1]) for leaf in like if leaf.path in there]


def _at(path: tuple[str | int, ...], found: dict[tuple[str | int, ...], Any]) -> tuple[Leaf, Any] | None:
    """What stands at a path: the leaf there, or nothing but gaps where all the lists above it are missing."""
    import pyarrow as pa

    if path in found:
        there: tuple[Leaf, Any] = found[path]
        return there
    for end in range(1, len(path)):
        if path[:end] in found and found[path[:end]][0].kind == EMPTY:
            return Leaf(path, EMPTY), pa.chunked_array([pa.nulls(len(found[path[:end]][1]))])
    return None


def unusable(table: "pa.Table") -> dict[str, str]:
    """The columns that cannot be turned into numbers, each with the reason."""
    try:
        leaves_of(table)
    except NotEncodable as error:
        return error.columns
    return {}


def fits(leaf: Leaf, found: tuple[Leaf, Any] | None) -> bool:
    """Whether a column can be encoded as the one that was learnt: it is of that kind, or has no value at all."""
    numbers = ("number", "yes or no")
    return found is not None and (found[0].kind in (leaf.kind, EMPTY) or {found[0].kind, leaf.kind} <= set(numbers))


def _apart(path: tuple[str | int, ...], values: "pa.ChunkedArray") -> list[tuple[Leaf, "pa.ChunkedArray"]]:
    """A column as leaves; raises TypeError with the type of what cannot be encoded."""
    import pyarrow as pa
    from pyarrow import compute, types

    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _apart(path, pa.chunked_array([chunk.storage for chunk in values.chunks], kind.storage_type))
    if types.is_dictionary(kind):
        # A category of text is a name even if it looks like a number. Views of text, which polars has, cannot be taken from.
        kept = pa.string() if holds_text(kind.value_type) else kind.value_type
        taken = [chunk.dictionary.cast(kept).take(chunk.indices) for chunk in values.chunks]
        return _apart(path, pa.chunked_array(taken, kept))
    if types.is_null(kind):
        return [(Leaf(path, EMPTY), values)]
    if types.is_boolean(kind):
        return [(Leaf(path, "yes or no"), values)]
    if holds_numbers(kind):
        return [(Leaf(path, "number"), values)]
    if holds_text(kind):
        return [(Leaf(path, "text"), values)]
    if types.is_timestamp(kind) or types.is_date(kind):
        return [(Leaf(path, "date"), compute.local_timestamp(values) if getattr(kind, "tz", None) else values)]
    if types.is_time(kind):
        return [(Leaf(path, "time"), values)]
    if types.is_duration(kind):
        return [(Leaf(path, "duration"), values)]
    if types.is_struct(kind):
        fields = [kind.field(i).name for i in range(kind.num_fields)]
        return [it for i, name in enumerate(fields) for it in _apart((*path, name), compute.struct_field(values, [i]))]
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        return _entries(path, values)
    raise TypeError(f"of the type {kind}")


def _entries(path: tuple[str | int, ...], values: "pa.ChunkedArray") -> list[tuple[Leaf, "pa.ChunkedArray"]]:
    """The entries of lists that all have the same length."""
    from pyarrow import compute

    lengths = compute.unique(compute.list_value_length(values).drop_null()).to_pylist()
    if not lengths:
        return [(Leaf(path, EMPTY), values)]
    if len(lengths) > 1:
        raise TypeError(f"lists of {min(lengths)} to {max(lengths)} entries")
    if lengths[0] > MOST_ENTRIES:
        raise TypeError(f"lists of {lengths[0]} entries, at most {MOST_ENTRIES} are taken apart")
    return [it for i in range(lengths[0]) for it in _apart((*path, i), compute.list_element(values, i))]


def numbers_of(leaf: Leaf, values: "pa.ChunkedArray") -> Floats:
    """The numbers of a column that is not text, a missing one NaN; a column for each part."""
    import pyarrow as pa
    from pyarrow import compute, types

    if len(values) == 0 or types.is_null(values.type):
        return np.full((len(values), max(1, len(leaf.parts))), np.nan)
    if leaf.kind == "date":
        moments = values.cast(pa.timestamp("us"), safe=False)
        parts = [_floats(getattr(compute, part)(moments)) for part in leaf.parts]
        if "hour" in leaf.parts:
            parts[-1] = parts[-1] + _floats(compute.minute(moments)) / 60 + _floats(compute.second(moments)) / 3600
        return np.column_stack(parts)
    if leaf.kind == "time":
        return _floats(values.cast(pa.time64("us")).cast(pa.int64()))[:, None] / 3.6e9
    if leaf.kind == "duration":
        return _floats(values.cast(pa.duration("us"), safe=False).cast(pa.int64()))[:, None] / 1e6
    return _floats(values)[:, None]


def _floats(values: "pa.ChunkedArray") -> Floats:
    import pyarrow as pa
    from pyarrow import compute

    if values.type != pa.float64():
        values = compute.cast(values, pa.float64(), safe=False)
    return np.asarray(values.to_numpy())


def coded_texts(values: "pa.ChunkedArray") -> tuple[list[str | None], NDArray[np.intp]]:
    """The different texts of a column, at last None for a missing one, and the place of each row's text among them."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_null(values.type) or not len(values):
        return [None], np.zeros(len(values), dtype=np.intp)
    # By the different texts: a Python object for each of them, not for each row.
    encoded = values.cast(pa.string()).dictionary_encode().unify_dictionaries()
    texts = encoded.chunk(0).dictionary.to_pylist()
    codes = [chunk.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
    return [*texts, None], np.concatenate(codes).astype(np.intp)

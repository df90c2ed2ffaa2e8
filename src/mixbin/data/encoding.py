"""Columns of any type as numbers: text as indicator columns, dates as their parts, missing numbers as the median.

What a column becomes is learnt from some rows and applied to others. Text goes through scikit-learn's OneHotEncoder. Medians are
NumPy's, which are those of scikit-learn's SimpleImputer in a tenth of the time (benchmarks/reading.py). skrub's TableVectorizer
was measured beside them: it rounds numbers to float32, fills nothing in, and needs four more packages.
"""

import warnings
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
MOST_CATEGORIES = 30
"""A column of text becomes at most this many indicator columns; the rarer texts share the last of them."""
FEW_CATEGORIES = 10
"""Text with fewer different values than this is never taken for names that differ from row to row."""
MOST_ENTRIES = 256
"""Lists with more entries are not taken apart."""
PARTS = ("year", "month", "day", "hour")
"""What a date becomes; the hour, with minutes and seconds as its fractions, only where there is one."""
DIFFERENT = "nearly all its texts differ"
EMPTY, ALIKE = "it has no value", "it has one text only"


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
        return self.kind in (DIFFERENT, EMPTY, ALIKE)


class NotEncodable(InvalidInput):
    """Columns of types that cannot be turned into numbers, by name."""

    def __init__(self, columns: dict[str, str]) -> None:
        said = ", ".join(f"{listed([name])} ({kind})" for name, kind in list(columns.items())[:MOST_NAMED])
        said += f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
        super().__init__(
            f"these columns cannot be turned into numbers: {said}; leave them out, or turn them into numbers yourself"
        )
        self.columns = columns


class Encoding:
    """What each column of a table becomes, learnt from some rows of it.

    ``names`` are the columns that come out, ``about`` says for each of them what it is.
    """

    def __init__(self, table: "pa.Table", max_categories: int = MOST_CATEGORIES) -> None:
        self.columns = list(table.column_names)
        found = _leaves(table)
        self.leaves: list[Leaf] = []
        self.medians: list[Floats] = []
        texts = []
        for leaf, values in found:
            leaf = _learnt(leaf, values)
            self.leaves.append(leaf)
            if leaf.kind == "text":
                texts.append(_texts(values))
            elif not leaf.is_left_out:
                self.medians.append(_medians(_numbers(leaf, values)))
        self.encoder = _fitted(texts, max_categories) if texts else None
        self._name()

    def _name(self) -> None:
        """The columns that come out: their names, and what each is."""
        from mixbin.data.encoded_names import indicators

        self.about: dict[str, dict[str, Any]] = {}
        medians, place = iter(self.medians), 0
        self.widths: list[int] = []
        for leaf in self.leaves:
            if leaf.is_left_out:
                new: list[tuple[str, dict[str, Any]]] = []
            elif leaf.kind == "text":
                new = indicators(leaf.name, self.encoder, place)
                place += 1
            else:
                filled = next(medians)
                ends = [f".{part}" for part in leaf.parts] or [""]
                part = leaf.parts or (leaf.kind,)
                new = [
                    (leaf.name + end, {"column": leaf.name, "is": it, "if_missing": float(median)})
                    for end, it, median in zip(ends, part, filled, strict=True)
                ]
            self.widths.append(len(new))
            for name, said in new:
                # A column of the table may have the name that an indicator would get.
                while name in self.about:
                    name += "'"
                self.about[name] = said
        self.names = list(self.about)

    @property
    def is_plain(self) -> bool:
        """Whether all columns were numbers, so that only missing values may have changed."""
        return all(leaf.kind == "number" and len(leaf.path) == 1 for leaf in self.leaves)

    def of_kind(self, *kinds: str) -> list[Leaf]:
        """The columns of some kinds."""
        return [leaf for leaf in self.leaves if leaf.kind in kinds]

    @property
    def n_indicators(self) -> int:
        """How many columns text became."""
        return sum(width for leaf, width in zip(self.leaves, self.widths, strict=True) if leaf.kind == "text")

    def transform(self, table: "pa.Table") -> "Encoded":
        """The numbers of some rows, which must have the columns that were learnt from."""
        by_path = {leaf.path: values for leaf, values in _leaves(table.select(self.columns), self.leaves)}
        out = np.empty((table.num_rows, len(self.names)))
        filled: dict[str, int] = {}
        unknown: dict[str, int] = {}
        at = 0
        medians = iter(self.medians)
        texts = [_texts(by_path[leaf.path]) for leaf in self.of_kind("text")]
        coded = self._indicators(texts) if texts else np.empty((table.num_rows, 0))
        text_at = 0
        for leaf, width in zip(self.leaves, self.widths, strict=True):
            if leaf.kind == "text":
                out[:, at : at + width] = coded[:, text_at : text_at + width]
                text_at += width
            elif not leaf.is_left_out:
                numbers, median = _numbers(leaf, by_path[leaf.path]), next(medians)
                gone = np.isnan(numbers)
                if gone.any():
                    # The parts of a date are missing together: one value.
                    filled[leaf.name] = int(gone[:, 0].sum())
                    numbers = np.where(gone, median, numbers)
                out[:, at : at + width] = numbers
            at += width
        if self.encoder is not None:
            for leaf, column, known in zip(self.of_kind("text"), texts, self.encoder.categories_, strict=True):
                if new := _unknown(column, known):
                    unknown[leaf.name] = new
        return Encoded(out, filled, unknown)

    def _indicators(self, texts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        assert self.encoder is not None
        with warnings.catch_warnings():
            # Texts that were not learnt are counted and told by whoever asked.
            warnings.filterwarnings("ignore", message="Found unknown categories")
            return np.asarray(self.encoder.transform(np.column_stack(texts)))


@dataclass(frozen=True, eq=False)
class Encoded:
    """The numbers of some rows."""

    X: Floats
    filled: dict[str, int]
    """How many missing values of a column were filled in; texts that are missing have an indicator of their own instead."""
    unknown: dict[str, int]
    """How many values of a column of text are none of those that were learnt."""


def _fitted(texts: Sequence[NDArray[Any]], most: int) -> Any:
    from sklearn.preprocessing import OneHotEncoder

    how: dict[str, Any] = {"drop": "if_binary", "handle_unknown": "infrequent_if_exist", "sparse_output": False}
    return OneHotEncoder(max_categories=most, **how).fit(np.column_stack(texts))


def _unknown(column: NDArray[Any], known: NDArray[Any]) -> int:
    """How many entries are none of those known."""
    import pandas as pd

    return int((~pd.Series(column, dtype=object).isin(list(known))).sum())


def _medians(numbers: Floats) -> Floats:
    """The median of each part over the rows that have one."""
    return np.array([float(np.nanmedian(column)) for column in numbers.T])


# Columns and what is below them.


def _leaves(table: "pa.Table", like: Sequence[Leaf] | None = None) -> list[tuple[Leaf, "pa.ChunkedArray"]]:
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
    there = {leaf.path: (leaf, values) for leaf, values in out}
    lost = {
        leaf.name: f"learnt as {leaf.kind}, but now {there[leaf.path][0].kind if leaf.path in there else 'not there'}"
        for leaf in like
        if not leaf.is_left_out and not _fits(leaf, there.get(leaf.path))
    }
    if lost:
        raise NotEncodable(lost)
    return [(leaf, there[leaf.path][1]) for leaf in like if leaf.path in there]


def unusable(table: "pa.Table") -> dict[str, str]:
    """The columns that cannot be turned into numbers, each with the reason."""
    try:
        _leaves(table)
    except NotEncodable as error:
        return error.columns
    return {}


def _fits(leaf: Leaf, found: tuple[Leaf, Any] | None) -> bool:
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


def _learnt(leaf: Leaf, values: "pa.ChunkedArray") -> Leaf:
    """What becomes of a column, by its values."""
    from pyarrow import compute

    if leaf.kind == "text":
        counts = compute.value_counts(values.drop_null())
        times = np.asarray(counts.field("counts").to_numpy(zero_copy_only=False))
        if not times.size:
            return Leaf(leaf.path, EMPTY)
        if times.size == 1 and not values.null_count:
            return Leaf(leaf.path, ALIKE)
        if times.size >= FEW_CATEGORIES and np.count_nonzero(times == 1) > times.sum() / 2:
            return Leaf(leaf.path, DIFFERENT)
        return leaf
    if leaf.kind == EMPTY:
        return leaf
    full = Leaf(leaf.path, leaf.kind, PARTS if leaf.kind == "date" else ())
    numbers = _numbers(full, values)
    if np.isnan(numbers[:, 0]).all():
        return Leaf(leaf.path, EMPTY)
    if leaf.kind == "date" and not np.nan_to_num(numbers[:, -1]).any():
        return Leaf(leaf.path, "date", PARTS[:-1])
    return full


def _numbers(leaf: Leaf, values: "pa.ChunkedArray") -> Floats:
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


def _texts(values: "pa.ChunkedArray") -> NDArray[Any]:
    """The texts of a column as objects, a missing one None."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_null(values.type):
        return np.full(len(values), None, dtype=object)
    # By the different texts: a Python object for each of them, not for each row.
    encoded = values.cast(pa.string()).dictionary_encode().unify_dictionaries()
    if not encoded.num_chunks:
        return np.empty(0, dtype=object)
    texts = np.array([*encoded.chunk(0).dictionary.to_pylist(), None], dtype=object)
    return np.concatenate([texts[chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)] for chunk in encoded.chunks])


# Words.


def counted(n: int, what: str) -> str:
    """A number of things in words."""
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def words(encoding: Encoding, filled: int) -> str:
    """What was done to the columns, in a sentence; empty if nothing was."""
    said = []
    text, dates = encoding.of_kind("text"), encoding.of_kind("date")
    if text:
        said.append(f"{counted(len(text), 'text column')} as {counted(encoding.n_indicators, 'indicator column')}")
    if dates:
        parts = max((leaf.parts for leaf in dates), key=len)
        said.append(f"{counted(len(dates), 'date')} as {', '.join(parts)}")
    for kind, become in (("yes or no", "0 and 1"), ("time", "hours"), ("duration", "seconds")):
        if some := encoding.of_kind(kind):
            name = {"yes or no": "yes-or-no column", "time": "time of day", "duration": "duration"}[kind]
            said.append(f"{counted(len(some), name)} as {become}".replace("time of days", "times of day"))
    nested = {leaf.path[0] for leaf in encoding.leaves if len(leaf.path) > 1}
    if nested:
        said.append(f"{counted(len(nested), 'nested column')} taken apart")
    out = ", ".join(said)
    if filled:
        values = f"{counted(filled, 'missing value')} filled by the median"
        out = f"{out}; {values}" if out else values
    left = [f"left out: {listed([leaf.name for leaf in some], 20)} ({why})" for why, some in _left_out(encoding).items()]
    return "; ".join(([out] if out else []) + left)


def _left_out(encoding: Encoding) -> dict[str, list[Leaf]]:
    return {why: some for why in (EMPTY, ALIKE, DIFFERENT) if (some := encoding.of_kind(why))}

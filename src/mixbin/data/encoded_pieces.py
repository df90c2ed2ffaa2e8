"""What workers do with pieces of Parquet files whose columns are not all numbers: look at them, and encode them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import contents_digest
from mixbin._validate import Floats
from mixbin.data.cells import Kind, Trouble, Unreadable, at
from mixbin.data.column_survey import ColumnSurvey, Path, in_groups, surveyed, together
from mixbin.data.encoding import Encoding, whole
from mixbin.data.leaves import Leaf, leaves_of, numbers_of
from mixbin.data.medians import NONE, Counts, Wanted, keys_of
from mixbin.data.parquet_pieces import Piece, reading
from mixbin.data.parts import Columns, RowsInParts
from mixbin.data.typed_columns import TypedColumns

if TYPE_CHECKING:
    import pyarrow as pa

Place = tuple[Path, int, int]
"""Of a number that is looked for: the column, the part of its date, and which of the two numbers in the middle."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """How the columns of a folder become numbers."""

    typed: TypedColumns
    encoding: Encoding

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return self.encoding.columns

    def digest(self) -> str:
        """A hash of all that the numbers depend on besides the files."""
        typed, made = self.typed, self.encoding
        said = [sorted(typed.as_text), sorted((name, it.name, it.order) for name, it in typed.kinds.items())]
        how = typed.dialect
        signs = [how.decimal, how.thousands, sorted(how.missing), how.day_first]
        return contents_digest([said, signs, made.leaves, made.names, made.medians])

    def numbers(self, table: "pa.Table") -> Floats:
        """The numbers of some rows, column after column."""
        return self.encoding.transform(typed_table(self.typed, table), "F").X


def typed_table(typed: TypedColumns, table: "pa.Table") -> "pa.Table":
    """The columns of a table as what they are known to be."""
    import pyarrow as pa

    columns = [typed.feature(name, table.column(name), is_parquet=True) for name in table.column_names]
    return pa.table(columns, names=table.column_names)


class EncodedRows(RowsInParts):
    """The rows of a piece as numbers, which are read and encoded whenever they are asked for."""

    def __init__(self, piece: Piece, recipe: Recipe) -> None:
        self.piece, self.recipe, self.dtype = piece, recipe, np.dtype(np.float64)
        self.shape = piece.rows, len(recipe.encoding.names)

    def parts(self) -> Iterator[Columns]:
        """Some rows after the other."""
        for table in tables_of(self.piece, self.recipe.columns, self.shape[1]):
            yield Columns(list(self.recipe.numbers(table).T))


def tables_of(piece: Piece, columns: Sequence[str], width: int) -> "Iterator[pa.Table]":
    """The rows of a piece in batches, each still small once it has become ``width`` columns of numbers."""
    import pyarrow as pa

    for batch in piece.batches(list(columns), width):
        with reading(piece.file):
            # Arrow takes what is in the pages as it is; text, say, may be no UTF-8.
            batch.validate(full=True)
        yield pa.Table.from_batches([batch]).select(list(columns))


def read_target(piece: Piece, name: str, typed: TypedColumns) -> Floats:
    """The target of all rows of a piece, NaN where there is none."""
    return np.concatenate([typed.numbers(name, it.column(name), is_parquet=True) for it in tables_of(piece, [name], 1)])


def look_at_target(piece: Piece, name: str, typed: TypedColumns) -> tuple[NDArray[np.uint8], Trouble | None, Kind | None]:
    """Which rows of a piece have a target, as bits, or why it cannot be used; of text also how its numbers are written."""
    found, begin = [], 0
    typed = replace(typed, targets=dict(typed.targets))
    for table in tables_of(piece, [name], 1):
        try:
            found.append(~np.isnan(typed.numbers(name, table.column(name), is_parquet=True)))
        except Unreadable as error:
            it = error.trouble.of_target()
            return np.empty(0, dtype=np.uint8), at(it, piece.row_in_file + begin + it.row, piece.file), None
        begin += table.num_rows
    return np.packbits(np.concatenate(found)), None, typed.targets.get(name)


def look(piece: Piece, columns: Sequence[str], typed: TypedColumns, groups: NDArray[np.uint8] | None) -> dict[int, ColumnSurvey]:
    """What is found in the rows of a piece, by the group that each is in."""
    out: dict[int, ColumnSurvey] = {}
    begin = 0
    for table in tables_of(piece, columns, len(columns)):
        some = None if groups is None else groups[begin : begin + table.num_rows]
        numbers = piece.row + begin + np.arange(table.num_rows)
        for group, rows in in_groups(some, table.num_rows):
            part = table if rows is None else table.take(rows)
            together([{group: surveyed(part, numbers if rows is None else numbers[rows], typed)}], out)
        begin += table.num_rows
    return out


def count(
    piece: Piece, typed: TypedColumns, leaves: Sequence[Leaf], wanted: Mapping[Place, Wanted], groups: NDArray[np.uint8] | None
) -> dict[Place, Counts]:
    """Count the numbers of a piece, in the first group, among which are those that are looked for."""
    columns = list(dict.fromkeys(str(leaf.path[0]) for leaf in leaves))
    out: dict[Place, Counts] = {}
    begin = 0
    for table in tables_of(piece, columns, len(columns)):
        some = None if groups is None else groups[begin : begin + table.num_rows]
        begin += table.num_rows
        rows = dict(in_groups(some, table.num_rows)).get(0, np.empty(0, dtype=np.intp))
        part = table if rows is None else table.take(rows)
        if not part.num_rows:
            continue
        for leaf, values in leaves_of(typed_table(typed, part), leaves):
            numbers = numbers_of(whole(leaf), values)
            for place, it in wanted.items():
                if place[0] == leaf.path:
                    new = Counts.of(it.chosen(keys_of(numbers[:, place[1]])), it.shift - 16)
                    out[place] = out.get(place, NONE).plus(new, it.shift - 16)
    return out

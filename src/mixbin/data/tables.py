"""Tables from files as people have them: CSV with or without a header, plain, gzipped or alone in a zip, Excel and Parquet.

A table has its cells as they stand in the file, so that rows can be written as they were; ``reader`` makes numbers of them. Rows
are counted from 0, without the header.
"""

import csv
import fnmatch
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import listed, shown
from mixbin.data.dialect import Dialect
from mixbin.data.unpacking import check_regular, content, first_line
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

VALIDATION_FRACTION = 0.2
"""The share of the rows that is split off unless another is given."""
PANDAS_INDEX = r"__index_level_\d+__"
"""How pandas names an index that it keeps in a Parquet file: not a column of the table."""
UNNAMED = "unnamed {}"
"""What a column is called whose name is empty; the number is its place."""


@dataclass(frozen=True, eq=False)
class Table:
    """The values of one file as they are written there."""

    file: Path
    named: bool
    """Whether the columns have names; otherwise these are their numbers, from 0."""
    values: "pa.Table"
    is_parquet: bool = False
    separator: str = ","
    """What stands between the cells of a CSV."""
    marked: bool = False
    """Whether a CSV that is written from it should begin with a byte order mark, so that Excel knows its letters."""
    notes: tuple[str, ...] = field(default=())
    """What a person should know about how it was read."""

    @cached_property
    def names(self) -> list[str]:
        """The columns, in their order."""
        return list(self.values.column_names)

    def __len__(self) -> int:
        return int(self.values.num_rows)

    def find(self, column: str, option: str) -> str:
        """The column of that name, or of that number (negative: from the end)."""
        found = self._found(column)
        if found is not None:
            return found
        width = len(self.names)
        there = f"the columns {listed(self.names)}" if self.named else f"{width} columns without names, from 0 to {width - 1}"
        remedy = "write one of them" if self.named else "write a number, -1 for the last, or --header if the first row has names"
        if any(re.fullmatch(UNNAMED.format(r"\d+"), name) for name in self.names):
            remedy += ", or remove what stands before the row with the names"
        raise InvalidInput(f"{option} must be a column of {self.file}, got {shown(column)}; it has {there}; {remedy}")

    def _found(self, column: str) -> str | None:
        if column in self.names:
            return column
        width = len(self.names)
        if re.fullmatch(r"-?\d{1,9}", column) and -width <= int(column) < width:
            return self.names[int(column)]
        return None

    def find_all(self, typed: Sequence[str], option: str) -> list[str]:
        """The columns that were named: each text is a column, a pattern such as id*, or several of these with commas between."""
        out: list[str] = []
        for text in typed:
            whole = self._found(text)
            parts = (
                [text] if whole is not None else [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]
            )
            for part in parts or [text]:
                if self._found(part) is None and (matched := [it for it in self.names if fnmatch.fnmatchcase(it, part)]):
                    out += matched
                else:
                    out.append(self.find(part, option))
        return list(dict.fromkeys(out))

    def roles(
        self, target: str, ignore: Sequence[str], words: tuple[str, str] = ("--target", "--ignore")
    ) -> tuple[list[str], str]:
        """The features and the column to predict; ``words`` is what messages call the two arguments."""
        predicted = self.find(target, words[0])
        ignored = set(self.find_all(ignore, words[1]))
        if predicted in ignored:
            both = f"{words[0]} and {words[1]} must differ"
            raise InvalidInput(f"{both}, got {predicted!r} for both; leave out {words[1]} {predicted!r}")
        features = [name for name in self.names if name != predicted and name not in ignored]
        if not features:
            must = f"{self.file} must have a column to predict {predicted!r} from"
            raise InvalidInput(f"{must}, got none; add columns or ignore fewer")
        return features, predicted

    def labels(self, name: str, missing: frozenset[str]) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
        """A column of classes as text, and which of them are there."""
        texts = ["" if value is None else str(value).strip() for value in as_python(self.values.column(name))]
        return np.array(texts, dtype=np.str_), np.array([text.lower() not in missing for text in texts], dtype=bool)

    # Rows as they were.

    def rows(self, which: NDArray[np.intp]) -> list[list[Any]]:
        """Some rows with all their columns, as they were."""
        taken = self.values.take(which)
        return [list(row) for row in zip(*map(as_python, taken.columns), strict=True)]

    @property
    def ending(self) -> str:
        """How the name of a file of some of its rows ends."""
        return ".parquet" if self.is_parquet else ".csv"

    def written(self, which: NDArray[np.intp], first: dict[str, list[Any]], columns: Sequence[str] | None = None) -> bytes:
        """A file of some rows in the format of this one: further columns, then its own as they were."""
        names = self.names if columns is None else list(columns)
        if self.is_parquet:
            return self._parquet_of(which, first, names)
        if columns is not None:
            places = [self.names.index(name) for name in names]
            body = [[row[place] for place in places] for row in self.rows(which)]
        else:
            body = self.rows(which)
        return self.csv_of([*first, *names], [[*row[0], *row[1]] for row in zip(_across(first, len(which)), body, strict=True)])

    def csv_of(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
        """A CSV file that separates its cells as this one does."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n", delimiter=self.separator)
        writer.writerow(header)
        writer.writerows(rows)
        return out.getvalue().encode("utf-8-sig" if self.marked else "utf-8")

    def _parquet_of(self, which: NDArray[np.intp], first: dict[str, list[Any]], names: list[str]) -> bytes:
        import pyarrow as pa
        from pyarrow import parquet

        taken = self.values.select(names).take(which)
        for place, (name, values) in enumerate(first.items()):
            while name in names:
                name += "_"
            taken = taken.add_column(place, name, pa.array(values))
        out = io.BytesIO()
        parquet.write_table(taken, out)
        return out.getvalue()


def _across(columns: dict[str, list[Any]], rows: int) -> list[list[Any]]:
    """Columns as rows; a table without columns keeps its number of rows."""
    return [list(row) for row in zip(*columns.values(), strict=True)] if columns else [[] for _ in range(rows)]


def read(file: Path, dialect: Dialect | None = None) -> Table:
    """The table in a file."""
    dialect = dialect or Dialect()
    try:
        if file.is_dir():
            raise InvalidInput(f"{file} must be a CSV or Parquet file, got a folder; name a file in it")
        check_regular(file)
        table = _by_kind(file, dialect)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read ({error.strerror or error}); check the path and the file") from None
    if not len(table):
        raise InvalidInput(f"{file} must hold rows of numbers, got none; check the file")
    return table


def _by_kind(file: Path, dialect: Dialect) -> Table:
    if is_parquet(file):
        return _parquet(file)
    from mixbin.data.excel_files import excel, is_excel

    if is_excel(file):
        return excel(file, dialect)
    from mixbin.data.csv_files import csv_table

    return csv_table(file, content(file), dialect)


def read_like(like: Table, columns: Sequence[str], file: Path, dialect: Dialect | None = None) -> Table:
    """A table with the columns of ``like`` in any order; of these only ``columns`` must be there."""
    table = read(file, dialect)
    must = f"{table.file} must have the columns of {like.file}, but"
    if table.named != like.named:
        has, lacks = (like.file, table.file) if like.named else (table.file, like.file)
        remedy = "give both a header, or tell with --header or --no-header what the first rows are"
        raise InvalidInput(f"{must} {has} has a header and {lacks} has none; {remedy}")
    if not table.named and (n := len(like.names)) != len(table.names):
        raise InvalidInput(f"{table.file} must have the {n} columns of {like.file}, got {len(table.names)}; write both alike")
    if lost := [name for name in columns if name not in table.names]:
        raise InvalidInput(f"{must} lacks {listed(lost)}; add what is missing")
    if more := [name for name in table.names if name not in like.names]:
        raise InvalidInput(f"{must} also has {listed(more)}; remove what is not in both")
    return table


def split(
    n: int, fraction: float | None, seed: int | np.random.Generator, what: str, remedy: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training and validation rows at random, each in their order; at least one of both."""
    if n < 2:
        raise InvalidInput(f"{what} must have 2 rows or more to split a validation part off, got {n}; add rows or {remedy}")
    held = min(max(int(n * (fraction or VALIDATION_FRACTION) + 0.5), 1), n - 1)
    validation, train = np.split(np.random.default_rng(seed).permutation(n), [held])
    return np.sort(train), np.sort(validation)


def holds_numbers(kind: "pa.DataType") -> bool:
    """Whether values of a type of Arrow are numbers."""
    from pyarrow import types

    return any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def holds_text(kind: "pa.DataType") -> bool:
    """Whether values of a type of Arrow are text."""
    from pyarrow import types

    views = getattr(types, "is_string_view", lambda _: False)
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, views))


def is_parquet(file: Path) -> bool:
    """Whether a file begins as Parquet does."""
    with file.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _parquet(file: Path) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(file) as opened:
            values = opened.read()
        # Arrow takes what is in the pages as it is; text, say, may be no UTF-8.
        values.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read as Parquet ({first_line(error)}); write it anew") from None
    check_names(file, values.column_names, "rename one")
    values = values.select([name for name in values.column_names if not re.fullmatch(PANDAS_INDEX, name)])
    return Table(file, True, values, is_parquet=True)


def check_names(file: Path, names: Sequence[str], remedy: str) -> None:
    """No two columns may have the same name."""
    if twice := sorted(name for name, times in Counter(names).items() if times > 1):
        raise InvalidInput(f"{file} must name its columns differently, got {listed(twice)} twice; {remedy}")


def with_all_named(names: Sequence[str]) -> list[str]:
    """The names of columns, those that are empty by their place; Excel writes such columns beside a table."""
    return [name or UNNAMED.format(place) for place, name in enumerate(names)]


def first_row_names(cells: Sequence[str], dialect: Dialect) -> bool:
    """Whether a first row has the names of the columns: it has a cell that is neither a number nor missing."""
    if dialect.header is not None:
        return dialect.header
    return any(dialect.number(cell) is None and cell.lower() not in dialect.missing for cell in cells)


def as_python(values: "pa.ChunkedArray") -> list[Any]:
    """Values of any type; as text where Python has no such dates."""
    import pyarrow as pa

    try:
        return list(values.to_pylist())
    except (ArithmeticError, ValueError):
        return list(values.cast(pa.string()).to_pylist())

"""Tables of numbers from files as people have them: CSV with or without a header, plain, gzipped or alone in a zip, and Parquet.

A value that is no number is refused with its column, its row and the remedy; rows are counted from 0, without the header. The
text of a CSV is kept beside its numbers, so that rows can be written as they were.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats, listed
from mixbin.data.unpacking import check_regular, content, first_line
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = {"", "?", "na", "n/a", "nan", "null", "none"}
"""What people write for a missing value, in small letters."""
VALIDATION_FRACTION = 0.2
"""The share of the rows that is split off unless another is given."""
PANDAS_INDEX = r"__index_level_\d+__"
"""How pandas names an index that it keeps in a Parquet file: not a column of the table."""


@dataclass(frozen=True, eq=False)
class Table:
    """The values of one file as they are written there."""

    file: Path
    named: bool
    """Whether the columns have names; otherwise these are their numbers, from 0."""
    text: bool
    """Whether the values are text, to be read as numbers."""
    values: "pa.Table"

    @cached_property
    def names(self) -> list[str]:
        """The columns, in their order."""
        return list(self.values.column_names)

    def __len__(self) -> int:
        return int(self.values.num_rows)

    def find(self, column: str, option: str) -> str:
        """The column of that name, or of that number (negative: from the end)."""
        if column in self.names:
            return column
        width = len(self.names)
        if re.fullmatch(r"-?\d{1,9}", column) and -width <= int(column) < width:
            return self.names[int(column)]
        there = f"the columns {listed(self.names)}" if self.named else f"{width} columns without names, from 0 to {width - 1}"
        remedy = "write one of them" if self.named else "write a number, -1 for the last, or --header if the first row has names"
        raise InvalidInput(f"{option} must be a column of {self.file}, got {column!r}; it has {there}; {remedy}")

    def roles(
        self, target: str, ignore: Sequence[str], words: tuple[str, str] = ("--target", "--ignore")
    ) -> tuple[list[str], str]:
        """The features and the column to predict; ``words`` is what messages call the two arguments."""
        predicted = self.find(target, words[0])
        ignored = {self.find(name, words[1]) for name in ignore}
        if predicted in ignored:
            both = f"{words[0]} and {words[1]} must differ"
            raise InvalidInput(f"{both}, got {predicted!r} for both; leave out {words[1]} {predicted!r}")
        features = [name for name in self.names if name != predicted and name not in ignored]
        if not features:
            must = f"{self.file} must have a column to predict {predicted!r} from"
            raise InvalidInput(f"{must}, got none; add columns or ignore fewer")
        return features, predicted

    def numbers(self, columns: Sequence[str]) -> Floats:
        """These columns side by side in float64, all of them finite."""
        out = np.empty((len(self), len(columns)))
        for j, name in enumerate(columns):
            out[:, j] = self._numbers(name)
        return out

    def labels(self, name: str) -> NDArray[np.str_]:
        """A column of classes, as text."""
        texts = ["" if value is None else str(value).strip() for value in self.values.column(name).to_pylist()]
        for row, text in enumerate(texts):
            if text.lower() in MISSING:
                raise self._missing(name, row)
        return np.array(texts, dtype=np.str_)

    def _numbers(self, name: str) -> Floats:
        values = self.values.column(name)
        if values.null_count:
            raise self._missing(name, int(np.flatnonzero(values.is_null().to_numpy())[0]))
        numbers = self._spelt(name, values) if self.text else self._typed(name, values)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size and np.isnan(numbers[wrong[0]]):
            raise self._missing(name, int(wrong[0]))
        if wrong.size:
            where = f"column {name!r} of {self.file} is not finite in row {wrong[0]}"
            raise InvalidInput(f"{where}; replace the value or remove that row")
        return numbers

    def _typed(self, name: str, values: "pa.ChunkedArray") -> Floats:
        import pyarrow as pa
        from pyarrow import compute

        if not holds_numbers(values.type):
            raise self._not_a_number(name, 0, _as_python(values[:1])[0])
        return np.asarray(compute.cast(values, pa.float64(), safe=False).to_numpy())

    def _spelt(self, name: str, values: "pa.ChunkedArray") -> Floats:
        import pyarrow as pa
        from pyarrow import compute

        try:
            return np.asarray(compute.cast(compute.utf8_trim_whitespace(values), pa.float64()).to_numpy())
        except pa.ArrowInvalid:
            pass
        # Slowly, one by one: there is a value to refuse, or a number in a form that only Python reads.
        texts = values.to_pylist()
        for row, text in enumerate(texts):
            if text.strip().lower() in MISSING:
                raise self._missing(name, row)
            if not _is_number(text):
                raise self._not_a_number(name, row, text)
        return np.array([float(text) for text in texts])

    def _not_a_number(self, name: str, row: int, value: object) -> InvalidInput:
        text = repr(value) if isinstance(value, str) else str(value)
        shown = text if len(text) <= 40 else text[:37] + "..."
        remedy = f"leave the column out with --ignore {name!r}, or turn it into numbers"
        if row == 0 and not self.named:
            remedy += "; if the first row has the names of the columns, write --header"
        return InvalidInput(f"column {name!r} of {self.file} must hold numbers, got {shown} in row {row}; {remedy}")

    def _missing(self, name: str, row: int) -> InvalidInput:
        return InvalidInput(
            f"column {name!r} of {self.file} has no value in row {row}; "
            f"fill it in, remove that row, or leave the column out with --ignore {name!r}"
        )

    def rows(self, which: NDArray[np.intp]) -> list[list[Any]]:
        """Some rows with all their columns, as they were."""
        taken = self.values.take(which)
        return [list(row) for row in zip(*map(_as_python, taken.columns), strict=True)]


def read(file: Path, header: bool | None = None) -> Table:
    """The table in a file; ``header`` says whether a CSV has one, None looks at its first row."""
    try:
        if file.is_dir():
            raise InvalidInput(f"{file} must be a CSV or Parquet file, got a folder; name a file in it")
        check_regular(file)
        table = _parquet(file) if is_parquet(file) else _csv(file, content(file), header)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read ({error.strerror or error}); check the path and the file") from None
    if not len(table):
        raise InvalidInput(f"{file} must hold rows of numbers, got none; check the file")
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


def read_like(like: Table, columns: Sequence[str], file: Path, header: bool | None = None) -> Table:
    """A table with the columns of ``like`` in any order; of these only ``columns`` must be there."""
    table = read(file, header)
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


def holds_numbers(kind: "pa.DataType") -> bool:
    """Whether values of a type of Arrow are numbers."""
    from pyarrow import types

    return any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


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
    return Table(file, True, False, values)


def _csv(file: Path, text: bytes, header: bool | None) -> Table:
    text = text.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
    # Carriage returns alone end the lines of old files.
    first: bytes = next(re.finditer(rb"[^\r\n]*", text))[0]
    try:
        # A table of text has no zero bytes; what has them is some other kind of file.
        if b"\0" in text:
            raise UnicodeError
        cells, separator = _first_cells(file, first.decode())
    except UnicodeError:
        raise InvalidInput(f"{file} must be a CSV file in UTF-8 or a Parquet file; save it as one of these") from None
    named = any(not _is_number(cell) and cell.lower() not in MISSING for cell in cells) if header is None else header
    if named and len(first) == len(text):
        raise InvalidInput(f"{file} must hold rows of numbers, got none; check the file")
    names = cells if named else [str(j) for j in range(len(cells))]
    check_names(file, names, "rename one, or use --no-header")
    return Table(file, named, True, _parsed(file, text, names, separator, skip=int(named)))


def _first_cells(file: Path, line: str) -> tuple[list[str], str]:
    """The cells of the first row, and what stands between them."""
    if not line.strip():
        raise InvalidInput(f"{file} must hold rows of numbers, got an empty file; check the file")
    # The comma, unless there is a tab or a semicolon (which goes with decimal commas) outside of quotes.
    bare = re.sub(r'"[^"]*"', "", line)
    separator = next((sign for sign in "\t;" if sign in bare), ",")
    cells: list[str] = []
    try:
        cells = next(csv.reader([line], delimiter=separator))
        # Strictly, to see whether a quote is opened and not closed; its other complaints do not matter.
        next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        unclosed = "unexpected end of data" in str(error)
        if unclosed or not cells:
            reason = "a quote is opened and not closed" if unclosed else error
            raise InvalidInput(f"the first row of {file} cannot be read as CSV ({reason}); mend that row") from None
    return [cell.strip() for cell in cells], separator


def _parsed(file: Path, text: bytes, names: list[str], separator: str, skip: int) -> "pa.Table":
    """All cells as text; a row with too many or too few is refused with its number."""
    import pyarrow as pa
    from pyarrow import csv as pacsv

    wrong: list[Any] = []
    # A row must fit into a block, of which pyarrow takes no more than this.
    whole = min(len(text) + 1, 2**31 - 1)

    def note(row: Any) -> str:
        wrong.append(row)
        return "error"

    as_text = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, quoted_strings_can_be_null=False
    )

    def parse(threads: bool) -> "pa.Table":
        # Names are given, so pyarrow must be told to skip the row that has them.
        rows = {"column_names": names, "skip_rows_after_names": skip, "block_size": None if threads else whole}
        reading = pacsv.ReadOptions(use_threads=threads, **rows)
        parsing = pacsv.ParseOptions(delimiter=separator, invalid_row_handler=None if threads else note)
        return pacsv.read_csv(io.BytesIO(text), reading, parsing, as_text)

    try:
        return parse(threads=True)
    except pa.ArrowException:
        pass
    _check_utf8(file, text)
    try:
        # Only one thread knows the row numbers, and can take all as one block, as very long rows need it.
        return parse(threads=False)
    except pa.ArrowException as error:
        if not wrong:
            raise InvalidInput(f"{file} cannot be read as CSV ({first_line(error)}); save it as CSV in UTF-8") from None
        row = wrong[0]
        where = f" in row {row.number - 1 - skip}" if row.number is not None else ""
        must = f"{file} must have {row.expected_columns} columns in every row"
        raise InvalidInput(f"{must}, got {row.actual_columns}{where}; mend that row") from None


def _check_utf8(file: Path, text: bytes) -> None:
    """Say where a text is not UTF-8; of rows that are not, pyarrow cannot tell the number."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        wrong = f"byte {text[error.start]:#x} in line {line}"
        raise InvalidInput(f"{file} cannot be read as CSV (invalid UTF8 data: {wrong}); save it as CSV in UTF-8") from None


def check_names(file: Path, names: Sequence[str], remedy: str) -> None:
    """No two columns may have the same name."""
    if twice := sorted(name for name, times in Counter(names).items() if times > 1):
        raise InvalidInput(f"{file} must name its columns differently, got {listed(twice)} twice; {remedy}")


def _as_python(values: "pa.ChunkedArray") -> list[Any]:
    """Values of any type; as text where Python has no such dates."""
    import pyarrow as pa

    try:
        return list(values.to_pylist())
    except (ArithmeticError, ValueError):
        return list(values.cast(pa.string()).to_pylist())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text

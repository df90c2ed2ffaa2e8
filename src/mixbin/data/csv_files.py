"""CSV files: what stands between the cells, whether there are names, and all cells as text."""

import csv
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixbin.data.dialect import Dialect, decoded, not_a_table, separator_line
from mixbin.data.tables import Table, check_names, first_row_names, with_all_named
from mixbin.data.unpacking import first_line
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


def csv_table(file: Path, raw: bytes, dialect: Dialect) -> Table:
    """The table in the bytes of a CSV file."""
    text, encoding, marked = decoded(file, raw, dialect.encoding)
    separator, text = separator_line(text.lstrip(b"\r\n"))
    text, notes = _without_comments(text)
    # Carriage returns alone end the lines of old files.
    first: bytes = next(re.finditer(rb"[^\r\n]*", text))[0]
    try:
        # A table of text has no zero bytes; what has them is some other kind of file.
        if b"\0" in text:
            raise UnicodeError
        cells, separator = _first_cells(file, first.decode(), separator)
    except UnicodeError:
        raise not_a_table(file) from None
    named = first_row_names(cells, dialect)
    if named and len(first) == len(text):
        raise InvalidInput(f"{file} must hold rows of numbers, got none; check the file")
    names = with_all_named(cells) if named else [str(j) for j in range(len(cells))]
    check_names(file, names, "rename one, or use --no-header")
    values = _parsed(file, text, names, separator, skip=int(named))
    # Excel takes a CSV without a mark for one of its own country's letters.
    return Table(file, named, values, separator=separator, marked=marked or encoding != "utf-8", notes=notes)


def _without_comments(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The text without lines of comment at its beginning, and what to say about them.

    A first line that begins with # may also have the names: then it has as many separators as the line that follows.
    """
    found = re.match(rb"(?:#[^\r\n]*(?:\r\n|\r|\n)+)+", text)
    if found is None:
        return text, ()
    lines = [line for line in re.split(rb"[\r\n]+", found[0]) if line]
    following = next(re.finditer(rb"[^\r\n]*", text[found.end() :]))[0]
    sign = max(b",;\t|", key=lambda it: following.count(bytes([it])))
    if lines[-1].count(bytes([sign])) == following.count(bytes([sign])) > 0:
        del lines[-1]
        return (text, ()) if not lines else _cut(text, lines)
    return _cut(text, lines)


def _cut(text: bytes, lines: list[bytes]) -> tuple[bytes, tuple[str, ...]]:
    begin = text.index(lines[-1]) + len(lines[-1])
    said = "The first line, a comment, is" if len(lines) == 1 else f"The first {len(lines)} lines, comments, are"
    return text[begin:].lstrip(b"\r\n"), (f"{said} not part of the table.",)


def _first_cells(file: Path, line: str, separator: str | None) -> tuple[list[str], str]:
    """The cells of the first row, and what stands between them."""
    if not line.strip():
        raise InvalidInput(f"{file} must hold rows of numbers, got an empty file; check the file")
    # The comma, unless there is a tab or a semicolon (which goes with decimal commas) outside of quotes.
    bare = re.sub(r'"[^"]*"', "", line)
    if separator is None:
        separator = next((sign for sign in "\t;" if sign in bare), "|" if "|" in bare and "," not in bare else ",")
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

    def parse(threads: bool, newlines: bool = False) -> "pa.Table":
        # Names are given, so pyarrow must be told to skip the row that has them.
        rows = {"column_names": names, "skip_rows_after_names": skip, "block_size": None if threads else whole}
        reading = pacsv.ReadOptions(use_threads=threads, **rows)
        parsing = pacsv.ParseOptions(
            delimiter=separator, invalid_row_handler=None if threads else note, newlines_in_values=newlines
        )
        return pacsv.read_csv(io.BytesIO(text), reading, parsing, as_text)

    try:
        # A quote may hold line ends, which several threads at once must be told; it costs them some speed.
        return parse(threads=True, newlines=b'"' in text)
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
        title = ", or remove what stands before the names" if row.number in (1, 2) and row.expected_columns == 1 else ""
        raise InvalidInput(f"{must}, got {row.actual_columns}{where}; mend that row{title}") from None


def _check_utf8(file: Path, text: bytes) -> None:
    """Say where a text is not UTF-8; of rows that are not, pyarrow cannot tell the number."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        wrong = f"byte {text[error.start]:#x} in line {line}"
        raise InvalidInput(
            f"{file} cannot be read as CSV (invalid UTF8 data: {wrong}); save it as CSV in UTF-8, or name its letters, as with "
            "--encoding cp1252"
        ) from None

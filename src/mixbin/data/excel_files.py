"""Excel files (.xlsx): the first sheet that has rows, read by openpyxl, which is an extra."""

import datetime
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixbin.data.dialect import Dialect
from mixbin.data.tables import Table, check_names, first_row_names, with_all_named
from mixbin.data.unpacking import MOST_TIMES, first_line, most_bytes
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

WORKBOOK = "xl/workbook.xml"
"""The part that every Excel file has."""


def is_excel(file: Path) -> bool:
    """Whether a file is a zip as Excel writes it."""
    with file.open("rb") as stream:
        if stream.read(2) != b"PK":
            return False
    try:
        with zipfile.ZipFile(file) as archive:
            return WORKBOOK in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError):
        return False


def excel(file: Path, dialect: Dialect) -> Table:
    """The table in the first sheet that has rows."""
    try:
        import openpyxl
    except ImportError:
        raise InvalidInput(
            f"{file} is an Excel file, which needs openpyxl; install it by pip install 'mixbin[excel]', or save the sheet as CSV"
        ) from None
    _check_size(file)
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            sheets = {sheet.title: _rows(sheet) for sheet in book.worksheets}
        finally:
            book.close()
    # openpyxl raises whatever the broken part of the file leads to.
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, AttributeError, SyntaxError, EOFError) as error:
        raise InvalidInput(f"{file} cannot be read as Excel ({first_line(error)}); save it again, or as CSV") from None
    full = {title: rows for title, rows in sheets.items() if rows}
    if not full:
        raise InvalidInput(f"{file} must hold rows of numbers, got none; check the file")
    title, rows = next(iter(full.items()))
    notes = (f"Of {len(full)} sheets, the first one with rows is read: {title!r}.",) if len(full) > 1 else ()
    return _table(file, rows, dialect, notes)


def _check_size(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        size, most = sum(it.file_size for it in archive.infolist()), most_bytes(file.stat().st_size)
    if size > most:
        raise InvalidInput(
            f"{file} must unpack to at most {MOST_TIMES} times its size, got {size:,} bytes; save the sheet as CSV"
        )


def _rows(sheet: Any) -> list[list[Any]]:
    """The rows of a sheet, without empty ones around the table and without empty columns at its end."""
    rows = [list(row) for row in sheet.iter_rows(values_only=True)]
    while rows and all(it is None for it in rows[-1]):
        rows.pop()
    while rows and all(it is None for it in rows[0]):
        rows.pop(0)
    width = max((j + 1 for row in rows for j, it in enumerate(row) if it is not None), default=0)
    return [[*row[:width], *[None] * (width - len(row))] for row in rows]


def _table(file: Path, rows: list[list[Any]], dialect: Dialect, notes: tuple[str, ...]) -> Table:
    import pyarrow as pa

    first = ["" if it is None else str(it).strip() for it in rows[0]]
    named = first_row_names(first, dialect)
    body = rows[1:] if named else rows
    if not body:
        raise InvalidInput(f"{file} must hold rows of numbers, got none; check the file")
    names = with_all_named(first) if named else [str(j) for j in range(len(first))]
    check_names(file, names, "rename one, or use --no-header")
    columns = [_column([row[j] for row in body]) for j in range(len(names))]
    return Table(file, named, pa.table(columns, names=names), marked=True, notes=notes)


def _column(cells: Sequence[Any]) -> "pa.Array":
    """The cells of a column by their own type if they have one, else as text."""
    import pyarrow as pa

    kinds = {type(it) for it in cells if it is not None}
    if kinds <= {int, float} and kinds:
        return pa.array([None if it is None else float(it) for it in cells], pa.float64())
    if kinds == {bool}:
        return pa.array(cells, pa.bool_())
    if kinds == {datetime.datetime}:
        return pa.array(cells, pa.timestamp("us"))
    if kinds in ({datetime.time}, {datetime.date}):
        return pa.array(cells)
    return pa.array([None if it is None else _text(it) for it in cells], pa.string())


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat(" ") if isinstance(cell, datetime.datetime) else str(cell)

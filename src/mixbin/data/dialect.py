"""How a file writes its table: letters, separators, decimal signs, words for missing values."""

import codecs
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mixbin._validate import Floats
from mixbin.errors import InvalidInput

MISSING = frozenset({"", "?", "na", "n/a", "nan", "-nan", "null", "none", "#n/a", "#na", "<na>", "#n/a n/a"})
"""What people write for a missing value, in small letters."""
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""The bytes that some programs write first, and the letters that follow; the longer marks stand before those they begin with."""
SIGNS = {".": ".", ",": ",", "'": "'", "’": "’", "_": "_", " ": " ", "space": " ", "\N{NO-BREAK SPACE}": " "}
"""What may be typed for ``--thousands``; a space stands for all kinds of spaces."""
SPACES = str.maketrans(dict.fromkeys("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}", " "))
PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Dialect:
    """How the cells of a table are to be read; the defaults are those of most CSV files."""

    header: bool | None = None
    """Whether the first row has the names of the columns; None looks at that row."""
    decimal: str = "."
    thousands: str = ""
    encoding: str | None = None
    """The letters of the file; None takes a byte order mark, or else UTF-8."""
    missing: frozenset[str] = MISSING
    """Words for a missing value, in small letters."""
    day_first: bool | None = None
    """Whether 1/2/2020 is a day in February; None refuses a column that is not clear by itself."""

    @property
    def is_usual(self) -> bool:
        """Whether numbers are written as computers write them."""
        return self.decimal == "." and not self.thousands

    @cached_property
    def missing_numbers(self) -> list[float]:
        """Numbers that stand for a missing value."""
        found = (self.number(word) for word in self.missing)
        return sorted({it for it in found if it is not None and math.isfinite(it)})

    def is_missing(self, text: str) -> bool:
        """Whether a cell stands for a missing value: one of the words, or a number that is one of them."""
        if text.lower() in self.missing:
            return True
        return bool(self.missing_numbers) and self.number(text) in self.missing_numbers

    def without_missing(self, numbers: Floats) -> Floats:
        """Numbers, NaN where they stand for a missing value."""
        if not self.missing_numbers:
            return numbers
        return np.where(np.isin(numbers, self.missing_numbers), np.nan, numbers)

    def number(self, text: str) -> float | None:
        """The number that a text stands for, or None."""
        if not self.is_usual:
            plain = self._plain(text)
            if plain is None:
                return None
            text = plain
        try:
            return None if "_" in text else float(text)
        except ValueError:
            return None

    def _plain(self, text: str) -> str | None:
        """The text with a decimal point and without signs between thousands; None if these stand where they cannot."""
        if self.thousands == " ":
            text = text.translate(SPACES)
        whole, point, rest = text.partition(self.decimal)
        if self.thousands and self.thousands in whole:
            if re.fullmatch(rf"[+-]?\d{{1,3}}({re.escape(self.thousands)}\d{{3}})+", whole, re.ASCII) is None:
                return None
            whole = whole.replace(self.thousands, "")
        plain = f"{whole}.{rest}" if point else whole
        # With decimal commas a point is an error, unless it separates thousands.
        if self.decimal != "." and ("." in whole or "." in rest):
            return None
        return plain


def typed_dialect(
    header: bool | None,
    decimal: str | None,
    thousands: str | None,
    encoding: str | None,
    missing: Sequence[str],
    day_first: bool | None,
) -> Dialect:
    """The dialect that these options of a command ask for."""
    if decimal is not None and decimal not in (".", ","):
        raise InvalidInput(f"--decimal must be a point or a comma, got {decimal!r}; write --decimal , for 1,5")
    if thousands is not None and thousands not in SIGNS:
        raise InvalidInput(
            f"--thousands must be a point, a comma, an apostrophe or space, got {thousands!r}; write --thousands . for 1.234.567"
        )
    sign = SIGNS[thousands] if thousands else ""
    point = decimal or ("," if sign == "." else ".")
    if sign == point:
        raise InvalidInput(f"--thousands and --decimal must differ, got {thousands!r} for both; leave one of them out")
    if encoding is not None:
        try:
            # Codecs that do not turn bytes into text, such as hex, are no encodings of a file.
            "x".encode(encoding).decode(encoding)
        except (LookupError, UnicodeError, TypeError, ValueError):
            raise InvalidInput(
                f"--encoding must be one that Python knows, got {encoding!r}; write utf-8, utf-16, cp1252, latin-1 or the like"
            ) from None
    words = MISSING | {word.strip().lower() for words in missing for word in words.split(",") if word.strip()}
    return Dialect(header, point, sign, encoding, words, day_first)


class Decoded(NamedTuple):
    """The text of a file in UTF-8, and how it was written."""

    text: bytes
    encoding: str
    marked: bool
    """Whether a byte order mark stood first."""


def decoded(file: Path, raw: bytes, encoding: str | None) -> Decoded:
    """The bytes of a file as UTF-8, without a byte order mark. Bytes that are taken for UTF-8 are not looked through here."""
    mark = next((it for it in MARKS if raw.startswith(it)), b"")
    found = encoding or MARKS.get(mark, "utf-8")
    if codecs.lookup(found).name == "utf-8":
        return Decoded(raw.removeprefix(codecs.BOM_UTF8), "utf-8", mark == codecs.BOM_UTF8)
    try:
        text = raw.decode(found) if encoding else raw[len(mark) :].decode(found)
        plain = text.removeprefix("\ufeff").encode()
    except UnicodeError as error:
        if encoding is None:
            raise not_a_table(file) from None
        line = raw.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise InvalidInput(
            f"--encoding {encoding} must be that of {file}, but line {line} cannot be read so; try utf-8, utf-16 or cp1252"
        ) from None
    if "\0" in text:
        raise not_a_table(file)
    return Decoded(plain, found, bool(mark) or text.startswith("\ufeff"))


def not_a_table(file: Path) -> InvalidInput:
    """The error for a file that is neither CSV nor Parquet, as far as one can see."""
    return InvalidInput(
        f"{file} must be a CSV file in UTF-8 or a Parquet file; save it as one of these, or name its letters, as with "
        "--encoding cp1252 (Windows) or --encoding utf-16"
    )


def separator_line(text: bytes) -> tuple[str | None, bytes]:
    """What Excel's first line ``sep=;`` says stands between the cells, and the text after that line."""
    found = re.match(rb'"?sep=([^\r\n"])"?[;,\t]*(?:\r\n|\r|\n)', text, re.IGNORECASE)
    if found is None or found[1] >= b"\x80":
        return None, text
    return found[1].decode(), text[found.end() :]

"""Reading files that may be packed (plain, gzipped or alone in a zip) or hostile: whatever the file is, reading it ends.

Pipes and devices are refused, and so are files that unpack to far more than a table can.
"""

import gzip
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from mixbin.errors import InvalidInput

MOST_TIMES = 200
"""A packed file may unpack to at most this many times its size; tables of numbers reach 50."""
FREE_BYTES = 2**28
"""Bytes that a packed file may always unpack to, however small it is."""
PIECE = 2**20
"""Bytes that are unpacked at a time."""
KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))


def check_regular(file: Path) -> None:
    """Refuse what is neither a file nor a folder: reading it may never end."""
    mode = file.stat().st_mode
    for is_kind, name in KINDS:
        if is_kind(mode):
            raise InvalidInput(f"{file} must be a file, got {name}; save what it gives to a file and name that")


def check_utf8(file: Path) -> None:
    """Refuse a name that could not be written into pages and tables."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{str(file)!r} must have a name in UTF-8; rename it") from None


def counting_order(name: str) -> list[int | str]:
    """Sort names by this key to have task2 before task10."""
    return [int(part) if part.isascii() and part.isdigit() else part for part in re.split(r"([0-9]+)", name)]


def content(file: Path) -> bytes:
    """All bytes of a file, unpacked."""
    with file.open("rb") as stream:
        start = stream.read(4)
    try:
        if start.startswith(b"\x1f\x8b"):
            with gzip.open(file) as unpacked:
                return _limited(file, unpacked.read)
        if start.startswith(b"PK"):
            return _only_member(file)
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, RuntimeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{file} cannot be unpacked ({first_line(error)}); it may be damaged: pack it anew, or name the unpacked file"
        ) from None
    return file.read_bytes()


def _only_member(file: Path) -> bytes:
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
        if len(names) != 1:
            raise InvalidInput(f"{file} must hold one CSV file, got {len(names)} files; unpack it and name the one you mean")
        with archive.open(names[0]) as member:
            return _limited(file, member.read)


def _limited(file: Path, read: Callable[[int], bytes]) -> bytes:
    """All bytes of a stream, unless they are more than a table can be packed into that file."""
    most = most_bytes(file.stat().st_size)
    pieces, size = [], 0
    while piece := read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise InvalidInput(
                f"{file} must unpack to at most {MOST_TIMES} times its size, got more than {most:,} bytes; "
                "unpack it yourself and name the CSV file"
            )
    return b"".join(pieces)


def most_bytes(packed: int) -> int:
    """The number of bytes to which this many packed ones may unpack."""
    return max(FREE_BYTES, MOST_TIMES * packed)


def first_line(error: BaseException) -> str:
    """The first line of an error, for another message."""
    return str(error).strip().split("\n")[0][:120] or type(error).__name__

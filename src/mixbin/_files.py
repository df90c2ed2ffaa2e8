"""Writing files that are never seen half-written: they are written under a temporary name, synced to disk and then renamed."""

import csv
import errno
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from mixbin._validate import fail
from mixbin.errors import CannotWrite, InvalidInput

LONGEST_NAME = 220
"""A temporary name repeats at most this many bytes of the file's name, because file systems allow 255 bytes in all."""
REMEDIES = {
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "free some space, or write elsewhere",
    errno.EDQUOT: "free some space, or write elsewhere",
}


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which replaces ``path`` only when it is complete and on disk; after an error ``path`` is unchanged."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
        raise fail("path", path, "the name of a file")
    target = Path(path)
    try:
        if not target.parent.is_dir():
            raise InvalidInput(f"path must lie in an existing folder, got {str(target)!r}; create {str(target.parent)!r} first")
        if target.is_dir():
            raise InvalidInput(f"path must name a file, got the folder {str(target)!r}; add a file name")
        with _replacing(target) as file:
            yield file
    except OSError as error:
        raise cannot_write(target, error) from error


def cannot_write(path: Path, error: OSError) -> CannotWrite:
    """The error for a file that the operating system refuses to write, with a remedy."""
    if isinstance(error, CannotWrite):
        return error
    reason = error.strerror or str(error) or type(error).__name__
    remedy = REMEDIES.get(error.errno or 0, "choose a folder that can be written to")
    return CannotWrite(error.errno or 0, f"{shortened(str(path))!r} cannot be written ({reason}); {remedy}")


def part_prefix(name: str) -> str:
    """The beginning of a file's temporary names, which end in ``.part``; a long name is cut, and a hash keeps it unique."""
    raw = os.fsencode(name)
    if len(raw) > LONGEST_NAME:
        name = f"{os.fsdecode(raw[: LONGEST_NAME - 20])}~{hashlib.sha256(raw).hexdigest()[:16]}"
    return f".{name}."


def shortened(text: str) -> str:
    """A name for an error message; a long one without its middle."""
    return text if len(text) <= 120 else f"{text[:57]}...{text[-60:]}"


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    handle, temporary = tempfile.mkstemp(prefix=part_prefix(target.name), suffix=".part", dir=target.parent)
    try:
        # mkstemp creates a file that only its owner can read; give it the permissions of any other new file. The umask can only
        # be read by setting it.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    # The rename itself is on disk only after the folder is synced.
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The text of a CSV file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def json_text(value: Mapping[str, Any]) -> str:
    """The text of a JSON file, indented for people to read."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def write_text(path: Path, text: str | bytes) -> None:
    """Write a file atomically, text in UTF-8."""
    with replacing(path) as file:
        file.write(text.encode() if isinstance(text, str) else text)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file atomically."""
    write_text(path, json_text(value))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that a command wrote into its folder."""
    try:
        read: Any = json.loads(path.read_text())
    except RecursionError:
        raise foreign(path, "it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise foreign(path, str(error)) from None
    if not isinstance(read, dict):
        raise foreign(path, "it is not a JSON object")
    return read


def foreign(path: Path, why: str) -> InvalidInput:
    """The error for a file in a run's folder that is not the one that the run wrote."""
    return InvalidInput(f"{path} is not what mixbin wrote there ({why[:120]}); choose another --out")

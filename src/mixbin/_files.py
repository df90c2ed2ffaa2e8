"""Files that are never half-written: a temporary name, fsync, rename."""

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
"""Bytes of a file's name that its temporary name repeats; file systems take 255."""
REMEDIES = {
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "free some space, or write elsewhere",
    errno.EDQUOT: "free some space, or write elsewhere",
}


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of ``path`` only once it is whole and on disk."""
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
    """The error for a file that the system does not let us write."""
    if isinstance(error, CannotWrite):
        return error
    reason = error.strerror or str(error) or type(error).__name__
    remedy = REMEDIES.get(error.errno or 0, "choose a folder that can be written to")
    return CannotWrite(error.errno or 0, f"{shortened(str(path))!r} cannot be written ({reason}); {remedy}")


def part_prefix(name: str) -> str:
    """How the temporary names of a file begin, which end in ``.part``; long names are cut and told apart by a hash."""
    raw = os.fsencode(name)
    if len(raw) > LONGEST_NAME:
        name = f"{os.fsdecode(raw[: LONGEST_NAME - 20])}~{hashlib.sha256(raw).hexdigest()[:16]}"
    return f".{name}."


def shortened(text: str) -> str:
    """A long name without its middle, for a message."""
    return text if len(text) <= 120 else f"{text[:57]}...{text[-60:]}"


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    handle, temporary = tempfile.mkstemp(prefix=part_prefix(target.name), suffix=".part", dir=target.parent)
    try:
        # mkstemp makes the file private; what is saved gets the permissions any new file would have.
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
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def json_text(value: Mapping[str, Any]) -> str:
    """A JSON file for people to read."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def write_text(path: Path, text: str) -> None:
    """A text file, all at once."""
    with replacing(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """A JSON file, all at once."""
    write_text(path, json_text(value))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that a command left in its folder."""
    try:
        read: Any = json.loads(path.read_text())
    except RecursionError:
        raise foreign(path, "it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise foreign(path, str(error)) from None
    if not isinstance(read, dict):
        raise foreign(path, "it has no names")
    return read


def foreign(path: Path, why: str) -> InvalidInput:
    """The error for a file in a run's folder that is not as the run left it."""
    return InvalidInput(f"{path} is not what mixbin wrote there ({why[:120]}); choose another --out")

"""Files that are never half-written (a temporary name, fsync, rename), and archives of arrays without pickle."""

import csv
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mixbin.errors import InvalidInput


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of ``path`` only once it is whole and on disk."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInput(f"path must lie in an existing folder, got {str(target)!r}; create {str(target.parent)!r} first")
    if target.is_dir():
        raise InvalidInput(f"path must name a file, got the folder {str(target)!r}; add a file name")
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
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
        read: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} is not what mixbin wrote there ({error}); choose another --out") from None
    return read


def write_archive(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]], compress: bool = True
) -> None:
    """A NumPy archive of ``arrays`` with a JSON ``header``, written atomically."""
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    write = np.savez_compressed if compress else np.savez
    with replacing(path) as file:
        write(file, header=text, **arrays)  # type: ignore[arg-type]


def read_archive(path: str | os.PathLike[str], kind: str, version: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of an archive of that ``kind`` and format ``version``; anything else is refused with its name."""
    name = os.fspath(path)
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
        header = json.loads(arrays.pop("header").tobytes())
        found, number = header["kind"], header["format"]
    except FileNotFoundError:
        raise InvalidInput(f"path must name a saved {kind}, got {name!r}, which is not there") from None
    except (KeyError, TypeError, AttributeError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{name!r} is not a saved mixbin {kind}, or is damaged ({error})") from None
    if found != kind:
        raise InvalidInput(f"{name!r} holds a mixbin {found}, not a {kind}")
    if number != version:
        raise InvalidInput(f"{name!r} has format {number}, this version of mixbin reads {version}; use the one that wrote it")
    return header, arrays

"""Finding a data set's files (at a path, in the folder MIXBIN_DATA, or by a download into the user's cache) and parsing them.

A zip archive's checksum changes when its files are zipped again, so it is not checked. The loaders check the numbers in it.
"""

import gzip
import hashlib
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar, cast

import numpy as np

from mixbin._files import shortened
from mixbin._validate import Floats, fail
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

FOLDER = "MIXBIN_DATA"
"""The name of the environment variable that holds the path of a folder with data sets."""


@dataclass(frozen=True)
class Source:
    """One data set: the function that loads it, its title, the file names to look for in order of preference, and its address."""

    loader: str
    title: str
    names: tuple[str, ...]
    url: str

    def read(self, path: str | os.PathLike[str] | None, parse: Callable[[Path], T]) -> T:
        """Parse the data from the first place that has them; a download that ``parse`` refuses is deleted."""
        found = self.local(path)
        if found is not None:
            return parse(found)
        downloaded = self._download()
        try:
            return parse(downloaded)
        except InvalidInput:
            downloaded.unlink(missing_ok=True)
            raise

    def local(self, path: str | os.PathLike[str] | None) -> Path | None:
        """The place of the data on this machine: at ``path``, or in the folder MIXBIN_DATA; None if they are not there."""
        if path is not None:
            if not isinstance(path, (str, os.PathLike)):
                raise fail("path", path, f"{self.names[0]} or a folder that holds it", self._remedy())
            try:
                found = self._among(Path(path))
            except (OSError, ValueError):  # the name is too long or contains a zero byte
                found = None
            if found is None:
                raise InvalidInput(
                    f"path must be {self.names[0]} or a folder that holds it, got {shortened(str(path))!r}; {self._remedy()}"
                )
            return found
        folder = os.environ.get(FOLDER)
        if not folder:
            return None
        if not Path(folder).is_dir():
            raise InvalidInput(f"{FOLDER} must name a folder, got {folder!r}; create it or unset the variable")
        return self._among(Path(folder))

    def _among(self, place: Path) -> Path | None:
        """``place`` itself if it is a file, or the first of the known names in the folder ``place``."""
        if not place.is_dir():
            return place if place.exists() else None
        for name in self.names:
            if (place / name).is_file():
                # This file is one of many: the data set is the folder it lies in.
                return place if name.endswith("_train.csv") else place / name
        return None

    def _download(self) -> Path:
        import pooch

        try:
            return Path(pooch.retrieve(self.url, known_hash=None, fname=self.names[0], path=pooch.os_cache("mixbin")))
        except (OSError, ValueError) as error:
            reason = type(error).__name__
            raise InvalidInput(
                f"{self.title} is not on this machine and could not be downloaded from {self.url} ({reason}); {self._remedy()}"
            ) from None

    def _remedy(self) -> str:
        return (
            f"put {self.names[0]} in a folder and name that folder in the environment variable {FOLDER}, "
            f"or call {self.loader}(path) with the path of the file"
        )


@contextmanager
def members(place: Path, pattern: str) -> Iterator[dict[str, Callable[[], IO[bytes]]]]:
    """The files of a folder or zip archive whose names match, as {name: function that opens it}, in the order of their names."""
    with ExitStack() as stack:
        if place.is_dir():
            found = {file.name: _opener(file) for file in place.iterdir() if file.is_file()}
        else:
            try:
                archive = stack.enter_context(zipfile.ZipFile(place))
            except (OSError, zipfile.BadZipFile) as error:
                raise InvalidInput(f"{str(place)!r} cannot be read as a zip archive ({error}); fetch it again") from None
            found = {Path(name).name: _member(archive, name) for name in archive.namelist() if not name.endswith("/")}
        yield {name: found[name] for name in sorted(found) if re.fullmatch(pattern, name)}


def _opener(file: Path) -> Callable[[], IO[bytes]]:
    return lambda: file.open("rb")


def _member(archive: zipfile.ZipFile, name: str) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(name)


@contextmanager
def opened(file: Path, pattern: str) -> Iterator[IO[bytes]]:
    """A text file opened for reading: plain, gzipped, or the one file of a zip archive whose name matches."""
    with ExitStack() as stack:
        if zipfile.is_zipfile(file):
            inside = stack.enter_context(members(file, pattern))
            if len(inside) != 1:
                raise InvalidInput(f"{str(file)!r} must hold one file named like {pattern}, got {len(inside)}; fetch it again")
            yield stack.enter_context(next(iter(inside.values()))())
            return
        try:
            stream: IO[bytes] = stack.enter_context(file.open("rb"))
            packed = stream.read(2) == b"\x1f\x8b"
            stream.seek(0)
        except OSError as error:
            raise InvalidInput(f"{str(file)!r} cannot be read ({error.strerror}); check the path") from None
        # The GzipFile need not be closed: it holds nothing but the stream, which the stack closes.
        yield cast(IO[bytes], gzip.GzipFile(fileobj=stream)) if packed else stream


def parse(stream: IO[bytes], name: str, columns: int) -> "pa.Table":
    """Parse a CSV of numbers without a header; each number becomes the nearest float64."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(j) for j in range(columns)]
    reading = csv.ReadOptions(column_names=names)
    types = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64()), null_values=[])
    try:
        return csv.read_csv(stream, read_options=reading, convert_options=types)
    except (pa.ArrowInvalid, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        reason = str(error).split("\n")[0][:120]
        raise InvalidInput(f"{name!r} must hold {columns} columns of numbers ({reason}); fetch it again") from None


def matrix(table: "pa.Table", columns: range) -> Floats:
    """Some columns of a table as one array."""
    out = np.empty((len(table), len(columns)))
    for j, column in enumerate(columns):
        out[:, j] = table.column(column).to_numpy()
    return out


def column(table: "pa.Table", number: int) -> Floats:
    """One column of a table, copied, so that the table's memory can be freed."""
    return np.array(table.column(number).to_numpy())


def digest(*arrays: Floats) -> str:
    """A checksum of the numbers, which does not depend on the file format they came in."""
    h = hashlib.sha256()
    for x in arrays:
        h.update(np.ascontiguousarray(x, dtype="<f8").data)
    return h.hexdigest()

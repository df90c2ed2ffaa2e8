"""Where a data set's files come from (a path, the folder in MIXBIN_DATA, a download kept in the user's cache) and their numbers.

The archives' own checksums may change when they are zipped anew; what is checked, by the loaders, is their content.
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
"""The environment variable that names a folder of data sets."""


@dataclass(frozen=True)
class Source:
    """One data set: the function that loads it, the file names it is known by (the first is the best) and its address."""

    loader: str
    title: str
    names: tuple[str, ...]
    url: str

    def read(self, path: str | os.PathLike[str] | None, parse: Callable[[Path], T]) -> T:
        """What ``parse`` makes of the first place that has the data; a download it refuses is not kept."""
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
        """Where the data lies on this machine: at ``path``, or in the folder in MIXBIN_DATA."""
        if path is not None:
            if not isinstance(path, (str, os.PathLike)):
                raise fail("path", path, f"{self.names[0]} or a folder that holds it", self._remedy())
            try:
                found = self._among(Path(path))
            except (OSError, ValueError):  # too long a name, a zero byte
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
        """The file itself, or the first of the known names in a folder."""
        if not place.is_dir():
            return place if place.exists() else None
        for name in self.names:
            if (place / name).is_file():
                # Files that are part of a set stand for the folder they lie in.
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
    """The files of a folder or zip whose names match, in the order of their names: what opens each of them."""
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
    """One file of text: as it is, gzipped, or the one that matches in a zip."""
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
        # Closing the file is enough: the unpacker holds nothing else.
        yield cast(IO[bytes], gzip.GzipFile(fileobj=stream)) if packed else stream


def parse(stream: IO[bytes], name: str, columns: int) -> "pa.Table":
    """A CSV of numbers without header; each number is the nearest float64 to what is written."""
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
    """Some columns of a table side by side."""
    out = np.empty((len(table), len(columns)))
    for j, column in enumerate(columns):
        out[:, j] = table.column(column).to_numpy()
    return out


def column(table: "pa.Table", number: int) -> Floats:
    """One column, in memory of its own."""
    return np.array(table.column(number).to_numpy())


def digest(*arrays: Floats) -> str:
    """A checksum of the numbers, whatever file they came from."""
    h = hashlib.sha256()
    for x in arrays:
        h.update(np.ascontiguousarray(x, dtype="<f8").data)
    return h.hexdigest()

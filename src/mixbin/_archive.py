"""Archives: NumPy ``.npz`` files of arrays with a JSON header, written atomically and read without trust in their contents.

Nothing is unpickled. Name, compression, size, checksum, dtype and shape of every member are checked before it becomes an array,
and the header lists the arrays that the file must contain. Anything wrong with a file is an InvalidInput that names the file.
"""

import errno
import io
import json
import os
import stat
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mixbin._files import replacing, shortened
from mixbin._validate import fail
from mixbin.errors import InvalidInput

KINDS = "biufcU"
"""The kinds of dtype that an array may have: numbers, booleans and text, but no objects, which would need pickle."""
LARGEST_RATIO = 1_100
"""A member that claims to unpack to more than this many times its size is refused: deflate compresses to 1/1032 at best, and a
false size would make us reserve that much memory."""
PIECE = 2**20
"""A member is read in pieces of this many bytes."""
HIGHEST_CHARACTER = 0x10FFFF
"""The highest code point of Unicode. Text with a higher one would raise a SystemError later, when NumPy makes a string of it."""
BROKEN = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,  # encrypted members, unsupported compression, JSON that is nested too deeply
    SyntaxError,
    TypeError,
    ValueError,
    Warning,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""The exceptions that zipfile, zlib, NumPy and json raise when they read damaged or maliciously made files."""


def write_archive(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]], compress: bool = True
) -> None:
    """Write ``arrays`` and a JSON ``header`` to a NumPy archive, atomically."""
    listed = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    text = np.frombuffer(json.dumps(header | {"arrays": listed}).encode(), dtype=np.uint8)
    write = np.savez_compressed if compress else np.savez
    with replacing(path) as file:
        write(file, header=text, **arrays)  # type: ignore[arg-type]


def read_archive(path: str | os.PathLike[str], kind: str, versions: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read header and arrays of an archive, which must be of that ``kind`` and in one of these format ``versions``."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
        raise fail("path", path, f"the name of a saved {kind}")
    name = shortened(os.fspath(path))
    try:
        with open_regular(path) as file:
            arrays = _arrays(file)
        header = json.loads(arrays.pop("header").tobytes())
        found, number = header["kind"], header["format"]
        if found == kind and number in versions and number > 1:
            _check_listed(header["arrays"], arrays)
    except FileNotFoundError:
        raise InvalidInput(f"path must name a saved {kind}, got {name!r}, which does not exist") from None
    except IsADirectoryError:
        raise InvalidInput(f"path must name a saved {kind}, got {name!r}, which is not a file") from None
    except OSError as error:
        raise InvalidInput(f"path {name!r} cannot be read ({error.strerror or error}); check its permissions") from None
    except BROKEN as error:
        raise broken(name, kind, error) from None
    if found != kind:
        raise InvalidInput(f"{name!r} holds a mixbin {found!s:.40}, not a {kind}")
    if number not in versions:
        raise InvalidInput(
            f"{name!r} has format {number!s:.40}, this version of mixbin reads {versions[-1]}; use the version that wrote it"
        )
    return header, arrays


def broken(name: str, kind: str, error: BaseException) -> InvalidInput:
    """The error for a file that is damaged or no archive of that kind."""
    reason = str(error).strip().split("\n")[0][:120] or type(error).__name__
    return InvalidInput(f"{name!r} is not a saved mixbin {kind}, or is damaged ({reason}); save it again or delete it")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; pipes, devices and folders are refused, because reading them may never end."""
    # O_NONBLOCK, because opening a pipe that nobody writes to would wait for ever.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise IsADirectoryError(errno.EISDIR, "not a file")
    return os.fdopen(handle, "rb")


def _arrays(file: BinaryIO) -> dict[str, NDArray[Any]]:
    """All members of the archive, checked, as arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name == info.filename or name in arrays:
                raise ValueError(f"member {info.filename[:60]!r} occurs twice or is not an array")
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"member {info.filename[:60]!r} is encrypted or compressed in an unknown way")
            if info.file_size > LARGEST_RATIO * info.compress_size + 64:
                raise ValueError(f"member {info.filename[:60]!r} claims {info.file_size} bytes, more than it can contain")
            arrays[name] = _array(_content(archive, info))
    return arrays


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytearray:
    """The bytes of a member, after a check of their number and checksum."""
    content = bytearray(info.file_size)
    with archive.open(info) as member:
        done, view = 0, memoryview(content)
        while done < len(content) and (part := member.read(PIECE)):
            view[done : done + len(part)] = part
            done += len(part)
        # zipfile compares the checksum when it reads past the last byte, so read once more.
        if done < len(content) or member.read(1):
            raise ValueError(f"member {info.filename[:60]!r} does not have the {info.file_size} bytes it claims")
    return content


def _array(content: bytearray) -> NDArray[Any]:
    """The array in the bytes of a ``.npy`` file; it shares their memory."""
    stream = io.BytesIO(content[: 2**16])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, by_columns, dtype = read(stream)
    count = 1
    for side in shape:
        count *= side
    if dtype.kind not in KINDS or dtype.names is not None or min(shape, default=0) < 0:
        raise ValueError(f"an array of shape {shape} and dtype {dtype}"[:100])
    if stream.tell() + count * dtype.itemsize != len(content):
        raise ValueError(f"an array of shape {shape} and dtype {dtype} in {len(content)} bytes"[:100])
    flat = np.frombuffer(content, dtype=dtype, count=count, offset=stream.tell())
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("booleans other than 0 and 1")
    if dtype.kind == "U" and dtype.itemsize and flat.view(f"{dtype.byteorder}u4").max(initial=0) > HIGHEST_CHARACTER:
        raise ValueError("text that is not Unicode")
    return flat.reshape(shape, order="F" if by_columns else "C")


def _check_listed(listed: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check that the arrays are those listed in the header: none missing, none added, none of another dtype or shape."""
    found = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    if found != listed:
        differ = [name for name in sorted({*found, *listed}) if found.get(name) != listed.get(name)]
        raise ValueError(f"the array {differ[0][:60]!r} is missing or not as it was written")

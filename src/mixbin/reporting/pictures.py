"""Rows of numbers as small grey pictures, for pages: PNG files as data URLs."""

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np


def grey_pngs(rows: Sequence[Sequence[float]], height: int, width: int) -> list[str]:
    """One data URL per row; the smallest of all numbers is black, the largest white."""
    values = np.asarray(rows, dtype=np.float64).reshape(-1, height, width)
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    # Halves, because the difference of two finite numbers may overflow.
    spread = high / 2 - low / 2
    levels = np.rint(255 * ((values / 2 - low / 2) / spread)) if spread > 0 else np.zeros(values.shape)
    return [_url(picture.astype(np.uint8)) for picture in levels]


def _url(picture: np.ndarray) -> str:
    height, width = picture.shape
    lines = b"".join(b"\0" + line.tobytes() for line in picture)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = b"".join(_chunk(*it) for it in ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")))
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

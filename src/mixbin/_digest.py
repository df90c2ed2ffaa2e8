"""Hashes of arrays, settings and objects, by which checkpoints recognise what they belong to."""

import hashlib
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np


def digest(*arrays: Any, settings: str = "") -> str:
    """A hash of arrays and a text."""
    # SHA-256, because processors have instructions for it: theta is hashed in every evaluation.
    h = hashlib.sha256(settings.encode())
    for x in arrays:
        h.update(f"{x.shape}{x.dtype.str}".encode())
        h.update(np.ascontiguousarray(x).data)
    return h.hexdigest()[:32]


def contents_digest(value: Any) -> str:
    """A hash of the exact contents of an object: its class and all its attributes, every digit and every array entry."""
    h = hashlib.sha256()
    for part in _contents(value, ()):
        h.update(part)
        h.update(b";")
    return h.hexdigest()[:32]


def _contents(value: Any, around: tuple[int, ...]) -> Iterator[bytes]:
    if value is None or isinstance(value, (bool, int, str, bytes, Enum)):
        yield f"{type(value).__name__} {value!r}".encode(errors="surrogatepass")
    elif isinstance(value, (float, complex, np.generic)):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield digest(value).encode()
    elif id(value) in around:
        yield b"itself"
    elif isinstance(value, Mapping):
        yield f"{type(value).__name__} {len(value)}".encode()
        for name in sorted(value, key=repr):
            yield from _contents(name, around)
            yield from _contents(value[name], (*around, id(value)))
    elif isinstance(value, (tuple, list, np.ndarray)):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _contents(item, (*around, id(value)))
    elif isinstance(value, (set, frozenset)):
        yield from sorted(b" ".join(_contents(item, around)) for item in value)
    elif callable(value) and hasattr(value, "__qualname__"):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    else:
        kind = type(value)
        yield f"{kind.__module__}.{kind.__qualname__}".encode()
        yield from _contents(getattr(value, "__dict__", {}), (*around, id(value)))

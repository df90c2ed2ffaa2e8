"""Checkpoints: a run's state on disk, so that a run killed at any moment goes on to the result of an uninterrupted one.

One file (a NumPy archive with a JSON header, no pickle), replaced atomically, with a lock beside it while a run uses it.
"""

import glob
import os
import time
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isclose
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin._files import read_archive, write_archive
from mixbin.errors import CheckpointMismatch, InvalidInput
from mixbin.result import Trace

FORMAT = 1
MOST_TIME = 0.04
"""Writing takes at most this share of a run's time, however short the interval (unless it is 0)."""

Identity = Mapping[str, str | float]
Types = Mapping[str, type[Any]]


class Checkpoint:
    """The file of one run: locked while open, read once, written from time to time.

    ``identity`` says which problem, settings and version the run belongs to; a file that says otherwise is refused.
    """

    def __init__(self, path: str | os.PathLike[str], every: float, identity: Identity, types: Types) -> None:
        self.path, self.every, self.identity, self.types = Path(path), every, identity, types
        self._lock: int | None = None
        self._last = time.perf_counter()
        self._cost = 0.0

    def __enter__(self) -> "Checkpoint":
        self._lock = _locked(self.path)
        # What a killed run was writing when it died is of no use to anyone.
        for unfinished in self.path.parent.glob(f".{glob.escape(self.path.name)}.*.part"):
            unfinished.unlink(missing_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._lock is not None:
            _lock_name(self.path).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def load(self) -> Any | None:
        """The state in the file, or None when there is no file yet."""
        if not self.path.exists():
            return None
        header, arrays = read_archive(self.path, "checkpoint", FORMAT)
        different = [
            f"{name} ({_short(header['identity'].get(name))} there, {_short(self.identity.get(name))} here)"
            for name in sorted({*header["identity"], *self.identity})
            if not _same(header["identity"].get(name), self.identity.get(name))
        ]
        if different:
            raise CheckpointMismatch(
                f"checkpoint {str(self.path)!r} belongs to another run: it differs in {', '.join(different)}; "
                "give this run another file, or delete that one to start afresh"
            )
        return unpack(header["state"], arrays, self.types)

    def due(self) -> bool:
        """Whether it is time to write again."""
        waited = time.perf_counter() - self._last
        return self.every == 0 or waited >= max(self.every, self._cost / MOST_TIME)

    def save(self, state: Any) -> None:
        """Replace the file by one that holds ``state``."""
        began = time.perf_counter()
        arrays: dict[str, NDArray[Any]] = {}
        tree = pack(state, arrays, {})
        header = {"kind": "checkpoint", "format": FORMAT, "identity": dict(self.identity), "state": tree}
        write_archive(self.path, header, arrays, compress=False)
        self._last = time.perf_counter()
        self._cost = self._last - began


def pack(value: Any, arrays: dict[str, NDArray[Any]], seen: dict[int, str]) -> Any:
    """``value`` as JSON, its arrays moved to ``arrays`` (each once, however often it is referred to)."""
    if isinstance(value, Enum):
        return {"is": type(value).__name__, "value": value.value}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        name = seen.setdefault(id(value), f"a{len(seen)}")
        arrays[name] = value
        return {"is": "array", "value": name}
    if isinstance(value, Trace):
        return {"is": "Trace", "value": {name: pack(column, arrays, seen) for name, column in value.columns().items()}}
    if isinstance(value, Mapping):
        return {"is": "map", "value": {name: pack(item, arrays, seen) for name, item in value.items()}}
    if hasattr(value, "_asdict"):
        parts = value._asdict()
    elif is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        raise InvalidInput(
            f"a checkpoint cannot hold {type(value).__name__}; a solver's state and a problem's warm may hold arrays and numbers"
        )
    return {"is": type(value).__name__, "value": {name: pack(item, arrays, seen) for name, item in parts.items()}}


def unpack(tree: Any, arrays: Mapping[str, NDArray[Any]], types: Types) -> Any:
    """What ``pack`` made of a value, as a value again."""
    if not isinstance(tree, dict):
        return tree
    kind, inside = tree["is"], tree["value"]
    if kind == "array":
        return arrays[inside]
    if not isinstance(inside, dict):
        return types[kind](inside)
    parts = {name: unpack(item, arrays, types) for name, item in inside.items()}
    if kind == "map":
        return parts
    if kind == "Trace":
        return Trace(parts)
    if kind not in types:
        raise CheckpointMismatch(f"the checkpoint holds a {kind}, which this solver does not know; delete it to start afresh")
    return types[kind](**parts)


def _same(there: str | float | None, here: str | float | None) -> bool:
    """Texts to the letter, numbers (values of G) up to the rounding of another machine."""
    if isinstance(there, float) and isinstance(here, float):
        return isclose(there, here, rel_tol=1e-9) or (there != there and here != here)
    return there == here


def _short(value: str | float | None) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _lock_name(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _locked(path: Path) -> int:
    """An open lock beside ``path``; the system drops it with the process, however that ends."""
    import fcntl

    name = _lock_name(path)
    if not path.parent.is_dir():
        raise InvalidInput(f"checkpoint must lie in an existing folder, got {str(path)!r}; create {str(path.parent)!r} first")
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise InvalidInput(
                f"checkpoint {str(path)!r} is in use by another run; wait for it to end, or give this run another file"
            ) from None
        # A run that has just ended removes its lock: what was locked must still be the file of that name.
        try:
            if os.stat(name).st_ino == os.fstat(handle).st_ino:
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)

"""Checkpoints keep the state of a run on disk. A run that is killed at any moment can go on, and ends with the same result.

A checkpoint is one file: a NumPy archive with a JSON header, without pickle. Each write replaces it atomically. While a run uses
the file, a lock file lies beside it.
"""

import errno
import glob
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mixbin._archive import BROKEN, broken, read_archive, write_archive
from mixbin._conforms import conforms, unaliased
from mixbin._files import cannot_write, part_prefix
from mixbin.errors import CheckpointMismatch, InvalidInput
from mixbin.result import Trace

FORMAT = 2
SAME = 1e-12
"""Two numbers count as equal if they differ by at most this share of their size. Another number of threads changes the rounding
by less than this, while a problem whose cost differs in its ninth digit is another problem."""
MOST_TIME = 0.04
"""Writing takes at most this share of the time of a run, however short ``every`` is, unless ``every`` is 0."""


@dataclass(frozen=True)
class Trait:
    """One of the facts by which a run recognises its own checkpoint."""

    shown: str
    """The fact as text, for error messages."""
    digest: str = ""
    """A hash of the exact contents, if ``shown`` shortens them."""
    numbers: tuple[float, ...] = ()
    """Computed numbers, which are compared up to SAME times ``size``."""
    size: float = 0.0

    def same(self, there: "Trait") -> bool:
        """Whether ``there``, read from a file, is the same fact."""
        if (self.digest or self.shown) != (there.digest or there.shown) or len(self.numbers) != len(there.numbers):
            return False
        here, others = np.array(self.numbers), np.array(there.numbers)
        with np.errstate(invalid="ignore"):
            close = np.abs(here - others) <= SAME * self.size
        return bool(np.all(close | (here == others) | (np.isnan(here) & np.isnan(others))))


Identity = Mapping[str, Trait]
Types = Mapping[str, type[Any]]


class Checkpoint:
    """The checkpoint file of one run: locked while the run uses it, read once, written from time to time.

    ``identity`` describes the problem, the settings and the version of the run. A file with another identity is refused.
    ``types`` are the classes that a state may consist of, by their names.
    """

    def __init__(self, path: str | os.PathLike[str], every: float, identity: Identity, types: Types) -> None:
        self.path, self.every, self.identity, self.types = Path(path), every, identity, types
        self._identity = {name: asdict(trait) for name, trait in identity.items()}
        self._lock: int | None = None
        self._last = time.perf_counter()
        self._cost = 0.0

    def __enter__(self) -> "Checkpoint":
        self._lock = _locked(self.path)
        try:
            # A run that was killed while writing leaves an unfinished file, which nobody can use.
            for unfinished in self.path.parent.glob(f"{glob.escape(part_prefix(self.path.name))}*.part"):
                unfinished.unlink(missing_ok=True)
            self._try_to_write()
        except BaseException:
            self._unlock()
            raise
        return self

    def _try_to_write(self) -> None:
        """Fail now if no file can be written to the folder, not after the first hours of a run."""
        trial = self.path.with_name(f"{part_prefix(self.path.name)}trial.part")
        try:
            with trial.open("wb") as file:
                file.write(bytes(4096))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(self.path, error) from None
        finally:
            _unlink_quietly(trial)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            _unlink_quietly(_lock_name(self.path))
            os.close(self._lock)
            self._lock = None

    def load(self, kind: type[Any]) -> Any | None:
        """Read the state from the file, which must be a ``kind``; None if there is no file yet."""
        if not os.path.lexists(self.path):
            return None
        header, arrays = read_archive(self.path, "checkpoint", (FORMAT,))
        try:
            self._compare({name: _trait(it) for name, it in header["identity"].items()})
            state = unpack(header["state"], arrays, self.types)
            if not isinstance(state, kind):
                raise ValueError(f"the state is a {type(state).__name__}")
        except InvalidInput:
            raise
        except BROKEN as error:
            raise broken(str(self.path), "checkpoint", error) from None
        return state

    def _compare(self, there: Identity) -> None:
        different = [
            f"{name} ({_difference(there.get(name), self.identity.get(name))})"
            for name in sorted({*there, *self.identity})
            if name not in there or name not in self.identity or not self.identity[name].same(there[name])
        ]
        if different:
            raise CheckpointMismatch(
                f"checkpoint {str(self.path)!r} belongs to another run: it differs in {', '.join(different)}; "
                "give this run another file, or delete that one to start afresh"
            )

    def due(self) -> bool:
        """Whether it is time to write again."""
        waited = time.perf_counter() - self._last
        return self.every == 0 or waited >= max(self.every, self._cost / MOST_TIME)

    def save(self, state: Any) -> None:
        """Write ``state`` to the file and replace the one before."""
        began = time.perf_counter()
        arrays: dict[str, NDArray[Any]] = {}
        tree = pack(state, arrays, {})
        header = {"kind": "checkpoint", "format": FORMAT, "identity": self._identity, "state": tree}
        write_archive(self.path, header, arrays, compress=False)
        self._last = time.perf_counter()
        self._cost = self._last - began


def pack(value: Any, arrays: dict[str, NDArray[Any]], seen: dict[int, str]) -> Any:
    """Turn ``value`` into JSON. Its arrays go to ``arrays``, each once even if several parts refer to it; ``seen`` names them."""
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
    """The inverse of ``pack``. Every part must have the type that its class declares, since the file may be damaged or forged."""
    if not isinstance(tree, dict):
        return tree
    kind, inside = tree["is"], tree["value"]
    if kind == "array":
        return arrays[inside]
    if kind not in ("map", "Trace") and kind not in types:
        raise ValueError(f"it holds a {kind!s:.60}, which this solver does not know")
    if not isinstance(inside, dict):
        return types[kind](inside)
    parts = {name: unpack(item, arrays, types) for name, item in inside.items()}
    if kind == "map":
        return parts
    if kind == "Trace":
        return Trace.checked(parts)
    for name, hint in _hints(types[kind]).items():
        if get_origin(unaliased(hint)) is np.ndarray and isinstance(parts.get(name), float):
            # NumPy turns an array without dimensions into a number when it computes with it, so ``pack`` may have seen a float.
            parts[name] = np.asarray(parts[name])
        if name in parts and not conforms(parts[name], hint):
            raise ValueError(f"{name} of its {kind} is not what it must be")
    return types[kind](**parts)


def _hints(kind: type[Any]) -> dict[str, Any]:
    """The annotations of a class; empty if they name types that are imported for type checkers only."""
    try:
        return get_type_hints(kind)
    except NameError:
        return {}


def _trait(read: Mapping[str, Any]) -> Trait:
    made = Trait(read["shown"], read["digest"], tuple(read["numbers"]), read["size"])
    if not all(conforms(getattr(made, name), hint) for name, hint in get_type_hints(Trait).items()):
        raise ValueError("its identity is not what it must be")
    return made


def _difference(there: Trait | None, here: Trait | None) -> str:
    shown = [_short("nothing" if it is None else it.shown) for it in (there, here)]
    if shown[0] != shown[1]:
        return f"{shown[0]} there, {shown[1]} here"
    return "other numbers there" if here is not None and here.numbers else "other contents there"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _lock_name(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _unlink_quietly(path: Path) -> None:
    """Remove a file that this module wrote. If the system refuses, the file stays and nobody is told."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _locked(path: Path) -> int:
    """Open and lock a file beside ``path``. The system releases the lock when the process ends, even if it is killed."""
    import fcntl

    name = _lock_name(path)
    while True:
        try:
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o644)
        except OSError as error:
            if error.errno == errno.EISDIR:
                raise _foreign_lock(name) from None
            raise cannot_write(name, error) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise _foreign_lock(name)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise InvalidInput(
                f"checkpoint {str(path)!r} is in use by another run; wait for it to end, or give this run another file"
            ) from None
        # A run that ended between open and flock has removed its lock file. Then this lock holds a file that has no name any
        # more, and another run could lock a new one: so begin again.
        try:
            if os.stat(name).st_ino == os.fstat(handle).st_ino:
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)


def _foreign_lock(name: Path) -> InvalidInput:
    return InvalidInput(
        f"checkpoint needs the name {str(name)!r} for its lock, which is not a file; rename that, or choose another checkpoint"
    )

"""The folder of one run: what a finished run leaves there, and what an interrupted one needs to go on.

Every file is either complete or missing. ``methods.json`` is written just before the page: if it exists, the run has finished and
the folder ``checkpoint`` is gone.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixbin._files import foreign, read_json, write_json, write_text
from mixbin.errors import CannotWrite, CheckpointMismatch, InvalidInput
from mixbin.problem import Problem
from mixbin.reporting.record import FILE, Record
from mixbin.result import Result
from mixbin.studies.options import Method
from mixbin.studies.pages import REPORT, write_page


@dataclass(frozen=True)
class RunFolder:
    """The folder that the option ``--out`` names."""

    path: Path
    files: tuple[str, ...]
    """What a finished run of this kind leaves."""

    @property
    def checkpoint(self) -> Path:
        """Where an unfinished run is kept."""
        return self.path / "checkpoint"

    @property
    def settled(self) -> Path:
        """What was found out before the methods ran."""
        return self.checkpoint / "settled.json"

    def enter(self, identity: Mapping[str, Any], resume: bool) -> Record | None:
        """Begin a run here or go on with one. Returns the record if the run has already finished.

        A run whose identity differs is refused.
        """
        check_folder(self.path)
        finished, begun = self.path / FILE, self.checkpoint / "identity.json"
        existing = [name for name in self.files if (self.path / name).exists()] + self._kept()
        if existing and not finished.exists() and not begun.exists():
            raise InvalidInput(f"--out {str(self.path)!r} has a {existing[0]} that is from no run; choose another folder")
        if existing and not resume:
            raise InvalidInput(
                f"--out {str(self.path)!r} already holds a run; add --resume to go on with it, or choose another folder"
            )
        if begun.exists():
            self._compare(read_json(begun), identity)
        if finished.exists():
            record = Record.read(self.path)
            self._compare(record.identity, identity)
            self.clear()
            if not (self.path / REPORT).exists():
                write_page(self.path)
            return record
        with writing_to(self.path):
            self.checkpoint.mkdir(parents=True, exist_ok=True)
            write_json(begun, identity)
        return None

    def _kept(self) -> list[str]:
        """The files of the checkpoint, without those that were being written when a run was killed."""
        if not self.checkpoint.is_dir():
            return [self.checkpoint.name] if self.checkpoint.exists() else []
        return [f"{self.checkpoint.name}/{file.name}" for file in self.checkpoint.iterdir() if not file.name.endswith(".part")]

    def clear(self) -> None:
        """Remove the checkpoint. Files in it that are not from a run stay."""
        if not self.checkpoint.is_dir():
            return
        for name in (f"{method}{kind}" for method in Method for kind in ("", ".npz", ".json")):
            (self.checkpoint / name).unlink(missing_ok=True)
        for pattern in (".*.part", "*.lock", "identity.json", self.settled.name):
            for file in self.checkpoint.glob(pattern):
                file.unlink(missing_ok=True)
        if not any(self.checkpoint.iterdir()):
            self.checkpoint.rmdir()

    def _compare(self, kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """Refuse a run that was begun with another identity, or that does not say all of it."""
        wanted = json.loads(json.dumps(wanted))
        lost = [name for name in wanted if name not in kept]
        different = [name for name in {**wanted, **kept} if name in kept and kept[name] != wanted.get(name)]
        # Runs that do not name their kind are of an earlier version, which also hashed its data in another way.
        if different and "kind" not in lost:
            raise CheckpointMismatch(
                f"--out {str(self.path)!r} holds a run that differs in {', '.join(different)}; "
                "repeat the command it was begun with, or choose another folder"
            )
        if lost:
            raise CheckpointMismatch(
                f"--out {str(self.path)!r} holds a run of an earlier version, which does not say its {', '.join(lost)}; "
                "choose another folder"
            )

    def done(self, method: str, problem: Problem) -> tuple[Result, float] | None:
        """The result of a method that finished before an interruption, and its seconds."""
        file, clock = self.checkpoint / f"{method}.npz", self.checkpoint / f"{method}.json"
        if not (file.exists() and clock.exists()):
            return None
        result, seconds = Result.load(file), read_json(clock).get("seconds")
        if not isinstance(seconds, int | float):
            raise foreign(clock, "it has no seconds")
        if (result.theta.shape, np.shape(result.lam)) != (problem.theta_set.shape, problem.lam_set.shape):
            raise foreign(file, "it is the result of another problem")
        return result, float(seconds)

    def keep(self, method: str, result: Result, seconds: float) -> None:
        """Keep the result of a method while others still run."""
        result.save(self.checkpoint / f"{method}.npz")
        write_json(self.checkpoint / f"{method}.json", {"seconds": seconds})

    def finish(self, record: Record, result: Result | None, texts: Mapping[str, str | bytes]) -> None:
        """Write everything that a finished run leaves, the record and the page last."""
        for name, text in texts.items():
            write_text(self.path / name, text)
        if result is not None:
            write_text(self.path / "trace.csv", result.trace.to_csv())
            result.save(self.path / "result.npz")
        record.write(self.path)
        # Made from the files in the folder, so that ``mixbin report`` later writes the same page.
        write_page(self.path)
        self.clear()


@contextmanager
def writing_to(out: Path) -> Iterator[None]:
    """Turn the system's refusal to write into an error that names ``--out``."""
    try:
        yield
    except CannotWrite:
        raise
    except OSError as error:
        raise InvalidInput(f"--out {str(out)!r} cannot be written to ({error.strerror}); choose another folder") from None


def check_folder(out: Path) -> None:
    """Refuse an ``--out`` that is a file."""
    with writing_to(out):
        if out.exists() and not out.is_dir():
            raise InvalidInput(f"--out must be a folder, got the file {str(out)!r}; choose another name")

"""The folder of one run: what a finished run leaves there, and what an interrupted one needs to go on.

Every file is whole or not there. ``methods.json`` is written last, but for the page, which is made of the other files: where it
is, the run has ended and ``checkpoint`` is gone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixbin._files import read_json, write_json, write_text
from mixbin.errors import CheckpointMismatch, InvalidInput
from mixbin.reporting import write_report
from mixbin.result import Result

METHODS = ("penalize", "top-k", "simple", "relax")
REPORT = "report.html"


@dataclass(frozen=True)
class RunFolder:
    """DIR of the option ``--out``."""

    path: Path
    files: tuple[str, ...]
    """What a finished run of the command leaves."""

    @property
    def checkpoint(self) -> Path:
        """Where an unfinished run is kept."""
        return self.path / "checkpoint"

    def enter(self, identity: Mapping[str, Any], resume: bool) -> dict[str, Any] | None:
        """Begin a run here, or go on with one: the summary if that has already ended.

        ``identity`` is all that the numbers depend on; a run that differs in it is not gone on with.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInput(f"--out must be a folder, got the file {str(self.path)!r}; choose another name")
        finished, begun = self.path / "methods.json", self.checkpoint / "identity.json"
        there = [name for name in self.files if (self.path / name).exists()] + self._kept()
        if there and not resume:
            raise InvalidInput(
                f"--out {str(self.path)!r} already holds a run; add --resume to go on with it, or choose another folder"
            )
        if there and not finished.exists() and not begun.exists():
            raise InvalidInput(f"--out {str(self.path)!r} has a {there[0]} that is from no run; choose another folder")
        if begun.exists():
            self._compare(read_json(begun), identity)
        if finished.exists():
            summary = read_json(finished)
            self._compare(summary.get("identity", {}), identity)
            self.clear()
            if not (self.path / REPORT).exists():
                write_report(self.path)
            return summary
        try:
            self.checkpoint.mkdir(parents=True, exist_ok=True)
            write_json(begun, identity)
        except OSError as error:
            raise InvalidInput(
                f"--out {str(self.path)!r} cannot be written to ({error.strerror}); choose another folder"
            ) from None
        return None

    def _kept(self) -> list[str]:
        """What is in the checkpoint, but for what was being written when a run was killed."""
        if not self.checkpoint.is_dir():
            return [self.checkpoint.name] if self.checkpoint.exists() else []
        return [f"{self.checkpoint.name}/{file.name}" for file in self.checkpoint.iterdir() if not file.name.endswith(".part")]

    def clear(self) -> None:
        """Remove the checkpoint; files of others in it stay."""
        if not self.checkpoint.is_dir():
            return
        for name in (f"{method}{kind}" for method in METHODS for kind in ("", ".npz", ".json")):
            (self.checkpoint / name).unlink(missing_ok=True)
        for pattern in (".*.part", "*.lock", "identity.json"):
            for file in self.checkpoint.glob(pattern):
                file.unlink(missing_ok=True)
        if not any(self.checkpoint.iterdir()):
            self.checkpoint.rmdir()

    def _compare(self, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
        different = [name for name in here if there.get(name) != json.loads(json.dumps(here[name]))]
        if different:
            raise CheckpointMismatch(
                f"--out {str(self.path)!r} holds a run that differs in {', '.join(different)}; "
                "repeat the command it was begun with, or choose another folder"
            )

    def done(self, method: str) -> tuple[Result, float] | None:
        """The result of a method that had ended before, and its seconds."""
        file, clock = self.checkpoint / f"{method}.npz", self.checkpoint / f"{method}.json"
        return (Result.load(file), read_json(clock)["seconds"]) if file.exists() and clock.exists() else None

    def keep(self, method: str, result: Result, seconds: float) -> None:
        """Keep the result of a method while others still run."""
        result.save(self.checkpoint / f"{method}.npz")
        write_json(self.checkpoint / f"{method}.json", {"seconds": seconds})

    def finish(self, summary: Mapping[str, Any], result: Result, files: Mapping[str, str]) -> None:
        """Write all that a finished run leaves: the files of the command as texts, and those of every command."""
        for name, text in files.items():
            write_text(self.path / name, text)
        write_text(self.path / "trace.csv", result.trace.to_frame().to_csv(index=False))
        result.save(self.path / "result.npz")
        write_json(self.path / "methods.json", summary)
        # From what is in the folder now, so that a page which is written later is the same.
        write_report(self.path)
        self.clear()

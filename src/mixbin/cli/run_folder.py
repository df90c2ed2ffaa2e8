"""The folder of one run: what a finished run leaves there, and what an interrupted one needs to go on.

Every file is whole or not there. ``methods.json`` is written last, but for the page, which is made of the other files: where it
is, the run has ended and ``checkpoint`` is gone.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbin._files import foreign, read_json, write_json, write_text
from mixbin.cli.pages import LEFT_OTHERWISE, write_page
from mixbin.cli.report import plain_console
from mixbin.errors import CannotWrite, CheckpointMismatch, InvalidInput
from mixbin.problem import Problem
from mixbin.result import Result

if TYPE_CHECKING:
    from rich.console import Console

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
        check_folder(self.path)
        finished, begun = self.path / "methods.json", self.checkpoint / "identity.json"
        there = [name for name in self.files if (self.path / name).exists()] + self._kept()
        if there and not finished.exists() and not begun.exists():
            raise InvalidInput(f"--out {str(self.path)!r} has a {there[0]} that is from no run; choose another folder")
        if there and not resume:
            raise InvalidInput(
                f"--out {str(self.path)!r} already holds a run; add --resume to go on with it, or choose another folder"
            )
        if begun.exists():
            self._compare(read_json(begun), identity)
        if finished.exists():
            summary = read_json(finished)
            told = summary.get("identity", {})
            if not isinstance(told, dict):
                raise foreign(finished, "its identity has no names")
            self._compare(told, identity)
            self.clear()
            if not (self.path / REPORT).exists():
                write_page(self.path)
            return summary
        with writing_to(self.path):
            self.checkpoint.mkdir(parents=True, exist_ok=True)
            write_json(begun, identity)
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
        """What ``there`` says must be as ``here``, and it must say all of it."""
        here = json.loads(json.dumps(here))
        different = [name for name in {**here, **there} if name in there and there[name] != here.get(name)]
        if different:
            raise CheckpointMismatch(
                f"--out {str(self.path)!r} holds a run that differs in {', '.join(different)}; "
                "repeat the command it was begun with, or choose another folder"
            )
        if lost := [name for name in here if name not in there]:
            raise CheckpointMismatch(
                f"--out {str(self.path)!r} holds a run of an earlier version, which does not say its {', '.join(lost)}; "
                "choose another folder"
            )

    def done(self, method: str, problem: Problem) -> tuple[Result, float] | None:
        """The result of a method that had ended before, and its seconds."""
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

    def finish(self, summary: Mapping[str, Any], result: Result, files: Mapping[str, str]) -> None:
        """Write all that a finished run leaves: the files of the command as texts, and those of every command."""
        for name, text in files.items():
            write_text(self.path / name, text)
        write_text(self.path / "trace.csv", result.trace.to_frame().to_csv(index=False))
        result.save(self.path / "result.npz")
        write_json(self.path / "methods.json", summary)
        # From what is in the folder now, so that a page which is written later is the same.
        write_page(self.path)
        self.clear()

    def tell(
        self, summary: Mapping[str, Any], before: bool, as_json: bool, show: "Callable[[Mapping[str, Any], Console], None]"
    ) -> None:
        """Print what a run gave, as one line of JSON or by ``show``: all of it or, where methods.json is damaged, nothing."""
        console = plain_console()
        try:
            with console.capture() as shown:
                if not as_json:
                    show(summary, console)
            text = json.dumps(summary, allow_nan=False) + "\n" if as_json else shown.get()
        except LEFT_OTHERWISE as error:
            if not before:
                raise
            raise foreign(self.path / "methods.json", repr(error)) from None
        print(text, end="")


@contextmanager
def writing_to(out: Path) -> Iterator[None]:
    """Say that the system does not let us write into the folder of ``--out``."""
    try:
        yield
    except CannotWrite:
        raise
    except OSError as error:
        raise InvalidInput(f"--out {str(out)!r} cannot be written to ({error.strerror}); choose another folder") from None


def check_folder(out: Path) -> None:
    """The folder of ``--out`` must be one, or not be there yet."""
    with writing_to(out):
        if out.exists() and not out.is_dir():
            raise InvalidInput(f"--out must be a folder, got the file {str(out)!r}; choose another name")

"""The record of a run, which ``methods.json`` holds. The terminal, the page and ``--json`` all show this record."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixbin._files import foreign, read_json, write_json
from mixbin._html import html_comparison
from mixbin._numbers import readable
from mixbin.result import Status

FILE = "methods.json"
STATUSES = {
    Status.BINARY: "yes or no",
    Status.REPAIRED: "rounded",
    Status.RELAXED: "fractions",
    Status.INFEASIBLE: "breaks the budget",
    Status.STOPPED: "ended early",
}


def status_words(status: str | None) -> str:
    """What the answer of a line is, as a user says it."""
    return "for comparison" if status is None else STATUSES[Status(status)]


@dataclass(frozen=True)
class Line:
    """One line of the comparison: a method, or a reference to compare the methods with. A reference has no status."""

    method: str
    numbers: Mapping[str, Any]
    """The numbers that this kind of study measures, such as ``validation_loss``; None for one that cannot be measured."""
    status: str | None = None
    evaluations: int = 1
    seconds: float = 0.0
    message: str = "nothing to choose"

    def to_json(self) -> dict[str, Any]:
        """The line as one flat mapping."""
        rest = {"status": self.status, "evaluations": self.evaluations, "seconds": self.seconds, "message": self.message}
        return {"method": self.method, **self.numbers, **rest}

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> "Line":
        """The inverse of ``to_json``."""
        named = {name: entries[name] for name in ("method", "status", "evaluations", "seconds", "message")}
        return cls(numbers={name: value for name, value in entries.items() if name not in named}, **named)


@dataclass(frozen=True)
class Record:
    """The record of a finished run."""

    kind: str
    """The name under which the kind of study is registered."""
    facts: Mapping[str, Any]
    """Facts about the data and the question of the study."""
    lines: tuple[Line, ...]
    """The comparison. The last line is the method that the run is about."""
    certificate: str | None
    files: Mapping[str, str]
    """The name of each file and its path, which begins with the folder that the user gave."""
    identity: Mapping[str, Any]
    """Everything that the numbers depend on, to recognise the same run."""
    asked: str
    """The task in a sentence."""
    about: Mapping[str, Any]
    """Where the run came from: command, versions, machine, time."""
    verdict: str = ""
    """What the answer is worth, in a sentence or two; empty for studies that compare with nothing, and in earlier records."""
    red: tuple[str, ...] = ()
    """Where the answer is worse than something simpler, a sentence each."""

    @property
    def main(self) -> Line:
        """The line of the method that the run is about."""
        return self.lines[-1]

    def line(self, method: str) -> Line | None:
        """The line of a method, or None if the run has none."""
        return next((line for line in self.lines if line.method == method), None)

    @property
    def n_methods(self) -> int:
        """The number of lines that are methods, not references."""
        return sum(line.status is not None for line in self.lines)

    def _repr_html_(self) -> str:
        """The comparison, for notebooks; the line of the method that the run is about is bold."""
        known = [name for name in self.main.numbers if any(line.numbers.get(name) is not None for line in self.lines)]
        heads = ["method", *(name.replace("_", " ") for name in known), "answer", "seconds"]
        lines = [
            [line.method, *(_shown(line.numbers.get(it)) for it in known), status_words(line.status), readable(line.seconds, 3)]
            for line in self.lines
        ]
        return html_comparison(self.asked, heads, lines, len(lines) - 1)

    def to_json(self) -> dict[str, Any]:
        """The whole record as a mapping for JSON; the facts stand on the first level."""
        return {
            "kind": self.kind,
            **self.facts,
            "method": self.main.method,
            "methods": [line.to_json() for line in self.lines],
            "certificate": self.certificate,
            "files": dict(self.files),
            "identity": dict(self.identity),
            "asked": self.asked,
            "about": dict(self.about),
            "verdict": self.verdict,
            "red": list(self.red),
        }

    @classmethod
    def from_json(cls, entries: Mapping[str, Any]) -> "Record":
        """The inverse of ``to_json``. It also reads files of earlier versions, whose records did not name their kind."""
        known = {name: entries.get(name, {}) for name in ("files", "identity", "about")}
        named = ("kind", "method", "methods", "certificate", "asked", "verdict", "red", *known)
        lines = tuple(Line.from_json(line) for line in entries["methods"])
        if not lines or not all(isinstance(value, Mapping) for value in known.values()):
            raise ValueError("it has no methods, or something without names where names belong")
        return cls(
            kind=str(entries["kind"]) if "kind" in entries else _old_kind(entries),
            facts={name: value for name, value in entries.items() if name not in named},
            lines=lines,
            certificate=entries["certificate"],
            asked=str(entries.get("asked", "")),
            verdict=str(entries.get("verdict", "")),
            red=tuple(map(str, entries.get("red", ()))),
            **known,
        )

    @classmethod
    def read(cls, folder: Path) -> "Record":
        """Read the record of the run in a folder. Somebody may have changed the file, so errors name it."""
        file = folder / FILE
        entries = read_json(file)
        try:
            return cls.from_json(entries)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise foreign(file, f"{type(error).__name__}: {error}") from None

    def write(self, folder: Path) -> None:
        """Write ``methods.json``."""
        write_json(folder / FILE, self.to_json())


def _old_kind(entries: Mapping[str, Any]) -> str:
    """The kind of a run of an earlier version, whose record does not name it."""
    identity = entries.get("identity", {})
    if isinstance(identity, Mapping) and identity.get("command") == "groups":
        return "groups"
    if entries.get("task") == "classification":
        return "classification"
    return "parquet" if "storage" in entries else "regression"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return readable(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)

"""The options of a study: one dataclass from which the command line, the identity of a run and the study itself are made.

This module loads nothing but the standard library, so that ``mixbin distill --help`` stays quick.
"""

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    from mixbin.studies.study import Study


@dataclass(frozen=True)
class Option:
    """What the command line says about a field of ``Options``."""

    help: str
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    """How the option is written, where that does not follow from the name of the field."""
    least: int | None = None
    argument: bool = False
    """Whether the value stands alone instead of after ``--name``."""
    in_identity: bool = True
    """Whether another value makes another run."""


@dataclass(frozen=True)
class Covered(Option):
    """An option that the identity need not name: the study's ``contents`` show what it does, or no number depends on it."""

    in_identity: bool = False


class Method(StrEnum):
    """The choices of ``--method``."""

    PENALIZE = "penalize"
    TOP_K = "top-k"
    SIMPLE = "simple"
    RELAX = "relax"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that every study has; a kind of study adds its own. None is an option that was not given."""

    command: ClassVar[str]
    help: ClassVar[str]
    example: ClassVar[str]

    out: Annotated[Path, Covered("The folder for everything that the run leaves.", "DIR")]
    method: Annotated[Method, Option("penalize, top-k, simple or relax; all compares them.", "NAME")] = Method.PENALIZE
    seed: Annotated[
        int, Option("Splits the data and starts the methods; the same seed gives the same numbers.", "N", least=0)
    ] = 0
    max_evaluations: Annotated[int | None, Option("How many models a method may train, at most.", "N")] = None
    resume: Annotated[bool, Covered("Go on with the run in the folder --out.", flags=("--resume",))] = False
    as_json: Annotated[bool, Covered("Print one line of JSON instead of the table.", flags=("--json",))] = False

    def study(self) -> "Study[Any]":
        """The study that these options ask for."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """The values that the numbers of a run depend on, by name."""
        said = described(type(self))
        values = {field.name: getattr(self, field.name) for field in fields(self) if said[field.name].in_identity}
        return {name: str(value) if isinstance(value, Path | StrEnum) else value for name, value in values.items()}


def described(kind: type[Options]) -> dict[str, Option]:
    """The ``Option`` of each field, those that the kind of study declares first."""
    hints = get_type_hints(kind, include_extras=True)
    names = {field.name: None for field in fields(kind)}
    ordered = {name: None for name in kind.__annotations__ if name in names} | names
    return {name: next(it for it in hints[name].__metadata__ if isinstance(it, Option)) for name in ordered}


def parse_budget(text: str) -> int | float:
    """A budget as typed: "10%" and "0.1" are fractions of the rows, "30" is a count."""
    remedy = "write a percentage such as 10%, a fraction such as 0.1 or a count such as 30"
    number = text.strip().removesuffix("%")
    percent = number != text.strip()
    try:
        if not percent and number.lstrip("+-").isdigit():
            return int(number)
        value = float(number) / (100 if percent else 1)
    except ValueError:
        raise InvalidInput(f"--budget must be a number of rows, got {text!r}; {remedy}") from None
    if not (math.isfinite(value) and 0 < value <= 1):
        raise InvalidInput(f"--budget must be above 0 and at most {'100%' if percent else 'all rows'}, got {text!r}; {remedy}")
    return value

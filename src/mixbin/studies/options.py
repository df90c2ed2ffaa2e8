"""The options of a study: one dataclass from which the command line, the identity of a run and the study itself are made.

This module loads nothing but the standard library, so that ``mixbin distill --help`` stays quick.
"""

import math
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    from mixbin.data.reader import Reader
    from mixbin.studies.study import StudyBase


@dataclass(frozen=True)
class Option:
    """What the command line says about a field of options."""

    help: str
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    """How the option is written, where that does not follow from the name of the field."""
    least: int | None = None
    argument: bool = False
    """Whether the value stands alone instead of after ``--name``."""
    in_identity: bool = True
    """Whether another value makes another run."""
    panel: str | None = None
    """The heading under which the help lists it; None is the usual one."""


def option(help: str, metavar: str | None = None, *, default: Any = MISSING, **said: Any) -> Any:
    """A field of options, with what the command line says about it; the default ``list`` is an option that may be repeated."""
    how = {"default_factory": list} if default is list else {"default": default}
    return field(**how, metadata={"option": Option(help, metavar, **said)})


covered = partial(option, in_identity=False)
"""A field that the identity need not name: the study's ``contents`` show what it does, or no number depends on it."""


HEADER = ("--header/--no-header",)
DAYS = ("--day-first/--month-first",)
of_files = partial(covered, panel="How the table is written and read")
"""An option about reading files; the hashes of what was read are in the identity."""


class Encode(StrEnum):
    """The choices of ``--encode``."""

    AUTO = "auto"
    NONE = "none"


class Method(StrEnum):
    """The choices of ``--method``."""

    PENALIZE = "penalize"
    TOP_K = "top-k"
    SIMPLE = "simple"
    RELAX = "relax"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options that every study has; a kind of study adds its own. None is an option that was not given."""

    command: ClassVar[str]
    help: ClassVar[str]
    example: ClassVar[str]

    out: Path = covered("The folder for everything that the run leaves.", "DIR")  # noqa: RUF009
    seed: int = option("Splits the data and starts the methods; the same seed gives the same numbers.", "N", default=0, least=0)
    resume: bool = covered("Go on with the run in the folder --out.", default=False, flags=("--resume",))
    as_json: bool = covered("Print one line of JSON instead of the table.", default=False, flags=("--json",))

    def study(self) -> "StudyBase[Any]":
        """The study that these options ask for."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """The values that the numbers of a run depend on, by name."""
        said = described(type(self))
        values = {field.name: getattr(self, field.name) for field in fields(self) if said[field.name].in_identity}
        return {name: str(value) if isinstance(value, Path | StrEnum) else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class TableOptions(CommonOptions):
    """The further options of studies that read tables from files."""

    ignore: list[str] = of_files(  # noqa: RUF009
        "Columns that are no features: a,b or a pattern such as id*; may be repeated.", "COLUMNS", default=list
    )
    encode: Encode = of_files(  # noqa: RUF009
        "auto turns text, dates, yes and no and missing values into numbers; none refuses them.", "NAME", default=Encode.AUTO
    )
    text: list[str] = of_files(  # noqa: RUF009
        "Columns of numbers that are names, such as postal codes; as --ignore.", "COLUMNS", default=list
    )
    missing: list[str] = of_files(  # noqa: RUF009
        "Further words for a missing value, such as -,unknown.", "WORDS", default=list
    )
    decimal: str | None = of_files("CSV: the decimal sign, a point unless given.", "SIGN", default=None)
    thousands: str | None = of_files(
        "CSV: the sign between thousands, such as . (then commas are decimal) or space; none unless given.", "SIGN", default=None
    )
    day_first: bool | None = of_files(
        "CSV: whether 1/2/2020 is in February or in January; without it, seen from the column.", default=None, flags=DAYS
    )
    encoding: str | None = of_files("CSV: its letters, such as cp1252; UTF-8 unless given or marked.", "NAME", default=None)
    header: bool | None = of_files(
        "CSV: whether the first row has the names; by default mixbin looks at that row to decide.", default=None, flags=HEADER
    )

    def reader(self, target: str, classes: bool = False, for_classes: str = "") -> "Reader":
        """What reads the tables of this run."""
        from mixbin.data.reader import Reader

        return Reader(target, self.ignore, self.dialect(), self.encode is Encode.AUTO, self.text, classes, for_classes)

    def dialect(self) -> Any:
        """How the files are written, as far as the options tell."""
        from mixbin.data.dialect import typed_dialect

        return typed_dialect(self.header, self.decimal, self.thousands, self.encoding, self.missing, self.day_first)

    def about_files(self) -> dict[str, Any]:
        """The options about files that were given, by how they are typed."""
        given = {f"--{name.replace('_', '-')}": getattr(self, name) for name in READING}
        if self.encode is Encode.NONE:
            given["--encode"] = "none"
        return {name: value for name, value in given.items() if value not in (None, [])}


READING = ("ignore", "text", "missing", "decimal", "thousands", "day_first", "encoding", "header")
"""The fields of ``TableOptions`` that say how files are written."""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """The further options of studies that minimise a problem by a method."""

    method: Method = option("penalize, top-k, simple or relax; all compares them.", "NAME", default=Method.PENALIZE)
    max_evaluations: int | None = option("How many models a method may train, at most.", "N", default=None)
    validation_fraction: float | None = covered(
        "The share of the rows split off for validation, 0.2 unless given.", "X", default=None
    )


def described(kind: type[Any]) -> dict[str, Option]:
    """The ``Option`` of each field, those that the kind of study declares first.

    A study declares an option of ``Options`` again to give it another help or, with the old default (``= Options.seed``), to
    move it up.
    """
    said = {it.name: it.metadata["option"] for base in reversed(kind.__mro__[:-1]) for it in fields(base) if it.metadata}
    return {name: said[name] for name in {**kind.__annotations__, **said} if name in said}


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


def parse_tolerance(text: str) -> float:
    """A tolerance as typed: "1%" and "0.01" are the same share."""
    remedy = "write a percentage such as 1% or a share such as 0.01"
    number = text.strip().removesuffix("%")
    try:
        value = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        raise InvalidInput(f"--tolerance must be a share, got {text!r}; {remedy}") from None
    if not (math.isfinite(value) and value > 0):
        raise InvalidInput(f"--tolerance must be above 0, got {text!r}; {remedy}")
    return value

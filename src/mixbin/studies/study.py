"""The contract of a study: one kind of decision as a command, from its options to its page.

A study says how to load its data, what is minimised or fitted, how to measure an answer, which files to leave and how to put all
of that into words. The runner (see ``runner``) does the rest, the same for all kinds: folder, identity, resume, methods, Ctrl-C,
record, page.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin._version import __version__
from mixbin.problem import Problem
from mixbin.reporting.blocks import Page
from mixbin.reporting.record import Line, Record
from mixbin.reporting.runs import Column, PageParts, Run, page
from mixbin.reporting.verdict import Verdict
from mixbin.result import Result
from mixbin.studies.options import CommonOptions, Options

Texts = Mapping[str, str | bytes]
"""The contents of files by name, as text or as bytes."""
C = TypeVar("C", bound=CommonOptions)
O = TypeVar("O", bound=Options)  # noqa: E741

COMMON_FILES = {
    "trace.csv": "the path of the run",
    "result.npz": "everything, for mixbin.Result.load",
    "methods.json": "the table above",
}
"""What every study leaves, after its own files and the page."""
FAIR = "relax, simple and top-k may use as many evaluations as penalize."
"""How the methods were compared, where there are several."""


class Table(NamedTuple):
    """A further table for the terminal, its first column text and the others numbers."""

    heads: list[str]
    rows: list[list[str]]


class Spent(NamedTuple):
    """What a part of a search cost."""

    evaluations: int = 0
    seconds: float = 0.0


class StudyBase(ABC, Generic[C]):
    """One kind of decision as a command. Everything below "words" only sees the record of a finished run."""

    kind: ClassVar[str]
    files: ClassVar[Mapping[str, str]]
    """Its own files, each with what is in it."""
    measured: ClassVar[str]
    """What the numbers of the comparison are, in a sentence."""
    answer: ClassVar[str] = ""
    """What the certificate is about, such as "the rows that {} keeps"; the name of the method goes into the braces. Empty for
    studies whose answer has no certificate."""

    def __init__(self, options: C) -> None:
        self.options = options

    # What a run computes.

    @contextmanager
    def resources(self) -> Iterator[None]:
        """Whatever the run needs while it lasts, such as workers."""
        yield

    @abstractmethod
    def check(self) -> None:
        """Refuse options before any file is read."""

    @property
    @abstractmethod
    def source(self) -> str:
        """What is read, for the progress display."""

    @abstractmethod
    def load(self) -> None:
        """Read the data."""

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """What the numbers depend on beside the options: hashes of all data, names of columns, sizes that were resolved."""

    def identity(self) -> dict[str, Any]:
        """Everything the numbers depend on: a run that differs in any of it is another run."""
        return {"mixbin": __version__, **self.contents(), **self.options.identity(), "kind": self.kind}

    def prepare(self) -> str | None:
        """What to do before the methods run, and what to print on stderr about it, if anything."""
        return None

    # Words, made from the record alone.

    @classmethod
    def all_files(cls) -> dict[str, str]:
        """Every file of a finished run with what is in it, the page first."""
        return {"report.html": "all of this as a page, for a browser", **cls.files, "methods.json": COMMON_FILES["methods.json"]}

    def left_files(self) -> list[str]:
        """Which of all files this run leaves: rows are written in the format of the table that they are from."""
        return list(self.all_files())

    @classmethod
    @abstractmethod
    def sentence(cls, facts: Mapping[str, Any]) -> str:
        """The task in a sentence."""

    @classmethod
    @abstractmethod
    def columns(cls) -> Mapping[str, Column]:
        """The numbers of the comparison, in their order; ``evaluations`` and ``seconds`` are there anyway."""

    @classmethod
    def explained(cls, record: Record) -> list[str]:
        """How to read the comparison, in sentences: what is measured, and how the methods were compared."""
        return [cls.measured, *([FAIR] if record.n_methods > 1 else [])]

    @classmethod
    def verdict(cls, record: Record) -> Verdict | None:
        """What the answer is worth beside the references of the comparison; None for studies without any."""
        return None

    @classmethod
    def more(cls, record: Record) -> Iterator[str | Table]:
        """Further tables and texts for the terminal."""
        yield from ()

    @classmethod
    @abstractmethod
    def page(cls, run: Run) -> Page:
        """The page of a finished run."""


class FitStudy(StudyBase[C]):
    """A study that fits an estimator: its answer comes from one fit, which keeps no checkpoint."""

    @abstractmethod
    def fit(self) -> list[Line]:
        """Fit, and return the lines of the comparison; the last one is the answer."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What the record says about data, question and answer; JSON values."""

    @abstractmethod
    def texts(self) -> Texts:
        """The contents of its own files, by name."""


class Study(StudyBase[O]):
    """A study that minimises a problem. ``load`` sets ``problem``."""

    settings: ClassVar[Mapping[str, Any]] = {}
    """Further keywords of relax_and_penalize."""
    problem: Problem

    def check(self) -> None:
        """Refuse options before any file is read."""
        options = self.options
        if options.max_evaluations is not None:
            check.whole("--max-evaluations", options.max_evaluations, low=2, remedy="one for the start and one for the answer")
        if options.validation_fraction is not None:
            share: dict[str, Any] = {"low": 0, "high": 1, "open_low": True, "open_high": True}
            check.real("--validation-fraction", options.validation_fraction, **share, remedy="write a share such as 0.2")

    def settle(self, kept: Path) -> Spent:
        """What to find out before the methods run, such as the budget; the file ``kept`` is for going on after an interruption.

        Returns what that cost, which counts as a part of the search.
        """
        return Spent()

    def progress(self) -> str:
        """A few words that the progress display adds to its line."""
        return ""

    @property
    def searched(self) -> Problem:
        """The problem that the methods minimise: ``problem``, or the same in numbers that are easier to search."""
        return self.problem

    def search_settings(self) -> Mapping[str, Any]:
        """Further keywords of relax_and_penalize that depend on the problem."""
        return self.settings

    @abstractmethod
    def measure(self, theta: NDArray[Any], lam: Floats) -> dict[str, Any]:
        """The numbers of an answer; the same names for every answer, None where there is nothing to measure."""

    @abstractmethod
    def references(self, main: Result) -> list[Line]:
        """What to compare the methods with."""

    def reject(self, method: str, main: Result) -> None:
        """Raise ``Unsolved`` if the answer is of no use."""

    @abstractmethod
    def facts(self, main: Result) -> dict[str, Any]:
        """What the record says about data and question; JSON values."""

    @abstractmethod
    def texts(self, method: str, main: Result, out: Path) -> Texts:
        """The contents of its own files, by name; folders are written into ``out`` here."""

    # Words.

    @classmethod
    def all_files(cls) -> dict[str, str]:
        """Also the path of the search."""
        return {"report.html": "all of this as a page, for a browser", **cls.files, **COMMON_FILES}

    @classmethod
    def explained_on_page(cls, record: Record) -> list[str]:
        """How to read the comparison on the page, where it may have more columns."""
        return cls.explained(record)

    @staticmethod
    @abstractmethod
    def page_parts(run: Run) -> PageParts:
        """What the page of a run has beside what all pages have."""

    @classmethod
    def page(cls, run: Run) -> Page:
        """The page of a finished run."""
        return page(run, cls.page_parts(run), cls.columns(), cls.explained_on_page(run.record))


def in_format(files: Mapping[str, str], ending: str) -> list[str]:
    """The names of files without those of rows in the other format than ``ending``."""
    other = ".csv" if ending == ".parquet" else ".parquet"
    return [name for name in files if not (name.endswith(other) and name.removesuffix(other) + ending in files)]


def split_words(facts: Mapping[str, Any]) -> tuple[str, str]:
    """What a sentence about the task says after the validation rows, and at its end: how these came to be, and the test rows."""
    split_off = " split off at random" if facts["validation_split"] is not None else ""
    test = facts["test_rows"]
    return split_off, "" if test is None else f" {test:,} test rows play no part in the choice."

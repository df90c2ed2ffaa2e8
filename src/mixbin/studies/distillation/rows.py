"""What all studies of rows have in common: one table, its validation and test rows, the selected rows, the words."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin.data import tables
from mixbin.data.reader import Part
from mixbin.errors import InvalidInput, Unsolved
from mixbin.reporting.record import Record
from mixbin.reporting.runs import SPREAD, Column, reading_facts
from mixbin.reporting.verdict import Verdict
from mixbin.result import Result
from mixbin.studies.distillation import page
from mixbin.studies.distillation.options import DistillOptions, Judge
from mixbin.studies.distillation.verdict import verdict
from mixbin.studies.options import parse_budget
from mixbin.studies.study import Study, in_format

P = TypeVar("P")
"""Some rows as the study keeps them."""


def mean_and_spread(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of every number over several draws, and its standard deviation; None where a draw has no number."""
    out: dict[str, Any] = {}
    for name in each[0]:
        values = [numbers[name] for numbers in each]
        good = all(value is not None and np.isfinite(value) for value in values)
        out |= {name: float(np.mean(values)), f"{name}{SPREAD}": float(np.std(values))} if good else {name: None}
    return out


class RowStudy(Study[DistillOptions]):
    """Which rows to keep."""

    files: ClassVar[Mapping[str, str]] = {
        "selected.csv": "the selected rows, with their numbers in the training file",
        "selected.parquet": "the selected rows, with their numbers in the training file",
        "model.json": "the ridge regression trained on them",
    }
    answer = "the rows that {} keeps"
    error: ClassVar[str]
    """The number by which people judge a model, besides the loss: one of ``page.ERRORS``."""
    digits: ClassVar[str]
    """The format of losses and errors."""
    page_parts = staticmethod(page.parts)
    features: list[str]
    target: str
    rows: NDArray[np.intp]
    """The candidate rows, by their numbers in the file."""
    validation_rows: int
    test_rows: int | None = None
    split_off: Any = None
    """Which rows of the training file serve for validation instead; None if validation rows were given."""

    @property
    def source(self) -> str:
        """The name of the training file."""
        return self.options.train.name

    @property
    def judged_by_all(self) -> bool:
        """Whether all rows of the training file judge, and none is split off."""
        return False

    @property
    def budget(self) -> int | float | None:
        """The budget as a number."""
        return None if self.options.budget is None else parse_budget(self.options.budget)

    def check(self) -> None:
        """The options that every study of rows has."""
        options = self.options
        _ = self.budget
        if options.alpha is not None:
            remedy = "write a number such as 100, or leave it out to have it chosen"
            check.real("--alpha", options.alpha, low=0, open_low=True, remedy=remedy)
        super().check()
        if options.judge is Judge.FULL and options.validation:
            raise InvalidInput("--judge full has no use for --validation: all rows of TRAIN judge; leave one of them out")
        if self.judged_by_all and options.validation_fraction is not None:
            raise InvalidInput("--validation-fraction has no use where all rows judge; add --judge validation, or leave it out")
        if options.validation and options.validation_fraction is not None:
            raise InvalidInput("--validation-fraction has no use beside --validation; leave one of them out")

    @abstractmethod
    def digests(self) -> dict[str, str | None]:
        """Hashes of all rows."""

    def contents(self) -> dict[str, Any]:
        """All rows, the names of the columns and the number of rows to keep."""
        return {
            **self.digests(),
            # The same rows may come from two files, where they have other numbers.
            "validation": "all rows" if self.judged_by_all else "given" if self.options.validation else "split off",
            "columns": [*self.features, self.target],
            "budget": getattr(self.problem.theta_set, "k", None),
        }

    def reject(self, method: str, main: Result) -> None:
        """A selection without rows trains no model."""
        if not main.theta.any():
            raise Unsolved(
                f"{method} rounding keeps no row, so there is no model; use --method top-k or penalize in another --out"
            )

    def facts(self, main: Result) -> dict[str, Any]:
        """Files, columns and numbers of rows."""
        return {
            "train": str(self.options.train),
            "target": self.target,
            "features": len(self.features),
            "rows": self.problem.theta_set.size,
            "validation_rows": self.validation_rows,
            "test_rows": self.test_rows,
            "validation_split": self.split_off,
            "budget": getattr(self.problem.theta_set, "k", None),
            "alpha": self.options.alpha,
            "seed": self.options.seed,
        }

    def model_facts(self) -> dict[str, Any]:
        """What the file of the model says about features that are not the columns of the table."""
        return {}

    @classmethod
    def columns(cls) -> Mapping[str, Column]:
        """Losses and errors, rows and alpha."""
        error = page.ERRORS[cls.error]
        return {
            f"test_{cls.error}": Column(f"{error} on test rows", cls.digits, f"{error},\ntest"),
            f"unkept_{cls.error}": Column(f"{error} on rows not kept", cls.digits, f"{error},\nnot kept"),
            "ratio": Column("error / that of all rows", ".4f", "error /\nall rows"),
            f"validation_{cls.error}": Column(f"{error} on the validation rows, which judged", cls.digits, f"{error},\njudged"),
            f"full_{cls.error}": Column(f"{error} on all rows, which judged", cls.digits, f"{error},\njudged"),
            "rows": Column("rows", ",d", "rows"),
            "test_loss": Column("test loss", cls.digits),
            "validation_loss": Column("loss that judged", cls.digits),
            "full_loss": Column("loss that judged", cls.digits),
            "ridge_alpha": Column("Ridge alpha", ".4g", "Ridge\nalpha"),
            "alpha": Column("alpha", ".3g"),
        }

    @classmethod
    def explained(cls, record: Record) -> list[str]:
        """Also which rows the errors are on."""
        return [*super().explained(record), *page.which_rows(record)]

    @classmethod
    def verdict(cls, record: Record) -> Verdict | None:
        """Beside all rows and random rows."""
        return verdict(record)


class TableStudy(RowStudy, Generic[P]):
    """A table in memory."""

    train: P
    validation: P
    test: P | None
    for_classes: ClassVar[str | None] = None
    """The option that makes a target one of classes, for messages; None for a study of classes."""

    def read(self) -> None:
        """Read the files and split a validation part off where none is given; the encoding is that of the candidate rows."""
        options = self.options
        reader = options.reader(options.target, self.for_classes is None, self.for_classes or "")
        whole = reader.train(options.train)
        self.reader, self.table, self.target, self.rows = reader, whole.table, reader.target, whole.rows
        self.read_parts = [whole]
        candidates = np.arange(len(whole))
        if not options.validation and not self.judged_by_all:
            name, remedy = "TRAIN", "give --validation"
            candidates, held = tables.split(len(whole), options.validation_fraction, options.seed, name, remedy)
        reader.learn([whole], candidates)
        everything, self.features = self.part([whole]), reader.names
        if options.validation:
            self.train, given = everything, self._read(options.validation)
            self.validation, self.validation_rows = self.part(given), sum(map(len, given))
        elif self.judged_by_all:
            none = np.empty(0, dtype=np.intp)
            self.train, self.validation, self.validation_rows = everything, self.split(everything, none, none)[1], 0
        else:
            self.train, self.validation, held = self.split(everything, candidates, held)
            self.rows, self.split_off, self.validation_rows = whole.rows[candidates], whole.rows[held].tolist(), len(held)
        self.test = None
        if options.test:
            given = self._read(options.test)
            self.test, self.test_rows = self.part(given), sum(map(len, given))

    def _read(self, files: list[Path]) -> list[Part]:
        parts = [self.reader.like(file) for file in files]
        self.read_parts += parts
        return parts

    @abstractmethod
    def part(self, read: Sequence[Part]) -> P:
        """The rows of some tables, one after the other."""

    def contents(self) -> dict[str, Any]:
        """Also what each feature is and which rows have no target, where that is not plain."""
        return super().contents() | self.reader.identity(self.read_parts)

    def facts(self, main: Result) -> dict[str, Any]:
        """Also how the files were read."""
        return super().facts(main) | reading_facts(self.reader.facts(self.read_parts))

    def model_facts(self) -> dict[str, Any]:
        """How the features are made from the columns."""
        return self.reader.model_facts()

    def left_files(self) -> list[str]:
        """The selected rows are in the format of the table."""
        return in_format(self.all_files(), self.table.ending)

    @abstractmethod
    def split(self, everything: P, rows: NDArray[np.intp], held: NDArray[np.intp]) -> tuple[P, P, NDArray[np.intp]]:
        """The training part and the validation part, and which rows the latter has."""

    def selected(self, theta: NDArray[Any], name: str = "selected") -> dict[str, bytes]:
        """A file of the selected rows as they were, after their row numbers (and weights, where these are fractions)."""
        chosen = np.flatnonzero(theta)
        rows = self.rows[chosen]
        first: dict[str, list[Any]] = {"row": rows.tolist()}
        if theta.dtype != np.bool_:
            first["weight"] = theta[chosen].tolist()
        return {name + self.table.ending: self.table.written(rows, first)}

"""The options of ``mixbin distill``; loads nothing heavy, so that help stays quick."""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixbin.errors import InvalidInput
from mixbin.studies.options import Method, Options, TableOptions, covered, option

if TYPE_CHECKING:
    from mixbin.studies.study import Study


class Task(StrEnum):
    """The choices of ``--task``."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"


class Judge(StrEnum):
    """The choices of ``--judge``."""

    AUTO = "auto"
    FULL = "full"
    VALIDATION = "validation"


@dataclass(frozen=True, kw_only=True)
class DistillOptions(TableOptions, Options):
    """The command as typed."""

    command = "distill"
    help = "Keep few rows of a table, such that a ridge or logistic regression trained on them predicts best."
    example = "mixbin distill train.csv --target price --budget 10% --test test.csv --out run"

    train: Path = covered(
        "The rows to choose from: CSV (also .gz, or one in a .zip), Excel, Parquet, or a folder of Parquet.",
        "TRAIN",
        argument=True,
    )
    target: str = covered("The column to predict, by name or number from 0; -1 is the last.", "COLUMN")
    out: Path = covered("The folder for the selected rows, the model and all else.", "DIR")
    budget: str | None = covered(
        "How many rows to keep: 10%, 0.1 or a count such as 30. Without it (classification only) rows are dropped that "
        "harm validation; to find wrong labels use mixbin labels.",
        "ROWS",
        default=None,
    )
    tolerance: str | None = covered(
        "Instead of --budget (regression): keep as few rows as are at most this much worse than all rows, such as 1%.",
        "SHARE",
        default=None,
    )
    task: Task = covered("regression (ridge), or classification (logistic regression).", "KIND", default=Task.REGRESSION)
    validation: list[Path] = covered(
        "Rows that judge the choice; may be repeated. Without it, all rows of TRAIN judge.", "FILE", default=list
    )
    test: list[Path] = covered("Rows that play no part in the choice; may be repeated.", "FILE", default=list)
    alpha: float | None = option(
        "Strength of the ridge penalty, such as 0.01; without it, chosen together with the rows.", "X", default=None
    )
    judge: Judge = option(
        "Who judges a regression: full (all rows of TRAIN), validation, or auto: --validation if given, else full.",
        "NAME",
        default=Judge.AUTO,
    )
    standardize: bool = option(
        "Penalise coefficients per standard deviation of a column, so that units do not matter.",
        default=True,
        flags=("--standardize/--no-standardize",),
    )
    outer_alpha: str = option(
        "Strength of a ridge penalty in what judges: cv for cross-validation, or a number; 0 is the paper's problem.",
        "X",
        default="cv",
    )
    gap_tol: float = option(
        "End the search once no choice can be better by this share; 0 goes on until no exchange of rows helps.",
        "X",
        default=1e-3,
    )
    method: Method = Options.method
    seed: int = Options.seed
    validation_fraction: float | None = covered(
        "With --judge validation, the share of TRAIN split off for it, 0.2 unless given.", "X", default=None
    )
    max_evaluations: int | None = Options.max_evaluations
    workers: int | None = covered(
        "Parquet: processes that work on it, one a core unless given; it need not fit in memory.", "N", default=None, least=1
    )
    scheduler: str | None = covered("Parquet: the Dask cluster to use instead, such as tcp://host:8786.", "ADDRESS", default=None)
    memory_limit: str | None = covered("Parquet: what each worker may use, such as 2GB.", "SIZE", default=None)

    @property
    def on_workers(self) -> bool:
        """Whether the rows are read by Dask workers: TRAIN is a folder, or an option about workers was given."""
        # Not ``is_dir``, which raises an error for names that the system refuses; whoever reads the file says so.
        return not self._may_be_read or os.path.isdir(self.train)

    @property
    def _may_be_read(self) -> bool:
        """Whether a small folder may be read as a table: no option about workers was given."""
        return all(it is None for it in (self.workers, self.scheduler, self.memory_limit))

    def study(self) -> "Study[Any]":
        """On workers, for classes, or for numbers in memory."""
        if self.on_workers:
            if self.task is Task.CLASSIFICATION:
                raise InvalidInput(
                    "--task classification must be one table in memory, got a folder, --workers or --scheduler; use a file"
                )
            from mixbin.studies.distillation.parquet import ParquetRegression
            from mixbin.studies.distillation.small_folder import SmallFolderRegression, is_small

            small = self._may_be_read and is_small([self.train, *self.validation, *self.test])
            return SmallFolderRegression(self) if small else ParquetRegression(self)
        if self.task is Task.CLASSIFICATION:
            from mixbin.studies.distillation.classification import Classification

            return Classification(self)
        from mixbin.studies.distillation.regression import Regression

        return Regression(self)

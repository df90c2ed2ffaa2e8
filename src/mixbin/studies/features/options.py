"""The options of ``mixbin features``; loads nothing heavy, so that help stays quick."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixbin.studies.options import TableOptions, covered, option

if TYPE_CHECKING:
    from mixbin.studies.study import StudyBase


class Loss(StrEnum):
    """The choices of ``--loss``."""

    SQUARED = "squared"
    LOGISTIC = "logistic"


@dataclass(frozen=True, kw_only=True)
class FeaturesOptions(TableOptions):
    """The command as typed."""

    command = "features"
    help = "Keep the few columns of a table with which a linear model fits best, with a bound on what any others could reach."
    example = "mixbin features train.csv --target price --keep 10 --test test.csv --out run"

    train: Path = covered("The table: CSV (also .gz, or one in a .zip), Excel or Parquet.", "TABLE", argument=True)
    target: str = covered("The column to predict, by name or number from 0; -1 is the last.", "COLUMN")
    out: Path = covered("The folder for the features, the table with these alone, the model and all else.", "DIR")
    keep: int = option("How many features to keep.", "N", default=10, least=1)
    prove: bool = option("Go on until no other choice can be better.", default=False, flags=("--prove",))
    time_limit: float | None = option("Seconds after which --prove ends with the gap it has.", "X", default=None)
    loss: Loss = option("squared for numbers, logistic for two classes.", "NAME", default=Loss.SQUARED)
    test: list[Path] = covered("Rows that play no part in the choice; may be repeated.", "FILE", default=list)
    stability: bool = option(
        "Also count how often each feature is kept on bootstrap draws of the rows.", default=False, flags=("--stability",)
    )
    seed: int = option("Draws folds, starts and random features; the same seed gives the same numbers.", "N", default=0, least=0)

    def study(self) -> "StudyBase[Any]":
        """The study that these options ask for."""
        from mixbin.studies.features.study import Features

        return Features(self)

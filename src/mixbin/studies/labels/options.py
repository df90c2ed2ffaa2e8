"""The options of ``mixbin labels``; loads nothing heavy, so that help stays quick."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixbin.errors import InvalidInput
from mixbin.studies.options import TableOptions, covered, option

if TYPE_CHECKING:
    from mixbin.studies.study import StudyBase

LARGEST_SIDE = 10_000


@dataclass(frozen=True, kw_only=True)
class LabelsOptions(TableOptions):
    """The command as typed."""

    command = "labels"
    help = "Find the rows of a table whose label is probably wrong; no trusted rows are needed."
    example = "mixbin labels train.csv --target kind --test test.csv --out run"

    train: Path = covered(
        "The rows whose labels to judge: CSV (also .gz, or one in a .zip), Excel or Parquet.",
        "TABLE",
        argument=True,
    )
    target: str = covered("The column with the labels, by name or number from 0; -1 is the last.", "COLUMN")
    out: Path = covered("The folder for the doubtful rows, the others, the model and all else.", "DIR")
    trusted: list[Path] = covered("Rows whose labels are known to be right; may be repeated.", "FILE", default=list)
    test: list[Path] = covered("Rows that play no part, to measure accuracy on; may be repeated.", "FILE", default=list)
    max_class_loss: float = option("The largest share of a class that may be dropped.", "X", default=0.9)
    guard: bool = option("Whether to drop rows only if that helps.", default=True, flags=("--guard/--no-guard",))
    image: str | None = option("Show rows as pictures of this height and width, such as 8x8.", "HxW", default=None)
    seed: int = option("Draws the folds; the same seed gives the same numbers.", "N", default=0, least=0)
    jobs: int | None = covered("How many models to train at once; -1 uses all cores.", "N", default=None)

    @property
    def picture(self) -> tuple[int, int] | None:
        """The height and width of pictures."""
        if self.image is None:
            return None
        found = re.fullmatch(r"([1-9]\d{0,4})[xX]([1-9]\d{0,4})", self.image.strip())
        if found is None or max(int(found[1]), int(found[2])) > LARGEST_SIDE:
            raise InvalidInput(f"--image must be a height and a width, got {self.image!r}; write them as 8x8")
        return int(found[1]), int(found[2])

    def study(self) -> "StudyBase[Any]":
        """The study that these options ask for."""
        from mixbin.studies.labels.study import Labels

        return Labels(self)

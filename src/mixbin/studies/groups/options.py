"""The options of ``mixbin groups``; loads nothing heavy, so that help stays quick."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixbin.studies.options import Method, Options, TableOptions, covered, option

if TYPE_CHECKING:
    from mixbin.studies.study import Study

SYNTHETIC: dict[str, Any] = {"a": 0.3, "tasks": 500, "samples": 20, "features": 100}
"""The published sizes, used unless an option gives another."""


class GroupSizes(StrEnum):
    """The choices of ``--synthetic``."""

    EQUAL = "equal"
    INEQUAL = "inequal"
    RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class GroupsOptions(TableOptions, Options):
    """The command as typed."""

    command = "groups"
    help = """Find which features belong together, such that many regressions with a group lasso on these groups predict best.

    A folder as --data holds one CSV per task, all with the same columns;
    NAME_val.csv and NAME_test.csv are validation and test rows of NAME.csv.
    An .npz may also hold X_val, y_val, X_test, y_test, feature_names and,
    where the truth is known, labels or theta, and coef.
    """
    example = "mixbin groups --synthetic inequal --a 0.3 --out run"

    out: Path = covered("The folder for the groups, the models and all else.", "DIR")
    data: Path | None = covered(
        "Your tasks: an .npz file with X (tasks, rows, features) and y (tasks, rows), or a folder with a CSV file per task.",
        "PATH",
        default=None,
    )
    synthetic: GroupSizes | None = covered("Made tasks instead, with equal, inequal or random group sizes.", "KIND", default=None)
    n_groups: int | None = covered("The most groups there can be, 10 unless given.", "N", default=None)
    lam: float | None = option(
        "Strength of the group penalty, such as 0.02; without it, chosen together with the groups.", "X", default=None
    )
    intercept: bool = option(
        "Whether the model of each task has an intercept; without one, the rows should be centred.",
        default=True,
        flags=("--intercept/--no-intercept",),
    )
    method: Method = option(
        "penalize, top-k (the largest entry of each feature), simple or relax; all compares them.",
        "NAME",
        default=Method.PENALIZE,
    )
    seed: int = option(
        "Makes or splits the data and starts the methods; the same seed gives the same numbers.", "N", default=0, least=0
    )
    validation_fraction: float | None = covered(
        "The share of each task split off where there are no validation rows, 0.2 unless given.", "X", default=None
    )
    max_evaluations: int | None = option("How often a method may train all tasks, at most.", "N", default=None)
    target: str | None = covered(
        "CSV: the column to predict, by name or number from 0; the last unless given.", "COLUMN", default=None
    )
    a: float | None = covered("Made tasks: the smallest active coefficient, 0.3 unless given.", "X", default=None, flags=("--a",))
    tasks: int | None = covered("Made tasks: how many, 500 unless given.", "N", default=None)
    samples: int | None = covered("Made tasks: rows of each part, 20 unless given.", "N", default=None)
    features: int | None = covered("Made tasks: columns, 100 unless given.", "N", default=None)

    def size(self, name: str) -> Any:
        """An option of the synthetic data, or the published number."""
        given = getattr(self, name)
        return SYNTHETIC[name] if given is None else given

    def study(self) -> "Study[Any]":
        """The only kind there is."""
        from mixbin.studies.groups.study import Groups

        return Groups(self)

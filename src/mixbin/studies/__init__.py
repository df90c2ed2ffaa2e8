"""Studies: each kind of decision as a command, from its options to its page.

A new kind is one problem, one file here and one entry in each of the two tables below.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixbin.studies.options import CommonOptions
    from mixbin.studies.study import StudyBase

COMMANDS = {
    "distill": "mixbin.studies.distillation.options:DistillOptions",
    "groups": "mixbin.studies.groups.options:GroupsOptions",
    "labels": "mixbin.studies.labels.options:LabelsOptions",
    "features": "mixbin.studies.features.options:FeaturesOptions",
}
"""The options of each command. Their modules load nothing heavy, so that help stays quick."""
KINDS = {
    "regression": "mixbin.studies.distillation.regression:Regression",
    "parquet": "mixbin.studies.distillation.parquet:ParquetRegression",
    "classification": "mixbin.studies.distillation.classification:Classification",
    "groups": "mixbin.studies.groups.study:Groups",
    "labels": "mixbin.studies.labels.study:Labels",
    "features": "mixbin.studies.features.study:Features",
}
"""The study of each kind of run."""


def options_of(command: str) -> "type[CommonOptions]":
    """The options of a command."""
    options: type[CommonOptions] = _loaded(COMMANDS[command])
    return options


def study_of(kind: str) -> "type[StudyBase[Any]] | None":
    """The study of a kind of run; None for a kind that this version does not know."""
    return _loaded(KINDS[kind]) if kind in KINDS else None


def _loaded(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(module), name)

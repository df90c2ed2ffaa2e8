"""Estimators that follow the conventions of scikit-learn and run the methods of mixbin."""

from typing import TYPE_CHECKING

from mixbin._lazy import lazily

if TYPE_CHECKING:
    from mixbin.estimators.classification import DistillationClassifier
    from mixbin.estimators.distillation import DistillationRegressor
    from mixbin.estimators.features import FeatureSelector
    from mixbin.estimators.groups import GroupStructureRegressor
    from mixbin.estimators.how_few_rows import budget_curve
    from mixbin.estimators.labels.cleaner import LabelCleaner
    from mixbin.estimators.n_groups import GroupCurve, suggest_n_groups
    from mixbin.estimators.table_encoder import TableEncoder

__all__ = [
    "DistillationClassifier",
    "DistillationRegressor",
    "FeatureSelector",
    "GroupCurve",
    "GroupStructureRegressor",
    "LabelCleaner",
    "TableEncoder",
    "budget_curve",
    "suggest_n_groups",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "DistillationClassifier": "mixbin.estimators.classification",
        "DistillationRegressor": "mixbin.estimators.distillation",
        "FeatureSelector": "mixbin.estimators.features",
        "GroupCurve": "mixbin.estimators.n_groups",
        "GroupStructureRegressor": "mixbin.estimators.groups",
        "LabelCleaner": "mixbin.estimators.labels.cleaner",
        "TableEncoder": "mixbin.estimators.table_encoder",
        "budget_curve": "mixbin.estimators.how_few_rows",
        "suggest_n_groups": "mixbin.estimators.n_groups",
    },
)

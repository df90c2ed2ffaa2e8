"""The methods behind scikit-learn's conventions."""

from mixbin.estimators.classification import DistillationClassifier
from mixbin.estimators.distillation import DistillationRegressor
from mixbin.estimators.groups import GroupCurve, GroupStructureRegressor, suggest_n_groups

__all__ = ["DistillationClassifier", "DistillationRegressor", "GroupCurve", "GroupStructureRegressor", "suggest_n_groups"]

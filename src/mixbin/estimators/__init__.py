"""The methods behind scikit-learn's conventions."""

from mixbin.estimators.distillation import DistillationRegressor
from mixbin.estimators.groups import GroupCurve, GroupStructureRegressor, suggest_n_groups

__all__ = ["DistillationRegressor", "GroupCurve", "GroupStructureRegressor", "suggest_n_groups"]

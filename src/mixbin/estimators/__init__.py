"""scikit-learn faces of the applications."""

from mixbin.estimators.distillation import DistillationRegressor

__all__ = ["DistillationRegressor"]

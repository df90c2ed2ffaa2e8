"""The applications, each a Problem that the methods can drive."""

from mixbin.problems.distillation import PublishedGradient, RidgeDistillation
from mixbin.problems.group_lasso import GroupLassoStructure

__all__ = ["GroupLassoStructure", "PublishedGradient", "RidgeDistillation"]

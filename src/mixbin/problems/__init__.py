"""The applications, each a Problem that the methods can drive."""

from mixbin.problems.bilevel import bilevel
from mixbin.problems.distillation import PublishedGradient, RidgeDistillation, SoftmaxDistillation
from mixbin.problems.group_lasso import GroupLassoStructure

__all__ = ["GroupLassoStructure", "PublishedGradient", "RidgeDistillation", "SoftmaxDistillation", "bilevel"]

"""Choose which rows of a training set to keep (docs/maths.md, "Data distillation")."""

from mixbin.problems.distillation.published import PublishedGradient
from mixbin.problems.distillation.ridge import RidgeDistillation
from mixbin.problems.distillation.softmax import SoftmaxDistillation

__all__ = ["PublishedGradient", "RidgeDistillation", "SoftmaxDistillation"]

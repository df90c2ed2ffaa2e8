"""Which rows of a training set to keep (SPEC section 3)."""

from mixbin.problems.distillation.published import PublishedGradient
from mixbin.problems.distillation.ridge import RidgeDistillation

__all__ = ["PublishedGradient", "RidgeDistillation"]

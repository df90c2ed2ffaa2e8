"""The applications, each a Problem that the methods can drive."""

from mixbin.problems.distillation import PublishedGradient, RidgeDistillation

__all__ = ["PublishedGradient", "RidgeDistillation"]

"""The applications, each a Problem that the methods can drive."""

from mixbin.problems.distillation import RidgeDistillation

__all__ = ["RidgeDistillation"]

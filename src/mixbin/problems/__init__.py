"""The applications, each a Problem that the methods can drive."""

from typing import TYPE_CHECKING

from mixbin._lazy import lazily

if TYPE_CHECKING:
    from mixbin.problems.best_subset.problem import BestSubset
    from mixbin.problems.best_subset.proof import Proof, prove_best_subset
    from mixbin.problems.distillation.published import PublishedGradient
    from mixbin.problems.distillation.ridge import RidgeDistillation
    from mixbin.problems.distillation.softmax import SoftmaxDistillation
    from mixbin.problems.group_lasso.structure import GroupLassoStructure
    from mixbin.problems.quadratic import QuadraticProblem

__all__ = [
    "BestSubset",
    "GroupLassoStructure",
    "Proof",
    "PublishedGradient",
    "QuadraticProblem",
    "RidgeDistillation",
    "SoftmaxDistillation",
    "prove_best_subset",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "BestSubset": "mixbin.problems.best_subset.problem",
        "Proof": "mixbin.problems.best_subset.proof",
        "prove_best_subset": "mixbin.problems.best_subset.proof",
        "GroupLassoStructure": "mixbin.problems.group_lasso.structure",
        "PublishedGradient": "mixbin.problems.distillation.published",
        "QuadraticProblem": "mixbin.problems.quadratic",
        "RidgeDistillation": "mixbin.problems.distillation.ridge",
        "SoftmaxDistillation": "mixbin.problems.distillation.softmax",
    },
)

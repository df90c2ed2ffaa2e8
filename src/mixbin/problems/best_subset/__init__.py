"""Which features to keep: best subset selection, convex in theta, with a lower bound (docs/maths.md, "Best subset")."""

from mixbin.problems.best_subset.problem import BestSubset
from mixbin.problems.best_subset.proof import Proof, prove_best_subset

__all__ = ["BestSubset", "Proof", "prove_best_subset"]

"""Bilevel problems whose two objectives are JAX functions, for any differentiable model.

JAX itself is imported only when such a problem is constructed. The descriptions of lower levels and hypergradients serve
PyTorch, too: ``mixbin.torch`` computes with the same objects.
"""

from mixbin.problems.bilevel.hypergradient import FirstOrder, Implicit, Unrolled
from mixbin.problems.bilevel.lower import FixedPoint, Minimise, OwnSolver, Train
from mixbin.problems.bilevel.problem import BilevelProblem, BilevelSum, bilevel

__all__ = [
    "BilevelProblem",
    "BilevelSum",
    "FirstOrder",
    "FixedPoint",
    "Implicit",
    "Minimise",
    "OwnSolver",
    "Train",
    "Unrolled",
    "bilevel",
]

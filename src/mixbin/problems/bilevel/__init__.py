"""Bilevel problems whose two objectives are JAX functions, for any differentiable model.

JAX itself is imported only when such a problem is constructed.
"""

from mixbin.problems.bilevel.hypergradient import Implicit, Unrolled
from mixbin.problems.bilevel.lower import FixedPoint, Minimise, OwnSolver
from mixbin.problems.bilevel.problem import BilevelProblem, BilevelSum, bilevel

__all__ = ["BilevelProblem", "BilevelSum", "FixedPoint", "Implicit", "Minimise", "OwnSolver", "Unrolled", "bilevel"]

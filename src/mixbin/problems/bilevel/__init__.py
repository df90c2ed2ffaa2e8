"""Any differentiable model: bilevel problems whose objectives are JAX functions. JAX itself is imported when one is made."""

from mixbin.problems.bilevel.hypergradient import Implicit, Unrolled
from mixbin.problems.bilevel.lower import FixedPoint, Minimise, OwnSolver
from mixbin.problems.bilevel.problem import BilevelProblem, BilevelSum, bilevel

__all__ = ["BilevelProblem", "BilevelSum", "FixedPoint", "Implicit", "Minimise", "OwnSolver", "Unrolled", "bilevel"]

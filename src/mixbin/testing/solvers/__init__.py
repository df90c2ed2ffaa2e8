"""The conformance suite of solvers, and the quadratics that they run on."""

from mixbin.testing.solvers.quadratics import QuadraticSum, quadratic_sum
from mixbin.testing.solvers.suite import check_solver

__all__ = ["QuadraticSum", "check_solver", "quadratic_sum"]

"""Concave penalties whose weight 1/eps drives a relaxed theta to binary points (docs/maths.md, "Penalty")."""

from mixbin.penalties.base import Penalty
from mixbin.penalties.logarithmic import Logarithmic
from mixbin.penalties.quadratic import Quadratic

__all__ = ["Logarithmic", "Penalty", "Quadratic"]

"""Conformance suites for your own sets, solvers and problems: run an instance of your class through one, and mend what it names.

Each suite raises a ``ConformanceError`` at the first promise that the class breaks. They need no test framework; in pytest a test
is one line, such as ``check_set(MySet(6))``.
"""

from mixbin.testing.broken import ConformanceError
from mixbin.testing.problems import check_problem
from mixbin.testing.sets import check_set
from mixbin.testing.solvers import check_solver

__all__ = ["ConformanceError", "check_problem", "check_set", "check_solver"]

"""The conformance suite of problems, one capability a file."""

from mixbin.testing.problems.suite import check_problem

__all__ = ["check_problem"]

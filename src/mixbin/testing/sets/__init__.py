"""The conformance suite of sets, one promise a file."""

from mixbin.testing.sets.suite import check_set

__all__ = ["check_set"]

"""Methods: from a problem to a binary answer."""

from mixbin.methods.enumerate import enumerate_binary
from mixbin.methods.penalize import relax_and_penalize
from mixbin.methods.round import relax_and_round

__all__ = ["enumerate_binary", "relax_and_penalize", "relax_and_round"]

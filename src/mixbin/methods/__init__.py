"""The methods, each of which takes a problem and returns a result."""

from mixbin.methods.enumerate import enumerate_binary
from mixbin.methods.penalize import relax_and_penalize
from mixbin.methods.round import relax_and_round

__all__ = ["enumerate_binary", "relax_and_penalize", "relax_and_round"]

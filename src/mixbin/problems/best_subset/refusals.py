"""What a matrix that cannot be inverted means for the user."""

from collections.abc import Iterator
from contextlib import contextmanager

from numpy.linalg import LinAlgError

from mixbin.errors import InvalidInput


@contextmanager
def enough_gamma() -> Iterator[None]:
    """Say what to do where gamma is lost to rounding beside columns that are combinations of others."""
    try:
        yield
    except LinAlgError:
        raise InvalidInput(
            "gamma must be larger for these columns, some of which are combinations of others up to rounding; raise gamma, or "
            "standardise X"
        ) from None

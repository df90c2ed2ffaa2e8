"""What the estimators share: how the baselines round, where random numbers come from, whose argument an error is about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
from sklearn.utils import check_random_state

from mixbin import _validate as check
from mixbin.errors import InvalidInput

ROUNDING: dict[str, Literal["top-k", "simple"] | None] = {"top-k": "top-k", "simple": "simple", "relax": None}
"""How each baseline rounds."""


def generator(random_state: object) -> np.random.RandomState:
    """scikit-learn's generator for a ``random_state``."""
    must, remedy = "None, a whole number from 0 to 2**32 - 1 or a RandomState", "pass a seed such as 0"
    if isinstance(random_state, (bool, np.bool_)):
        raise check.fail("random_state", random_state, must, remedy)
    try:
        rng: np.random.RandomState = check_random_state(random_state)
    except ValueError:
        raise check.fail("random_state", random_state, must, remedy) from None
    return rng


@contextmanager
def saying(must: str) -> Iterator[None]:
    """scikit-learn's checks speak of X and y; say first which argument was meant."""
    try:
        yield
    except ValueError as error:
        raise InvalidInput(f"{must}: {error}") from None

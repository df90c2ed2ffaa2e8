"""Selecting the k largest entries in linear time; among equal entries the lowest index wins."""

import numpy as np

from mixbin.sets.base import Bools, Floats


def largest(x: Floats, k: int) -> Bools:
    """A mask of the ``k`` largest entries of a vector; among equal ones those with the lowest index."""
    if k <= 0:
        return np.zeros(x.size, dtype=np.bool_)
    if k >= x.size:
        return np.ones(x.size, dtype=np.bool_)
    threshold = np.partition(x, x.size - k)[x.size - k]
    mask = np.asarray(x > threshold)
    missing = k - int(np.count_nonzero(mask))
    mask[np.flatnonzero(x == threshold)[:missing]] = True
    return mask

"""The mean of numbers whose sum may overflow."""

import numpy as np

from mixbin.sets.base import Floats


def mean_of(g: Floats, axis: int | None = None) -> Floats:
    """The mean along ``axis``, which stays as a dimension of length 1, or the mean of all entries.

    The plain mean is exact to rounding and used whenever it is finite; only if the sum overflows is each entry divided first.
    """
    keep = axis is not None
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(g.mean(axis=axis, keepdims=keep))
    if np.isfinite(mean).all():
        return mean
    count = g.size if axis is None else g.shape[axis]
    with np.errstate(over="ignore"):  # near the largest number rounding alone can make the sum overflow
        mean = (g / count).sum(axis=axis, keepdims=keep)
    return np.asarray(np.clip(mean, g.min(axis=axis, keepdims=keep), g.max(axis=axis, keepdims=keep)))

"""The mean of numbers whose sum may be beyond the largest number there is."""

import numpy as np

from mixbin.sets.base import Floats


def mean_of(g: Floats, axis: int | None = None) -> Floats:
    """The mean along an axis, which is kept, or of all."""
    keep = axis is not None
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.asarray(g.mean(axis=axis, keepdims=keep))
    if np.isfinite(mean).all():
        return mean
    count = g.size if axis is None else g.shape[axis]
    return np.asarray((g / count).sum(axis=axis, keepdims=keep))

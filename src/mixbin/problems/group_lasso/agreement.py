"""How far two groupings of the same features agree."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def adjusted_rand(labels: ArrayLike, other: ArrayLike) -> float:
    """The adjusted Rand index (Hubert and Arabie, 1985): 1 for the same groups whatever their names, about 0 for random ones.

    The same as scikit-learn's, whose import would take a tenth of the time of ``mixbin groups``.
    """
    own, others = (np.unique(it, return_inverse=True)[1] for it in (labels, other))
    both = own * (others.max() + 1) + others
    together, of_own, of_others = (_pairs(np.bincount(it)) for it in (both, own, others))
    every = own.size * (own.size - 1) // 2
    if together == of_own == of_others:
        return 1.0
    expected = of_own * of_others / every
    return float((together - expected) / ((of_own + of_others) / 2 - expected))


def _pairs(sizes: NDArray[np.intp]) -> int:
    """The number of pairs within groups of these sizes."""
    return int(np.sum(sizes * (sizes - 1) // 2))

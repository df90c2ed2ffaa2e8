"""Where the kept rows lie: the coordinates of some rows in the plane of the first two principal components."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mixbin._validate import Floats
from mixbin.problem import Indices

SHOWN = 1_500
"""At most this many rows are shown of all rows, and of the kept ones."""


def where(take: Callable[[Indices], Floats], n_rows: int, S: Floats, kept: Indices, seed: int) -> dict[str, Any] | None:
    """The coordinates as lists; None if fewer than two columns vary.

    ``take`` returns the features of rows around their mean, ``S`` is the covariance of the features. Columns are in standard
    deviations, as for the penalties.
    """
    spread = np.sqrt(np.maximum(np.diag(S), 0.0))
    varying = spread > 0
    if np.count_nonzero(varying) < 2:
        return None
    scale = spread[varying]
    lengths, axes = np.linalg.eigh((S[np.ix_(varying, varying)] / scale) / scale[:, None])
    axes = axes[:, [-1, -2]]
    # An axis may point either way; this way does not depend on the machine.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    rng = np.random.default_rng(seed)
    some = np.sort(rng.choice(n_rows, min(SHOWN, n_rows), replace=False))
    chosen = kept if len(kept) <= SHOWN else np.sort(rng.choice(kept, SHOWN, replace=False))
    points = (take(np.concatenate([some, chosen]))[:, varying] / scale) @ axes
    rounded = [[float(f"{x:.4g}") for x in row] for row in points.tolist()]
    return {
        "all": rounded[: len(some)],
        "kept": rounded[len(some) :],
        "shares": (lengths[[-1, -2]] / lengths.sum()).tolist(),
        "n_kept": len(kept),
    }

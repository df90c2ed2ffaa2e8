"""Leaving the stationary points of the penalty that are not minimisers (SPEC section 1, "where the plain algorithm gets stuck").

k identical coordinates sit at j/k each with equal gradients for every small eps. Along e_i - e_j the slope of G + phi/eps is 0
and its curvature is that of the penalty, -4/eps: first order sees nothing, moving mass between them is descent all the same.
"""

import numpy as np

from mixbin.problem import Floats
from mixbin.sets import BinarySet

SAME = 1e-9
"""Entries are tied when theta and the gradient agree to this, relative to their ranges."""


def gather_ties(theta_set: BinarySet, theta: Floats, grad: Floats, rng: np.random.Generator) -> Floats | None:
    """``theta`` with the mass of each class of tied fractional entries gathered on as few of them as can hold it.

    Within a class the order is random, so that rows of a one-hot set do not all choose the same column. The sum of each class
    is kept, so the point stays in the set. None when no two entries are tied.
    """
    flat = theta.ravel()
    fractional = np.flatnonzero((flat > SAME) & (flat < 1.0 - SAME))
    if fractional.size < 2:
        return None
    g = grad.ravel()[fractional]
    g_range = float(np.max(grad) - np.min(grad))
    keys = np.broadcast_to(theta_set.exchange_key, theta.shape).ravel()[fractional]
    level = np.round(flat[fractional] / SAME)
    slope = np.round(g / (SAME * g_range)) if g_range > 0 else np.zeros(g.size)

    order = np.lexsort((rng.random(g.size), slope, level, keys))
    same = np.ones(g.size, dtype=np.bool_)
    same[0] = False
    for field in (keys, level, slope):
        same[1:] &= field[order[1:]] == field[order[:-1]]
    if not same.any():
        return None
    first = np.flatnonzero(~same)
    mass = np.add.reduceat(flat[fractional[order]], first)
    sizes = np.diff(np.append(first, g.size))
    rank = np.arange(g.size) - np.repeat(first, sizes)
    gathered = theta.copy()
    gathered.ravel()[fractional[order]] = np.clip(np.repeat(mass, sizes) - rank, 0.0, 1.0)
    return gathered

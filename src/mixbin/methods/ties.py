"""Leaving the stationary points of the penalty that are not minimisers (docs/maths.md, "Ties").

k identical coordinates sit at j/k each with equal gradients for every small eps. Along e_i - e_j the slope of G + phi/eps is 0
and its curvature is that of the penalty, -4/eps: first order sees nothing, moving mass between them is descent all the same.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin.problem import Floats
from mixbin.sets import BinarySet

SAME = 1e-9
"""Entries are tied when theta and the gradient agree to this, relative to their ranges."""
ODD = np.uint64(0x9E3779B97F4A7C15)
ENTRIES_AT_ONCE = 2**16


def gather_ties(theta_set: BinarySet, theta: Floats, grad: Floats, rng: np.random.Generator) -> Floats | None:
    """``theta`` with the mass of each class of tied fractional entries gathered on as few of them as can hold it.

    Within a class the order is random, so that rows of a one-hot set do not all choose the same column. The sum of each class
    is kept, so the point stays in the set. None when no two entries are tied.
    """
    flat = theta.ravel()
    fractional = (flat > SAME) & (flat < 1.0 - SAME)
    if np.count_nonzero(fractional) < 2:
        return None
    scale = SAME * float(np.max(grad) - np.min(grad)) or np.inf
    level, slope = _rounded(flat[fractional], SAME), _rounded(grad.ravel()[fractional], scale)
    # Of a long vector mostly few entries may be tied, and these alone are sorted further.
    some = _maybe_tied(level, slope)
    chance = rng.random(slope.size)[some]
    place = np.flatnonzero(fractional)[some]
    fields = [level[some], slope[some]]
    if np.ndim(theta_set.exchange_key):
        fields.append(np.broadcast_to(theta_set.exchange_key, theta.shape).ravel()[place])
    del fractional, level, slope, some
    if place.size < 2:
        return None

    order = np.lexsort((chance, fields[1], fields[0], *fields[2:]))
    same = np.ones(order.size, dtype=np.bool_)
    same[0] = False
    for field in fields:
        same[1:] &= field[order[1:]] == field[order[:-1]]
    if not same.any():
        return None
    del fields, field, chance
    first = np.flatnonzero(~same)
    place = place[order]
    mass = np.add.reduceat(flat[place], first)
    sizes = np.diff(np.append(first, place.size))
    left = np.repeat(mass, sizes)
    left -= np.arange(place.size) - np.repeat(first, sizes)
    gathered = theta.copy()
    gathered.ravel()[place] = np.clip(left, 0.0, 1.0, out=left)
    return gathered


def _rounded(x: Floats, unit: float) -> Floats:
    """A vector in whole units, without negative zeros; it is overwritten."""
    x /= unit
    np.round(x, out=x)
    x += 0.0
    return x


def _maybe_tied(level: Floats, slope: Floats) -> NDArray[np.bool_]:
    """The entries that agree in both with another one, and perhaps a few more: compared by one number from the bits of both."""
    ordered = np.sort(_mixed(level, slope))
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    tied = np.zeros(slope.size, dtype=np.bool_)
    if twice.size:
        for i in range(0, slope.size, ENTRIES_AT_ONCE):
            key = _mixed(level[i : i + ENTRIES_AT_ONCE], slope[i : i + ENTRIES_AT_ONCE])
            tied[i : i + ENTRIES_AT_ONCE] = twice[np.minimum(np.searchsorted(twice, key), twice.size - 1)] == key
    return tied


def _mixed(level: Floats, slope: Floats) -> NDArray[np.uint64]:
    mixed = level.view(np.uint64) * ODD
    mixed ^= slope.view(np.uint64)
    return mixed

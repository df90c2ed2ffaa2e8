"""Leave stationary points of the penalised problem that are not minimisers (docs/maths.md, "Ties").

k identical coordinates can all stay at j/k with equal gradients for every small eps. Along e_i - e_j the slope of G + phi/eps is
0, so a first-order solver sees no descent. But the curvature there is that of the penalty, -4/eps: moving mass from one of the
coordinates to another lowers G + phi/eps.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin.problem import Floats
from mixbin.sets import BinarySet

SAME = 1e-9
"""Two entries are tied if their theta and their gradients agree up to this share of the range of each."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""Multiplying by this odd number (2**64 divided by the golden ratio) is one-to-one and spreads the bits of a key."""
ENTRIES_AT_ONCE = 2**16
"""Keys are looked up in parts of this length, so that the temporary arrays stay short."""


def gather_ties(theta_set: BinarySet, theta: Floats, grad: Floats, rng: np.random.Generator) -> Floats | None:
    """Move the mass of tied fractional entries to as few of them as can hold it; return the new theta, or None without ties.

    A class consists of entries that are tied with each other. Its mass fills the entries in random order, so that the rows of a
    one-hot set do not all choose the same column. The sum of each class stays the same, so the point stays in the set.
    """
    flat = theta.ravel()
    fractional = (flat > SAME) & (flat < 1.0 - SAME)
    if np.count_nonzero(fractional) < 2:
        return None
    # If all gradients are equal, every slope is divided by inf and rounds to 0: all are tied.
    scale = SAME * float(np.max(grad) - np.min(grad)) or np.inf
    level, slope = _rounded(flat[fractional], SAME), _rounded(grad.ravel()[fractional], scale)
    # In a long vector usually few entries are tied. Only these are sorted below.
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
    """``x`` in whole units, overwritten in place. Adding 0 removes negative zeros, since ``_mixed`` compares bits."""
    x /= unit
    np.round(x, out=x)
    x += 0.0
    return x


def _maybe_tied(level: Floats, slope: Floats) -> NDArray[np.bool_]:
    """The entries that share level and slope with another entry, and perhaps a few more.

    Entries are compared by one key from the bits of both numbers, so different entries may collide; the caller compares again.
    """
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

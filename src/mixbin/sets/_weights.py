"""The least weight 1/eps that makes a binary point a strict local minimiser of <g, .> + phi/eps over its set.

These are the conditions of docs/maths.md, "Certificates of a binary point". Near a binary point the penalty's slope is +1 for
entries that are off and -1 for entries that are on, so moving an entry away from its value costs 1/eps per unit. Each function
returns the weight at which this cost equals the steepest descent that g offers along a feasible direction; 0 if g offers no
descent.
"""

import numpy as np

from mixbin.sets.base import Bools, Floats

LARGEST_PRODUCT = 1e290
"""If a derivative times a weight could exceed this, all derivatives are first divided by a power of two (which is exact)."""


def flip_weight(on: Bools, g: Floats) -> float:
    """The weight for sets whose entries move independently: g_i < w for entries that are on, -g_i < w for the others."""
    return max(0.0, float(np.max(np.where(on, g, -g), initial=0.0)))


def exchange_weight(on: Bools, g: Floats) -> float:
    """The weight for sets in which mass moves from an entry i that is on to an entry j that is off: g_i - g_j < 2 w."""
    if on.all() or not on.any():
        return 0.0
    # Halved first: the difference of two of the largest numbers would overflow.
    return max(0.0, 0.5 * float(g[on].max()) - 0.5 * float(g[~on].min()))


def removal_weight(on: Bools, g: Floats) -> float:
    """The weight for sets in which an entry that is on may decrease alone: g_i < w."""
    return max(0.0, float(np.max(g[on], initial=0.0)))


def weighted_exchange_weight(on: Bools, g: Floats, b: Floats) -> float:
    """The weight for a tight knapsack, where mass moves along e_j/b_j - e_i/b_i: (g_i - w)/b_i < (g_j + w)/b_j for all pairs.

    The least such w is the largest ratio (g_i b_j - g_j b_i)/(b_i + b_j) over all pairs. Dinkelbach's iteration finds it in a few
    passes over the entries, without listing the pairs.
    """
    if on.all() or not on.any():
        return 0.0
    largest = float(np.abs(g).max())
    if largest > max(LARGEST_PRODUCT / max(1.0, float(b.max())), 1.0):  # the products below would overflow
        exponent = int(np.frexp(largest)[1])
        return float(np.ldexp(weighted_exchange_weight(on, np.ldexp(g, -exponent), b), exponent))
    g_on, b_on, g_off, b_off = g[on], b[on], g[~on], b[~on]
    w = 0.0
    while True:
        with np.errstate(over="ignore"):
            i, j = np.argmax((g_on - w) / b_on), np.argmin((g_off + w) / b_off)
        better = float((g_on[i] * b_off[j] - g_off[j] * b_on[i]) / (b_on[i] + b_off[j]))
        if not better > w:
            return w
        w = better


def inverse(weight: float) -> float:
    """eps* = 1/w; infinite if no weight is needed."""
    return 1.0 / weight if weight > 0 else np.inf

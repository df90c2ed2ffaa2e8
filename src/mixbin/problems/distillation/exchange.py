"""Compute J after an exchange of two rows, exactly and for many pairs at once.

This writes out the formulas of ``expansion`` for two rows with the weights D = diag(-1/m, 1/m). A row enters only through its
images under P and under P H P, so two thin matrix products give the terms of all pairs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problems.distillation.expansion import RowTerms

Indices = NDArray[np.intp]


class ExchangeTerms(NamedTuple):
    """What an exchange needs to know about one of its two rows. The arrays broadcast against those of the other row."""

    leverage: Floats  # a' P a
    bend: Floats  # a' P H P a
    residual: Floats  # (.., e): y - prediction
    slope: Floats  # (.., e): a' P grad


def pair_work(pairs: int, targets: int) -> int:
    """The multiply-adds that ``pair_changes`` needs for this number of pairs and of targets."""
    return pairs * (7 + 11 * targets)


def exchange_terms(rows: RowTerms, P_a_H: Floats) -> ExchangeTerms:
    """The terms of these rows for exchanges; ``P_a_H`` holds a' P H, one line per row."""
    leverage, bend = np.einsum("nd,nd->n", rows.a, rows.P_a), np.einsum("nd,nd->n", P_a_H, rows.P_a)
    return ExchangeTerms(leverage, bend, rows.residual, rows.slope)


def pair_changes(
    off: ExchangeTerms, on: ExchangeTerms, between: Floats, bend_between: Floats, weight: float
) -> tuple[Floats, Floats, Floats]:
    """The change of J when ``off`` loses ``weight`` and ``on`` gains it, and the two rows of C.

    ``between`` and ``bend_between`` are the entries of G and B for the two rows. An empty row, which stands for no row at all,
    has zeros in G and R; its row of C is therefore zero and it changes nothing.
    """
    if off.residual.shape[-1] == 1:
        return _one_target(off, on, between, bend_between, weight)
    keep, into, cross = 1.0 - weight * off.leverage, 1.0 + weight * on.leverage, weight * between
    # The 2 x 2 matrix D^-1 + G inverted by hand. Its determinant is -(keep * into + cross^2) / weight^2.
    factor = (weight / (keep * into + cross * cross))[..., None]
    C_off = factor * (cross[..., None] * on.residual - into[..., None] * off.residual)
    C_on = factor * (keep[..., None] * on.residual + cross[..., None] * off.residual)
    change = (off.slope * C_off + on.slope * C_on).sum(axis=-1)
    change += 0.5 * (off.bend * (C_off * C_off).sum(axis=-1) + on.bend * (C_on * C_on).sum(axis=-1))
    change += bend_between * (C_off * C_on).sum(axis=-1)
    return change, C_off, C_on


def _one_target(
    off: ExchangeTerms, on: ExchangeTerms, between: Floats, bend_between: Floats, weight: float
) -> tuple[Floats, Floats, Floats]:
    """The same for one target: sums over an axis of length 1 would take most of the time."""
    keep, into, cross = 1.0 - weight * off.leverage, 1.0 + weight * on.leverage, weight * between
    out, put = off.residual[..., 0], on.residual[..., 0]
    factor = weight / (keep * into + cross * cross)
    C_off = factor * (cross * put - into * out)
    C_on = factor * (keep * put + cross * out)
    change = off.slope[..., 0] * C_off
    change += on.slope[..., 0] * C_on
    change += 0.5 * (off.bend * (C_off * C_off) + on.bend * (C_on * C_on))
    change += bend_between * (C_off * C_on)
    return change, C_off[..., None], C_on[..., None]


def single_changes(rows: ExchangeTerms, gain: Floats) -> Floats:
    """The change of J when each of these rows alone gains this weight: the rank-one case of ``expansion``."""
    C = (gain / (1.0 + gain * rows.leverage))[:, None] * rows.residual
    return np.asarray((rows.slope * C).sum(axis=1) + 0.5 * rows.bend * (C * C).sum(axis=1))


def exchange_changes(off: RowTerms, on: RowTerms, i: Indices, j: Indices, H: Floats, weight: float) -> Floats:
    """The change of J when row off[i] loses ``weight`` and row on[j] gains it, for each pair (i, j)."""
    P_off_H = off.P_a @ H
    ends = (
        ExchangeTerms(*(x[i] for x in exchange_terms(off, P_off_H))),
        ExchangeTerms(*(x[j] for x in exchange_terms(on, on.P_a @ H))),
    )
    between, bend_between = _pairwise(off.a, on.P_a, i, j), _pairwise(P_off_H, on.P_a, i, j)
    return pair_changes(ends[0], ends[1], between, bend_between, weight)[0]


def _pairwise(left: Floats, right: Floats, i: Indices, j: Indices) -> Floats:
    """<left[i], right[j]> for each pair. If a quarter of all products or more is wanted, one matrix product gives them all."""
    if i.size * 4 >= len(left) * len(right):
        return np.asarray((left @ right.T)[i, j])
    return np.asarray(np.einsum("nd,nd->n", left[i], right[j]))

"""Projection onto the capped simplex {0 <= x <= 1, sum x = k}, in linear time and exact to rounding.

The projection of a is clip(a - t, 0, 1) where t solves g(t) = sum clip(a - t, 0, 1) = k. g is piecewise linear and falls, with
breakpoints a_i (entry i reaches 0) and a_i - 1 (it leaves 1), and t lies within 1 below the k-th largest entry (Kiwiel's search).
For long vectors a sample gives a bracket of t that is narrow and almost certainly right; one pass over a evaluates g at its low
end exactly and keeps the few breakpoints inside. Where the sample misled, the bracket of the k-th largest entry is certain.
"""

import math
from typing import NamedTuple

import numpy as np

from mixbin.sets.base import Floats

BLOCK = 1 << 15
"""Entries per step of a pass, so that its buffers stay in the cache."""
SAMPLE = 1 << 16
"""Entries that are looked at first; vectors up to twice as long are sorted instead."""
MANY = SAMPLE // 12
"""With more sampled breakpoints than this in the bracket, another pass to narrow it costs less than keeping them."""
FEW = 1 << 10
"""So many breakpoints are merged at once; more are first halved at a median."""
FAR = 1e3
"""Relative to a centre farther than this from t, the entries near t would be rounded: only a closer one is used."""
TOLERANCE = 2.0 * float(np.finfo(np.float64).eps)
"""The sum of the result meets k to this relative error, its own rounding."""


class _Bracket(NamedTuple):
    """The multiplier lies between centre + low and centre + high; all entries are taken relative to the centre."""

    centre: float
    low: float
    high: float


class _Piece(NamedTuple):
    """The multiplier centre + left + step, on a piece of g with this many free entries."""

    centre: float
    left: float
    step: float
    free: int


class _Scan(NamedTuple):
    """What one pass tells about g on a bracket."""

    total: float
    """g at its low end."""
    free_above: int
    """Entries strictly between 0 and 1 just above the low end: minus the slope of g there."""
    free_below: int
    """The same just below the high end."""
    zeros: Floats
    """Breakpoints strictly inside, of entries that reach 0."""
    ones: Floats
    """Breakpoints strictly inside, of entries that leave 1."""


def project_capped_simplex(a: Floats, k: int) -> Floats:
    """The point of {0 <= x <= 1, sum x = k} nearest to a finite vector, for 1 <= k <= its length."""
    if k == a.size:
        return np.ones(a.size)
    sample = _sample(a)
    if sample[0] == sample[-1] and a.min() == a.max():
        return np.full(a.size, k / a.size)
    snap = bool(sample[0] >= 0.0 and sample[-1] <= 1.0)
    if sample.size < a.size and (piece := _sampled_piece(a, k, sample)):
        out, residual = _clipped(a, k, piece, snap)
        if abs(residual) <= 4.0 * TOLERANCE * k:
            return out
        del out
    # Few entries are searched in sorted order, which is faster; the k-th largest of many is found without sorting.
    few = sample.size == a.size
    bracket = _certain_bracket(sample if few else np.partition(a, a.size - k), k)
    piece = _search(sample if few else a, k, bracket)
    assert piece is not None, "the bracket of the k-th largest entry holds by proof"
    return _clipped(a, k, piece, snap)[0]


def project_at_most(a: Floats, k: int) -> Floats:
    """The point of {0 <= x <= 1, sum x <= k} nearest to a finite vector: its own entries clipped, if they keep to the budget."""
    buffer = np.empty(min(BLOCK, a.size))
    blocks = (a[i : i + BLOCK] for i in range(0, a.size, BLOCK))
    total = math.fsum(_fill(buffer[: block.size], block, 0.0, 0.0) for block in blocks)
    return np.asarray(np.clip(a, 0.0, 1.0)) if total <= (1.0 + TOLERANCE) * k else project_capped_simplex(a, k)


def _sample(a: Floats) -> Floats:
    """A sorted sample, of all entries when they are few; always the same for the same vector."""
    if a.size <= 2 * SAMPLE:
        return np.sort(a)
    return np.sort(a[np.random.default_rng(0).integers(a.size, size=SAMPLE)])


def _certain_bracket(ordered: Floats, k: float) -> _Bracket:
    """The bracket that always holds, from a vector with its ceil(k)-th largest entry in place.

    At that entry only the k - 1 before it can be positive, and 1 below it at least k entries are at 1.
    """
    return _Bracket(float(ordered[ordered.size - math.ceil(k)]), -1.0, 0.0)


def _search(a: Floats, k: float, bracket: _Bracket) -> _Piece | None:
    """The multiplier where g = k, or None when it is not inside the bracket."""
    scan = _scan(a, bracket)
    zeros, ones, free = scan.zeros, scan.ones, scan.free_above
    excess, low, high = scan.total - k, bracket.low, bracket.high
    if excess < 0.0:
        return None
    zeros.sort()
    ones.sort()
    while zeros.size + ones.size > FEW:
        longer = zeros if zeros.size > ones.size else ones
        pivot = longer[longer.size // 2]
        i, j = np.searchsorted(zeros, pivot), np.searchsorted(ones, pivot)
        fall = free * (pivot - low) - np.sum(pivot - zeros[:i]) + np.sum(pivot - ones[:j])
        if fall >= excess:
            high, zeros, ones = pivot, zeros[:i], ones[:j]
        else:
            i, j = np.searchsorted(zeros, pivot, side="right"), np.searchsorted(ones, pivot, side="right")
            free, excess, low = free + int(j - i), excess - fall, pivot
            zeros, ones = zeros[i:], ones[j:]
    return _walk(bracket.centre, excess, free, low, high, zeros, ones)


def _walk(centre: float, excess: float, free: int, low: float, high: float, zeros: Floats, ones: Floats) -> _Piece | None:
    """Where g has fallen by ``excess`` after ``low``: every breakpoint changes its slope, the number of free entries, by one."""
    points = np.concatenate([zeros, ones])
    order = np.argsort(points, kind="stable")
    counts = free + np.concatenate([[0], np.cumsum(np.where(order < zeros.size, -1, 1))])
    points = np.concatenate([[low], points[order], [high]])
    falls = np.cumsum(counts * np.diff(points))
    i = int(np.searchsorted(falls, excess))
    if i == falls.size:
        return None
    rest, slope = excess - (float(falls[i - 1]) if i else 0.0), max(int(counts[i]), 1)
    return _Piece(centre, float(points[i]), float(rest) / slope, slope)


def _scan(a: Floats, bracket: _Bracket) -> _Scan:
    """One pass over ``a``, in blocks that stay in the cache."""
    centre, low, high = bracket
    totals, free_above, free_below = [], 0, 0
    zeros: list[Floats] = []
    ones: list[Floats] = []
    buffers = np.empty((2, min(BLOCK, a.size)))
    with np.errstate(over="ignore"):
        for i in range(0, a.size, BLOCK):
            block = a[i : i + BLOCK]
            y, x = buffers[:, : block.size]
            np.subtract(block, centre, out=y)
            np.clip(np.subtract(y, low, out=x) if low else y, 0.0, 1.0, out=x)
            totals.append(float(x.sum()))
            for kept, offset, sign in ((zeros, 0.0, 1), (ones, 1.0, -1)):
                above, beyond = y > low + offset, y >= high + offset
                n_above, n_beyond = int(np.count_nonzero(above)), int(np.count_nonzero(beyond))
                free_above += sign * n_above
                free_below += sign * n_beyond
                if n_above > n_beyond:
                    kept.append(y[above ^ beyond] - offset)
    return _Scan(math.fsum(totals), free_above, free_below, _joined(zeros), _joined(ones))


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.empty(0)


def _sampled_piece(a: Floats, k: int, sample: Floats) -> _Piece | None:
    """The multiplier from a bracket that the sample suggests, or None where the sample misled."""
    per_entry = sample.size / a.size
    low, high = _sampled_ends(sample, k * per_entry)
    if low == -math.inf:
        low = float(a.min()) - 1.0
    if high == math.inf:
        high = float(a.max())
    inside = _inside(sample, low, high)
    while inside.size > MANY:
        pivot = float(np.partition(inside, inside.size // 2)[inside.size // 2])
        scan = _scan(a, _Bracket(pivot, 0.0, 0.0))
        excess = scan.total - k
        low, high = _narrowed(sample, pivot, excess * per_entry, low, high)
        inside = _inside(sample, low, high)
        if inside.size == 0:
            # g looks linear from the pivot on (ties): the sum of the result will tell whether it was.
            free = max(scan.free_above if excess > 0.0 else scan.free_below, 1)
            return _Piece(pivot, 0.0, excess / free, free)
    return _search(a, k, _Bracket(low, 0.0, high - low)) if high - low <= FAR else None


def _sampled_ends(sample: Floats, expected: float) -> tuple[float, float]:
    """Multipliers of the sample four standard deviations above and below its budget; infinite where it has none."""
    margin = 4.0 * math.sqrt(expected * (1.0 - expected / sample.size)) + 4.0
    return _multiplier(sample, expected + margin), _multiplier(sample, expected - margin)


def _narrowed(sample: Floats, pivot: float, excess: float, low: float, high: float) -> tuple[float, float]:
    """The bracket after g(pivot) is known: on one side of it, as far as the sample falls by the excess.

    From the pivot to t no entry changes by more than their distance: the sample's error is far smaller than that of g itself.
    """
    target = _total(sample, pivot) - excess
    distance = abs(_multiplier(sample, target) - pivot)
    margin = 4.0 * math.sqrt(abs(excess) * distance) + 4.0 * distance
    left, right = (pivot, high) if excess > 0.0 else (low, pivot)
    return max(left, _multiplier(sample, target + margin)), min(right, _multiplier(sample, target - margin))


def _multiplier(sample: Floats, count: float) -> float:
    """Where a sorted vector's own g meets ``count``."""
    if not 0.0 < count <= sample.size:
        return math.inf if count <= 0.0 else -math.inf
    bracket = _certain_bracket(sample, count)
    piece = _search(sample, count, bracket)
    # Only its high end can be missed, by rounding, when the count is barely more than a whole number.
    return bracket.centre if piece is None else bracket.centre + (piece.left + piece.step)


def _inside(sample: Floats, low: float, high: float) -> Floats:
    """The breakpoints of the sample strictly between ``low`` and ``high``."""
    # Compared as they are rounded: a pivot taken from them must be outside every bracket that ends at it.
    points = np.concatenate([sample, sample - 1.0])
    return points[(points > low) & (points < high)]


def _total(sample: Floats, t: float) -> float:
    """The sample's own g(t)."""
    return float(np.clip(sample - t, 0.0, 1.0).sum())


def _clipped(a: Floats, k: int, piece: _Piece, snap: bool) -> tuple[Floats, float]:
    """clip(a - t, 0, 1), with t corrected until the rounded entries sum to k, and by how much they miss it.

    With ``snap`` a multiplier that is 0 to rounding becomes 0 where that meets k: points of the set come back unchanged.
    """
    # t as an unevaluated sum of two floats: near t the difference to the first is exact, the second carries what it left out.
    t, rest = _two_sum(piece.centre, piece.left)
    t, more = _two_sum(t, piece.step)
    rest += more
    out = np.empty(a.size)
    if snap and abs(t + rest) <= TOLERANCE:
        residual = _fill(out, a, 0.0, 0.0) - k
        if abs(residual) <= TOLERANCE * k:
            return out, residual
    if piece.free * abs(rest) <= TOLERANCE / 2.0 * k:
        rest = 0.0
    residual = _fill(out, a, t, rest) - k
    while abs(residual) > TOLERANCE * k:
        better = rest + residual / piece.free
        last, residual = residual, _fill(out, a, t, better) - k
        if abs(residual) > abs(last) / 2.0:
            if abs(residual) > abs(last):
                residual = _fill(out, a, t, rest) - k
            break
        rest = better
    return out, residual


def _two_sum(p: float, q: float) -> tuple[float, float]:
    """The sum rounded, and the rounding error (Knuth)."""
    s = p + q
    back = s - p
    return s, (p - (s - back)) + (q - back)


def _fill(out: Floats, a: Floats, t: float, rest: float) -> float:
    """Write clip(a - t - rest, 0, 1) and return its sum."""
    totals = []
    with np.errstate(over="ignore"):
        for i in range(0, a.size, BLOCK):
            x = np.subtract(a[i : i + BLOCK], t, out=out[i : i + BLOCK])
            if rest:
                x -= rest
            totals.append(float(np.clip(x, 0.0, 1.0, out=x).sum()))
    return math.fsum(totals)

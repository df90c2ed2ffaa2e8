"""Projection onto the capped simplex {0 <= x <= 1, sum x = k}, in linear time and exact to rounding.

The projection of a is clip(a - t, 0, 1), where the multiplier t solves g(t) = sum clip(a - t, 0, 1) = k (docs/maths.md,
"Projection onto a budget"). g is piecewise linear and does not increase. Its breakpoints are a_i (entry i reaches 0) and a_i - 1
(entry i leaves 1), and t lies at most 1 below the k-th largest entry (Kiwiel's search).

For a long vector, a random sample suggests a narrow bracket that almost certainly contains t. One pass over the vector then
computes g at the low end of the bracket exactly and collects the few breakpoints inside it. If the sample was misleading, the
search falls back on the bracket given by the k-th largest entry, which always contains t.
"""

import math
from typing import NamedTuple

import numpy as np

from mixbin.sets.base import Floats

CACHE_BLOCK = 1 << 15
"""A pass over a long vector handles this many entries at a time, so that its buffers stay in the processor's cache."""
SAMPLE_SIZE = 1 << 16
"""Number of entries in the random sample; a vector of at most twice this length is sorted instead of sampled."""
MOST_SAMPLED_BREAKPOINTS = SAMPLE_SIZE // 12
"""While more sampled breakpoints than this lie in the bracket, another pass narrows it: collecting them all would cost more."""
MERGED_AT_ONCE = 1 << 10
"""Up to this many breakpoints are sorted and searched at once; a longer list is first halved at its median, repeatedly."""
WIDEST_BRACKET = 1e3
"""A sampled bracket wider than this is not used: t could lie so far from the centre that the entries near t, which are stored
relative to the centre, would lose digits."""
SHORT = 64
"""A vector of at most this length is searched number by number."""
SUM_TOLERANCE = 2.0 * float(np.finfo(np.float64).eps)
"""Largest relative error of the result's sum: two roundings."""


class _Bracket(NamedTuple):
    """The multiplier lies between centre + low and centre + high.

    Entries are stored relative to the centre, because differences of large entries near t are exact while t itself is not.
    """

    centre: float
    low: float
    high: float


class _Piece(NamedTuple):
    """The multiplier t = centre + left + step; on its linear piece of g, ``free`` entries lie strictly between 0 and 1."""

    centre: float
    left: float
    step: float
    free: int


class _Scan(NamedTuple):
    """What one pass over the vector finds out about g on a bracket."""

    total: float
    """g at the low end of the bracket."""
    free_above: int
    """Number of entries strictly between 0 and 1 just above the low end, which is minus the slope of g there."""
    free_below: int
    """Number of entries strictly between 0 and 1 just below the high end."""
    zeros: Floats
    """Breakpoints strictly inside the bracket at which an entry reaches 0."""
    ones: Floats
    """Breakpoints strictly inside the bracket at which an entry leaves 1."""


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
        if abs(residual) <= 4.0 * SUM_TOLERANCE * k:
            return out
        del out
    # A short vector is sorted already (it is its own sample). In a long one, np.partition finds the k-th largest entry faster.
    few = sample.size == a.size
    bracket = _certain_bracket(sample if few else np.partition(a, a.size - k), k)
    short = few and a.size <= SHORT
    piece = _short_search(sample, k, bracket) if short else _search(sample if few else a, k, bracket, certain=True)
    assert piece is not None, "the bracket of the k-th largest entry holds by proof"
    return _clipped(a, k, piece, snap)[0]


def project_at_most(a: Floats, k: int) -> Floats:
    """The point of {0 <= x <= 1, sum x <= k} nearest to a finite vector: the clipped vector itself if its sum is at most k."""
    buffer = np.empty(min(CACHE_BLOCK, a.size))
    blocks = (a[i : i + CACHE_BLOCK] for i in range(0, a.size, CACHE_BLOCK))
    total = math.fsum(_fill(buffer[: block.size], block, 0.0, 0.0) for block in blocks)
    return np.asarray(np.clip(a, 0.0, 1.0)) if total <= (1.0 + SUM_TOLERANCE) * k else project_capped_simplex(a, k)


def _sample(a: Floats) -> Floats:
    """A sorted random sample, or all entries of a short vector; the seed is fixed, so equal vectors give equal samples."""
    if a.size <= 2 * SAMPLE_SIZE:
        return np.sort(a)
    return np.sort(a[np.random.default_rng(0).integers(a.size, size=SAMPLE_SIZE)])


def _certain_bracket(ordered: Floats, k: float) -> _Bracket:
    """A bracket that always contains t, from a vector whose ceil(k)-th largest entry is where sorting would put it.

    Proof: with t equal to that entry, at most k - 1 entries are positive, so g(t) < k; with t smaller by 1, at least k entries
    are at 1, so g(t) >= k.
    """
    return _Bracket(float(ordered[ordered.size - math.ceil(k)]), -1.0, 0.0)


def _search(a: Floats, k: float, bracket: _Bracket, certain: bool = False) -> _Piece | None:
    """The multiplier where g = k, or None if it does not lie inside the bracket.

    In a ``certain`` bracket it does. If it lies at an end, rounding can put it just outside: the piece at that end is the answer.
    """
    scan = _scan(a, bracket)
    zeros, ones, free = scan.zeros, scan.ones, scan.free_above
    excess, low, high = scan.total - k, bracket.low, bracket.high
    if excess < 0.0 and not certain:
        return None
    zeros.sort()
    ones.sort()
    while zeros.size + ones.size > MERGED_AT_ONCE:
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
    return _last_piece(bracket.centre, excess, free, low, high, zeros, ones, certain)


def _short_search(ordered: Floats, k: int, bracket: _Bracket) -> _Piece:
    """What ``_search`` finds, to the bit, in a certain bracket of a short sorted vector.

    Plain numbers take less time there than calls on arrays.
    """
    centre, low, high = bracket
    with np.errstate(over="ignore"):
        relative = ordered - centre
        excess = float((relative - low).clip(0.0, 1.0).sum()) - k
    y = relative.tolist()
    zeros = [x for x in y if low < x < high]
    ones = [x - 1.0 for x in y if low + 1.0 < x < high + 1.0]
    free = sum(x > low for x in y) - sum(x > low + 1.0 for x in y)
    fallen, left = 0.0, low
    for point, change in sorted([(x, -1) for x in zeros] + [(x, 1) for x in ones], key=lambda breakpoint: breakpoint[0]):
        further = fallen + free * (point - left)
        if further >= excess:
            break
        fallen, free, left = further, free + change, point
    slope = max(free, 1)
    return _Piece(centre, left, (excess - fallen) / slope, slope)


def _last_piece(
    centre: float, excess: float, free: int, low: float, high: float, zeros: Floats, ones: Floats, certain: bool
) -> _Piece | None:
    """The linear piece on which g has fallen by ``excess`` since ``low``, or None if g does not fall that far before ``high``.

    Every breakpoint changes the number of free entries, which is minus the slope of g, by one. If the bracket is ``certain``, g
    falls that far, and it is rounding that says otherwise: the piece before ``high`` is returned. This happens where t is a
    breakpoint of many tied entries, which the halving above has put at the high end.
    """
    points = np.concatenate([zeros, ones])
    order = np.argsort(points, kind="stable")
    counts = free + np.concatenate([[0], np.cumsum(np.where(order < zeros.size, -1, 1))])
    points = np.concatenate([[low], points[order], [high]])
    falls = np.cumsum(counts * np.diff(points))
    i = int(np.searchsorted(falls, excess))
    if i == falls.size:
        if not certain:
            return None
        i -= 1
    rest, slope = excess - (float(falls[i - 1]) if i else 0.0), max(int(counts[i]), 1)
    return _Piece(centre, float(points[i]), float(rest) / slope, slope)


def _scan(a: Floats, bracket: _Bracket) -> _Scan:
    """Evaluate g at the low end of the bracket and collect the breakpoints inside it, in one pass over ``a``."""
    centre, low, high = bracket
    totals, free_above, free_below = [], 0, 0
    zeros: list[Floats] = []
    ones: list[Floats] = []
    buffers = np.empty((2, min(CACHE_BLOCK, a.size)))
    with np.errstate(over="ignore"):
        for i in range(0, a.size, CACHE_BLOCK):
            block = a[i : i + CACHE_BLOCK]
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
    """The multiplier, searched in a bracket that the sample suggests; None if the sample was misleading."""
    per_entry = sample.size / a.size
    low, high = _sampled_ends(sample, k * per_entry)
    if low == -math.inf:
        low = float(a.min()) - 1.0
    if high == math.inf:
        high = float(a.max())
    inside = _inside(sample, low, high)
    while inside.size > MOST_SAMPLED_BREAKPOINTS:
        pivot = float(np.partition(inside, inside.size // 2)[inside.size // 2])
        scan = _scan(a, _Bracket(pivot, 0.0, 0.0))
        excess = scan.total - k
        low, high = _narrowed(sample, pivot, excess * per_entry, low, high)
        inside = _inside(sample, low, high)
        if inside.size == 0:
            # The sample has no breakpoint left between the pivot and t (many ties do this), so take g to be linear there. If it
            # is not, the caller notices: the sum of the result misses k.
            free = max(scan.free_above if excess > 0.0 else scan.free_below, 1)
            return _Piece(pivot, 0.0, excess / free, free)
    return _search(a, k, _Bracket(low, 0.0, high - low)) if high - low <= WIDEST_BRACKET else None


def _sampled_ends(sample: Floats, expected: float) -> tuple[float, float]:
    """Multipliers at which the sample's g is four standard deviations above and below its expected value at t.

    An end is infinite if the sample cannot reach that value.
    """
    margin = 4.0 * math.sqrt(expected * (1.0 - expected / sample.size)) + 4.0
    return _multiplier(sample, expected + margin), _multiplier(sample, expected - margin)


def _narrowed(sample: Floats, pivot: float, excess: float, low: float, high: float) -> tuple[float, float]:
    """A narrower bracket, once g(pivot) is known to be ``excess`` above (or below) its target, in units of the sample.

    t lies on the side of the pivot towards which g approaches the target. Between the pivot and t no entry changes by more than
    their distance, so the sample estimates the *change* of g far more accurately than g itself; the margin is four standard
    deviations.
    """
    target = _total(sample, pivot) - excess
    distance = abs(_multiplier(sample, target) - pivot)
    margin = 4.0 * math.sqrt(abs(excess) * distance) + 4.0 * distance
    left, right = (pivot, high) if excess > 0.0 else (low, pivot)
    return max(left, _multiplier(sample, target + margin)), min(right, _multiplier(sample, target - margin))


def _multiplier(sample: Floats, count: float) -> float:
    """The multiplier at which the g of this sorted vector equals ``count``; infinite if no multiplier does that."""
    if not 0.0 < count <= sample.size:
        return math.inf if count <= 0.0 else -math.inf
    bracket = _certain_bracket(sample, count)
    piece = _search(sample, count, bracket)
    # The bracket contains t, but if the count is barely above a whole number, rounding can put t just beyond its high end.
    return bracket.centre if piece is None else bracket.centre + (piece.left + piece.step)


def _inside(sample: Floats, low: float, high: float) -> Floats:
    """The breakpoints of the sample strictly between ``low`` and ``high``."""
    # Compare the rounded breakpoints themselves, because a pivot is one of them: it must not lie inside a bracket that ends at
    # it, or the loop that narrows the bracket would not end.
    points = np.concatenate([sample, sample - 1.0])
    return points[(points > low) & (points < high)]


def _total(sample: Floats, t: float) -> float:
    """g(t) of the sample."""
    return float(np.clip(sample - t, 0.0, 1.0).sum())


def _clipped(a: Floats, k: int, piece: _Piece, snap: bool) -> tuple[Floats, float]:
    """clip(a - t, 0, 1), with t corrected until the rounded entries sum to k, and the difference of their sum from k.

    With ``snap``, a multiplier that is 0 up to rounding is replaced by 0 if the sum then still meets k. This returns points that
    are in the set already unchanged, to the last bit.
    """
    # t is kept as an unevaluated sum of two floats, t + rest. For entries near t the difference a - t is exact, and rest carries
    # the digits of the multiplier that do not fit into t.
    t, rest = _two_sum(piece.centre, piece.left)
    t, more = _two_sum(t, piece.step)
    rest += more
    out = np.empty(a.size)
    if snap and abs(t + rest) <= SUM_TOLERANCE:
        residual = _fill(out, a, 0.0, 0.0) - k
        if abs(residual) <= SUM_TOLERANCE * k:
            return out, residual
    if piece.free * abs(rest) <= SUM_TOLERANCE / 2.0 * k:
        rest = 0.0
    residual = _fill(out, a, t, rest) - k
    while abs(residual) > SUM_TOLERANCE * k:
        better = rest + residual / piece.free
        last, residual = residual, _fill(out, a, t, better) - k
        if abs(residual) > abs(last) / 2.0:
            if abs(residual) > abs(last):
                residual = _fill(out, a, t, rest) - k
            break
        rest = better
    return out, residual


def _two_sum(p: float, q: float) -> tuple[float, float]:
    """The rounded sum of two numbers and its exact rounding error (Knuth's TwoSum)."""
    s = p + q
    back = s - p
    return s, (p - (s - back)) + (q - back)


def _fill(out: Floats, a: Floats, t: float, rest: float) -> float:
    """Write clip(a - t - rest, 0, 1) into ``out`` and return its sum."""
    totals = []
    with np.errstate(over="ignore"):
        for i in range(0, a.size, CACHE_BLOCK):
            x = np.subtract(a[i : i + CACHE_BLOCK], t, out=out[i : i + CACHE_BLOCK])
            if rest:
                x -= rest
            totals.append(float(np.clip(x, 0.0, 1.0, out=x).sum()))
    return math.fsum(totals)

"""What ``moves`` and ``n_moves`` promise: every single move once, all to points of the set, the most promising first."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from mixbin.sets.base import Bools, Floats, Moves
from mixbin.testing.broken import Subject
from mixbin.testing.sets.points import Points

Move = tuple[int, int]

MOST_MOVES = 5_000
"""Up to this many moves of a point are all looked at."""
BATCHES = 3
"""Of more, the moves of the first batches, at most MOST_MOVES of each."""
MOST_ASKED = 100
"""``contains`` is asked about this many of them, at random: in a large set each answer takes a pass over theta."""


def check_moves(subject: Subject, points: Points, exchanges: bool | None) -> None:
    """Moves from some binary points of the set, with and without a gradient."""
    found, counts = [], []
    for trial, theta in enumerate(points.some_binary()):
        inputs = {"theta": theta}
        count = subject.call("n_moves", inputs)
        whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool) and count >= 0
        subject.require(whole, "n_moves", "must return a whole number", inputs, "an int of at least 0", count)
        few = count <= MOST_MOVES
        plain, ordered = _moves(subject, points, theta, None, few), _moves(subject, points, theta, points.anywhere(trial), few)
        if few:
            odd = sorted(set(plain) ^ set(ordered))
            promise = "must yield the same moves with and without a gradient"
            subject.require(not odd, "moves", promise, inputs, "the same moves", f"a difference in {odd[:3]}")
            found.append((theta, plain))
            counts.append(count)
    if exchanges is None:
        exchanges = _has_exchanges(points, found)
    for (theta, plain), count in zip(found, counts, strict=True):
        _check_complete(subject, points, theta, plain, exchanges)
        promise = "must be the number of moves that moves yields"
        subject.require(len(plain) == count, "n_moves", promise, {"theta": theta}, len(plain), count)


def _moves(subject: Subject, points: Points, theta: Bools, grad: Floats | None, few: bool) -> list[Move]:
    """The moves of a point, each of them checked."""
    inputs: dict[str, Any] = {"theta": theta} if grad is None else {"theta": theta, "grad": grad}
    slope = np.zeros(theta.size + 1) if grad is None else np.append(grad.ravel(), 0.0)
    found: list[Move] = []
    for batch in islice(subject.call("moves", inputs), None if few else BATCHES):
        off, on = _batch(subject, batch, inputs, theta.size)
        change = slope[on] - slope[off]
        promise = "must order a batch by grad[on] - grad[off], the lowest first"
        subject.require(bool(np.all(change[1:] >= change[:-1])), "moves", promise, inputs, np.sort(change), change)
        found += [(int(i), int(j)) for i, j in zip(off[:MOST_MOVES], on[:MOST_MOVES], strict=True)]
        if few and len(found) > MOST_MOVES:
            break
    known: set[Move] = set()
    for move in found:
        subject.require(move not in known, "moves", "must yield each move once", inputs, "each move once", f"{move} twice")
        known.add(move)
    for k in points.rng.permutation(len(found))[:MOST_ASKED]:
        _check_feasible(subject, points, theta, found[k], inputs)
    return found


def _batch(subject: Subject, batch: object, inputs: Mapping[str, Any], size: int) -> Moves:
    """The two arrays of a batch: flat indices into theta, or -1."""
    promise, expected = "must yield batches (off, on) of flat indices, with -1 for none", "two whole-number arrays of one length"
    if not isinstance(batch, tuple) or len(batch) != 2 or not all(isinstance(side, np.ndarray) for side in batch):
        raise subject.broken("moves", promise, inputs, expected, batch)
    off, on = batch
    whole = off.dtype.kind == on.dtype.kind == "i" and off.ndim == on.ndim == 1 and off.size == on.size > 0
    if not whole or min(off.min(), on.min()) < -1 or max(off.max(), on.max()) >= size:
        raise subject.broken("moves", promise, inputs, f"{expected}, from -1 to {size - 1}", batch)
    return off, on


def _check_feasible(subject: Subject, points: Points, theta: Bools, move: Move, inputs: Mapping[str, Any]) -> None:
    off, on = move
    flat = theta.ravel()
    switches = (off >= 0 or on >= 0) and (off < 0 or flat[off]) and (on < 0 or not flat[on])
    promise = "must switch entries off that are 1 and on that are 0"
    subject.require(bool(switches), "moves", promise, inputs, "off where theta is 1, on where theta is 0", move)
    inside = points.theta_set.contains(_after(theta, move).astype(np.float64))
    subject.require(inside, "moves", "must lead to points of the set only", inputs, "moves after which contains holds", move)


def _after(theta: Bools, move: Move) -> Bools:
    flat = np.append(theta.ravel(), False)
    flat[move[0]] = False
    flat[move[1]] = move[1] >= 0
    return np.asarray(flat[:-1].reshape(theta.shape))


def _has_exchanges(points: Points, found: list[tuple[Bools, list[Move]]]) -> bool:
    """Whether an exchange of two entries counts as a single move: if the set lists any, or cannot do without them."""
    if any(off >= 0 and on >= 0 for _, moves in found for off, on in moves):
        return True
    return any(not any(min(move) < 0 for move in _neighbours(points, theta, True)) for theta, _ in found if points.complete)


def _neighbours(points: Points, theta: Bools, exchanges: bool) -> list[Move]:
    """By brute force: the moves to all binary points of the set that differ in one entry, or in one off and one on."""
    found = []
    for v in points.binary:
        off, on = np.flatnonzero(theta & ~v), np.flatnonzero(v & ~theta)
        if max(off.size, on.size) == 1 and (exchanges or off.size + on.size == 1):
            found.append((int(off[0]) if off.size else -1, int(on[0]) if on.size else -1))
    return found


def _check_complete(subject: Subject, points: Points, theta: Bools, moves: list[Move], exchanges: bool) -> None:
    if not points.complete:
        return
    missing = sorted(set(_neighbours(points, theta, exchanges)) - set(moves))
    if missing:
        expected = f"(off, on) = {missing[0]} among them, which leads to a binary point of the set"
        raise subject.broken(
            "moves", "must yield every single move", {"theta": theta}, expected, f"{len(moves)} moves without it"
        )
    extra = sorted(set(moves) - set(_neighbours(points, theta, exchanges)))
    promise = "must yield single moves only" if exchanges else "must yield no exchanges, as exchanges=False says"
    subject.require(not extra, "moves", promise, {"theta": theta}, "single moves", extra[:3])

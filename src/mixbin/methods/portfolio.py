"""The searches after the path: where each begins, when they end, and what they have seen.

The path of start 0 costs some evaluations; ``starts`` times as many are the budget of the whole run. Each further search begins
at another binary point, and is polished like the end of the path.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from mixbin.certificate import proven_gap
from mixbin.checked_problem import CheckedProblem
from mixbin.methods.polish import moved
from mixbin.methods.settings import Settings
from mixbin.methods.state import Candidate, Progress
from mixbin.sets import BinarySet

Bools = NDArray[np.bool_]

ENOUGH_FINDS, SHARE_OF_STARTS = 16, 2
"""The searches end when ENOUGH_FINDS of them, not counting those that began near the best answer, have found the best value. If
they evaluate G all the way, ``starts`` / SHARE_OF_STARTS are enough."""
FRUITLESS = 40
"""The searches end when this many in a row have found nothing better."""
MOST_SEARCHES = 1_000
"""The searches end at this number in any case: those with an exact model may cost no evaluations."""
SAME_VALUE = 1e-9
"""Two answers count as equally good if their values differ by at most this share: the rest may be rounding."""
FEWEST_KICKS, MOST_KICKS, KICKED_SHARE = 2, 12, 0.15
"""A kick makes at least FEWEST_KICKS random moves, and at most KICKED_SHARE times the number of entries or MOST_KICKS."""
RANDOM, KICKED, PROPOSED, COMPARED = (
    "a random binary point",
    "the best answer after a few random moves",
    "a point that the problem proposed",
    "a comparison of all binary points",
)


def has_further_searches(settings: Settings) -> bool:
    """Whether the run goes on after the path: only with polish, which every further search consists of."""
    return settings.search == "portfolio" and settings.rounding == "penalise" and settings.starts > 1 and settings.polish > 0


def goes_on(at: Progress, settings: Settings) -> bool:
    """Whether another search may find something new, and whether the budget has room for one."""
    assert at.best is not None
    if at.compared:
        return False
    gap = proven_gap(at.lower_bound, at.best.value)
    if gap == 0 or gap < settings.gap_tol:
        return False
    enough = ENOUGH_FINDS if at.curvature is not None and at.curvature.exact else max(2, settings.starts // SHARE_OF_STARTS)
    return at.finds < enough and at.fruitless < FRUITLESS and at.searches < MOST_SEARCHES


def beginning(at: Progress, problem: CheckedProblem, rng: np.random.Generator) -> tuple[str, Bools]:
    """Where the next search begins: a text for the message, and the binary point."""
    assert at.best is not None
    # A problem that proposes points knows better than to begin at random.
    kinds = [RANDOM, KICKED] if problem.offers.proposals is None else [PROPOSED]
    kind = kinds[(at.start - 1) % len(kinds)]
    if kind == PROPOSED:
        return kind, problem.propose(at.best.theta.astype(np.float64), at.best.lam, rng)
    if kind == KICKED:
        return kind, kicked(problem.theta_set, at.best.theta, rng)
    return kind, random_vertex(problem.theta_set, rng)


def random_vertex(theta_set: BinarySet, rng: np.random.Generator) -> Bools:
    """A random binary point: the best one for random linear costs."""
    return theta_set.vertex(theta_set.linear_oracle(rng.normal(size=theta_set.shape)))


def kicked(theta_set: BinarySet, theta: Bools, rng: np.random.Generator) -> Bools:
    """``theta`` after a few random single moves."""
    most = min(max(int(KICKED_SHARE * theta_set.size), FEWEST_KICKS + 1), MOST_KICKS)
    for _ in range(int(rng.integers(FEWEST_KICKS, most + 1))):
        # Random numbers in place of the gradient put random moves first.
        off, on = next(iter(theta_set.moves(theta, rng.normal(size=theta_set.shape))), (np.empty(0), np.empty(0)))
        if off.size == 0:
            break
        pick = int(rng.integers(off.size))
        theta = moved(theta, off[pick], on[pick])
    return theta


def count_answer(at: Progress, theta: Bools, value: float) -> None:
    """Note the answer of a search. Must be called before the answer can become the best one."""
    at.searches += 1
    new = digest(theta) not in at.answers
    if new:
        at.answers = np.append(at.answers, digest(theta))
    if at.best is not None and _as_good(at.best, theta, value):
        at.times_best += 1
        # A search that begins near the best answer often falls back to it, which says little.
        at.finds += at.origin != KICKED
        at.fruitless += 1
    elif new and (at.best is None or value < at.best.value):
        at.times_best = at.finds = 1
        at.fruitless = 0
    else:
        at.fruitless += 1


def _as_good(best: Candidate, theta: Bools, value: float) -> bool:
    """Whether an answer is the best one, or as good up to rounding."""
    if np.array_equal(theta, best.theta) or value == best.value:
        return True
    return abs(value - best.value) <= SAME_VALUE * max(abs(value), abs(best.value))


def digest(theta: Bools) -> np.int64:
    """A hash of a binary point."""
    return np.int64(int.from_bytes(hashlib.blake2b(np.packbits(theta).tobytes(), digest_size=8).digest(), "little", signed=True))


def message(at: Progress, before: Candidate) -> str:
    """How the current search found a better answer than ``before``."""
    return f"found by search {at.start} from {at.origin}; the best answer before had the value {before.value:.6g}"

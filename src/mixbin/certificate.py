"""What can be said about a binary point (docs/maths.md, "Certificates of a binary point"), and no more than was checked."""

from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, isnan, log10, nan

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.errors import InvalidInput
from mixbin.problem import FALL, CheckedProblem, Floats, Indices, Problem
from mixbin.sets import BinarySet

ALL_MOVES = 10_000
"""Up to this number of single moves, all are tried; of more, a sample of this size."""
AT_ONCE = 32
"""How many moves a sample takes from one random draw of entries."""
ROUNDING = 1e-9
"""A value and a bound that differ by less than this share of the value are equal, up to rounding."""


@dataclass(frozen=True)
class Certificate:
    """Evidence about a binary point.

    Attributes
    ----------
    epsilon_star : float
        The point is a strict local minimiser of G + phi/eps in theta for every eps below this, and none above; inf for every eps.
        It rests on G being differentiable there.
    epsilon : float
        The last eps of the run that found the point; NaN without one.
    lipschitz : float
        The largest gradient seen on the path: a lower estimate of the theorem's constant L; NaN without a path.
    distance : float
        dist_inf to the binary points when the penalised stage ended; NaN without one.
    moves_tried, moves_total : int
        Single moves (flips, exchanges, row moves) evaluated exactly, and how many there are.
    best_change : float
        The change of G by the best of them: negative is an improvement that is left; NaN when none was tried.
    relaxed_gap : float
        The value minus that of the relaxed stage, NaN without one. G is not convex, so this is a comparison, not a bound.
    value : float
        G at the point; NaN where it was not noted.
    lower_bound : float
        What G does not fall below at any binary point, by the problem's ``lower_bound``; NaN without one.
    """

    epsilon_star: float
    epsilon: float = nan
    lipschitz: float = nan
    distance: float = nan
    moves_tried: int = 0
    moves_total: int = 0
    best_change: float = nan
    relaxed_gap: float = nan
    value: float = nan
    lower_bound: float = nan

    @property
    def gap(self) -> float:
        """How much better than this any answer can be at most, as a share of the value; NaN where nothing is claimed.

        Nothing is claimed without a lower bound, and where the bound is 0 up to rounding: that a loss cannot be negative is no
        news.
        """
        return proven_gap(self.lower_bound, self.value)

    @property
    def gap_in_percent(self) -> str:
        """The gap as a person reads it, rounded up: what is said must hold."""
        return _rounded_up(100 * self.gap)

    @property
    def one_move_optimal(self) -> bool | None:
        """True when every single move was tried and none lowers G, False when one does, None when not all were tried."""
        if self.best_change < 0:
            return False
        return True if self.moves_tried >= self.moves_total else None

    @property
    def condition(self) -> str:
        """Theorem 2's eps < (1 - 2c)/L: "consistent" or "violated" with what the path shows of L, "unknown" without a path.

        L is only known from below, so the condition is never proved.
        """
        if isnan(self.epsilon) or isnan(self.lipschitz) or isnan(self.distance):
            return "unknown"
        return "consistent" if self.epsilon * self.lipschitz < 1 - 2 * self.distance else "violated"

    def __str__(self) -> str:
        sentences = [self._moves_sentence(), self._penalty_sentence(), self._relaxed_sentence()]
        if not isnan(self.gap):
            sentences.append(self._bound_sentence())
        return " ".join(sentences)

    def _moves_sentence(self) -> str:
        if self.moves_total == 0:
            return "This is the only answer that one change could lead to."
        tried = f"{self.moves_tried:,} of the {self.moves_total:,}"
        if self.moves_tried == 0:
            return f"None of the {self.moves_total:,} single changes of this answer was tried."
        if self.one_move_optimal is False:
            return f"A single change would still improve this answer, by {-self.best_change:.3g} ({tried} tried)."
        if self.one_move_optimal:
            closest = f"; the closest one costs {self.best_change:.3g}" if isfinite(self.best_change) else ""
            return f"No single change improves this answer: all {self.moves_total:,} were tried{closest}."
        return f"No single change that was tried improves this answer: {tried} were; the others are not known."

    def _penalty_sentence(self) -> str:
        if self.epsilon_star == inf:
            held = "To first order every step away from it makes things worse, with or without a penalty"
        else:
            held = f"The penalty holds it in place for every eps below {self.epsilon_star:.3g}"
        if self.condition == "consistent":
            return f"{held}; the run ended at eps = {self.epsilon:.3g}, consistent with the theorem that makes it exactly binary."
        if self.condition == "violated":
            larger = f"the run ended at eps = {self.epsilon:.3g}, more than the theorem asks for (it is sufficient only)"
            return f"{held}; {larger}."
        return f"{held}."

    def _relaxed_sentence(self) -> str:
        if isnan(self.relaxed_gap):
            return "There is no relaxed solution to compare it with."
        bound = " (no bound, since the problem is not convex)" if isnan(self.gap) else ""
        if self.relaxed_gap == 0:
            return f"Its value equals that of the relaxed problem it came from{bound}."
        side = "above" if self.relaxed_gap > 0 else "below"
        return f"Its value is {abs(self.relaxed_gap):.3g} {side} that of the relaxed problem it came from{bound}."

    def _bound_sentence(self) -> str:
        if self.gap == 0:
            return "No answer is better."
        return f"No answer can be more than {self.gap_in_percent} % better."


def certify(
    problem: Problem, theta: ArrayLike, lam: ArrayLike | None = None, *, max_moves: int = ALL_MOVES, seed: int = 0
) -> Certificate:
    """Certify a binary point on its own: eps* from its gradient, single moves by exact evaluation, the problem's lower bound.

    Parameters
    ----------
    problem : Problem
        What the point is an answer to.
    theta : bool array
        Binary and feasible.
    lam : array, optional
        The continuous variables that go with it; may be left out where there are none.
    max_moves : int
        All single moves are tried when there are at most this many or the problem finds the best of them itself, else a random
        sample of this size.
    seed : int
        Draws the sample.
    """
    checked = CheckedProblem(problem)
    checked.where = "certify"
    theta_set = checked.theta_set
    point = check.array("theta", theta, shape=theta_set.shape)
    if not np.all((point == 0) | (point == 1)):
        raise check.fail("theta", theta, "binary", "round it first, for example with theta_set.vertex")
    if theta_set.violation(point) > 0:
        raise check.fail("theta", theta, f"a point of {theta_set!r}", f"it misses the set by {theta_set.violation(point):g}")
    at = check.array("lam", () if lam is None else lam, shape=checked.lam_set.shape)
    max_moves = check.whole("max_moves", max_moves, low=0)
    rng = check.generator("seed", seed)

    got = checked.evaluate(point, at)
    assert got.grad_theta is not None
    if not isfinite(got.value):
        raise check.fail("theta", theta, f"a point of finite value, not {got.value}", "there is nothing to certify")
    tried = total = theta_set.n_moves(point)
    best = checked.best_move(point, at) if checked.offers.search is not None and total and max_moves else None
    if best is not None:
        change = best[2] - got.value
    else:
        off, on = _some_moves(theta_set, point, total, max_moves, rng)
        tried, change = off.size, _best_value(checked, point, at, off, on) - got.value if off.size else nan
    epsilon_star = theta_set.epsilon_star(point, got.grad_theta)
    change = without_rounding(change, got.value)
    # The bound holds for every lam of the set, not for one outside.
    bound = checked.lower_bound(point, at) if checked.lam_set.contains(at) else -inf
    return Certificate(
        epsilon_star=epsilon_star,
        moves_tried=tried,
        moves_total=total,
        best_change=change,
        value=got.value,
        lower_bound=bound_below(bound, got.value),
    )


def bound_below(bound: float, value: float) -> float:
    """A problem's lower bound as a certificate keeps it: NaN for none, and the value where only rounding lifts it above."""
    if not isfinite(bound):
        return nan
    if bound > value + ROUNDING * abs(value):
        raise InvalidInput(
            f"the problem's lower_bound is wrong: it must not exceed the value of any answer, got {bound:.10g} where one has "
            f"{value:.10g}; return a number that no binary theta falls below with any lam, or -inf where none is known"
        )
    return min(bound, value)


def proven_gap(bound: float, value: float) -> float:
    """(value - bound) / |value|; NaN without a bound, and if the bound is 0 up to rounding."""
    if not isfinite(bound) or not isfinite(value) or value == 0 or abs(bound) <= ROUNDING * abs(value):
        return nan
    gap = max(value - bound, 0.0) / abs(value)
    return gap if isfinite(gap) else nan


def _rounded_up(number: float) -> str:
    """A number above 0 with two digits, never less than it is."""
    if number >= 10:
        return f"{ceil(number - ROUNDING):,}"
    unit = 10.0 ** (floor(log10(number)) - 1)
    return f"{ceil(number / unit - ROUNDING) * unit:.2g}"


def without_rounding(change: float, value: float) -> float:
    """A change of ``value`` that is lower by rounding alone is none."""
    return 0.0 if -FALL * abs(value) <= change < 0 else change


def _some_moves(theta_set: BinarySet, theta: Floats, total: int, most: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """All moves, or a random sample of ``most`` of them."""
    if total <= most:
        batches = list(theta_set.moves(theta))
    else:
        batches, drawn = [], 0
        while drawn < most:
            # Random numbers in place of a gradient bring random entries to the front, without listing all moves.
            off, on = next(iter(theta_set.moves(theta, rng.random(theta_set.shape))))
            part = rng.choice(off.size, min(AT_ONCE, off.size, most - drawn), replace=False)
            batches.append((off[part], on[part]))
            drawn += part.size
    if not batches:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    pairs = np.unique(np.column_stack([np.concatenate(side) for side in zip(*batches, strict=True)]), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _best_value(problem: CheckedProblem, theta: Floats, lam: Floats, off: Indices, on: Indices) -> float:
    """The lowest G after one of these moves, by exact evaluation."""
    if problem.offers.moves is not None:
        return float(problem.evaluate_moves(theta, lam, off, on).min())
    best = inf
    for i, j in zip(off, on, strict=True):
        after = theta.copy()
        if i >= 0:
            after.flat[i] = 0.0
        if j >= 0:
            after.flat[j] = 1.0
        best = min(best, problem.evaluate(after, lam, gradient=False).value)
    return best

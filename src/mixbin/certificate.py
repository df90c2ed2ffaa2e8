"""What is known about a binary point (docs/maths.md, "Certificates of a binary point"): only what was checked or proven."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import ceil, floor, inf, isfinite, isnan, log10, nan

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin._html import html_table
from mixbin._numbers import readable
from mixbin.checked_problem import CheckedProblem
from mixbin.errors import InvalidInput
from mixbin.problem import FALL, Floats, Indices, Problem
from mixbin.sets import BinarySet

ALL_MOVES = 10_000
"""If there are at most this many single moves, all are tried; if there are more, a sample of this size."""
AT_ONCE = 32
"""The sample takes at most this many moves from one random order of the entries, then draws another order."""
ROUNDING = 1e-9
"""A bound that differs from the value by less than this share of the value counts as equal: the rest may be rounding."""


@dataclass(frozen=True)
class Certificate:
    """Evidence about a binary point.

    Attributes
    ----------
    epsilon_star : float
        For every eps below this number, the point is a strict local minimiser of G + phi/eps in theta; above it, it is none. inf
        means that every eps will do. The claim assumes that G is differentiable at the point.
    epsilon : float
        The last eps of the run that found the point; NaN if no penalised run found it.
    lipschitz : float
        The largest norm of a gradient on the path, which is a lower estimate of the theorem's constant L; NaN without a path.
    distance : float
        dist_inf to the binary points when the penalised stage ended; NaN without such a stage.
    moves_tried, moves_total : int
        How many single moves (flips, exchanges, row moves) were evaluated exactly, and how many exist.
    best_change : float
        The lowest change of G among the moves tried. A negative change is an improvement that is left. NaN if none was tried.
    relaxed_gap : float
        The value minus the value of the relaxed stage; NaN without such a stage. G is not convex, so this is a comparison, not
        a bound.
    value : float
        G at the point; NaN if it is not known.
    lower_bound : float
        No binary point has a lower G than this, by ``lower_bound`` of the problem; NaN if the problem has none.
    searches, different_answers, times_best : int
        How many searches the run has made, with how many different answers they ended, and how many of them ended with this
        value. 0 without a run.
    points_compared, lams_compared : int
        How many binary points the run has compared, if it has compared all of them, and with how many values of lam each; the
        best ones with more. 0 otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> certificate = mb.relax_and_penalize(problem, seed=0).certificate
    >>> certificate.moves_tried, certificate.moves_total, certificate.best_change  # the best exchange of all costs 3
    (4, 4, 3.0)
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
    searches: int = 0
    different_answers: int = 0
    times_best: int = 0
    points_compared: int = 0
    lams_compared: int = 0

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are equal. NaN says that something is not known, so it equals NaN here."""
        return self._known() == other._known() if isinstance(other, Certificate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._known())

    def _known(self) -> tuple[float | None, ...]:
        return tuple(None if isnan(number) else number for number in astuple(self))

    @property
    def gap(self) -> float:
        """By how much another answer can be better at most, as a share of the value; NaN if nothing is claimed.

        Nothing is claimed without a lower bound. Nor is it if the bound is 0 up to rounding: it is no news that a loss cannot be
        negative.
        """
        return proven_gap(self.lower_bound, self.value)

    @property
    def gap_in_percent(self) -> str:
        """The gap as text for people. It is rounded up, because a smaller gap would not be proven."""
        return _rounded_up(100 * self.gap)

    @property
    def one_move_optimal(self) -> bool | None:
        """False if a single move tried lowers G; True if all were tried and none does; None if some were not tried."""
        if self.best_change < 0:
            return False
        return True if self.moves_tried >= self.moves_total else None

    @property
    def condition(self) -> str:
        """Whether the run meets the condition eps < (1 - 2c)/L of Theorem 2, with the estimate of L from the path.

        "consistent" if it does, "violated" if not, "unknown" without a path. The path bounds L only from below, so "consistent"
        is never a proof.
        """
        if isnan(self.epsilon) or isnan(self.lipschitz) or isnan(self.distance):
            return "unknown"
        return "consistent" if self.epsilon * self.lipschitz < 1 - 2 * self.distance else "violated"

    def __str__(self) -> str:
        return " ".join(self._sentences().values())

    def _sentences(self) -> dict[str, str]:
        """What is known, each by the question that it answers."""
        said = {
            "one change at a time": self._moves_sentence(),
            "held in place": self._penalty_sentence(),
            "beside fractions": self._relaxed_sentence(),
        }
        if self.searches > 1:
            said["other searches"] = self._searches_sentence()
        if self.points_compared:
            said["all answers"] = self._comparison_sentence()
        if not isnan(self.gap):
            said["proven"] = self._bound_sentence()
        return said

    def _repr_html_(self) -> str:
        """A table with a line for each thing that is known, for notebooks."""
        return html_table("mixbin certificate", self._sentences())

    def _moves_sentence(self) -> str:
        if self.moves_total == 0:
            return "This is the only answer that one change could lead to."
        tried = f"{self.moves_tried:,} of the {self.moves_total:,}"
        if self.moves_tried == 0:
            return f"None of the {self.moves_total:,} single changes of this answer was tried."
        if self.one_move_optimal is False:
            return f"A single change would still improve this answer, by {readable(-self.best_change, 3)} ({tried} tried)."
        if self.one_move_optimal:
            closest = f"; the closest one costs {readable(self.best_change, 3)}" if isfinite(self.best_change) else ""
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
            larger = f"the run ended at eps = {self.epsilon:.3g}, above the limit of the theorem, which is only sufficient"
            return f"{held}; {larger}."
        return f"{held}."

    def _relaxed_sentence(self) -> str:
        if isnan(self.relaxed_gap):
            return "There is no relaxed solution to compare it with."
        bound = " (no bound, since the problem is not convex)" if isnan(self.gap) else ""
        if self.relaxed_gap == 0:
            return f"Its value equals that of the relaxed problem it came from{bound}."
        side = "above" if self.relaxed_gap > 0 else "below"
        return f"Its value is {readable(abs(self.relaxed_gap), 3)} {side} that of the relaxed problem it came from{bound}."

    def _searches_sentence(self) -> str:
        if self.different_answers == 1:
            return f"All {self.searches:,} searches ended here."
        times = "one" if self.times_best == 1 else f"{self.times_best:,}"
        ended = f"The {self.searches:,} searches ended with {self.different_answers:,} different answers"
        return f"{ended}, and {times} of them with this value."

    def _comparison_sentence(self) -> str:
        lams = f", each with {self.lams_compared:,} values of lam and the best with more" if self.lams_compared > 1 else ""
        return f"All {self.points_compared:,} possible answers were compared{lams}; none was better."

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
        The point, which must be binary and feasible.
    lam : array, optional
        The continuous variables that belong to theta; leave it out if the problem has none.
    max_moves : int
        All single moves are tried if there are at most this many, or if the problem finds the best move itself; otherwise a
        random sample of this size is tried.
    seed : int
        Seeds the sample.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> mb.certify(problem, [False, False, True, True]).best_change  # an exchange improves this point by 3
    -3.0
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
    # The bound holds for every lam inside its set, but the caller may ask about a lam outside.
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
    """The lower bound for a certificate: NaN if the problem has none, and the value if only rounding lifts the bound above."""
    if not isfinite(bound):
        return nan
    if bound > value + ROUNDING * abs(value):
        raise InvalidInput(
            f"the problem's lower_bound is wrong: it must not exceed the value of any answer, got {bound:.10g} where one has "
            f"{value:.10g}; return a number that no binary theta falls below with any lam, or -inf where none is known"
        )
    return min(bound, value)


def proven_gap(bound: float, value: float) -> float:
    """(value - bound) / |value|; NaN without a bound, or if the bound is 0 up to rounding (see ``Certificate.gap``)."""
    if not isfinite(bound) or not isfinite(value) or value == 0 or abs(bound) <= ROUNDING * abs(value):
        return nan
    gap = max(value - bound, 0.0) / abs(value)
    return gap if isfinite(gap) else nan


def _rounded_up(number: float) -> str:
    """A number above 0 as text with two digits, rounded up; what exceeds the digits by no more than ROUNDING is dropped."""
    if number >= 10:
        return f"{ceil(number - ROUNDING):,}"
    unit = 10.0 ** (floor(log10(number)) - 1)
    return f"{ceil(number / unit - ROUNDING) * unit:.2g}"


def without_rounding(change: float, value: float) -> float:
    """0 for a negative change that may be rounding of ``value``, else the change."""
    return 0.0 if -FALL * abs(value) <= change < 0 else change


def _some_moves(theta_set: BinarySet, theta: Floats, total: int, most: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """All moves, or a random sample of ``most`` of them."""
    if total <= most:
        batches = list(theta_set.moves(theta))
    else:
        batches, drawn = [], 0
        while drawn < most:
            # ``moves`` lists the moves in the order that a gradient promises. Random numbers in place of the gradient give random
            # moves first, so the list of all moves is never needed.
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

"""Compare the gradients of a problem with differences of its values, and name the coordinates that are off."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixbin import _validate as check
from mixbin.checked_problem import CheckedProblem
from mixbin.differences import NOISE, Line, along_lam, along_theta, compare, confirmed
from mixbin.errors import GradientWarning
from mixbin.problem import Evaluation, Floats, Indices, Problem

SMALL = 1e-2
"""Slopes below this share of the largest that a single entry could have are compared with that share instead of themselves."""
MOST_POINTS = 100_000
"""More points are refused: the check would not end."""
REACH = 0.5
"""A direction is scaled such that one unit of it covers this share of the way to the nearest bound of an entry."""
SHRINK = 0.9
"""Points are multiplied by this where the set allows it, so that a capacity does not block half of the directions."""
DENSE, SINGLE = 2, 8
"""At each point, directions in which all entries move at once, and entries that are moved by themselves."""
MOST_FAULTS = 5
"""At each point, entries that are named at most."""
MOST_LINES = 10
"""Entries that are printed at most."""
SMALL_GROUP = 16
"""If at most this many entries must move together, each is looked at to find the wrong one."""
FIRST_LENGTH, FIRST_TOL = 1e-3, 0.05
"""At the first point of a run: the length of the differences, and the share of a slope from which they count as suspicious. The
share is large because lower levels are often solved coarsely; wrong gradients are usually off by far more."""


@dataclass(frozen=True)
class GradientFault:
    """An entry of a gradient that differences of the value contradict."""

    name: str
    """``"grad_theta"`` or ``"grad_lam"``."""
    index: tuple[int, ...]
    given: float
    """The slope by the gradient: the derivative itself where the entry can move alone, else the slope along ``tangent``."""
    measured: float
    """The slope by differences of the value."""
    moved: int
    """Entries that move along this slope: 1, or more if others must move the other way for theta to stay within the set."""

    def __str__(self) -> str:
        where = ", ".join(map(str, self.index))
        against = "" if self.moved == 1 else " (moved against the other entries, to stay within the set)"
        factor = f", {self.given / self.measured:.3g} times as much" if self.measured else ""
        entry = f"{self.name}[{where}]" if self.index else self.name
        return f"{entry} is off{against}: it gives a slope of {self.given:.6g}{factor}; differences give {self.measured:.6g}"


@dataclass(frozen=True)
class GradientCheck:
    """What ``check_gradient`` has found; printed, it is "ok" or one line for each entry that is off.

    Examples
    --------
    >>> import mixbin as mb
    >>> problem = mb.FunctionProblem(lambda theta: ((theta**2).sum(), theta), mb.Hypercube(3))  # 2 * theta would be right
    >>> found = mb.check_gradient(problem)
    >>> found.ok, len(found.faults)
    (False, 3)
    """

    faults: tuple[GradientFault, ...]
    """The entries that are off, the worst first; each entry once."""
    compared: int
    """Directions whose slopes were compared with differences."""
    unclear: int
    """Directions whose differences contradict the slope but also each other: noise in G, or a kink."""
    infinite: int = 0
    """Points that were left out because G is infinite there."""

    @property
    def ok(self) -> bool:
        """Whether no entry is off."""
        return not self.faults

    def __str__(self) -> str:
        lines = [str(fault) for fault in self.faults[:MOST_LINES]] or ["ok" if self.compared else "nothing compared"]
        if len(self.faults) > MOST_LINES:
            lines.append(f"and {len(self.faults) - MOST_LINES} more entries")
        if self.unclear:
            lines.append(f"unclear in {self.unclear} of {self.compared} directions: noise in G, or a kink")
        if self.infinite:
            lines.append(f"{self.infinite} points left out: G is infinite there")
        return "\n".join(lines)

    __repr__ = __str__


def check_gradient(problem: Problem, *, points: int = 3, tol: float = 1e-3, seed: int = 0) -> GradientCheck:
    """Compare the gradients of a problem, in theta and lam, with differences of its values.

    At random points inside the sets, G is evaluated along random directions and along single entries. If a slope differs from
    those that the gradient promises, the entries that cause it are looked for. Noise in G and kinks are reported as unclear.

    Parameters
    ----------
    problem : Problem
        Any problem, such as a ``FunctionProblem``.
    points : int, default 3
        The number of random points.
    tol : float, default 1e-3
        A slope may differ by this share of its size.
    seed : int, default 0
        The seed of points and directions.

    Returns
    -------
    GradientCheck
        ``ok``, ``faults`` and counts; ``print`` shows "ok", or which entries are off and by how much.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> def function(theta):
    ...     grad = 2.0 * theta
    ...     grad[2] = 0.0  # forgotten
    ...     return theta @ theta, grad
    >>> mb.check_gradient(mb.FunctionProblem(function, mb.Hypercube(5)))
    grad_theta[2] is off: it gives a slope of 0, 0 times as much; differences give 0.486876
    """
    check.whole("points", points, low=1, high=MOST_POINTS, remedy="3 points are usual")
    check.real("tol", tol, low=0.0, open_low=True)
    check.whole("seed", seed, low=0)
    checked = CheckedProblem(problem)
    checked.where = "check_gradient"
    rng = np.random.default_rng(seed)
    tally = _Tally(tol)
    for _ in range(points):
        theta = _inside(checked, checked.theta_set.start(rng))
        lam = checked.lam_set.decode(0.5 * (rng.uniform(size=checked.lam_set.shape) + 0.5))
        got = checked.evaluate(theta, lam)
        if not np.isfinite(got.value):
            tally.infinite += 1
            continue
        for side in _sides(checked, theta, lam, got, lambda t, s: checked.evaluate(t, s, gradient=False).value):
            tally.look_at(side, rng)
    return GradientCheck(tally.worst_first(), tally.compared, tally.unclear, tally.infinite)


def warn_of_wrong_gradient(problem: CheckedProblem, theta: Floats, lam: Floats) -> None:
    """Warn if a few differences of the value, which are not counted, contradict the gradient near the first point of a run."""
    fault = first_point_fault(problem, theta, lam)
    if fault is not None:
        more = "found near the first point of the run; mixbin.check_gradient(problem) looks at more points and entries"
        warnings.warn(f"{fault} ({more})", GradientWarning, stacklevel=2)


def first_point_fault(problem: CheckedProblem, theta: Floats, lam: Floats) -> GradientFault | None:
    """An entry whose slope is clearly wrong near the first point of a run; None if there is none or nothing is certain.

    Takes seven uncounted evaluations at most (five without lam) if the gradient is right. Whatever the problem raises here, it
    will raise in the run too if it matters, so the check only gives up.
    """

    def value(t: Floats, s: Floats) -> float:
        return float(problem.evaluate_uncounted(t, s).value)

    rng = np.random.default_rng(0)
    try:
        theta = _inside(problem, theta)
        lam = problem.lam_set.decode(np.clip(problem.lam_set.encode(lam), 0.1, 0.9))
        got = problem.checked(problem.evaluate_uncounted(theta, lam))
        # A lower level that was stopped early says so in the trace, and its hypergradient is known to be rough.
        if not np.isfinite(got.value) or got.info.get("lower_converged", 1.0) == 0.0:
            return None
        for side in _sides(problem, theta, lam, got, value):
            for _ in range(DENSE if side.name == "grad_theta" else 1):
                at = side.direction(_random_weights(rng, side.size))
                short = at.line(FIRST_LENGTH) - at.line(-FIRST_LENGTH)
                if at.reach == 0.0 or abs(short / (2 * FIRST_LENGTH) - at.slope) <= at.allowed(FIRST_TOL):
                    continue
                if at.wrong_slope(FIRST_TOL) is not None:
                    return next(iter(side.culprits(at, FIRST_TOL, 1)), None)
    except Exception:
        return None
    return None


def _random_weights(rng: np.random.Generator, size: int) -> Floats:
    """Random signs and lengths: two wrong entries do not cancel."""
    return np.asarray(rng.choice([-1.0, 1.0], size) * rng.uniform(0.5, 1.0, size))


def _inside(problem: CheckedProblem, theta: Floats) -> Floats:
    """A point between ``theta`` and the centre of the set, away from the bounds where the set allows that."""
    theta = 0.5 * (theta + problem.theta_set.start())
    inner = SHRINK * theta
    return inner if problem.theta_set.contains(inner) else theta


@dataclass(frozen=True)
class _Direction:
    """A direction in theta or lam, with the line to measure on. One unit of the line is ``reach`` times the weights."""

    weights: Floats
    reach: float
    line: Line
    slope: float
    size: float
    """What the slope is compared with if it is smaller: the root of the sum of its squared terms."""
    value: float

    def allowed(self, tol: float) -> float:
        """The difference that is tolerated."""
        return tol * max(abs(self.slope), self.size) + NOISE * abs(self.value)

    def wrong_slope(self, tol: float) -> float | None:
        """The slope by differences if it is certain that the gradient's is wrong; NaN if that is unclear; None if it is right."""
        compared = compare(self.line, self.slope, self.allowed(tol))
        if compared.agrees or not compared.seen:
            return None
        measured = confirmed(self.line, self.slope, compared, self.value)
        return np.nan if measured is None else measured


class _Side:
    """Theta or lam at one point: what its gradient promises, and how G really changes."""

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        grad: Floats,
        units: Floats,
        room: Floats,
        value: float,
        spread: Callable[[Floats], Floats],
        line: Callable[[Floats], Line],
    ) -> None:
        self.name, self.shape, self.size = name, shape, int(grad.size)
        self._grad, self._units, self._room, self._value = grad, units, room, value
        self._spread, self._line = spread, line
        self._largest = float(np.abs(spread(grad)).max(initial=0.0))

    def direction(self, weights: Floats) -> _Direction:
        """The direction in which the entries move by ``weights``, made feasible and scaled to the room there is."""
        along = self._spread(weights)
        moving = np.abs(along) > 1e-12
        reach = REACH * float(np.min(self._room[moving] / np.abs(along[moving]), initial=np.inf))
        reach = reach if np.isfinite(reach) else 0.0
        along = along * reach
        terms = self._grad * along
        size = max(float(np.linalg.norm(terms)), SMALL * self._largest * float(np.abs(along).max(initial=0.0)))
        return _Direction(weights, reach, self._line(along), float(terms.sum()), size, self._value)

    def entry(self, i: int) -> _Direction:
        """The direction of one entry."""
        return self.direction(np.eye(1, self.size, i)[0])

    def culprits(self, at: _Direction, tol: float, most: int) -> list[GradientFault]:
        """The entries that make the slope along ``at`` wrong, at most ``most``: each is found by halving the direction."""
        found: list[GradientFault] = []
        weights = at.weights.copy()
        while len(found) < most:
            here = self.direction(weights)
            if here.reach == 0.0 or not np.isfinite(self._gap(here, tol)):
                break
            i = self._largest_gap(weights)
            fault = self.fault(i, tol)
            if fault is None:
                break
            found.append(fault)
            weights[i] = 0.0
        return found

    def fault(self, i: int, tol: float) -> GradientFault | None:
        """The fault of one entry if it is certainly off."""
        at = self.entry(i)
        measured = at.wrong_slope(tol) if at.reach else None
        if measured is None or np.isnan(measured):
            return None
        unit = at.reach * float(self._units[i])
        index = tuple(int(k) for k in np.unravel_index(i, self.shape)) if self.shape else ()
        moved = int(np.count_nonzero(np.abs(self._spread(at.weights)) > 1e-12))
        return GradientFault(self.name, index, at.slope / unit, measured / unit, moved)

    def _gap(self, at: _Direction, tol: float) -> float:
        """How far the slope is off per unit of the weights; NaN if it is right or nothing is certain."""
        measured = at.wrong_slope(tol)
        return np.nan if measured is None else (measured - at.slope) / at.reach

    def _largest_gap(self, weights: Floats) -> int:
        """Halve the entries again and again, and go on with the half whose slope is farther off."""
        entries: Indices = np.flatnonzero(weights)
        while entries.size > 1:
            halves = np.array_split(entries, 2)
            gaps = [self._rough_gap(np.where(np.isin(np.arange(self.size), half), weights, 0.0)) for half in halves]
            entries = halves[int(np.argmax(gaps))]
        found = int(entries[0])
        # In a small group, such as a row of a one-hot set, one wrong entry spoils the slopes of the others nearly as much.
        together = np.flatnonzero(np.abs(self._spread(np.eye(1, self.size, found)[0])) > 1e-12)
        if not 1 < together.size <= SMALL_GROUP:
            return found
        return int(together[np.argmax([self._rough_gap(np.eye(1, self.size, int(i))[0]) for i in together])])

    def _rough_gap(self, weights: Floats) -> float:
        """How far the slope is off per unit of these weights, by one difference; 0 if it cannot be measured."""
        at = self.direction(weights)
        measured = (at.line(FIRST_LENGTH) - at.line(-FIRST_LENGTH)) / (2 * FIRST_LENGTH)
        return abs(measured - at.slope) / at.reach if at.reach and np.isfinite(measured) else 0.0


def _sides(
    problem: CheckedProblem, theta: Floats, lam: Floats, got: Evaluation, value: Callable[[Floats, Floats], float]
) -> list[_Side]:
    """Theta and, if the problem has it, lam in the unit box where solvers work."""
    assert got.grad_theta is not None
    assert got.grad_lam is not None
    theta_set, box = problem.theta_set, problem.lam_set

    def in_theta(along: Floats) -> Line:
        return along_theta(value, theta_set, theta, lam, along.reshape(theta_set.shape))

    def tangent(weights: Floats) -> Floats:
        return theta_set.tangent(weights.reshape(theta_set.shape)).ravel()

    room = np.minimum(theta, 1.0 - theta).ravel()
    units = np.ones(theta_set.size)
    sides = [_Side("grad_theta", theta_set.shape, got.grad_theta.ravel(), units, room, got.value, tangent, in_theta)]
    if box.size:
        u = box.encode(lam)
        units = np.ravel(box.encode_gradient(lam, np.ones(box.shape)))
        grad = np.ravel(box.encode_gradient(lam, got.grad_lam))
        free = np.where(units > 0.0, 1.0, 0.0)  # an entry whose bounds coincide cannot move

        def in_lam(along: Floats) -> Line:
            return along_lam(value, box, theta, u, along.reshape(box.shape))

        inside = np.ravel(np.minimum(u, 1.0 - u))
        sides.append(_Side("grad_lam", box.shape, grad, units, inside, got.value, lambda weights: weights * free, in_lam))
    return sides


class _Tally:
    """What ``check_gradient`` counts and finds over all points."""

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.faults: dict[tuple[str, tuple[int, ...]], GradientFault] = {}
        self.compared = self.unclear = self.infinite = 0

    def worst_first(self) -> tuple[GradientFault, ...]:
        """The faults without those that are only the share of a worse one.

        An entry that cannot move alone carries others with it: one wrong entry makes the slopes of all of them wrong by a share.
        """
        ordered = sorted(self.faults.values(), key=lambda it: -abs(it.given - it.measured))
        kept: list[GradientFault] = []
        for fault in ordered:
            largest = max((abs(it.given - it.measured) for it in kept if it.name == fault.name), default=0.0)
            if fault.moved == 1 or abs(fault.given - fault.measured) > 2.0 * largest / (fault.moved - 1):
                kept.append(fault)
        return tuple(kept)

    def look_at(self, side: _Side, rng: np.random.Generator) -> None:
        """Compare dense directions and single entries at one point, unless this side has faults already."""
        if any(name == side.name for name, _ in self.faults):
            return
        for _ in range(DENSE):
            at = side.direction(_random_weights(rng, side.size))
            if self._is_off(at):
                for culprit in side.culprits(at, self.tol, MOST_FAULTS):
                    self._add(culprit)
        for i in rng.permutation(side.size)[:SINGLE]:
            if self._is_off(side.entry(int(i))):
                fault = side.fault(int(i), self.tol)
                if fault is not None:
                    self._add(fault)

    def _is_off(self, at: _Direction) -> bool:
        if at.reach == 0.0:
            return False
        self.compared += 1
        measured = at.wrong_slope(self.tol)
        self.unclear += measured is not None and bool(np.isnan(measured))
        return measured is not None and not np.isnan(measured)

    def _add(self, fault: GradientFault) -> None:
        before = self.faults.get((fault.name, fault.index))
        if before is None or abs(fault.given - fault.measured) > abs(before.given - before.measured):
            self.faults[fault.name, fault.index] = fault

"""The one loop behind all methods: start, relax, penalise or round, lam at the fixed theta, a cold evaluation.

The loop is a state machine that advances by one solver step at a time; everything it decides from is in ``Progress``,
everything it was told in ``Settings``.
"""

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin.errors import InvalidInput
from mixbin.methods.settings import Settings
from mixbin.methods.ties import gather_ties
from mixbin.problem import CheckedProblem, Floats, read_only
from mixbin.progress import Event
from mixbin.result import Relaxed, Result, Status, Trace
from mixbin.solvers import FixedTheta, Objective, OutOfEvaluations, SpectralGradient, State
from mixbin.solvers.base import NoFiniteValue

FIRST_WEIGHT = 1e-3
"""eps_0 = 1 / (FIRST_WEIGHT * scale of the gradient): the penalty begins as a small perturbation of G."""
LAM_SOLVER = SpectralGradient(memory=1)
LAM_STEPS = 50
STALLED = 1e-6
"""An outer iteration that moved theta by less than this has found a stationary point."""
SHARES = (1.0, 0.25, 0.0625)
"""How much of a jump off a stationary point is tried."""


class Candidate(NamedTuple):
    """The answer of one start."""

    rank: float
    """What starts are compared by, the lowest wins."""
    theta: NDArray[Any]
    lam: Floats
    value: float
    status: Status
    message: str
    relaxed: Relaxed | None


@dataclass
class Progress:
    """Where a run is; with the settings, all that decides what comes next."""

    rng: np.random.Generator
    phase: str = "begin"
    start: int = 0
    outer: int = 0
    inner: int = 0
    epsilon: float = np.inf
    state: State | None = None
    theta_before: Floats | None = None
    """theta at the beginning of the outer iteration."""
    answer: NDArray[Any] | None = None
    """The rounded theta, once there is one."""
    status: Status = Status.REPAIRED
    message: str = ""
    relaxed: Relaxed | None = None
    best: Candidate | None = None
    trace: Trace = field(default_factory=Trace)


class Run:
    """One call of a method."""

    def __init__(self, problem: CheckedProblem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.at = Progress(rng=np.random.default_rng([settings.seed, 0]))
        self.began = time.perf_counter()
        self.stopped = False
        self.objective = Objective(problem, settings.penalty, may_evaluate=self._may_evaluate)

    def finish(self) -> Result:
        """Advance to the end."""
        phases = {
            "begin": self._begin,
            "relax": self._relax,
            "penalise": self._penalise,
            "fix": self._fix,
            "lam": self._lam,
            "cold": self._cold,
        }
        while self.at.phase != "done":
            try:
                if self.stopped and self.at.phase in ("relax", "penalise", "fix", "lam"):
                    raise OutOfEvaluations
                phases[self.at.phase]()
            except OutOfEvaluations:
                self._cut_short()
        best = self.at.best
        assert best is not None
        return Result(
            theta=best.theta,
            lam=best.lam,
            value=best.value,
            status=Status.STOPPED if self.stopped else best.status,
            message=best.message,
            n_evaluations=self.problem.n_evaluations,
            relaxed=best.relaxed,
            violation=self.problem.theta_set.violation(best.theta) if best.theta.dtype == np.bool_ else 0.0,
            seed=self.settings.seed,
            trace=self.at.trace,
        )

    # The phases, in their order.

    def _begin(self) -> None:
        """The first point of a start: the user's or the centre, then random ones."""
        at, told = self.at, self.settings
        at.rng = np.random.default_rng([told.seed, at.start])
        again = at.start > 0
        theta = told.theta0 if told.theta0 is not None and not again else self.problem.theta_set.start(at.rng if again else None)
        lam = told.lam0 if told.lam0 is not None else self.problem.lam_set.start(at.rng if again else None)
        self.problem.where = f"start {at.start}, first point"
        self.objective.epsilon = at.epsilon = np.inf
        at.state = told.solver.init(self.objective, theta, self.problem.lam_set.encode(lam), at.rng)
        at.outer = at.inner = 0
        at.relaxed = at.answer = None
        if told.relax_first or told.rounding != "penalise":
            at.phase = "relax"
            self._row()
        else:
            self._begin_penalty()

    def _relax(self) -> None:
        """Minimise G alone."""
        at, told = self.at, self.settings
        assert at.state is not None
        if at.inner < told.relax_steps and not told.solver.done(self.objective, at.state):
            self._step()
            return
        self._row(outer=True)
        at.relaxed = Relaxed(at.state.theta, self._decoded(at.state), at.state.value)
        if told.rounding == "penalise":
            self._begin_penalty()
        else:
            self._round("")

    def _begin_penalty(self) -> None:
        at = self.at
        assert at.state is not None
        epsilon0 = self.settings.epsilon0
        if epsilon0 is None:
            scale = self.objective.scale(at.state.grad_theta)
            # A gradient of zero says nothing about the scale of G; its value is the next best guess.
            epsilon0 = 1.0 / (FIRST_WEIGHT * (scale or abs(at.state.value) or 1.0))
        at.phase, at.outer = "penalise", 0
        self._reweight(epsilon0)

    def _reweight(self, epsilon: float) -> None:
        at = self.at
        assert at.state is not None
        self.objective.epsilon = at.epsilon = epsilon
        at.state = self.settings.solver.reweight(self.objective, at.state)
        at.theta_before, at.inner = at.state.theta, 0

    def _penalise(self) -> None:
        """Algorithm 1: P(eps) from the last solution; binary, or a smaller eps."""
        at, told = self.at, self.settings
        assert at.state is not None
        limit = told.inner_steps[min(at.outer, len(told.inner_steps) - 1)]
        if at.inner < limit and not told.solver.done(self.objective, at.state):
            self._step()
            return
        distance = self._row(outer=True)
        if distance < told.tol:
            vertex = self.problem.theta_set.vertex(at.state.theta)
            self._answer(
                vertex, Status.BINARY, f"the penalty made theta binary at eps = {at.epsilon:.3g} (outer iteration {at.outer})"
            )
        elif at.outer + 1 >= told.max_outer:
            self._round(
                f"max_outer = {told.max_outer} reached at distance {distance:.2g}; the nearest feasible binary point is given"
            )
        else:
            self._leave_stationary_point()
            at.outer += 1
            self._reweight(at.epsilon * told.beta)

    def _leave_stationary_point(self) -> None:
        """Break ties, and where the iteration stood still go towards the vertex, if G + phi/eps falls."""
        at = self.at
        assert at.state is not None
        assert at.theta_before is not None
        theta_set = self.problem.theta_set
        theta = at.state.theta
        gathered = gather_ties(theta_set, theta, at.state.grad_theta, at.rng)
        if gathered is not None and self._jump(gathered):
            return
        if np.max(np.abs(theta - at.theta_before), initial=0.0) < STALLED:
            self._jump(theta_set.vertex(theta).astype(np.float64))

    def _jump(self, target: Floats) -> bool:
        """Move all or part of the way to ``target`` if that lowers G + phi/eps."""
        at = self.at
        assert at.state is not None
        here = at.state
        now = self.objective.total(here.value, here.phi)
        for share in SHARES:
            theta = target if share == 1.0 else here.theta + share * (target - here.theta)
            try:
                there = self.settings.solver.init(self.objective, theta, here.lam, at.rng, here.warm)
            except NoFiniteValue:
                continue
            if self.objective.total(there.value, there.phi) < now:
                at.state = there
                return True
        return False

    def _round(self, message: str) -> None:
        """The end of a start whose theta the penalty has not made binary."""
        at, theta_set = self.at, self.problem.theta_set
        assert at.state is not None
        theta = at.state.theta
        if self.settings.rounding is None:
            self._answer(theta, Status.RELAXED, message or "relaxed: theta is not rounded")
        elif self.settings.rounding == "simple":
            rounded = theta_set.round(theta)
            violation = theta_set.violation(rounded)
            if violation > 0:
                self._answer(rounded, Status.INFEASIBLE, f"simple rounding left the set {theta_set!r} by {violation:g}")
            else:
                self._answer(rounded, Status.REPAIRED, message or "relaxed, then each entry rounded")
        else:
            self._answer(theta_set.vertex(theta), Status.REPAIRED, message or "relaxed, then the nearest feasible binary point")

    def _answer(self, theta: NDArray[Any], status: Status, message: str) -> None:
        at, told = self.at, self.settings
        assert at.state is not None
        at.answer, at.status, at.message = theta, status, message
        at.inner = 0
        if self.problem.lam_set.size and told.reoptimize_lam and theta.dtype == np.bool_ and not self.stopped:
            at.phase = "fix"
        else:
            at.phase = "cold"

    def _fix(self) -> None:
        """Begin the search for lam at the binary theta."""
        at = self.at
        assert at.state is not None
        self.problem.where = f"start {at.start}, lam at the binary theta"
        try:
            at.state = LAM_SOLVER.init(self._fixed(), np.empty(0), at.state.lam, at.rng, at.state.warm)
            at.phase = "lam"
        except NoFiniteValue:
            at.phase = "cold"

    def _fixed(self) -> FixedTheta:
        assert self.at.answer is not None
        return FixedTheta(self.objective, self.at.answer.astype(np.float64))

    def _lam(self) -> None:
        """Re-optimise lam at the binary theta."""
        at = self.at
        fixed = self._fixed()
        if at.inner < LAM_STEPS and not LAM_SOLVER.done(fixed, at.state):  # type: ignore[arg-type]
            at.state = LAM_SOLVER.step(fixed, at.state)  # type: ignore[arg-type]
            at.inner += 1
            self._row()
        else:
            at.phase = "cold"

    def _cold(self) -> None:
        """The reported value, from an evaluation without warm state; then the next start."""
        at, told = self.at, self.settings
        assert at.state is not None
        assert at.answer is not None
        lam = self._decoded(at.state)
        self.problem.where = f"start {at.start}, cold evaluation of the answer"
        value = self.problem.evaluate(at.answer.astype(np.float64), lam, gradient=False).value
        by_relaxed = told.rounding in (None, "simple") and at.relaxed is not None
        rank = at.relaxed.value if by_relaxed and at.relaxed is not None else value
        if at.best is None or rank < at.best.rank:
            at.best = Candidate(rank, at.answer, lam, value, at.status, at.message, at.relaxed)
        at.start += 1
        at.state = None
        at.phase = "begin" if at.start < told.starts and not self.stopped else "done"

    # Limits, trace and events.

    def _may_evaluate(self) -> bool:
        """Whether a solver may evaluate once more; the last evaluation is kept for the answer."""
        told = self.settings
        if told.max_evaluations is not None and self.problem.n_evaluations + 1 >= told.max_evaluations:
            return False
        return told.time_limit is None or time.perf_counter() - self.began < told.time_limit

    def _cut_short(self) -> None:
        """A limit was reached: what the last accepted step left is rounded and evaluated."""
        at, told = self.at, self.settings
        if at.phase == "begin":
            if at.best is None:
                raise InvalidInput(f"time_limit must allow one evaluation, got {told.time_limit} seconds; give it more time")
            at.phase = "done"
        elif at.phase in ("fix", "lam"):
            at.phase = "cold"
        else:
            assert at.state is not None
            if at.phase == "relax":
                at.relaxed = Relaxed(at.state.theta, self._decoded(at.state), at.state.value)
            self._round(f"{self._limit()} in the {at.phase} phase; the nearest feasible binary point is given")
            at.phase = "cold"

    def _limit(self) -> str:
        if self.stopped:
            return "stopped by a callback"
        limit = self.settings.max_evaluations
        if limit is not None and self.problem.n_evaluations + 1 >= limit:
            return f"max_evaluations = {limit} reached"
        return f"time_limit = {self.settings.time_limit} s reached"

    def _step(self) -> None:
        at = self.at
        place = f", outer iteration {at.outer}" if at.phase == "penalise" else ""
        self.problem.where = f"start {at.start}, {at.phase}{place}, step {at.inner + 1}"
        at.state = self.settings.solver.step(self.objective, at.state)
        at.inner += 1
        self._row()

    def _decoded(self, state: State) -> Floats:
        return self.problem.lam_set.decode(state.lam)

    def _row(self, outer: bool = False) -> float:
        """A row of the trace and an event for the callbacks; with ``outer`` the distance, which is returned."""
        at = self.at
        assert at.state is not None
        state, lam = at.state, self._decoded(at.state)
        seconds = time.perf_counter() - self.began
        row: dict[str, Any] = dict(
            start=at.start,
            phase=at.phase,
            outer=at.outer,
            inner=at.inner,
            epsilon=at.epsilon,
            G=state.value,
            phi=state.phi if at.phase != "lam" else 0.0,
            step=state.step,
            n_evaluations=self.problem.n_evaluations,
            **state.info,
        )
        if lam.size == 1:
            row["lam"] = float(lam.reshape(()))
        theta = state.theta if at.phase != "lam" else self._fixed().theta
        distance = np.nan
        if outer:
            distance = self.problem.theta_set.distance_to_binary(theta)
            row |= {
                "distance": distance,
                "integrality": float(np.max(np.minimum(theta, 1.0 - theta))),
                "n_selected": int(np.count_nonzero(theta >= 0.5)),
                "seconds": seconds,
            }
        at.trace.append(**row)
        if self.settings.callbacks:
            self._tell(theta, lam, "outer" if outer else "step", seconds)
        return distance

    def _tell(self, theta: Floats, lam: Floats, kind: str, seconds: float) -> None:
        at = self.at
        assert at.state is not None
        event = Event(
            kind=kind,
            phase=at.phase,
            start=at.start,
            outer=at.outer,
            inner=at.inner,
            epsilon=at.epsilon,
            value=at.state.value,
            theta=read_only(theta),
            lam=read_only(lam),
            n_evaluations=self.problem.n_evaluations,
            seconds=seconds,
            theta_set=self.problem.theta_set,
            stop=self._stop,
        )
        for callback in self.settings.callbacks:
            callback(event)

    def _stop(self) -> None:
        self.stopped = True

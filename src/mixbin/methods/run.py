"""The loop behind all methods. Each start goes through these phases: relax, penalise or round, fit lam, polish, evaluate.

The loop is a state machine that advances by one solver step or one polish pass at a time. All its decisions depend on
``Progress`` and ``Settings`` alone. ``Progress`` is consistent between two steps, and only then is it written to disk.
"""

import copy
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin.certificate import bound_below, without_rounding
from mixbin.checked_problem import CheckedProblem
from mixbin.checkpoint import Checkpoint
from mixbin.errors import DivergedError, InvalidInput
from mixbin.gradient_check import warn_of_wrong_gradient
from mixbin.methods.curvature import Curvature
from mixbin.methods.journal import Journal
from mixbin.methods.jumps import evaluated, off_stationary_points
from mixbin.methods.limits import Limits
from mixbin.methods.loaded import check_loaded
from mixbin.methods.outcome import result_of
from mixbin.methods.polish import PolishState, begin_polish, polish_done, polish_step
from mixbin.methods.portfolio import count_answer, has_further_searches, message
from mixbin.methods.searches import Searches
from mixbin.methods.settings import SMALLEST_EPSILON, Settings, identity
from mixbin.methods.state import Candidate, MoveCheck, Progress
from mixbin.methods.walk import WalkState
from mixbin.problem import Floats
from mixbin.result import Relaxed, Result, Status
from mixbin.solvers import FixedTheta, Objective, OutOfEvaluations, SpectralGradient, State
from mixbin.solvers.base import LEAST, NoFiniteValue

FIRST_WEIGHT = 1e-3
"""The first weight of the penalty, 1/eps, is this share of the scale of the gradient: a small perturbation of G."""
GRADUAL = 32.0
"""eps falls step by step from this many times the eps at which a point tried off a stationary point would be as low."""
LAM_SOLVER = SpectralGradient(memory=1)
LAM_STEPS = 50
"""At a binary theta, LAM_SOLVER makes at most this many steps to optimise lam."""
LARGEST_ALTERNATION = 10_000
"""With at most this many entries, lam is optimised after each call of the problem's own search, not only after the last one."""
REPAIR = "the nearest feasible binary point was taken"


class Run:
    """One call of a method."""

    def __init__(self, problem: CheckedProblem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        if settings.max_evaluations is not None:
            problem.max_evaluations = float(settings.max_evaluations)
        self.at, self._resumed = Progress(), False
        self.journal = Journal(problem, settings)
        self.limits = Limits(problem, settings, self.journal)
        self.objective = Objective(problem, settings.penalty, may_evaluate=lambda: self.limits.may_evaluate(self.at))
        self.searches = Searches(self.objective, settings, self.journal, self._rng)

    def finish(self) -> Result:
        """Run to the end and return the result; begin from the checkpoint if there is one."""
        settings = self.settings
        try:
            if settings.checkpoint is None:
                return self._finish(None)
            types = (
                Progress,
                Candidate,
                MoveCheck,
                Relaxed,
                Status,
                PolishState,
                LAM_SOLVER.state_type,
                settings.solver.state_type,
                State,
                Curvature,
                WalkState,
            )
            known = {kind.__name__: kind for kind in types}
            with Checkpoint(
                settings.checkpoint, settings.checkpoint_every, identity(self.problem, settings), known
            ) as checkpoint:
                self._resume(checkpoint.load(Progress))
                return self._finish(checkpoint)
        finally:
            self.journal.close()

    def _resume(self, saved: Progress | None) -> None:
        if saved is not None:
            check_loaded(saved, self.problem, self.settings)
            self.at, self._resumed = saved, True
            self.problem.n_full, self.problem.n_term_evaluations = saved.n_full, saved.n_term_evaluations
            self.objective.epsilon = saved.epsilon
            self.searches.limit(saved)
            self.journal.resume(saved)

    def _finish(self, checkpoint: Checkpoint | None) -> Result:
        phases = {
            "begin": self._begin,
            "next": lambda: self.searches.next(self.at),
            "learn": lambda: self.searches.learn(self.at),
            "search": lambda: self.searches.search(self.at),
            "relax": self._relax,
            "penalise": self._penalise,
            "fix": self._fix,
            "lam": self._lam,
            "judge": self._judge,
            "polish": self._polish,
            "cold": self._cold,
        }
        cut = False
        whole = copy.copy(self.at)
        try:
            while self.at.phase != "done":
                if checkpoint is not None and not cut:
                    whole = self._boundary(checkpoint)
                try:
                    if self.journal.stopped and not cut and self.at.phase not in ("begin", "cold"):
                        raise OutOfEvaluations
                    phases[self.at.phase]()
                except DivergedError:
                    if not self.at.origin:
                        raise
                    self.searches.give_up(self.at)
                except OutOfEvaluations:
                    # The checkpoint keeps the state before the cut, so that a later call with more time can go on from there.
                    cut = cut or self.journal.stopped or self.limits.out_of_time()
                    if cut and checkpoint is not None:
                        checkpoint.save(whole)
                    self._cut_short()
        except KeyboardInterrupt:
            if checkpoint is not None:
                whole.trace.truncate(whole.n_rows)
                checkpoint.save(whole)
                path = str(checkpoint.path)
                print(f"mixbin: interrupted; the same call with checkpoint={path!r} goes on from here", file=sys.stderr)
            raise
        if checkpoint is not None and not cut:
            checkpoint.save(self._noted())
        return result_of(self.at, self.problem, self.settings, self.journal.stopped)

    def _boundary(self, checkpoint: Checkpoint) -> Progress:
        """Between two steps: write the checkpoint if it is due, and return a copy to write if the next step is interrupted."""
        at = self._noted()
        if checkpoint.due():
            checkpoint.save(at)
        return copy.copy(at)

    def _noted(self) -> Progress:
        at = self.at
        at.n_full, at.n_term_evaluations = self.problem.n_full, self.problem.n_term_evaluations
        at.seconds, at.n_rows = self.journal.seconds(), len(at.trace)
        return at

    # The phases, in their order.

    def _begin(self) -> None:
        """Go to the first point of a start: in start 0 the caller's or the one of ``_first_theta``, later random points."""
        at, settings = self.at, self.settings
        at.draws = 0
        again = at.start > 0
        rng = self._rng() if again else None
        theta = settings.theta0 if settings.theta0 is not None and not again else self._first_theta(rng)
        lam = settings.lam0 if settings.lam0 is not None else self.problem.lam_set.start(rng)
        self.problem.where = f"start {at.start}, first point"
        self.objective.epsilon = at.epsilon = np.inf
        state = settings.solver.init(self.objective, theta, self.problem.lam_set.encode(lam), self._rng())
        if not again and not self._resumed and self.problem.offers.check_first_gradient:
            warn_of_wrong_gradient(self.problem, state.theta, lam)
        at.state, at.outer, at.inner = state, 0, 0
        at.relaxed = at.answer = at.polish = None
        if settings.relax_first or settings.rounding != "penalise":
            at.phase = "relax"
            self.journal.row(at, state.theta, state.lam)
        else:
            self._begin_penalty(state)

    def _first_theta(self, rng: np.random.Generator | None) -> Floats:
        """Without ``rng`` the suggestion of the problem, or the centre of the set if it has none; with ``rng`` a random point."""
        if rng is None and self.problem.offers.start is not None:
            return self.problem.suggest(self._rng())
        return self.problem.theta_set.start(rng)

    def _relax(self) -> None:
        """Minimise G without penalty: one solver step or, after the last one, the change of phase."""
        at, settings = self.at, self.settings
        assert at.state is not None
        if at.inner < settings.relax_steps and not settings.solver.done(self.objective, at.state):
            self._step()
            return
        self._outer_row(at.state)
        self._note_relaxed(at.state, at.state.value if at.state.exact else evaluated(self.objective, at.state))
        if settings.rounding == "penalise":
            self._begin_penalty(at.state)
        else:
            self._round("")

    def _note_relaxed(self, state: State, value: float) -> None:
        """Keep the relaxed point, and ask for the lower bound there if a certificate will need it."""
        self.at.relaxed = Relaxed(state.theta, self.problem.lam_set.decode(state.lam), value)
        if self.settings.rounding is not None:
            self._ask_for_bound(state.theta, self.at.relaxed.lam)

    def _ask_for_bound(self, theta: NDArray[Any], lam: Floats) -> None:
        """Compute a lower bound at this point and keep the largest so far: each holds for all answers, whatever the point."""
        if self.problem.offers.bound is not None:
            bound = self.problem.lower_bound(theta.astype(np.float64, copy=False), lam)
            self.at.lower_bound = max(self.at.lower_bound, bound)

    def _begin_penalty(self, state: State) -> None:
        epsilon0 = self.settings.epsilon0
        if epsilon0 is None:
            scale = self.objective.scale(state.grad_theta)
            # A gradient of zero says nothing about the scale of G; the value of G is the next best guess.
            epsilon0 = 1.0 / max(FIRST_WEIGHT * (scale or abs(state.value) or 1.0), LEAST)
        self.at.phase, self.at.outer = "penalise", 0
        self._reweight(state, epsilon0)

    def _reweight(self, state: State, epsilon: float) -> None:
        at = self.at
        self.objective.epsilon = at.epsilon = epsilon
        at.state = self.settings.solver.reweight(self.objective, state)
        at.theta_before, at.inner = state.theta, 0

    def _penalise(self) -> None:
        """Algorithm 1: minimise G + phi/eps from the last solution. If the solution is not binary, go on with a smaller eps."""
        at, settings = self.at, self.settings
        assert at.state is not None
        limit = settings.inner_steps[min(at.outer, len(settings.inner_steps) - 1)]
        if at.inner < limit and not settings.solver.done(self.objective, at.state):
            self._step()
            return
        distance = at.distance = self._outer_row(at.state)
        if distance < settings.tol:
            vertex = self.problem.theta_set.vertex(at.state.theta)
            when = f"eps = {at.epsilon:.3g} (outer iteration {at.outer})"
            self._answer(vertex, Status.BINARY, f"the penalty made theta binary at {when}")
        elif at.outer + 1 >= settings.max_outer:
            self._round(f"max_outer = {settings.max_outer} reached at distance {distance:.2g}; {REPAIR}")
        else:
            assert at.theta_before is not None
            jumped = off_stationary_points(self.objective, settings.solver, at.state, at.theta_before, self._rng)
            at.outer += 1
            epsilon = at.epsilon * settings.beta
            if settings.search == "portfolio":
                # Until the penalty can compete with G, theta would stay where it is.
                while epsilon > GRADUAL * jumped.epsilon:
                    epsilon *= settings.beta
            self._reweight(jumped.state, max(epsilon, SMALLEST_EPSILON))

    def _round(self, message: str) -> None:
        """Round theta, or leave it relaxed, as ``rounding`` says: the penalty has not made it binary."""
        theta_set, rounding = self.problem.theta_set, self.settings.rounding
        assert self.at.state is not None
        theta = self.at.state.theta
        if rounding is None:
            self._answer(theta, Status.RELAXED, message or "relaxed: theta is not rounded")
        elif rounding == "simple":
            rounded = theta_set.round(theta)
            violation = theta_set.violation(rounded)
            if violation > 0:
                self._answer(rounded, Status.INFEASIBLE, f"simple rounding left the set {theta_set!r} by {violation:g}")
            else:
                self._answer(rounded, Status.REPAIRED, message or "relaxed, then each entry rounded")
        else:
            self._answer(theta_set.vertex(theta), Status.REPAIRED, message or "relaxed, then the nearest feasible binary point")

    def _answer(self, theta: NDArray[Any], status: Status, message: str) -> None:
        at = self.at
        at.answer, at.status, at.message = theta, status, message
        assert at.state is not None
        # From here on only lam and the warm state are needed. Dropping the rest saves copies of theta, which may be large.
        nothing = np.empty(0)
        at.state, at.theta_before = replace(at.state, theta=nothing, grad_theta=nothing), None
        at.phase = "fix" if theta.dtype == np.bool_ else "cold"

    def _fix(self) -> None:
        """Begin to optimise lam at the binary theta, if the problem has a lam and the caller wants that."""
        at = self.at
        assert at.state is not None
        at.inner = 0
        if not self.problem.lam_set.size or not self.settings.reoptimize_lam:
            at.phase = "judge"
            return
        self.problem.where = f"start {at.start}, lam at the binary theta"
        try:
            at.state = LAM_SOLVER.init(self._fixed(), np.empty(0), at.state.lam, self._rng(), at.state.warm)
            at.phase = "lam"
        except NoFiniteValue:
            at.phase = "cold"

    def _fixed(self) -> FixedTheta:
        assert self.at.answer is not None
        return FixedTheta(self.objective, self.at.answer.astype(np.float64))

    def _lam(self) -> None:
        """Optimise lam at the binary theta: one step of LAM_SOLVER or, after the last one, the change of phase."""
        at, fixed = self.at, self._fixed()
        state: Any = at.state
        if at.inner < LAM_STEPS and not LAM_SOLVER.done(fixed, state):
            at.state = LAM_SOLVER.step(fixed, state)
            at.inner += 1
            self.journal.row(at, fixed.theta, at.state.lam)
        else:
            at.phase = "judge"

    def _judge(self) -> None:
        """Begin to polish if the caller wants that and polish has evaluations left; otherwise go on to the last evaluation."""
        at, settings = self.at, self.settings
        assert at.state is not None
        assert at.answer is not None
        spent = at.polish.spent if at.polish is not None else 0
        if settings.rounding != "penalise" or spent >= settings.polish:
            at.phase = "cold"
            return
        self.problem.where = f"start {at.start}, polish"
        at.polish = begin_polish(self.objective, at.answer, at.state.lam, at.state.warm, spent)
        if at.origin:
            # Large steps follow the gradient, and would lead searches from different points to the same one.
            at.polish = replace(at.polish, reach=-1)
        if settings.gap_tol:
            self._ask_for_bound(at.answer, self.problem.lam_set.decode(at.state.lam))
        at.phase, at.inner = "polish", 0

    def _polish(self) -> None:
        """One pass of polish. When polish is done and has changed theta, optimise lam again and polish on from there."""
        at, limit = self.at, self.settings.polish
        assert at.polish is not None
        if not polish_done(at.polish, limit) and not self.limits.gap_is_small(at, at.polish.value):
            searched = at.polish.reach < 0
            at.polish = polish_step(self.objective, at.polish, limit)
            at.answer = at.polish.theta
            at.inner += 1
            self.journal.row(at, at.answer.astype(np.float64), at.polish.lam)
            if self._lam_is_next(at.polish, searched):
                at.phase = "fix"
        elif at.polish.moved and self.problem.lam_set.size and self.settings.reoptimize_lam:
            at.phase = "fix"
        else:
            at.phase = "cold"

    def _lam_is_next(self, polish: PolishState, searched: bool) -> bool:
        """Whether to optimise lam before the problem's own search goes on.

        Only for the last lam need the search prove that no move is left. On large sets a search takes many calls, so there lam
        waits for its end.
        """
        if not (searched and polish.moved) or polish_done(polish, self.settings.polish):
            return False
        alternates = self.settings.search == "portfolio" and self.settings.reoptimize_lam and self.problem.lam_set.size > 0
        return alternates and self.problem.offers.search is not None and self.problem.theta_set.size <= LARGEST_ALTERNATION

    def _cold(self) -> None:
        """Evaluate the answer without warm state, keep it if it is the best so far, and go on to the next start.

        The reported value must not depend on the path that led to the answer, as it would with a warm state.
        """
        at, settings = self.at, self.settings
        assert at.state is not None
        assert at.answer is not None
        self.problem.where = f"start {at.start}, cold evaluation of the answer"
        lam = self.problem.lam_set.decode(at.state.lam)
        certifiable = at.answer.dtype == np.bool_ and at.status is not Status.INFEASIBLE
        got = self.problem.evaluate(at.answer.astype(np.float64), lam, gradient=certifiable)
        by_relaxed = at.relaxed is not None and settings.rounding in (None, "simple")
        rank = at.relaxed.value if by_relaxed and at.relaxed is not None else got.value
        if certifiable:
            self._ask_for_bound(at.answer, lam)
            bound_below(self.at.lower_bound, got.value)  # raises if the bound is wrong: better now than after all starts
        before = at.best
        if certifiable:
            count_answer(at, at.answer, got.value)
        if before is None or rank < before.rank:
            grad = got.grad_theta if np.isfinite(got.value) else None
            at.best = Candidate(
                rank=rank,
                theta=at.answer,
                lam=lam,
                value=got.value,
                grad=grad,
                status=at.status,
                message=(message(at, before) if at.origin and before else at.message) + self.limits.why_polish_ended(at),
                relaxed=at.relaxed,
                moves=self._moves(at.polish, at.state.lam),
                epsilon=at.epsilon,
                distance=at.distance,
            )
        at.start += 1
        at.state = None
        if self.journal.stopped:
            at.phase = "done"
        elif has_further_searches(settings):
            at.phase = "next"
        else:
            at.phase = "begin" if at.start < settings.starts and not self.limits.is_enough(at) else "done"

    def _moves(self, polish: PolishState | None, lam: Floats) -> MoveCheck | None:
        """What polish knows about the moves of the answer; None if polish has not looked at them with this lam."""
        if polish is None or not np.array_equal(polish.lam, lam):
            return None
        return MoveCheck(polish.tried, without_rounding(polish.best_change, polish.value))

    # Limits.

    def _cut_short(self) -> None:
        """A limit was reached: round the point of the last accepted step, or go straight to the last evaluation."""
        at, settings = self.at, self.settings
        if at.phase == "begin":
            if at.best is None:
                name = "time_limit" if self.limits.out_of_time() else "max_evaluations"
                value = getattr(settings, name)
                raise InvalidInput(f"{name} must leave room for the first point and the answer, got {value}; give it more")
            at.phase = "done"
        elif at.phase in ("next", "learn", "search"):
            self.searches.cut_short(at)
        elif at.phase in ("relax", "penalise"):
            assert at.state is not None
            if at.phase == "relax":
                self._note_relaxed(at.state, at.state.value)
            self._round(f"{self.limits.text()} in the {at.phase} phase; {REPAIR}")
            if self.journal.stopped or self.limits.out_of_time():
                at.phase = "cold"
        else:
            at.phase = "cold"

    # Helpers of several phases.

    def _rng(self) -> np.random.Generator:
        """A new generator, seeded by the seed, the start and a counter. So a checkpoint holds a counter, not a generator."""
        self.at.draws += 1
        return np.random.default_rng([self.settings.seed, self.at.start, self.at.draws])

    def _step(self) -> None:
        at = self.at
        place = f", outer iteration {at.outer}" if at.phase == "penalise" else ""
        self.problem.where = f"start {at.start}, {at.phase}{place}, step {at.inner + 1}"
        state = self.settings.solver.step(self.objective, at.state)
        at.state, at.inner = state, at.inner + 1
        self.journal.row(at, state.theta, state.lam)

    def _outer_row(self, state: State) -> float:
        """End an outer iteration: update the estimate of L, add a row to the trace, and return the distance to binary points."""
        seen = float(np.linalg.norm(self.problem.theta_set.tangent(state.grad_theta)))
        self.at.lipschitz = max(self.at.lipschitz, seen)
        return self.journal.row(self.at, state.theta, state.lam, outer=True)

"""The phases after the path: begin a search, learn the curvature of G, search with it. Good answers go on to polish.

If all binary points can be compared (see ``comparison``), that takes the place of the searches.
A problem with fast moves or a search of its own is polished from where the search begins. For any other problem of moderate size
the curvature is learnt from gradients first. If the learnt model is exact, as for a quadratic G, it is searched without
evaluations, and each new answer is evaluated; otherwise walks evaluate G at every step (see ``curvature`` and ``walk``).
"""

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mixbin.checked_problem import CheckedProblem
from mixbin.methods.comparison import can_compare, compare_all
from mixbin.methods.curvature import LARGEST_LEARNT, MOST_OF_BUDGET, begin_learning, is_exact, learn, with_all_entries
from mixbin.methods.journal import Journal, log
from mixbin.methods.portfolio import COMPARED, RANDOM, beginning, count_answer, digest, goes_on
from mixbin.methods.quadratic_search import quadratic_search
from mixbin.methods.settings import Settings
from mixbin.methods.state import Progress
from mixbin.methods.walk import begin_walk, walk_done, walk_step
from mixbin.problem import FALL, Floats
from mixbin.result import Status
from mixbin.solvers import Objective, State

LAM_SPREAD = 0.25
"""A search from a random binary point begins with the lam of the best answer plus normal numbers of this standard deviation, in
the unit box."""


class Searches:
    """The phases "next", "learn" and "search" of a run. All they decide from is in ``Progress`` and ``Settings``."""

    def __init__(
        self, objective: Objective, settings: Settings, journal: Journal, new_rng: Callable[[], np.random.Generator]
    ) -> None:
        self.objective, self.settings, self.journal, self.new_rng = objective, settings, journal, new_rng

    @property
    def problem(self) -> CheckedProblem:
        """The problem of the run."""
        return self.objective.problem

    def limit(self, at: Progress) -> None:
        """Make a search of the problem's own keep to the budget of the searches after the path."""
        if at.budget:
            most = self.settings.max_evaluations
            self.problem.max_evaluations = float(at.budget if most is None else min(most, at.budget))

    def next(self, at: Progress) -> None:
        """Begin one more search at a binary point, with the lam of the best answer, or end the run."""
        assert at.best is not None
        if at.budget == 0:
            at.budget = self.settings.starts * self.problem.n_evaluations
            self._compare(at)
            self.limit(at)
            if at.phase != "next":
                return
        if not goes_on(at, self.settings) or not self.objective.may_evaluate():
            at.phase = "done"
            return
        at.draws = 0
        self.problem.where = f"search {at.start}, first point"
        at.origin, at.answer = beginning(at, self.problem, self.new_rng())
        self._leave_path(at, self._first_lam(at))
        offers = self.problem.offers
        if offers.moves is not None or self.problem.theta_set.size > LARGEST_LEARNT or at.best.grad is None:
            at.phase = "judge"
            return
        self._base_model(at)
        assert at.curvature is not None
        at.phase = "search" if at.curvature.ready else "learn"

    def _leave_path(self, at: Progress, u: Floats) -> None:
        """Forget the state of the search before. Polish and the search for lam need lam alone from the state of a solver."""
        at.outer, at.inner = 0, 0
        self.objective.epsilon = at.epsilon = at.distance = np.inf
        at.status, at.polish, at.walk = Status.BINARY, None, None
        nothing = np.empty(0)
        at.state = State(
            theta=nothing, lam=u, value=np.inf, phi=0.0, grad_theta=nothing, grad_lam=np.zeros_like(u), warm=MappingProxyType({})
        )

    def _compare(self, at: Progress) -> None:
        """Compare all binary points if they are few and the problem can; then no search is needed but the polish of the best."""
        assert at.best is not None
        if not can_compare(self.problem) or not goes_on(at, self.settings) or not self.objective.may_evaluate():
            return
        self.problem.where = "comparison of all binary points"
        before = self.problem.n_evaluations
        found = compare_all(self.problem, self.settings, self.problem.lam_set.encode(at.best.lam), at.budget)
        at.budget += self.problem.n_evaluations - before
        if found is None:
            return
        at.compared, at.lams = found.points, found.lams
        if np.array_equal(found.theta, at.best.theta) and not found.value < at.best.value - FALL * abs(at.best.value):
            at.phase = "done"
            return
        at.draws, at.origin, at.answer, at.phase = 0, COMPARED, found.theta, "fix"
        self._leave_path(at, found.lam)

    def _first_lam(self, at: Progress) -> Floats:
        """The lam that the search begins with, in the unit box: that of the best answer, or a random one near it.

        Minima in theta and lam together often differ in lam, and from the lam of the best answer only its own is found.
        """
        assert at.best is not None
        lam_set = self.problem.lam_set
        u = lam_set.encode(at.best.lam)
        if at.origin != RANDOM or not lam_set.size or not self.settings.reoptimize_lam or self.problem.offers.moves is None:
            return u
        return np.asarray(np.clip(u + LAM_SPREAD * self.new_rng().normal(size=lam_set.shape), 0.0, 1.0))

    def _base_model(self, at: Progress) -> None:
        """Let the model of G begin at the best answer, or move it there with the columns that are known."""
        assert at.best is not None
        assert at.best.grad is not None
        assert at.state is not None
        theta, u, value, grad = at.best.theta, at.state.lam, at.best.value, at.best.grad
        if at.curvature is not None:
            at.curvature = replace(at.curvature, theta=theta, lam=u, value=value, grad=grad.ravel())
            return
        began = begin_learning(self.problem.theta_set, theta, u, value, grad)
        left = self.problem.max_evaluations - self.problem.n_evaluations
        if began.off.size > MOST_OF_BUDGET * left:
            # Too many columns to learn beforehand: walks learn those of the entries that they change.
            nothing = np.empty(0, dtype=np.intp)
            began = replace(began, off=nothing, on=nothing, child=nothing, exact=False)
        else:
            began = with_all_entries(self.objective, began)
        at.curvature = began

    def learn(self, at: Progress) -> None:
        """Learn some columns of the curvature."""
        assert at.curvature is not None
        assert at.state is not None
        self.problem.where = f"search {at.start}, curvature"
        at.curvature = learn(self.objective, at.curvature)
        at.inner += 1
        self.journal.row(at, at.curvature.theta.astype(np.float64), at.state.lam)
        if at.curvature.ready:
            at.phase, at.inner = "search", 0

    def search(self, at: Progress) -> None:
        """A whole search with an exact model, or one step of a walk."""
        assert at.curvature is not None
        self.problem.where = f"search {at.start}, step {at.inner + 1}"
        if at.walk is None and at.curvature.exact:
            self._search_model(at)
        elif at.walk is None or not walk_done(at.walk):
            self._walk(at)
        else:
            self._end(at, at.walk.best, at.walk.best_value)

    def _search_model(self, at: Progress) -> None:
        """Search the model, then evaluate G at the answer. If the model is wrong there, walk on from that point."""
        assert at.curvature is not None
        assert at.state is not None
        assert at.answer is not None
        theta_set = self.problem.theta_set
        found = quadratic_search(theta_set, at.curvature.model().at(at.answer.ravel()), self.new_rng())
        theta = found.theta.reshape(theta_set.shape)
        if digest(theta) in at.answers:
            self._count(at, theta, found.value)
            return
        expected = at.curvature.model().at(found.theta)
        at.walk = begin_walk(self.objective, theta, at.state.lam)
        at.inner += 1
        self.journal.row(at, theta.astype(np.float64), at.state.lam)
        if is_exact(at.curvature, expected, at.walk.value, at.walk.grad):
            self._end(at, theta, at.walk.value)
        else:
            at.curvature = replace(at.curvature, exact=False)

    def _walk(self, at: Progress) -> None:
        """Begin a walk, or make one step of it."""
        assert at.curvature is not None
        assert at.state is not None
        if at.walk is None:
            assert at.answer is not None
            at.walk = begin_walk(self.objective, at.answer, at.state.lam)
        else:
            at.walk, columns = walk_step(self.objective, at.walk, at.curvature.columns, self.new_rng())
            at.curvature = replace(at.curvature, columns=columns)
        at.inner += 1
        self.journal.row(at, at.walk.theta.astype(np.float64), at.state.lam)

    def _end(self, at: Progress, theta: NDArray[np.bool_], value: float) -> None:
        """Polish what may become the best answer, and go on to the next search otherwise."""
        assert at.best is not None
        if value < at.best.value - FALL * abs(at.best.value):
            at.answer, at.phase = theta, "fix"
        else:
            self._count(at, theta, value)

    def _count(self, at: Progress, theta: NDArray[np.bool_], value: float) -> None:
        count_answer(at, theta, value)
        at.start += 1
        at.walk = at.state = at.answer = None
        at.phase = "next"

    def give_up(self, at: Progress) -> None:
        """G cannot be computed where the search came by. There is an answer already, so leave this search and begin the next."""
        if at.phase == "learn" and at.curvature is not None:
            at.curvature = replace(at.curvature, learnt=at.curvature.off.size, exact=False)
        log.warning("search %d from %s ended at a point where G cannot be computed", at.start, at.origin)
        at.searches, at.fruitless, at.start = at.searches + 1, at.fruitless + 1, at.start + 1
        at.walk = at.state = at.answer = at.polish = None
        at.phase = "next"

    def cut_short(self, at: Progress) -> None:
        """A limit was reached: keep the best point of a walk if it is the best answer so far, and end."""
        assert at.best is not None
        if at.phase == "search" and at.walk is not None and at.walk.best_value < at.best.value:
            at.answer, at.phase = at.walk.best, "cold"
        else:
            at.phase = "done"

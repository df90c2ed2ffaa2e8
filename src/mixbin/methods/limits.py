"""When a run or a part of it must end: evaluations, time, a callback, or a proven gap that is small enough."""

from mixbin.certificate import bound_below, proven_gap
from mixbin.checked_problem import CheckedProblem
from mixbin.methods.journal import Journal
from mixbin.methods.polish import polish_done
from mixbin.methods.settings import Settings
from mixbin.methods.state import Progress

FOR_POLISH = 0.25
"""The relaxed and the penalised stage leave this share of ``max_evaluations`` to polish."""


class Limits:
    """The limits of a run."""

    def __init__(self, problem: CheckedProblem, settings: Settings, journal: Journal) -> None:
        self.problem, self.settings, self.journal = problem, settings, journal

    def may_evaluate(self, at: Progress) -> bool:
        """Whether a solver may evaluate once more: one evaluation is reserved for the answer, and a share for polish."""
        settings = self.settings
        limit = self.problem.max_evaluations
        searching = at.phase in ("relax", "penalise") or (at.phase == "begin" and at.start > 0)
        if settings.rounding == "penalise" and settings.polish and searching:
            limit *= 1.0 - FOR_POLISH
        return self.problem.n_evaluations + 1 < limit and not self.out_of_time()

    def out_of_time(self) -> bool:
        """Whether ``time_limit`` has passed."""
        limit = self.settings.time_limit
        return limit is not None and self.journal.seconds() >= limit

    def text(self) -> str:
        """Which limit was reached, for the message."""
        if self.journal.stopped:
            return "stopped by a callback"
        if self.out_of_time():
            return f"time_limit = {self.settings.time_limit} s reached"
        return f"max_evaluations = {self.settings.max_evaluations} reached"

    def gap_is_small(self, at: Progress, value: float) -> bool:
        """Whether the lower bound proves that no answer is better than one of this value by ``gap_tol``."""
        if not self.settings.gap_tol:
            return False
        return proven_gap(bound_below(at.lower_bound, value), value) < self.settings.gap_tol

    def is_enough(self, at: Progress) -> bool:
        """Whether the lower bound proves that further starts cannot find an answer that is better by ``gap_tol``."""
        return at.best is not None and at.best.grad is not None and self.gap_is_small(at, at.best.value)

    def why_polish_ended(self, at: Progress) -> str:
        """The end of the message: why polish ended, if ``gap_tol`` was the reason; otherwise empty."""
        polish = at.polish
        if polish is None or polish_done(polish, self.settings.polish) or not self.gap_is_small(at, polish.value):
            return ""
        gap = proven_gap(at.lower_bound, polish.value)
        return f"; polish ended at a proven gap of {gap:.2g}, below gap_tol = {self.settings.gap_tol:g}"

"""What a run reports at its end: the result with the certificate of its answer."""

import numpy as np

from mixbin.certificate import Certificate, bound_below
from mixbin.checked_problem import CheckedProblem
from mixbin.methods.settings import Settings, shown_settings
from mixbin.methods.state import Candidate, Progress
from mixbin.result import Result, Status


def result_of(at: Progress, problem: CheckedProblem, settings: Settings, stopped: bool) -> Result:
    """The result of a run that is done; ``stopped`` says whether a callback stopped it."""
    best = at.best
    assert best is not None
    return Result(
        theta=best.theta,
        lam=best.lam,
        value=best.value,
        status=Status.STOPPED if stopped and best.status is not Status.INFEASIBLE else best.status,
        message=best.message,
        n_evaluations=problem.n_evaluations,
        relaxed=best.relaxed,
        certificate=_certificate(at, best, problem),
        violation=problem.theta_set.violation(best.theta) if best.theta.dtype == np.bool_ else 0.0,
        seed=settings.seed,
        settings=shown_settings(settings),
        trace=at.trace,
    )


def _certificate(at: Progress, best: Candidate, problem: CheckedProblem) -> Certificate | None:
    """What the run has learnt about its answer; None unless the answer is binary and feasible."""
    if best.grad is None:
        return None
    theta_set = problem.theta_set
    penalised = np.isfinite(best.epsilon)
    return Certificate(
        epsilon_star=theta_set.epsilon_star(best.theta, best.grad),
        epsilon=best.epsilon if penalised else np.nan,
        lipschitz=at.lipschitz if penalised else np.nan,
        distance=best.distance if penalised else np.nan,
        moves_tried=best.moves.tried if best.moves is not None else 0,
        moves_total=theta_set.n_moves(best.theta),
        best_change=best.moves.best_change if best.moves is not None and best.moves.tried else np.nan,
        relaxed_gap=best.value - best.relaxed.value if best.relaxed is not None else np.nan,
        value=best.value,
        lower_bound=bound_below(at.lower_bound, best.value),
        searches=at.searches,
        different_answers=at.answers.size,
        times_best=at.times_best,
        points_compared=at.compared,
        lams_compared=at.lams,
    )

"""Check that the state in a checkpoint is possible for this problem: shapes, feasible points, and the parts that its phase needs.

Without this check, a damaged file or one written by hand could end a run with an answer that is not in its set.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin.checked_problem import CheckedProblem
from mixbin.errors import CheckpointMismatch
from mixbin.methods.curvature import Curvature
from mixbin.methods.portfolio import has_further_searches
from mixbin.methods.settings import Settings
from mixbin.methods.state import Progress
from mixbin.methods.walk import WalkState
from mixbin.result import Relaxed, Status
from mixbin.sets import BinarySet, Box

NEEDS = {
    "begin": (),
    "next": ("best",),
    "learn": ("best", "state", "answer", "curvature"),
    "search": ("best", "state", "answer", "curvature"),
    "relax": ("state",),
    "penalise": ("state", "theta_before"),
    "fix": ("state", "answer"),
    "lam": ("state", "answer"),
    "judge": ("state", "answer"),
    "polish": ("state", "answer", "polish"),
    "cold": ("state", "answer"),
    "done": ("best",),
}
"""The phases, and the parts of ``Progress`` that must not be None in each of them."""


def check_loaded(at: Progress, problem: CheckedProblem, settings: Settings) -> None:
    """Refuse a state that no run of this problem could have written; the error names the first fault."""
    for fault in _faults(at, problem.theta_set, problem.lam_set, settings):
        raise CheckpointMismatch(
            f"checkpoint {settings.checkpoint!r} does not fit this problem: {fault}; "
            "give this run another file, or delete that one to start afresh"
        )


def _faults(at: Progress, theta_set: BinarySet, lam_set: Box, settings: Settings) -> Iterator[str]:
    """What makes the state impossible, the most basic fault first.

    The caller must stop at the first fault: later checks rely on the earlier ones.
    """
    if at.phase not in NEEDS:
        yield f"it is in the phase {at.phase[:40]!r}, which no run has"
    for part in NEEDS[at.phase]:
        if getattr(at, part) is None:
            yield f"it is in the phase {at.phase!r} without {part!r}"
    counts: tuple[int, ...] = (at.start, at.outer, at.inner, at.draws, at.n_full, at.n_term_evaluations, at.n_rows)
    counts += (at.budget, at.searches, at.times_best, at.finds, at.fruitless, at.compared, at.lams)
    most = np.inf if has_further_searches(settings) else settings.starts
    if min(counts) < 0 or at.start > most or at.n_rows > len(at.trace):
        yield f"its counts are {counts}"
    if not at.epsilon > 0:
        yield f"its eps is {at.epsilon}"
    if not at.lower_bound < np.inf:
        yield f"its lower bound is {at.lower_bound}"
    if at.state is not None:
        shape = at.state.theta.shape
        fixed = at.answer is not None and shape == (0,)
        if not fixed:
            yield from _point("theta", at.state.theta, theta_set)
        if at.state.grad_theta.shape != shape or at.state.grad_lam.shape != lam_set.shape:
            yield "its gradients have another shape"
        yield from _unit(at.state.lam, lam_set)
    if at.theta_before is not None:
        yield from _point("theta before", at.theta_before, theta_set)
    if at.answer is not None:
        yield from _answer("the answer", at.answer, at.status, theta_set)
    if at.polish is not None:
        yield from _answer("the polished answer", at.polish.theta, at.status, theta_set)
        if at.polish.grad.shape != theta_set.shape:
            yield "its gradients have another shape"
        yield from _unit(at.polish.lam, lam_set)
    if at.curvature is not None:
        yield from _curvature(at.curvature, theta_set, lam_set)
    if at.walk is not None:
        yield from _walk(at.walk, theta_set, lam_set)
    yield from _relaxed(at.relaxed, theta_set, lam_set)
    if at.best is not None:
        yield from _answer("the best answer", at.best.theta, at.best.status, theta_set)
        yield from _lam(at.best.lam, lam_set)
        yield from _relaxed(at.best.relaxed, theta_set, lam_set)
        if at.best.grad is not None and at.best.grad.shape != theta_set.shape:
            yield "its gradients have another shape"


def _point(name: str, theta: NDArray[Any], theta_set: BinarySet) -> Iterator[str]:
    if theta.dtype != np.float64 or theta.shape != theta_set.shape:
        yield f"{name} has shape {theta.shape} and dtype {theta.dtype}"
    elif not np.isfinite(theta).all() or not theta_set.contains(theta):
        yield f"{name} is not in {theta_set!r}"


def _answer(name: str, theta: NDArray[Any], status: Status, theta_set: BinarySet) -> Iterator[str]:
    """Faults of an answer: it must be binary and feasible, unless its status is RELAXED or INFEASIBLE."""
    if theta.dtype != np.bool_:
        yield from _point(name, theta, theta_set)
    elif theta.shape != theta_set.shape:
        yield f"{name} has shape {theta.shape}"
    elif status is not Status.INFEASIBLE and theta_set.violation(theta) > 0:
        yield f"{name} is not in {theta_set!r}"


def _curvature(at: Curvature, theta_set: BinarySet, lam_set: Box) -> Iterator[str]:
    yield from _answer("the point of its curvature", at.theta, Status.BINARY, theta_set)
    yield from _unit(at.lam, lam_set)
    n = theta_set.size
    if at.theta.dtype != np.bool_ or at.columns.shape != (n, n) or at.grad.shape != (n,):
        yield "its curvature has another shape"
    moves = (at.off, at.on, at.child)
    if len({side.shape for side in moves}) > 1 or any(side.ndim != 1 or side.dtype.kind != "i" for side in moves):
        yield "the moves of its curvature are not what they must be"
    if any(side.size and (side.min() < -1 or side.max() > n) for side in moves) or not 0 <= at.learnt <= at.off.size:
        yield "the moves of its curvature do not fit theta"


def _walk(at: WalkState, theta_set: BinarySet, lam_set: Box) -> Iterator[str]:
    for name, theta in (("the point of its walk", at.theta), ("the best point of its walk", at.best)):
        yield from _answer(name, theta, Status.BINARY, theta_set)
        if theta.dtype != np.bool_:
            yield f"{name} is not binary"
    yield from _unit(at.lam, lam_set)
    if at.grad.shape != (theta_set.size,) or at.free_after.shape != (theta_set.size,):
        yield "its walk has another shape"


def _unit(u: NDArray[Any], lam_set: Box) -> Iterator[str]:
    if u.shape != lam_set.shape or not np.all((u >= 0.0) & (u <= 1.0)):
        yield f"lam is not in {lam_set!r}"


def _lam(lam: NDArray[Any], lam_set: Box) -> Iterator[str]:
    if lam.shape != lam_set.shape or not np.isfinite(lam).all() or not lam_set.contains(lam):
        yield f"lam is not in {lam_set!r}"


def _relaxed(relaxed: Relaxed | None, theta_set: BinarySet, lam_set: Box) -> Iterator[str]:
    if relaxed is not None:
        yield from _point("the relaxed point", relaxed.theta, theta_set)
        yield from _lam(relaxed.lam, lam_set)

"""The keywords of the methods, checked once before any work is done."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mixbin import _validate as check
from mixbin.penalties import Penalty, Quadratic
from mixbin.problem import CheckedProblem, Floats
from mixbin.progress import Callback
from mixbin.solvers import Solver, resolve_solver

Rounding = Literal["penalise", "top-k", "simple"] | None

INNER_STEPS = 20
RELAX_STEPS = 200
MANY_STARTS, SMALL = 8, 2_000
"""``starts="auto"``: this many starts when theta has at most this many entries, else 1."""


@dataclass(frozen=True)
class Settings:
    """What a run is told to do."""

    rounding: Rounding
    theta0: Floats | None
    lam0: Floats | None
    solver: Solver[Any]
    penalty: Penalty
    epsilon0: float | None
    beta: float
    tol: float
    inner_steps: tuple[int, ...]
    relax_steps: int
    max_outer: int
    max_evaluations: int | None
    time_limit: float | None
    relax_first: bool
    reoptimize_lam: bool
    starts: int
    seed: int
    callbacks: tuple[Callback, ...]


def settings(
    problem: CheckedProblem,
    *,
    rounding: Rounding,
    theta0: object = None,
    lam0: object = None,
    epsilon0: object = "auto",
    beta: object = 0.5,
    penalty: object = None,
    solver: object = None,
    tol: object = 1e-2,
    inner_steps: object = None,
    max_outer: object = 100,
    max_evaluations: object = None,
    time_limit: object = None,
    relax_first: object = True,
    reoptimize_lam: object = True,
    starts: object = "auto",
    seed: object = None,
    callbacks: object = (),
) -> Settings:
    """Check every keyword; the first that cannot be used is named in the error."""
    if penalty is not None and not isinstance(penalty, Penalty):
        raise check.fail("penalty", penalty, "a Penalty or None", "such as mixbin.Quadratic()")
    steps = _inner_steps(inner_steps)
    limited = max_evaluations is not None
    if limited:
        max_evaluations = check.whole(
            "max_evaluations", max_evaluations, low=2, remedy="one for the start and one for the answer"
        )
    if inner_steps is not None:
        relax_steps = steps[0] * (RELAX_STEPS // INNER_STEPS if rounding == "penalise" else 1)
    else:
        # A baseline that is given a number of evaluations uses them.
        relax_steps = 10**9 if limited and rounding != "penalise" else RELAX_STEPS * (1 if rounding == "penalise" else 5)
    return Settings(
        rounding=rounding,
        theta0=_theta0(problem, theta0),
        lam0=_lam0(problem, lam0),
        solver=resolve_solver(solver),
        penalty=Quadratic() if penalty is None else penalty,
        epsilon0=None if isinstance(epsilon0, str) and epsilon0 == "auto" else _epsilon0(epsilon0),
        beta=check.real("beta", beta, low=0.0, high=1.0, open_low=True, open_high=True, remedy="0.5 halves eps each time"),
        tol=check.real("tol", tol, low=0.0, high=0.5, open_low=True, open_high=True, remedy="the paper uses 1e-2"),
        inner_steps=steps,
        relax_steps=relax_steps,
        max_outer=check.whole("max_outer", max_outer, low=1),
        max_evaluations=max_evaluations,  # type: ignore[arg-type]
        time_limit=None
        if time_limit is None
        else check.real("time_limit", time_limit, low=0.0, open_low=True, remedy="in seconds"),
        relax_first=check.flag("relax_first", relax_first),
        reoptimize_lam=check.flag("reoptimize_lam", reoptimize_lam),
        starts=_starts(starts, problem.theta_set.size),
        seed=_seed(seed),
        callbacks=_callbacks(callbacks),
    )


def _theta0(problem: CheckedProblem, theta0: object) -> Floats | None:
    if theta0 is None:
        return None
    theta = check.array("theta0", theta0, shape=problem.theta_set.shape)
    return problem.theta_set.project(theta)


def _lam0(problem: CheckedProblem, lam0: object) -> Floats | None:
    if lam0 is None:
        return None
    lam = check.array("lam0", lam0, shape=problem.lam_set.shape)
    if not problem.lam_set.contains(lam):
        raise check.fail("lam0", lam0, f"within {problem.lam_set!r}", "choose a start inside the bounds or widen them")
    return lam


def _epsilon0(epsilon0: object) -> float:
    return check.real("epsilon0", epsilon0, low=0.0, open_low=True, remedy='use "auto" to take it from the gradient\'s scale')


def _inner_steps(inner_steps: object) -> tuple[int, ...]:
    if inner_steps is None:
        return (INNER_STEPS,)
    remedy = "one number, or one per value of eps (the last is repeated)"
    if isinstance(inner_steps, Sequence) and not isinstance(inner_steps, str):
        if not inner_steps:
            raise check.fail("inner_steps", inner_steps, "not empty", remedy)
        return tuple(check.whole("inner_steps", n, low=1, remedy=remedy) for n in inner_steps)
    return (check.whole("inner_steps", inner_steps, low=1, remedy=remedy),)


def _starts(starts: object, size: int) -> int:
    if isinstance(starts, str) and starts == "auto":
        return MANY_STARTS if size <= SMALL else 1
    return check.whole("starts", starts, low=1, remedy='"auto" chooses by the size of theta')


def _seed(seed: object) -> int:
    """One whole number from which each start's generator is made, so that a run without a seed can be repeated too."""
    if seed is not None and not isinstance(seed, np.random.Generator):
        return check.whole("seed", seed, low=0, remedy="pass None, a seed such as 0, or a numpy Generator")
    return int(check.generator("seed", seed).integers(2**63))


def _callbacks(callbacks: object) -> tuple[Callback, ...]:
    if not isinstance(callbacks, Iterable):
        raise check.fail("callbacks", callbacks, "a sequence of functions of an Event", "put a single one in a list")
    listed = tuple(callbacks)
    for callback in listed:
        if not callable(callback):
            raise check.fail("callbacks", callback, "a sequence of functions of an Event")
    return listed

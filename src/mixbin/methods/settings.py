"""Check the keywords of the methods before any work is done, and fill in the defaults and the preferences of the problem."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mixbin import _validate as check
from mixbin._digest import contents_digest
from mixbin._version import __version__
from mixbin.checked_problem import CheckedProblem
from mixbin.checkpoint import Trait
from mixbin.penalties import Penalty, Quadratic
from mixbin.problem import Floats
from mixbin.progress import Callback
from mixbin.solvers import Solver, resolve_solver

Rounding = Literal["penalise", "top-k", "simple"] | None
Search = Literal["portfolio", "path"]

INNER_STEPS = 20
"""Solver steps per eps, unless the caller or the problem asks for another number."""
RELAX_STEPS = 50
"""Solver steps before the penalty. Few are enough: the penalised path and polish make up for a rough beginning."""
ROUND_STEPS, UNLIMITED_STEPS = 1_000, 10**9
"""A baseline makes at most ROUND_STEPS solver steps: more than above, because nothing after the rounding makes up for a rough
solution. UNLIMITED_STEPS stands for no limit."""
MANY_STARTS, FEW_ENTRIES = 8, 2_000
"""``starts="auto"`` means MANY_STARTS if theta has at most FEW_ENTRIES entries, else 1, unless the problem prefers a number."""
POLISH_FEW, POLISH_MANY = 2_000, 200
"""``polish=True`` allows POLISH_FEW evaluations per start if theta has at most FEW_ENTRIES entries, else POLISH_MANY."""

SMALLEST_EPSILON = 1e-100
"""eps never falls below this: the square of 1/eps, the weight of the penalty, must not overflow."""
SAMPLE = "value and gradient at a random point"
SAMPLE_SEED, COMBINATIONS = 20_240_917, 8
"""A problem without a fingerprint is recognised by its value and gradient at a random point, which SAMPLE_SEED draws. The
checkpoint keeps COMBINATIONS random combinations of the gradient."""
NOT_IDENTITY = ("callbacks", "checkpoint", "checkpoint_every", "time_limit", "preferred")
"""The settings that a resumed run may change; ``preferred`` only tells where other settings came from."""


@dataclass(frozen=True)
class Settings:
    """All settings of a run, checked and complete."""

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
    search: Search
    starts: int
    polish: int
    """The largest number of evaluations that polish may use per start."""
    gap_tol: float
    seed: int
    callbacks: tuple[Callback, ...]
    checkpoint: str | None
    checkpoint_every: float
    preferred: tuple[str, ...]
    """The names of the settings whose values the problem chose."""


def check_settings(
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
    search: object = "path",
    starts: object = "auto",
    polish: object = True,
    gap_tol: object = 0.0,
    seed: object = None,
    callbacks: object = (),
    checkpoint: object = None,
    checkpoint_every: object = 10.0,
) -> Settings:
    """Check every keyword; the error names the first that cannot be used."""
    if penalty is not None and not isinstance(penalty, Penalty):
        raise check.fail("penalty", penalty, "a Penalty or None", "such as mixbin.Quadratic()")
    polish_calls = _polish(polish, problem.theta_set.size)
    preferences = dict(problem.offers.preferred_settings)
    # A problem prefers few steps because polish makes up for the rest. Without polish that reason is gone.
    if inner_steps is not None or rounding != "penalise" or not polish_calls:
        preferences.pop("inner_steps", None)
    if not _is_auto(starts):
        preferences.pop("starts", None)
    steps = _inner_steps(inner_steps, preferences.get("inner_steps", INNER_STEPS))
    limited = max_evaluations is not None
    max_evaluations = checked_limit(max_evaluations)
    if rounding == "penalise":
        relax_steps = max(RELAX_STEPS, steps[0])
    elif inner_steps is not None:
        relax_steps = steps[0]
    else:
        # If the caller gives a baseline a number of evaluations, it may use all of them.
        relax_steps = UNLIMITED_STEPS if limited else ROUND_STEPS
    resolved = resolve_solver(solver)
    return Settings(
        rounding=rounding,
        theta0=_theta0(problem, theta0),
        lam0=_lam0(problem, lam0),
        solver=resolved,
        penalty=Quadratic() if penalty is None else penalty,
        epsilon0=None if _is_auto(epsilon0) else _epsilon0(epsilon0),
        beta=check.real("beta", beta, low=0.0, high=1.0, open_low=True, open_high=True, remedy="0.5 halves eps each time"),
        tol=check.real("tol", tol, low=0.0, high=0.5, open_low=True, open_high=True, remedy="the paper uses 1e-2"),
        inner_steps=steps,
        relax_steps=relax_steps,
        max_outer=check.whole("max_outer", max_outer, low=1),
        max_evaluations=max_evaluations,
        time_limit=None
        if time_limit is None
        else check.real("time_limit", time_limit, low=0.0, open_low=True, remedy="in seconds"),
        relax_first=check.flag("relax_first", relax_first),
        reoptimize_lam=check.flag("reoptimize_lam", reoptimize_lam),
        search=check.choice("search", search, ("portfolio", "path")),
        starts=_starts(starts, preferences, search, problem.theta_set.size),
        polish=polish_calls,
        gap_tol=check.real("gap_tol", gap_tol, low=0.0, remedy="0.01 ends polish at a proven gap below one per cent"),
        seed=_seed(seed),
        callbacks=_callbacks(callbacks),
        checkpoint=_checkpoint(checkpoint, resolved, seed),
        checkpoint_every=check.real(
            "checkpoint_every", checkpoint_every, low=0.0, remedy="in seconds; 0 writes after every step"
        ),
        preferred=tuple(sorted(preferences)),
    )


def shown_settings(settings: Settings) -> dict[str, Any]:
    """The settings that a method has used, in the form that a result keeps: numbers, texts and lists, which JSON can hold."""
    penalised = settings.rounding == "penalise"
    shown: dict[str, Any] = {"method": "relax_and_penalize" if penalised else "relax_and_round"}
    if not penalised:
        shown["rounding"] = settings.rounding
    shown["solver"] = check.one_line(repr(settings.solver))
    if penalised:
        shown |= {
            "penalty": check.one_line(repr(settings.penalty)),
            "epsilon0": "auto" if settings.epsilon0 is None else settings.epsilon0,
            "beta": settings.beta,
            "tol": settings.tol,
            "inner_steps": settings.inner_steps[0] if len(settings.inner_steps) == 1 else list(settings.inner_steps),
            "relax_first": settings.relax_first,
            "max_outer": settings.max_outer,
            "search": settings.search,
            "polish": settings.polish,
            "gap_tol": settings.gap_tol,
        }
    else:
        shown["inner_steps"] = None if settings.relax_steps == UNLIMITED_STEPS else settings.relax_steps
    return shown | {
        "starts": settings.starts,
        "theta0": "default" if settings.theta0 is None else "given",
        "lam0": "default" if settings.lam0 is None else "given",
        "reoptimize_lam": settings.reoptimize_lam,
        "max_evaluations": settings.max_evaluations,
        "time_limit": settings.time_limit,
        "seed": settings.seed,
        "preferred": list(settings.preferred),
    }


def identity(problem: CheckedProblem, settings: Settings) -> dict[str, Trait]:
    """The version, problem and settings that a checkpoint must agree with. NOT_IDENTITY lists the settings that may differ."""
    traits = {"mixbin": Trait(__version__)}
    traits |= {
        name: Trait(repr(variables), variables.fingerprint())
        for name, variables in (("theta_set", problem.theta_set), ("lam_set", problem.lam_set))
    }
    if problem.offers.fingerprint is not None:
        traits["problem"] = Trait(str(problem.offers.fingerprint()))
    else:
        traits |= {"problem": Trait(problem.name), SAMPLE: _sample(problem)}
    for field in fields(settings):
        if field.name not in NOT_IDENTITY:
            value = getattr(settings, field.name)
            shown = f"an array {contents_digest(value)[:8]}" if isinstance(value, np.ndarray) else repr(value)
            traits[field.name] = Trait(shown, contents_digest(value))
    return traits


def _sample(problem: CheckedProblem) -> Trait:
    """Value and gradient at a random interior point, by which a problem without a fingerprint is recognised.

    The evaluation is not counted. The trait holds random combinations of the gradient, since the whole gradient could make up
    much of the file.
    """
    rng = np.random.default_rng(SAMPLE_SEED)
    theta, lam = problem.theta_set.start(rng), problem.lam_set.start(rng)
    try:
        got = problem.evaluate_uncounted(theta, lam)
        gradient = np.concatenate([np.ravel(np.asarray(it, dtype=np.float64)) for it in (got.grad_theta, got.grad_lam)])
        value = float(got.value)
    except Exception as error:  # the run evaluates the problem again soon, and reports the error then
        return Trait(f"an error: {type(error).__name__}")
    with np.errstate(all="ignore"):
        numbers = [value, *(float(gradient @ rng.choice([-1.0, 1.0], size=gradient.size)) for _ in range(COMBINATIONS))]
        size = max(abs(value), float(np.linalg.norm(gradient)))
    return Trait("value and gradient", numbers=tuple(numbers), size=size if np.isfinite(size) else 0.0)


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


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"


def checked_limit(max_evaluations: object) -> int | None:
    """How many evaluations a run may make; None if it is not limited."""
    if max_evaluations is None:
        return None
    return check.whole("max_evaluations", max_evaluations, low=2, remedy="one for the start and one for the answer")


def _epsilon0(epsilon0: object) -> float:
    remedy = 'use "auto" to take it from the gradient\'s scale'
    return check.real("epsilon0", epsilon0, low=SMALLEST_EPSILON, remedy=remedy)


def _inner_steps(inner_steps: object, default: int) -> tuple[int, ...]:
    if inner_steps is None:
        return (default,)
    remedy = "one number, or one per value of eps (the last is repeated)"
    if isinstance(inner_steps, Sequence) and not isinstance(inner_steps, str):
        if not inner_steps:
            raise check.fail("inner_steps", inner_steps, "not empty", remedy)
        return tuple(check.whole("inner_steps", n, low=1, remedy=remedy) for n in inner_steps)
    return (check.whole("inner_steps", inner_steps, low=1, remedy=remedy),)


def _starts(starts: object, preferences: Mapping[str, int], search: object, size: int) -> int:
    if not _is_auto(starts):
        return check.whole("starts", starts, low=1, remedy='"auto" chooses by the size of theta')
    preferred = preferences.get("starts")
    if search == "portfolio":
        preferred = preferences.get("portfolio_starts", preferred)
    return preferred or (MANY_STARTS if size <= FEW_ENTRIES else 1)


def _polish(polish: object, size: int) -> int:
    if isinstance(polish, (bool, np.bool_)):
        return (POLISH_FEW if size <= FEW_ENTRIES else POLISH_MANY) if polish else 0
    return check.whole("polish", polish, low=1, remedy="True, False, or the number of evaluations it may use per start")


def _checkpoint(checkpoint: object, solver: Solver[Any], seed: object) -> str | None:
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, (str, os.PathLike)) or not os.fspath(checkpoint):
        raise check.fail("checkpoint", checkpoint, "a path or None", "such as 'run.checkpoint'")
    path = Path(os.fsdecode(checkpoint))
    if "\0" in str(path):
        raise check.fail("checkpoint", checkpoint, "a path without a null character", "such as 'run.checkpoint'")
    try:
        usable = path.parent.is_dir() and (path.is_file() or not os.path.lexists(path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise check.fail("checkpoint", str(path), f"a path that the system takes ({reason})", "choose a shorter one") from None
    if not usable:
        remedy = f"create {str(path.parent)!r} or name a file"
        raise check.fail("checkpoint", str(path), "a file in an existing folder", remedy)
    if not isinstance(seed, (int, np.integer)):
        raise check.fail("seed", seed, "a whole number when there is a checkpoint", "an interrupted run must begin alike")
    if not is_dataclass(getattr(solver, "state_type", None)):
        raise check.fail("solver", solver, "one with a state_type when there is a checkpoint", "name the dataclass of its state")
    return str(path)


def _seed(seed: object) -> int:
    """A whole number as the seed of the run. It is drawn if the caller gives none, so that such a run can be repeated, too."""
    if seed is not None and not isinstance(seed, np.random.Generator):
        return check.whole("seed", seed, low=0, remedy="pass None, a seed such as 0, or a numpy Generator")
    return int(check.generator("seed", seed).integers(2**63))


def _callbacks(callbacks: object) -> tuple[Callback, ...]:
    if not isinstance(callbacks, Iterable):
        raise check.fail("callbacks", callbacks, "a sequence of functions of an Event", "put a single one in a list")
    try:
        listed = tuple(callbacks)
    except TypeError:  # an array without dimensions claims to be iterable but is not
        raise check.fail("callbacks", callbacks, "a sequence of functions of an Event", "put a single one in a list") from None
    for callback in listed:
        if not callable(callback):
            raise check.fail("callbacks", callback, "a sequence of functions of an Event")
    return listed

"""The baselines: minimise over the relaxed set, then round (docs/maths.md, "Baselines")."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mixbin import _validate as check
from mixbin.checked_problem import CheckedProblem
from mixbin.methods.run import Run
from mixbin.methods.settings import check_settings
from mixbin.problem import Problem
from mixbin.progress import Callback
from mixbin.result import Result
from mixbin.solvers import Solver


def relax_and_round(
    problem: Problem,
    *,
    rounding: Literal["top-k", "simple"] | None = "top-k",
    theta0: ArrayLike | None = None,
    lam0: ArrayLike | None = None,
    solver: Solver[Any] | str | None = None,
    inner_steps: int | None = None,
    max_evaluations: int | None = None,
    time_limit: float | None = None,
    reoptimize_lam: bool = True,
    starts: int | str = "auto",
    seed: int | np.random.Generator | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 10.0,
) -> Result:
    """Minimise G over the relaxed set, then round.

    Parameters
    ----------
    problem : Problem
        What to minimise.
    rounding : "top-k", "simple" or None
        "top-k" takes the nearest feasible binary point: the k largest entries of a budget, the largest entry of each one-hot row.
        "simple" rounds each entry by itself; if the point is then outside the set, the status is INFEASIBLE and ``violation``
        says how far outside. None does not round.
    inner_steps : int, optional
        The largest number of solver steps. By default 1,000, or no limit if ``max_evaluations`` is given.
    max_evaluations : int, optional
        As in ``relax_and_penalize``. For a fair comparison, set it to the number that ``relax_and_penalize`` used.
    starts : int or "auto"
        As in ``relax_and_penalize``. The best start is the one with the lowest binary value for "top-k", and with the lowest
        relaxed value otherwise.
    theta0, lam0 : array, optional
        As in ``relax_and_penalize``.
    solver : Solver or str, optional
        As in ``relax_and_penalize``.
    time_limit : float, optional
        As in ``relax_and_penalize``.
    reoptimize_lam : bool
        As in ``relax_and_penalize``.
    seed : int or Generator, optional
        As in ``relax_and_penalize``.
    callbacks : sequence of functions
        As in ``relax_and_penalize``.
    checkpoint : path, optional
        As in ``relax_and_penalize``.
    checkpoint_every : float
        As in ``relax_and_penalize``.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> mb.relax_and_round(problem, seed=0).theta
    array([False,  True, False,  True])
    """
    checked = CheckedProblem(problem)
    settings = check_settings(
        checked,
        rounding=check.choice("rounding", rounding, ("top-k", "simple", None)),
        theta0=theta0,
        lam0=lam0,
        solver=solver,
        inner_steps=inner_steps,
        max_evaluations=max_evaluations,
        time_limit=time_limit,
        reoptimize_lam=reoptimize_lam,
        starts=starts,
        seed=seed,
        callbacks=callbacks,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    return Run(checked, settings).finish()

"""The published experiments as calls of this library: ``paper_problem`` and the keywords ``paper_settings`` for the method.

``paper_problem`` evaluates G as the paper does (sampled coordinates, unrolled lower level), ``paper_settings`` chooses the
paper's solver and schedule of eps; the numbers are those of docs/maths.md, "Published settings of data distillation", and
docs/maths.md, "Published settings of group structures". One thing differs from the paper: between two values of eps this library
breaks ties among equal rows (docs/maths.md, "Ties"), at which the published algorithm would stay for ever.
"""

import math
from typing import Any, Literal

from mixbin import _validate as check
from mixbin.problem import Problem
from mixbin.problems import GroupLassoStructure, PublishedGradient, RidgeDistillation
from mixbin.solvers import ProjectedGradient, Saga

Experiment = Literal["blog", "music", "groups"]

ALPHA = 100.0
"""The published strength of the ridge penalty."""
STEP_SIZES = {"blog": 1e-5, "music": 1e-3}
PER_EPSILON = 100
"""The number of steps per eps in the distillations."""
FIRST_EPSILON, LAST_EPSILON = 1e9, 1e9 * 0.9**290
"""The first and the last eps of the distillations; the published 291 outer iterations at beta = 0.9 end with the last one."""
NO_LIMIT = 10_000
"""A limit on outer iterations that no run reaches: the published runs end when theta is binary."""
SCHEDULE = (5_000, 5_000, 2_500, 2_500, 2_500, 2_500, 2_500, 1_000)
"""The number of single-task steps per eps in the experiments on groups; the last number is repeated."""
BETA = {"blog": 0.9, "music": 0.9, "groups": 0.5}


def paper_settings(
    experiment: Experiment, *, beta: float | None = None, steps: int | None = None, n_tasks: int = 500
) -> dict[str, Any]:
    """The keywords with which ``relax_and_penalize`` runs a published experiment, on the problem from ``paper_problem``.

    Parameters
    ----------
    experiment : {"blog", "music", "groups"}
        Which of the published experiments.
    beta : float, optional
        The factor of eps, for the ablations; by default the published one, 0.9, or 0.5 for groups.
    steps : int, optional
        Shortens a distillation to this many steps, at least 200. The number of steps per eps stays as published, and beta is made
        smaller, so that the last eps is that of the published runs. Shorter runs are not changed.
    n_tasks : int, default 500
        The number of tasks, for groups only: one step of ``Saga`` is a pass over all tasks.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.paper_settings("groups")["inner_steps"]
    (10, 10, 5, 5, 5, 5, 5, 2)
    """
    check.choice("experiment", experiment, tuple(BETA))
    n_tasks = check.whole("n_tasks", n_tasks, low=1)
    factor = (
        BETA[experiment]
        if beta is None
        else check.real(
            "beta", beta, low=0.0, high=1.0, open_low=True, open_high=True, remedy="such as 0.5; eps is multiplied by beta"
        )
    )
    common: dict[str, Any] = {"tol": 1e-2, "relax_first": False, "reoptimize_lam": False, "polish": False, "starts": 1}
    common["search"] = "path"
    if experiment == "groups":
        if steps is not None:
            raise check.fail("steps", steps, "None for groups", "only the distillations can be shortened")
        return common | {
            "solver": Saga(step_size=2.0, step_size_lam=2e-4),
            "lam0": 0.1,
            "epsilon0": 1e5,
            "beta": factor,
            "inner_steps": tuple(max(1, round(n / n_tasks)) for n in SCHEDULE),
            "max_outer": NO_LIMIT,
        }
    if steps is not None:
        steps = check.whole("steps", steps, low=2 * PER_EPSILON, remedy=f"each value of eps takes {PER_EPSILON} steps")
    factor, outer = _shortened(factor, steps)
    return common | {
        "solver": ProjectedGradient(step_size=STEP_SIZES[experiment]),
        "epsilon0": FIRST_EPSILON,
        "beta": factor,
        "inner_steps": PER_EPSILON,
        "max_outer": outer,
    }


def paper_problem(
    experiment: Experiment,
    X: Any,
    y: Any,
    X_val: Any,
    y_val: Any,
    *,
    budget: int | float | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Problem:
    """The problem of a published experiment: the paper's lower level, and the gradient that the paper's upper level uses.

    Parameters
    ----------
    experiment : {"blog", "music", "groups"}
        Which of the published experiments.
    X, y, X_val, y_val : array
        The data, as for ``RidgeDistillation`` or ``GroupLassoStructure``.
    budget : int or float, optional
        How many rows a distillation keeps; not for groups.
    seed : int, default 0
        The seed for the random coordinates of the distillations' gradients.
    n_jobs : int, optional
        The number of threads over the tasks, for groups only; None takes all cores.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(700, 3)), rng.normal(size=700)
    >>> problem = mb.paper_problem("blog", X, y, X[:50], y[:50], budget=0.1)
    >>> problem.theta_set
    Budget(700, 70)
    """
    check.choice("experiment", experiment, tuple(BETA))
    if experiment == "groups":
        if budget is not None:
            raise check.fail("budget", budget, "None for groups", "it belongs to the distillations")
        return GroupLassoStructure(X, y, X_val, y_val, lower="unrolled", lam_scale="linear", start="random", n_jobs=n_jobs)
    if budget is None:
        raise check.fail("budget", budget, "a number or a fraction of the rows", "such as 0.2")
    ridge = RidgeDistillation(X, y, X_val, y_val, budget=budget, alpha=ALPHA, compact=False)
    return PublishedGradient(ridge, batch=600, seed=seed)


def _shortened(beta: float, steps: int | None) -> tuple[float, int]:
    """beta and the largest number of values of eps, such that the last eps is that of the published runs."""
    ratio = LAST_EPSILON / FIRST_EPSILON
    published = 1 + math.ceil(math.log(ratio) / math.log(beta))
    if steps is None or published * PER_EPSILON <= steps:
        return beta, NO_LIMIT
    outer = steps // PER_EPSILON
    return ratio ** (1 / (outer - 1)), outer

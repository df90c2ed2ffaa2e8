"""The promises of a solver, checked on quadratics over every set."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Problem
from mixbin.testing.broken import Subject
from mixbin.testing.resuming import check_resumes
from mixbin.testing.solvers.quadratics import CONVEX, QUADRATICS
from mixbin.testing.solvers.steps import EPSILONS, Trial, check_cliff, check_limit, check_pure, check_stationary, check_walk


def check_solver(
    solver: Any,
    *,
    seed: int = 0,
    trials: int = 1,
    steps: int = 10,
    convex_steps: int = 2_000,
    convex_tol: float | None = 2e-3,
    problems: Mapping[str, Problem] | None = None,
) -> None:
    """Check that a solver keeps every promise of ``mixbin.solvers.Solver``.

    The solver runs on convex, concave and indefinite quadratics over hypercubes, budgets, one-hot rows and knapsacks, with and
    without continuous variables and penalties. All of them are finite sums, so solvers that sample terms run on them, too.

    Parameters
    ----------
    solver : Solver
        With ``init``, ``step``, ``reweight``, ``done`` and ``state_type``.
    seed : int, default 0
        Draws the problems and the first points; the messages repeat it.
    trials : int, default 1
        How many instances of each problem the solver runs on.
    steps : int, default 10
        Within this many steps the value must fall.
    convex_steps : int, default 2000
        How many steps the solver may take to the stationary point of a convex problem, if it is not ``done`` before.
    convex_tol : float, optional
        How far a projected gradient step of length 1 may lead away from that point. None leaves this check out, for solvers whose
        fixed steps do not converge.
    problems : mapping from str to Problem, optional
        Further problems to run on, by the names that the messages call them.

    Raises
    ------
    ConformanceError
        At the first broken promise. The message names the method, the promise, the problem, what was expected and what came.

    Examples
    --------
    >>> import mixbin as mb
    >>> from mixbin.testing import check_solver
    >>> check_solver(mb.ProjectedGradient())

    >>> class Uphill(mb.ProjectedGradient):
    ...     def step(self, objective, state):
    ...         theta = objective.project_theta(state.theta + 0.1 * state.grad_theta)
    ...         return self.init(objective, theta, state.lam, None)
    >>> try:
    ...     check_solver(Uphill())
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    Uphill.step must lower G + phi/eps within 10 steps.
    """
    subject = Subject(solver, check.whole("seed", seed, low=0))
    trials, steps = check.whole("trials", trials, low=1), check.whole("steps", steps, low=1)
    convex_steps = check.whole("convex_steps", convex_steps, low=1)
    missing = [name for name in ("init", "step", "reweight", "done") if not callable(getattr(solver, name, None))]
    subject.require(not missing, "", "must have the methods of a solver", {}, "init, step, reweight and done", f"no {missing}")
    for draw in range(seed, seed + trials):
        for name, problem in ({name: made(draw) for name, made in QUADRATICS.items()} | dict(problems or {})).items():
            for epsilon in EPSILONS:
                check_walk(Trial(subject, name, problem, epsilon, draw), steps)
            check_pure(Trial(subject, name, problem, 5.0, draw))
            check_limit(Trial(subject, name, problem, 10.0, draw))
        if convex_tol is not None:
            for name, made in CONVEX.items():
                check_stationary(Trial(subject, name, made(draw), np.inf, draw), convex_steps, convex_tol)
    check_cliff(subject, steps)
    check_resumes(subject, QUADRATICS["a convex quadratic on a budget, with lam"](seed), solver)

"""The promises of a problem: those that every problem makes, then those of what it offers beyond ``evaluate``."""

from collections.abc import Sequence

from mixbin import _validate as check
from mixbin.problem import FastMoves, FiniteSum, LocalSearch, ManyPoints, Problem, Proposes, Suggests
from mixbin.sets import BinarySet, Box
from mixbin.testing.broken import Subject
from mixbin.testing.problems.bounds import check_lower_bound, lower_bounds
from mixbin.testing.problems.evaluations import (
    Evaluations,
    check_fingerprint,
    check_preferred_settings,
    check_propose,
    check_pure,
    check_start,
    check_suggest,
    check_warm,
    check_without_gradient,
)
from mixbin.testing.problems.gradients import check_gradients
from mixbin.testing.problems.moves import check_evaluate_moves, check_evaluate_points, check_search
from mixbin.testing.problems.terms import check_terms
from mixbin.testing.resuming import check_resumes


def check_problem(
    problem: Problem,
    *,
    seed: int = 0,
    trials: int = 3,
    gradient_tol: float | None = 1e-4,
    value_tol: float | None = 1e-6,
    others: Sequence[Problem] = (),
) -> None:
    """Check that a problem keeps every promise of ``mixbin.Problem``, and of what it offers beyond ``evaluate``.

    Every problem: shapes and finite numbers, gradients against differences of the value, the same bits for the same arguments,
    arguments left alone, warm starts that change nothing but the time, and a run that goes on from a checkpoint to the same bits.
    Where the class offers them: ``evaluate_terms``, ``evaluate_moves``, ``evaluate_points``, ``best_move`` and ``improve`` with
    its cost, ``suggest``, ``propose``, ``fingerprint``, ``lower_bound`` and ``preferred_settings``. All points lie in
    ``theta_set`` and ``lam_set``, which have suites of their own.

    Parameters
    ----------
    problem : Problem
        An instance of the class to check; a small one, as it is evaluated some hundred times.
    seed : int, default 0
        Draws the points; the messages repeat it.
    trials : int, default 3
        How many random points each promise is checked at.
    gradient_tol : float, optional
        Relative accuracy of the gradients. None leaves gradients out, for problems that estimate them.
    value_tol : float, optional
        Relative accuracy of values that are computed in two ways: from a cold and from a warm start, from all terms and from
        each, after a move and by ``evaluate_moves``, alone and by ``evaluate_points``. None leaves warm starts out, for lower
        levels with several minima, and takes the default elsewhere.
    others : sequence of Problem
        Problems with other contents, whose fingerprints must differ.

    Raises
    ------
    ConformanceError
        At the first broken promise. The message names the method, the promise, the input, what was expected and what came.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> from mixbin.testing import check_problem
    >>> target = np.array([0.2, 0.9, 0.6, 0.1])
    >>> def distance(theta):
    ...     return np.sum((theta - target) ** 2), 2 * (theta - target)
    >>> check_problem(mb.FunctionProblem(distance, mb.Budget(4, 2)))

    >>> def half_the_gradient(theta):
    ...     return np.sum((theta - target) ** 2), theta - target
    >>> try:
    ...     check_problem(mb.FunctionProblem(half_the_gradient, mb.Budget(4, 2)))
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    FunctionProblem.evaluate must return the gradient of its value as grad_theta, up to gradient_tol=0.0001.
    """
    subject = Subject(problem, check.whole("seed", seed, low=0))
    for name, kind in (("theta_set", BinarySet), ("lam_set", Box)):
        found = getattr(problem, name, None)
        subject.require(isinstance(found, kind), name, f"must be a {kind.__name__}", {}, f"a {kind.__name__}", found)
    at = Evaluations(subject, problem, check.whole("trials", trials, low=1))
    fingerprint = subject.call("fingerprint", {}) if hasattr(problem, "fingerprint") else None
    tol = 1e-6 if value_tol is None else value_tol
    if getattr(problem, "preferred_settings", None) is not None:
        check_preferred_settings(at)
    check_start(at)
    check_pure(at)
    check_without_gradient(at)
    if gradient_tol is not None:
        check_gradients(at, gradient_tol)
    if value_tol is not None:
        check_warm(at, value_tol, gradient_tol)
    if isinstance(problem, Suggests):
        check_suggest(at)
    if isinstance(problem, Proposes):
        check_propose(at)
    if isinstance(problem, FiniteSum):
        check_terms(at, tol)
    if isinstance(problem, FastMoves):
        check_evaluate_moves(at, tol)
    if isinstance(problem, LocalSearch):
        check_search(at, tol)
    if isinstance(problem, ManyPoints):
        check_evaluate_points(at, tol)
    if hasattr(problem, "fingerprint"):
        check_fingerprint(at, fingerprint, tuple(others))
    # Runs ask for the bound, too: what is no number is told before them, in the words of this suite.
    bounds = lower_bounds(at) if hasattr(problem, "lower_bound") else []
    answer = check_resumes(subject, problem)
    if bounds:
        check_lower_bound(at, bounds, answer)

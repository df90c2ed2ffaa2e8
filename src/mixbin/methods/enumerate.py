"""Exact minimisation by trying every binary point. It works for tiny sets only and serves to check the other methods."""

import numpy as np

from mixbin.checked_problem import CheckedProblem
from mixbin.errors import InvalidInput
from mixbin.methods.run import LAM_SOLVER, LAM_STEPS
from mixbin.penalties import Quadratic
from mixbin.problem import Floats, Problem
from mixbin.result import Result, Status
from mixbin.solvers import FixedTheta, Objective
from mixbin.solvers.base import NoFiniteValue

LARGEST = 2**20
"""Sets with more binary points than this are refused."""


def enumerate_binary(problem: Problem) -> Result:
    """Evaluate all binary points of the set and return the best, the first one if several are equally good.

    Sets with more than 2**20 points are refused. If the problem has a lam, a local search from the middle of the box minimises
    over lam at every binary point. So the answer is exact if the problem has no lam, or if G is unimodal in lam.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> result = mb.enumerate_binary(problem)
    >>> result.theta, result.value
    (array([False,  True, False,  True]), -3.0)
    """
    checked = CheckedProblem(problem)
    # A set with more than LARGEST entries is refused without counting its points, since counting alone would take long.
    count = checked.theta_set.cardinality() if checked.theta_set.size <= LARGEST else float("inf")
    if count > LARGEST:
        raise InvalidInput(f"problem must have at most {LARGEST} binary points, got more; use relax_and_penalize instead")
    best: tuple[float, Floats, Floats] | None = None
    for vertex in checked.theta_set.vertices():
        theta = vertex.astype(np.float64)
        checked.where = f"enumeration, binary point after {checked.n_evaluations} evaluations"
        lam = _best_lam(checked, theta) if checked.lam_set.size else checked.lam_set.start()
        value = checked.evaluate(theta, lam, gradient=False).value
        if best is None or value < best[0]:
            best = value, theta, lam
    assert best is not None
    value, theta, lam = best
    message = (
        f"the best of all {count} binary points"
        if checked.lam_set.size == 0
        else f"the best of {count} binary points, lam by local search"
    )
    settings = {"method": "enumerate_binary"}
    return Result(theta.astype(np.bool_), lam, value, Status.BINARY, message, checked.n_evaluations, settings=settings)


def _best_lam(problem: CheckedProblem, theta: Floats) -> Floats:
    fixed = FixedTheta(Objective(problem, Quadratic()), theta)
    middle = problem.lam_set.encode(problem.lam_set.start())
    try:
        state = LAM_SOLVER.init(fixed, np.empty(0), middle, np.random.default_rng(0))
    except NoFiniteValue:
        return problem.lam_set.start()
    for _ in range(LAM_STEPS):
        if LAM_SOLVER.done(fixed, state):
            break
        state = LAM_SOLVER.step(fixed, state)
    return problem.lam_set.decode(state.lam)

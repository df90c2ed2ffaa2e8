"""Compare all binary points of a small set, for problems that compute many values together.

Minima in theta and lam together are many, and each search finds one. A set with few binary points needs no luck: G is computed at
all of them, each with values of lam on a grid. The best points are compared again on finer grids around their best lam.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin.checked_problem import KEPT_FROM_SEARCHES, CheckedProblem
from mixbin.methods.settings import Settings
from mixbin.problem import Floats

MOST_POINTS, MOST_ENTRIES = 5_000, 128
"""All points are compared if there are at most MOST_POINTS, of at most MOST_ENTRIES entries each."""
GRID = 25
"""The number of values of lam that every point is tried with."""
KEPT = (400, 100, 25, 25)
"""The numbers of best points that are compared again, each time on a finer grid."""
FINE_GRID = 9
"""The number of values of lam in a finer grid, which reaches to the neighbours of the best value in the last one."""
COST = 8
"""The comparison may cost this many times the evaluations of all searches that it replaces. Computed together, multiply-adds take
far less time than in single evaluations: with 5 of 14 rows and 3 features the comparison counts as 10,000 evaluations, and takes
the time of about 75."""


class Compared(NamedTuple):
    """The best point found."""

    theta: NDArray[np.bool_]
    lam: Floats
    """lam scaled to the unit box."""
    value: float
    points: int
    """The number of binary points that were compared."""
    lams: int
    """The number of values of lam that each was tried with."""


def can_compare(problem: CheckedProblem) -> bool:
    """Whether the problem computes many values together, on a small set and with at most one entry of lam."""
    theta_set = problem.theta_set
    small = problem.offers.points is not None and theta_set.size <= MOST_ENTRIES and problem.lam_set.size <= 1
    return small and theta_set.cardinality() <= MOST_POINTS


def compare_all(problem: CheckedProblem, settings: Settings, lam: Floats, budget: int) -> Compared | None:
    """The best of all binary points; None if comparing them costs too much.

    Parameters
    ----------
    problem : CheckedProblem
        A problem for which ``can_compare`` is true.
    settings : Settings
        If lam is not to be optimised at binary points, or if there is none, every point is tried with ``lam`` alone.
    lam : array
        lam of the best answer so far, in the unit box.
    budget : int
        The evaluations of the searches that the comparison replaces.
    """
    has_grid = lam.size == 1 and settings.reoptimize_lam
    # Without lam a column of zeros stands in for it, so that both cases take the same way; ``_of_shape`` drops it.
    grid = np.linspace(0.0, 1.0, GRID) if has_grid else np.append(lam.ravel(), 0.0)[:1]
    most = problem.n_evaluations + COST * budget
    if settings.max_evaluations is not None:
        most = min(most, settings.max_evaluations - KEPT_FROM_SEARCHES)
    theta = np.stack(list(problem.theta_set.vertices()))
    points, u, width, found = len(theta), np.tile(grid, (len(theta), 1)), 1.0 / (GRID - 1), None
    for kept in (*KEPT, 1) if has_grid else (1,):
        tried = problem.lam_set.decode(_of_shape(u, lam.shape))
        values = problem.evaluate_points(theta, tried, most - problem.n_evaluations)
        if values is None:
            break
        best = values.argmin(axis=1)
        order = np.argsort(values.min(axis=1), kind="stable")[:kept]
        theta, centre = theta[order], u[order, best[order]]
        found = Compared(theta[0], _of_shape(centre[0], lam.shape), float(values.min()), points, grid.size)
        u = np.clip(centre[:, None] + width * np.linspace(-1.0, 1.0, FINE_GRID), 0.0, 1.0)
        width *= 2.0 / (FINE_GRID - 1)
    return found


def _of_shape(u: Floats | np.float64, shape: tuple[int, ...]) -> Floats:
    """Each number as an array of the shape of lam, which has one entry or none."""
    return np.asarray(np.asarray(u)[..., None][..., : math.prod(shape)].reshape((*np.shape(u), *shape)))

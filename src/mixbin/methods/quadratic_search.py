"""One search on a quadratic function: the kinds of tabu search that suit the set, one after the other."""

import numpy as np

from mixbin.methods.oscillation import oscillate
from mixbin.methods.tabu import Quadratic, Walk, capacity_of, tabu_search
from mixbin.sets import BinarySet, Hypercube, OneHot

FLIP_STEPS, FLIP_PATIENCE = 20, 10
"""A search by flips or row moves makes at most FLIP_STEPS times n steps, and FLIP_PATIENCE times n since the best point."""
EXCHANGE_STEPS, EXCHANGE_PATIENCE = 6, 2
"""The same for exchanges, each of which takes O(n^2)."""
LEAST_STEPS, MOST_STEPS = 50, 5_000
"""No search is shorter or longer than this, whatever n is."""


def quadratic_search(theta_set: BinarySet, at: Quadratic, rng: np.random.Generator) -> Walk:
    """The best point that a search from ``at`` finds; ``at`` itself if it finds none that is better."""
    n = at.theta.size
    flips = isinstance(theta_set, (Hypercube, OneHot))
    limit = capacity_of(theta_set)
    if limit is None:
        steps, patience = (FLIP_STEPS, FLIP_PATIENCE) if flips else (EXCHANGE_STEPS, EXCHANGE_PATIENCE)
        return tabu_search(theta_set, at, rng, _steps(steps * n), _steps(patience * n))
    walk = oscillate(at, *limit, rng, _steps(FLIP_STEPS * n), _steps(FLIP_PATIENCE * n))
    there = at.at(walk.theta)
    exchanged = tabu_search(theta_set, there, rng, _steps(n), _steps(n // 2))
    return exchanged._replace(steps=walk.steps + exchanged.steps)


def _steps(wanted: int) -> int:
    return min(max(wanted, LEAST_STEPS), MOST_STEPS)

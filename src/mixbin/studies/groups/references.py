"""What groups are compared with: models without any structure, and models for which all features are one group."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mixbin._validate import Floats
from mixbin.data.tasks import Tasks
from mixbin.problems import GroupLassoStructure
from mixbin.problems.group_lasso.start import fit_l1_models
from mixbin.problems.group_lasso.structure import usable_cores
from mixbin.reporting.record import Line

SHARES = np.geomspace(1e-3, 1.0, 13)
"""Strengths of the lasso that are compared, as shares of the one that makes all coefficients of a task 0."""
LOG_LAM = 0.02
"""How exactly the logarithm of lam is found for one group."""
NOTHING, ONE = "no structure", "one group"

Errors = Callable[[Floats], dict[str, Any]]


def references(train: Tasks, validation: Tasks, errors: Errors, problem: Callable[[int], GroupLassoStructure]) -> list[Line]:
    """Both lines; each has its own strength, the best one by the validation rows, as the groups have."""
    return [_no_structure(train, validation, errors), _one_group(train.n_features, errors, problem(2))]


def _no_structure(train: Tasks, validation: Tasks, errors: Errors) -> Line:
    """A lasso in each task."""
    began = time.perf_counter()
    W = best = np.zeros((train.n_tasks, train.n_features))
    least = np.inf
    for share in SHARES[::-1]:
        # The strongest penalty first: its models are nearly those of the next, from which coordinate descent goes on.
        fit_l1_models(train, float(share), W, usable_cores())
        if (loss := validation.loss(W)) < least:
            least, best = loss, W.copy()
    numbers = errors(best)
    rest = {"groups": None, "ungrouped": 0, "adjusted_rand": None, "lam": None}
    return _line(NOTHING, numbers | rest, len(SHARES), began, "a lasso in each task")


def _one_group(features: int, errors: Errors, problem: GroupLassoStructure) -> Line:
    """A group lasso with all features in one group."""
    from scipy.optimize import minimize_scalar

    began = time.perf_counter()
    theta = np.zeros((features, problem.n_groups))
    theta[:, 0] = 1.0
    bounds, evaluations = problem.strength.bounds, 1
    lam: Any = np.empty(0)
    if not isinstance(bounds, float):
        best = minimize_scalar(
            lambda t: problem.evaluate(theta, np.asarray(np.exp(t)), gradient=False).value,
            bounds=np.log(bounds),
            method="bounded",
            options={"xatol": LOG_LAM},
        )
        lam, evaluations = np.asarray(np.exp(best.x)), int(best.nfev)
    numbers = errors(problem.coef(theta, lam)) | {"groups": 1, "ungrouped": 0, "adjusted_rand": None}
    return _line(ONE, numbers | {"lam": problem.strength.value(lam)}, evaluations, began, "all features in one group")


def _line(name: str, numbers: dict[str, Any], evaluations: int, began: float, message: str) -> Line:
    return Line(name, numbers, None, evaluations, round(time.perf_counter() - began, 3), message)

"""Continuous minimisers of G + phi/eps over the sets, one algorithm a file.

A new solver is one new file with the four methods of ``Solver``, and one line in ``SOLVERS``.
"""

from typing import Any

from mixbin import _validate as check
from mixbin.solvers.base import Solver, State
from mixbin.solvers.frank_wolfe import FrankWolfe
from mixbin.solvers.objective import FixedTheta, Objective, OutOfEvaluations
from mixbin.solvers.projected import ProjectedGradient
from mixbin.solvers.saga import Saga
from mixbin.solvers.spectral import SpectralGradient
from mixbin.solvers.stochastic import StochasticGradient

SOLVERS: dict[str, type[Any]] = {
    "spectral": SpectralGradient,
    "projected": ProjectedGradient,
    "frank-wolfe": FrankWolfe,
    "saga": Saga,
    "stochastic": StochasticGradient,
}
"""The solvers that a method's ``solver`` argument accepts by name."""


def resolve_solver(solver: object) -> Solver[Any]:
    """A solver from None (the default), a name, or an object with the four methods."""
    if solver is None:
        return SpectralGradient()
    if isinstance(solver, str) and solver in SOLVERS:
        made: Solver[Any] = SOLVERS[solver]()
        return made
    missing = [name for name in ("init", "step", "reweight", "done") if not callable(getattr(solver, name, None))]
    if missing or isinstance(solver, type):
        names = ", ".join(repr(name) for name in SOLVERS)
        raise check.fail("solver", solver, f"one of {names}, or a solver object with init, step, reweight and done")
    return solver  # type: ignore[return-value]


__all__ = [
    "FixedTheta",
    "FrankWolfe",
    "Objective",
    "OutOfEvaluations",
    "ProjectedGradient",
    "SOLVERS",
    "Saga",
    "Solver",
    "SpectralGradient",
    "State",
    "StochasticGradient",
    "resolve_solver",
]

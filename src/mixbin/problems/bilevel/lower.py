"""The lower level: ways to find w from theta and lam, described for both back ends, JAX and PyTorch.

A description holds settings and checks them. How a back end computes with it is in ``jax_lower.py`` and
``mixbin/torch/lower.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mixbin import _validate as check


@dataclass(frozen=True)
class Minimise:
    """Minimise ``inner`` to a tolerance by a given minimiser, then a few Newton steps.

    Parameters
    ----------
    solver : optional
        In JAX an optimistix minimiser, such as ``optimistix.BFGS(rtol=1e-8, atol=1e-8)``, ``optimistix.LBFGS(...)`` or
        ``optimistix.OptaxMinimiser(optax.adam(1e-2), ...)``; by default BFGS, or L-BFGS when w has more than 500 entries. In
        PyTorch a function of the parameters that returns an optimiser of torch.optim, such as
        ``functools.partial(torch.optim.SGD, lr=0.1)``; by default L-BFGS with a strong Wolfe line search.
    max_steps : int
        The largest number of steps of the minimiser.
    newton : int
        The largest number of Newton steps at the end; they stop when the gradient no longer falls. They make w exact to rounding,
        which a minimiser that compares values cannot do. Use 0 for models whose Hessian products cost too much.
    tol : float
        The lower level counts as converged when no entry of the gradient of ``inner`` exceeds this.
    limit : float
        If an entry of that gradient exceeds this, the evaluation is an error, because G and its gradient would be meaningless.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Minimise(max_steps=200, newton=0)  # no Newton steps: for a model whose Hessian is expensive
    Minimise(solver=None, max_steps=200, newton=0, tol=1e-06, limit=0.01)
    """

    solver: Any = None
    max_steps: int = 1_000
    newton: int = 5
    tol: float = 1e-6
    limit: float = 1e-2

    def __post_init__(self) -> None:
        check.whole("newton", self.newton, low=0)
        _check_limits(self)


@dataclass(frozen=True)
class FixedPoint:
    """Iterate the user's own map: w <- step(w, theta, lam), such as a projected gradient step for constrained w.

    Parameters
    ----------
    step : callable
        ``step(w, theta, lam)`` returns the next w; it must be a contraction near the solution. In PyTorch ``step(module, theta,
        lam)`` returns the next parameters, in the order of ``module.parameters()``.
    max_steps : int
        The largest number of steps.
    tol : float
        The iteration has converged when no entry of w moves by more than this in a step.
    limit : float
        If an entry of w still moves by more than this in the last step, the evaluation is an error.

    Examples
    --------
    >>> import mixbin as mb
    >>> def step(w, theta, lam):  # a gradient step on 1/2 (w - theta)^2, then back to w >= 0
    ...     return (w - 0.5 * (w - theta)).clip(0)
    >>> lower = mb.FixedPoint(step, max_steps=500)
    >>> lower.max_steps, lower.tol
    (500, 1e-09)
    """

    step: Callable[[Any, Any, Any], Any]
    max_steps: int = 10_000
    tol: float = 1e-9
    limit: float = 1e-2

    def __post_init__(self) -> None:
        if not callable(self.step):
            raise check.fail("step", self.step, "a function of (w, theta, lam)", "it returns the next w")
        _check_limits(self)


@dataclass(frozen=True)
class OwnSolver:
    """The user's own solver of ``inner``, a function ``solve(w, theta, lam)`` that starts from w and returns the minimiser.

    Parameters
    ----------
    solve : callable
        The solver; it is never differentiated. JAX traces it once. In PyTorch ``solve(module, theta, lam)`` returns the
        parameters, in the order of ``module.parameters()``.
    tol, limit : float
        As for ``Minimise``.

    Examples
    --------
    >>> import mixbin as mb
    >>> lower = mb.OwnSolver(lambda w, theta, lam: theta / (1 + lam))  # the minimiser of (w - theta)^2 + lam w^2
    >>> lower.tol
    1e-06
    """

    solve: Callable[[Any, Any, Any], Any]
    tol: float = 1e-6
    limit: float = 1e-2

    def __post_init__(self) -> None:
        if not callable(self.solve):
            raise check.fail("solve", self.solve, "a function of (w, theta, lam)", "it returns the minimiser of inner")
        _check_limits(self)


@dataclass(frozen=True)
class Train:
    """A given number of steps of an optimiser of torch.optim, as networks are trained; for PyTorch only.

    The weights need not be a minimiser of ``inner``. The order of the minibatches follows from ``seed`` and from the warm state,
    so that the same arguments give the same weights.

    Parameters
    ----------
    optimiser : callable
        A function of the parameters that returns an optimiser, such as ``functools.partial(torch.optim.Adam, lr=1e-3)``.
    steps : int
        The number of steps. With ``Unrolled(q)``, q counts instead.
    warm_steps : int, optional
        The number of steps from a warm start; by default ``steps``.
    batch_size : int, optional
        The number of rows in a minibatch; all rows by default. Each pass over the rows has an order of its own.
    seed : int
        The seed of that order, and of random layers such as dropout.
    tol : float
        The weights count as converged when no entry of the gradient of ``inner`` over all rows exceeds this; the trace shows it.

    Examples
    --------
    >>> import functools
    >>> import torch, mixbin as mb
    >>> train = mb.torch.Train(functools.partial(torch.optim.SGD, lr=0.1), steps=200, batch_size=32)
    >>> train.steps, train.batch_size, train.seed
    (200, 32, 0)
    """

    optimiser: Callable[[Any], Any]
    steps: int = 500
    warm_steps: int | None = None
    batch_size: int | None = None
    seed: int = 0
    tol: float = 1e-3

    def __post_init__(self) -> None:
        if not callable(self.optimiser):
            raise check.fail("optimiser", self.optimiser, "a function of the parameters", OPTIMISER)
        check.whole("steps", self.steps, low=1)
        if self.warm_steps is not None:
            check.whole("warm_steps", self.warm_steps, low=1)
        if self.batch_size is not None:
            check.whole("batch_size", self.batch_size, low=1)
        check.whole("seed", self.seed, low=0)
        check.real("tol", self.tol, low=0, open_low=True)


OPTIMISER = "such as functools.partial(torch.optim.Adam, lr=1e-3)"


def _check_limits(lower: Any) -> None:
    if hasattr(lower, "max_steps"):
        check.whole("max_steps", lower.max_steps, low=1)
    tol = check.real("tol", lower.tol, low=0, open_low=True)
    check.real(
        "limit", lower.limit, low=tol, remedy="below tol the lower level has converged, above limit an evaluation is an error"
    )

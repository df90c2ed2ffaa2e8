"""The hypergradient of G = outer(w(theta, lam), theta, lam): three ways, described for both back ends, JAX and PyTorch.

A description holds settings and checks them. How a back end computes with it is in ``jax_hypergradient.py`` and
``mixbin/torch/hypergradient.py``.
"""

from dataclasses import dataclass
from typing import Any

from mixbin import _validate as check

LARGEST_DIRECT = 300
"""If w has at most this many entries, ``solver="auto"`` forms the matrix and solves the system directly."""
POWER_STEPS = 30
"""Number of power iterations for the largest eigenvalue of the Hessian, which the step of the Neumann series needs."""


@dataclass(frozen=True)
class Implicit:
    """Hypergradients by the implicit function theorem: exact where w is an isolated minimiser, by one linear system in w.

    The memory it needs does not depend on the number of training steps; a network that is not trained to the end, or whose
    Hessian is singular, gets a wrong gradient.

    Let r(w, theta, lam) = 0 at the solution of the lower level, where r is the gradient of inner, or w - step(w). Then
    dG = d outer - A' dr in (theta, lam), where A solves (dr/dw)' A = d outer/dw.

    Parameters
    ----------
    solver : {"auto", "direct", "cg", "neumann"} or lineax solver
        "direct" forms the matrix, for w of up to some hundred entries. "cg" needs only products with the matrix, which must be
        symmetric, so the lower level must be a minimiser. "neumann" sums the series of (I - s dr/dw)^j, for fixed-point maps too.
        "auto" is "direct" up to 300 entries of w, and beyond that "cg" for minimisers; for fixed-point maps GMRES in JAX and
        "neumann" in PyTorch. A lineax solver is for JAX only.
    tol : float
        Iterative solvers stop when the residual is at most this share of the right-hand side.
    max_steps : int
        The largest number of iterations.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Implicit("cg", tol=1e-6)  # pass it as mb.bilevel(..., hypergradient=...)
    Implicit(solver='cg', tol=1e-06, max_steps=1000)
    """

    solver: Any = "auto"
    tol: float = 1e-8
    max_steps: int = 1_000

    def __post_init__(self) -> None:
        if isinstance(self.solver, str):
            check.choice("solver", self.solver, ("auto", "direct", "cg", "neumann"))
        check.real("tol", self.tol, low=0, open_low=True)
        check.whole("max_steps", self.max_steps, low=1)


@dataclass(frozen=True)
class Unrolled:
    """Hypergradients by reverse mode through ``q`` steps of the lower level from w0; G is the outer value after these steps.

    Exact for any q, converged or not, but the answer is one for a model trained by q steps from w0. Reverse mode stores only some
    of the steps and computes the others again, to save memory.

    Parameters
    ----------
    q : int
        The number of steps. The lower level always starts from w0, so that G is one function of (theta, lam). An optimistix
        minimiser may stop earlier, when it meets its own tolerances. In PyTorch the optimiser must be one that torch.optim can
        differentiate, such as SGD or Adam.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Unrolled(50)  # through 50 steps of the training; pass it as mb.bilevel(..., hypergradient=...)
    Unrolled(q=50)
    """

    q: int = 100

    def __post_init__(self) -> None:
        check.whole("q", self.q, low=1, remedy="such as 100")


@dataclass(frozen=True)
class FirstOrder:
    """Hypergradients without second derivatives: train once on ``inner`` and once on ``inner + outer / weight``.

    It needs no Hessian and no stored steps, so it suits networks that are not convex; in exchange G is replaced by a smaller
    function, which tends to G as the weight grows. With u the minimiser of the second objective and w that of the first,

        G_weight = outer(u) + weight * (inner(u) - inner(w)) <= outer(w) = G,

    and its gradient is that of the right-hand side at fixed u and w (the envelope theorem). ``info["outer"]`` is outer(w).

    Parameters
    ----------
    weight : float
        The weight of ``inner``. A large one is nearer to G, but amplifies the rounding and the training noise in
        inner(u) - inner(w) as many times.
    steps : int, optional
        Only with ``Train`` in PyTorch: how many steps follow the training, once on each of the two objectives and on the same
        minibatches, so that what an unfinished training would still have gained cancels. By default as many as the training has.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.FirstOrder(weight=50.0)  # pass it as mb.bilevel(..., hypergradient=...)
    FirstOrder(weight=50.0, steps=None)
    """

    weight: float = 100.0
    steps: int | None = None

    def __post_init__(self) -> None:
        check.real("weight", self.weight, low=0, open_low=True)
        if self.steps is not None:
            check.whole("steps", self.steps, low=1)

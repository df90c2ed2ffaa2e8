"""The lower level: how w is found from theta and lam. Each way says what is zero at its solution, which hypergradients need.

All of them work on w as one flat vector; functions of the user see the shapes they were given.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from mixbin import _validate as check

SMALL = 500
"""Up to so many entries of w, BFGS keeps its whole matrix by default; beyond, L-BFGS a few vectors."""


class LowerLevel(NamedTuple):
    """A lower level as the problem uses it, in JAX functions of the flat w."""

    solve: Callable[[Any, Any, Any], tuple[Any, Any]]
    """(start, theta, lam) -> (w, steps)."""
    unroll: Callable[[Any, Any, Any, int], Any] | None
    """(start, theta, lam, q) -> w after q steps, differentiable in reverse mode; None where that is not known."""
    residual: Callable[[Any, Any, Any], Any]
    """(w, theta, lam) -> what is zero at the solution: the gradient of inner, or w - step(w)."""
    symmetric: bool
    """Whether the derivative of the residual in w is a symmetric matrix."""


class Model(NamedTuple):
    """What the user gave, with w as one flat vector."""

    inner: Callable[[Any, Any, Any], Any] | None
    size: int
    unravel: Callable[[Any], Any]


@dataclass(frozen=True)
class Minimise:
    """Minimise ``inner`` by an optimistix minimiser, then a few Newton steps.

    Parameters
    ----------
    solver : optimistix minimiser, optional
        Such as ``optimistix.BFGS(rtol=1e-8, atol=1e-8)``, ``optimistix.LBFGS(...)`` or
        ``optimistix.OptaxMinimiser(optax.adam(1e-2), ...)``; by default BFGS, or L-BFGS when w has more than 500 entries.
    max_steps : int
        Steps of the minimiser, at most.
    newton : int
        Newton steps at the end, at most, each kept only while the gradient falls. They make w exact to rounding, which a
        minimiser that compares values cannot; 0 for models whose Hessian is too costly.
    tol : float
        The lower level counts as converged when no entry of the gradient of ``inner`` is above this.
    limit : float
        Beyond this, the evaluation is an error: what it gives would mean nothing.
    """

    solver: Any = None
    max_steps: int = 1_000
    newton: int = 5
    tol: float = 1e-6
    limit: float = 1e-2

    def __post_init__(self) -> None:
        check.whole("newton", self.newton, low=0)
        _check_limits(self)

    def bind(self, model: Model) -> LowerLevel:
        """The functions for one model."""
        import jax
        import jax.numpy as jnp
        import optimistix as optx

        inner = model.inner
        if inner is None:
            raise check.fail(
                "inner", None, "a function when lower is a minimiser", "pass the training objective, or a FixedPoint"
            )
        solver = self.solver
        if solver is None:
            solver = (optx.BFGS if model.size <= SMALL else optx.LBFGS)(rtol=1e-8, atol=1e-8)
        if not isinstance(solver, optx.AbstractMinimiser):
            raise check.fail("solver", solver, "an optimistix minimiser", "such as optimistix.BFGS(rtol=1e-8, atol=1e-8)")
        gradient = jax.grad(inner)

        def objective(w: Any, args: Any) -> Any:
            return inner(w, *args)

        def minimised(start: Any, theta: Any, lam: Any, steps: int, adjoint: Any) -> Any:
            return optx.minimise(objective, solver, start, args=(theta, lam), max_steps=steps, throw=False, adjoint=adjoint)

        def solve(start: Any, theta: Any, lam: Any) -> tuple[Any, Any]:
            got = minimised(start, theta, lam, self.max_steps, optx.ImplicitAdjoint())
            w, steps = got.value, got.stats["num_steps"]
            if not self.newton:
                return w, steps
            # A start that was good must not be spoiled by a minimiser that has failed.
            w = jnp.where(jnp.all(jnp.isfinite(w)), w, start)
            return _newton(gradient, w, theta, lam, self.newton), steps

        def unroll(start: Any, theta: Any, lam: Any, q: int) -> Any:
            return minimised(start, theta, lam, q, optx.RecursiveCheckpointAdjoint()).value

        return LowerLevel(solve, unroll, gradient, True)


@dataclass(frozen=True)
class FixedPoint:
    """Iterate the user's own map: w <- step(w, theta, lam), such as a projected gradient step for constrained w.

    Parameters
    ----------
    step : callable
        ``step(w, theta, lam)`` returning the next w; a contraction near the solution.
    max_steps : int
        Steps, at most.
    tol : float
        Converged when no entry of w moves by more than this in a step.
    limit : float
        Beyond this, the evaluation is an error.
    """

    step: Callable[[Any, Any, Any], Any]
    max_steps: int = 10_000
    tol: float = 1e-9
    limit: float = 1e-2

    def __post_init__(self) -> None:
        if not callable(self.step):
            raise check.fail("step", self.step, "a function of (w, theta, lam)", "it returns the next w")
        _check_limits(self)

    def bind(self, model: Model) -> LowerLevel:
        """The functions for one model."""
        import jax
        import jax.numpy as jnp

        step = flat_map(self.step, model)

        def solve(start: Any, theta: Any, lam: Any) -> tuple[Any, Any]:
            def go_on(state: Any) -> Any:
                _, moved, steps = state
                return (moved > self.tol) & (steps < self.max_steps)

            def advance(state: Any) -> Any:
                w, _, steps = state
                there = step(w, theta, lam)
                return there, jnp.max(jnp.abs(there - w)), steps + 1

            w, _, steps = jax.lax.while_loop(go_on, advance, (start, jnp.inf, 0))
            return w, steps

        def unroll(start: Any, theta: Any, lam: Any, q: int) -> Any:
            return checkpointed_steps(lambda w: step(w, theta, lam), start, q)

        return LowerLevel(solve, unroll, lambda w, theta, lam: w - step(w, theta, lam), False)


@dataclass(frozen=True)
class OwnSolver:
    """The user's own solver of ``inner``: ``solve(w, theta, lam)`` in JAX, returning the minimiser found from w.

    Parameters
    ----------
    solve : callable
        Traced once by JAX; never differentiated.
    tol, limit : float
        As for ``Minimise``.
    """

    solve: Callable[[Any, Any, Any], Any]
    tol: float = 1e-6
    limit: float = 1e-2

    def __post_init__(self) -> None:
        if not callable(self.solve):
            raise check.fail("solve", self.solve, "a function of (w, theta, lam)", "it returns the minimiser of inner")
        _check_limits(self)

    def bind(self, model: Model) -> LowerLevel:
        """The functions for one model."""
        import jax

        if model.inner is None:
            raise check.fail(
                "inner", None, "a function when lower is a solver", "its gradient tells whether the solver has arrived"
            )
        solve = flat_map(self.solve, model)
        return LowerLevel(lambda w, theta, lam: (solve(w, theta, lam), 1), None, jax.grad(model.inner), True)


def flat_map(function: Callable[[Any, Any, Any], Any], model: Model) -> Callable[[Any, Any, Any], Any]:
    """A user's map of w, as a map of the flat w."""
    from jax.flatten_util import ravel_pytree

    def mapped(w: Any, theta: Any, lam: Any) -> Any:
        there = ravel_pytree(function(model.unravel(w), theta, lam))[0]
        if there.shape != w.shape:
            raise check.fail("the w that the lower level returns", there.shape, f"of {w.shape[0]} entries, as w0 is")
        return there.astype(w.dtype)

    return mapped


def checkpointed_steps(step: Callable[[Any], Any], start: Any, q: int) -> Any:
    """``q`` steps whose reverse mode keeps about 2 sqrt(q) states: each chunk is run again when its turn comes."""
    import jax

    chunk = max(1, round(q**0.5))

    def some(w: Any, n: int) -> Any:
        return jax.lax.scan(lambda w, _: (step(w), None), w, None, length=n)[0]

    w, _ = jax.lax.scan(jax.checkpoint(lambda w, _: (some(w, chunk), None)), start, None, length=q // chunk)
    return some(w, q % chunk)


def _newton(gradient: Callable[[Any, Any, Any], Any], w: Any, theta: Any, lam: Any, most: int) -> Any:
    """Newton steps while the gradient falls; systems by conjugate gradients, which never form the Hessian."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.sparse.linalg import cg

    def go_on(state: Any) -> Any:
        _, _, fell, steps = state
        return fell & (steps < most)

    def advance(state: Any) -> Any:
        w, g, _, steps = state
        d = cg(lambda x: jax.jvp(lambda u: gradient(u, theta, lam), (w,), (x,))[1], g, tol=1e-6, maxiter=4 * w.shape[0] + 20)[0]
        there = w - d
        g_there = gradient(there, theta, lam)
        fell = jnp.max(jnp.abs(g_there)) < jnp.max(jnp.abs(g))
        return jnp.where(fell, there, w), jnp.where(fell, g_there, g), fell, steps + 1

    return jax.lax.while_loop(go_on, advance, (w, gradient(w, theta, lam), jnp.asarray(True), 0))[0]


def _check_limits(lower: Any) -> None:
    if hasattr(lower, "max_steps"):
        check.whole("max_steps", lower.max_steps, low=1)
    tol = check.real("tol", lower.tol, low=0, open_low=True)
    check.real("limit", lower.limit, low=tol, remedy="tol is what converged means, limit where an evaluation becomes an error")

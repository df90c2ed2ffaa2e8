"""The lower levels in JAX: functions of w as one flat vector, with a residual that is zero at the solution.

The implicit hypergradient is computed from the residual. The user's functions see w in the shapes of w0.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from mixbin import _validate as check
from mixbin.problems.bilevel.lower import FixedPoint, Minimise, OwnSolver

LARGEST_BFGS = 500
"""If w has at most this many entries, the default minimiser is BFGS, which stores a matrix of that size; else L-BFGS, which
stores a few vectors."""


class LowerLevel(NamedTuple):
    """A lower level in the form that the problem uses: JAX functions of the flat w."""

    solve: Callable[[Any, Any, Any], tuple[Any, Any]]
    """(start, theta, lam) -> (w, steps)."""
    unroll: Callable[[Any, Any, Any, int], Any] | None
    """(start, theta, lam, q) -> w after q steps, differentiable in reverse mode; None if the single steps are not known."""
    residual: Callable[[Any, Any, Any], Any]
    """(w, theta, lam) -> a vector that is zero at the solution: the gradient of inner, or w - step(w)."""
    symmetric: bool
    """Whether the derivative of the residual in w is a symmetric matrix."""
    minimises: bool
    """Whether it minimises any objective of w that it is given, not the one of the user's own map or solver."""


class Model(NamedTuple):
    """The user's training objective and w0, with w as one flat vector."""

    inner: Callable[[Any, Any, Any], Any] | None
    size: int
    unravel: Callable[[Any], Any]


def bind_lower(lower: Minimise | FixedPoint | OwnSolver, model: Model) -> LowerLevel:
    """The functions of a lower level for one model."""
    if isinstance(lower, Minimise):
        return _minimise(lower, model)
    if isinstance(lower, FixedPoint):
        return _fixed_point(lower, model)
    return _own_solver(lower, model)


def _minimise(lower: Minimise, model: Model) -> LowerLevel:
    import jax
    import jax.numpy as jnp
    import optimistix as optx

    inner = model.inner
    if inner is None:
        raise check.fail("inner", None, "a function when lower is a minimiser", "pass the training objective, or a FixedPoint")
    solver = lower.solver
    if solver is None:
        solver = (optx.BFGS if model.size <= LARGEST_BFGS else optx.LBFGS)(rtol=1e-8, atol=1e-8)
    if not isinstance(solver, optx.AbstractMinimiser):
        raise check.fail("solver", solver, "an optimistix minimiser", "such as optimistix.BFGS(rtol=1e-8, atol=1e-8)")
    gradient = jax.grad(inner)

    def objective(w: Any, args: Any) -> Any:
        return inner(w, *args)

    def minimised(start: Any, theta: Any, lam: Any, steps: int, adjoint: Any) -> Any:
        return optx.minimise(objective, solver, start, args=(theta, lam), max_steps=steps, throw=False, adjoint=adjoint)

    def solve(start: Any, theta: Any, lam: Any) -> tuple[Any, Any]:
        got = minimised(start, theta, lam, lower.max_steps, optx.ImplicitAdjoint())
        w, steps = got.value, got.stats["num_steps"]
        if not lower.newton:
            return w, steps
        # If the minimiser has failed, continue from the start: a warm start may be almost the solution already.
        w = jnp.where(jnp.all(jnp.isfinite(w)), w, start)
        return _newton(gradient, w, theta, lam, lower.newton), steps

    def unroll(start: Any, theta: Any, lam: Any, q: int) -> Any:
        return minimised(start, theta, lam, q, optx.RecursiveCheckpointAdjoint()).value

    return LowerLevel(solve, unroll, gradient, True, True)


def _fixed_point(lower: FixedPoint, model: Model) -> LowerLevel:
    import jax
    import jax.numpy as jnp

    step = flat_map(lower.step, model)

    def solve(start: Any, theta: Any, lam: Any) -> tuple[Any, Any]:
        def go_on(state: Any) -> Any:
            _, moved, steps = state
            return (moved > lower.tol) & (steps < lower.max_steps)

        def advance(state: Any) -> Any:
            w, _, steps = state
            there = step(w, theta, lam)
            return there, jnp.max(jnp.abs(there - w)), steps + 1

        w, _, steps = jax.lax.while_loop(go_on, advance, (start, jnp.inf, 0))
        return w, steps

    def unroll(start: Any, theta: Any, lam: Any, q: int) -> Any:
        return checkpointed_steps(lambda w: step(w, theta, lam), start, q)

    return LowerLevel(solve, unroll, lambda w, theta, lam: w - step(w, theta, lam), False, False)


def _own_solver(lower: OwnSolver, model: Model) -> LowerLevel:
    import jax

    if model.inner is None:
        raise check.fail(
            "inner", None, "a function when lower is a solver", "its gradient shows whether the solver has converged"
        )
    solve = flat_map(lower.solve, model)
    return LowerLevel(lambda w, theta, lam: (solve(w, theta, lam), 1), None, jax.grad(model.inner), True, False)


def flat_map(function: Callable[[Any, Any, Any], Any], model: Model) -> Callable[[Any, Any, Any], Any]:
    """The user's function of w as a function of the flat w."""
    from jax.flatten_util import ravel_pytree

    def mapped(w: Any, theta: Any, lam: Any) -> Any:
        there = ravel_pytree(function(model.unravel(w), theta, lam))[0]
        if there.shape != w.shape:
            raise check.fail("the w that the lower level returns", there.shape, f"an array of {w.shape[0]} entries, as w0 has")
        return there.astype(w.dtype)

    return mapped


def checkpointed_steps(step: Callable[[Any], Any], start: Any, q: int) -> Any:
    """The result of ``q`` steps, whose reverse mode stores only about 2 sqrt(q) states.

    The steps are cut into sqrt(q) chunks; reverse mode stores the state before each chunk, and runs a chunk again when it gets to
    it.
    """
    import jax

    chunk = max(1, round(q**0.5))

    def some(w: Any, n: int) -> Any:
        return jax.lax.scan(lambda w, _: (step(w), None), w, None, length=n)[0]

    w, _ = jax.lax.scan(jax.checkpoint(lambda w, _: (some(w, chunk), None)), start, None, length=q // chunk)
    return some(w, q % chunk) if q % chunk else w  # a loop without steps would be compiled, too


def _newton(gradient: Callable[[Any, Any, Any], Any], w: Any, theta: Any, lam: Any, most: int) -> Any:
    """Newton steps while the largest entry of the gradient falls; conjugate gradients solve the systems without the Hessian."""
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

"""The lower level: three ways to find w from theta and lam.

Each way also provides a residual that is zero at its solution, from which the implicit hypergradient is computed. All of them
work on w as one flat vector; the user's functions see w in the shapes of w0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from mixbin import _validate as check

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


class Model(NamedTuple):
    """The user's training objective and w0, with w as one flat vector."""

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
        The largest number of steps of the minimiser.
    newton : int
        The largest number of Newton steps at the end; they stop when the gradient no longer falls. They make w exact to rounding,
        which a minimiser that compares values cannot do. Use 0 for models whose Hessian products cost too much.
    tol : float
        The lower level counts as converged when no entry of the gradient of ``inner`` exceeds this.
    limit : float
        If an entry of that gradient exceeds this, the evaluation is an error, because G and its gradient would be meaningless.
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
            solver = (optx.BFGS if model.size <= LARGEST_BFGS else optx.LBFGS)(rtol=1e-8, atol=1e-8)
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
            # If the minimiser has failed, continue from the start: a warm start may be almost the solution already.
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
        ``step(w, theta, lam)`` returns the next w; it must be a contraction near the solution.
    max_steps : int
        The largest number of steps.
    tol : float
        The iteration has converged when no entry of w moves by more than this in a step.
    limit : float
        If an entry of w still moves by more than this in the last step, the evaluation is an error.
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
    """The user's own solver of ``inner``, a JAX function ``solve(w, theta, lam)`` that starts from w and returns the minimiser.

    Parameters
    ----------
    solve : callable
        The solver. JAX traces it once; it is never differentiated.
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
                "inner", None, "a function when lower is a solver", "its gradient shows whether the solver has converged"
            )
        solve = flat_map(self.solve, model)
        return LowerLevel(lambda w, theta, lam: (solve(w, theta, lam), 1), None, jax.grad(model.inner), True)


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


def _check_limits(lower: Any) -> None:
    if hasattr(lower, "max_steps"):
        check.whole("max_steps", lower.max_steps, low=1)
    tol = check.real("tol", lower.tol, low=0, open_low=True)
    check.real(
        "limit", lower.limit, low=tol, remedy="below tol the lower level has converged, above limit an evaluation is an error"
    )

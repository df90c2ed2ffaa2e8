"""The hypergradient of G = outer(w(theta, lam), theta, lam): implicitly, or through the steps of the lower level.

Let r(w, theta, lam) = 0 at the solution of the lower level, where r is the gradient of inner, or w - step(w). The implicit
function theorem gives dG = d outer - A' dr in (theta, lam), where A solves (dr/dw)' A = d outer/dw. The memory this needs does
not depend on the number of steps that the lower level took.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from mixbin import _validate as check
from mixbin.problems.bilevel.lower import LowerLevel

LARGEST_DIRECT = 300
"""If w has at most this many entries, ``solver="auto"`` forms the matrix and solves the system directly."""
POWER_STEPS = 30
"""Number of power iterations for the largest eigenvalue of the Hessian, which the step of the Neumann series needs."""


class Derivatives(NamedTuple):
    """The results of one evaluation with gradient, as JAX arrays."""

    value: Any
    grad_theta: Any
    grad_lam: Any
    w: Any
    linear_residual: Any
    """The relative residual of the linear system of the implicit function theorem; 0 if no such system was solved."""


Outer = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Implicit:
    """Hypergradients by the implicit function theorem, whose linear system lineax solves.

    Parameters
    ----------
    solver : {"auto", "direct", "cg", "neumann"} or lineax solver
        "direct" forms the matrix, for w of up to some hundred entries. "cg" needs only products with the matrix, which must be
        symmetric, so the lower level must be a minimiser. "neumann" sums the series of (I - s dr/dw)^j, for fixed-point maps too.
        "auto" is "direct" up to 300 entries of w, and beyond that "cg" for minimisers and GMRES for fixed-point maps.
    tol : float
        Iterative solvers stop when the residual is at most this share of the right-hand side.
    max_steps : int
        The largest number of iterations.
    """

    solver: Any = "auto"
    tol: float = 1e-8
    max_steps: int = 1_000

    def __post_init__(self) -> None:
        if isinstance(self.solver, str):
            check.choice("solver", self.solver, ("auto", "direct", "cg", "neumann"))
        check.real("tol", self.tol, low=0, open_low=True)
        check.whole("max_steps", self.max_steps, low=1)

    def bind(self, outer: Outer, lower: LowerLevel, size: int) -> Callable[[Any, Any, Any], Derivatives]:
        """The function (w, theta, lam) -> Derivatives for one problem, at the w that ``lower.solve`` has found."""
        import jax

        solve_system = self._system(lower, size)

        def derivatives(w: Any, theta: Any, lam: Any) -> Derivatives:
            value, (d_w, d_theta, d_lam) = jax.value_and_grad(outer, argnums=(0, 1, 2))(w, theta, lam)
            transposed = jax.linear_transpose(lambda x: jax.jvp(lambda u: lower.residual(u, theta, lam), (w,), (x,))[1], w)
            A = solve_system(lambda x: transposed(x)[0], d_w)
            unsolved = _size(transposed(A)[0] - d_w) / _at_least_tiny(_size(d_w))
            by_theta, by_lam = jax.vjp(lambda t, s: lower.residual(w, t, s), theta, lam)[1](A)
            return Derivatives(value, d_theta - by_theta, d_lam - by_lam, w, unsolved)

        return derivatives

    def _system(self, lower: LowerLevel, size: int) -> Callable[[Any, Any], Any]:
        import jax
        import lineax as lx

        kind = self.solver
        if kind == "auto":
            kind = (
                "direct"
                if size <= LARGEST_DIRECT
                else "cg"
                if lower.symmetric
                else lx.GMRES(self.tol, self.tol, max_steps=self.max_steps)
            )
        if kind == "cg":
            if not lower.symmetric:
                raise check.fail(
                    "solver", "cg", '"direct", "neumann" or a lineax solver for a fixed-point map', "its matrix is not symmetric"
                )
            kind = lx.CG(self.tol, self.tol, max_steps=self.max_steps)
        if kind == "neumann":
            return lambda product, rhs: _neumann(product, rhs, lower.symmetric, self.tol, self.max_steps)
        if kind == "direct":
            return lambda product, rhs: (
                lx.linear_solve(
                    lx.MatrixLinearOperator(jax.vmap(product, out_axes=1)(_eye(size, rhs.dtype))), rhs, lx.LU(), throw=False
                ).value
            )
        if not isinstance(kind, lx.AbstractLinearSolver):
            raise check.fail(
                "solver", kind, '"auto", "direct", "cg", "neumann" or a lineax solver', "such as lineax.GMRES(1e-8, 1e-8)"
            )
        tags = lx.positive_semidefinite_tag if lower.symmetric else ()

        def iterative(product: Callable[[Any], Any], rhs: Any) -> Any:
            operator = lx.FunctionLinearOperator(product, jax.eval_shape(lambda: rhs), tags)
            return lx.linear_solve(operator, rhs, kind, throw=False).value

        return iterative


@dataclass(frozen=True)
class Unrolled:
    """Hypergradients by reverse mode through ``q`` steps of the lower level from w0; G is the outer value after these steps.

    Reverse mode stores only some of the steps and computes the others again, to save memory.

    Parameters
    ----------
    q : int
        The number of steps. The lower level always starts from w0, so that G is one function of (theta, lam). An optimistix
        minimiser may stop earlier, when it meets its own tolerances.
    """

    q: int = 100

    def __post_init__(self) -> None:
        check.whole("q", self.q, low=1, remedy="such as 100")

    def bind(self, outer: Outer, lower: LowerLevel, size: int) -> Callable[[Any, Any, Any], Derivatives]:
        """The function (start, theta, lam) -> Derivatives for one problem."""
        import jax

        unroll = lower.unroll
        if unroll is None:
            raise check.fail(
                "hypergradient", self, "Implicit() when lower is an OwnSolver", "or pass the solver's step as a FixedPoint"
            )

        def through(theta: Any, lam: Any, start: Any) -> tuple[Any, Any]:
            w = unroll(start, theta, lam, self.q)
            return outer(w, theta, lam), w

        def derivatives(start: Any, theta: Any, lam: Any) -> Derivatives:
            (value, w), (d_theta, d_lam) = jax.value_and_grad(through, argnums=(0, 1), has_aux=True)(theta, lam, start)
            return Derivatives(value, d_theta, d_lam, w, 0.0)

        return derivatives


def _neumann(product: Callable[[Any], Any], rhs: Any, symmetric: bool, tol: float, most: int) -> Any:
    """The Neumann series, as the iteration A <- A + s (rhs - product(A)).

    s is 1 for fixed-point maps, and a little less than 1 / (largest eigenvalue) for Hessians.
    """
    import jax
    import jax.numpy as jnp

    step: Any = 1.0
    if symmetric:
        # A fixed first vector, so that equal calls give equal bits; its entries vary, so that it is not orthogonal to an
        # eigenvector by symmetry, as a constant vector could be.
        x = jnp.cos(jnp.arange(rhs.size, dtype=rhs.dtype)) + 1e-3

        def power(_: Any, x: Any) -> Any:
            there = product(x)
            return there / _at_least_tiny(jnp.linalg.norm(there))

        x = jax.lax.fori_loop(0, POWER_STEPS, power, x)
        # Power iteration estimates the largest eigenvalue from below, so 1 / estimate may be too long a step; 0.9 of it is safe.
        step = 0.9 / _at_least_tiny(jnp.linalg.norm(product(x)))

    def go_on(state: Any) -> Any:
        _, left, steps = state
        return (_size(left) > tol * _size(rhs)) & (steps < most)

    def advance(state: Any) -> Any:
        A, left, steps = state
        A = A + step * left
        return A, rhs - product(A), steps + 1

    return jax.lax.while_loop(go_on, advance, (jnp.zeros_like(rhs), rhs, 0))[0]


def _eye(size: int, dtype: Any) -> Any:
    import jax.numpy as jnp

    return jnp.eye(size, dtype=dtype)


def _size(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.max(jnp.abs(x), initial=0.0)


def _at_least_tiny(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.maximum(x, 1e-300)

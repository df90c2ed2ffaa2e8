"""The hypergradients in JAX: functions (w, theta, lam) -> value, gradients, w.

The first argument is the w that the lower level has found; for ``Unrolled`` it is w0, from which the steps begin.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from mixbin import _validate as check
from mixbin.problems.bilevel.hypergradient import LARGEST_DIRECT, POWER_STEPS, FirstOrder, Implicit, Unrolled
from mixbin.problems.bilevel.jax_lower import LowerLevel, Model


class Derivatives(NamedTuple):
    """The results of one evaluation with gradient, as JAX arrays."""

    value: Any
    grad_theta: Any
    grad_lam: Any
    w: Any
    steps: Any
    """The steps in w that the hypergradient itself took, after those of the lower level."""
    linear_residual: Any
    """The relative residual of the linear system of the implicit function theorem; 0 if no such system was solved."""
    outer: Any
    """The outer objective at w: the value, or with FirstOrder a little more."""


Outer = Callable[[Any, Any, Any], Any]


def bind_hypergradient(
    how: Implicit | Unrolled | FirstOrder, outer: Outer, lower: LowerLevel, model: Model, minimise: Callable[[Model], LowerLevel]
) -> Callable[[Any, Any, Any], Derivatives]:
    """The function (w, theta, lam) -> Derivatives for one problem; ``minimise`` binds its lower level to another model."""
    if isinstance(how, Implicit):
        return _implicit(how, outer, lower, model.size)
    if isinstance(how, Unrolled):
        return _unrolled(how, outer, lower)
    return _first_order(how, outer, lower, model, minimise)


def _implicit(how: Implicit, outer: Outer, lower: LowerLevel, size: int) -> Callable[[Any, Any, Any], Derivatives]:
    import jax

    solve_system = _system(how, lower, size)

    def derivatives(w: Any, theta: Any, lam: Any) -> Derivatives:
        value, (d_w, d_theta, d_lam) = jax.value_and_grad(outer, argnums=(0, 1, 2))(w, theta, lam)
        transposed = jax.linear_transpose(lambda x: jax.jvp(lambda u: lower.residual(u, theta, lam), (w,), (x,))[1], w)
        A = solve_system(lambda x: transposed(x)[0], d_w)
        unsolved = _size(transposed(A)[0] - d_w) / _at_least_tiny(_size(d_w))
        by_theta, by_lam = jax.vjp(lambda t, s: lower.residual(w, t, s), theta, lam)[1](A)
        return Derivatives(value, d_theta - by_theta, d_lam - by_lam, w, 0, unsolved, value)

    return derivatives


def _system(how: Implicit, lower: LowerLevel, size: int) -> Callable[[Any, Any], Any]:
    import jax
    import lineax as lx

    kind = how.solver
    if kind == "auto":
        kind = (
            "direct"
            if size <= LARGEST_DIRECT
            else "cg"
            if lower.symmetric
            else lx.GMRES(how.tol, how.tol, max_steps=how.max_steps)
        )
    if kind == "cg":
        if not lower.symmetric:
            raise check.fail(
                "solver", "cg", '"direct", "neumann" or a lineax solver for a fixed-point map', "its matrix is not symmetric"
            )
        kind = lx.CG(how.tol, how.tol, max_steps=how.max_steps)
    if kind == "neumann":
        return lambda product, rhs: _neumann(product, rhs, lower.symmetric, how.tol, how.max_steps)
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


def _unrolled(how: Unrolled, outer: Outer, lower: LowerLevel) -> Callable[[Any, Any, Any], Derivatives]:
    import jax

    unroll = lower.unroll
    if unroll is None:
        raise check.fail(
            "hypergradient", how, "Implicit() when lower is an OwnSolver", "or pass the solver's step as a FixedPoint"
        )

    def through(theta: Any, lam: Any, start: Any) -> tuple[Any, Any]:
        w = unroll(start, theta, lam, how.q)
        return outer(w, theta, lam), w

    def derivatives(start: Any, theta: Any, lam: Any) -> Derivatives:
        (value, w), (d_theta, d_lam) = jax.value_and_grad(through, argnums=(0, 1), has_aux=True)(theta, lam, start)
        return Derivatives(value, d_theta, d_lam, w, how.q, 0.0, value)

    return derivatives


def _first_order(
    how: FirstOrder, outer: Outer, lower: LowerLevel, model: Model, minimise: Callable[[Model], LowerLevel]
) -> Callable[[Any, Any, Any], Derivatives]:
    import jax

    inner = model.inner
    if how.steps is not None or inner is None or not lower.minimises:
        raise check.fail(
            "hypergradient", how, "FirstOrder(weight) with lower=Minimise(...) in JAX", "or take Implicit() or Unrolled()"
        )
    both = minimise(model._replace(inner=lambda w, theta, lam: inner(w, theta, lam) + outer(w, theta, lam) / how.weight))

    def value(theta: Any, lam: Any, w: Any, u: Any) -> Any:
        return outer(u, theta, lam) + how.weight * (inner(u, theta, lam) - inner(w, theta, lam))

    def derivatives(w: Any, theta: Any, lam: Any) -> Derivatives:
        u, more = both.solve(w, theta, lam)
        lowered, (d_theta, d_lam) = jax.value_and_grad(value, argnums=(0, 1))(theta, lam, w, u)
        return Derivatives(lowered, d_theta, d_lam, w, more, 0.0, outer(w, theta, lam))

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

"""The hypergradients in PyTorch, in float32 or float64 as the module: implicit, through the steps, and of first order."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from mixbin.problems.bilevel.hypergradient import LARGEST_DIRECT, POWER_STEPS, FirstOrder, Implicit
from mixbin.torch.functional import ALL, Network, Weights, fresh
from mixbin.torch.lower import END, Objective, Trained, conjugate_gradients, product

Value = Callable[[Any, dict[str, Any], Any, Any], Any]
"""(parameters, buffers, theta, lam) -> one number."""


class Derivatives(NamedTuple):
    """The results of one evaluation with gradient, as tensors."""

    value: Any
    grad_theta: Any
    grad_lam: Any
    weights: Weights
    steps: int
    linear_residual: float = 0.0
    """The relative residual of the linear system of the implicit function theorem; 0 if no such system was solved."""
    outer: float | None = None
    """With FirstOrder the outer objective at the weights, which is a little more than the value."""


def partials(value: Any, *inputs: Any) -> tuple[Any, ...]:
    """The derivatives of one number, zero where it does not depend on an input."""
    if not value.requires_grad:
        return tuple(torch.zeros_like(it) for it in inputs)
    return tuple(torch.autograd.grad(value, inputs, materialize_grads=True))


def implicit(
    how: Implicit,
    net: Network,
    outer: Value,
    residual: Callable[[Any, dict[str, Any], Any, Any], Any],
    symmetric: bool,
    trained: Trained,
    theta: Any,
    lam: Any,
) -> Derivatives:
    """dG = d outer - A' dr, where A solves (dr/dw)' A = d outer/dw at the trained weights."""
    weights = trained.weights
    w, theta, lam = (it.detach().requires_grad_() for it in (weights.w, theta, lam))
    value = outer(net.split(w), fresh(weights.buffers), theta, lam)
    d_w, d_theta, d_lam = partials(value, w, theta, lam)
    r = residual(w, weights.buffers, theta, lam)
    apply = product(r, w)
    A = _solved(how, apply, d_w, symmetric)
    unsolved = (apply(A) - d_w).abs().max() / d_w.abs().max().clamp_min(torch.finfo(net.dtype).tiny)
    by_theta, by_lam = (
        torch.autograd.grad(r, (theta, lam), A, materialize_grads=True)
        if r.requires_grad
        else (torch.zeros_like(theta), torch.zeros_like(lam))
    )
    return Derivatives(value.detach(), d_theta - by_theta, d_lam - by_lam, weights, trained.steps, float(unsolved))


def _solved(how: Implicit, apply: Callable[[Any], Any], rhs: Any, symmetric: bool) -> Any:
    """The solution of the linear system; entries that are not finite if there is none."""
    kind = how.solver
    if kind == "auto":
        kind = "direct" if rhs.numel() <= LARGEST_DIRECT else "cg" if symmetric else "neumann"
    if kind == "neumann":
        return _neumann(apply, rhs, symmetric, how.tol, how.max_steps)
    if kind == "cg":
        x, definite = conjugate_gradients(apply, rhs, how.tol, how.max_steps)
        # A direction without curvature: the minimiser is not isolated.
        return x if definite else torch.full_like(rhs, torch.nan)
    columns = torch.eye(rhs.numel(), dtype=rhs.dtype, device=rhs.device)
    matrix = torch.stack([apply(column) for column in columns], dim=1)
    x, info = torch.linalg.solve_ex(matrix, rhs)
    return x if int(info) == 0 else torch.full_like(rhs, torch.nan)


def _neumann(apply: Callable[[Any], Any], rhs: Any, symmetric: bool, tol: float, most: int) -> Any:
    """The Neumann series, as the iteration A <- A + s (rhs - apply(A)).

    s is 1 for fixed-point maps, and a little less than 1 / (largest eigenvalue) for Hessians.
    """
    step: Any = 1.0
    tiny = torch.finfo(rhs.dtype).tiny
    if symmetric:
        # A fixed first vector, so that equal calls give equal bits; its entries vary, so that it is not orthogonal to an
        # eigenvector by symmetry, as a constant vector could be.
        x = torch.cos(torch.arange(rhs.numel(), dtype=rhs.dtype, device=rhs.device)) + 1e-3
        for _ in range(POWER_STEPS):
            x = apply(x)
            x = x / torch.linalg.vector_norm(x).clamp_min(tiny)
        # Power iteration estimates the largest eigenvalue from below, so 1 / estimate may be too long a step; 0.9 of it is safe.
        step = 0.9 / torch.linalg.vector_norm(apply(x)).clamp_min(tiny)
    A, left = torch.zeros_like(rhs), rhs
    for _ in range(most):
        if not left.abs().max() > tol * rhs.abs().max():
            break
        A = A + step * left
        left = rhs - apply(A)
    return A


def unrolled(
    net: Network, outer: Value, steps: Any, chosen: list[Any], key: tuple[int, ...], start: Weights, theta: Any, lam: Any
) -> Derivatives:
    """Reverse mode through one step on each of the ``chosen`` minibatches.

    The steps are cut into sqrt(q) chunks. The state before each chunk is stored, and a chunk is computed again, with its graph,
    when reverse mode gets to it; so about 2 sqrt(q) states are held at a time.
    """
    q = len(chosen)
    size = max(1, round(q**0.5))
    cuts = list(range(0, q, size))
    theta, lam = (it.detach().requires_grad_() for it in (theta, lam))

    def run(parameters: Any, state: Any, buffers: dict[str, Any], first: int) -> tuple[Any, Any]:
        for i in range(first, min(first + size, q)):
            parameters, state = steps(theta, lam)(parameters, state, buffers, chosen[i], (*key, i))
        return parameters, state

    parameters, buffers = list(net.split(start.w.detach())), fresh(start.buffers)
    state = steps(theta, lam).first(parameters)
    before = []
    for first in cuts:
        before.append((parameters, state, fresh(buffers)))
        parameters, state = run(parameters, state, buffers, first)
        parameters, state = [it.detach() for it in parameters], [_detached(it) for it in state]
    weights = Weights(net.flat(parameters), buffers)

    w = weights.w.clone().requires_grad_()
    value = outer(net.split(w), fresh(buffers), theta, lam)
    d_w, d_theta, d_lam = partials(value, w, theta, lam)
    along: list[Any] = [*net.split(d_w), *(torch.zeros_like(it) for it in _floats(state))]
    for first, (parameters, state, buffers) in zip(reversed(cuts), reversed(before), strict=True):
        here = [it.detach().requires_grad_() for it in parameters]
        moving = [
            {k: it.detach().requires_grad_(k in _moving(part)) if k in _moving(part) else it for k, it in part.items()}
            for part in state
        ]
        there, after = run(here, moving, fresh(buffers), first)
        ends = [(end, bar) for end, bar in zip([*there, *_floats(after)], along, strict=True) if end.requires_grad]
        starts = [*here, *_floats(moving)]
        got = torch.autograd.grad([it for it, _ in ends], [*starts, theta, lam], [bar for _, bar in ends], materialize_grads=True)
        along, d_theta, d_lam = list(got[:-2]), d_theta + got[-2], d_lam + got[-1]
    return Derivatives(value.detach(), d_theta, d_lam, weights, q)


def _moving(state: dict[str, Any]) -> list[str]:
    """The names of the tensors of an optimiser's state that its steps differentiate; its counter of steps is none of them."""
    return [
        name for name, it in sorted(state.items()) if name != "step" and isinstance(it, torch.Tensor) and it.is_floating_point()
    ]


def _floats(state: list[dict[str, Any]]) -> list[Any]:
    return [part[name] for part in state for name in _moving(part)]


def _detached(state: dict[str, Any]) -> dict[str, Any]:
    return {name: it.detach() if isinstance(it, torch.Tensor) else it for name, it in state.items()}


def first_order(
    how: FirstOrder,
    net: Network,
    outer: Value,
    inner: Callable[[Any, Any], Objective],
    plain: Trained,
    nudged: Trained,
    theta: Any,
    lam: Any,
) -> Derivatives:
    """The value outer(u) + weight (inner(u) - inner(w)) and its derivatives at fixed w (``plain``) and u (``nudged``)."""
    theta, lam = (it.detach().requires_grad_() for it in (theta, lam))
    objective = inner(theta, lam)
    w, u = plain.weights, nudged.weights
    there = objective(net.split(u.w), fresh(u.buffers), ALL, (END,))
    here = objective(net.split(w.w), fresh(w.buffers), ALL, (END,))
    value = outer(net.split(u.w), fresh(u.buffers), theta, lam) + how.weight * (there - here)
    d_theta, d_lam = partials(value, theta, lam)
    with torch.no_grad():
        at_w = outer(net.split(w.w), fresh(w.buffers), theta, lam)
    return Derivatives(value.detach(), d_theta, d_lam, w, plain.steps + nudged.steps, outer=float(at_w))

"""The lower levels in PyTorch: weights from an objective and a start, and the single steps, to differentiate through them.

An objective is a function (parameters, buffers, batch, key) -> one number; ``key`` seeds random layers such as dropout.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from mixbin import _validate as check
from mixbin.problems.bilevel.lower import OPTIMISER, FixedPoint, Minimise, OwnSolver, Train
from mixbin.torch.functional import ALL, Network, Weights, fresh

Objective = Callable[[Sequence[Any], dict[str, Any], Any, tuple[int, ...]], Any]
Lower = Minimise | FixedPoint | OwnSolver | Train

END = 2**31
"""The last number of the key of a call outside of training, which no training step has."""


class Trained(NamedTuple):
    """The weights that a lower level found, and the number of its steps."""

    weights: Weights
    steps: int


def batches(lower: Train, n_rows: int | None, round_: int, first: int = 0) -> Iterator[Any]:
    """The minibatches of one training: passes over all rows, each in an order of its own. ``first`` of them are left out."""
    if lower.batch_size is None:
        while True:
            yield ALL
    if n_rows is None:
        raise check.fail("n_rows", None, "the number of training rows when lower has a batch_size", "such as len(X)")
    rng = np.random.default_rng((lower.seed, round_))
    size = min(lower.batch_size, n_rows)
    while True:
        order = torch.from_numpy(rng.permutation(n_rows))
        for start in range(0, n_rows - size + 1, size):
            if first > 0:
                first -= 1
                continue
            yield order[start : start + size]


def optimiser(make: Callable[[Any], Any], parameters: Sequence[Any]) -> Any:
    """The user's optimiser of these parameters."""
    made = make(list(parameters))
    if not isinstance(made, torch.optim.Optimizer):
        raise check.fail("the optimiser", made, "an optimiser of torch.optim, made from the parameters", OPTIMISER)
    return made


def train(
    make: Callable[[Any], Any], net: Network, objective: Objective, start: Weights, chosen: Sequence[Any], key: tuple[int, ...]
) -> Weights:
    """The weights after one step of the optimiser on each of the ``chosen`` minibatches."""
    parameters = _leaves(net, start.w)
    buffers = fresh(start.buffers)
    made = optimiser(make, parameters)
    for step, batch in enumerate(chosen):
        made.step(_closure(made, objective, parameters, buffers, batch, (*key, step)))
    return Weights(net.flat([it.detach() for it in parameters]), buffers)


def _leaves(net: Network, w: Any) -> list[Any]:
    return [it.clone().requires_grad_() for it in net.split(w.detach())]


def _closure(
    made: Any, objective: Objective, parameters: list[Any], buffers: dict[str, Any], batch: Any, key: tuple[int, ...]
) -> Callable[[], Any]:
    def closure() -> Any:
        made.zero_grad()
        loss = objective(parameters, buffers, batch, key)
        loss.backward()
        return loss

    return closure


def minimise(lower: Minimise, net: Network, objective: Objective, start: Weights) -> Trained:
    """Minimise over all rows, first by an optimiser, then by Newton steps."""
    parameters = _leaves(net, start.w)
    buffers = fresh(start.buffers)
    if lower.solver is None:
        steps = _lbfgs(lower, objective, parameters, buffers)
    else:
        steps = _descend(lower, objective, parameters, buffers)
    w = net.flat([it.detach() for it in parameters])
    if lower.newton:
        # If the minimiser has failed, continue from the start: a warm start may be almost the solution already.
        w = w if bool(torch.isfinite(w).all()) else start.w
        w = _newton(net, objective, w, start.buffers, lower.newton)
    return Trained(Weights(w, buffers), steps)


def _lbfgs(lower: Minimise, objective: Objective, parameters: list[Any], buffers: dict[str, Any]) -> int:
    made = torch.optim.LBFGS(
        parameters,
        max_iter=lower.max_steps,
        max_eval=2 * lower.max_steps,
        tolerance_grad=lower.tol / 100,
        tolerance_change=torch.finfo(parameters[0].dtype).tiny,  # stop when nothing changes at all
        history_size=20,
        line_search_fn="strong_wolfe",
    )
    made.step(_closure(made, objective, parameters, buffers, ALL, (END,)))
    return int(made.state[parameters[0]]["n_iter"])


def _descend(lower: Minimise, objective: Objective, parameters: list[Any], buffers: dict[str, Any]) -> int:
    made = optimiser(lower.solver, parameters)
    closure = _closure(made, objective, parameters, buffers, ALL, (END,))
    steps = 0
    while steps < lower.max_steps:
        steps += 1
        made.step(closure)
        if max(float(it.grad.abs().max()) for it in parameters if it.grad is not None and it.numel()) <= lower.tol:
            break
    return steps


def _newton(net: Network, objective: Objective, w: Any, buffers: dict[str, Any], most: int) -> Any:
    """Newton steps while the largest entry of the gradient falls; conjugate gradients solve the systems without the Hessian."""

    def gradient(w: Any) -> tuple[Any, Any]:
        w = w.detach().requires_grad_()
        return w, gradient_of(net, objective, w, buffers)

    w, g = gradient(w)
    for _ in range(most):
        step, definite = conjugate_gradients(product(g, w), g.detach(), 1e-6, 4 * net.size + 20)
        if not definite:  # a step would lead to a saddle point
            break
        there, g_there = gradient(w.detach() - step)
        if not g_there.detach().abs().max() < g.detach().abs().max():
            break
        w, g = there, g_there
    return w.detach()


def gradient_of(net: Network, objective: Objective, w: Any, buffers: dict[str, Any]) -> Any:
    """The gradient over all rows in the flat w, as a function that can be differentiated again."""
    value = objective(net.split(w), fresh(buffers), ALL, (END,))
    if not value.requires_grad:
        raise check.fail("inner", "a constant", "a function of the parameters of the module", "use the module that it is handed")
    return torch.autograd.grad(value, w, create_graph=True, materialize_grads=True)[0]


def product(r: Any, w: Any) -> Callable[[Any], Any]:
    """The function x -> (dr/dw)' x."""
    if not r.requires_grad:
        return lambda x: torch.zeros_like(x)

    def apply(x: Any) -> Any:
        return torch.autograd.grad(r, w, x, retain_graph=True, materialize_grads=True)[0]

    return apply


def conjugate_gradients(apply: Callable[[Any], Any], rhs: Any, tol: float, most: int) -> tuple[Any, bool]:
    """The solution of a symmetric positive definite system, and whether its matrix has shown itself as such."""
    x, r = torch.zeros_like(rhs), rhs
    p, rr = r, r @ r
    enough = tol**2 * rr
    for _ in range(most):
        if rr <= enough:
            break
        q = apply(p)
        curvature = p @ q
        if not curvature > 0:
            return x, False
        step = rr / curvature
        x, r = x + step * p, r - step * q
        before, rr = rr, r @ r
        p = r + (rr / before) * p
    return x, True


def iterate(lower: FixedPoint, step: Callable[[Any], Any], start: Weights) -> Trained:
    """Apply the user's map until w moves no more."""
    w, count = start.w, 0
    with torch.no_grad():
        while count < lower.max_steps:
            count += 1
            there = step(w)
            moved = float((there - w).abs().max())
            w = there
            if not moved > lower.tol:
                break
    return Trained(Weights(w, start.buffers), count)


def flat_map(function: Callable[..., Any], net: Network) -> Callable[[Any, dict[str, Any], Any, Any], Any]:
    """The user's map of parameters as a map (w, buffers, theta, lam) -> w of the flat vector."""

    def mapped(w: Any, buffers: dict[str, Any], theta: Any, lam: Any) -> Any:
        there = net.call(function, net.split(w), fresh(buffers), theta, lam)
        there = [there] if isinstance(there, torch.Tensor) else list(there.values() if isinstance(there, dict) else there)
        shapes = [tuple(it.shape) for it in there]
        if shapes != net.shapes:
            raise check.fail("the shapes that the lower level returns", shapes, f"those of the parameters, {net.shapes}")
        return net.flat(there).to(net.dtype)

    return mapped


class Steps:
    """Single steps of a torch.optim optimiser that autograd can differentiate, with the state of the optimiser as tensors."""

    def __init__(self, make: Callable[[Any], Any] | None, objective: Callable[..., Any]) -> None:
        self.make, self.objective = make, objective

    def first(self, parameters: Sequence[Any]) -> list[dict[str, Any]]:
        """The state before the first step; optimisers that cannot be differentiated are refused."""
        made = None if self.make is None else optimiser(self.make, [it.detach().requires_grad_() for it in parameters])
        if made is None or "differentiable" not in made.defaults:
            shown = "L-BFGS" if made is None else type(made).__name__
            must = "an optimiser that torch.optim can differentiate, when hypergradient is Unrolled"
            raise check.fail("lower", shown, must, "such as Minimise(functools.partial(torch.optim.SGD, lr=0.1)), or Adam")
        return [{} for _ in parameters]

    def __call__(
        self, parameters: Sequence[Any], state: list[dict[str, Any]], buffers: dict[str, Any], batch: Any, key: tuple[int, ...]
    ) -> tuple[list[Any], list[dict[str, Any]]]:
        """The parameters and the state after a step. The graph reaches back to both where they require gradients."""
        graph = any(it.requires_grad for it in parameters)
        here = list(parameters) if graph else [it.detach().requires_grad_() for it in parameters]
        value = self.objective(here, buffers, batch, key)
        grads = torch.autograd.grad(value, here, create_graph=graph, materialize_grads=True)
        assert self.make is not None
        leaves = [it.detach().requires_grad_() for it in parameters]
        made = optimiser(self.make, leaves)
        # The optimiser writes into its parameters, which autograd must still find unchanged: it gets clones, with clones of its
        # state.
        clones = [it.clone() for it in parameters]
        where = {id(leaf): clone for leaf, clone in zip(leaves, clones, strict=True)}
        made.defaults["differentiable"] = True
        for group in made.param_groups:
            group["params"] = [where[id(leaf)] for leaf in group["params"]]
            group.update(differentiable=True, foreach=False)
        for clone, grad, old in zip(clones, grads, state, strict=True):
            if clone.requires_grad:
                clone.retain_grad()  # else PyTorch warns when the optimiser reads the gradient
            clone.grad = grad
            if old:
                made.state[clone] = {name: it.clone() if isinstance(it, torch.Tensor) else it for name, it in old.items()}
        made.step()
        return clones, [dict(made.state.get(clone, {})) for clone in clones]

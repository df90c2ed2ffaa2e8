"""``bilevel`` makes a Problem from a PyTorch module, two functions of it and two sets."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import torch

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import DivergedError
from mixbin.problem import Evaluation, Indices, Warm
from mixbin.problems.bilevel.hypergradient import FirstOrder, Implicit, Unrolled
from mixbin.problems.bilevel.lower import FixedPoint, Minimise, OwnSolver, Train
from mixbin.problems.bilevel.shared import check_sets, lower_info, singular
from mixbin.sets import BinarySet, Box
from mixbin.torch.functional import ALL, Function, Network, Weights, reseed, scalar
from mixbin.torch.hypergradient import Derivatives, Value, first_order, implicit, unrolled
from mixbin.torch.lower import END, Lower, Objective, Steps, Trained, batches, flat_map, gradient_of, iterate, minimise, train

Hypergradient = Implicit | Unrolled | FirstOrder


class TorchBilevel:
    """What ``bilevel`` returns: G(theta, lam) = outer(module trained with (theta, lam), theta, lam), with its hypergradient.

    Examples
    --------
    >>> import torch, mixbin as mb
    >>> noisy = torch.tensor([1.0, 1.1, 8.0]).double()
    >>> class Mean(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = torch.nn.Parameter(torch.zeros(()).double())
    >>> def inner(module, theta, lam, batch):
    ...     return (theta * (module.w - noisy) ** 2).sum()
    >>> def outer(module, theta, lam, batch):
    ...     return (module.w - 1) ** 2
    >>> problem = mb.torch.bilevel(Mean(), inner, outer, theta_set=mb.Budget(3, 2))
    >>> isinstance(problem, mb.torch.TorchBilevel)
    True
    """

    def __init__(
        self,
        module: Any,
        inner: Function | None,
        outer: Function,
        theta_set: BinarySet,
        lam_set: Box,
        lower: Lower,
        hypergradient: Hypergradient,
        n_rows: int | None,
    ) -> None:
        self.theta_set, self.lam_set, self.lower, self.hypergradient = theta_set, lam_set, lower, hypergradient
        self.module, self.n_rows = module, n_rows
        self._net = Network(module)
        self._devices = [self._net.device] if self._net.device.type == "cuda" else []
        self._outer = outer
        self._inner_function = inner
        self._map = flat_map(_map_of(lower), self._net) if isinstance(lower, (FixedPoint, OwnSolver)) else None
        self._check_once()

    @property
    def check_first_gradient(self) -> bool:
        """A lower level solved too coarsely makes the hypergradient wrong; after given steps, or in float32, G is noisy."""
        exact = isinstance(self.hypergradient, Unrolled) or not isinstance(self.lower, Train)
        return exact and self._net.dtype == torch.float64

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """G and its hypergradient at (theta, lam); unless steps are unrolled, training starts from the weights in ``warm``."""
        return self._evaluate(ALL, theta, lam, warm, gradient)

    def model(self, theta: Any, lam: Any = ()) -> Any:
        """A copy of the module, trained at (theta, lam)."""
        theta = check.array("theta", np.asarray(theta, dtype=np.float64), shape=self.theta_set.shape)
        lam = check.array("lam", lam, shape=self.lam_set.shape)
        net = self._net
        with torch.random.fork_rng(devices=self._devices):
            t, s = net.tensor(theta), net.tensor(lam)
            weights = self._value(self._outer_at(ALL), net.start, 0, t, s).weights
        return net.loaded(self.module, weights)

    def _evaluate(self, terms: Any, theta: Floats, lam: Floats, warm: Warm | None, gradient: bool) -> Evaluation:
        start, round_ = self._start(warm)
        with torch.random.fork_rng(devices=self._devices):
            t, s = self._net.tensor(theta), self._net.tensor(lam)
            outer = self._outer_at(terms)
            if gradient or isinstance(self.hypergradient, FirstOrder):
                got = self._derivatives(outer, start, round_, t, s)
            else:
                got = self._value(outer, start, round_, t, s)
            residual = self._residual(got.weights.w, got.weights.buffers, t, s).detach().abs().max()
        fixed = isinstance(self.hypergradient, Unrolled) or isinstance(self.lower, Train)
        info = lower_info(self.lower, float(residual), float(got.steps), fixed_steps=fixed)
        if got.outer is not None:
            info["outer"] = got.outer
        kept = self._kept(got.weights, round_)
        if not gradient:
            return Evaluation(float(got.value), None, None, kept, info)
        info["linear_residual"] = got.linear_residual
        by_theta, by_lam = (it.detach().cpu().numpy().astype(np.float64) for it in (got.grad_theta, got.grad_lam))
        if np.isfinite(float(got.value)) and not (check.is_finite(by_theta) and check.is_finite(by_lam)):
            raise self._no_gradient()
        return Evaluation(float(got.value), by_theta, by_lam, kept, info)

    def _no_gradient(self) -> DivergedError:
        if isinstance(self.hypergradient, Implicit):
            return singular(self.lower)
        return DivergedError(
            "the gradient through the training steps is not finite; take smaller steps, or SGD instead of Adam, whose step has "
            "no derivative where the gradient of a weight is exactly zero"
        )

    def _derivatives(self, outer: Value, start: Weights, round_: int, theta: Any, lam: Any) -> Derivatives:
        how, net = self.hypergradient, self._net
        if isinstance(how, Unrolled):
            chosen, key = self._chosen(how.q, 0)
            return unrolled(net, outer, self._steps, chosen, key, net.start, theta, lam)
        if isinstance(how, Implicit):
            trained = self._solve(start, round_, theta, lam)
            return implicit(how, net, outer, self._residual, not isinstance(self.lower, FixedPoint), trained, theta, lam)
        inner = self._inner(theta, lam)

        def both(parameters: Any, buffers: dict[str, Any], batch: Any, key: tuple[int, ...]) -> Any:
            return inner(parameters, buffers, batch, key) + outer(parameters, buffers, theta, lam) / how.weight

        plain = self._solve(start, round_, theta, lam)
        if isinstance(self.lower, Minimise):
            nudged = minimise(self.lower, net, both, plain.weights)
        else:
            assert isinstance(self.lower, Train)
            chosen, key = self._chosen(how.steps or self.lower.steps, round_, plain.steps)
            nudged = Trained(train(self.lower.optimiser, net, both, plain.weights, chosen, key), len(chosen))
            plain = Trained(train(self.lower.optimiser, net, inner, plain.weights, chosen, key), plain.steps + len(chosen))
        return first_order(how, net, outer, self._inner, plain, nudged, theta, lam)

    def _value(self, outer: Value, start: Weights, round_: int, theta: Any, lam: Any) -> Derivatives:
        """G alone: with unrolled steps by the same steps as with gradient, but without a graph."""
        net, how = self._net, self.hypergradient
        if isinstance(how, Unrolled):
            chosen, key = self._chosen(how.q, 0)
            parameters, buffers = list(net.split(net.start.w)), {name: it.clone() for name, it in net.start.buffers.items()}
            steps = self._steps(theta, lam)
            state = steps.first(parameters)
            for i, batch in enumerate(chosen):
                parameters, state = steps(parameters, state, buffers, batch, (*key, i))
            trained = Trained(Weights(net.flat(parameters).detach(), buffers), how.q)
        else:
            trained = self._solve(start, round_, theta, lam)
        with torch.no_grad():
            value = outer(net.split(trained.weights.w), dict(trained.weights.buffers), theta, lam)
        return Derivatives(value, None, None, *trained)

    def _chosen(self, steps: int, round_: int, first: int = 0) -> tuple[list[Any], tuple[int, ...]]:
        """The minibatches of some steps, and the key of their random numbers."""
        if not isinstance(self.lower, Train):
            return [ALL] * steps, (END,)
        return list(islice(batches(self.lower, self.n_rows, round_, first), steps)), (self.lower.seed, round_, first)

    def _solve(self, start: Weights, round_: int, theta: Any, lam: Any) -> Trained:
        lower, net = self.lower, self._net
        if isinstance(lower, Train):
            steps = lower.steps if round_ == 0 else lower.warm_steps or lower.steps
            chosen, key = self._chosen(steps, round_)
            return Trained(train(lower.optimiser, net, self._inner(theta, lam), start, chosen, key), steps)
        if isinstance(lower, Minimise):
            return minimise(lower, net, self._inner(theta, lam), start)
        assert self._map is not None
        mapped = self._map
        if isinstance(lower, FixedPoint):
            return iterate(lower, lambda w: mapped(w, start.buffers, theta, lam), start)
        return Trained(Weights(mapped(start.w, start.buffers, theta, lam).detach(), start.buffers), 1)

    def _steps(self, theta: Any, lam: Any) -> Any:
        """The single steps of the lower level, for unrolling."""
        if isinstance(self.lower, FixedPoint):
            return _MapSteps(self, theta, lam)
        make = self.lower.optimiser if isinstance(self.lower, Train) else self.lower.solver  # type: ignore[union-attr]
        return Steps(make, self._inner(theta, lam))

    def _inner(self, theta: Any, lam: Any) -> Objective:
        """The training objective at (theta, lam), as a function of the weights."""
        function = self._inner_function
        assert function is not None

        def objective(parameters: Any, buffers: dict[str, Any], batch: Any, key: tuple[int, ...]) -> Any:
            reseed(*key)
            return self._net.call(function, parameters, buffers, theta, lam, batch)

        return objective

    def _outer_at(self, terms: Any) -> Value:
        def value(parameters: Any, buffers: dict[str, Any], theta: Any, lam: Any) -> Any:
            reseed(END, 1)
            return self._net.call(self._outer, parameters, buffers, theta, lam, terms, training=False)

        return value

    def _residual(self, w: Any, buffers: dict[str, Any], theta: Any, lam: Any) -> Any:
        """A vector that is zero at the solution: the gradient of inner over all rows, or w - step(w)."""
        if isinstance(self.lower, FixedPoint):
            assert self._map is not None
            return w - self._map(w, buffers, theta, lam)
        return gradient_of(self._net, self._inner(theta, lam), w if w.requires_grad else w.detach().requires_grad_(), buffers)

    def _start(self, warm: Warm | None) -> tuple[Weights, int]:
        """The weights to start from, and the number of trainings before. Unrolled steps start from the module's own weights."""
        net = self._net
        if not warm or "w" not in warm or isinstance(self.hypergradient, Unrolled):
            return net.start, 0
        remedy = "pass the warm state of an evaluation"
        w = net.tensor(check.array("warm['w']", warm["w"], shape=(net.size,), remedy=remedy))
        buffers = {
            name: torch.as_tensor(np.array(warm[f"buffer {name}"]), dtype=it.dtype, device=it.device)
            for name, it in net.start.buffers.items()
        }
        return Weights(w, buffers), int(warm["round"]) + 1

    def _kept(self, weights: Weights, round_: int) -> Warm:
        """The warm state as arrays. The number of trainings before it makes the order of the next minibatches another one."""
        kept = {"w": weights.w.detach().cpu().numpy().astype(np.float64), "round": np.array(round_)}
        return kept | {f"buffer {name}": it.cpu().numpy() for name, it in weights.buffers.items()}

    def _check_once(self) -> None:
        """Call the functions at the centre of the sets, so that shapes that do not fit are an error before any work is done."""
        net = self._net
        theta, lam = net.tensor(self.theta_set.start()), net.tensor(self.lam_set.start())
        with torch.random.fork_rng(devices=self._devices):
            w = net.start.w.clone().requires_grad_()
            self._residual(w, net.start.buffers, theta, lam)
            with torch.no_grad():
                self._outer_at(ALL)(net.split(net.start.w), {k: it.clone() for k, it in net.start.buffers.items()}, theta, lam)
            if isinstance(self.hypergradient, Unrolled):
                self._steps(theta, lam).first(net.split(net.start.w))
            if isinstance(self.lower, Train):
                self._chosen(1, 0)


class _MapSteps:
    """Single steps of the user's own map, for unrolling."""

    def __init__(self, problem: TorchBilevel, theta: Any, lam: Any) -> None:
        self.problem, self.theta, self.lam = problem, theta, lam

    def first(self, parameters: Any) -> list[dict[str, Any]]:
        return [{} for _ in parameters]

    def __call__(self, parameters: Any, state: Any, buffers: dict[str, Any], batch: Any, key: Any) -> tuple[Any, Any]:
        net, mapped = self.problem._net, self.problem._map
        assert mapped is not None
        return list(net.split(mapped(net.flat(parameters), buffers, self.theta, self.lam))), state


class TorchBilevelSum(TorchBilevel):
    """A bilevel problem whose outer objective is a mean over rows, for Saga and StochasticGradient."""

    def __init__(self, n_terms: int, *args: Any) -> None:
        super().__init__(*args)
        self.n_terms = n_terms

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """The mean over these rows of outer."""
        terms = np.asarray(terms)
        if terms.ndim != 1 or terms.size == 0 or terms.dtype.kind not in "iu" or terms.min() < 0 or terms.max() >= self.n_terms:
            raise check.fail("terms", terms, f"whole numbers from 0 to {self.n_terms - 1} in one dimension, at least one")
        return self._evaluate(torch.from_numpy(terms.astype(np.int64)), theta, lam, warm, True)


def bilevel(
    module: Any,
    inner: Function | None,
    outer: Function,
    *,
    theta_set: BinarySet,
    lam_set: Box | None = None,
    lower: Any = None,
    hypergradient: Hypergradient | None = None,
    n_rows: int | None = None,
    n_terms: int | None = None,
) -> TorchBilevel:
    """Make a Problem from a PyTorch module: minimise outer over the sets, where the module is trained by inner.

    Both functions take (module, theta, lam, batch) and return a tensor with one number. They must use the module that they are
    handed: it has the weights of the moment. theta and lam are tensors on the device and in the precision of the module;
    ``batch`` is an index, as in ``X[batch]``: of all rows, or of a minibatch.

    Parameters
    ----------
    module : torch.nn.Module
        What is trained, in float32 or float64. Training starts from its weights; parameters with ``requires_grad=False`` stay
        as they are. The module is copied and never changed.
    inner : callable or None
        The training objective. It is called in the mode of the module (``module.train()`` or ``eval()``). None if ``lower`` is a
        FixedPoint.
    outer : callable
        The validation loss. It is called with the module in evaluation mode.
    theta_set : BinarySet
        The set of the yes/no variables. Both functions see theta in its shape, with entries relaxed to [0, 1].
    lam_set : Box, optional
        The box of the continuous hyperparameters; without it, lam has shape (0,).
    lower : optional
        How to train: ``Minimise(...)`` to a tolerance over all rows, the default; ``Train(optimiser, steps)`` for given steps,
        with minibatches if wanted; ``FixedPoint(step)`` or ``OwnSolver(solve)`` for a map or solver of your own.
    hypergradient : Implicit, Unrolled or FirstOrder, optional
        How to differentiate through the training; by default ``Implicit()``, with ``Train`` ``FirstOrder()``.
    n_rows : int, optional
        The number of training rows that minibatches are drawn from; needed if ``lower`` has a ``batch_size``.
    n_terms : int, optional
        The number of validation rows, if outer is a mean over them: the solvers "saga" and "stochastic" then call it with some of
        them as ``batch``.

    Returns
    -------
    TorchBilevel
        A problem for ``relax_and_penalize`` and all other methods; ``problem.model(theta, lam)`` returns a trained copy of the
        module.

    Examples
    --------
    >>> import torch, mixbin as mb
    >>> noisy = torch.tensor([1.0, 1.1, 0.9, 8.0]).double()  # choose three of these measurements so that their mean is near 1
    >>> class Mean(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = torch.nn.Parameter(torch.zeros(()).double())
    >>> problem = mb.torch.bilevel(
    ...     Mean(),
    ...     inner=lambda module, theta, lam, batch: (theta * (module.w - noisy) ** 2).sum(),
    ...     outer=lambda module, theta, lam, batch: (module.w - 1.0) ** 2,
    ...     theta_set=mb.Budget(4, 3),
    ... )
    >>> mb.relax_and_penalize(problem, seed=0).theta
    array([ True,  True,  True, False])
    """
    box = check_sets(theta_set, lam_set)
    lower = Minimise() if lower is None else lower
    if not isinstance(lower, (Minimise, FixedPoint, OwnSolver, Train)):
        must = "Minimise(...), Train(optimiser, ...), FixedPoint(step) or OwnSolver(solve)"
        raise check.fail("lower", lower, must, "such as Train(functools.partial(torch.optim.Adam, lr=1e-3), steps=500)")
    if hypergradient is None:
        hypergradient = FirstOrder() if isinstance(lower, Train) else Implicit()
    _check_pair(lower, hypergradient)
    if inner is None and not isinstance(lower, FixedPoint):
        raise check.fail("inner", None, "a function when lower is a minimiser", "pass the training objective, or a FixedPoint")
    if n_rows is not None:
        n_rows = check.whole("n_rows", n_rows, low=1)
    functions = None if inner is None else scalar("inner", inner), scalar("outer", outer)
    parts: tuple[Any, ...] = module, *functions, theta_set, box, lower, hypergradient, n_rows
    if n_terms is None:
        return TorchBilevel(*parts)
    return TorchBilevelSum(check.whole("n_terms", n_terms, low=1), *parts)


def _check_pair(lower: Lower, hypergradient: object) -> None:
    """Refuse a hypergradient that does not fit the lower level."""
    if not isinstance(hypergradient, (Implicit, Unrolled, FirstOrder)):
        raise check.fail("hypergradient", hypergradient, "Implicit(...), Unrolled(...), FirstOrder(...) or None")
    if isinstance(hypergradient, Implicit):
        if not isinstance(hypergradient.solver, str):
            raise check.fail("solver", hypergradient.solver, '"auto", "direct", "cg" or "neumann" in PyTorch')
        if hypergradient.solver == "cg" and isinstance(lower, FixedPoint):
            raise check.fail("solver", "cg", '"direct" or "neumann" for a fixed-point map', "its matrix is not symmetric")
    if isinstance(hypergradient, Unrolled) and isinstance(lower, OwnSolver):
        remedy = "or pass the solver's step as a FixedPoint"
        raise check.fail("hypergradient", hypergradient, "Implicit() when lower is an OwnSolver", remedy)
    if isinstance(hypergradient, FirstOrder):
        if not isinstance(lower, (Minimise, Train)):
            must = "Implicit() or Unrolled() for a map or solver of your own"
            raise check.fail("hypergradient", hypergradient, must, "FirstOrder needs Minimise or Train")
        if hypergradient.steps is not None and not isinstance(lower, Train):
            raise check.fail("hypergradient", hypergradient, "FirstOrder(weight) without steps, unless lower is Train(...)")


def _map_of(lower: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = lower.step if isinstance(lower, FixedPoint) else lower.solve
    return made

"""Which weights or units of a module to keep: masks as theta, training of the kept weights as the lower level."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn.utils import prune as torch_prune

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.methods import relax_and_penalize
from mixbin.problems.bilevel.hypergradient import FirstOrder
from mixbin.problems.bilevel.lower import Train
from mixbin.result import Result
from mixbin.sets import Budget
from mixbin.torch.functional import Network
from mixbin.torch.problem import TorchBilevel, bilevel
from mixbin.torch.tables import Table, table

KINDS = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


@dataclass(frozen=True)
class Pruned:
    """What ``prune`` returns.

    Examples
    --------
    >>> import torch, mixbin as mb
    >>> net = torch.nn.Linear(2, 2)
    >>> masks = {"weight": torch.tensor([[True, False], [False, False]])}
    >>> mb.torch.Pruned(net, masks, None).kept
    0.25
    """

    module: Any
    """A trained copy with the masks of torch.nn.utils.prune; ``torch.nn.utils.prune.remove`` makes them permanent."""
    masks: dict[str, Any]
    """For each weight that may be pruned its mask, a tensor of True and False."""
    result: Result | None
    """The run after magnitude pruning, whose answer is taken if the judge's loss is lower; None if there was none."""

    @property
    def kept(self) -> float:
        """The share of the weights in ``masks`` that are kept."""
        return float(sum(int(it.sum()) for it in self.masks.values()) / sum(it.numel() for it in self.masks.values()))


class Masks:
    """The entries of theta and the weights that each of them multiplies."""

    def __init__(self, module: Any, layers: Iterable[str] | None, units: bool) -> None:
        found = {name: it for name, it in module.named_modules() if isinstance(it, KINDS) and it.weight.requires_grad}
        names = list(found) if layers is None else list(layers)
        if layers is None and units:
            names = names[:-1]  # the units of the last layer are the outputs of the module
        for name in names:
            if name not in found:
                raise check.fail("layers", name, f"names of layers with weights, among {check.listed(found)}")
        if not names:
            must = "a module with a layer to prune (Linear or convolutional)" + (" before its last" if units else "")
            raise check.fail("module", type(module).__name__, must)
        self.units = units
        self.layers = {name: found[name] for name in names}
        shapes = {name: tuple(it.weight.shape) for name, it in self.layers.items()}
        self.sizes = [shape[0] if units else int(np.prod(shape)) for shape in shapes.values()]
        self.shapes = [(shape[0], *(1 for _ in shape[1:])) if units else shape for shape in shapes.values()]
        self.size = sum(self.sizes)

    def split(self, theta: Any) -> dict[str, Any]:
        """The part of theta of each layer, in a shape that multiplies its weight."""
        parts = torch.split(theta, self.sizes)
        return {name: part.view(shape) for name, part, shape in zip(self.layers, parts, self.shapes, strict=True)}

    def masked(self, module: Any, theta: Any) -> dict[str, Any]:
        """The parameters of the module with theta multiplied in; a unit takes its bias along."""
        parameters = dict(module.named_parameters())
        for name, part in self.split(theta).items():
            dot = f"{name}." if name else ""
            parameters[f"{dot}weight"] = parameters[f"{dot}weight"] * part
            if self.units and f"{dot}bias" in parameters:
                parameters[f"{dot}bias"] = parameters[f"{dot}bias"] * part.reshape(-1)
        return parameters

    def magnitudes(self, module: Any) -> Floats:
        """The size of each entry's weights."""
        with torch.no_grad():
            weights = [module.get_submodule(name).weight.detach() for name in self.layers]
            sizes = [(it.flatten(1).norm(dim=1) if self.units else it.abs().reshape(-1)) for it in weights]
        return np.asarray(torch.cat(sizes).cpu().numpy(), dtype=np.float64)


def prune(
    module: Any,
    loss: Callable[[Any, Any], Any],
    train: Any,
    validation: Any = None,
    *,
    keep: float = 0.1,
    units: bool = False,
    layers: Iterable[str] | None = None,
    rounds: int = 20,
    decay: float = 1e-4,
    lower: Train | None = None,
    hypergradient: FirstOrder | None = None,
    max_evaluations: int = 40,
    retrain: int = 1_000,
    seed: int = 0,
) -> Pruned:
    """Keep a share of the weights of a module, chosen by how well the module trained with them does.

    Magnitude pruning comes first: training and cutting the smallest weights, in rounds. From there the method goes on: theta
    multiplies the weights, the lower level trains them, the upper level is the loss on ``validation``. Of the two answers the one
    with the lower loss there is returned. On new data the second adds next to nothing (docs/pruning.md).

    Parameters
    ----------
    module : torch.nn.Module
        The module, trained or not; it is copied and never changed.
    loss : callable
        ``loss(output, target)`` returns the mean loss of a batch, such as ``torch.nn.functional.cross_entropy``.
    train, validation : pair of tensors, Dataset or DataLoader
        The rows to train on and to judge by; by default the training rows judge, too.
    keep : float
        The share of the weights (or units) of ``layers`` to keep, in (0, 1].
    units : bool
        Whether to keep whole units (rows of a weight, with their bias) instead of single weights.
    layers : names, optional
        The layers to prune; by default all linear and convolutional ones, for units all but the last.
    rounds : int
        The rounds of magnitude pruning before the run; each cuts the same share of what is left.
    decay : float
        The weight decay of the lower level: ``decay`` times the sum of squares of the weights.
    lower : Train, optional
        How to train; by default 300 steps of Adam with learning rate 0.01, and 50 from a warm start, on all rows.
    hypergradient : FirstOrder, optional
        By default ``FirstOrder(10.0, steps=20)``.
    max_evaluations : int
        The limit of the run; with 0 the answer is that of magnitude pruning.
    retrain : int
        The number of steps of the final training of the kept weights.
    seed : int
        The seed of the run.

    Returns
    -------
    Pruned
        The trained module with its masks, and the run.

    Examples
    --------
    >>> import torch, mixbin as mb
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(60, 5)
    >>> y = (X[:, 0] > 0).long()
    >>> net = torch.nn.Linear(5, 2)
    >>> pruned = mb.torch.prune(
    ...     net, torch.nn.functional.cross_entropy, (X, y), keep=0.2, rounds=2, max_evaluations=6, retrain=50
    ... )
    >>> pruned.masks["weight"].sum(dim=0)
    tensor([2, 0, 0, 0, 0])
    """
    keep = check.real("keep", keep, low=0, high=1, open_low=True)
    decay = check.real("decay", decay, low=0)
    retrain = check.whole("retrain", retrain, low=1)
    if not callable(loss):
        raise check.fail("loss", loss, "a function of (output, target)", "such as torch.nn.functional.cross_entropy")
    net = Network(module)
    rows = table("train", train, net)
    judged = rows if validation is None else table("validation", validation, net)
    lower = lower or Train(partial(torch.optim.Adam, lr=1e-2), steps=300, warm_steps=50)
    if not isinstance(lower, Train):
        raise check.fail("lower", lower, "Train(...)", "the kept weights are trained for given steps")
    masks = Masks(module, layers, check.flag("units", units))
    k = max(1, round(keep * masks.size))
    module, start = _by_magnitude(module, loss, rows, masks, decay, lower, k, check.whole("rounds", rounds, low=1))
    theta, result = start, None
    if check.whole("max_evaluations", max_evaluations, low=0):
        how = hypergradient or FirstOrder(10.0, steps=20)
        problem = _problem(module, loss, rows, judged, masks, decay, lower, how, Budget(masks.size, k))
        # Halfway between the start and the centre of the set: at a binary point the gradient of a weight that is cut would be
        # zero, because training leaves no such weight in place.
        theta0 = 0.5 * start + 0.5 * start.mean()
        result = relax_and_penalize(
            problem,
            theta0=theta0,
            relax_first=False,
            starts=1,
            polish=False,
            max_evaluations=max_evaluations,
            seed=seed,
            reoptimize_lam=False,
        )
        theta = result.theta.astype(np.float64)
    final = _trained(module, loss, rows, masks, decay, lower, start, retrain)
    if (theta != start).any():
        other = _trained(module, loss, rows, masks, decay, lower, theta, retrain)
        if _judged(other, loss, judged, masks, theta) < _judged(final, loss, judged, masks, start):
            final, start = other, theta
    parts = masks.split(torch.from_numpy(start).to(net.dtype).to(net.device))
    chosen = _with_masks(final, masks, parts)
    return Pruned(final, chosen, result)


def _by_magnitude(
    module: Any, loss: Any, rows: Table, masks: Masks, decay: float, lower: Train, k: int, rounds: int
) -> tuple[Any, Floats]:
    """Train, cut the smallest weights, train the others, and so on; the module before the last training, and what is kept."""
    theta = np.ones(masks.size)
    for i in range(1, rounds + 1):
        module = _trained(module, loss, rows, masks, decay, lower, theta, lower.steps)
        scores = np.where(theta > 0, masks.magnitudes(module), -1.0)
        kept = round(masks.size * (k / masks.size) ** (i / rounds))
        theta = np.zeros(masks.size)
        theta[np.argsort(-scores, kind="stable")[:kept]] = 1.0
    return module, theta


def _problem(
    module: Any,
    loss: Callable[[Any, Any], Any],
    rows: Table,
    judged: Table,
    masks: Masks,
    decay: float,
    lower: Train,
    hypergradient: FirstOrder,
    theta_set: Budget,
) -> TorchBilevel:
    def output(m: Any, theta: Any, x: Any) -> Any:
        return torch.func.functional_call(m, masks.masked(m, theta), (x,))

    def inner(m: Any, theta: Any, lam: Any, batch: Any) -> Any:
        squares = sum((it**2).sum() for it in m.parameters())
        return loss(output(m, theta, rows.x[batch]), rows.y[batch]) + decay * squares

    def outer(m: Any, theta: Any, lam: Any, batch: Any) -> Any:
        return loss(output(m, theta, judged.x[batch]), judged.y[batch])

    return bilevel(module, inner, outer, theta_set=theta_set, lower=lower, hypergradient=hypergradient, n_rows=len(rows.y))


def _trained(module: Any, loss: Any, rows: Table, masks: Masks, decay: float, lower: Train, theta: Floats, steps: int) -> Any:
    """A copy of the module, trained for some steps with fixed masks."""
    once = Train(lower.optimiser, steps=steps, batch_size=lower.batch_size, seed=lower.seed)
    all_of_them = Budget(masks.size, int(theta.sum()))
    problem = _problem(module, loss, rows, rows, masks, decay, once, FirstOrder(steps=1), all_of_them)
    return problem.model(theta)


def _judged(module: Any, loss: Any, judged: Table, masks: Masks, theta: Floats) -> float:
    """The loss on the rows that judge."""
    mode = module.training
    module.eval()
    parameters = masks.masked(module, torch.from_numpy(theta).to(judged.x.device).to(next(module.parameters()).dtype))
    with torch.no_grad():
        value = float(loss(torch.func.functional_call(module, parameters, (judged.x,)), judged.y))
    module.train(mode)
    return value


def _with_masks(module: Any, masks: Masks, parts: dict[str, Any]) -> dict[str, Any]:
    """Hand the masks to torch.nn.utils.prune, in place."""
    chosen = {}
    for name, part in parts.items():
        layer = module.get_submodule(name)
        mask = part.expand_as(layer.weight)
        torch_prune.custom_from_mask(layer, "weight", mask)
        if masks.units and layer.bias is not None:
            torch_prune.custom_from_mask(layer, "bias", part.reshape(-1))
        chosen[f"{name}.weight" if name else "weight"] = mask.bool()
    return chosen

"""A module as a function of its weights: one flat vector w, buffers, theta and lam go in, one number comes out.

The user's functions see the module itself, with its tensors replaced for the time of the call (torch.func.functional_call).
"""

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from mixbin import _validate as check

Function = Callable[[Any, Any, Any, Any], Any]
"""(module, theta, lam, batch) -> one number; ``batch`` is an index of rows: ``slice(None)`` or a tensor of whole numbers."""
ALL = slice(None)

_PRIME = 1_000_003


class Weights(NamedTuple):
    """The state of a module: parameters behind one another, and buffers such as running means."""

    w: Any
    buffers: dict[str, Any]


class _Call(torch.nn.Module):  # type: ignore[misc]
    """A module whose forward hands its submodule to a function, so that functional_call can replace the tensors of the latter."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(self.module, *arguments)


class Network:
    """A copy of a module, called with other weights; the user's own module stays as it is."""

    def __init__(self, module: Any) -> None:
        if not isinstance(module, torch.nn.Module):
            raise check.fail("module", module, "a torch.nn.Module", "such as torch.nn.Linear(10, 2)")
        named = [(name, it) for name, it in module.named_parameters() if it.requires_grad]
        self.device, self.dtype = _place(module, named)
        self._call = _Call(copy.deepcopy(module))
        self._call.requires_grad_(False)
        self._mode = module.training
        self.names = [name for name, _ in named]
        self.shapes = [tuple(it.shape) for _, it in named]
        self.sizes = [it.numel() for _, it in named]
        self.size = sum(self.sizes)
        flat = torch.cat([it.detach().reshape(-1) for _, it in named])
        self.start = Weights(flat, {name: it.detach().clone() for name, it in module.named_buffers()})
        if not bool(torch.isfinite(flat).all()):
            raise check.fail("module", module, "a module whose parameters are finite", "initialise it again")

    def split(self, w: Any) -> tuple[Any, ...]:
        """The parameters in their shapes, as views of the flat w."""
        return tuple(part.view(shape) for part, shape in zip(torch.split(w, self.sizes), self.shapes, strict=True))

    def flat(self, parameters: Sequence[Any]) -> Any:
        """The flat w of parameters in their shapes."""
        return torch.cat([it.reshape(-1) for it in parameters])

    def call(
        self,
        function: Callable[..., Any],
        parameters: Sequence[Any],
        buffers: dict[str, Any],
        *arguments: Any,
        training: bool = True,
    ) -> Any:
        """``function(module, *arguments)`` with these weights. In training mode, layers may write into ``buffers``."""
        self._call.train(training and self._mode)
        tensors = {f"module.{name}": it for name, it in zip(self.names, parameters, strict=True)}
        tensors |= {f"module.{name}": it for name, it in buffers.items()}
        return torch.func.functional_call(self._call, tensors, (function, *arguments))

    def tensor(self, x: Any) -> Any:
        """A NumPy array on the device and in the precision of the module."""
        return torch.tensor(x, dtype=self.dtype, device=self.device)

    def loaded(self, module: Any, weights: Weights) -> Any:
        """A copy of the user's module with these weights."""
        module = copy.deepcopy(module)
        with torch.no_grad():
            for name, value in zip(self.names, self.split(weights.w), strict=True):
                module.get_parameter(name).copy_(value)
            for name, value in weights.buffers.items():
                module.get_buffer(name).copy_(value)
        return module


def fresh(buffers: dict[str, Any]) -> dict[str, Any]:
    """Copies of buffers, for a call that must not change them."""
    return {name: it.clone() for name, it in buffers.items()}


def reseed(*key: int) -> None:
    """Seed the random numbers of the next call, as for dropout, by some whole numbers; within ``torch.random.fork_rng`` only."""
    seed = 0
    for number in key:
        seed = (seed * _PRIME + number + 1) % 2**63
    torch.manual_seed(seed)


def scalar(name: str, function: Function) -> Function:
    """``function`` with a check that it returns one real number."""
    if not callable(function):
        raise check.fail(name, function, "a function of (module, theta, lam, batch) that returns one number")
    try:
        inspect.signature(function).bind(None, None, None, None)
    except TypeError as error:
        raise check.fail(name, function, f"a function of (module, theta, lam, batch) ({error})", "let it take all four") from None
    except ValueError:  # a function written in C has no signature that Python can inspect
        pass

    def checked(module: Any, theta: Any, lam: Any, batch: Any) -> Any:
        value = function(module, theta, lam, batch)
        if not isinstance(value, torch.Tensor) or value.shape != () or not value.is_floating_point():
            shown = f"shape {tuple(value.shape)}, dtype {value.dtype}" if isinstance(value, torch.Tensor) else check.shown(value)
            raise check.fail(f"the return value of {name}", shown, "a tensor with one real number", "add .sum() or .mean()")
        return value

    return checked


def _place(module: Any, named: list[tuple[str, Any]]) -> tuple[Any, Any]:
    """The device and precision that all trainable parameters share."""
    if not named:
        raise check.fail(
            "module", type(module).__name__, "a module with trainable parameters", "some must have requires_grad=True"
        )
    tensors = [*module.parameters(), *module.buffers()]
    devices, dtypes = {str(it.device) for it in tensors}, {it.dtype for _, it in named}
    if "meta" in devices:
        raise check.fail(
            "module",
            "parameters on the meta device, which have no values",
            "a module on a device with memory",
            'call module.to_empty(device="cpu") and load or initialise its weights',
        )
    if len(devices) > 1:
        raise check.fail("module", f"tensors on {', '.join(sorted(devices))}", "a module on one device", "call module.to(device)")
    if len(dtypes) > 1 or not dtypes <= {torch.float32, torch.float64}:
        names = ", ".join(sorted(str(it) for it in dtypes))
        raise check.fail(
            "module", names, "a module in float32 or in float64, in all its parameters", "call module.float() or .double()"
        )
    return named[0][1].device, dtypes.pop()

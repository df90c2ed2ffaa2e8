"""The method for PyTorch modules: which rows to train on, which weights to keep, or any two objectives of a module.

PyTorch is the extra ``mixbin[torch]``; nothing outside of this package imports it. The lower levels and hypergradients are the
objects that ``mixbin.bilevel`` takes for JAX, too.
"""

from mixbin.torch._torch import need_torch

need_torch()

from mixbin.problems.bilevel.hypergradient import FirstOrder, Implicit, Unrolled  # noqa: E402
from mixbin.problems.bilevel.lower import FixedPoint, Minimise, OwnSolver, Train  # noqa: E402
from mixbin.torch.problem import TorchBilevel, bilevel  # noqa: E402
from mixbin.torch.pruning import Pruned, prune  # noqa: E402
from mixbin.torch.rows import RowProblem, RowSelection  # noqa: E402

__all__ = [
    "FirstOrder",
    "FixedPoint",
    "Implicit",
    "Minimise",
    "OwnSolver",
    "Pruned",
    "RowProblem",
    "RowSelection",
    "TorchBilevel",
    "Train",
    "Unrolled",
    "bilevel",
    "prune",
]

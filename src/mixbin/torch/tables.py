"""Rows for a module: a pair of tensors, a Dataset or a DataLoader, as two tensors on the module's device."""

from typing import Any, NamedTuple

import numpy as np
import torch

from mixbin import _validate as check
from mixbin.torch.functional import Network


class Table(NamedTuple):
    """Inputs and targets, row by row."""

    x: Any
    y: Any


def table(name: str, rows: Any, net: Network) -> Table:
    """The rows as two tensors. They must fit into the memory of the device, and give the same numbers each time they are read."""
    if isinstance(rows, torch.utils.data.DataLoader):
        rows = rows.dataset
    if isinstance(rows, (tuple, list)) and len(rows) == 2:
        x, y = (it if isinstance(it, torch.Tensor) else torch.as_tensor(np.asarray(it)) for it in rows)
    elif isinstance(rows, torch.utils.data.TensorDataset) and len(rows.tensors) == 2:
        x, y = rows.tensors
    elif isinstance(rows, torch.utils.data.Dataset) and hasattr(rows, "__len__"):
        pairs = [rows[i] for i in range(len(rows))]
        x = torch.stack([torch.as_tensor(pair[0]) for pair in pairs])
        y = torch.stack([torch.as_tensor(pair[1]) for pair in pairs])
    else:
        must = "a pair (inputs, targets), a Dataset with a length, or a DataLoader of one"
        raise check.fail(name, rows, must, "such as (X, y), two tensors")
    if len(x) != len(y) or not len(x):
        raise check.fail(name, f"{len(x)} inputs and {len(y)} targets", "as many inputs as targets, at least one")
    x = x.to(net.device)
    if x.is_floating_point():
        x = x.to(net.dtype)
        if not bool(torch.isfinite(x).all()):
            raise check.fail(name, "inputs that are not finite", "finite in all its inputs", "remove or replace such rows")
    y = y.to(net.device)
    return Table(x, y.to(net.dtype) if y.is_floating_point() else y)

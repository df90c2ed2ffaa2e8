"""Whether a value read from a file has the type that a class declares for it."""

from collections.abc import Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np


def unaliased(hint: Any) -> Any:
    """The annotation that an alias with arguments stands for: from NumPy 2.5 on, ``NDArray[...]`` is such an alias."""
    meant = getattr(get_origin(hint), "__value__", None)
    return hint if meant is None else meant[get_args(hint)]


def conforms(value: object, hint: Any) -> bool:
    """Whether ``value`` fits the annotation ``hint``. True for kinds of annotations that this library's states do not use."""
    hint = unaliased(hint)
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(conforms(value, option) for option in inside)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _fits(value.dtype, inside[1])
    if origin is tuple and len(inside) == 2 and inside[1] is Ellipsis:
        return isinstance(value, tuple) and all(conforms(item, inside[0]) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(isinstance(key, str) and conforms(it, inside[1]) for key, it in value.items())
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (bool, str, NoneType):
        return isinstance(value, hint)
    if isinstance(hint, type) and (issubclass(hint, Enum) or hint.__module__.startswith("mixbin.")):
        return isinstance(value, hint)
    return True


def _fits(dtype: np.dtype[Any], declared: Any) -> bool:
    """Whether an array's dtype is the one declared in ``NDArray[...]``; Any accepts all."""
    (kind,) = get_args(declared)
    return kind is Any or not isinstance(kind, type) or issubclass(dtype.type, kind)

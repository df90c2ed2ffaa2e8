"""Packages whose names are loaded when they are first used, so that asking for one part does not load the others."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package; ``homes`` says in which module each name lives.

    A name whose home is "." is a module of the package itself.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{package}.{name}") if home == "." else getattr(import_module(home), name)
        vars(import_module(package))[name] = value
        return value

    return load, lambda: sorted(homes)

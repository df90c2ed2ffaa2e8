"""Importing JAX if it is installed, and computing in float64 inside mixbin whatever the user's own JAX setting is."""

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

INSTALL = "pip install 'mixbin[jax]'"


def need_jax() -> None:
    """Raise an error with the install command if the extra is missing, before any work is done."""
    for name in ("jax", "equinox", "lineax", "optimistix"):
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise ModuleNotFoundError(f"mixbin.bilevel needs {name}, which is not installed; {INSTALL}", name=name) from None


def double() -> AbstractContextManager[Any]:
    """A context in which JAX traces and runs in float64; the user's own setting applies again outside of it."""
    import jax

    if hasattr(jax, "enable_x64"):
        context: AbstractContextManager[Any] = jax.enable_x64(True)
    else:  # before JAX 0.8
        from jax.experimental import enable_x64

        context = enable_x64()
    return context

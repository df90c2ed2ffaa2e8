"""JAX where it is installed, and float64 inside mixbin whatever the user's own setting is."""

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

INSTALL = "pip install 'mixbin[jax]'"


def need_jax() -> None:
    """Say what to install where the extra is missing, before any work is done."""
    for name in ("jax", "equinox", "lineax", "optimistix"):
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise ModuleNotFoundError(f"mixbin.bilevel needs {name}, which is not installed; {INSTALL}", name=name) from None


def double() -> AbstractContextManager[Any]:
    """float64 for all that is traced or called inside; outside, the user's setting stays as it is."""
    import jax

    if hasattr(jax, "enable_x64"):
        context: AbstractContextManager[Any] = jax.enable_x64(True)
    else:  # before JAX 0.8
        from jax.experimental import enable_x64

        context = enable_x64()
    return context

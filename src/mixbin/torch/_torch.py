"""Importing PyTorch if it is installed."""

INSTALL = "pip install 'mixbin[torch]'"


def need_torch() -> None:
    """Raise an error with the install command if the extra is missing, before any work is done."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(f"mixbin.torch needs torch, which is not installed; {INSTALL}", name="torch") from None

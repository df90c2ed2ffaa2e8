"""Which library a table is from, found out without importing that library."""

import sys
from typing import Any, TypeGuard


def is_dask(value: object) -> TypeGuard[Any]:
    """Whether a value is a Dask collection."""
    if "dask" not in sys.modules:
        return False
    from dask import is_dask_collection

    return bool(is_dask_collection(value))

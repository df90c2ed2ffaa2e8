"""What arrays and settings are recognised by, for checkpoints."""

import hashlib
from typing import Any

import numpy as np


def digest(*arrays: Any, settings: str = "") -> str:
    """A hash of arrays and a text."""
    h = hashlib.blake2b(settings.encode(), digest_size=16)
    for x in arrays:
        h.update(f"{x.shape}{x.dtype.str}".encode())
        h.update(np.ascontiguousarray(x).data)
    return h.hexdigest()

"""What arrays and settings are recognised by, for checkpoints."""

import hashlib
from typing import Any

import numpy as np


def digest(*arrays: Any, settings: str = "") -> str:
    """A hash of arrays and a text."""
    # Of the hashes in hashlib that for which processors have instructions: thetas are hashed in every evaluation.
    h = hashlib.sha256(settings.encode())
    for x in arrays:
        h.update(f"{x.shape}{x.dtype.str}".encode())
        h.update(np.ascontiguousarray(x).data)
    return h.hexdigest()[:32]

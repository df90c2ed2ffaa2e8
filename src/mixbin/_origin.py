"""The origin of a folder's numbers: the command, the versions and the machine."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from mixbin._version import __version__

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")


def origin(command: str, seconds: float) -> dict[str, Any]:
    """What a folder stores so that its numbers can be recomputed, with the seconds that they took."""
    return {
        "command": command,
        "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": round(seconds, 1),
        "machine": machine(),
        "versions": versions(),
    }


def machine() -> str:
    """A text with the machine's cores, memory and architecture."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0.0
    return f"{cores} cores, {memory:.0f} GiB of memory, {platform.machine()}"


def versions() -> dict[str, str]:
    """The versions of mixbin, Python and the libraries that numbers depend on."""
    return {"mixbin": __version__, "python": platform.python_version()} | {name: version(name) for name in LIBRARIES}

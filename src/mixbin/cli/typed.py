"""The command as it was typed, for the page of a run; apart from the rest because it must be light."""

import shlex
import sys
from collections.abc import Sequence

ONCE = ("--json", "--resume")
"""Options that change nothing of what a run gives."""

_typed: list[str] = []


def remember(args: Sequence[str] | None) -> None:
    """Keep the arguments; None are those of the process."""
    _typed[:] = sys.argv[1:] if args is None else args


def words() -> list[str]:
    """The arguments."""
    return list(_typed)


def command_line() -> str:
    """The command that makes the same run, for a shell."""
    return shlex.join(["mixbin", *(word for word in _typed if word not in ONCE)])

"""Remember the command as the user typed it, for the page of a run. A separate module, because it must import quickly."""

import shlex
import sys
from collections.abc import Sequence

ONCE = ("--json", "--resume")
"""Options that do not change the results of a run."""

_typed: list[str] = []


def remember(args: Sequence[str] | None) -> None:
    """Keep the arguments of the command; None stands for those of the process."""
    _typed[:] = sys.argv[1:] if args is None else args


def words() -> list[str]:
    """The arguments of the command."""
    return list(_typed)


def command_line() -> str:
    """The shell command that repeats the run."""
    return shlex.join(["mixbin", *(word for word in _typed if word not in ONCE)])

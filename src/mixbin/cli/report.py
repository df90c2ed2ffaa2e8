"""What all commands print alike."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixbin.result import Status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

TEXTS = ("method", "status")


def spinner(text: str, *, quiet: bool = False) -> AbstractContextManager[Any]:
    """A sign of life on a terminal, nothing in a pipe or where it should be ``quiet``."""
    from rich.console import Console

    shown = not quiet and sys.stdout.isatty() and sys.stderr.isatty()
    return Console(stderr=True).status(text) if shown else nullcontext()


def plain_console() -> "Console":
    """Where text is printed as it is, names with brackets or colons included."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def empty_table(*columns: str, texts: Sequence[str] = TEXTS) -> "Table":
    """A table without lines but below its head; ``texts`` stand at the left of their columns, numbers at the right.

    Where a terminal is narrow, cells are broken into lines, and nothing of them is left out.
    """
    from rich import box
    from rich.table import Table

    out = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for name in columns:
        out.add_column(name, justify="left" if name in texts else "right", vertical="top", overflow="fold")
    return out


def show_end(
    summary: Mapping[str, Any], about: str, out: Path, shown: Mapping[str, str], before: bool, console: "Console"
) -> None:
    """How the method of the run ended, the certificate in words (``about`` says of what), and where the files are."""
    main = summary["methods"][-1]
    if main["status"] != Status.BINARY:
        console.print(f"How {main['method']} ended: {main['message']}.\n")
    if summary["certificate"] is not None:
        console.print(f"About {about}: {summary['certificate']}\n")
    console.print(f"This run had ended before; nothing was computed again. In {out}:" if before else f"Written to {out}:")
    width = max(map(len, shown)) + 1
    for name, what in shown.items():
        console.print(f"  {name:<{width}} {what}")

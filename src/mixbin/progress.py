"""Events: what a callback sees of a running method, and how it can end it; and a display of them for terminals."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbin.problem import Floats
from mixbin.sets import BinarySet

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table


@dataclass(frozen=True)
class Event:
    """The run after one step or polish pass (``kind`` "step") or one outer iteration ("outer"); its arrays are read-only."""

    kind: str
    phase: str
    """"relax", "penalise", "lam" or "polish"."""
    start: int
    """Counted from 0, of ``starts`` in all."""
    starts: int
    outer: int
    inner: int
    epsilon: float
    value: float
    """G, never penalised; an estimate within a stochastic solver's pass."""
    theta: Floats
    lam: Floats
    n_evaluations: int
    seconds: float
    theta_set: BinarySet = field(repr=False)
    stop: Callable[[], None] = field(repr=False)
    """Ends the run cleanly after this step, with status STOPPED and a feasible answer."""

    @cached_property
    def distance(self) -> float:
        """dist_inf(theta, Theta_bin), computed when asked for."""
        return self.theta_set.distance_to_binary(self.theta)


Callback = Callable[[Event], None]

STAGES = {"relax": "relaxing", "penalise": "penalising", "lam": "tuning lam", "polish": "polishing"}


class ProgressDisplay:
    """One line on a terminal that follows a run; nothing in a pipe. Pass it as a callback.

    Parameters
    ----------
    label : str
        What is being worked on, shown at the left.
    console : rich.console.Console, optional
        Where to show it; stderr by default.
    note : callable, optional
        Returns what else is to be shown, such as how much was read.
    """

    def __init__(self, label: str = "", console: "Console | None" = None, note: Callable[[], str] | None = None) -> None:
        from rich.console import Console

        self.label, self.note = label, note
        self.console = console if console is not None else Console(stderr=True)
        self._live: Live | None = None
        self._start, self._distance = 0, np.nan

    def __call__(self, event: Event) -> None:
        """Show the event."""
        if not self.console.is_terminal:
            return
        if event.start != self._start:
            self._start, self._distance = event.start, np.nan
        if event.kind == "outer":
            # The distance takes a pass over theta: once per outer iteration is often enough.
            self._distance = event.distance
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self.console, refresh_per_second=8, transient=True)
            self._live.start()
        self._live.update(self._line(event))

    def close(self) -> None:
        """Take the line away; called at the end of the run."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _line(self, event: Event) -> "Table":
        from rich.spinner import Spinner
        from rich.table import Table

        cells = [f"[bold]{STAGES[event.phase]}[/]"]
        if event.starts > 1:
            cells.append(f"start {event.start + 1}/{event.starts}")
        if event.phase == "penalise":
            cells.append(f"eps {event.epsilon:.2g}")
        cells.append(f"G {event.value:.6g}")
        if event.phase in ("relax", "penalise") and not np.isnan(self._distance):
            cells.append(f"distance {self._distance:.2g}")
        rate = event.n_evaluations / event.seconds if event.seconds > 0 else 0.0
        cells += [f"{event.n_evaluations:,} evals", f"{rate:.3g}/s", _clock(event.seconds)]
        if self.note is not None:
            cells.append(self.note())
        line = Table.grid(padding=(0, 1))
        line.add_column(width=1)
        line.add_column(no_wrap=True, overflow="ellipsis")
        text = (f"{self.label}  " if self.label else "") + "[dim] · [/]".join(cells)
        line.add_row(Spinner("dots"), text)
        return line


def _clock(seconds: float) -> str:
    """A duration as people read it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def spinner(text: str, *, quiet: bool = False) -> AbstractContextManager[Any]:
    """Show a text with a moving sign on a terminal while something is computed; nothing in a pipe or where ``quiet``."""
    from rich.console import Console

    shown = not quiet and sys.stdout.isatty() and sys.stderr.isatty()
    return Console(stderr=True).status(text) if shown else nullcontext()

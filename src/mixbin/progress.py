"""Events, by which a callback watches a running method and can stop it, and a progress display for terminals."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Floats
from mixbin.sets import BinarySet

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table


@dataclass(frozen=True)
class Event:
    """The state of a run after a step or polish pass (``kind`` "step") or an outer iteration ("outer"). Arrays are read-only.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> def stop_early(event):  # any callback gets such events
    ...     if event.n_evaluations >= 3:
    ...         event.stop()
    >>> str(mb.relax_and_penalize(problem, seed=0, callbacks=[stop_early]).status)
    'STOPPED'
    """

    kind: str
    phase: str
    """"relax", "penalise", "lam", "polish", "learn" or "search"."""
    start: int
    """The number of the current start, from 0 on; with ``search="portfolio"``, the path is 0 and the searches after it follow."""
    starts: int
    """The number of starts; with ``search="portfolio"``, at least the searches so far."""
    outer: int
    inner: int
    epsilon: float
    value: float
    """G without the penalty; during a pass of a sampling solver, an estimate of it."""
    theta: Floats
    lam: Floats
    n_evaluations: int
    seconds: float
    theta_set: BinarySet = field(repr=False)
    stop: Callable[[], None] = field(repr=False)
    """Call this to end the run after this step, with status STOPPED and a feasible result."""

    @cached_property
    def distance(self) -> float:
        """dist_inf(theta, Theta_bin), computed at the first access."""
        return self.theta_set.distance_to_binary(self.theta)


Callback = Callable[[Event], None]

REFRESHED = 8
"""How often the line is written, at most, in a second."""
STAGES = {"relax": "relaxing", "penalise": "penalising", "lam": "tuning lam", "polish": "polishing"}
STAGES |= {"learn": "learning the curvature", "search": "searching"}


class ProgressDisplay:
    """A callback that shows the progress of a run in one line of a terminal or of a notebook; elsewhere it writes nothing.

    Parameters
    ----------
    label : str
        A text at the left end of the line, such as the name of the data.
    console : rich.console.Console, optional
        The console to write to; stderr by default.
    note : callable, optional
        A function without arguments that returns a text for the right end of the line, such as how much was read.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> result = mb.relax_and_penalize(problem, seed=0, callbacks=[mb.ProgressDisplay("four items")])
    """

    def __init__(self, label: str = "", console: "Console | None" = None, note: Callable[[], str] | None = None) -> None:
        from rich.console import Console

        if not isinstance(label, str):
            raise check.fail("label", label, "a text", "such as the name of the data")
        if console is not None and not isinstance(console, Console):
            raise check.fail("console", console, "a Console of rich, or None", "None writes to stderr")
        if note is not None and not callable(note):
            raise check.fail("note", note, "a function without arguments that returns a text, or None")
        self.label, self.note = _plain(label), note
        self.console = console if console is not None else Console(stderr=True)
        self._live: Live | None = None
        self._in_notebook = _NotebookLine() if self.console.is_jupyter else None
        self._start, self._distance = 0, np.nan

    def __call__(self, event: Event) -> None:
        """Update the line with this event."""
        if not self.console.is_terminal and self._in_notebook is None:
            return
        if event.start != self._start:
            self._start, self._distance = event.start, np.nan
        if event.kind == "outer":
            # The distance costs a pass over theta, so it is computed only once per outer iteration.
            self._distance = event.distance
        if self._in_notebook is not None:
            self._in_notebook.update(lambda: "  ".join([*([self.label] if self.label else []), " · ".join(self._cells(event))]))
            return
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self.console, refresh_per_second=REFRESHED, transient=True)
            self._live.start()
        self._live.update(self._line(event))

    def close(self) -> None:
        """Remove the line; the method calls this at the end of the run."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._in_notebook is not None:
            self._in_notebook.clear()

    def _cells(self, event: Event) -> list[str]:
        """What the line says, from the stage to the clock."""
        cells = [STAGES[event.phase]]
        if event.starts > 1:
            cells.append(f"start {event.start + 1}/{event.starts}")
        if event.phase == "penalise":
            cells.append(f"eps {event.epsilon:.2g}")
        cells.append(f"G {event.value:.6g}")
        if event.phase in ("relax", "penalise") and not np.isnan(self._distance):
            cells.append(f"distance {self._distance:.2g}")
        rate = event.n_evaluations / event.seconds if event.seconds > 0 else 0.0
        cells += [f"{event.n_evaluations:,} evals", f"{rate:.3g}/s", _clock(event.seconds)]
        return cells if self.note is None else [*cells, _plain(str(self.note()))]

    def _line(self, event: Event) -> "Table":
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        stage, *rest = self._cells(event)
        line = Table.grid(padding=(0, 1))
        line.add_column(width=1)
        line.add_column(no_wrap=True, overflow="ellipsis")
        # Not by rich's markup, as which a label such as "data[/]" would be read.
        text = Text(f"{self.label}  " if self.label else "")
        text.append(stage, "bold")
        for cell in rest:
            text.append(" · ", "dim").append(cell)
        line.add_row(Spinner("dots"), text)
        return line


class _NotebookLine:
    """One line below a cell of a notebook, by IPython's own display, which needs no widgets."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = -np.inf

    def update(self, text: Callable[[], str]) -> None:
        """Show a text, unless the last one was shown a moment ago."""
        now = time.monotonic()
        if now - self._last < 1 / REFRESHED:
            return
        self._last = now
        self._show(text())

    def _show(self, text: str) -> None:
        from html import escape

        from IPython.display import HTML, display

        line = HTML(f"<pre>{escape(text)}</pre>" if text else "")
        if self._handle is None:
            self._handle = display(line, display_id=True)
        else:
            self._handle.update(line)

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._handle is not None:
            self._show("")
            self._handle, self._last = None, -np.inf


def _plain(text: str) -> str:
    """A text on one line, without characters that move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(text.split()))


def _clock(seconds: float) -> str:
    """A duration as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def spinner(text: str, *, quiet: bool = False) -> AbstractContextManager[Any]:
    """Show a text with a moving sign on a terminal while something is computed; nothing in a pipe or where ``quiet``."""
    from rich.console import Console

    shown = not quiet and sys.stdout.isatty() and sys.stderr.isatty()
    return Console(stderr=True).status(text) if shown else nullcontext()

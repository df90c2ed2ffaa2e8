"""The methods as every command runs them: with progress, a checkpoint, and an end by Ctrl-C from which a run can go on."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import typer

from mixbin import _validate as check
from mixbin.cli.run_folder import RunFolder
from mixbin.methods import relax_and_penalize, relax_and_round
from mixbin.problem import Problem
from mixbin.progress import Event, ProgressDisplay
from mixbin.result import Result, Status

BASELINES: dict[str, Literal["simple", "top-k"] | None] = {"relax": None, "simple": "simple", "top-k": "top-k"}
"""How each of them rounds."""
CHECKPOINT_EVERY = 10.0
"""Seconds between two writes of the checkpoint."""
EXIT_INTERRUPTED = 130


class Solved(NamedTuple):
    """What a method gave."""

    method: str
    result: Result
    seconds: float


def check_limits(max_evaluations: int | None, validation_fraction: float | None) -> None:
    """The options that every run can have."""
    if max_evaluations is not None:
        check.whole("--max-evaluations", max_evaluations, low=2, remedy="one for the start and one for the answer")
    if validation_fraction is not None:
        remedy = "write a share such as 0.2"
        check.real("--validation-fraction", validation_fraction, low=0, high=1, open_low=True, open_high=True, remedy=remedy)


@contextmanager
def resumable() -> Iterator[None]:
    """Say, where a run is interrupted, how to go on with it."""
    try:
        yield
    except KeyboardInterrupt:
        print("mixbin: interrupted; the same command with --resume goes on from here", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def solve_all(
    method: str,
    problem: Problem,
    folder: RunFolder,
    *,
    seed: int,
    max_evaluations: int | None,
    quiet: bool,
    note: Callable[[], str] | None = None,
    **settings: Any,
) -> list[Solved]:
    """The method, or all of them; the one that the run is about comes last.

    ``note`` is shown with the progress, ``settings`` are further ones of penalize.
    """
    first, *others = ["penalize", *BASELINES] if method == "all" else [method]
    main = solve(first, problem, folder, seed, max_evaluations, quiet, note, **settings)
    # The baselines get what penalize used, so that the comparison is fair.
    return [*(solve(it, problem, folder, seed, main.result.n_evaluations, quiet, note) for it in others), main]


def solve(
    method: str,
    problem: Problem,
    folder: RunFolder,
    seed: int,
    max_evaluations: int | None,
    quiet: bool,
    note: Callable[[], str] | None = None,
    **settings: Any,
) -> Solved:
    """The result of one method and its seconds; from the folder, if it had ended before."""
    kept = folder.done(method, problem)
    if kept is not None:
        return Solved(method, *kept)
    interruption, clock = Interruption(), Clock()
    # What penalize does shows in its stages; a label would push the numbers off a line of 80 columns.
    display = [] if quiet else [ProgressDisplay(method if method in BASELINES else "", note=note)]
    callbacks: list[Any] = [interruption, clock, *display]
    common: dict[str, Any] = {"seed": seed, "max_evaluations": max_evaluations, "callbacks": callbacks}
    common |= {"checkpoint": folder.checkpoint / method, "checkpoint_every": CHECKPOINT_EVERY}
    with interruption.heeded():
        if method in BASELINES:
            result = relax_and_round(problem, rounding=BASELINES[method], **common)
        else:
            result = relax_and_penalize(problem, **common, **settings)
    if result.status is not Status.STOPPED:
        folder.keep(method, result, clock.seconds)
    if interruption.asked:
        raise KeyboardInterrupt
    return Solved(method, result, clock.seconds)


class Interruption:
    """Ctrl-C ends a method between two steps, with its checkpoint written; a second one ends it at once."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, event: Event) -> None:
        """Stop, if that was asked for."""
        if self.asked:
            event.stop()

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Take over Ctrl-C, where it would otherwise end the process."""
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if not usual or threading.current_thread() is not threading.main_thread():
            yield
            return
        signal.signal(signal.SIGINT, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _ask(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Clock:
    """The seconds of a run, those before an interruption included."""

    def __init__(self) -> None:
        self.began, self.before = time.perf_counter(), 0.0
        self._asked = False

    def __call__(self, event: Event) -> None:
        """Learn from the first event how long the run had taken before."""
        if not self._asked:
            self.before, self._asked = max(0.0, event.seconds - (time.perf_counter() - self.began)), True

    @property
    def seconds(self) -> float:
        """Until now."""
        return self.before + time.perf_counter() - self.began

"""What a comparison is made of: cells, methods and families; and how one cell is run, within its own limits.

Every cell runs in a process of its own, forked from one that holds the data: its processor time is limited by the operating
system, and its peak of memory is that of nobody else. The packages of a method are imported before the clock starts.
"""

import contextlib
import gc
import importlib
import math
import multiprocessing
import os
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

Record = dict[str, Any]

FACTS = ("family", "table", "budget", "seed", "method")
"""What tells cells and their records apart."""

CLOCK_FACTOR = 20.0
"""How many times its limit of processor time a cell may take by the clock: the machine may be busy, a sleeping cell must end."""
FORK = multiprocessing.get_context("fork")


class Missing(Exception):
    """Why data or a package cannot be had here."""


@dataclass(frozen=True)
class Cell:
    """One method on one table with one budget and one seed; ``limit`` is in seconds of processor time."""

    family: str
    table: str
    budget: str
    seed: int
    method: str
    limit: float = 60.0

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells cells apart."""
        return tuple(self.facts.values())

    @property
    def facts(self) -> Record:
        """The same by name, as records have it."""
        return {name: getattr(self, name) for name in FACTS}


@dataclass(frozen=True)
class Method:
    """How a method answers: ``solve(data, cell, ours)``, where ours is mixbin's record of the same cell, if it is there.

    ``needs`` are the modules to import before the clock starts; a method whose modules are missing is recorded as such.
    """

    solve: Callable[[Any, Cell, Record | None], Any]
    needs: tuple[str, ...] = ()
    limit: float | None = None
    prepare: Callable[[], object] = lambda: None
    """What else happens before the clock starts, such as imports that other methods share."""


@dataclass(frozen=True)
class Quantity:
    """What is compared: its key in the measures of a record, its name on the page, and whether less is better."""

    key: str
    title: str
    less: bool = True
    least: float = 0.0
    """Differences up to this are ties, whatever their standard error."""


@dataclass(frozen=True)
class Family:
    """One kind of decision: its cells, data and methods, and how an answer is measured."""

    name: str
    title: str
    words: str
    cells: Callable[[bool], Sequence[Cell]]
    load: Callable[[str, int], Any]
    methods: Mapping[str, Method]
    measure: Callable[[Any, Cell, Any], Mapping[str, float]]
    quantities: tuple[Quantity, ...]
    ours: str = "mixbin"
    references: frozenset[str] = field(default_factory=frozenset)
    """Methods that are no rivals: they know the truth, or choose nothing."""
    relative_to: str | None = None
    """The method by whose measure the first quantities of the same cell are divided on the page."""
    remarks: Callable[[Sequence[Record]], Sequence[str]] = lambda records: ()
    """Further sentences about the records, made from them."""
    reasons: Callable[[Sequence[Record]], Sequence[str]] = lambda records: ()
    """What was measured about the reasons for which rivals win; shown with their wins, if they have any."""


def memory_now(name: str) -> float:
    """VmRSS or VmHWM of this process in MB; the peak of the operating system's count where there is no /proc."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return float(line.split()[1]) / 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    """Begin the count of the peak of memory again, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _work(family: Family, cell: Cell, data: Any, ours: Record | None, limit: float, pipe: Any) -> None:
    """In the process of the cell: solve, then measure; only solving counts."""
    warnings.simplefilter("ignore")
    method = family.methods[cell.method]
    with open(os.devnull, "w") as silent:
        os.dup2(silent.fileno(), 1)
        os.dup2(silent.fileno(), 2)
    try:
        for name in method.needs:
            try:
                importlib.import_module(name)
            except Exception as error:
                raise Missing(f"import {name}: {type(error).__name__}: {str(error).splitlines()[0]}") from error
        method.prepare()
        gc.collect()
        forget_peak()
        before = memory_now("VmRSS")
        # The system ends the process with SIGXCPU at this limit, which counts from the start of the process in whole seconds.
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + limit), resource.RLIM_INFINITY))
        began, clock = time.process_time(), time.perf_counter()
        answer = method.solve(data, cell, ours)
        seconds, clock = time.process_time() - began, time.perf_counter() - clock
        peak = memory_now("VmHWM") - before
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        pipe.send(("solved", seconds))
        measures = {name: float(value) for name, value in family.measure(data, cell, answer).items()}
        out = {"seconds": seconds, "clock": clock, "memory": max(peak, 0.0), "measures": measures}
        path = getattr(answer, "path", None)  # (seconds, value) of better and better answers, where a method tells
        pipe.send(("ok", out | ({"path": [[float(a), float(b)] for a, b in path]} if path else {})))
    except Missing as error:
        pipe.send(("missing", str(error)))
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = str(error).splitlines()[0] if str(error) else ""
        pipe.send(("failed", f"{type(error).__name__}: {said} ({Path(where.filename).name})"))


class Running:
    """A cell whose process has been started; ``record`` is there once ``listen`` has heard its end."""

    def __init__(self, family: Family, cell: Cell, data: Any, ours: Record | None, clock_factor: float = CLOCK_FACTOR) -> None:
        self.cell, self.limit = cell, family.methods[cell.method].limit or cell.limit
        self.clock = clock_factor * self.limit + 5.0
        self.receiver, sender = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=_work, args=(family, cell, data, ours, self.limit, sender), daemon=True)
        self.process.start()
        sender.close()
        self.deadline = time.monotonic() + self.clock
        self.record: Record | None = None

    def listen(self) -> None:
        """Take what the process has sent, or end it at its deadline; call it when the pipe is ready or the time is over."""
        if not self.receiver.poll():
            if time.monotonic() >= self.deadline:
                self._end("limit", f"did not end within {self.clock:g} s of the clock")
            return
        try:
            state, told = self.receiver.recv()
        except EOFError:
            self.process.join()
            if self.process.exitcode == -signal.SIGXCPU:
                self._end("limit", f"did not end within {self.limit:g} s of processor time")
            else:
                self._end("failed", f"its process ended with code {self.process.exitcode}")
            return
        if state == "solved":
            # The answer is there; measuring it is not the method's time.
            self.deadline = time.monotonic() + 600.0
        else:
            self._end(state, told)

    def _end(self, state: str, told: Any) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.receiver.close()
        facts = self.cell.facts
        self.record = (
            facts | {"limit": self.limit} | ({"state": state} | told if state == "ok" else {"state": state, "reason": told})
        )


def run_cells(
    family: Family,
    cells: Sequence[Cell],
    data_of: Callable[[Cell], Any],
    ours_of: Callable[[Cell], Record | None] = lambda cell: None,
    jobs: int = 1,
    **more: Any,
) -> Iterator[Record]:
    """The records of cells as they come, so many processes at a time; no core waits while any cell can begin.

    A rival can begin once mixbin has ended with the same table, budget and seed, because mixbin's time and evaluations set its
    budget. Data that cannot be had are ``Missing``.
    """
    waiting, running = list(cells), list[Running]()
    ahead = {cell.key for cell in cells if cell.method == family.ours}

    def can_begin(cell: Cell) -> bool:
        return cell.method == family.ours or replace(cell, method=family.ours).key not in ahead

    while waiting or running:
        while len(running) < jobs and (cell := next(filter(can_begin, waiting), None)) is not None:
            waiting.remove(cell)
            data = data_of(cell)
            if isinstance(data, Missing):
                ahead.discard(cell.key)
                yield cell.facts | {"limit": cell.limit, "state": "missing", "reason": str(data)}
            else:
                running.append(Running(family, cell, data, ours_of(cell), **more))
        wait([it.receiver for it in running], max(0.0, min((it.deadline for it in running), default=0.0) - time.monotonic()))
        for it in running:
            it.listen()
            if it.record is not None:
                ahead.discard(it.cell.key)
                yield it.record
        running = [it for it in running if it.record is None]


def run_cell(family: Family, cell: Cell, data: Any, **more: Any) -> Record:
    """The record of one cell: what was measured, or why there is nothing."""
    return next(run_cells(family, [cell], lambda _: data, **more))

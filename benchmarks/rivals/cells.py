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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = dict[str, Any]

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
    def key(self) -> tuple[str, str, str, int, str]:
        """What tells cells apart."""
        return self.family, self.table, self.budget, self.seed, self.method


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
    """Further sentences about the records, and the reasons of what was found; made from the records."""


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


def run_cell(family: Family, cell: Cell, data: Any, ours: Record | None = None, clock_factor: float = CLOCK_FACTOR) -> Record:
    """The record of one cell: what was measured, or why there is nothing."""
    limit = family.methods[cell.method].limit or cell.limit
    record: Record = {
        "family": cell.family,
        "table": cell.table,
        "budget": cell.budget,
        "seed": cell.seed,
        "method": cell.method,
        "limit": limit,
    }
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_work, args=(family, cell, data, ours, limit, sender), daemon=True)
    process.start()
    sender.close()
    state, told = "limit", f"did not end within {limit:g} s of processor time"
    deadline = time.monotonic() + clock_factor * limit + 5.0
    try:
        while receiver.poll(max(0.0, deadline - time.monotonic())):
            state, told = receiver.recv()
            if state != "solved":
                break
            # The answer is there; measuring it is not the method's time.
            deadline = time.monotonic() + 600.0
        else:
            state, told = "limit", f"did not end within {clock_factor * limit + 5.0:g} s of the clock"
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            state, told = "limit", f"did not end within {limit:g} s of processor time"
        else:
            state, told = "failed", f"its process ended with code {process.exitcode}"
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        receiver.close()
    return record | ({"state": state} | told if state == "ok" else {"state": state, "reason": told})

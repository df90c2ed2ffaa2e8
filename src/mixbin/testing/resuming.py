"""A run that is stopped and goes on from its checkpoint ends where it would have ended, to the bit."""

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from mixbin.methods import relax_and_penalize
from mixbin.problem import Problem
from mixbin.progress import Callback, Event
from mixbin.result import Result
from mixbin.testing.broken import Subject

EVALUATIONS = 30
"""How long the run is that is interrupted."""
STOPS = (2, 9)
"""After which of its steps it is."""


def check_resumes(subject: Subject, problem: Problem, solver: Any = None) -> Result:
    """Stop a short run by a callback, go on from its checkpoint, and compare with an uninterrupted run, which is returned."""
    settings = {"seed": subject.seed, "starts": 1, "max_evaluations": EVALUATIONS, "solver": solver}
    try:
        whole = relax_and_penalize(problem, **settings)
    except Exception as error:
        raise subject.broken(
            "", "must get through a run of relax_and_penalize", settings, "a result", f"{type(error).__name__}: {error}"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        for stop in STOPS:
            file = Path(folder) / f"{stop}.checkpoint"
            resumed = _resumed(subject, problem, settings, file, stop)
            for name, here, there in _compared(whole, resumed):
                promise = f"must go on from a checkpoint to the same {name} as without an interruption"
                subject.require(here == there, "", promise, settings | {"stopped after step": stop}, here, there)
    return whole


def _resumed(subject: Subject, problem: Problem, settings: dict[str, Any], file: Path, stop: int) -> Result:
    keeping = settings | {"checkpoint": file}  # a run that a callback stops writes its state in any case
    try:
        relax_and_penalize(problem, **keeping, callbacks=[_stopping_after(stop)])
        return relax_and_penalize(problem, **keeping)
    except Exception as error:
        promise = "must go through a run with a checkpoint that is stopped and goes on"
        expected = "a result; what the state and the warm start hold must be arrays and numbers, and every evaluation repeatable"
        raise subject.broken(
            "", promise, settings | {"stopped after step": stop}, expected, f"{type(error).__name__}: {error}"
        ) from error


def _stopping_after(steps: int) -> Callback:
    taken = count(1)

    def stop(event: Event) -> None:
        if event.kind == "step" and next(taken) >= steps:
            event.stop()

    return stop


def _compared(one: Result, other: Result) -> Iterator[tuple[str, object, object]]:
    """What must be the same, with arrays as lists, which compare as a whole."""
    yield "theta", one.theta.tolist(), other.theta.tolist()
    yield "lam", one.lam.tolist(), other.lam.tolist()
    yield "value", one.value, other.value
    yield "number of evaluations", one.n_evaluations, other.n_evaluations

"""One run of one experiment: its name, everything that its numbers depend on, and methods that continue after an interruption."""

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mixbin.methods import relax_and_penalize, relax_and_round
from mixbin.problem import Problem
from mixbin.progress import Event
from mixbin.reproduction.memo import Memo
from mixbin.result import Result

Record = dict[str, Any]
"""The results of a finished job: numbers and short lists, which are stored as JSON."""
CHECKPOINT_EVERY = 10.0
"""A job writes its checkpoint at most once in this many seconds."""
SAME_NUMBERS_SINCE = "0.1.0"
"""The version since which the numbers are the same (benchmarks/same_records.py). A change that alters them raises it: a folder
with records of another version is refused."""


@dataclass(frozen=True)
class Size:
    """How large the experiments are."""

    name: Literal["quick", "full"]
    n_tasks: int
    """The number of tasks in the experiments on groups."""
    every: int
    """The runs on blog and music choose from every ``every``-th training row."""
    runs: tuple[int, int]
    """The number of runs per setting: of the experiments on groups, and of the distillations."""
    steps: int | None
    """The number of steps of a distillation with the paper's solver; None is the published number."""

    def describe(self) -> str:
        """The size in words."""
        if self.name == "full":
            return "full: the published sizes"
        return (
            f"quick: {self.n_tasks} of 500 tasks; 1 in {self.every} training rows of blog and music "
            "(all validation and test rows); the excerpt of music whole"
        )


QUICK = Size("quick", n_tasks=200, every=4, runs=(1, 1), steps=1_000)
FULL = Size("full", n_tasks=500, every=1, runs=(3, 5), steps=None)


@dataclass(frozen=True)
class Job:
    """One run of an experiment; ``run`` is the seed of the data and of the methods."""

    experiment: Literal["groups", "blog", "music", "music-excerpt"]
    setting: str
    """The kind of group sizes and the smallest coefficient ("inequal 0.3"), or the budget in per cent ("20")."""
    run: int
    solver: Literal["default", "paper"]
    size: str
    n_tasks: int
    every: int
    steps: int | None
    beta: float | None = None
    """The beta of an ablation, which runs penalize alone. None is the usual beta, and runs the baselines too."""

    @property
    def name(self) -> str:
        """The name of the job's files."""
        beta = "" if self.beta is None else f"beta{self.beta:g}-"
        return f"{self.experiment}-{self.setting.replace(' ', '-')}-{beta}run{self.run}"

    def identity(self) -> Record:
        """Everything that the numbers depend on."""
        return {"mixbin": SAME_NUMBERS_SINCE, **asdict(self)}


class TimedResult(NamedTuple):
    """The result of a method, and the seconds it took without the time of recording."""

    result: Result
    seconds: float


class Work:
    """Runs the methods of a job; their checkpoints and memos are in ``folder`` until the job ends."""

    def __init__(self, folder: Path, parent: int) -> None:
        self.folder, self.parent = folder, parent

    def penalize(self, problem: Problem, memo: "Recorder | None", **keywords: Any) -> TimedResult:
        """Run ``relax_and_penalize``, or continue it from its checkpoint."""
        return self._run("penalize", memo, lambda more: relax_and_penalize(problem, **keywords, **more))

    def relax(self, problem: Problem, memo: "Recorder | None", **keywords: Any) -> TimedResult:
        """Run the relaxation without rounding, or continue it from its checkpoint."""
        return self._run("relax", memo, lambda more: relax_and_round(problem, rounding=None, **keywords, **more))

    def recorder(self, name: str, measure: Callable[[Event], Record], every: int = 1) -> "Recorder":
        """A ``Recorder`` whose measurements are kept in this job's folder."""
        return Recorder(Memo(self.folder / f"{name}.json"), measure, every)

    def _run(self, name: str, memo: "Recorder | None", method: Callable[[Record], Result]) -> TimedResult:
        clock, ended = Clock(), Memo(self.folder / "seconds.json")
        callbacks = [self._exit_without_parent, clock, *([memo] if memo is not None else [])]
        result = method({"callbacks": callbacks, "checkpoint": self.folder / name, "checkpoint_every": CHECKPOINT_EVERY})
        if name not in ended:
            ended[name] = clock.seconds - (memo.seconds if memo is not None else 0.0)
        return TimedResult(result, ended[name])

    def _exit_without_parent(self, event: Event) -> None:
        """End this process if the one that started the job is gone, so that a new start can take over the checkpoint."""
        if self.parent not in (os.getpid(), os.getppid()):
            os._exit(1)


class Clock:
    """A callback that notes the seconds of a run until its last step, including those before an interruption."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, event: Event) -> None:
        """Note the run's seconds so far."""
        self.seconds = event.seconds


class Recorder:
    """A callback that measures points along a run: every ``every`` evaluations and at the end of every outer iteration.

    The measurements are kept in a file, so that a run continued from its checkpoint measures no point twice.
    """

    def __init__(self, memo: Memo, measure: Callable[[Event], Record], every: int = 1) -> None:
        self.memo, self.measure, self.every = memo, measure, every

    def __call__(self, event: Event) -> None:
        """Measure the point of this event, unless it was measured before an interruption."""
        key = f"{event.start} {event.phase} {event.outer} {event.inner} {event.kind}"
        if (event.kind == "outer" or event.n_evaluations % self.every == 0) and key not in self.memo:
            began = time.perf_counter()
            point = {"step": event.n_evaluations, "phase": event.phase, **self.measure(event)}
            self.memo[key] = point | {"cost": time.perf_counter() - began}

    @property
    def seconds(self) -> float:
        """The seconds that all measurements took."""
        return float(sum(point["cost"] for point in self.memo.values()))

    def points(self) -> list[Record]:
        """All points in the order of the run; of several points with the same number of evaluations, the last."""
        by_step = {point["step"]: point for point in self.memo.values()}
        return [{name: value for name, value in by_step[step].items() if name != "cost"} for step in sorted(by_step)]

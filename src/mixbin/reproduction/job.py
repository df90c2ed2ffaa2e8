"""One run of one experiment: its name, what its numbers depend on, and how its methods are run so that they can go on."""

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mixbin._version import __version__
from mixbin.methods import relax_and_penalize, relax_and_round
from mixbin.problem import Problem
from mixbin.progress import Event
from mixbin.reproduction.memo import Memo
from mixbin.result import Result

Record = dict[str, Any]
"""What a finished job leaves: numbers and short lists, for a JSON file."""
CHECKPOINT_EVERY = 10.0
"""Seconds between two writes of a checkpoint."""


@dataclass(frozen=True)
class Size:
    """How large the experiments are."""

    name: Literal["quick", "full"]
    n_tasks: int
    """Tasks of the groups."""
    every: int
    """One in so many training rows of blog and music can be kept."""
    runs: tuple[int, int]
    """Of groups, of distillations."""
    steps: int | None
    """Of a distillation with the paper's solver; None is the published number."""

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
    """One run: the data set and the methods start from the seed ``run``."""

    experiment: Literal["groups", "blog", "music", "music-excerpt"]
    setting: str
    """Sizes of groups and least coefficient ("inequal 0.3"), or the budget in per cent ("20")."""
    run: int
    solver: Literal["default", "paper"]
    size: str
    n_tasks: int
    every: int
    steps: int | None
    beta: float | None = None
    """Of an ablation, which runs penalize alone; None is the usual beta, with the baselines."""

    @property
    def name(self) -> str:
        """What its files are called."""
        beta = "" if self.beta is None else f"beta{self.beta:g}-"
        return f"{self.experiment}-{self.setting.replace(' ', '-')}-{beta}run{self.run}"

    def identity(self) -> Record:
        """All that the numbers depend on."""
        return {"mixbin": __version__, **asdict(self)}


class Solved(NamedTuple):
    """What a method gave, and how long it took, without the time of recording."""

    result: Result
    seconds: float


class Work:
    """Where a job is done: its checkpoints and memos lie in ``folder`` until it ends."""

    def __init__(self, folder: Path, parent: int) -> None:
        self.folder, self.parent = folder, parent

    def penalize(self, problem: Problem, memo: "Recorder | None", **keywords: Any) -> Solved:
        """``relax_and_penalize``, from its checkpoint where there is one."""
        return self._run("penalize", memo, lambda more: relax_and_penalize(problem, **keywords, **more))

    def relax(self, problem: Problem, memo: "Recorder | None", **keywords: Any) -> Solved:
        """The relaxation alone, from its checkpoint where there is one."""
        return self._run("relax", memo, lambda more: relax_and_round(problem, rounding=None, **keywords, **more))

    def recorder(self, name: str, measure: Callable[[Event], Record], every: int = 1) -> "Recorder":
        """What is noted along a run; see ``Recorder``."""
        return Recorder(Memo(self.folder / f"{name}.json"), measure, every)

    def _run(self, name: str, memo: "Recorder | None", method: Callable[[Record], Result]) -> Solved:
        clock, ended = Clock(), Memo(self.folder / "seconds.json")
        callbacks = [self._heed, clock, *([memo] if memo is not None else [])]
        result = method({"callbacks": callbacks, "checkpoint": self.folder / name, "checkpoint_every": CHECKPOINT_EVERY})
        if name not in ended:
            ended[name] = clock.seconds - (memo.seconds if memo is not None else 0.0)
        return Solved(result, ended[name])

    def _heed(self, event: Event) -> None:
        """Leave when the process that began this job is gone: whoever starts it again finds the checkpoint free."""
        if self.parent not in (os.getpid(), os.getppid()):
            os._exit(1)


class Clock:
    """The seconds of a run until its last step, those before an interruption included."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, event: Event) -> None:
        """Note the time."""
        self.seconds = event.seconds


class Recorder:
    """Measures along a run, at every so many evaluations and wherever an outer iteration ends; each point once."""

    def __init__(self, memo: Memo, measure: Callable[[Event], Record], every: int = 1) -> None:
        self.memo, self.measure, self.every = memo, measure, every

    def __call__(self, event: Event) -> None:
        """Measure, unless that was done before an interruption."""
        key = f"{event.start} {event.phase} {event.outer} {event.inner} {event.kind}"
        if (event.kind == "outer" or event.n_evaluations % self.every == 0) and key not in self.memo:
            began = time.perf_counter()
            point = {"step": event.n_evaluations, "phase": event.phase, **self.measure(event)}
            self.memo[key] = point | {"cost": time.perf_counter() - began}

    @property
    def seconds(self) -> float:
        """What all this took."""
        return float(sum(point["cost"] for point in self.memo.values()))

    def points(self) -> list[Record]:
        """All points in the order of the run; of those with the same count the last."""
        by_step = {point["step"]: point for point in self.memo.values()}
        return [{name: value for name, value in by_step[step].items() if name != "cost"} for step in sorted(by_step)]

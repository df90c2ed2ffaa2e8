"""Which runs a table or a figure needs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mixbin.reproduction import distillation, groups
from mixbin.reproduction.job import Job, Size
from mixbin.reproduction.paper import BETA

TABLES = tuple(f"table{i}" for i in range(1, 6))
FIGURES = tuple(f"figure{i}" for i in range(1, 7))
BETAS = (0.1, 0.3, 0.5, 0.7, 0.9)
DEFAULT_BETA = 0.5
"""The default beta of ``relax_and_penalize``."""


@dataclass(frozen=True)
class Plan:
    """What is to be reproduced, and how."""

    what: tuple[str, ...]
    size: Size
    solver: str
    runs: int | None
    """The number of runs per setting; None takes the number that ``size`` prescribes."""
    music: str | None
    """What is available of music: "music", "music-excerpt" or None."""
    budgets: tuple[str, ...] = distillation.BUDGETS

    @property
    def distilled(self) -> tuple[str, ...]:
        """The data sets on which distillations are run."""
        return ("blog",) if self.music is None else ("blog", self.music)

    def n_runs(self, experiment: str) -> int:
        """The number of runs per setting."""
        return self.runs if self.runs is not None else self.size.runs[0 if experiment == "groups" else 1]

    def usual_beta(self, experiment: str) -> float:
        """The beta of the runs that are not ablations."""
        if self.solver == "default":
            return DEFAULT_BETA
        return BETA["groups" if experiment == "groups" else "blog"]

    def jobs(self) -> list[Job]:
        """All runs that the plan needs, each once; the first runs of all settings come before the second ones."""
        wanted = [job for name in self.what for job in self._needed(name)]
        return sorted(dict.fromkeys(wanted), key=lambda job: job.run)

    def runs_of(self, experiment: str, setting: str, beta: float | None = None) -> list[Job]:
        """The runs of a setting; an ablation at the usual beta uses the runs of the other tables."""
        if beta == self.usual_beta(experiment):
            beta = None
        return list(self._runs(experiment, [setting], [beta]))

    def _needed(self, name: str) -> Iterable[Job]:
        if name in ("table1", "table2"):
            return self._runs("groups", groups.SETTINGS)
        if name == "table3":
            return [job for it in self.distilled for job in self._runs(it, self.budgets)]
        if name == "table4":
            return [job for beta in BETAS for job in self.runs_of("groups", groups.ABLATION_SETTING, beta)]
        if name == "table5":
            return [job for it in self.distilled for beta in BETAS for job in self.runs_of(it, distillation.ABLATED, beta)]
        if name == "figure1":
            return self._runs("groups", [groups.FIGURE1_SETTING])[:1]
        if name == "figure2":
            return self._runs("groups", [groups.ABLATION_SETTING])[:1]
        return self._runs("blog", [distillation.ABLATED])[:1]

    def _runs(self, experiment: str, settings: Sequence[str], betas: Sequence[float | None] = (None,)) -> list[Job]:
        size = self.size
        common: dict[str, Any] = {"experiment": experiment, "solver": self.solver, "size": size.name}
        # A job contains only what its numbers depend on, so that a change of anything else does not make finished jobs useless.
        if experiment == "groups":
            common |= {"n_tasks": size.n_tasks, "every": 1, "steps": None}
        else:
            every = 1 if experiment == "music-excerpt" else size.every
            common |= {"n_tasks": 0, "every": every, "steps": size.steps if self.solver == "paper" else None}
        return [
            Job(setting=setting, run=run, beta=beta, **common)
            for setting in settings
            for beta in betas
            for run in range(self.n_runs(experiment))
        ]

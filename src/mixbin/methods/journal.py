"""What a run reports: rows of the trace, events for callbacks, lines of the log."""

import logging
import time
from typing import Any

import numpy as np

from mixbin.methods.settings import Settings
from mixbin.methods.state import Progress
from mixbin.problem import CheckedProblem, Floats, read_only
from mixbin.progress import Event

log = logging.getLogger("mixbin")


class Journal:
    """Keeps the clock, writes the trace, and passes on a callback's wish to stop."""

    def __init__(self, problem: CheckedProblem, settings: Settings) -> None:
        self.problem, self.callbacks, self.starts = problem, settings.callbacks, settings.starts
        self.began = time.perf_counter()
        self.stopped = False

    def resume(self, at: Progress) -> None:
        """Go on from a checkpoint, with its clock."""
        self.began = time.perf_counter() - at.seconds
        log.info("resumed in the %s phase of start %d after %d evaluations", at.phase, at.start, self.problem.n_evaluations)

    def seconds(self) -> float:
        """Since the run began, interruptions left out."""
        return time.perf_counter() - self.began

    def stop(self) -> None:
        """What callbacks call to end the run."""
        self.stopped = True

    def close(self) -> None:
        """Call ``close`` of the callbacks that have it: the run has ended."""
        for callback in self.callbacks:
            end = getattr(callback, "close", None)
            if callable(end):
                end()

    def row(self, at: Progress, theta: Floats, u: Floats, outer: bool = False) -> float:
        """A row of the trace and an event; with ``outer`` the distance to binary points, which is returned."""
        lam = self.problem.lam_set.decode(u)
        row = self._common(at)
        if lam.size == 1:
            row["lam"] = float(lam.reshape(()))
        distance = np.nan
        if outer:
            distance = self.problem.theta_set.distance_to_binary(theta)
            row |= {
                "distance": distance,
                "integrality": float(np.max(np.minimum(theta, 1.0 - theta))),
                "n_selected": int(np.count_nonzero(theta >= 0.5)),
                "seconds": self.seconds(),
            }
            place = f"start {at.start}, {at.phase}, outer iteration {at.outer}"
            log.info("%s: eps %.3g, G %.8g, distance %.3g", place, at.epsilon, row["G"], distance)
        at.trace.append(**row)
        if self.callbacks:
            self._notify(at, theta, lam, row["G"], "outer" if outer else "step")
        return distance

    def _common(self, at: Progress) -> dict[str, Any]:
        row: dict[str, Any] = {"start": at.start, "phase": at.phase, "outer": at.outer, "inner": at.inner, "epsilon": at.epsilon}
        row |= {"n_evaluations": self.problem.n_evaluations}
        if at.phase == "polish":
            assert at.polish is not None
            return row | {"G": at.polish.value, "phi": 0.0, "step": np.nan}
        assert at.state is not None
        phi = 0.0 if at.phase == "lam" else at.state.phi
        return row | {"G": at.state.value, "phi": phi, "step": at.state.step, **at.state.info}

    def _notify(self, at: Progress, theta: Floats, lam: Floats, value: float, kind: str) -> None:
        event = Event(
            kind=kind,
            phase=at.phase,
            start=at.start,
            starts=self.starts,
            outer=at.outer,
            inner=at.inner,
            epsilon=at.epsilon,
            value=value,
            theta=read_only(theta),
            lam=read_only(lam),
            n_evaluations=self.problem.n_evaluations,
            seconds=self.seconds(),
            theta_set=self.problem.theta_set,
            stop=self.stop,
        )
        for callback in self.callbacks:
            callback(event)

"""What a run reports while it works: rows of the trace, events for callbacks, and lines of the log."""

import logging
import time
from typing import Any

import numpy as np

from mixbin.checked_problem import CheckedProblem, read_only
from mixbin.methods.settings import Settings
from mixbin.methods.state import Progress
from mixbin.problem import Floats
from mixbin.progress import Event

log = logging.getLogger("mixbin")


class Journal:
    """Measures the time, writes the trace, calls the callbacks, and remembers if one of them asks to stop."""

    def __init__(self, problem: CheckedProblem, settings: Settings) -> None:
        self.problem, self.callbacks, self.starts = problem, settings.callbacks, settings.starts
        self.began = time.perf_counter()
        self.stopped = False

    def resume(self, at: Progress) -> None:
        """Go on from a checkpoint: the clock continues from the seconds that the checkpoint holds."""
        self.began = time.perf_counter() - at.seconds
        log.info("resumed in the %s phase of start %d after %d evaluations", at.phase, at.start, self.problem.n_evaluations)

    def seconds(self) -> float:
        """The seconds that the run has worked so far, without the time between an interruption and the resumption."""
        return time.perf_counter() - self.began

    def stop(self) -> None:
        """Ask the run to end; callbacks reach this as ``event.stop``."""
        self.stopped = True

    def close(self) -> None:
        """The run has ended: call ``close`` of every callback that has such a method."""
        for callback in self.callbacks:
            end = getattr(callback, "close", None)
            if callable(end):
                end()

    def row(self, at: Progress, theta: Floats, u: Floats, outer: bool = False) -> float:
        """Add a row to the trace and call the callbacks.

        Returns the distance of theta to the binary points if ``outer``, which ends an outer iteration, and NaN otherwise.
        """
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
        value = self._binary_value(at)
        if value is not None:
            return row | {"G": value, "phi": 0.0, "step": np.nan}
        assert at.state is not None
        phi = 0.0 if at.phase == "lam" else at.state.phi
        return row | {"G": at.state.value, "phi": phi, "step": at.state.step, **at.state.info}

    @staticmethod
    def _binary_value(at: Progress) -> float | None:
        """G at the binary point of the phase; None in phases of a solver."""
        if at.phase == "polish" and at.polish is not None:
            return at.polish.value
        if at.phase == "learn" and at.curvature is not None:
            return at.curvature.value
        if at.phase == "search" and at.walk is not None:
            return at.walk.value
        return None

    def _notify(self, at: Progress, theta: Floats, lam: Floats, value: float, kind: str) -> None:
        event = Event(
            kind=kind,
            phase=at.phase,
            start=at.start,
            starts=max(self.starts, at.start + 1),
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

"""Events: what a callback sees of a running method, and how it can end it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from mixbin.problem import Floats
from mixbin.sets import BinarySet


@dataclass(frozen=True)
class Event:
    """The run after one inner step (``kind`` "step") or outer iteration ("outer"); its arrays are read-only."""

    kind: str
    phase: str
    """"relax", "penalise" or "lam"."""
    start: int
    outer: int
    inner: int
    epsilon: float
    value: float
    """G, never penalised."""
    theta: Floats
    lam: Floats
    n_evaluations: int
    seconds: float
    theta_set: BinarySet = field(repr=False)
    stop: Callable[[], None] = field(repr=False)
    """Ends the run cleanly after this step, with status STOPPED and a feasible answer."""

    @cached_property
    def distance(self) -> float:
        """dist_inf(theta, Theta_bin), computed when asked for."""
        return self.theta_set.distance_to_binary(self.theta)


Callback = Callable[[Event], None]

"""The state of a run. The state and the settings decide all that comes next, and a checkpoint holds the whole state."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin.methods.curvature import Curvature
from mixbin.methods.polish import PolishState
from mixbin.methods.walk import WalkState
from mixbin.problem import Floats
from mixbin.result import Relaxed, Status, Trace
from mixbin.solvers import State


class MoveCheck(NamedTuple):
    """How many single moves from a binary point were tried, and the lowest change of G among them."""

    tried: int
    best_change: float


class Candidate(NamedTuple):
    """The answer of one start."""

    rank: float
    """The number by which starts are compared; the lowest wins."""
    theta: NDArray[Any]
    lam: Floats
    value: float
    grad: Floats | None
    status: Status
    message: str
    relaxed: Relaxed | None
    moves: MoveCheck | None
    epsilon: float
    """The last eps of the penalty."""
    distance: float
    """dist_inf of theta when the penalised stage ended."""


@dataclass
class Progress:
    """The state of a run between two steps."""

    phase: str = "begin"
    start: int = 0
    outer: int = 0
    inner: int = 0
    epsilon: float = np.inf
    state: State | None = None
    theta_before: Floats | None = None
    """theta at the beginning of the outer iteration."""
    answer: NDArray[Any] | None = None
    """The theta that the start will answer with, once there is one: usually rounded, then polished."""
    polish: PolishState | None = None
    status: Status = Status.REPAIRED
    message: str = ""
    distance: float = np.inf
    relaxed: Relaxed | None = None
    lipschitz: float = 0.0
    """The largest norm of a gradient on the path: a lower estimate of the constant L of the theorems."""
    lower_bound: float = -np.inf
    """The largest of the problem's lower bounds so far."""
    best: Candidate | None = None
    curvature: Curvature | None = None
    """What the searches after the path have learnt about G."""
    walk: WalkState | None = None
    budget: int = 0
    """The evaluations that the searches after the path may reach; 0 during the path."""
    origin: str = ""
    """Where the current search began, as text; empty on the path."""
    searches: int = 0
    """The number of searches that have ended, the path included."""
    answers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """A hash of each different answer that a search has ended with."""
    times_best: int = 0
    """How many searches ended with the best value."""
    finds: int = 0
    """The same, without the searches that began near the best answer."""
    fruitless: int = 0
    """The number of searches since the last one that found a better answer."""
    compared: int = 0
    """The number of binary points that were compared, if all were, and 0 otherwise."""
    lams: int = 0
    """The number of values of lam that each of them was compared with."""
    draws: int = 0
    """How often this start has asked for a random generator."""
    n_full: int = 0
    n_term_evaluations: int = 0
    seconds: float = 0.0
    n_rows: int = 0
    """The number of rows in the trace that belong to this state; an interrupted step may have added more."""
    trace: Trace = field(default_factory=Trace)

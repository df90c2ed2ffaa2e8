"""What the steps of a solver promise: downhill, inside the sets, pure, and obedient to limits."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Quadratic
from mixbin.problem import Evaluation, Floats, Problem, Warm
from mixbin.sets import Box, Hypercube
from mixbin.solvers import Objective, OutOfEvaluations
from mixbin.testing.broken import Subject
from mixbin.testing.solvers.states import (
    Inputs,
    check_inside,
    check_plain,
    check_same,
    check_survives_a_checkpoint,
    check_truth,
    snapshot,
)

EPSILONS = (np.inf, 10.0, 0.1)
"""No penalty, a weak one, and one that rules."""
LIMITS = (0, 1, 2, 7)
"""After how many evaluations of a step the engine allows no more; a solver that samples terms makes many in one step."""


class Trial:
    """A solver at a random first point of a problem."""

    def __init__(self, subject: Subject, name: str, problem: Problem, epsilon: float, seed: int) -> None:
        self.subject, self.problem, self.seed = subject, problem, seed
        self.objective = Objective(CheckedProblem(problem), Quadratic(), epsilon)
        self.inputs: Inputs = {"problem": name, "eps": epsilon, "first point from seed": seed}
        rng = np.random.default_rng(seed)
        self.theta, self.lam = problem.theta_set.start(rng), np.asarray(rng.uniform(size=problem.lam_set.shape))

    def begin(self) -> Any:
        """The first state."""
        return self.subject_answer("init", self.theta.copy(), self.lam.copy(), np.random.default_rng(self.seed))

    def step(self, state: Any) -> Any:
        """The next state."""
        return self.subject_answer("step", state)

    def done(self, state: Any) -> bool:
        """Whether the solver says that it has converged."""
        return bool(self.subject_answer("done", state))

    def walk(self, steps: int) -> Iterator[Any]:
        """The first state and those after it, until the solver is done or the steps are."""
        state = self.begin()
        yield state
        for _ in range(steps):
            if self.done(state):
                return
            state = self.step(state)
            yield state

    def total(self, state: Any) -> float:
        """G + phi/eps at the state's point, whatever the state says of it."""
        value = self.problem.evaluate(state.theta, self.problem.lam_set.decode(state.lam), gradient=False).value
        return self.objective.total(float(value), self.objective.phi(state.theta))

    def subject_answer(self, method: str, *arguments: Any) -> Any:
        """What the solver answers; whatever it raises is told with this trial."""
        try:
            return getattr(self.subject.made, method)(self.objective, *arguments)
        except Exception as error:
            raise self.subject.raised(method, error, self.inputs) from error


def check_walk(trial: Trial, steps: int) -> None:
    """Every state is plain, true and inside the sets, and the last is lower than the first."""
    subject, inputs, state, first, taken = trial.subject, trial.inputs, None, np.inf, -1
    for taken, state in enumerate(trial.walk(steps)):
        method = "step" if taken else "init"
        check_plain(subject, method, state, inputs)
        check_inside(subject, method, trial.problem, state, inputs)
        if taken < 4:
            check_truth(subject, method, trial.problem, trial.objective, state, inputs)
        if taken == 0:
            first = trial.total(state)
            _check_first(trial, state)
    last = trial.total(state)
    expected = f"below {first!r}, which it is at the first point"
    promise = f"must lower G + phi/eps within {taken} steps"
    subject.require(last < first or taken == 0, "step", promise, inputs, expected, last)


def _check_first(trial: Trial, state: Any) -> None:
    same = np.array_equal(state.theta, trial.theta) and np.array_equal(state.lam, trial.lam)
    promise = "must begin at the point that it is given"
    trial.subject.require(same, "init", promise, trial.inputs, (trial.theta, trial.lam), (state.theta, state.lam))
    spent = trial.objective.problem.n_evaluations
    trial.subject.require(spent == 1, "init", "must evaluate once", trial.inputs, 1, spent)


def check_pure(trial: Trial) -> None:
    """Same state, same step to the bit; states are never written to; a state survives a checkpoint; reweight costs nothing."""
    subject, inputs, first = trial.subject, trial.inputs, trial.begin()
    check_same(subject, "init", "must depend on its arguments alone", first, trial.begin(), inputs)
    state = trial.step(first)
    before = snapshot(state)
    once, twice = trial.step(state), trial.step(state)
    check_same(subject, "step", "must not write into the state that it is given", before, state, inputs)
    check_same(subject, "step", "must be a pure function of the state", once, twice, inputs)
    check_survives_a_checkpoint(subject, trial.objective, state, inputs)
    asked = count()
    trial.objective.epsilon, trial.objective.may_evaluate = 0.5, lambda: next(asked) >= 0
    again = trial.subject_answer("reweight", state)
    check_same(subject, "reweight", "must not write into the state that it is given", before, state, inputs)
    check_plain(subject, "reweight", again, inputs)
    spent = next(asked)
    subject.require(spent == 0, "reweight", "must evaluate nothing", inputs, "0 evaluations", f"{spent}")
    for name in ("theta", "lam", "value", "grad_theta", "grad_lam"):
        here, there = getattr(state, name), getattr(again, name)
        promise = f"must leave {name} as it is: a new eps changes neither the point nor G"
        subject.require(np.array_equal(here, there), "reweight", promise, inputs, here, there)


def check_limit(trial: Trial) -> None:
    """A limit inside a step goes through to the engine as OutOfEvaluations, and leaves the state as it was."""
    subject, state = trial.subject, trial.begin()
    before = snapshot(state)
    for allowed in LIMITS:
        asked = count()
        trial.objective.may_evaluate = lambda asked=asked, allowed=allowed: next(asked) < allowed  # type: ignore[misc]
        try:
            subject.made.step(trial.objective, state)
            refused = next(asked) > allowed
        except OutOfEvaluations:
            refused = False
        except Exception as error:
            raise subject.raised("step", error, trial.inputs) from error
        promise = "must let OutOfEvaluations through, by which the engine ends a run at its limit"
        subject.require(not refused, "step", promise, trial.inputs, "OutOfEvaluations raised by step", "a state")
        check_same(subject, "step", "must leave the state as it was at a limit", before, state, trial.inputs)


class Cliff:
    """A finite sum whose slope leads to theta = 0, where nothing can be trained: G is infinite there."""

    theta_set, lam_set, n_terms = Hypercube(6), Box.empty(), 5

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """The sum of theta, or infinity where that is small."""
        if theta.sum() < 0.1:
            return Evaluation(np.inf, np.full(6, np.nan), np.empty(0))
        return Evaluation(float(theta.sum()), np.ones(6), np.empty(0))

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Any, *, warm: Warm | None = None) -> Evaluation:
        """All terms are the same."""
        return self.evaluate(theta, lam)


def check_cliff(subject: Subject, steps: int) -> None:
    """Points of infinite value are left out."""
    trial = Trial(subject, "the sum of theta, infinite where that is below 0.1", Cliff(), np.inf, subject.seed)
    for state in trial.walk(steps):
        value = trial.total(state)
        promise = "must not accept a point of infinite value; take a shorter step"
        subject.require(np.isfinite(value), "step", promise, {**trial.inputs, "theta": state.theta}, "a finite value", value)


def check_stationary(trial: Trial, steps: int, tol: float) -> None:
    """On a convex problem the solver ends where a gradient step of length 1 does not lead away."""
    state, taken = trial.begin(), 0
    while taken < steps and not trial.done(state):
        state, taken = trial.step(state), taken + 1
    objective = trial.objective
    got = objective.evaluate(state.theta, state.lam, None)
    assert got.grad_theta is not None
    assert got.grad_lam is not None
    d_theta = objective.project_theta(state.theta - got.grad_theta) - state.theta
    d_lam = objective.project_lam(state.lam - got.grad_lam) - state.lam
    away = max(float(np.abs(d).max(initial=0.0)) for d in (d_theta, d_lam))
    promise = "must come to a stationary point of a convex problem"
    expected = f"a point that a projected gradient step of length 1 moves by at most {tol:g}"
    came = f"a point that it moves by {away:g}, after {taken} steps (done says {trial.done(state)})"
    trial.subject.require(away <= tol, "step", promise, trial.inputs, expected, came)

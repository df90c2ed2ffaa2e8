"""check_solver on a stranger's solver, and on solvers that each break one promise."""

import re
from dataclasses import dataclass, field, replace
from itertools import count
from typing import ClassVar

import numpy as np
import pytest

import mixbin as mb
from mixbin.solvers import OutOfEvaluations, State
from mixbin.testing import ConformanceError, check_solver
from tests.instances import quadratic
from tests.testing.strangers import Halving, HalvingState


@pytest.mark.slow
def test_a_strangers_solver_conforms():
    check_solver(Halving(), trials=2, problems={"a problem of one's own": quadratic(mb.Budget(8, 3), 0, n_lam=1)})


class Unprojected(Halving):
    """Steps that nothing keeps in the set."""

    def step(self, objective, state):
        theta = state.theta - 0.1 * objective.slope(state.grad_theta, state.theta)
        return self.state(objective, theta, state.lam, objective.evaluate(theta, state.lam, None), 1.0, 1.0)


class LamUnprojected(Halving):
    def step(self, objective, state):
        there = super().step(objective, state)
        return replace(there, lam=there.lam - 2.0)


class Uphill(Halving):
    def step(self, objective, state):
        theta = objective.project_theta(state.theta + 0.1 * objective.slope(state.grad_theta, state.theta))
        return self.state(objective, theta, state.lam, objective.evaluate(theta, state.lam, None), 1.0, 1.0)


class Counting(Halving):
    """Its steps depend on how many there were."""

    calls = count(1)

    def step(self, objective, state):
        there = super().step(objective, state)
        return replace(there, length=there.length / next(self.calls))


class Scribbling(Halving):
    """Writes into the state that it is given."""

    def step(self, objective, state):
        there = super().step(objective, state)
        state.grad_theta[0] += 1.0
        return there


class Penalised(Halving):
    """Adds the penalty to the value."""

    def step(self, objective, state):
        there = super().step(objective, replace(state, value=objective.evaluate(state.theta, state.lam, None).value))
        return replace(there, value=objective.total(there.value, there.phi))


class Swallowing(Halving):
    def step(self, objective, state):
        try:
            return super().step(objective, state)
        except OutOfEvaluations:
            return state


class Evaluating(Halving):
    """Evaluates when the weight of the penalty changes."""

    def reweight(self, objective, state):
        objective.evaluate(state.theta, state.lam, None)
        return super().reweight(objective, state)


class Wandering(Halving):
    def reweight(self, objective, state):
        return replace(super().reweight(objective, state), value=0.0)


class Elsewhere(Halving):
    """Begins where it wants."""

    def init(self, objective, theta, lam, rng, warm=None):
        return super().init(objective, objective.problem.theta_set.start(), lam, rng, warm)


class Twice(Halving):
    def init(self, objective, theta, lam, rng, warm=None):
        objective.evaluate(theta, lam, warm)
        return super().init(objective, theta, lam, rng, warm)


class Idle(Halving):
    """Says that it has converged after two steps."""

    def done(self, objective, state):
        return state.length > 2.0 or super().done(objective, state)

    def step(self, objective, state):
        return replace(super().step(objective, state), length=2 * state.length)


class Jumping(Halving):
    """Takes every step that lowers the slope, whatever the value."""

    def step(self, objective, state):
        theta = objective.project_theta(state.theta - objective.slope(state.grad_theta, state.theta))
        got = objective.evaluate(theta, state.lam, None)
        if np.isfinite(got.value) and objective.total(got.value, objective.phi(theta)) >= objective.total(state.value, state.phi):
            return super().step(objective, state)
        return self.state(objective, theta, state.lam, got, 1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class ListState(HalvingState):
    path: list = field(default_factory=list)


class Listing(Halving):
    """Keeps a list in its state."""

    state_type: ClassVar = ListState

    def state(self, *arguments):
        return ListState(**vars(super().state(*arguments)))


@dataclass(frozen=True, kw_only=True)
class HiddenState(HalvingState):
    age: int = field(default=0, init=False)


class Hiding(Halving):
    """Its state has a field that cannot be set when it is read back."""

    state_type: ClassVar = HiddenState

    def state(self, *arguments):
        return HiddenState(**vars(super().state(*arguments)))


class Secret(Halving):
    """Keeps something beside the fields of its state, which a checkpoint loses."""

    def state(self, *arguments):
        made = super().state(*arguments)
        object.__setattr__(made, "longer", True)
        return made

    def step(self, objective, state):
        kept = 1.0 if hasattr(state, "longer") else 0.1
        return super().step(objective, replace(state, length=kept * state.length))


class Foreign(Halving):
    state_type: ClassVar = State


class Unnamed(Halving):
    state_type: ClassVar = None


class Raising(Halving):
    def step(self, objective, state):
        raise KeyError("momentum")


class Unfinished:
    def init(self, objective, theta, lam, rng, warm=None):
        raise NotImplementedError


WRONG = {
    Unprojected: "Unprojected.step must stay in the set of theta, Hypercube(12)",
    LamUnprojected: "LamUnprojected.step must keep lam in its unit box",
    Uphill: "Uphill.step must lower G + phi/eps within 10 steps",
    Counting: "Counting.step must be a pure function of the state; the field 'length' differs",
    Scribbling: "Scribbling.step must not write into the state that it is given; the field 'grad_theta' differs",
    Penalised: "Penalised.step must return G itself, without the penalty, as value of its point",
    Swallowing: "Swallowing.step must let OutOfEvaluations through",
    Evaluating: "Evaluating.reweight must evaluate nothing",
    Wandering: "Wandering.reweight must leave value as it is",
    Elsewhere: "Elsewhere.init must begin at the point that it is given",
    Twice: "Twice.init must evaluate once",
    Idle: "Idle.step must come to a stationary point of a convex problem",
    Jumping: "Jumping.step must not accept a point of infinite value",
    Listing: "its field 'path' is something else",
    Hiding: "Hiding.state_type must be a state_type that a checkpoint can write and read back",
    Secret: "Secret.step must do the same from a state that was read from a checkpoint",
    Foreign: "Foreign.init must return a state of the solver's state_type",
    Unnamed: "Unnamed.state_type must be the dataclass of the solver's states",
    Raising: "KeyError: 'momentum'",
    Unfinished: "Unfinished must have the methods of a solver",
}


@pytest.mark.parametrize(("kind", "message"), WRONG.items(), ids=[kind.__name__ for kind in WRONG])
def test_a_broken_promise_is_named(kind, message):
    with pytest.raises(ConformanceError, match=re.escape(message)) as caught:
        check_solver(kind())
    text = str(caught.value)
    assert "expected" in text
    assert "got" in text
    assert "seed      0" in text


def test_a_problem_is_named():
    with pytest.raises(ConformanceError, match="problem = an indefinite quadratic on one-hot rows"):
        check_solver(type("OneHotOnly", (Halving,), {"step": leaves_one_hot_rows})())


def leaves_one_hot_rows(self, objective, state):
    there = Halving.step(self, objective, state)
    return replace(there, theta=0.5 * there.theta) if isinstance(objective.problem.theta_set, mb.OneHot) else there


def test_bad_arguments():
    for name in ("trials", "steps", "convex_steps"):
        with pytest.raises(mb.InvalidInput, match=f"{name} must be a whole number of at least 1"):
            check_solver(Halving(), **{name: 0})

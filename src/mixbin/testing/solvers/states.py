"""What the states of a solver promise: plain data that tell the truth about their point and survive a checkpoint."""

import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixbin.checkpoint import Checkpoint
from mixbin.problem import Problem
from mixbin.solvers import Objective, State
from mixbin.testing.broken import ConformanceError, Subject

ROUNDING, LEAST = 1e-12, 1e-14
"""How far value and gradients of a state may be from those of an evaluation at its point, relative and absolute."""
FROM_WARM = 1e-6
"""The same for problems with a warm start, which are solved anew here from a cold one."""

Inputs = Mapping[str, Any]


def check_plain(subject: Subject, method: str, state: Any, inputs: Inputs) -> None:
    """The state is the solver's ``state_type``: a dataclass of arrays, numbers, and mappings of these."""
    kind = getattr(subject.made, "state_type", None)
    told = kind.__name__ if isinstance(kind, type) else repr(kind)
    if not isinstance(kind, type) or not is_dataclass(kind):
        promise = "must be the dataclass of the solver's states, which checkpoints are read back with"
        raise subject.broken("state_type", promise, {}, "a dataclass", told)
    promise = "must return a state of the solver's state_type"
    subject.require(type(state) is kind, method, promise, inputs, f"a {told}", f"a {type(state).__name__}")
    names = {field.name for field in fields(kind)}
    missing = sorted({field.name for field in fields(State)} - names)
    promise = "must have the fields of mixbin.solvers.State"
    subject.require(not missing, "state_type", promise, {}, "a subclass of State", f"a dataclass without {missing}")
    for name in names:
        value = getattr(state, name)
        inside = value.values() if isinstance(value, Mapping) else [value]
        if not all(_is_plain(item) for item in inside):
            promise = (
                f"must return a state of arrays and numbers, which a checkpoint can hold; its field {name!r} is something else"
            )
            expected = "an array, a number, a text, or a mapping of these"
            raise subject.broken(method, promise, inputs, expected, f"a {type(value).__name__}")


def _is_plain(value: object) -> bool:
    return isinstance(value, (bool, int, float, str, np.generic)) or (isinstance(value, np.ndarray) and value.dtype != object)


def check_inside(subject: Subject, method: str, problem: Problem, state: Any, inputs: Inputs) -> None:
    """The state's point lies in the sets: theta in its own, lam in its unit box."""
    theta_set = problem.theta_set
    theta = subject.array(f"{method}(...).theta", state.theta, inputs, theta_set.shape, np.float64)
    promise = f"must stay in the set of theta, {theta_set!r}"
    subject.require(theta_set.contains(theta), method, promise, inputs, "contains(state.theta) to be True", theta)
    lam = np.asarray(state.lam)
    inside = lam.shape == problem.lam_set.shape and bool(np.all((lam >= 0.0) & (lam <= 1.0)))
    promise = "must keep lam in its unit box (objective.project_lam does)"
    subject.require(inside, method, promise, inputs, "entries from 0 to 1", lam)


def check_truth(subject: Subject, method: str, problem: Problem, objective: Objective, state: Any, inputs: Inputs) -> None:
    """What the state says of its point is what the problem says there, unless the state says that it only estimates."""
    phi = objective.phi(state.theta)
    promise = "must return the penalty at its point as phi"
    subject.require(abs(state.phi - phi) <= ROUNDING * max(1.0, phi), method, promise, inputs, phi, state.phi)
    if not state.exact:
        return
    lam = problem.lam_set.decode(state.lam)
    got = problem.evaluate(state.theta, lam)
    in_unit_box = problem.lam_set.encode_gradient(lam, np.asarray(got.grad_lam))
    truth: dict[str, Any] = {"value": got.value, "grad_theta": got.grad_theta, "grad_lam": in_unit_box}
    relative, size = (FROM_WARM, float(np.abs(got.grad_theta).max(initial=0.0))) if got.warm else (ROUNDING, 0.0)  # type: ignore[arg-type]
    for name, true in truth.items():
        told = getattr(state, name)
        same = np.shape(told) == np.shape(true) and np.allclose(told, true, rtol=relative, atol=LEAST + relative * size)
        promise = f"must return G itself, without the penalty, as {name} of its point (or a state with exact=False)"
        subject.require(same, method, promise, inputs, true, told)


def check_survives_a_checkpoint(subject: Subject, objective: Objective, state: Any, inputs: Inputs) -> None:
    """Written to a checkpoint and read back, the state leads to the same next state, to the bit."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            kind = subject.made.state_type
            with Checkpoint(Path(folder) / "state.checkpoint", 0.0, {}, {kind.__name__: kind}) as checkpoint:
                checkpoint.save(state)
                loaded = checkpoint.load(kind)
        except Exception as error:
            promise = "must be a state_type that a checkpoint can write and read back"
            got = f"{type(error).__name__}: {error}"
            raise subject.broken("state_type", promise, inputs, "the same state", got) from error
    check_same(subject, "state_type", "must survive a checkpoint", state, loaded, inputs)
    here, there = (_stepped(subject, objective, it, inputs) for it in (state, loaded))
    check_same(subject, "step", "must do the same from a state that was read from a checkpoint", here, there, inputs)


def _stepped(subject: Subject, objective: Objective, state: Any, inputs: Inputs) -> Any:
    try:
        return subject.made.step(objective, state)
    except Exception as error:
        promise, got = "must go on from a state that was read from a checkpoint", f"{type(error).__name__}: {error}"
        raise subject.broken("step", promise, inputs, "the next state", got) from error


def snapshot(state: Any) -> dict[str, Any]:
    """Copies of all fields of a state."""
    return {field.name: _copied(getattr(state, field.name)) for field in fields(state)}


def _copied(value: Any) -> Any:
    return {name: np.copy(item) for name, item in value.items()} if isinstance(value, Mapping) else np.copy(value)


def check_same(subject: Subject, method: str, promise: str, one: Any, other: Any, inputs: Inputs) -> None:
    """All fields of two states, or of a state and a snapshot, have the same bits."""
    here, there = (it if isinstance(it, dict) else snapshot(it) for it in (one, other))
    for name in here:
        if not _same(here[name], there[name]):
            raise difference(subject, method, promise, name, here[name], there[name], inputs)


def difference(
    subject: Subject, method: str, promise: str, name: str, here: object, there: object, inputs: Inputs
) -> ConformanceError:
    """The error for two states that differ in one field."""
    return subject.broken(method, f"{promise}; the field {name!r} differs", inputs, here, there)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return bool(np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"))

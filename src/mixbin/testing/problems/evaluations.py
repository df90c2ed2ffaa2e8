"""What ``evaluate`` promises: the right shapes, the same bits for the same arguments, warm starts that only save time."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixbin.problem import PREFERENCES, Evaluation, Floats, Problem, Warm
from mixbin.testing.broken import Subject, locked

SAME_WITHOUT_GRADIENT = 1e-9


class Evaluations:
    """A problem's evaluations as the engine makes them: read-only arguments, every answer checked."""

    def __init__(self, subject: Subject, problem: Problem, trials: int) -> None:
        self.subject, self.problem, self.trials = subject, problem, trials
        self.rng = np.random.default_rng(subject.seed)

    def inside(self) -> tuple[Floats, Floats]:
        """A random point of the sets, with theta between the centre, a random start and a binary point."""
        theta_set, weights = self.problem.theta_set, self.rng.dirichlet(np.ones(3))
        corners = theta_set.start(), theta_set.start(self.rng), self.binary()
        theta = np.sum([w * x for w, x in zip(weights, corners, strict=True)], axis=0)
        return np.asarray(np.clip(theta, 0.0, 1.0)), self.problem.lam_set.start(self.rng)

    def binary(self) -> Floats:
        """A random binary point, as float64."""
        return self.problem.theta_set.vertex(self.rng.uniform(size=self.problem.theta_set.shape)).astype(np.float64)

    def at(self, theta: Floats, lam: Floats, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """One evaluation, its parts checked."""
        inputs = {"theta": theta, "lam": lam}
        given = None if warm is None else {name: np.copy(value) for name, value in warm.items()}
        got = self.subject.call("evaluate", inputs, warm=given, gradient=gradient)
        unchanged = given is None or (warm is not None and same_warm(given, warm))
        self.subject.require(unchanged, "evaluate", "must not write into warm", inputs, warm, given)
        return self.checked("evaluate", got, inputs, gradient)

    def checked(self, method: str, got: Any, inputs: Mapping[str, Any], gradient: bool = True) -> Evaluation:
        """An answer that must be an Evaluation, with all its parts as promised."""
        subject = self.subject
        if not isinstance(got, Evaluation):
            raise subject.broken(method, "must return a mixbin.Evaluation", inputs, "an Evaluation", type(got).__name__)
        value = subject.number(method, got.value, inputs)
        subject.require(value > -np.inf, method, "must return a value above -inf", inputs, "a number, or inf", value)
        if not isinstance(got.warm, Mapping) or not all(map(_is_plain, got.warm.values())):
            promise = "must return a mapping of arrays as warm, which a checkpoint can hold"
            raise subject.broken(method, promise, inputs, "a dict of NumPy arrays of numbers", got.warm)
        if not isinstance(got.info, Mapping) or not all(isinstance(it, (int, float, np.number)) for it in got.info.values()):
            raise subject.broken(method, "must return a mapping of numbers as info", inputs, "a dict of floats", got.info)
        if not gradient:
            return got._replace(value=value)
        grads: dict[str, Any] = {}
        for name, shape in (("grad_theta", self.problem.theta_set.shape), ("grad_lam", self.problem.lam_set.shape)):
            grad = np.asarray(getattr(got, name))
            promise = f"must return one derivative per entry as {name}"
            subject.require(grad.shape == shape, method, promise, inputs, f"shape {shape}", f"shape {grad.shape}")
            promise = f"must return finite numbers as {name} where the value is finite"
            fine = grad.dtype.kind in "fiu" and (np.isinf(value) or bool(np.isfinite(grad).all()))
            subject.require(fine, method, promise, inputs, "finite numbers", grad)
            grads[name] = grad.astype(np.float64)
        return got._replace(value=value, **grads)


def _is_plain(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype != object


def same_warm(one: Warm, other: Warm) -> bool:
    """Whether two warm states have the same bits."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


def close(one: float, other: float, tol: float) -> bool:
    """Whether two values are equal up to ``tol`` of their size; infinities are equal to themselves."""
    return one == other or abs(one - other) <= tol * max(abs(one), abs(other), 1e-300)


def check_start(at: Evaluations) -> None:
    """The model can be trained at the centre, where runs begin."""
    theta, lam = at.problem.theta_set.start(), at.problem.lam_set.start()
    value = at.at(theta, lam).value
    promise = "must be finite at the centre of the sets, where runs begin"
    at.subject.require(np.isfinite(value), "evaluate", promise, {"theta": theta, "lam": lam}, "a finite value", value)


def check_pure(at: Evaluations) -> None:
    """Same arguments, same bits: again, after other points, and after warm starts."""
    for trial in range(at.trials):
        theta, lam = at.inside() if trial % 2 == 0 else (at.binary(), at.problem.lam_set.start(at.rng))
        first = at.at(theta, lam)
        _check_same(at, theta, lam, None, first, "when it is repeated")
        elsewhere = at.at(*at.inside())
        _check_same(at, theta, lam, None, first, "after an evaluation elsewhere")
        warm = at.at(theta, lam, elsewhere.warm)
        _check_same(at, theta, lam, elsewhere.warm, warm, "when it is repeated from the same warm")
        _check_same(at, theta, lam, None, first, "from a cold start, after a warm one")
        at.at(theta, lam, first.warm, gradient=False)
        _check_same(at, theta, lam, None, first, "after an evaluation without gradient")


def _check_same(at: Evaluations, theta: Floats, lam: Floats, warm: Warm | None, first: Evaluation, when: str) -> None:
    got = at.at(theta, lam, warm)
    for name in ("value", "grad_theta", "grad_lam", "warm"):
        before, after = getattr(first, name), getattr(got, name)
        same = same_warm(before, after) if name == "warm" else np.array_equal(before, after, equal_nan=True)
        promise = f"must return the same bits for the same arguments; {name} differs {when}"
        at.subject.require(same, "evaluate", promise, {"theta": theta, "lam": lam}, before, after)


def check_without_gradient(at: Evaluations) -> None:
    """The value does not depend on whether a gradient is asked for."""
    for theta, lam in (at.inside(), (at.binary(), at.problem.lam_set.start(at.rng))):
        whole, value = at.at(theta, lam), at.at(theta, lam, gradient=False)
        promise = "must return the same value with gradient=False"
        same = close(whole.value, value.value, SAME_WITHOUT_GRADIENT)
        at.subject.require(same, "evaluate", promise, {"theta": theta, "lam": lam}, whole.value, value.value)


def check_warm(at: Evaluations, value_tol: float, gradient_tol: float | None) -> None:
    """From the warm state of another point the same value comes out, up to how exactly the lower level is solved."""
    for _ in range(at.trials):
        theta, lam = at.inside()
        cold, warm = at.at(theta, lam), at.at(theta, lam, at.at(*at.inside()).warm)
        inputs = {"theta": theta, "lam": lam, "warm": "that of another point"}
        promise = f"must return the same value from a warm start, up to value_tol={value_tol:g}"
        at.subject.require(close(cold.value, warm.value, value_tol), "evaluate", promise, inputs, cold.value, warm.value)
        if gradient_tol is None or not np.isfinite(cold.value):
            continue
        for name in ("grad_theta", "grad_lam"):
            before, after = np.asarray(getattr(cold, name)), np.asarray(getattr(warm, name))
            same = np.abs(before - after).max(initial=0.0) <= gradient_tol * np.abs(before).max(initial=0.0)
            promise = f"must return the same {name} from a warm start, up to gradient_tol={gradient_tol:g}"
            at.subject.require(bool(same), "evaluate", promise, inputs, before, after)


def check_suggest(at: Evaluations) -> None:
    """The suggested start is a point of the set, and depends on the generator alone."""
    seed, shape = at.subject.seed, at.problem.theta_set.shape
    inputs = {"rng": f"default_rng({seed})"}
    made = [at.subject.call("suggest", {"rng": np.random.default_rng(seed)}) for _ in range(2)]
    theta = at.subject.array("suggest", made[0], inputs, shape, np.float64)
    inside = at.problem.theta_set.contains(locked(theta))
    at.subject.require(inside, "suggest", "must return a point of theta_set", inputs, "a point for which contains holds", theta)
    same = np.array_equal(*made)
    at.subject.require(same, "suggest", "must depend on the generator alone", inputs, made[0], made[1])
    value = at.at(theta, at.problem.lam_set.start()).value
    at.subject.require(np.isfinite(value), "suggest", "must return a point of finite value", inputs, "a finite value", value)


def check_fingerprint(at: Evaluations, before: object, others: tuple[Any, ...]) -> None:
    """A text that use does not change, and that tells this problem from others."""
    subject = at.subject
    subject.require(isinstance(before, str) and before != "", "fingerprint", "must return a text", {}, "a str", before)
    after = subject.call("fingerprint", {})
    subject.require(before == after, "fingerprint", "must not change when the problem is used", {}, before, after)
    for other in others:
        promise = f"must differ from that of {type(other).__name__} number {others.index(other) + 1} of others, another problem"
        got = other.fingerprint()
        subject.require(got != before, "fingerprint", promise, {}, f"anything but {before}", got)


def check_preferred_settings(at: Evaluations) -> None:
    """``preferred_settings`` names settings that a problem may choose, with whole numbers, and stays the same."""
    problem: Any = at.problem
    given, allowed = problem.preferred_settings, " and ".join(PREFERENCES)
    named = isinstance(given, Mapping) and set(given) <= set(PREFERENCES)
    promise, expected = f"must be a mapping whose names are among {allowed}", '{"inner_steps": 5, "starts": 1}, say'
    at.subject.require(named, "preferred_settings", promise, {}, expected, given)
    for name, number in given.items():
        whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool) and number >= 1
        promise = f"must have a whole number of at least 1 for {name}"
        at.subject.require(whole, "preferred_settings", promise, {}, "1 or more", number)
    again = problem.preferred_settings
    at.subject.require(
        dict(again) == dict(given), "preferred_settings", "must not change when the problem is used", {}, given, again
    )

"""check_problem on a stranger's problem, and on problems that each break one promise."""

import re
from itertools import count

import numpy as np
import pytest

import mixbin as mb
from mixbin.problem import Improved, LocalSearch, PointValues
from mixbin.testing import ConformanceError, check_problem
from tests.testing.strangers import Fit


def test_a_strangers_problem_conforms():
    assert isinstance(Fit(), LocalSearch)
    check_problem(Fit(), trials=4, others=[Fit(seed=1), Fit(terms=13)])


def test_a_function_is_enough():
    cost = np.arange(5.0)
    check_problem(mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(5, 2)))


def changed(**parts):
    """Fit whose evaluations have other parts, each a function of the problem, theta, lam and the true evaluation."""

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        got = Fit.evaluate(self, theta, lam)
        return got._replace(**{name: part(self, theta, lam, got) for name, part in parts.items()})

    return type("Wrong", (Fit,), {"evaluate": evaluate})()


def replaced(**methods):
    return type("Wrong", (Fit,), methods)()


def writes(self, theta, lam, *, warm=None, gradient=True):
    theta[0] = 1.0
    return Fit.evaluate(self, theta, lam)


def writes_into_warm(self, theta, lam, *, warm=None, gradient=True):
    if warm is not None:
        warm["sums"][0] += 1.0
    return Fit.evaluate(self, theta, lam)


def believes_warm(self, theta, lam, *, warm=None, gradient=True):
    got = Fit.evaluate(self, theta, lam)
    return got if warm is None else got._replace(value=got.value + 1e-3 * float(np.abs(warm["sums"]).sum()))


def warm_gradient(self, theta, lam, *, warm=None, gradient=True):
    got = Fit.evaluate(self, theta, lam)
    return got if warm is None else got._replace(grad_theta=got.grad_theta * 1.01)


def remembers(self, theta, lam, *, warm=None, gradient=True):
    """Keeps what is warm in itself, against the contract."""
    if warm is not None:
        self.kept = 1e-9 * float(np.abs(warm["sums"]).sum())
    got = Fit.evaluate(self, theta, lam)
    return got._replace(value=got.value + getattr(self, "kept", 0.0))


def drops_rows(self, theta, lam, *, warm=None, gradient=True):
    got = Fit.evaluate(self, theta, lam)
    return got if gradient else got._replace(value=0.99 * got.value)


def sum_of_terms(self, theta, lam, terms, *, warm=None):
    got = Fit.evaluate_terms(self, theta, lam, terms)
    return got if len(terms) == self.n_terms else got._replace(value=len(terms) * got.value)


def terms_gradient(self, theta, lam, terms, *, warm=None):
    got = Fit.evaluate_terms(self, theta, lam, terms)
    return got if len(terms) == self.n_terms else got._replace(grad_theta=0.5 * got.grad_theta)


def first_term_counts_twice(self, theta, lam, terms, *, warm=None):
    """Right for single terms and for all of them."""
    terms = np.asarray(terms)
    return Fit.evaluate_terms(self, theta, lam, np.append(terms, terms[0]) if 1 < len(terms) < self.n_terms else terms)


def linear_moves(self, theta, lam, off, on, *, warm=None):
    """The linear model instead of the value."""
    got = Fit.evaluate(self, theta, lam)
    g = np.append(got.grad_theta, 0.0)
    return got.value + g[on] - g[off]


def second_best(self, theta, lam, *, warm=None):
    off, on = (np.concatenate(side) for side in zip(*self.theta_set.moves(theta), strict=True))
    values = self.evaluate_moves(theta, lam, off, on)
    k = np.argsort(values)[1]
    return int(off[k]), int(on[k]), float(values[k])


def best_value_of_another_move(self, theta, lam, *, warm=None):
    return (*second_best(self, theta, lam)[:2], Fit.best_move(self, theta, lam)[2])


def worse(self, theta, lam, *, warm=None):
    off, on = (np.concatenate(side) for side in zip(*self.theta_set.moves(theta), strict=True))
    k = self.evaluate_moves(theta, lam, off, on).argmax()
    return Improved(self.moved(theta, off[k], on[k]) > 0.5)


def claims_to_have_tried_all(self, theta, lam, *, warm=None):
    return Improved(np.asarray(theta) > 0.5, self.theta_set.n_moves(theta), 0.0)


def too_low_a_change(self, theta, lam, *, warm=None):
    got = Fit.improve(self, theta, lam)
    return got._replace(best_change=got.best_change - 1.0) if got.tried else got


def leaves_the_set(self, theta, lam, *, warm=None):
    return Improved(np.zeros(6, bool))


def costs(cost):
    return lambda self, theta, lam, *, warm=None: Fit.improve(self, theta, lam)._replace(cost=cost(self, theta))


def goes_on_after_its_limit(self, theta, lam, *, warm=None, max_cost=None):
    return Fit.improve(self, theta, lam)._replace(cost=9)


NUMBERS = count()


def points_by_themselves(change=0.0, cost=7, refuses=True, shape=None):
    """evaluate_points of Fit by single evaluations; the arguments say what is wrong about it."""

    def evaluate_points(self, theta, lam, *, max_cost=np.inf):
        if refuses and cost > max_cost:
            return None
        values = [
            [Fit.evaluate(self, v.astype(float), x).value + change for x in some] for v, some in zip(theta, lam, strict=True)
        ]
        return PointValues(np.array(values)[:shape], cost)

    return replaced(evaluate_points=evaluate_points)


def test_many_points_conform():
    check_problem(points_by_themselves())


WRONG = {
    "values of points": (points_by_themselves(change=1e-3), "Wrong.evaluate_points must return the value of each point"),
    "too few points": (points_by_themselves(shape=1), "Wrong.evaluate_points must return a value for each point with each lam"),
    "points cost nothing": (points_by_themselves(cost=0), "Wrong.evaluate_points must return cost, what it computed"),
    "points at any cost": (
        points_by_themselves(refuses=False),
        "Wrong.evaluate_points must return None if it costs more than max_cost",
    ),
    "gradient with a factor": (
        changed(grad_theta=lambda self, theta, lam, got: 2 * got.grad_theta),
        "Wrong.evaluate must return the gradient of its value as grad_theta",
    ),
    "gradient with a sign": (
        changed(grad_theta=lambda self, theta, lam, got: -got.grad_theta),
        "-1 times as much",
    ),
    "one entry of the gradient": (
        changed(grad_theta=lambda self, theta, lam, got: got.grad_theta + 0.1 * (np.arange(6) == 3)),
        "Wrong.evaluate must return the gradient of its value as grad_theta",
    ),
    "gradient in lam": (
        changed(grad_lam=lambda self, theta, lam, got: 1.01 * got.grad_lam),
        "Wrong.evaluate must return the gradient of its value as grad_lam",
    ),
    "gradient of another shape": (
        changed(grad_theta=lambda self, theta, lam, got: got.grad_theta[:5]),
        "Wrong.evaluate must return one derivative per entry as grad_theta",
    ),
    "no gradient": (changed(grad_lam=lambda self, theta, lam, got: None), "one derivative per entry as grad_lam|as grad_lam"),
    "gradient that is not finite": (
        changed(grad_theta=lambda self, theta, lam, got: got.grad_theta * np.nan),
        "Wrong.evaluate must return finite numbers as grad_theta",
    ),
    "value that is not a number": (
        changed(value=lambda self, theta, lam, got: np.nan),
        "Wrong.evaluate must return one real number",
    ),
    "value that is an array": (
        changed(value=lambda self, theta, lam, got: np.ones(1)),
        "Wrong.evaluate must return one real number",
    ),
    "value without a bound": (changed(value=lambda self, theta, lam, got: -np.inf), "must return a value above -inf"),
    "nothing to begin with": (
        changed(value=lambda self, theta, lam, got: np.inf),
        "Wrong.evaluate must be finite at the centre of the sets",
    ),
    "impure": (
        changed(value=lambda self, theta, lam, got: got.value + 1e-12 * next(NUMBERS)),
        "Wrong.evaluate must return the same bits for the same arguments; value differs when it is repeated",
    ),
    "impure gradient": (
        changed(grad_theta=lambda self, theta, lam, got: got.grad_theta * (1 + 1e-12 * next(NUMBERS))),
        "Wrong.evaluate must return the same bits for the same arguments; grad_theta differs",
    ),
    "remembers": (replaced(evaluate=remembers), "value differs from a cold start, after a warm one"),
    "writes into theta": (replaced(evaluate=writes), "Wrong.evaluate must not write into its arguments"),
    "writes into warm": (replaced(evaluate=writes_into_warm), "Wrong.evaluate must not write into warm"),
    "warm of lists": (changed(warm=lambda *_: {"path": [1, 2]}), "must return a mapping of arrays as warm"),
    "warm of objects": (changed(warm=lambda *_: {"path": np.array([{}])}), "must return a mapping of arrays as warm"),
    "info of texts": (changed(info=lambda *_: {"solver": "cg"}), "must return a mapping of numbers as info"),
    "believes warm": (replaced(evaluate=believes_warm), "Wrong.evaluate must return the same value from a warm start"),
    "warm gradient": (replaced(evaluate=warm_gradient), "Wrong.evaluate must return the same grad_theta from a warm start"),
    "another value without gradient": (
        replaced(evaluate=drops_rows),
        "Wrong.evaluate must return the same value with gradient=False",
    ),
    "no evaluation": (
        replaced(evaluate=lambda self, theta, lam, *, warm=None, gradient=True: (0.0, theta)),
        "Wrong.evaluate must return a mixbin.Evaluation",
    ),
    "raises": (changed(value=lambda *_: 1 / 0), "ZeroDivisionError: division by zero"),
    "sum of terms": (replaced(evaluate_terms=sum_of_terms), "Wrong.evaluate_terms must return the mean over the terms that"),
    "gradient of terms": (
        replaced(evaluate_terms=terms_gradient),
        "Wrong.evaluate_terms must average to evaluate over all terms; grad_theta differs",
    ),
    "terms that count twice": (
        replaced(evaluate_terms=first_term_counts_twice),
        "Wrong.evaluate_terms must return the mean over the terms that it is given",
    ),
    "moves by a linear model": (
        replaced(evaluate_moves=linear_moves),
        "Wrong.evaluate_moves must return the value after each move",
    ),
    "too few values of moves": (
        replaced(evaluate_moves=lambda self, theta, lam, off, on, *, warm=None: np.zeros(1)),
        "Wrong.evaluate_moves must return one value per move",
    ),
    "second best move": (replaced(best_move=second_best), "Wrong.best_move must return the best of all single moves"),
    "value of another move": (
        replaced(best_move=best_value_of_another_move),
        "Wrong.best_move must return the value that its move leads to",
    ),
    "no move": (
        replaced(best_move=lambda self, theta, lam, *, warm=None: 0),
        "Wrong.best_move must return (off, on, value) or None",
    ),
    "improves upwards": (replaced(improve=worse), "Wrong.improve must return a point of lower value, or theta unchanged"),
    "improves out of the set": (replaced(improve=leaves_the_set), "Wrong.improve must return a binary point of theta_set"),
    "tried too much": (replaced(improve=claims_to_have_tried_all), "Wrong.improve must count as tried only moves"),
    "change of no move": (
        replaced(improve=too_low_a_change),
        "Wrong.improve must return the change by the best of the moves it counts as tried",
    ),
    "search that costs nothing": (replaced(improve=costs(lambda self, theta: 0)), "Wrong.improve must return cost"),
    "cost of another call": (
        replaced(improve=costs(lambda self, theta: 1 + next(NUMBERS))),
        "Wrong.improve must return the same for the same arguments",
    ),
    "cost above its limit": (
        replaced(improve=goes_on_after_its_limit),
        "Wrong.improve must stop before its cost exceeds max_cost",
    ),
    "prefers what is no setting": (
        replaced(preferred_settings={"patience": 3}),
        "Wrong.preferred_settings must be a mapping whose names are among",
    ),
    "prefers no starts": (
        replaced(preferred_settings={"starts": 0}),
        "Wrong.preferred_settings must have a whole number of at least 1 for starts",
    ),
    "prefers by chance": (
        replaced(preferred_settings=property(lambda self: {"starts": 1 + next(NUMBERS)})),
        "Wrong.preferred_settings must not change when the problem is used",
    ),
    "suggests outside": (
        replaced(suggest=lambda self, rng: np.zeros(6)),
        "Wrong.suggest must return a point of theta_set",
    ),
    "suggests by chance": (
        replaced(suggest=lambda self, rng: self.theta_set.start(np.random.default_rng(next(NUMBERS)))),
        "Wrong.suggest must depend on the generator alone",
    ),
    "lower bound too high": (
        replaced(lower_bound=lambda self, theta, lam: Fit.evaluate(self, theta, lam).value),
        "Wrong.lower_bound must not exceed the value of any binary theta with any lam",
    ),
    "lower bound that is none": (
        replaced(lower_bound=lambda self, theta, lam: None),
        "Wrong.lower_bound must return one real number",
    ),
    "fingerprint of bytes": (replaced(fingerprint=lambda self: b"fit"), "Wrong.fingerprint must return a text"),
    "another fingerprint": (
        replaced(fingerprint=lambda self: f"fit {next(NUMBERS)}"),
        "Wrong.fingerprint must not change when the problem is used",
    ),
    "sets": (
        replaced(lam_set=3.0, __init__=lambda self: setattr(self, "theta_set", mb.Hypercube(2))),
        "Wrong.lam_set must be a Box",
    ),
}


@pytest.mark.parametrize(("problem", "message"), WRONG.values(), ids=WRONG)
def test_a_broken_promise_is_named(problem, message):
    pattern = "|".join(re.escape(part) for part in message.split("|"))
    with pytest.raises(ConformanceError, match=pattern) as caught:
        check_problem(problem)
    text = str(caught.value)
    assert "expected" in text
    assert "got" in text
    assert "seed      0" in text


def test_the_input_of_a_wrong_slope_is_shown():
    with pytest.raises(ConformanceError, match="2 times as much") as caught:
        check_problem(WRONG["gradient with a factor"][0])
    for name in ("theta", "lam", "direction"):
        assert f"input     {name} = " in str(caught.value)


class Counted(dict):
    """A warm state with a count that is no array."""

    count = 0


class Hiding(Fit):
    """Its gradients depend on a count that is handed on with the warm state, but that no checkpoint holds."""

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        got, after = Fit.evaluate(self, theta, lam), Counted(sums=self.A @ theta)
        after.count = getattr(warm, "count", 0) + 1
        factor = 1 - 0.01 * min(after.count - 1, 50)
        return got._replace(grad_theta=factor * got.grad_theta, grad_lam=factor * got.grad_lam, warm=after)


class Stuck(Fit):
    """Cannot be evaluated at some of the points that only a run comes to."""

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        if np.all((theta == 0) | (theta == 1)) and warm is not None and lam != self.lam_set.start():
            raise RuntimeError("no model")
        return Fit.evaluate(self, theta, lam)


def test_a_run_that_does_not_go_on_as_it_was():
    with pytest.raises(ConformanceError, match=r"Hiding must go on from a checkpoint to the same \w+") as caught:
        check_problem(Hiding(), trials=1)
    assert "stopped after step = " in str(caught.value)


def test_a_run_that_does_not_come_through():
    with pytest.raises(ConformanceError, match="RuntimeError: no model") as caught:
        check_problem(Stuck(), trials=1, value_tol=None)
    assert "Stuck must get through a run of relax_and_penalize" in str(caught.value)


def test_fingerprints_of_different_problems():
    with pytest.raises(ConformanceError, match="fingerprint must differ from that of Fit number 2 of others"):
        check_problem(Fit(), trials=1, others=[Fit(seed=1), Fit()])


def test_gradients_and_warm_starts_may_be_left_out():
    halved = mb.FunctionProblem(lambda theta: (theta @ theta, theta), mb.Budget(5, 2))
    with pytest.raises(ConformanceError, match=r"0\.5 times as much"):
        check_problem(halved)
    check_problem(halved, gradient_tol=None)
    check_problem(WRONG["warm gradient"][0], gradient_tol=None, trials=1)
    check_problem(WRONG["believes warm"][0], value_tol=None, trials=1)

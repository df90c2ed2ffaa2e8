"""check_set on a stranger's set, and on sets that each break one promise."""

import re

import numpy as np
import pytest

import mixbin as mb
from mixbin.testing import ConformanceError, check_set
from tests.testing.strangers import AtLeast


@pytest.mark.parametrize(("size", "k"), [(5, 2), (6, 5), (4, 4), (3, 0), (1, 1), (40, 9)])
def test_a_strangers_set_conforms(size, k):
    check_set(AtLeast(size, k), others=[AtLeast(size + 1, k), AtLeast(size, 0) if k else AtLeast(size, 1)])


@pytest.mark.slow
def test_more_trials_and_other_seeds():
    for seed in range(3):
        check_set(AtLeast(7, 3), seed=seed, trials=40)


def replaced(method, function, size=6, k=2):
    """AtLeast with another method; the function sees the set and the arguments."""
    return type("Wrong", (AtLeast,), {method: function})(size, k)


def right(method):
    return lambda self, *arguments: getattr(AtLeast, method)(self, *arguments)


def writes(self, x):
    x -= 1.0
    return AtLeast.project(self, x)


def without_one_move(self, theta, grad=None):
    for off, on in AtLeast.moves(self, theta, grad):
        keep = ~((off == np.flatnonzero(theta)[0]) & (on == on.max()))
        yield off[keep], on[keep]


def one_move_twice(self, theta, grad=None):
    for off, on in AtLeast.moves(self, theta, grad):
        yield np.append(off, off[-1]), np.append(on, on[-1])


def out_of_the_set(self, theta, grad=None):
    yield from AtLeast.moves(self, theta, grad)
    if np.count_nonzero(theta) == self.k:
        yield np.flatnonzero(theta)[:1], np.array([-1])


def highest_first(self, theta, grad=None):
    for off, on in AtLeast.moves(self, theta, grad):
        yield off[::-1], on[::-1]


def only_half_of_it(self, theta, grad=None):
    for off, on in AtLeast.moves(self, theta, grad):
        yield off, on[:-1]


def one_twice(self):
    yield np.ones(6, bool)
    yield from AtLeast.vertices(self)


def all_but_one(self):
    return (v for v in AtLeast.vertices(self) if not v.all())


def shared_start(self, rng=None):
    if not hasattr(self, "kept"):
        object.__setattr__(self, "kept", AtLeast.start(self))
    return self.kept if rng is None else AtLeast.start(self, rng)


def with_a_cache(self, x):
    self.last = np.asarray(x).tobytes()
    return AtLeast.vertex(self, x)


def from_global_numbers(self, x):
    np.random.normal()  # noqa: NPY002
    return AtLeast.project(self, x)


WRONG = {
    "projects onto the box": ("project", lambda self, x: np.clip(x, 0, 1), "Wrong.project must return a point of the set"),
    "projects to a vertex": (
        "project",
        lambda self, x: AtLeast.vertex(self, x).astype(float),
        "Wrong.project must return the nearest point of the set",
    ),
    "projects a little beside": (
        "project",
        lambda self, x: 0.999 * AtLeast.project(self, x) + 0.001,
        "Wrong.project must leave points of the set where they are",
    ),
    "returns its argument": (
        "project",
        lambda self, x: x if self.contains(x) else AtLeast.project(self, x),
        "Wrong.project must never return its argument",
    ),
    "writes into x": ("project", writes, "Wrong.project must not write into its arguments"),
    "projects to single precision": (
        "project",
        lambda self, x: AtLeast.project(self, x).astype(np.float32),
        "Wrong.project must return an array of the promised shape and dtype",
    ),
    "raises": ("project", lambda self, x: 1 / 0, "ZeroDivisionError: division by zero"),
    "global random numbers": ("project", from_global_numbers, "Wrong must leave NumPy's global random numbers alone"),
    "vertex outside": ("vertex", lambda self, x: np.asarray(x) >= 0.5, "Wrong.vertex must return binary points of the set only"),
    "vertex far away": (
        "vertex",
        lambda self, x: np.argsort(np.argsort(-np.asarray(x), kind="stable")) < 2,
        "Wrong.vertex must return a nearest binary point of the set",
    ),
    "vertex of floats": ("vertex", lambda self, x: AtLeast.vertex(self, x) * 1.0, "and dtype bool"),
    "a cache in its attributes": ("vertex", with_a_cache, "Wrong.fingerprint must not change when the set is used"),
    "oracle uphill": (
        "linear_oracle",
        lambda self, g: AtLeast.linear_oracle(self, -np.asarray(g)),
        "Wrong.linear_oracle must minimise <g, z> over the set",
    ),
    "contains the box": (
        "contains",
        lambda self, x: bool(np.min(x) >= -1e-9 and np.max(x) <= 1 + 1e-9),
        "of the set (contains holds there)",
    ),
    "contains everything": ("contains", lambda self, x: True, "Wrong.contains must not hold outside of [0, 1]^p"),
    "violation in the set": ("violation", lambda self, theta: 1.0, "Wrong.violation must be 0 exactly where contains holds"),
    "start outside": ("start", lambda self, rng=None: np.zeros(6), "Wrong.start() must return a point of the set"),
    "start without the generator": (
        "start",
        lambda self, rng=None: AtLeast.start(self),
        "Wrong.start must differ for different generators",
    ),
    "start that is shared": ("start", shared_start, "Wrong.start must return a fresh array each time"),
    "rounds down": ("round", lambda self, x: np.asarray(x) > 0.5, "Wrong.round must be True exactly where x is at least 1/2"),
    "tangent of half": (
        "tangent",
        lambda self, g: np.asarray(g) / 2,
        "Wrong.tangent must have the product of g with every direction",
    ),
    "a vertex twice": ("vertices", one_twice, "Wrong.vertices must list each binary point once"),
    "a vertex outside": (
        "vertices",
        lambda self: iter([np.zeros(6, bool)]),
        "Wrong.vertices must return binary points of the set only",
    ),
    "a vertex missing": ("vertices", all_but_one, "Wrong.vertices must list every binary point of the set"),
    "cardinality": ("cardinality", lambda self: 64, "Wrong.cardinality must be the number of binary points"),
    "a move missing": ("moves", without_one_move, "Wrong.moves must yield every single move"),
    "a move twice": ("moves", one_move_twice, "Wrong.moves must yield each move once"),
    "a move out of the set": ("moves", out_of_the_set, "Wrong.moves must lead to points of the set only"),
    "moves in the wrong order": ("moves", highest_first, "Wrong.moves must order a batch by grad[on] - grad[off]"),
    "moves of different lengths": ("moves", only_half_of_it, "Wrong.moves must yield batches (off, on) of flat indices"),
    "n_moves": (
        "n_moves",
        lambda self, theta: AtLeast.n_moves(self, theta) + 1,
        "Wrong.n_moves must be the number of moves that moves yields",
    ),
    "epsilon_star": (
        "epsilon_star",
        lambda self, theta, grad: 2 * AtLeast.epsilon_star(self, theta, grad),
        "Wrong.epsilon_star must be the largest eps up to which theta is a local minimiser",
    ),
    "epsilon_star of flips": (
        "epsilon_star",
        lambda self, theta, grad: mb.Hypercube(6).epsilon_star(theta, grad),
        "Wrong.epsilon_star must be the largest eps up to which theta is a local minimiser",
    ),
    "fingerprint": ("fingerprint", lambda self: repr(object()), "Wrong.fingerprint must"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "function", "message"), WRONG.values(), ids=WRONG)
def test_a_broken_promise_is_named(method, function, message):
    with pytest.raises(ConformanceError, match=re.escape(message)) as caught:
        check_set(replaced(method, function))
    text = str(caught.value)
    assert "expected" in text
    assert "got" in text
    assert "seed      0" in text


LARGE = [
    "projects onto the box",
    "projects to a vertex",
    "writes into x",
    "vertex outside",
    "oracle uphill",
    "a move twice",
    "moves in the wrong order",
    "n_moves",
    "epsilon_star",
]


@pytest.mark.parametrize("name", LARGE)
def test_a_broken_promise_is_named_where_points_cannot_all_be_listed(name):
    method, function, message = WRONG[name]
    with pytest.raises(ConformanceError, match=re.escape(message)):
        check_set(replaced(method, function, 40, 9), trials=8)


def test_the_wrappers_of_these_tests_conform():
    for method in ("project", "vertex", "moves", "violation"):
        check_set(replaced(method, right(method)), trials=5)


def test_the_input_is_shown_with_all_its_digits():
    with pytest.raises(ConformanceError) as caught:
        check_set(replaced("project", lambda self, x: np.clip(x, 0, 1)), seed=3)
    shown = re.search(r"input     x = (\[.*\])", str(caught.value)).group(1)
    x = np.array(eval(shown))
    assert np.clip(x, 0, 1).sum() < 2
    assert "seed      3" in str(caught.value)


def test_keys_that_promise_too_much():
    weights = np.array([1.0, 2.0, 3.0, 1.5])
    check_set(mb.Knapsack(weights, 4.0), exact_cardinality=False)
    wrong = mb.Knapsack(weights, 4.0)
    wrong.exchange_key = 0.0
    with pytest.raises(ConformanceError, match="exchange_key must differ where an exchange between two entries leaves the set"):
        check_set(wrong, exact_cardinality=False)


def test_fingerprints_of_different_sets():
    with pytest.raises(ConformanceError, match=r"fingerprint must differ from that of Budget\(5, 2\), another set"):
        check_set(mb.Budget(5, 2), others=[mb.Budget(5, 2)])


def test_exchanges_may_be_ruled_out():
    check_set(mb.Hypercube(4), exchanges=False)
    with pytest.raises(ConformanceError, match=r"Hypercube\.moves must yield every single move"):
        check_set(mb.Hypercube(4), exchanges=True)
    with pytest.raises(ConformanceError, match="must yield no exchanges"):
        check_set(mb.Budget(4, 2, at_most=True), exchanges=False)


def test_what_is_no_set():
    with pytest.raises(ConformanceError, match="int must be a BinarySet"):
        check_set(3)
    with pytest.raises(mb.InvalidInput, match="trials must be a whole number of at least 1"):
        check_set(mb.Hypercube(2), trials=0)

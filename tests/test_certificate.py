"""Certificates: eps* against brute force, moves counted and tried as stated, and words that claim no more than was checked."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.penalties import Logarithmic, Quadratic
from tests.instances import quadratic

NO_LAM = np.empty(0)


def tight_knapsack(rng):
    """A knapsack and a selection that uses its capacity to the last bit, so that all directions of its cone matter."""
    weights = rng.integers(1, 6, size=7).astype(float)
    theta = rng.uniform(size=7) < 0.5
    theta[rng.integers(7)] = True
    return mb.Knapsack(weights, float(weights @ theta)), theta


def loose_knapsack(rng):
    theta_set, theta = tight_knapsack(rng)
    return mb.Knapsack(theta_set.weights, theta_set.capacity + 0.5), theta


def some(theta_set):
    return lambda rng: (theta_set, theta_set.vertex(rng.uniform(size=theta_set.shape)))


AT_MOST = mb.Budget(7, 4, at_most=True)


def loose_at_most(rng):
    theta = np.zeros(7, dtype=bool)
    theta[:2] = True
    return AT_MOST, rng.permutation(theta)


def tight_at_most(rng):
    return AT_MOST, rng.permutation(np.arange(7) < 4)


CASES = {
    "budget": some(mb.Budget(8, 3)),
    "at most, used up": tight_at_most,
    "at most, with slack": loose_at_most,
    "one-hot": some(mb.OneHot(3, 3)),
    "hypercube": some(mb.Hypercube(6)),
    "knapsack, used up": tight_knapsack,
    "knapsack, with slack": loose_knapsack,
}


def feasible_directions(theta_set, theta):
    """Directions into the set from a vertex, found by projecting perturbed points, and the edges to all other binary points."""
    rng = np.random.default_rng(0)
    x = theta.astype(float)
    near = [theta_set.project(x + 0.3 * rng.normal(size=x.shape)) - x for _ in range(30)]
    edges = [vertex - x for vertex in theta_set.vertices()]
    corners = [theta_set.linear_oracle(rng.normal(size=x.shape)) - x for _ in range(30)]
    # Single entries and pairs, as far as the set lets them go: the extreme directions of the cone at the vertex.
    pairs = []
    for i in range(x.size):
        for j in range(x.size):
            d = np.zeros(x.size)
            d[i] -= x.flat[i]
            if j != i:
                d[j] += 1 - x.flat[j]
            if isinstance(theta_set, mb.Knapsack):
                d /= theta_set.weights
            pairs.append(d.reshape(x.shape) * 1e-3)
        d = np.zeros(x.size)
        d[i] += 1e-3 * (1 - x.flat[i])
        pairs.append(d.reshape(x.shape))
    return [d for d in near + edges + corners + pairs if np.abs(d).max() > 1e-9 and theta_set.contains(x + 1e-3 * d)]


def is_local_minimiser(directions, theta, G, penalty, epsilon):
    """No short step into the set lowers G + phi/eps."""
    x = theta.astype(float)
    here = G(x)[0]
    for d in directions:
        step = 1e-6 / np.abs(d).max()
        y = x + step * d
        if G(y)[0] + penalty.value(np.clip(y, 0.0, 1.0)) / epsilon < here - 1e-15:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("penalty", "vertices"),
    [
        (Quadratic(), 15),
        pytest.param(Quadratic(), 200, marks=pytest.mark.ci),
        pytest.param(Logarithmic(0.2), 20, marks=pytest.mark.ci),
    ],
)
def test_epsilon_star_against_brute_force(case, penalty, vertices):
    """Random vertices: a local minimiser just below eps*, none just above."""
    finite, known = 0, {}
    for seed in range(vertices):
        rng = np.random.default_rng([seed, 7])
        theta_set, theta = CASES[case](rng)
        G = quadratic(theta_set, seed).function
        star = theta_set.epsilon_star(theta, G(theta.astype(float))[1])
        key = theta_set, theta.tobytes()
        if key not in known:
            known[key] = feasible_directions(theta_set, theta)
        directions = known[key]
        if star == np.inf:
            assert is_local_minimiser(directions, theta, G, penalty, 1e6)
            continue
        finite += 1
        assert is_local_minimiser(directions, theta, G, penalty, 0.98 * star)
        assert not is_local_minimiser(directions, theta, G, penalty, 1.02 * star)
    assert finite > vertices // 2


def test_certify_tries_all_moves_and_says_so():
    problem = quadratic(mb.Budget(10, 3), 0)
    best = mb.enumerate_binary(problem)
    certificate = mb.certify(problem, best.theta)
    assert certificate.one_move_optimal is True
    assert certificate.moves_tried == certificate.moves_total == 21
    assert certificate.best_change > 0
    worse = problem.theta_set.vertex(-best.theta.astype(float))
    certificate = mb.certify(problem, worse)
    assert certificate.one_move_optimal is False
    assert "would still improve" in str(certificate)


def test_certify_samples_many_moves_and_says_so():
    cost = np.arange(400.0)
    problem = mb.FunctionProblem(lambda theta: (float(cost @ theta), cost), mb.Budget(400, 100))
    certificate = mb.certify(problem, np.arange(400) < 100, max_moves=500)
    assert 400 < certificate.moves_tried <= 500
    assert certificate.moves_total == 30_000
    assert certificate.one_move_optimal is None
    assert "of the 30,000 were; the others are not known" in str(certificate)
    assert mb.certify(problem, np.arange(400) < 100, max_moves=0).moves_tried == 0


def test_a_run_certifies_its_answer():
    problem = quadratic(mb.Budget(14, 5), 0, n_lam=1)
    result = mb.relax_and_penalize(problem, seed=0)
    certificate = result.certificate
    own = mb.certify(problem, result.theta, result.lam)
    assert certificate.epsilon_star == pytest.approx(own.epsilon_star)
    assert certificate.best_change == pytest.approx(own.best_change, abs=1e-9)
    assert certificate.moves_tried == own.moves_tried == 45
    assert certificate.relaxed_gap == result.value - result.relaxed.value
    assert certificate.distance < 1e-2
    assert certificate.lipschitz > 0


def test_the_estimate_of_L_is_a_lower_one():
    for seed in range(5):
        problem = quadratic(mb.Hypercube(8), seed)
        certificate = mb.relax_and_penalize(problem, seed=0).certificate
        assert 0 < certificate.lipschitz <= problem.function.lipschitz()


def test_the_condition_is_consistent_or_violated_never_proved():
    base = {"epsilon_star": 1.0, "distance": 0.0, "lipschitz": 2.0}
    assert mb.Certificate(epsilon=0.4, **base).condition == "consistent"
    assert mb.Certificate(epsilon=0.6, **base).condition == "violated"
    assert mb.Certificate(epsilon=0.4, epsilon_star=1.0, distance=0.3, lipschitz=2.0).condition == "violated"
    assert mb.Certificate(1.0).condition == "unknown"
    for certificate in (mb.Certificate(epsilon=0.4, **base), mb.Certificate(epsilon=0.6, **base)):
        assert "prove" not in str(certificate)


@pytest.mark.parametrize(
    "certificate",
    [
        mb.Certificate(np.inf),
        mb.Certificate(0.5, 0.1, 2.0, 0.0, 10, 10, 0.25, -0.5),
        mb.Certificate(0.5, 0.9, 2.0, 0.0, 10, 20, 0.25, 0.5),
        mb.Certificate(0.5, 0.9, 2.0, 0.0, 10, 20, -0.25, 0.0),
        mb.Certificate(0.5, moves_total=20),
        mb.Certificate(0.5, moves_tried=3, moves_total=3, best_change=np.inf),
    ],
    ids=str,
)
def test_three_sentences(certificate):
    text = str(certificate)
    sentences = [part for part in text.replace("e.g.", "").split(". ") if part]
    assert len(sentences) == 3
    assert text.endswith((".", ")."))
    assert "nan" not in text
    assert "not a bound" in text or "no bound" in text or "no relaxed" in text


@pytest.mark.parametrize(
    ("value", "bound", "gap", "sentence"),
    [
        (2.0, 1.996, 0.002, "No answer can be more than 0.2 % better."),
        (2.0, 1.9959, 0.00205, "No answer can be more than 0.21 % better."),
        (2.0, 1.0, 0.5, "No answer can be more than 50 % better."),
        (-2.0, -2.3, 0.15, "No answer can be more than 15 % better."),
        (-2.0, -50.0, 24.0, "No answer can be more than 2,400 % better."),
        (3.0, 3.0, 0.0, "No answer is better."),
        (3.0, 3.1, 0.0, "No answer is better."),
    ],
)
def test_the_gap_in_numbers_and_words(value, bound, gap, sentence):
    certificate = mb.Certificate(0.5, relaxed_gap=0.25, value=value, lower_bound=bound)
    assert certificate.gap == pytest.approx(gap, rel=1e-12)
    assert str(certificate).endswith(f"Its value is 0.25 above that of the relaxed problem it came from. {sentence}")
    assert "convex" not in str(certificate)


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        *((value, bound) for value in (2.0, -2.0) for bound in (np.nan, -np.inf, np.inf, 0.0, 1e-10, -1e-10)),
        (0.0, 0.0),
        (0.0, -1.0),
        (np.nan, 1.0),
        (np.inf, 1.0),
        (1e-320, -1.0),
        (1e308, -1e308),
    ],
)
def test_bounds_of_which_nothing_is_claimed(value, bound):
    certificate = mb.Certificate(0.5, relaxed_gap=0.25, value=value, lower_bound=bound)
    assert np.isnan(certificate.gap)
    assert str(certificate).endswith("it came from (no bound, since the problem is not convex).")
    assert "nan" not in str(certificate)


def test_baselines_are_certified_too_where_feasible():
    problem = quadratic(mb.Budget(10, 3), 0, "convex")
    assert mb.relax_and_round(problem, seed=0).certificate.epsilon_star > 0
    assert mb.relax_and_round(problem, seed=0).certificate.condition == "unknown"
    assert mb.relax_and_round(problem, rounding=None, seed=0).certificate is None


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"theta": np.full(10, 0.3)}, "theta"),
        ({"theta": np.zeros(10)}, "theta"),
        ({"theta": np.ones(9)}, "theta"),
        ({"theta": "all"}, "theta"),
        ({"lam": [1.0]}, "lam"),
        ({"max_moves": -1}, "max_moves"),
        ({"max_moves": 2.5}, "max_moves"),
        ({"seed": "x"}, "seed"),
        ({"problem": None}, "problem"),
    ],
    ids=str,
)
def test_bad_inputs(changed, name):
    arguments = {"problem": quadratic(mb.Budget(10, 3), 0), "theta": np.arange(10) < 3} | changed
    with pytest.raises(mb.InvalidInput, match=f"^{name} must be"):
        mb.certify(**arguments)


def test_a_notebook_shows_a_table():
    shown = mb.Certificate(0.5, moves_tried=3, moves_total=3, best_change=0.25, value=1.0, lower_bound=0.5)._repr_html_()
    assert shown.count("<tr>") == 4
    assert "No single change improves this answer: all 3 were tried; the closest one costs 0.25." in shown
    assert '<th style="text-align: left">proven</th>' in shown

"""Best subset: value, gradient, bound, swaps, search and proof against independent computations."""

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.linear_model import LogisticRegression, Ridge

import mixbin as mb
from mixbin.problems.best_subset.kernels import SquaredKernel
from mixbin.problems.best_subset.shrinkage import relaxed_weights
from mixbin.testing import check_problem

pytestmark = pytest.mark.slow

NONE = np.empty(0)


def make_data(n=40, p=10, k=3, rho=0.5, noise=1.0, seed=0, loss="squared", targets=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 3.0
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.zeros((p, targets or 1))
    w[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], size=(k, targets or 1))
    Y = X @ w + noise * rng.normal(size=(n, targets or 1)) + 2.0
    if loss == "logistic":
        y = (Y[:, 0] > np.median(Y[:, 0])).astype(float)
        y[0], y[1] = 0.0, 1.0
        return X, y
    return X, Y if targets else Y[:, 0]


def made(loss="squared", k=3, gamma=0.7, **settings):
    own = {key: settings.pop(key) for key in ("groups", "per_group", "fit_intercept") if key in settings}
    X, y = make_data(loss=loss, **settings)
    return mb.BestSubset(X, y, k, gamma, loss, **own)


def value_of(problem, support):
    theta = np.zeros(problem.n_features)
    theta[list(support)] = 1.0
    return problem.evaluate(theta, NONE, gradient=False).value


def brute_force(problem):
    return min(value_of(problem, np.flatnonzero(v)) for v in problem.theta_set.vertices())


CASES = {
    "squared": lambda: made(),
    "squared, no intercept": lambda: made(fit_intercept=False),
    "squared, three targets": lambda: made(targets=3),
    "squared, more columns than rows": lambda: made(n=12, p=20),
    "squared, many rows": lambda: made(n=120, p=8),
    "squared, all features": lambda: made(k=10),
    "squared, groups": lambda: made(groups=[0, 0, 0, 1, 1, 1, 2, 2, 3, 3]),
    "squared, one of each group": lambda: made(k=4, groups=[0, 0, 0, 1, 1, 1, 2, 2, 3, 3]),
    "logistic": lambda: made("logistic"),
    "logistic, no intercept": lambda: made("logistic", fit_intercept=False),
    "logistic, more columns than rows": lambda: made("logistic", n=14, p=20),
    "logistic, groups": lambda: made("logistic", groups=list("aabbbccccc"), per_group=2),
}


@pytest.mark.parametrize("name", CASES)
def test_every_promise(name):
    check_problem(CASES[name](), gradient_tol=1e-6, trials=1)


def test_fingerprints_differ():
    prints = [make().fingerprint() for make in CASES.values()]
    assert len(set(prints)) == len(prints)
    assert made(gamma=0.8).fingerprint() not in prints


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("n", "p"), [(30, 8), (8, 12)])
def test_gradient_by_differences(loss, n, p):
    problem = made(loss, n=n, p=p)
    theta = 0.1 + 0.8 * np.random.default_rng(0).uniform(size=p)
    grad, h = problem.evaluate(theta, NONE).grad_theta, 1e-4
    for j in range(p):
        along = h * np.eye(p)[j]
        at = [problem.evaluate(theta + s * along, NONE, gradient=False).value for s in (-2, -1, 1, 2)]
        assert (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * h) == pytest.approx(
            grad[j], rel=1e-6, abs=1e-6 * np.abs(grad).max()
        )


def test_values_are_those_of_scikit_learn():
    X, y = make_data(targets=2)
    kept = [1, 4, 6]
    ridge = Ridge(alpha=0.7, tol=1e-14).fit(X[:, kept], y)
    problem = mb.BestSubset(X, y, 3, 0.7)
    theta = np.isin(np.arange(10), kept).astype(float)
    coef, intercept = problem.model(theta)
    np.testing.assert_allclose(coef[:, kept], ridge.coef_, rtol=1e-9)
    np.testing.assert_allclose(intercept, ridge.intercept_, rtol=1e-9)
    expected = np.square(y - ridge.predict(X[:, kept])).sum() + 0.7 * np.square(ridge.coef_).sum()
    assert value_of(problem, kept) == pytest.approx(expected, rel=1e-10)

    X, y = make_data(loss="logistic")
    model = LogisticRegression(C=1 / 0.7, tol=1e-12, solver="newton-cholesky").fit(X[:, kept], y)
    problem = mb.BestSubset(X, y, 3, 0.7, "logistic")
    coef, intercept = problem.model(theta)
    np.testing.assert_allclose(coef[kept], model.coef_[0], rtol=1e-6)
    assert intercept == pytest.approx(model.intercept_[0], rel=1e-6)
    u = model.decision_function(X[:, kept])
    expected = np.sum(np.logaddexp(0, u) - y * u) + 0.35 * np.square(model.coef_).sum()
    assert value_of(problem, kept) == pytest.approx(expected, rel=1e-10)


def test_the_perspective_form_between_subsets():
    """G at fractional theta is the minimum over w of the loss with penalties divided by theta."""
    X, y = make_data(n=15, p=4, k=2)
    theta = np.array([0.3, 0.8, 0.0, 0.9])
    on = theta > 0
    Xc, yc = (X - X.mean(axis=0))[:, on], y - y.mean()

    def objective(w):
        return np.square(yc - Xc @ w).sum() + 0.7 * np.sum(w**2 / theta[on])

    lowest = optimize.minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).fun
    assert mb.BestSubset(X, y, 2, 0.7).evaluate(theta, NONE).value == pytest.approx(lowest, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_sparse_tables_give_the_same(loss):
    X, y = make_data(loss=loss)
    X = np.maximum(X, X.mean()) - X.mean()
    dense, thin = (mb.BestSubset(table, y, 3, 0.7, loss) for table in (X, sparse.csr_array(X)))
    rng = np.random.default_rng(0)
    for theta in (dense.theta_set.start(rng), dense.theta_set.vertex(rng.uniform(size=10)).astype(float)):
        a, b = (problem.evaluate(theta, NONE) for problem in (dense, thin))
        assert a.value == pytest.approx(b.value, rel=1e-10)
        np.testing.assert_allclose(a.grad_theta, b.grad_theta, rtol=1e-7)
    np.testing.assert_allclose(dense.model(theta)[0], thin.model(theta)[0], atol=1e-9)
    assert dense.relaxed.bound == pytest.approx(thin.relaxed.bound, rel=1e-3)
    assert np.array_equal(mb.prove_best_subset(dense).theta, mb.prove_best_subset(thin).theta)


@pytest.mark.parametrize("targets", [None, 3])
def test_swaps_against_refits(targets):
    problem = made(n=60, p=25, k=5, targets=targets, rho=0.9)
    theta = np.isin(np.arange(25), [0, 3, 4, 11, 20]).astype(float)
    off, on = (np.concatenate(side) for side in zip(*problem.theta_set.moves(theta.astype(bool)), strict=True))
    values = problem.evaluate_moves(theta, NONE, off, on)
    assert len(values) == 5 * 20
    for i, j, value in zip(off, on, values, strict=True):
        kept = [*(set(np.flatnonzero(theta)) - {i}), j]
        assert value == pytest.approx(value_of(problem, kept), rel=1e-9)
    model = problem.data_loss.model_of(np.flatnonzero(theta))
    for i, value in zip(np.flatnonzero(theta), model.removals(), strict=True):
        assert value == pytest.approx(value_of(problem, set(np.flatnonzero(theta)) - {i}), rel=1e-9)
    for j in np.flatnonzero(theta == 0):
        assert model.additions()[j] == pytest.approx(value_of(problem, [*np.flatnonzero(theta), j]), rel=1e-9)


def test_the_table_of_logistic_swaps_is_close():
    """It only ranks swaps, which are trained before one is made; at small coefficients it is accurate."""
    problem = made("logistic", n=200, p=12, noise=8.0, gamma=20.0)
    support = np.array([1, 5, 9])
    table = problem.data_loss.model_of(support).exchanges()
    exact = np.array(
        [[np.inf if j in support else value_of(problem, [*np.delete(support, i), j]) for j in range(12)] for i in range(3)]
    )
    fine = np.isfinite(exact)
    base = value_of(problem, support)
    assert np.corrcoef(table[fine] - base, exact[fine] - base)[0, 1] > 0.99


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("gamma", [1e-3, 1.0])
def test_the_lowest_of_many_models_wherever_training_starts(gamma, fit_intercept):
    problem = made("logistic", n=60, p=20, gamma=gamma, noise=2.0, fit_intercept=fit_intercept)
    rng = np.random.default_rng(0)
    supports = np.array([rng.choice(20, size=3, replace=False) for _ in range(30)])
    exact = np.array([value_of(problem, it) for it in supports])
    np.testing.assert_allclose(problem.data_loss.values(supports), exact, rtol=1e-10)
    for spread in (0.0, 0.3, 3.0):
        row, value = problem.data_loss.lowest(supports, spread * rng.normal(size=supports.shape))
        assert row == exact.argmin()
        assert value == pytest.approx(exact.min(), rel=1e-10)


def instance(seed):
    rng = np.random.default_rng(seed)
    loss = ("squared", "logistic")[seed % 2]
    p = int(rng.integers(3, 8 if seed % 20 != 12 else 21))
    n, k = int(rng.integers(8, 40)), int(rng.integers(1, min(p, 4) if p < 9 else 3))
    settings = {"groups": rng.integers(3, size=p), "per_group": 2} if seed % 7 == 3 and k <= 2 else {}
    rho, noise = rng.choice([0.1, 0.6, 0.95]), rng.choice([0.3, 1.0, 4.0])
    X, y = make_data(n, p, k, rho, noise, seed, loss)
    return mb.BestSubset(X, y, k, 10.0 ** rng.uniform(-3, 1.5), loss, fit_intercept=bool(seed % 3), **settings)


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 200), marks=pytest.mark.ci)])
def test_bound_search_and_proof_against_brute_force(seeds):
    """200 instances: every bound lies below the optimum, and the proof ends at the optimum."""
    found = 0
    for seed in seeds:
        problem = instance(seed)
        lowest = brute_force(problem)
        rounding = 1e-9 * lowest
        rng = np.random.default_rng(seed)
        for theta in (
            problem.theta_set.start(),
            problem.theta_set.start(rng),
            problem.theta_set.vertex(rng.uniform(size=problem.n_features)),
        ):
            assert problem.lower_bound(theta.astype(float), NONE) <= lowest + rounding
            assert problem.bound_of(problem.data_loss.fit(theta.astype(float)).residual) <= lowest + rounding
        assert problem.relaxed.value <= lowest * (1 + 1e-4)
        assert problem.relaxed.value - problem.relaxed.bound <= 0.02 * problem.relaxed.value
        proof = mb.prove_best_subset(problem)
        assert proof.proved
        assert proof.value == pytest.approx(lowest, rel=1e-8)
        assert problem.theta_set.violation(proof.theta) == 0
        found += problem.search().run(rng, problem.relaxed.theta).value <= lowest + 1e-8 * lowest
    assert found >= 0.98 * len(seeds)


def test_relaxed_weights_are_those_of_the_best_theta():
    rng = np.random.default_rng(0)
    size = np.abs(rng.normal(size=(6, 12)))
    size[:, 10:] = 0.0
    k = np.array([1, 2, 3, 4, 9, 10])
    theta, _ = relaxed_weights(size, 0.3, k, np.ones(6))
    np.testing.assert_allclose(theta.sum(axis=1), k, rtol=1e-8)
    for row, u in zip(theta, size, strict=True):
        slope = -(u**2) / (row + 0.3) ** 2
        inner = (row > 1e-9) & (row < 1 - 1e-9)
        if inner.any():
            level = slope[inner].mean()
            np.testing.assert_allclose(slope[inner], level, rtol=1e-6)
            assert slope[row >= 1 - 1e-9].max(initial=-np.inf) <= level + 1e-9
            assert slope[row <= 1e-9].min(initial=np.inf) >= level - 1e-9
    groups = np.eye(3)[np.arange(12) % 3]
    theta, _ = relaxed_weights(size[:2], 0.3, np.array([3, 2]), np.ones(2), groups, np.ones((2, 3)))
    np.testing.assert_allclose(theta.sum(axis=1), [3, 2], rtol=1e-8)
    assert (theta @ groups).max() <= 1 + 1e-8


def test_a_proof_stops_and_goes_on():
    def fresh():
        return made(n=40, p=16, k=4, rho=0.95, noise=4.0, gamma=0.05)

    rounds = []
    whole = mb.prove_best_subset(fresh(), callbacks=[lambda proof: rounds.append((proof.lower_bound, proof.value))])
    assert whole.proved
    assert len(rounds) >= 3
    bounds, values = zip(*rounds, strict=True)
    assert all(a <= b for a, b in itertools.pairwise(bounds))
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert whole.gap == 0.0
    assert "Proved" in str(whole)

    part = mb.prove_best_subset(fresh(), max_nodes=1)
    assert not part.proved
    assert 0 < part.gap < 1
    assert "at most" in str(part)
    nodes, calls = part.n_nodes, 0
    while not part.proved:
        part, calls = mb.prove_best_subset(fresh(), proof=part, max_nodes=1), calls + 1
    assert calls >= 2
    assert part.n_nodes > nodes
    assert (part.value, part.n_nodes) == (whole.value, whole.n_nodes)
    assert np.array_equal(part.theta, whole.theta)
    stopped = mb.prove_best_subset(fresh(), time_limit=0)
    assert stopped.n_nodes == 0
    assert stopped.lower_bound > 0
    assert mb.prove_best_subset(fresh(), callbacks=[lambda proof: True]).n_nodes == 1


def test_a_proof_keeps_a_better_subset_it_is_given():
    problem = made(p=12)
    bad = np.isin(np.arange(12), [0, 1, 2])
    proof = mb.prove_best_subset(problem, bad)
    assert proof.proved
    assert proof.value == pytest.approx(brute_force(problem))


def test_the_method_with_a_certificate():
    problem = made(n=60, p=30, k=4)
    result = mb.relax_and_penalize(problem, seed=0)
    assert result.certificate.lower_bound == pytest.approx(problem.relaxed.bound, rel=1e-3)
    assert 0 <= result.certificate.gap < 0.5


def test_wide_tables():
    """20,000 columns: a p x p matrix would take 3.2 GB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20_000))
    y = X[:, [5, 777, 12_345]] @ [2.0, -2.0, 1.5] + 0.3 * rng.normal(size=60)
    problem = mb.BestSubset(X, y, 3, 1.0)
    found = problem.search().run(rng, kicks=0)
    assert found.support.tolist() == [5, 777, 12_345]
    assert 0 < problem.relaxed.bound <= found.value
    tracemalloc.start()
    proof = mb.prove_best_subset(problem, max_nodes=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.value == pytest.approx(proof.value)
    assert peak < 0.2 * 8 * 20_000**2


@pytest.mark.parametrize("gamma", [1e-4, 1e-2, 1.0])
def test_the_bound_is_as_exact_as_a_known_subset_asks_for(gamma):
    """The relaxed value and the bound differ by little, beside what the relaxation leaves of the gap anyway."""
    problem = made(n=60, p=150, k=5, rho=0.7, noise=2.0, gamma=60 * gamma)
    best, relaxed = problem.search().run(np.random.default_rng(0)).value, problem.relaxed
    assert relaxed.bound <= relaxed.value <= best
    assert relaxed.value - relaxed.bound <= max(1e-3 * relaxed.value, 0.02 * (best - relaxed.value))


def test_the_kernel_without_products_of_all_pairs_of_columns():
    """A wide kernel multiplies by X and X' in turn, a narrow one by X'X."""
    rng = np.random.default_rng(0)
    loss = made(n=12, p=30, targets=2).data_loss
    w = rng.normal(size=(4, 2, 30))
    some = np.arange(20)
    for which in (some, np.arange(30)):
        kernel = SquaredKernel(loss, which)
        at, _ = kernel.at(w[:, :, which], np.zeros(4))
        X = loss.columns.some(which)
        residual = loss.Y.T - w[:, :, which] @ X.T
        np.testing.assert_allclose(at.loss, np.square(residual).sum(axis=(1, 2)), rtol=1e-10)
        np.testing.assert_allclose(at.slope, residual @ X, rtol=1e-8, atol=1e-9)
        assert 0.97 <= kernel.step * np.linalg.eigvalsh(X.T @ X)[-1] <= 1.01


@pytest.mark.parametrize("name", ["squared, three targets", "logistic", "squared, groups"])
def test_another_count_and_ridge_weight_for_the_same_table(name):
    problem = CASES[name]()
    problem.search().run(np.random.default_rng(0), problem.relaxed.theta)
    other = problem.varied(2, 0.3)
    settings = {"groups": [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]} if "groups" in name else {}
    loss = name.split(",", maxsplit=1)[0]
    own = made(loss, k=2, gamma=0.3, targets=3 if "three" in name else None, **settings)
    assert other.fingerprint() == own.fingerprint() != problem.fingerprint()
    assert other.relaxed.bound == own.relaxed.bound != problem.relaxed.bound
    assert other.search().run(np.random.default_rng(0)).value == own.search().run(np.random.default_rng(0)).value
    with pytest.raises(mb.InvalidInput, match="gamma must be"):
        problem.varied(2, 0.0)


def test_same_seed_same_bits():
    runs = [made(n=50, p=40, k=6, rho=0.9, noise=3.0).search().run(np.random.default_rng(3)) for _ in range(2)]
    assert runs[0].value == runs[1].value
    assert np.array_equal(runs[0].support, runs[1].support)


def test_features_that_do_nothing():
    """A constant column, a column twice, and a target without signal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6))
    X[:, 2], X[:, 4] = 1.0, X[:, 0]
    problem = mb.BestSubset(X, np.ones(20), 2, 1.0)
    assert problem.evaluate(problem.theta_set.start(), NONE).value == pytest.approx(0.0, abs=1e-20)
    assert problem.lower_bound(problem.theta_set.start(), NONE) <= 0.0
    problem = mb.BestSubset(X, X[:, 0], 2, 1e-3)
    proof = mb.prove_best_subset(problem)
    assert proof.theta[[0, 4]].all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"X": np.ones(5)}, "X must be"),
        ({"X": np.full((40, 10), np.nan)}, "X must be finite"),
        ({"X": np.zeros((40, 0))}, "X must be a table"),
        (
            {"X": np.full((40, 10), 1e80)},
            r"X must hold numbers .* from 1e-30 to 1e\+30, got 1e\+80; rescale it",
        ),
        ({"X": np.full((40, 10), 1e-100)}, "X must hold numbers of which the largest is from 1e-30"),
        ({"X": sparse.coo_array(np.ones(40))}, r"X must be a table of shape \(rows, columns\)"),
        ({"y": np.full(40, 1e40)}, "y must hold numbers of which the largest is from 1e-30"),
        ({"gamma": 1e300}, r"gamma must be a finite number in \[1e-120, 1e\+120\]"),
        ({"gamma": 1e-300}, r"gamma must be a finite number in \[1e-120, 1e\+120\]"),
        ({"y": np.ones(39)}, "y must be an array of shape"),
        ({"y": np.full(40, np.inf)}, "y must be finite"),
        ({"k": 0}, "k must be a whole number from 1 to 10"),
        ({"k": 11}, "k must be a whole number from 1 to 10"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"gamma": 0.0}, "gamma must be a finite number greater than 0"),
        ({"gamma": np.nan}, "gamma must be a finite number"),
        ({"loss": "absolute"}, "loss must be one of 'squared', 'logistic'"),
        ({"loss": "logistic"}, "y must be 40 classes, 0 or 1"),
        ({"loss": "logistic", "y": np.ones(40)}, "with both among them"),
        ({"fit_intercept": 1}, "fit_intercept must be True or False"),
        ({"groups": [0, 1]}, "groups must be an array of shape"),
        ({"groups": np.zeros(10)}, "k must be from 0 to 1"),
    ],
)
def test_bad_inputs(changed, words):
    X, y = make_data()
    with pytest.raises(mb.InvalidInput, match=words):
        mb.BestSubset(**{"X": X, "y": y, "k": 3, "gamma": 1.0} | changed)


def test_bad_proofs():
    problem = made()
    proof = mb.prove_best_subset(problem)
    with pytest.raises(mb.CheckpointMismatch, match="proof must belong to this problem"):
        mb.prove_best_subset(made(gamma=2.0), proof=proof)
    for changed, words in (
        ({"problem": 3}, "problem must be a BestSubset"),
        ({"time_limit": -1}, "time_limit"),
        ({"max_nodes": 1.5}, "max_nodes"),
        ({"theta": np.ones(10, bool)}, "theta must be a binary point"),
        ({"proof": "x"}, "proof must be a Proof"),
        ({"callbacks": [3]}, "callbacks must be"),
        ({"callbacks": 0.5}, "callbacks must be"),
        ({"seed": -1}, "seed must be a whole number"),
    ):
        with pytest.raises(mb.InvalidInput, match=words):
            mb.prove_best_subset(**{"problem": problem} | changed)
    with pytest.raises(mb.InvalidInput, match="theta must have entries in"):
        problem.evaluate(np.full(10, 2.0), NONE)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    ("x", "y", "gamma"), [(1e-29, 1e28, 1.0), (1e29, 1e-29, 1.0), (1.0, 1.0, 1e100), (1e-20, 1.0, 1e-40), (1.0, 0.0, 1.0)]
)
def test_numbers_at_the_ends_of_the_range(x, y, gamma, loss):
    """An answer that is proved, without a warning; coefficients of 1e57 do not fit in the float32 of open nodes."""
    X, target = make_data(n=14, p=4, k=2, loss=loss)
    problem = mb.BestSubset(X * x, target if loss == "logistic" else target * y, 2, gamma, loss)
    proof = mb.prove_best_subset(problem)
    assert proof.proved
    best = min(
        problem.evaluate(np.array(theta), NONE).value for theta in itertools.product([0.0, 1.0], repeat=4) if sum(theta) == 2
    )
    assert proof.lower_bound <= best * (1 + 1e-9)
    assert proof.value <= best * (1 + 1e-6)


def test_a_gamma_that_is_lost_beside_the_columns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 4)) + 1e12, rng.normal(size=12)
    problem = mb.BestSubset(X, y, 4, 1.0, fit_intercept=False)
    with pytest.raises(mb.InvalidInput, match=r"gamma must be larger for these columns.*; raise gamma, or standardise X"):
        problem.evaluate(np.ones(4), NONE)


def test_weights_of_sizes_that_are_0_but_for_rounding():
    theta, c = relaxed_weights(np.array([[1.0, 0.5, 1e-320, 0.0]]), 1e10, np.array([1]), np.ones(1))
    assert np.isfinite(c).all()
    assert theta.sum() == pytest.approx(1.0)

"""GroupLassoStructure against finite differences, an independent solver and the published iteration written out."""

import subprocess
import sys

import numpy as np
import pytest

import mixbin as mb
from mixbin.datasets.group_lasso import make_group_lasso
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import FastMoves, FiniteSum, Problem
from mixbin.problems.group_lasso import GroupLassoStructure

NO_LAM = np.empty(0)
P, L = 12, 3
THETAS = ["interior", "near the boundary", "some zero", "binary"]


def make_data(rows=(8, 5, 11, 8, 3, 9), rows_val=(6, 7, 4, 9, 5, 5), seed=0):
    """Tasks of different sizes, each with one active group of four."""
    rng = np.random.default_rng(seed)
    X, X_val = ([rng.normal(size=(n, P)) for n in sizes] for sizes in (rows, rows_val))
    coef = [np.where(np.arange(P) // 4 == t % L, rng.normal(size=P), 0.0) for t in range(len(rows))]
    y, y_val = ([A @ w + 0.3 * rng.normal(size=len(A)) for A, w in zip(tables, coef, strict=True)] for tables in (X, X_val))
    return X, y, X_val, y_val


def make_theta(kind, seed=1):
    rng = np.random.default_rng(seed)
    interior = rng.dirichlet(np.ones(L), size=P)
    binary = np.eye(L)[rng.permutation(np.arange(P) % L)]
    zero = np.where(interior < 0.25, 0.0, interior)
    near = 0.985 * binary + 0.005
    return {"interior": interior, "near the boundary": near, "some zero": zero / zero.sum(1, keepdims=True), "binary": binary}[
        kind
    ]


def derivative(f, x, h):
    """Fourth order, from both sides."""
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def with_entry(theta, i, value):
    theta = theta.copy()
    theta[i] = value
    return theta


def objective(X, y, w, theta, lam, ridge):
    """The lower level of one task, unsmoothed."""
    norms = np.sqrt(np.sum(np.square(theta * w[:, None]), axis=0))
    return 0.5 * np.mean((X @ w - y) ** 2) + lam * norms.sum() + 0.5 * ridge * w @ w


def admm(X, y, theta, lam, ridge, rho=0.3, steps=20_000):
    """The same minimum by splitting z_l = theta_l ∘ w: no smoothing, no group weights."""
    inverse = np.linalg.inv(X.T @ X / len(y) + np.diag(ridge + rho * np.square(theta).sum(axis=1)))
    b, z, u = X.T @ y / len(y), np.zeros(theta.shape), np.zeros(theta.shape)
    for _ in range(steps):
        w = inverse @ (b + rho * np.sum(theta * (z - u), axis=1))
        v = theta * w[:, None] + u
        norms = np.maximum(np.linalg.norm(v, axis=0), 1e-300)
        z = v * np.maximum(1 - lam / rho / norms, 0.0)
        u = v - z
    return w


def published(X, y, theta, lam, ridge, q):
    """The dual iteration as printed in docs/maths.md, "Unrolled lower level", with v and u of shape (P, L)."""
    inverse = np.linalg.inv(X.T @ X / len(y) + ridge * np.eye(len(theta)))
    gamma, v, u = 0.99 * ridge / lam, np.zeros(theta.shape), np.zeros(theta.shape)
    for _ in range(q):
        w = inverse @ (X.T @ y / len(y) - np.sum(theta * u, axis=1))
        v = v + gamma * theta * w[:, None]
        u = lam * v / np.sqrt(1 + np.sum(v * v, axis=0))
    return inverse @ (X.T @ y / len(y) - np.sum(theta * u, axis=1))


@pytest.mark.parametrize("lower", ["implicit", "unrolled"])
@pytest.mark.parametrize("lam", [0.02, 0.3])
@pytest.mark.parametrize("kind", THETAS)
class TestHypergradient:
    def test_in_theta(self, lower, lam, kind):
        problem = GroupLassoStructure(*make_data(), n_groups=L, ridge=0.05, lam_bounds=lam, lower=lower, q=60)
        theta = make_theta(kind)
        got = problem.evaluate(theta, NO_LAM).grad_theta
        for i in zip(*np.nonzero(theta), strict=True):
            expected = derivative(
                lambda t, i=i: problem.evaluate(with_entry(theta, i, t), NO_LAM).value, theta[i], min(5e-4, 0.02 * theta[i])
            )
            assert got[i] == pytest.approx(expected, rel=1e-5, abs=1e-6 * np.abs(got).max())
        # theta enters squared: the gradient vanishes where theta does.
        assert not got[theta == 0].any()

    def test_in_lam(self, lower, lam, kind):
        problem = GroupLassoStructure(*make_data(), n_groups=L, ridge=0.05, lower=lower, q=60)
        theta = make_theta(kind)
        got = problem.evaluate(theta, np.array(lam))
        expected = derivative(lambda x: problem.evaluate(theta, np.array(x)).value, lam, 1e-3 * lam)
        assert got.grad_lam.shape == ()
        assert got.grad_lam == pytest.approx(expected, rel=1e-5)


def test_hypergradient_at_published_size():
    """P = 100, L = 10, ridge 1e-3, along random directions inside the simplex."""
    data = make_group_lasso(n_tasks=5, seed=3)
    rng = np.random.default_rng(0)
    theta, direction = rng.dirichlet(np.ones(10), size=100), rng.normal(size=(100, 10))
    for lower in ("implicit", "unrolled"):
        problem = GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, lower=lower)
        got = problem.evaluate(theta, np.array(0.05))
        inwards = direction * theta
        slope = derivative(lambda t, p=problem, d=inwards: p.evaluate(theta + t * d, np.array(0.05)).value, 0.0, 1e-3)
        assert np.vdot(got.grad_theta, inwards) == pytest.approx(slope, rel=1e-5)
        slope = derivative(lambda x, p=problem: p.evaluate(theta, np.array(x)).value, 0.05, 1e-4)
        assert got.grad_lam == pytest.approx(slope, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(it, marks=[pytest.mark.ci] * (it != "interior")) for it in THETAS])
@pytest.mark.parametrize("lam", [pytest.param(0.01, marks=pytest.mark.ci), 0.1, pytest.param(0.5, marks=pytest.mark.ci)])
def test_models_reach_the_minimum_of_an_independent_solver(kind, lam):
    X, y, X_val, y_val = make_data()
    problem = GroupLassoStructure(X, y, X_val, y_val, n_groups=L, ridge=1e-2, lam_bounds=lam)
    theta = make_theta(kind)
    coef = problem.coef(theta)
    for t in (0, 2, 4):
        got = objective(X[t], y[t], coef[t], theta, lam, 1e-2)
        expected = objective(X[t], y[t], admm(X[t], y[t], theta, lam, 1e-2), theta, lam, 1e-2)
        assert got == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert got <= expected * (1 + 1e-9)


@pytest.mark.parametrize("lam", [0.015, 0.1])
def test_models_at_published_size_are_optimal(lam):
    """Where no group is at zero the gradient vanishes; at a binary theta every group fulfils its optimality condition."""
    data = make_group_lasso(n_tasks=20, seed=1)
    problem = GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, lam_bounds=lam)
    theta = np.random.default_rng(0).dirichlet(np.ones(10), size=100)
    for t, w in enumerate(problem.coef(theta)):
        slope = data.X[t].T @ (data.X[t] @ w - data.y[t]) / 20 + 1e-3 * w
        norms = np.linalg.norm(theta * w[:, None], axis=0)
        if norms.min() > 1e-8:
            np.testing.assert_allclose(slope + lam * np.sum(theta**2 * w[:, None] / norms, axis=1), 0, atol=1e-10)
    for t, w in enumerate(problem.coef(data.theta)):
        slope = data.X[t].T @ (data.X[t] @ w - data.y[t]) / 20 + 1e-3 * w
        for group in data.theta.T:
            size = np.linalg.norm(w[group])
            if size == 0:
                assert np.linalg.norm(slope[group]) <= lam * (1 + 1e-9)
            else:
                np.testing.assert_allclose(slope[group] + lam * w[group] / size, 0, atol=1e-9)


@pytest.mark.parametrize("kind", THETAS)
def test_unrolled_is_the_published_iteration(kind):
    X, y, X_val, y_val = make_data()
    theta = make_theta(kind)
    for q in (1, 7, 50):
        problem = GroupLassoStructure(X, y, X_val, y_val, n_groups=L, lam_bounds=0.05, lower="unrolled", q=q)
        expected = [published(A, b, theta, 0.05, 1e-3, q) for A, b in zip(X, y, strict=True)]
        np.testing.assert_allclose(problem.coef(theta), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", THETAS)
def test_unrolled_converges_to_implicit(kind):
    data, theta = make_data(), make_theta(kind)
    settings = {"n_groups": L, "ridge": 0.3, "lam_bounds": 0.1}
    exact = GroupLassoStructure(*data, **settings)
    models, at = exact.coef(theta), exact.evaluate(theta, NO_LAM)
    errors = []
    for q in (10, 100, 1000, 10_000):
        problem = GroupLassoStructure(*data, **settings, lower="unrolled", q=q)
        errors.append(np.abs(problem.coef(theta) - models).max())
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 1e-3
    np.testing.assert_allclose(problem.evaluate(theta, NO_LAM).value, at.value, rtol=1e-3)


@pytest.mark.parametrize("lam", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("lower", ["implicit", "unrolled"])
def test_moves_are_exact(lam, lower):
    problem = GroupLassoStructure(*make_data(), n_groups=L, ridge=0.02, lam_bounds=lam, lower=lower, q=30)
    theta = make_theta("binary")
    off, on = (np.concatenate(side) for side in zip(*problem.theta_set.moves(theta), strict=True))
    assert len(off) == P * (L - 1)
    expected = []
    for i, j in zip(off, on, strict=True):
        moved = theta.copy()
        moved.flat[i], moved.flat[j] = 0.0, 1.0
        expected.append(problem.evaluate(moved, NO_LAM, gradient=False).value)
    for warm in (None, problem.evaluate(theta, NO_LAM).warm):
        np.testing.assert_allclose(problem.evaluate_moves(theta, NO_LAM, off, on, warm=warm), expected, rtol=1e-9)


def test_moves_at_published_size():
    data = make_group_lasso(n_tasks=30, seed=2)
    problem = GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, lam_bounds=0.03)
    off, on = next(iter(problem.theta_set.moves(data.theta)))
    values = problem.evaluate_moves(data.theta, NO_LAM, off, on)
    for k in range(0, len(off), 60):
        moved = data.theta.copy()
        moved.flat[off[k]], moved.flat[on[k]] = False, True
        np.testing.assert_allclose(values[k], problem.evaluate(moved.astype(float), NO_LAM).value, rtol=1e-8)


@pytest.mark.parametrize("kind", THETAS)
@pytest.mark.parametrize("lam", [0.02, 0.1, 0.5])
def test_warm_and_cold_starts_agree(kind, lam):
    data = make_group_lasso(n_tasks=40, seed=4)
    problem = GroupLassoStructure(data.X, data.y, data.X_val, data.y_val)
    rng = np.random.default_rng(0)
    other = rng.dirichlet(np.ones(10), size=100)
    theta = {"interior": other, "near the boundary": 0.98 * data.theta + 0.002, "binary": data.theta.astype(float)}.get(kind)
    if theta is None:
        theta = np.where(other < 0.1, 0.0, other)
        theta /= theta.sum(axis=1, keepdims=True)
    cold = problem.evaluate(theta, np.array(lam))
    assert cold.info["lower_residual"] <= 1e-5
    assert cold.info["lower_steps"] < 40
    for start, at in ((theta, 1.3 * lam), (data.theta.astype(float), lam), (0.9 * theta + 0.1 * other, lam), (theta, lam)):
        warm = problem.evaluate(theta, np.array(lam), warm=problem.evaluate(start, np.array(at)).warm)
        np.testing.assert_allclose(warm.value, cold.value, rtol=1e-8)
        np.testing.assert_allclose(warm.grad_theta, cold.grad_theta, rtol=0, atol=1e-7 * np.abs(cold.grad_theta).max())
        np.testing.assert_allclose(warm.grad_lam, cold.grad_lam, rtol=1e-7)
    assert warm.info["lower_steps"] < 2


@pytest.mark.parametrize("lower", ["implicit", "unrolled"])
@pytest.mark.parametrize("kind", ["interior", "binary"])
def test_terms_average_to_the_whole(lower, kind):
    problem = GroupLassoStructure(*make_data(), n_groups=L, lower=lower, q=20)
    theta, lam = make_theta(kind), np.array(0.05)
    whole = problem.evaluate(theta, lam)
    each = [problem.evaluate_terms(theta, lam, np.array([t])) for t in range(problem.n_terms)]
    np.testing.assert_allclose(np.mean([e.value for e in each]), whole.value, rtol=1e-12)
    np.testing.assert_allclose(np.mean([e.grad_theta for e in each], axis=0), whole.grad_theta, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(np.mean([e.grad_lam for e in each]), whole.grad_lam, rtol=1e-9)
    some = problem.evaluate_terms(theta, lam, np.array([4, 1]), warm=whole.warm)
    np.testing.assert_allclose(some.value, (each[4].value + each[1].value) / 2, rtol=1e-9)


def test_terms_renew_their_own_part_of_the_state():
    problem = GroupLassoStructure(*make_data(), n_groups=L)
    theta, lam = make_theta("interior"), np.array(0.05)
    first = problem.evaluate_terms(theta, lam, np.array([2])).warm["s"]
    assert np.flatnonzero(first.any(axis=1)).tolist() == [2]
    before = first.copy()
    second = problem.evaluate_terms(theta, lam, np.array([0, 5]), warm={"s": first}).warm["s"]
    assert np.flatnonzero(second.any(axis=1)).tolist() == [0, 2, 5]
    np.testing.assert_array_equal(first, before)


@pytest.mark.parametrize("lower", ["implicit", "unrolled"])
@pytest.mark.parametrize("kind", ["interior", "binary"])
def test_evaluate_is_pure_whatever_the_threads(lower, kind):
    data = make_group_lasso(n_tasks=50, seed=5)
    arrays = [a.copy() for a in (data.X, data.y, data.X_val, data.y_val)]
    settings = {"lower": lower, "q": 20}
    problem = GroupLassoStructure(*arrays, **settings, n_jobs=1)
    theta = data.theta.astype(float) if kind == "binary" else np.random.default_rng(0).dirichlet(np.ones(10), size=100)
    lam = np.array(0.05)
    theta.flags.writeable = lam.flags.writeable = False
    warm = problem.evaluate(theta, lam * 2).warm
    first, first_warm = problem.evaluate(theta, lam), problem.evaluate(theta, lam, warm=warm)
    for array in arrays:
        array[:] = 0.0
    threads = GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, **settings, n_jobs=3)
    for other in (problem, threads):
        for got, expected in ((other.evaluate(theta, lam), first), (other.evaluate(theta, lam, warm=warm), first_warm)):
            assert got.value == expected.value
            np.testing.assert_array_equal(got.grad_theta, expected.grad_theta)
            np.testing.assert_array_equal(got.grad_lam, expected.grad_lam)
    assert problem.evaluate(theta, lam, gradient=False).value == first.value
    assert problem.evaluate(theta, lam, gradient=False).grad_theta is None
    assert threads.fingerprint() == problem.fingerprint()


def test_arrays_and_lists_are_read_alike():
    data = make_data(rows=(7,) * 6, rows_val=(4,) * 6)
    theta, lam = make_theta("interior"), np.array(0.05)
    lists = GroupLassoStructure(*data, n_groups=L)
    arrays = GroupLassoStructure(*(np.array(x) for x in data), n_groups=L)
    assert lists.evaluate(theta, lam).value == arrays.evaluate(theta, lam).value
    assert lists.fingerprint() == arrays.fingerprint()


def test_models_and_losses():
    X, y, X_val, y_val = make_data()
    theta, lam = make_theta("interior"), np.array(0.05)
    problem = GroupLassoStructure(X, y, X_val, y_val, n_groups=L)
    coef = problem.coef(theta, lam)
    assert coef.shape == (6, P)
    by_hand = np.mean([0.5 * np.mean((A @ w - b) ** 2) for A, w, b in zip(X_val, coef, y_val, strict=True)])
    np.testing.assert_allclose(problem.evaluate(theta, lam).value, by_hand, rtol=1e-12)
    np.testing.assert_allclose(problem.loss(theta, lam, X_val, y_val), by_hand, rtol=1e-12)
    assert problem.loss(theta, lam, X, y) < by_hand
    with pytest.raises(InvalidInput, match="X must have the tasks of the training data, got 5 tasks against 6"):
        problem.loss(theta, lam, X_val[:5], y_val[:5])


def test_sets_and_contract():
    data = make_data()
    problem = GroupLassoStructure(*data, n_groups=L)
    assert isinstance(problem, Problem)
    assert isinstance(problem, FiniteSum)
    assert isinstance(problem, FastMoves)
    assert problem.theta_set.shape == (P, L)
    assert problem.n_terms == 6
    assert (problem.lam_set.shape, problem.lam_set.log) == ((), True)
    fixed = GroupLassoStructure(*data, n_groups=L, lam_bounds=0.02)
    assert fixed.lam_set.shape == (0,)
    assert fixed.evaluate(make_theta("interior"), NO_LAM).grad_lam.shape == (0,)
    assert fixed.evaluate(make_theta("interior"), NO_LAM).value == problem.evaluate(make_theta("interior"), np.array(0.02)).value


def test_degenerate_tasks():
    """Constant and zero columns, a task without signal, one row, and lam so large that every model is 0."""
    X, y, X_val, y_val = make_data()
    X[0][:, 3], X[1][:, 5], X[2][:] = 1.0, 0.0, 0.0
    y[3][:] = 0.0
    X[4], y[4] = X[4][:1], y[4][:1]
    for lower in ("implicit", "unrolled"):
        problem = GroupLassoStructure(X, y, X_val, y_val, n_groups=L, lower=lower, q=50)
        for kind in THETAS:
            got = problem.evaluate(make_theta(kind), np.array(0.05))
            assert np.isfinite(got.value)
            assert np.isfinite(got.grad_theta).all()
            assert not problem.coef(make_theta(kind), np.array(0.05))[[2, 3]].any() or kind != "binary"
    problem = GroupLassoStructure(X, y, X_val, y_val, n_groups=L, lam_bounds=(1e-3, 1e4))
    for kind in THETAS:
        got = problem.evaluate(make_theta(kind), np.array(1e3))
        nothing = np.mean([0.5 * np.mean(b**2) for b in y_val])
        np.testing.assert_allclose(got.value, nothing, rtol=1e-9)
        assert np.abs(got.grad_theta).max() < 1e-9


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_targets_do_not_matter(scale):
    """(y, lam) times c gives w times c and G times c^2."""
    X, y, X_val, y_val = make_data()
    for kind in ("interior", "binary"):
        plain = GroupLassoStructure(X, y, X_val, y_val, n_groups=L, lam_bounds=0.1)
        other = GroupLassoStructure(
            X, [scale * b for b in y], X_val, [scale * b for b in y_val], n_groups=L, lam_bounds=0.1 * scale
        )
        one, two = plain.evaluate(make_theta(kind), NO_LAM), other.evaluate(make_theta(kind), NO_LAM)
        np.testing.assert_allclose(two.value, scale**2 * one.value, rtol=1e-9)
        np.testing.assert_allclose(two.grad_theta, scale**2 * one.grad_theta, rtol=1e-6, atol=1e-8 * scale**2)


def test_the_engine_finds_the_groups():
    """Four features in two groups, from the lazily loaded kernels to a certified result."""
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(2, 40, 6, 4))
    coef = np.repeat(rng.permuted(np.tile([0.0, 1.0], (40, 1)), axis=1), 2, axis=1) * rng.uniform(0.5, 1.0, size=(40, 4))
    y, y_val = (np.einsum("tnp,tp->tn", A, coef) + 0.3 * rng.normal(size=(40, 6)) for A in (X, X_val))
    problem = GroupLassoStructure(X, y, X_val, y_val, n_groups=2)
    theta0 = problem.theta_set.start(np.random.default_rng(3))
    result = mb.relax_and_penalize(problem, theta0=theta0, seed=0, max_evaluations=300)
    labels = result.theta.argmax(axis=1)
    assert labels[0] == labels[1] != labels[2] == labels[3]
    np.testing.assert_allclose(problem.evaluate(result.theta.astype(float), result.lam).value, result.value, rtol=1e-9)


def test_numba_is_loaded_on_the_first_evaluation_only():
    code = (
        "import sys, numpy as np\n"
        "from mixbin.problems.group_lasso import GroupLassoStructure\n"
        "x = np.random.default_rng(0).normal(size=(3, 5, 4))\n"
        "problem = GroupLassoStructure(x, x[..., 0], x, x[..., 0], n_groups=2)\n"
        "print('numba' in sys.modules)\n"
        "problem.evaluate(problem.theta_set.start(), problem.lam_set.start())\n"
        "print('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == [
        "False",
        "True",
    ]


def test_fingerprint_tells_problems_apart():
    X, y, X_val, y_val = make_data()

    def fingerprint(X=X, y=y, X_val=X_val, y_val=y_val, n_groups=L, **settings):
        return GroupLassoStructure(X, y, X_val, y_val, n_groups, **settings).fingerprint()

    different = [
        fingerprint(),
        fingerprint(X=X[::-1], y=y[::-1]),
        fingerprint(y=[-b for b in y]),
        fingerprint(X_val=[2 * A for A in X_val]),
        fingerprint(y_val=[b + 1 for b in y_val]),
        fingerprint(n_groups=4),
        fingerprint(ridge=1e-2),
        fingerprint(lam_bounds=0.1),
        fingerprint(lam_bounds=(0.1, 1.0)),
        fingerprint(lower="unrolled"),
        fingerprint(lower="unrolled", q=3),
    ]
    assert len(set(different)) == len(different)
    assert fingerprint(q=3, n_jobs=2) == different[0]


def spoiled(entries, t, index, value):
    entries = [x.copy() for x in entries]
    entries[t][index] = value
    return entries


BAD_DATA = {
    "two dimensions": ("X", lambda a: a[0], r"X must be an array of shape \(tasks, rows, features\) or a list"),
    "a number": ("X", lambda a: 3.0, "X must be an array of shape"),
    "text": ("y", lambda a: "y", "y must be an array of shape"),
    "nothing": ("X", lambda a: [], "X must be .*at least one row"),
    "one dimension in a list": ("X", lambda a: [x[0] for x in a], r"X\[0\] must be an array of numbers with 2 dimensions"),
    "words": ("y", lambda a: [x.astype(str) for x in a], r"y\[0\] must be an array of numbers"),
    "no rows": ("X", lambda a: [x[:0] for x in a], r"X\[0\] must be a table that is not empty, got an array of shape \(0, 12\)"),
    "fewer targets": ("y", lambda a: [*a[:2], a[2][:-1], *a[3:]], r"y\[2\] must have one target per row of X\[2\], got 10 .* 11"),
    "fewer tasks in y": ("y", lambda a: a[:-1], "y must have the tasks of X, got 5 tasks against 6"),
    "other features": ("X", lambda a: [*a[:3], *(x[:, :4] for x in a[3:])], r"X\[3\] must have the features of X\[0\], got 4"),
    "other features in validation": ("X_val", lambda a: [x[:, :4] for x in a], "X_val must have the features of X, got 4 .* 12"),
    "missing": ("X", lambda a: spoiled(a, 1, (2, 3), np.nan), r"X\[1\] must be finite, got nan at index \(2, 3\); remove"),
    "infinite": ("y_val", lambda a: spoiled(a, 5, 0, np.inf), r"y_val\[5\] must be finite, got inf at index 0"),
    "overflow": ("X", lambda a: [1e200 * x for x in a], "X must have squares that fit in float64.*rescale"),
}


@pytest.mark.parametrize(("name", "change", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data(name, change, message):
    data = dict(zip(("X", "y", "X_val", "y_val"), make_data(), strict=True))
    data[name] = change(data[name])
    with pytest.raises(InvalidInput, match=f"^{message}"):
        GroupLassoStructure(**data, n_groups=L)


def test_bad_numbers_of_tasks():
    X, y, X_val, y_val = make_data()
    with pytest.raises(InvalidInput, match="X must hold at least two tasks, got 1; one task cannot show"):
        GroupLassoStructure(X[:1], y[:1], X_val[:1], y_val[:1], n_groups=L)
    with pytest.raises(InvalidInput, match="X_val must have the tasks of X, got 5 tasks against 6"):
        GroupLassoStructure(X, y, X_val[:5], y_val[:5], n_groups=L)
    cube = np.stack([x[:3] for x in X])
    with pytest.raises(InvalidInput, match=r"X must be finite, got nan at index \(1, 2, 3\)"):
        GroupLassoStructure(
            np.where(np.arange(cube.size).reshape(cube.shape) == 36 + 24 + 3, np.nan, cube), cube[..., 0], X_val, y_val
        )
    with pytest.raises(InvalidInput, match=r"y must be an array of shape \(tasks, rows\)"):
        GroupLassoStructure(cube, cube[:, :0, 0], X_val, y_val)


BAD_SETTINGS = [
    ({"n_groups": 1}, "n_groups must be a whole number from 2 to 12, got 1; one group leaves nothing to choose"),
    ({"n_groups": 13}, "n_groups must be a whole number from 2 to 12, got 13"),
    ({"n_groups": 2.5}, "n_groups must be a whole number"),
    ({"n_groups": True}, "n_groups must be a whole number"),
    ({"ridge": 0.0}, "ridge must be a finite number greater than 0, got 0.0; such as 1e-3"),
    ({"ridge": -1.0}, "ridge must be a finite number greater than 0"),
    ({"ridge": np.nan}, "ridge must be a finite number"),
    ({"lam_bounds": (1.0, 0.1)}, "lam_bounds must be a pair with low below high, got .*swap"),
    ({"lam_bounds": (0.1, 0.1)}, "lam_bounds must be a pair with low below high"),
    ({"lam_bounds": (0.0, 0.1)}, r"lam_bounds\[0\] must be a finite number greater than 0"),
    ({"lam_bounds": (0.1, np.inf)}, r"lam_bounds\[1\] must be a finite number"),
    ({"lam_bounds": (0.1, 0.2, 0.3)}, r"lam_bounds must be a pair \(low, high\)"),
    ({"lam_bounds": -0.1}, "lam_bounds must be a finite number greater than 0, got -0.1; pass a number"),
    ({"lam_bounds": "small"}, "lam_bounds must be a finite number"),
    ({"lower": "newton"}, "lower must be one of 'implicit', 'unrolled', got 'newton'"),
    ({"lower": None}, "lower must be one of"),
    ({"q": 0}, "q must be a whole number of at least 1, got 0"),
    ({"q": 2.5}, "q must be a whole number"),
    ({"n_jobs": 0}, "n_jobs must be a whole number of at least 1"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS, ids=str)
def test_bad_settings(settings, message):
    with pytest.raises(InvalidInput, match=f"^{message}"):
        GroupLassoStructure(*make_data(), **({"n_groups": L} | settings))


def test_bad_points():
    problem = GroupLassoStructure(*make_data(), n_groups=L)
    theta, lam = make_theta("binary"), np.array(0.1)
    bad = [
        (lambda: problem.evaluate(theta[:5], lam), r"theta must be an array of numbers of shape \(12, 3\)"),
        (lambda: problem.evaluate(theta * np.nan, lam), "theta must be finite"),
        (lambda: problem.evaluate(theta - 1, lam), "theta must not be negative, got -1 at index .*project"),
        (lambda: problem.evaluate(theta, np.array([0.1])), "lam must be an array of numbers of shape"),
        (lambda: problem.evaluate(theta, np.array(0.0)), "lam must be a finite number greater than 0, got 0.0; project"),
        (lambda: problem.evaluate(theta, lam, warm={"s": np.ones((2, 2))}), r"warm\['s'\] must be .*shape \(6, 3\)"),
        (lambda: problem.evaluate_terms(theta, lam, np.array([], dtype=int)), "terms must be whole numbers"),
        (lambda: problem.evaluate_terms(theta, lam, np.array([6])), "terms must be from 0 to 5"),
        (lambda: problem.evaluate_terms(theta, lam, np.array([0.5])), "terms must be whole numbers"),
        (lambda: problem.evaluate_moves(make_theta("interior"), lam, np.array([0]), np.array([1])), "theta must be binary"),
        (lambda: problem.evaluate_moves(0 * theta, lam, np.array([0]), np.array([1])), "theta must be one-hot in every row"),
        (lambda: problem.evaluate_moves(theta, lam, np.array([0]), np.array([36])), "on must be flat indices from 0 to 35"),
        (lambda: problem.evaluate_moves(theta, lam, np.array([-1]), np.array([3])), "off must be flat indices"),
        (
            lambda: problem.evaluate_moves(theta, lam, np.array([0, 1]), np.array([3])),
            "on must be a one-dimensional array of whole numbers",
        ),
        (
            lambda: problem.evaluate_moves(theta, lam, theta.ravel().nonzero()[0][:1], np.array([35])),
            "off and on must move the 1",
        ),
    ]
    for call, message in bad:
        with pytest.raises(InvalidInput, match=f"^{message}"):
            call()


def test_models_that_are_not_finite_are_told():
    X, y, X_val, y_val = make_data()
    problem = GroupLassoStructure(X, [1e120 * b for b in y], [1e100 * A for A in X_val], y_val, n_groups=L, lower="unrolled", q=3)
    with pytest.raises(DivergedError, match=r"the model of task 0 .* not finite at lam = 0\.1"):
        problem.evaluate(make_theta("interior"), np.array(0.1))

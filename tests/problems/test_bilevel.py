"""mb.bilevel: hypergradients against central differences and mixbin's own problems, precision, purity, errors."""

import subprocess
import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix as optx
import pytest

import mixbin as mb
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import FiniteSum, Problem
from mixbin.testing import check_problem

RNG = np.random.default_rng(0)
X, X_VAL = RNG.normal(size=(12, 3)), RNG.normal(size=(9, 3))
Y, Y_VAL = (A @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=len(A)) + 1 for A in (X, X_VAL))
NO_LAM = np.empty(0)


def ridge_inner(w, v, s):
    return (v * (X @ w["W"] + w["b"] - Y) ** 2).mean() + s * (w["W"] ** 2).sum()


def ridge_outer(w, v, s):
    return 0.5 * ((X_VAL @ w["W"] + w["b"] - Y_VAL) ** 2).mean()


RIDGE = {"theta_set": mb.Budget(12, 4), "lam_set": mb.Box(1e-2, 1.0, log=True)}
W0 = {"W": np.zeros(3), "b": 0.0}


def logistic_inner(w, mask, lam):
    """Which features to use, with a penalty for each of two groups of them."""
    scores = (X * mask) @ w
    return jnp.log1p(jnp.exp(-np.sign(Y - 1) * scores)).mean() + 0.5 * (lam[jnp.array([0, 0, 1])] * w**2).sum()


def logistic_outer(w, mask, lam):
    return jnp.log1p(jnp.exp(-np.sign(Y_VAL - 1) * ((X_VAL * mask) @ w))).mean()


def network_inner(w, v, lam):
    hidden = jnp.tanh(X @ w[0] + w[1])
    return (v.ravel() * (hidden @ w[2] - Y) ** 2).mean() + lam * sum((it**2).sum() for it in w)


def network_outer(w, v, lam):
    return ((jnp.tanh(X_VAL @ w[0] + w[1]) @ w[2] - Y_VAL) ** 2).mean() + 0.01 * v.sum()


NETWORK_W0 = [RNG.normal(size=(3, 2)), np.zeros(2), RNG.normal(size=2)]


def projected(w, v, s):
    """A projected gradient step: least squares with w >= 0."""
    gradient = 2 * X.T @ (v * (X @ w - Y)) / 12 + 2 * s * w
    return jnp.maximum(w - 0.3 * gradient, 0.0)


def projected_outer(w, v, s):
    return 0.5 * ((X_VAL @ w - Y_VAL) ** 2).mean()


DESCENT = optx.GradientDescent(0.2, rtol=1e-12, atol=1e-12)
PROBLEMS = {
    "ridge": ((ridge_outer, ridge_inner, W0), RIDGE, 1e-6),
    "features": (
        (logistic_outer, logistic_inner, np.zeros(3)),
        {"theta_set": mb.Hypercube(3), "lam_set": mb.Box([0.1, 0.1], [1, 1])},
        1e-6,
    ),
    "network": (
        (network_outer, network_inner, NETWORK_W0),
        {"theta_set": mb.Hypercube((3, 4)), "lam_set": mb.Box(0.05, 0.5)},
        1e-5,
    ),
    "projected": (
        (projected_outer, None, np.ones(3)),
        {"theta_set": mb.Budget(12, 4), "lam_set": mb.Box(1e-2, 1.0), "lower": mb.FixedPoint(projected, tol=1e-13)},
        1e-6,
    ),
}


@cache
def made(name, how):
    args, sets, _ = PROBLEMS[name]
    settings = dict(sets, hypergradient=mb.Unrolled(25) if how == "unrolled" else mb.Implicit(how))
    if how == "unrolled" and "lower" not in settings:
        settings["lower"] = mb.Minimise(DESCENT)
    return mb.bilevel(*args, **settings)


def point(problem, seed=1):
    rng = np.random.default_rng(seed)
    theta = problem.theta_set.project(rng.uniform(0.2, 0.8, size=problem.theta_set.shape))
    return theta, problem.lam_set.decode(rng.uniform(0.3, 0.7, size=problem.lam_set.shape))


def differences(problem, theta, lam, h=1e-5):
    def value(t, s):
        return problem.evaluate(t, s, gradient=False).value

    def slopes(x, f):
        out = np.empty(x.shape)
        for i in np.ndindex(x.shape):
            up, down = x.copy(), x.copy()
            up[i] += h
            down[i] -= h
            out[i] = (f(up) - f(down)) / (2 * h)
        return out

    return slopes(theta, lambda t: value(t, lam)), slopes(lam, lambda s: value(theta, s))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["auto", pytest.param("unrolled", marks=pytest.mark.ci)])
@pytest.mark.parametrize("name", [pytest.param(it, marks=[pytest.mark.ci] * (it in ("network", "features"))) for it in PROBLEMS])
def test_hypergradient_against_central_differences(name, how):
    problem = made(name, how)
    assert isinstance(problem, Problem)
    theta, lam = point(problem)
    got = problem.evaluate(theta, lam)
    by_theta, by_lam = differences(problem, theta, lam)
    tol = PROBLEMS[name][2]
    assert np.abs(by_theta).max() > 1e-3
    np.testing.assert_allclose(got.grad_theta, by_theta, rtol=tol, atol=tol * np.abs(by_theta).max())
    np.testing.assert_allclose(got.grad_lam, by_lam, rtol=tol, atol=tol * np.abs(by_lam).max())
    assert got.value == pytest.approx(problem.evaluate(theta, lam, gradient=False).value, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["auto", "unrolled"])
@pytest.mark.parametrize("name", [pytest.param(it, marks=[pytest.mark.ci] * (it in ("network", "features"))) for it in PROBLEMS])
def test_every_promise_of_a_problem(name, how):
    """A network has several minima, and a few unrolled steps depend on where they begin: warm starts differ there."""
    check_problem(made(name, how), trials=2, value_tol=None if name == "network" or how == "unrolled" else 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"),
    [("ridge", "neumann"), *(pytest.param(*it, marks=pytest.mark.ci) for it in (("ridge", "cg"), ("projected", "neumann")))],
)
def test_all_linear_solvers_agree(name, how):
    direct, other = made(name, "auto"), made(name, how)
    theta, lam = point(direct)
    a, b = direct.evaluate(theta, lam), other.evaluate(theta, lam)
    np.testing.assert_allclose(b.grad_theta, a.grad_theta, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(b.grad_lam, a.grad_lam, rtol=1e-6)
    assert b.info["linear_residual"] < 1e-7


@pytest.mark.slow
def test_it_is_ridge_distillation():
    known = mb.RidgeDistillation(X, Y, X_VAL, Y_VAL, budget=4, alpha=(1e-2, 1.0))
    problem = made("ridge", "auto")
    for seed in range(3):
        theta, lam = point(known, seed)
        a, b = known.evaluate(theta, lam), problem.evaluate(theta, lam)
        assert b.value == pytest.approx(a.value, rel=1e-8)
        np.testing.assert_allclose(b.grad_theta, a.grad_theta, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(b.grad_lam, a.grad_lam, rtol=1e-8)
    w = problem.model(theta, lam)
    np.testing.assert_allclose(w["W"], known.model(theta, lam)[0], rtol=1e-8)
    assert w["b"] == pytest.approx(known.model(theta, lam)[1], rel=1e-8)


def tasks():
    rng = np.random.default_rng(3)
    A, A_val = rng.normal(size=(2, 4, 10, 6))
    coef = np.repeat(rng.permuted(np.tile([0.0, 1.0], (4, 1)), axis=1), 3, axis=1)
    return A, np.einsum("tnp,tp->tn", A, coef) + 0.1, A_val, np.einsum("tnp,tp->tn", A_val, coef)


@pytest.mark.ci
def test_it_is_group_lasso_structure():
    """With the norm smoothed a little, minimised by BFGS; and the published steps as a map, unrolled."""
    A, b, A_val, b_val = tasks()
    N, eta, q = 10, 0.1, 40

    def loss(w):
        return 0.5 * ((jnp.einsum("tnp,tp->tn", A_val, w) - b_val) ** 2).mean()

    def inner(w, theta, lam):
        fit = 0.5 / N * ((jnp.einsum("tnp,tp->tn", A, w) - b) ** 2).sum()
        norms = jnp.sqrt(jnp.einsum("pl,tp->tl", theta**2, w**2) + 1e-14)
        return fit + lam * norms.sum() + 0.5 * eta * (w**2).sum()

    def primal(u, theta):
        rhs = jnp.einsum("tnp,tn->tp", A, b) / N - jnp.einsum("pl,tpl->tp", theta, u)
        return jnp.linalg.solve(np.einsum("tnp,tnq->tpq", A, A) / N + eta * np.eye(6), rhs[..., None])[..., 0]

    def dual(v, lam):
        return lam * v / jnp.sqrt(1 + (v**2).sum(axis=1, keepdims=True))

    def step(v, theta, lam):
        return v + 0.99 * eta / lam * jnp.einsum("pl,tp->tpl", theta, primal(dual(v, lam), theta))

    sets = {"theta_set": mb.OneHot(6, 2), "lam_set": mb.Box(1e-3, 1.0, log=True)}
    implicit = mb.bilevel(lambda w, t, s: loss(w), inner, np.zeros((4, 6)), **sets)
    unrolled = mb.bilevel(
        lambda v, t, s: loss(primal(dual(v, s), t)),
        None,
        np.zeros((4, 6, 2)),
        lower=mb.FixedPoint(step),
        hypergradient=mb.Unrolled(q),
        **sets,
    )
    theta, lam = mb.OneHot(6, 2).project(0.5 + 0.2 * np.random.default_rng(0).normal(size=(6, 2))), np.array(0.05)
    for lower, mine in (("implicit", implicit), ("unrolled", unrolled)):
        known = mb.GroupLassoStructure(A, b, A_val, b_val, n_groups=2, ridge=eta, lower=lower, q=q, n_jobs=1)
        expected, got = known.evaluate(theta, lam), mine.evaluate(theta, lam)
        assert got.value == pytest.approx(expected.value, rel=1e-5)
        np.testing.assert_allclose(got.grad_theta, expected.grad_theta, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(got.grad_lam, expected.grad_lam, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "lower",
    [
        optx.LBFGS(rtol=1e-9, atol=1e-9),
        pytest.param(
            mb.Minimise(optx.OptaxMinimiser(optax.adam(0.05), rtol=1e-7, atol=1e-7), max_steps=5000), marks=pytest.mark.ci
        ),
        pytest.param(
            mb.OwnSolver(
                lambda w, v, s: jax.lax.fori_loop(
                    0, 3000, lambda _, u: jax.tree.map(lambda a, g: a - 0.3 * g, u, jax.grad(ridge_inner)(u, v, s)), w
                )
            ),
            marks=pytest.mark.ci,
        ),
    ],
    ids=["L-BFGS", "adam", "own solver"],
)
def test_other_lower_levels_give_the_same(lower):
    reference = made("ridge", "auto")
    problem = mb.bilevel(ridge_outer, ridge_inner, W0, lower=lower, **RIDGE)
    theta, lam = point(reference)
    a, b = reference.evaluate(theta, lam), problem.evaluate(theta, lam)
    assert b.value == pytest.approx(a.value, rel=1e-6)
    np.testing.assert_allclose(b.grad_theta, a.grad_theta, rtol=1e-4, atol=1e-6)
    assert b.info["lower_converged"] == 1.0


@pytest.mark.slow
def test_evaluate_is_pure_warm_and_compiled_once():
    problem = mb.bilevel(ridge_outer, ridge_inner, W0, **RIDGE)
    theta, lam = point(problem)
    cold = problem.evaluate(theta, lam)
    other = problem.evaluate(*point(problem, 2), warm=cold.warm)
    warm = problem.evaluate(theta, lam, warm=other.warm)
    assert warm.value == pytest.approx(cold.value, rel=1e-12)
    at_rest = problem.evaluate(theta, lam, warm=cold.warm)
    assert at_rest.info["lower_steps"] < cold.info["lower_steps"]
    for first, start in ((cold, None), (warm, other.warm)):
        again = problem.evaluate(theta, lam, warm=start)
        assert again.value == first.value
        assert again.grad_theta.tobytes() == first.grad_theta.tobytes()
        assert again.warm["w"].tobytes() == first.warm["w"].tobytes()
    assert type(cold.warm["w"]) is np.ndarray
    assert problem.n_compiled == 2  # the lower level, and G with its gradient
    problem.evaluate(theta, lam, gradient=False)
    problem.evaluate(*point(problem, 3), gradient=False)
    assert problem.n_compiled == 3  # G alone: the lower level is not compiled again


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_float64_inside_and_the_users_setting_outside(wide):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", wide)
    try:
        problem = mb.bilevel(ridge_outer, ridge_inner, W0, **RIDGE)
        got = problem.evaluate(*point(problem))
        assert got.grad_theta.dtype == np.float64
        assert got.warm["w"].dtype == np.float64
        assert jax.config.jax_enable_x64 == wide
        assert jnp.ones(2).dtype == (jnp.float64 if wide else jnp.float32)
        assert got.value == made("ridge", "auto").evaluate(*point(problem)).value
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.ci
def test_terms_of_a_finite_sum():
    X_all, y_all = jnp.asarray(X_VAL), jnp.asarray(Y_VAL)

    def terms(w, v, s, idx):
        return 0.5 * ((X_all[idx] @ w["W"] + w["b"] - y_all[idx]) ** 2).mean()

    problem = mb.bilevel(ridge_outer, ridge_inner, W0, outer_terms=terms, n_terms=9, **RIDGE)
    assert isinstance(problem, FiniteSum)
    assert not isinstance(made("ridge", "auto"), FiniteSum)
    check_problem(problem, trials=1, value_tol=1e-5)  # jnp arrays made outside are float32
    theta, lam = point(problem)
    whole = problem.evaluate(theta, lam)
    parts = [problem.evaluate_terms(theta, lam, np.array([i])) for i in range(9)]
    assert np.mean([it.value for it in parts]) == pytest.approx(whole.value, rel=1e-6)  # jnp arrays made outside are float32
    np.testing.assert_allclose(np.mean([it.grad_theta for it in parts], axis=0), whole.grad_theta, rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidInput, match="terms must be whole numbers from 0 to 8"):
        problem.evaluate_terms(theta, lam, np.array([9]))
    result = mb.relax_and_penalize(problem, solver="saga", starts=1, max_evaluations=20, seed=0)
    assert result.theta.sum() == 4


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_a_singular_lower_level_says_what_to_add(solver):
    """Two equal columns: many w fit equally well, so that w has no derivative."""
    X, y = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), np.array([1.0, 2.0, 2.0])

    def problem(ridge):
        return mb.bilevel(
            lambda w, theta, lam: (w[0] - 1.0) ** 2,
            lambda w, theta, lam: (theta * (X @ w - y) ** 2).sum() + ridge * (w**2).sum(),
            np.zeros(2),
            theta_set=mb.Budget(3, 2),
            hypergradient=mb.Implicit(solver),
        )

    with pytest.raises(mb.DivergedError, match=r"no isolated minimiser.*add a ridge term"):
        mb.relax_and_penalize(problem(0.0), seed=0)
    assert np.isfinite(mb.relax_and_penalize(problem(1e-3), seed=0, max_evaluations=40).value)


def test_a_lower_level_that_does_not_converge():
    short = mb.Minimise(DESCENT, max_steps=3, newton=0, limit=10.0)
    problem = mb.bilevel(ridge_outer, ridge_inner, W0, lower=short, **RIDGE)
    result = mb.relax_and_round(problem, starts=1, max_evaluations=5, seed=0)
    assert result.trace.column("lower_converged")[0] == 0.0
    assert result.trace.column("lower_residual")[0] > 1e-3
    strict = mb.bilevel(ridge_outer, ridge_inner, W0, lower=mb.Minimise(DESCENT, max_steps=3, newton=0), **RIDGE)
    with pytest.raises(
        DivergedError, match=r"not converged: after 3 steps w still has a gradient of .* above limit = 0.01; raise max_steps"
    ):
        strict.evaluate(*point(strict))


class Refusing:
    """An object that offers itself as an array and then does not become one."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


BAD = {
    "outer": (lambda: mb.bilevel(3, ridge_inner, W0, **RIDGE), "outer must be a function of"),
    "inner": (lambda: mb.bilevel(ridge_outer, None, W0, **RIDGE), "inner must be a function when lower is a minimiser"),
    "theta_set": (lambda: mb.bilevel(ridge_outer, ridge_inner, W0, theta_set=4), "theta_set must be a set of binary"),
    "lam_set": (lambda: mb.bilevel(ridge_outer, ridge_inner, W0, theta_set=mb.Budget(12, 4), lam_set=1), "lam_set must be a Box"),
    "lower": (lambda: mb.bilevel(ridge_outer, ridge_inner, W0, lower="bfgs", **RIDGE), "lower must be an optimistix minimiser"),
    "hypergradient": (
        lambda: mb.bilevel(ridge_outer, ridge_inner, W0, hypergradient="cg", **RIDGE),
        "hypergradient must be Impl",
    ),
    "w0": (lambda: mb.bilevel(ridge_outer, ridge_inner, [], **RIDGE), "w0 must be an array or a pytree"),
    "nan": (lambda: mb.bilevel(ridge_outer, ridge_inner, np.array([np.nan]), **RIDGE), "w0 must be finite"),
    "iterator": (lambda: mb.bilevel(ridge_outer, ridge_inner, (w for w in W0), **RIDGE), "w0 must be an array"),
    "keys": (lambda: mb.bilevel(ridge_outer, ridge_inner, {1: W0, "a": W0}, **RIDGE), "w0 must be an array or a pytree"),
    "masked": (
        lambda: mb.bilevel(ridge_outer, ridge_inner, [np.ma.masked_array(np.zeros(3), [1, 0, 0])], **RIDGE),
        "w0 must have a value in every entry, got 1 masked",
    ),
    "no array": (lambda: mb.bilevel(ridge_outer, ridge_inner, Refusing(), **RIDGE), "w0 must be an array of numbers"),
    "vector": (lambda: mb.bilevel(lambda w, v, s: v, ridge_inner, W0, **RIDGE), "return value of outer must be one real number"),
    "terms": (
        lambda: mb.bilevel(ridge_outer, ridge_inner, W0, n_terms=3, **RIDGE),
        "outer_terms and n_terms must be given together",
    ),
    "solver": (lambda: mb.Implicit("lu"), "solver must be one of 'auto', 'direct', 'cg', 'neumann'"),
    "cg": (
        lambda: mb.bilevel(
            projected_outer, None, np.ones(3), lower=mb.FixedPoint(projected), hypergradient=mb.Implicit("cg"), **RIDGE
        ),
        "its matrix is not symmetric",
    ),
    "unrolled": (
        lambda: mb.bilevel(
            ridge_outer, ridge_inner, W0, lower=mb.OwnSolver(lambda w, v, s: w), hypergradient=mb.Unrolled(3), **RIDGE
        ),
        "Implicit.. when lower is an OwnSolver",
    ),
    "limit": (lambda: mb.Minimise(tol=1.0, limit=0.1), "limit must be"),
    "first order": (
        lambda: mb.bilevel(
            projected_outer, None, np.ones(3), lower=mb.FixedPoint(projected), hypergradient=mb.FirstOrder(), **RIDGE
        ),
        "hypergradient must be FirstOrder.weight. with lower=Minimise",
    ),
    "weight": (lambda: mb.FirstOrder(0.0), "weight must be a finite number greater than 0"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


@pytest.mark.slow
def test_without_jax_the_package_works_and_bilevel_says_what_to_install():
    code = (
        "import sys\n"
        "for name in ('jax', 'equinox', 'lineax', 'optimistix'): sys.modules[name] = None\n"
        "import mixbin as mb\n"
        "mb.relax_and_penalize(mb.FunctionProblem(lambda t: (t[0], t * 0), mb.Budget(3, 2)), seed=0)\n"
        "mb.Implicit(), mb.SoftmaxDistillation, mb.DistillationClassifier\n"
        "try:\n"
        "    mb.bilevel(None, None, None, theta_set=None)\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert got.strip() == "mixbin.bilevel needs jax, which is not installed; pip install 'mixbin[jax]'"

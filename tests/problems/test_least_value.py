"""The lower bound of distillation: below every selection with every alpha, and reached by the best linear model."""

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import mixbin as mb
from mixbin.checked_problem import CheckedProblem

pytestmark = pytest.mark.slow

NO_LAM = np.empty(0)


def make_data(seed, m=9, n=12, d=2, targets=None):
    rng = np.random.default_rng(seed)
    shape = (m + n,) if targets is None else (m + n, targets)
    X, y = rng.normal(size=(m + n, d)) + 3.0, rng.normal(size=shape)
    return X[:m], y[:m], X[m:], y[m:]


def least(X_val, y_val):
    """The loss of the best linear model with intercept, by NumPy's least squares."""
    A = np.column_stack([X_val, np.ones(len(X_val))])
    coef = np.linalg.lstsq(A, y_val, rcond=None)[0]
    return 0.5 * np.sum((A @ coef - y_val) ** 2) / len(X_val)


KINDS = ["dense", "single", "sparse", "chunks", "dask"]


@pytest.fixture(autouse=True)
def _threads():
    with dask.config.set(scheduler="threads"):
        yield


def made(kind, X, y, X_val, y_val, **keywords):
    if kind == "single":
        return mb.RidgeDistillation(X.astype(np.float32), y, X_val.astype(np.float32), y_val, **keywords)
    if kind == "sparse":
        return mb.RidgeDistillation(sparse.csr_array(X), y, sparse.csr_array(X_val), y_val, **keywords)
    if kind == "chunks":
        return mb.RidgeDistillation(X, y, X_val, y_val, chunks=[4, len(X) - 4], **keywords)
    if kind == "dask":
        X, y, X_val, y_val = (da.from_array(it, chunks=(4, *it.shape[1:])) for it in (X, y, X_val, y_val))
    return mb.RidgeDistillation(X, y, X_val, y_val, **keywords)


@pytest.mark.parametrize("kind", [pytest.param(it, marks=[pytest.mark.ci] * (it == "dask")) for it in KINDS])
@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.ci), pytest.param(2, marks=pytest.mark.ci)])
def test_no_selection_falls_below_and_the_best_model_reaches_it(kind, targets, seed):
    data = make_data(seed, targets=targets)
    alpha = 10.0 ** np.random.default_rng([seed, 5]).uniform(-6, 1)
    problem = made(kind, *data, budget=4, alpha=alpha)
    bound = CheckedProblem(problem).lower_bound(problem.theta_set.start(), NO_LAM)
    assert bound == pytest.approx(least(*data[2:]), rel=1e-5 if kind == "single" else 1e-8)
    best = mb.enumerate_binary(problem).value
    assert 0 < bound <= best
    result = mb.relax_and_penalize(problem, starts=1, seed=0)
    assert result.certificate.lower_bound == bound
    assert result.certificate.gap == (result.value - bound) / result.value >= (best - bound) / best * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse", "chunks"])
def test_no_alpha_falls_below(kind):
    problem = made(kind, *make_data(4), budget=4, alpha=(1e-6, 1e3))
    bound = problem.lower_bound(problem.theta_set.start(), problem.lam_set.start())
    rng = np.random.default_rng(0)
    for _ in range(200):
        theta = problem.theta_set.vertex(rng.uniform(size=9)).astype(float)
        assert problem.evaluate(theta, np.asarray(10.0 ** rng.uniform(-6, 3))).value >= bound
    assert mb.enumerate_binary(problem).value >= bound


@pytest.mark.parametrize("kind", ["dense", "sparse", "chunks"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7])
def test_few_validation_rows(kind, n):
    """With at most d + 1 = 4 of them some model predicts all, and nothing is claimed."""
    X, y, X_val, y_val = make_data(n, m=12, n=n, d=3)
    problem = made(kind, X, y, X_val, y_val, budget=5, alpha=0.01)
    bound = problem.lower_bound(problem.theta_set.start(), NO_LAM)
    certificate = mb.relax_and_penalize(problem, starts=1, seed=0).certificate
    if n <= 4:
        assert bound == 0
        assert np.isnan(certificate.gap)
    else:
        assert bound == pytest.approx(least(X_val, y_val), rel=1e-8)
        assert certificate.gap > 0


@pytest.mark.parametrize("kind", ["dense", "sparse", "chunks"])
def test_exact_fits_and_columns_that_say_the_same_make_no_error(kind):
    X, _, X_val, _ = make_data(3, m=20, n=30, d=3)
    X, X_val = np.column_stack([X, X[:, 0], 2 * X[:, 1]]), np.column_stack([X_val, X_val[:, 0], 2 * X_val[:, 1]])
    coef = np.array([1.0, 2.0, 3.0, 0.0, 0.0])
    for alpha in (1e-12, 1e-3, 10.0):
        problem = made(kind, X, X @ coef, X_val, X_val @ coef, budget=8, alpha=alpha)
        certificate = mb.relax_and_penalize(problem, starts=1, seed=0).certificate
        assert certificate.lower_bound == 0
        assert np.isnan(certificate.gap)


def test_a_wrapper_hands_no_bound_on():
    problem = mb.RidgeDistillation(*make_data(0), budget=4, alpha=0.1)
    assert CheckedProblem(mb.PublishedGradient(problem, batch=4)).lower_bound(problem.theta_set.start(), NO_LAM) == -np.inf

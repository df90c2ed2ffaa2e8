"""RidgeDistillation against finite differences, scikit-learn and the published anchor."""

import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from mixbin.errors import DivergedError, InfeasibleSet, InvalidInput
from mixbin.problem import Problem
from mixbin.problems import RidgeDistillation
from tests.shared_data import shared_file

NO_LAM = np.empty(0)
# Columns as in real tables: very different scales, and offsets far larger than the spread.
SCALES, OFFSETS = np.array([1.0, 10.0, 1e3, 1e-2, 1.0]), np.array([0.0, 5.0, 2e5, 1.0, -3.0])


def make_data(targets=None, m=40, n=23, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = (rng.normal(size=(rows, len(SCALES))) * SCALES + OFFSETS for rows in (m, n))
    shape = () if targets is None else (targets,)
    coef = rng.normal(size=(len(SCALES), *shape)) / SCALES.reshape(-1, *(1 for _ in shape))
    y, y_val = (A @ coef + 7.0 + 0.5 * rng.normal(size=(len(A), *shape)) for A in (X, X_val))
    return X, y, X_val, y_val


def make_theta(kind, m=40, seed=1):
    rng = np.random.default_rng(seed)
    interior = rng.uniform(0.05, 0.95, size=m)
    binary = (np.arange(m) % 5 == 0).astype(float)
    return {"interior": interior, "binary": binary, "some zero": np.where(np.arange(m) < 15, 0.0, interior)}[kind]


def derivative(f, x, h, *, central):
    """Second order from both sides, or from the right where x is at its bound."""
    return (f(x + h) - f(x - h)) / (2 * h) if central else (-3 * f(x) + 4 * f(x + h) - f(x + 2 * h)) / (2 * h)


def with_entry(theta, i, value):
    theta = theta.copy()
    theta[i] = value
    return theta


def half_mean_square(model, X, y):
    return 0.5 * np.sum((model.predict(X).reshape(y.shape) - y) ** 2) / len(X)


@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("kind", ["interior", "binary", "some zero"])
class TestAgainstReferences:
    def test_gradient_in_theta(self, targets, kind):
        problem = RidgeDistillation(*make_data(targets), budget=8, alpha=0.3)
        theta = make_theta(kind)
        got = problem.evaluate(theta, NO_LAM)
        expected = [
            derivative(
                lambda t, i=i: problem.evaluate(with_entry(theta, i, t), NO_LAM).value, theta[i], 1e-5, central=theta[i] > 0
            )
            for i in range(len(theta))
        ]
        np.testing.assert_allclose(got.grad_theta, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
        assert got.grad_lam.shape == (0,)

    def test_gradient_in_alpha(self, targets, kind):
        problem = RidgeDistillation(*make_data(targets), budget=8, alpha=(1e-3, 10.0))
        theta, lam = make_theta(kind), 0.3
        got = problem.evaluate(theta, np.array(lam))
        expected = derivative(lambda s: problem.evaluate(theta, np.array(s)).value, lam, 1e-5, central=True)
        assert got.grad_lam.shape == ()
        np.testing.assert_allclose(got.grad_lam, expected, rtol=1e-7)

    def test_value_and_model_are_those_of_weighted_ridge(self, targets, kind):
        X, y, X_val, y_val = make_data(targets)
        problem = RidgeDistillation(X, y, X_val, y_val, budget=8, alpha=0.3)
        theta = make_theta(kind)
        reference = Ridge(alpha=len(X) * 0.3).fit(X, y, sample_weight=theta)
        coef, intercept = problem.model(theta)
        assert coef.shape == ((5,) if targets is None else (targets, 5))
        assert np.linalg.norm(coef - reference.coef_) <= 1e-8 * np.linalg.norm(reference.coef_)
        np.testing.assert_allclose(intercept, reference.intercept_, rtol=1e-8)
        np.testing.assert_allclose(problem.evaluate(theta, NO_LAM).value, half_mean_square(reference, X_val, y_val), rtol=1e-8)


def test_value_is_that_of_ridge_retrained_on_the_selected_rows():
    X, y, X_val, y_val = make_data()
    theta = make_theta("binary")
    problem = RidgeDistillation(X, y, X_val, y_val, budget=8, alpha=0.3)
    keep = theta > 0
    reference = Ridge(alpha=len(X) * 0.3).fit(X[keep], y[keep])
    got = problem.evaluate(theta, NO_LAM)
    np.testing.assert_allclose(got.value, half_mean_square(reference, X_val, y_val), rtol=1e-8)
    assert got.info["rows"] == keep.sum()


@pytest.mark.parametrize("n", [1, 3, 5, 6, 7, 200])
def test_any_number_of_validation_rows(n):
    """The validation set is compressed once it has more rows than columns; nothing must be seen of it."""
    X, y, X_val, y_val = make_data(n=n)
    theta = make_theta("interior")
    reference = Ridge(alpha=len(X) * 0.3).fit(X, y, sample_weight=theta)
    value = RidgeDistillation(X, y, X_val, y_val, budget=8, alpha=0.3).evaluate(theta, NO_LAM).value
    np.testing.assert_allclose(value, half_mean_square(reference, X_val, y_val), rtol=1e-8)


def test_rows_are_summed_over_several_blocks(monkeypatch):
    X, y, X_val, y_val = make_data()
    theta = make_theta("some zero")
    whole = RidgeDistillation(X, y, X_val, y_val, budget=8, alpha=0.3).evaluate(theta, NO_LAM)
    monkeypatch.setattr("mixbin.data.rows.ENTRIES_AT_ONCE", 20)
    blocks = RidgeDistillation(X, y, X_val, y_val, budget=8, alpha=0.3).evaluate(theta, NO_LAM)
    np.testing.assert_allclose(blocks.value, whole.value, rtol=1e-12)
    np.testing.assert_allclose(blocks.grad_theta, whole.grad_theta, rtol=1e-9, atol=1e-14)


def test_rows_far_from_the_others_keep_their_digits():
    """A selection whose mean is a million spreads away from the mean of all rows."""
    X, y, X_val, y_val = make_data()
    X = X + np.where(np.arange(len(X)) % 5 == 0, 1e6, 0.0)[:, None] * SCALES
    theta = make_theta("binary")
    coef, _ = RidgeDistillation(X, y, X_val, y_val, budget=8, alpha=1e-3).model(theta)
    reference = Ridge(alpha=len(X) * 1e-3).fit(X[theta > 0], y[theta > 0])
    assert np.linalg.norm(coef - reference.coef_) <= 1e-8 * np.linalg.norm(reference.coef_)


@pytest.mark.slow
def test_published_anchor_on_blog_data():
    """First iterate of the published run, on validation and on test (docs/maths.md, "BlogFeedback and YearPredictionMSD")."""
    with zipfile.ZipFile(shared_file("BlogFeedback.zip")) as archive:
        tests = sorted(name for name in archive.namelist() if name.startswith("blogData_test"))
        names = ["blogData_train.csv", *tests]
        train, *others = (pd.read_csv(archive.open(name), header=None, dtype=float).to_numpy() for name in names)
    held_out = np.vstack(others)
    X, y = train[:, :-1], train[:, -1]
    theta = np.full(len(X), 10479 / 52397)
    for rows, expected in ((held_out[1089:], 365.4181231), (held_out[:1089], 257.8363169)):
        problem = RidgeDistillation(X, y, rows[:, :-1], rows[:, -1], budget=0.2, alpha=100.0)
        assert problem.theta_set.k == 10479
        assert round(problem.evaluate(theta, NO_LAM, gradient=False).value, 7) == expected
    # The columns of these data span nine decades.
    rows = np.random.default_rng(0).choice(len(X), 5240, replace=False)
    coef, intercept = problem.model(np.isin(np.arange(len(X)), rows))
    reference = Ridge(alpha=len(X) * 100.0).fit(X[rows], y[rows])
    assert np.linalg.norm(coef - reference.coef_) <= 1e-8 * np.linalg.norm(reference.coef_)
    np.testing.assert_allclose(intercept, reference.intercept_, rtol=1e-8)


def test_identical_rows_have_identical_gradients():
    X, y, X_val, y_val = make_data()
    X[10:14], y[10:14] = X[3], y[3]
    theta = make_theta("interior")
    grad = RidgeDistillation(X, y, X_val, y_val, budget=8, alpha=0.3).evaluate(theta, NO_LAM).grad_theta
    np.testing.assert_allclose(grad[10:14], grad[3], rtol=1e-12)


def test_only_the_sum_over_identical_rows_counts():
    X, y, X_val, y_val = make_data()
    X[10:14], y[10:14] = X[3], y[3]
    problem = RidgeDistillation(X, y, X_val, y_val, budget=8, alpha=0.3)
    one, spread = make_theta("some zero"), make_theta("some zero")
    one[[3, *range(10, 14)]] = [1.0, 0.0, 0.0, 0.0, 0.0]
    spread[[3, *range(10, 14)]] = 0.2
    np.testing.assert_allclose(problem.evaluate(one, NO_LAM).value, problem.evaluate(spread, NO_LAM).value, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.3, (0.1, 1.0)])
def test_empty_selection(alpha):
    problem = RidgeDistillation(*make_data(), budget=8, alpha=alpha)
    lam = problem.lam_set.start()
    got = problem.evaluate(np.zeros(40), lam)
    assert got.value == np.inf
    assert got.info["rows"] == 0
    np.testing.assert_array_equal(got.grad_theta, np.zeros(40))
    np.testing.assert_array_equal(got.grad_lam, np.zeros(problem.lam_set.shape))
    with pytest.raises(InvalidInput, match="theta must select at least one row"):
        problem.model(np.zeros(40), lam)


def test_one_row_predicts_its_own_target():
    X, y, X_val, y_val = make_data()
    problem = RidgeDistillation(X, y, X_val, y_val, budget=1, alpha=0.3)
    coef, intercept = problem.model(np.arange(40) == 7)
    np.testing.assert_allclose(coef, 0, atol=1e-12)
    np.testing.assert_allclose(intercept, y[7], rtol=1e-9)


def test_evaluate_is_pure():
    data = make_data(3)
    copies = [a.copy() for a in data]
    problem = RidgeDistillation(*data, budget=8)
    theta, lam = make_theta("some zero"), problem.lam_set.start()
    theta.flags.writeable = lam.flags.writeable = False
    first = problem.evaluate(theta, lam)
    problem.evaluate(make_theta("binary"), lam * 2)
    for array in data:
        array[:] = 0.0
    second = problem.evaluate(theta, lam)
    assert first.value == second.value
    np.testing.assert_array_equal(first.grad_theta, second.grad_theta)
    np.testing.assert_array_equal(first.grad_lam, second.grad_lam)
    again = RidgeDistillation(*copies, budget=8)
    assert again.evaluate(theta, lam).value == first.value
    assert again.fingerprint() == problem.fingerprint()


def test_without_gradient_the_value_is_the_same():
    problem = RidgeDistillation(*make_data(), budget=8, alpha=0.3)
    theta = make_theta("interior")
    bare = problem.evaluate(theta, NO_LAM, gradient=False)
    assert bare.value == problem.evaluate(theta, NO_LAM).value
    assert bare.grad_theta is None
    assert bare.grad_lam is None


def test_sets_and_contract():
    X, y, X_val, y_val = make_data()
    problem = RidgeDistillation(X, y, X_val, y_val)
    assert isinstance(problem, Problem)
    assert (problem.theta_set.shape, problem.theta_set.k) == ((40,), 4)
    assert problem.lam_set.shape == ()
    assert problem.lam_set.log
    scale = X.var(axis=0).mean()
    np.testing.assert_allclose(problem.alpha, (1e-6 * scale, 1e2 * scale))
    assert RidgeDistillation(X, y, X_val, y_val, alpha=2).lam_set.shape == (0,)
    assert RidgeDistillation(X, y, X_val, y_val, alpha=[0.5, 2]).alpha == (0.5, 2.0)


def test_tables_and_layouts_are_read_alike():
    X, y, X_val, y_val = make_data()
    theta = make_theta("interior")
    value = RidgeDistillation(X, y, X_val, y_val, alpha=0.3).evaluate(theta, NO_LAM).value
    frames = RidgeDistillation(pd.DataFrame(X), pd.Series(y), pd.DataFrame(X_val), pd.Series(y_val), alpha=0.3)
    assert frames.evaluate(theta, NO_LAM).value == value
    columns_first = RidgeDistillation(np.asfortranarray(X), y, np.asfortranarray(X_val), y_val, alpha=0.3)
    np.testing.assert_allclose(columns_first.evaluate(theta, NO_LAM).value, value, rtol=1e-12)


@pytest.mark.parametrize("blocks", [False, True])
def test_single_precision_tables_are_summed_in_double(blocks, monkeypatch):
    """Against the same numbers as float64: what float32 costs is the rounding of single entries, not of sums."""
    if blocks:
        monkeypatch.setattr("mixbin.data.rows.ENTRIES_AT_ONCE", 20)
    single = [a.astype(np.float32) for a in make_data(m=400)]
    few, many = RidgeDistillation(*single, alpha=0.3), RidgeDistillation(*(a.astype(np.float64) for a in single), alpha=0.3)
    assert few._rows._Z.dtype == np.float32
    for theta in (make_theta("interior", m=400), np.eye(1, 400)[0] + np.eye(1, 400, k=7)[0]):
        a, b = few.evaluate(theta, NO_LAM), many.evaluate(theta, NO_LAM)
        assert a.grad_theta.dtype == np.float64
        np.testing.assert_allclose(a.value, b.value, rtol=1e-6)
        np.testing.assert_allclose(a.grad_theta, b.grad_theta, rtol=1e-4, atol=1e-6 * np.abs(b.grad_theta).max())


def test_fingerprint_tells_problems_apart():
    X, y, X_val, y_val = make_data()

    def fingerprint(X=X, y=y, X_val=X_val, y_val=y_val, **settings):
        return RidgeDistillation(X, y, X_val, y_val, **settings).fingerprint()

    different = [
        fingerprint(),
        fingerprint(X=X + (np.arange(len(X)) == 3)[:, None] * 1e-9),
        fingerprint(X=X + 1.0),
        fingerprint(y=-y),
        fingerprint(y=y[:, None], y_val=y_val[:, None]),
        fingerprint(X_val=X_val[::-1]),
        fingerprint(y_val=y_val + 1),
        fingerprint(budget=5),
        fingerprint(alpha=0.3),
        fingerprint(alpha=(0.3, 1.0)),
    ]
    assert len(set(different)) == len(different)
    assert fingerprint(budget=0.1) == fingerprint(budget=4) == different[0]


def changed(a, index, value):
    a = a.copy()
    a[index] = value
    return a


BAD_DATA = {
    "one dimension": ("X", lambda a: a[:, 0], r"X must be a table of shape \(rows, columns\).*shape \(40,\)"),
    "no rows": ("X", lambda a: a[:0], r"X must be a table .* shape \(0, 5\)"),
    "no columns": ("X_val", lambda a: a[:, :0], r"X_val must be a table .* shape \(23, 0\)"),
    "text": ("X", lambda a: a.astype(str), "X must be an array of numbers"),
    "missing": ("X", lambda a: changed(a, (3, 1), np.nan), r"X must be finite, got nan at index \(3, 1\); remove"),
    "infinite": ("X_val", lambda a: changed(a, (0, 4), np.inf), r"X_val must be finite, got inf at index \(0, 4\)"),
    "overflow": ("X", lambda a: a * 1e200, "X and y must have squares that fit in float64.*rescale"),
    "overflow in validation": ("X_val", lambda a: a * 1e200, "X_val and y_val must have squares that fit.*rescale"),
    "other columns": ("X_val", lambda a: a[:, :3], "X_val must have the columns of X, got 3 columns against 5"),
    "other rows": ("y", lambda a: a[:-1], r"y must be an array of shape \(40,\) or \(40, targets\), got .*\(39,\).*per row of X"),
    "other validation rows": ("y_val", lambda a: a[:-1], r"y_val must be .*\(23,\).*per row of X_val"),
    "a number": ("y", lambda a: 1.0, "y must be an array of shape"),
    "missing target": ("y", lambda a: changed(a, 7, np.nan), "y must be finite, got nan at index 7"),
    "no targets": ("y", lambda a: a[:, None][:, :0], r"y must be an array of shape \(40,\)"),
    "other targets": ("y_val", lambda a: a[:, None], r"y_val must have the targets of y, got shape \(23, 1\) against \(40,\)"),
}


@pytest.mark.parametrize(("name", "change", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data(name, change, message):
    data = dict(zip(("X", "y", "X_val", "y_val"), make_data(), strict=True))
    data[name] = change(data[name])
    with pytest.raises(InvalidInput, match=message):
        RidgeDistillation(**data)


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (0.0, "alpha must be a finite number greater than 0, got 0.0; pass a number to fix it"),
        (-1, "alpha must be a finite number greater than 0, got -1"),
        (np.nan, "alpha must be a finite number"),
        (np.inf, "alpha must be a finite number"),
        ("0.1", "alpha must be a finite number greater than 0, got '0.1'"),
        (True, "alpha must be a finite number"),
        ((1.0, 0.1), "alpha must be a pair with low below high.*swap"),
        ((1.0, 1.0), "alpha must be a pair with low below high.*one number"),
        ((0.0, 1.0), r"alpha\[0\] must be a finite number greater than 0"),
        ((0.1, np.inf), r"alpha\[1\] must be a finite number"),
        ((0.1, 1.0, 2.0), r"alpha must be a pair \(low, high\)"),
        ([], r"alpha must be a pair \(low, high\)"),
    ],
)
def test_bad_alpha(alpha, message):
    with pytest.raises(InvalidInput, match=message):
        RidgeDistillation(*make_data(), alpha=alpha)


@pytest.mark.parametrize("budget", [0, 41, -3, 0.0, 1.5, 1e-3, np.nan, "10%", None, True])
def test_bad_budget(budget):
    with pytest.raises(InvalidInput, match="budget must be"):
        RidgeDistillation(*make_data(), budget=budget)


def test_budget_above_the_rows_is_infeasible():
    with pytest.raises(InfeasibleSet):
        RidgeDistillation(*make_data(), budget=41)


def test_default_alpha_needs_a_column_that_varies():
    X, y, X_val, y_val = make_data()
    constant = np.ones_like(X)
    with pytest.raises(InvalidInput, match="alpha=None needs a column of X that varies"):
        RidgeDistillation(constant, y, X_val, y_val)
    coef, intercept = RidgeDistillation(constant, y, X_val, y_val, alpha=1.0).model(np.ones(40))
    np.testing.assert_array_equal(coef, np.zeros(5))
    np.testing.assert_allclose(intercept, y.mean())


@pytest.mark.parametrize(
    ("theta", "lam", "message"),
    [
        (np.ones(39), 0.3, r"theta must be an array of numbers of shape \(40,\)"),
        (np.full(40, np.nan), 0.3, "theta must be finite"),
        (np.full(40, -0.1), 0.3, "theta must not be negative, got -0.1 at index 0"),
        (np.ones(40), [0.3], r"lam must be an array of numbers of shape \(\)"),
        (np.ones(40), 0.0, "lam must be a finite number greater than 0"),
    ],
)
def test_bad_points(theta, lam, message):
    with pytest.raises(InvalidInput, match=message):
        RidgeDistillation(*make_data(), alpha=(0.1, 1.0)).evaluate(theta, np.array(lam))


def test_a_system_without_solution_says_what_to_do():
    X, y, X_val, y_val = make_data()
    twice = RidgeDistillation(np.hstack([X, X]), y, np.hstack([X_val, X_val]), y_val, alpha=1e-300)
    with pytest.raises(DivergedError, match="singular at alpha = 1e-300; raise alpha or rescale"):
        twice.evaluate(make_theta("binary"), NO_LAM)


def sparse_data(targets=None, seed=0):
    """A table of counts, most of them 0, and the same as a sparse matrix."""
    rng = np.random.default_rng(seed)
    X, X_val = (rng.poisson(0.3, size=(rows, 6)).astype(float) for rows in (40, 23))
    shape = () if targets is None else (targets,)
    coef = rng.normal(size=(6, *shape))
    y, y_val = (A @ coef + 0.3 * rng.normal(size=(len(A), *shape)) for A in (X, X_val))
    return (X, y, X_val, y_val), (sparse.csr_array(X), y, sparse.csc_matrix(X_val), y_val)


@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("alpha", [0.05, (1e-3, 1.0)])
def test_sparse_tables_give_what_dense_ones_give(targets, alpha):
    dense_data, thin_data = sparse_data(targets)
    dense, thin = (RidgeDistillation(*data, budget=9, alpha=alpha) for data in (dense_data, thin_data))
    lam = np.array(0.1) if dense.lam_set.size else NO_LAM
    rng = np.random.default_rng(1)
    for theta in (rng.uniform(size=40), dense.theta_set.vertex(rng.uniform(size=40)).astype(float), np.full(40, 9 / 40)):
        a, b = dense.evaluate(theta, lam), thin.evaluate(theta, lam)
        assert b.value == pytest.approx(a.value, rel=1e-10)
        np.testing.assert_allclose(b.grad_theta, a.grad_theta, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(b.grad_lam, a.grad_lam, rtol=1e-8)
        np.testing.assert_allclose(thin.model(theta, lam)[0], dense.model(theta, lam)[0], rtol=1e-8)
    theta = dense.theta_set.vertex(rng.uniform(size=40)).astype(float)
    assert thin.best_move(theta, lam)[:2] == dense.best_move(theta, lam)[:2]
    assert thin.fingerprint() != dense.fingerprint()


@pytest.mark.parametrize("targets", [None, 3])
def test_sparse_gradient_against_central_differences(targets):
    problem = RidgeDistillation(*sparse_data(targets)[1], budget=9, alpha=(1e-3, 1.0))
    theta, lam = np.random.default_rng(2).uniform(0.1, 0.9, size=40), np.array(0.1)
    theta[:5], theta[5:9] = 1.0, 0.0
    got = problem.evaluate(theta, lam)
    expected = [
        derivative(lambda t, i=i: problem.evaluate(with_entry(theta, i, t), lam).value, theta[i], 1e-5, central=theta[i] > 0)
        for i in range(40)
    ]
    np.testing.assert_allclose(got.grad_theta, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    expected_lam = derivative(lambda s: problem.evaluate(theta, np.array(s)).value, 0.1, 1e-5, central=True)
    assert float(got.grad_lam) == pytest.approx(expected_lam, rel=1e-6)


def test_a_sparse_table_with_a_missing_value_is_refused():
    X, y, X_val, y_val = sparse_data()[1]
    X.data[3] = np.nan
    with pytest.raises(InvalidInput, match=r"^X must be finite"):
        RidgeDistillation(X, y, X_val, y_val, budget=9)

"""A penalty in the upper level, standardised units, and all rows as judge: against differences, refits and scikit-learn."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import KFold

import mixbin as mb
from mixbin.data.rows import DenseRows
from mixbin.problems.distillation.cross_validation import ALPHAS, cross_validated, drawn_folds
from mixbin.problems.distillation.upper import with_penalty
from tests.problems.test_ridge import OFFSETS, make_data, make_theta

pytestmark = pytest.mark.slow

STORES = ["dense", "sparse", "blocks", "dask"]
OUTER = 0.07


def some_data(store, targets, judge="validation", **sizes):
    """Tables for a store: large offsets cost a sparse one digits, since it is not centred."""
    X, y, X_val, y_val = make_data(targets, **sizes)
    if store == "sparse":
        X, X_val = X - OFFSETS, X_val - OFFSETS
    return (X, y, X_val, y_val) if judge == "validation" else (X, y)


def prior(targets, d=5):
    return np.random.default_rng(9).normal(size=d if targets is None else (targets, d))


def problem_in(store, data, **settings):
    """The same problem whose rows are kept in different ways."""
    settings = {"budget": 8, "alpha": (1e-4, 10.0), "outer_alpha": OUTER, "standardize": True} | settings
    X, y, *validation = data
    if store == "sparse":
        X, validation = sparse.csr_array(X), [sparse.csr_array(validation[0]), validation[1]] if validation else []
    elif store == "blocks":
        settings["chunks"] = (15, 1, 24)
    elif store == "dask":
        da = pytest.importorskip("dask.array")
        X, y = da.from_array(X, chunks=((15, 1, 24), -1)), da.from_array(y, chunks=((15, 1, 24), *([-1] if y.ndim == 2 else [])))
    return mb.RidgeDistillation(X, y, *validation, **settings)


def objective(data, theta, alpha, outer=OUTER, coef=None, scales=None):
    """J from scikit-learn's ridge regression on standardised columns; without validation rows all rows judge."""
    X, y, *validation = data
    scales = X.std(axis=0) if scales is None else scales
    keep = theta > 0
    model = Ridge(alpha=len(y) * alpha, solver="svd").fit(X[keep] / scales, y[keep], sample_weight=theta[keep])
    X_val, y_val = validation or (X, y)
    miss = np.sum((model.predict(X_val / scales) - y_val) ** 2) / len(y_val)
    apart = model.coef_ - (0.0 if coef is None else np.asarray(coef) * scales)
    return 0.5 * (miss + outer * np.sum(apart**2))


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("judge", ["validation", "all rows"])
class TestAgainstReferences:
    def test_value_and_gradients(self, store, targets, judge):
        data = some_data(store, targets, judge)
        coef, theta, lam = prior(targets), make_theta("interior"), 0.3
        problem = problem_in(store, data, outer_coef=coef)
        got = problem.evaluate(theta, np.array(lam))
        assert got.value == pytest.approx(objective(data, theta, lam, coef=coef), rel=1e-8)

        def at(i, h):
            moved = theta.copy()
            moved[i] += h
            return problem.evaluate(moved, np.array(lam), gradient=False).value

        h = 1e-5
        expected = [(at(i, h) - at(i, -h)) / (2 * h) for i in range(0, 40, 7)]
        np.testing.assert_allclose(got.grad_theta[::7], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        up, down = (problem.evaluate(theta, np.array(lam + s * h), gradient=False).value for s in (1, -1))
        assert float(got.grad_lam) == pytest.approx((up - down) / (2 * h), rel=1e-6)

    def test_moves_are_refits(self, store, targets, judge):
        data = some_data(store, targets, judge)
        problem, theta = problem_in(store, data, outer_coef=prior(targets)), make_theta("binary")
        off, on = np.repeat([0, 5, 35], 3), np.tile([1, 17, 39], 3)
        values = problem.evaluate_moves(theta, np.array(0.3), off, on)
        for i, j, value in zip(off, on, values, strict=True):
            after = theta.copy()
            after[[i, j]] = 0.0, 1.0
            assert value == pytest.approx(problem.evaluate(after, np.array(0.3), gradient=False).value, rel=1e-9)

    def test_the_plain_loss_leaves_the_penalty_out(self, store, targets, judge):
        data = some_data(store, targets, judge)
        problem, theta = problem_in(store, data), make_theta("binary")
        assert problem.validation_loss(theta, 0.3) == pytest.approx(objective(data, theta, 0.3, outer=0.0), rel=1e-8)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("targets", [None, 3])
def test_the_least_value_is_that_of_all_rows(store, targets):
    problem, everything = problem_in(store, some_data(store, targets, "all rows")), np.ones(40)
    best = problem.evaluate(everything, np.array(OUTER)).value
    assert problem.lower_bound(everything, np.array(OUTER)) == pytest.approx(best, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("targets", [None, 3])
def test_no_selection_and_no_alpha_falls_below_the_least_value(targets):
    problem = problem_in("dense", make_data(targets)[:2], alpha=(1e-9, 1e6))
    rng, least = np.random.default_rng(3), problem.lower_bound(np.ones(40), np.array(1.0))
    for _ in range(10_000):
        theta, lam = (rng.random(40) < rng.uniform(0.05, 1.0)).astype(float), 10.0 ** rng.uniform(-8, 5)
        assert not theta.any() or problem.evaluate(theta, np.array(lam), gradient=False).value >= least


class TestWithoutPenalty:
    def test_nothing_changes_to_the_bit(self):
        data = make_data()
        one, other = mb.RidgeDistillation(*data), mb.RidgeDistillation(*data, outer_alpha=0, standardize=False, cv_seed=5)
        assert one.fingerprint() == other.fingerprint()
        R = np.arange(6.0).reshape(2, 3)
        assert with_penalty(R, np.ones(2), 0.0, None) is R
        theta = make_theta("interior")
        assert one.validation_loss(theta, 0.1) == one.evaluate(theta, np.array(0.1)).value

    def test_settings_are_part_of_the_fingerprint(self):
        data = make_data()
        prints = {
            mb.RidgeDistillation(*data, alpha=1.0, **it).fingerprint()
            for it in ({}, {"outer_alpha": 1.0}, {"outer_alpha": 1.0, "outer_coef": prior(None)}, {"standardize": True})
        }
        assert len(prints) == 4


class TestCrossValidation:
    @pytest.mark.parametrize("targets", [None, 3])
    def test_the_same_strength_as_scikit_learn(self, targets):
        rng = np.random.default_rng(4)
        for noise in (0.01, 1.0, 30.0):
            X = rng.normal(size=(60, 8)) * np.logspace(-3, 3, 8)
            w = rng.normal(size=(8, targets or 1)) / np.logspace(-3, 3, 8)[:, None]
            y = X @ w + noise * rng.normal(size=(60, targets or 1))
            folds, n_folds = drawn_folds(60, 1)
            assert n_folds == 10
            assert np.bincount(folds).tolist() == [6] * 10
            scales = X.std(axis=0)
            found = cross_validated(DenseRows(X, y).fold_sums(folds, n_folds), scales)
            cv = KFold(10, shuffle=True, random_state=1)
            assert all((np.flatnonzero(folds == i) == np.sort(test)).all() for i, (_, test) in enumerate(cv.split(X)))
            expected = RidgeCV(alphas=ALPHAS, cv=cv).fit(X / scales, y).alpha_
            assert found == pytest.approx(expected)

    @pytest.mark.parametrize("store", STORES)
    def test_all_stores_draw_the_same_folds(self, store):
        X, y, X_val, y_val = make_data(seed=3)
        for data in ((X, y), (X, y, X_val, y_val)):
            expected = problem_in("dense", data, outer_alpha="cv", cv_seed=2).outer_alpha
            assert problem_in(store, data, outer_alpha="cv", cv_seed=2).outer_alpha == expected

    @pytest.mark.parametrize("rows", [2, 3, 5, 12])
    def test_few_rows(self, rows):
        X, y, *_ = make_data(m=rows)
        problem = mb.RidgeDistillation(X, y, budget=1, outer_alpha="cv", standardize=True)
        assert np.isclose(problem.outer_alpha * rows, ALPHAS).any()

    def test_one_validation_row_leaves_nothing_out(self):
        X, y, X_val, y_val = make_data()
        assert mb.RidgeDistillation(X, y, X_val[:1], y_val[:1], outer_alpha="cv").outer_alpha == 1.0


class TestUnits:
    def test_columns_times_powers_of_two_change_no_bit_of_the_value(self):
        X, y, X_val, y_val = make_data()
        units = 2.0 ** np.array([-9, 20, 0, 3, -30])
        theta, lam = make_theta("interior"), np.array(0.2)
        one, other = (problem_in("dense", (A, y, B, y_val)) for A, B in ((X, X_val), (X * units, X_val * units)))
        assert other.evaluate(theta, lam).value == pytest.approx(one.evaluate(theta, lam).value, rel=1e-12)
        np.testing.assert_allclose(other.model(theta, lam)[0] * units, one.model(theta, lam)[0], rtol=1e-9)

    @pytest.mark.parametrize("store", STORES)
    def test_constant_columns_do_no_harm(self, store):
        X, y, *_ = make_data()
        wide = np.hstack([X, np.full((40, 1), 0.1), np.full((40, 1), 1e8), np.zeros((40, 1))])
        theta, lam = make_theta("binary"), np.array(1e-3)
        narrow, problem = problem_in(store, (X, y)), problem_in(store, (wide, y))
        np.testing.assert_array_equal(problem.scales[5:], 1.0)
        assert problem.evaluate(theta, lam).value == pytest.approx(narrow.evaluate(theta, lam).value, rel=1e-6)
        coef, intercept = problem.model(theta, lam)
        assert np.abs(wide @ coef + intercept - (X @ narrow.model(theta, lam)[0] + narrow.model(theta, lam)[1])).max() < 1e-4

    def test_constant_columns_only(self):
        problem = mb.RidgeDistillation(np.ones((9, 2)), np.arange(9.0), budget=3, outer_alpha="cv", standardize=True)
        coef, intercept = problem.model(np.arange(9) < 3, np.array(1.0))
        np.testing.assert_array_equal(coef, 0.0)
        assert intercept == pytest.approx(1.0)

    def test_one_wide_entry_leaves_the_range_of_alpha_alone(self):
        X, y, X_val, y_val = make_data()
        X[0, 0] = 1e6
        assert mb.RidgeDistillation(X, y, X_val, y_val, standardize=True).alpha == (1e-6, 1e2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"outer_alpha": -1.0}, "outer_alpha must be"),
        ({"outer_alpha": "best"}, r'outer_alpha must be a number of at least 0 or "cv"'),
        ({"outer_alpha": np.nan}, "outer_alpha must be"),
        ({"outer_coef": np.ones(5)}, "outer_coef has no use with outer_alpha = 0"),
        ({"outer_alpha": 1.0, "outer_coef": np.ones(4)}, "outer_coef must"),
        ({"standardize": 1}, "standardize must be"),
        ({"cv_seed": -1}, "cv_seed must be"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.RidgeDistillation(*make_data(), **settings)


def test_validation_rows_that_overflow_are_refused_before_the_cross_validation():
    X, y, X_val, y_val = make_data()
    for n in range(2, len(X_val)):
        spoiled = X_val[:n].copy()
        spoiled.flat[spoiled.size // 2] = 1e300
        with pytest.raises(mb.InvalidInput, match=r"X_val and y_val must have squares that fit.*rescale"):
            mb.RidgeDistillation(X, y, spoiled, y_val[:n], outer_alpha="cv", standardize=True)


def test_validation_rows_come_with_their_targets():
    X, y, X_val, y_val = make_data()
    with pytest.raises(mb.InvalidInput, match="y_val must be given together with X_val"):
        mb.RidgeDistillation(X, y, X_val)
    with pytest.raises(mb.InvalidInput, match="X_val must be given together with y_val"):
        mb.RidgeDistillation(X, y, y_val=y_val)

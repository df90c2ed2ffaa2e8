"""DistillationRegressor with its defaults: which rows judge, units, the proven excess, and what it warns of."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixbin as mb

pytestmark = pytest.mark.slow

ALPHAS = np.logspace(-5, 5, 81)


def make_table(rows=400, seed=0, noise=0.5, units=(1.0, 1e-3, 1e4, 1.0)):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(rows, 4))
    return Z * units + [0.0, 1.0, 5e4, -2.0], Z @ [1.0, 2.0, -1.0, 0.0] + 3.0 + noise * rng.normal(size=rows)


def all_rows(X, y):
    """What a user would take without choosing rows."""
    return make_pipeline(StandardScaler(), RidgeCV(alphas=ALPHAS, cv=KFold(10, shuffle=True, random_state=0))).fit(X, y)


def rmse(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


@pytest.fixture(scope="module")
def fitted():
    X, y = make_table()
    return mb.DistillationRegressor(budget=20, random_state=0).fit(X, y)


class TestAllRowsJudge:
    def test_it_predicts_new_rows_like_all_rows(self, fitted):
        X, y = make_table()
        X_new, y_new = make_table(2000, seed=9)
        assert fitted.support_.sum() == 20
        assert len(fitted.result_.theta) == 400
        assert rmse(fitted, X_new, y_new) < 1.01 * rmse(all_rows(X, y), X_new, y_new)

    def test_the_excess_is_that_over_ridge_on_all_rows(self, fitted):
        X, y = make_table()

        def objective(coef, intercept):
            return 0.5 * (np.mean((X @ coef + intercept - y) ** 2) + fitted.outer_alpha_ * np.sum((fitted.scales_ * coef) ** 2))

        np.testing.assert_allclose(fitted.scales_, X.std(axis=0))
        full = Ridge(alpha=400 * fitted.outer_alpha_, solver="svd").fit(X / fitted.scales_, y)
        least, value = objective(full.coef_ / fitted.scales_, full.intercept_), objective(fitted.coef_, fitted.intercept_)
        assert fitted.excess_ == pytest.approx((value - least) / least, rel=1e-6)
        assert fitted.excess_ < 0.01
        assert fitted.result_.certificate.lower_bound == pytest.approx(least, rel=1e-6)  # of rounded rows

    def test_the_model_is_the_ridge_on_scaled_columns(self, fitted):
        X, y = make_table()
        rows = fitted.support_
        same = Ridge(alpha=400 * fitted.alpha_, solver="svd").fit(X[rows] / fitted.scales_, y[rows])
        np.testing.assert_allclose(fitted.coef_, same.coef_ / fitted.scales_, rtol=1e-6)
        assert fitted.intercept_ == pytest.approx(same.intercept_)

    def test_unkept_rows_are_compared_with_ridge_on_all_rows(self, fitted):
        X, y = make_table()
        rest = ~fitted.support_
        full = Ridge(alpha=400 * fitted.outer_alpha_).fit(X / fitted.scales_, y)
        ratio = rmse(fitted, X[rest], y[rest]) / rmse(full, X[rest] / fitted.scales_, y[rest])
        assert fitted.unkept_ratio_ == pytest.approx(ratio, rel=1e-6)

    def test_units_do_not_matter_to_the_last_row(self):
        rng = np.random.default_rng(3)
        X = rng.standard_t(3, size=(300, 12)) @ rng.normal(size=(12, 12))
        y = X @ rng.normal(size=12) + 5 * rng.normal(size=300)
        odd, level = 10.0 ** rng.uniform(-3, 3, 12), rng.normal(size=12)
        plain, other = (mb.DistillationRegressor(budget=14, random_state=0).fit(it, y) for it in (X, (X + level) * odd))
        np.testing.assert_array_equal(other.support_, plain.support_)
        np.testing.assert_allclose(other.coef_ * odd, plain.coef_, rtol=1e-6)
        assert other.excess_ == pytest.approx(plain.excess_, rel=1e-6)

    def test_the_same_seed_gives_the_same_bits(self, fitted):
        again = mb.DistillationRegressor(budget=20, random_state=0).fit(*make_table())
        np.testing.assert_array_equal(again.coef_, fitted.coef_)

    @pytest.mark.parametrize("kind", ["sparse", "dask"])
    def test_other_tables_judge_alike(self, kind):
        X, y = make_table(units=(1.0, 1.0, 1.0, 1e3))
        X = np.where(np.abs(X - [0.0, 1.0, 5e4, -2.0]) > [1.0, 1.0, 1.0, 1e3], X - [0.0, 1.0, 5e4, -2.0], 0.0)
        dense = mb.DistillationRegressor(budget=30, random_state=0).fit(X, y)
        if kind == "sparse":
            table, targets = sparse.csr_array(X), y
        else:
            da = pytest.importorskip("dask.array")
            table, targets = da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=150)
        other = mb.DistillationRegressor(budget=30, random_state=0).fit(table, targets)
        assert other.outer_alpha_ == dense.outer_alpha_
        assert other.excess_ < 0.01
        np.testing.assert_allclose(other.coef_ * other.scales_, dense.coef_ * dense.scales_, atol=0.2)

    @pytest.mark.filterwarnings("ignore:on the rows that were not kept", "ignore:alpha ended")
    @pytest.mark.parametrize("rows", [2, 5, 20])
    def test_tiny_tables(self, rows):
        X, y = make_table(rows)
        model = mb.DistillationRegressor(budget=max(rows // 2, 1), random_state=0).fit(X, y)
        assert np.isfinite(model.predict(X)).all()

    def test_constant_targets_and_columns(self):
        X, _ = make_table(50)
        X[:, 0] = 7.0
        model = mb.DistillationRegressor(budget=5, random_state=0).fit(X, np.full(50, 2.5))
        np.testing.assert_allclose(model.predict(X), 2.5)
        assert model.coef_[0] == 0

    def test_several_targets(self):
        X, y = make_table()
        both = np.column_stack([y, X[:, 0] - y])
        model = mb.DistillationRegressor(budget=20, random_state=0).fit(X, both)
        assert model.coef_.shape == (2, 4)
        assert model.excess_ < 0.01


@pytest.mark.filterwarnings("ignore:on the rows that were not kept")  # few evaluations, and a penalty that is far too strong
class TestValidationRowsJudge:
    def test_auto_follows_x_val(self):
        X, y = make_table()
        X_val, y_val = make_table(100, seed=1)
        settings = {"budget": 20, "random_state": 0, "max_evaluations": 100}
        auto = mb.DistillationRegressor(**settings).fit(X, y, X_val, y_val)
        named = mb.DistillationRegressor(**settings, judge="validation").fit(X, y, X_val, y_val)
        np.testing.assert_array_equal(auto.coef_, named.coef_)
        problem = mb.RidgeDistillation(X, y, X_val, y_val, budget=20, outer_alpha="cv", standardize=True)
        assert auto.outer_alpha_ == problem.outer_alpha
        assert auto.result_.value == problem.evaluate(auto.result_.theta.astype(float), auto.result_.lam).value

    def test_full_has_no_use_for_x_val(self):
        X, y = make_table()
        with pytest.raises(mb.InvalidInput, match=r'judge="full" has no use for X_val and y_val.*drop them, or pass judge='):
            mb.DistillationRegressor(judge="full").fit(X, y, X[:50], y[:50])

    def test_a_split_when_asked_for(self):
        X, y = make_table()
        model = mb.DistillationRegressor(budget=20, random_state=0, judge="validation", max_evaluations=60).fit(X, y)
        assert len(model.result_.theta) == 320

    @pytest.mark.filterwarnings("ignore:alpha ended")
    def test_the_prior_pulls(self):
        X, y = make_table()
        prior = np.array([5.0, 0.0, 0.0, 1.0])
        settings = {"budget": 100, "random_state": 0, "outer_alpha": 1e4, "max_evaluations": 60}
        coef = mb.DistillationRegressor(**settings, outer_coef=prior).fit(X, y).coef_
        plain = mb.DistillationRegressor(**settings).fit(X, y).coef_
        assert np.abs(coef - prior)[0] < np.abs(plain - prior)[0]


class TestWarnings:
    @pytest.mark.filterwarnings("ignore:on the rows that were not kept")
    def test_few_validation_rows(self):
        X, y = make_table()
        model = mb.DistillationRegressor(budget=100, random_state=0, max_evaluations=60)
        with pytest.warns(UserWarning, match="19 validation rows for 4 features are fewer than 5 per feature"):
            model.fit(X, y, X[:19], y[:19])

    def test_rows_that_were_not_kept(self):
        X, y = make_table()
        wrong = y.copy()
        wrong[:100] *= -10
        X_val, y_val = make_table(100, seed=1)
        with pytest.warns(UserWarning, match=r"on the rows that were not kept, the error is 1\.\d+ times"):
            model = mb.DistillationRegressor(budget=100, random_state=0, max_evaluations=200).fit(X, wrong, X_val, y_val)
        assert model.unkept_ratio_ > 1.2

    @pytest.mark.filterwarnings("ignore:on the rows that were not kept")
    def test_alpha_at_a_bound(self):
        X, y = make_table()
        model = mb.DistillationRegressor(budget=50, alpha=(1e2, 1e3), random_state=0, max_evaluations=60)
        with pytest.warns(mb.ConvergenceWarning, match="alpha ended at the lower bound 100 of its range"):
            model.fit(X, y)
        assert model.alpha_ == pytest.approx(1e2)


class TestGap:
    def test_polish_ends_at_the_gap_and_says_so(self, fitted):
        if fitted.excess_ < 1e-3:
            assert "below gap_tol = 0.001" in fitted.result_.message

    def test_the_exchange_by_exchange_certificate(self):
        X, y = make_table(100)
        model = mb.DistillationRegressor(budget=10, random_state=0, gap_tol=0).fit(X, y)
        assert model.result_.certificate.one_move_optimal

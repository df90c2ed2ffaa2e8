"""``budget="auto"`` and ``mb.budget_curve``: as few rows as a tolerance allows, and what each number of rows costs."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import mixbin as mb
from mixbin import BudgetCurve, DistillationRegressor, InvalidInput


def table(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)) * [1.0, 1e-3, 1e3, 1.0]
    return X, X @ [1.0, 2e3, 3e-3, 1.0] + rng.normal(size=rows)


@pytest.fixture(scope="module")
def data():
    return table()


@pytest.fixture(scope="module")
def fitted(data):
    return DistillationRegressor(budget="auto", tolerance=0.02, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def curve(data):
    return mb.budget_curve(*data, [5, 8, 0.05, 40], random_state=0)


class TestAuto:
    def test_the_smallest_budget_found(self, fitted):
        assert fitted.excess_ <= 0.02
        assert fitted.support_.sum() == fitted.budget_ == fitted.result_.theta.sum()
        assert all(excess > 0.02 for k, excess in fitted.budget_path_.items() if k < fitted.budget_)
        assert fitted.budget_path_[fitted.budget_] == pytest.approx(fitted.excess_, rel=1e-4)
        path = list(fitted.budget_path_.values())
        assert path == sorted(path, reverse=True)
        assert list(fitted.budget_path_) == sorted(fitted.budget_path_)

    def test_a_given_budget_does_the_same_or_worse(self, fitted, data):
        given = DistillationRegressor(budget=fitted.budget_ - 1, random_state=0).fit(*data)
        assert given.budget_ == fitted.budget_ - 1
        assert not hasattr(given, "budget_path_")

    def test_a_stricter_tolerance_needs_more_rows(self, fitted, data):
        strict = DistillationRegressor(budget="auto", tolerance=0.002, random_state=0).fit(*data)
        assert strict.excess_ <= 0.002
        assert strict.budget_ > fitted.budget_

    def test_sparse_tables_and_other_judges(self, data):
        X, y = data
        for args in ((sparse.csr_array(X), y), (X[:250], y[:250], X[250:], y[250:])):
            assert DistillationRegressor(budget="auto", tolerance=0.1, random_state=0).fit(*args).excess_ <= 0.1

    def test_the_same_seed_gives_the_same_rows(self, fitted, data):
        again = DistillationRegressor(budget="auto", tolerance=0.02, random_state=0).fit(*data)
        np.testing.assert_array_equal(again.support_, fitted.support_)

    @pytest.mark.parametrize("one_half", [Fraction(1, 2), np.float32(0.5)])
    def test_tolerances_of_other_types(self, data, one_half):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the tolerance that is not met, in whose words it is shown
            model, other = (
                DistillationRegressor(budget="auto", tolerance=it, alpha=1e3, max_evaluations=40, random_state=0).fit(*data)
                for it in (one_half, 0.5)
            )
        assert model.budget_path_ == other.budget_path_

    @pytest.mark.filterwarnings("ignore:on the rows that were not kept")
    def test_a_tolerance_that_is_not_met_is_a_warning(self, data):
        model = DistillationRegressor(budget="auto", alpha=1e3, max_evaluations=300, random_state=0)
        with pytest.warns(mb.ConvergenceWarning, match="no number of rows that was tried has an excess of at most 0.01"):
            model.fit(*data)
        assert model.budget_ == min(model.budget_path_, key=model.budget_path_.get)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"budget": "few"}, "budget must be a number of rows or \"auto\", got 'few'"),
            ({"budget": "auto", "method": "top-k"}, 'budget="auto" needs method="penalize", got \'top-k\''),
            ({"budget": "auto", "tolerance": 0.0}, "tolerance must be"),
            ({"tolerance": "1%"}, "tolerance must be"),
            ({"budget": "auto", "max_evaluations": 1}, "max_evaluations must be a whole number of at least 2"),
            ({"budget": "auto", "max_evaluations": "1"}, "max_evaluations must be a whole number of at least 2"),
        ],
    )
    def test_refused_by_name(self, data, settings, words):
        with pytest.raises(InvalidInput, match=words):
            DistillationRegressor(**settings).fit(*data)

    @pytest.mark.slow
    def test_dask_arrays(self, data):
        da = pytest.importorskip("dask.array")
        X, y = (da.from_array(it, chunks=(150, *it.shape[1:])) for it in data)
        model = DistillationRegressor(budget="auto", tolerance=0.05, random_state=0).fit(X, y)
        assert model.excess_ <= 0.05
        curve = mb.budget_curve(X, y, [6, 12], random_state=0, draws=3)
        assert np.all(np.diff(curve.excess) <= 0)


class TestCurve:
    def test_what_it_says(self, curve):
        assert curve.rows.tolist() == [5, 8, 20, 40]
        assert np.all(np.diff(curve.excess) <= 0)
        assert np.all(curve.excess < curve.random_excess)
        assert np.all(curve.random_excess_spread > 0)
        np.testing.assert_allclose(curve.error / curve.ratio, curve.all_rows_error, rtol=0.1)
        assert (curve.n_rows, curve.tolerance, curve.found) == (400, None, None)

    def test_the_errors_are_on_the_rows_not_kept(self, curve, data):
        one = mb.budget_curve(*data, [400], random_state=0, draws=2)
        assert one.excess[0] < 1e-6
        assert np.isnan(one.error[0])

    def test_as_json_and_back(self, curve):
        back = BudgetCurve.from_json(curve.to_json())
        np.testing.assert_array_equal(back.rows, curve.rows)
        np.testing.assert_array_equal(back.random_ratio_spread, curve.random_ratio_spread)
        assert back.to_json() == curve.to_json()

    def test_without_budgets_it_ends_where_the_excess_is_small(self, data):
        curve = mb.budget_curve(*data, random_state=0, draws=2)
        assert curve.excess[-1] <= 1e-3
        assert curve.rows[-1] < 40

    @pytest.mark.parametrize("size", [1e-60, 1e-160])
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_columns_whose_squares_vanish(self, size):
        """A curve, or a refusal in our words, and no warning of SciPy about differences of infinite values."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(12, 3))
        y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=12)
        try:
            curve = mb.budget_curve(X * size, y, random_state=0, max_evaluations=6)
        except (mb.DivergedError, InvalidInput):
            return
        assert np.all(np.diff(curve.excess) <= 0)

    def test_its_picture(self, curve):
        for across in (True, False):
            figure = mb.plot.budget_curve(curve, across=across)
            left, right = figure.axes
            chosen = next(line for line in left.get_lines() if line.get_label() == "chosen rows")
            np.testing.assert_allclose(chosen.get_ydata(), np.maximum(100 * curve.excess, 1e-3))
            chosen = next(line for line in right.get_lines() if line.get_label() == "chosen rows")
            np.testing.assert_allclose(chosen.get_ydata(), np.maximum(100 * (curve.ratio - 1), 1e-3))

    @pytest.mark.parametrize(
        ("args", "settings", "words"),
        [
            (([],), {}, "budgets must be at least one number of rows"),
            (("5",), {}, "budgets must be numbers of rows"),
            (([500],), {}, "budgets"),
            (([5],), {"draws": 0}, "draws must be"),
            (([5],), {"draws": 10**400}, "draws must be a whole number from 1 to 100000"),
            (([5],), {"budget": 5}, "params must be among .* got 'budget'"),
        ],
    )
    def test_refused_by_name(self, data, args, settings, words):
        with pytest.raises(InvalidInput, match=words):
            mb.budget_curve(*data, *args, **settings)

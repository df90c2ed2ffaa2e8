"""The path of budgets and what rows are compared with: recomputed independently, on arrays and on blocks."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import mixbin as mb
from mixbin.problems.distillation import budget_path
from mixbin.problems.distillation.budget_path import BudgetPath
from mixbin.problems.distillation.references import References

SCALES = np.array([1.0, 1e-2, 1e3, 1.0, 1.0])


def table(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 5))
    y = x @ [1.0, 2.0, 3.0, 0.0, 1.0] + 0.5 * x[:, 0] ** 2 + rng.normal(size=rows)
    return x * SCALES + 5.0, y


def problem_of(X, y, **settings):
    return mb.RidgeDistillation(X, y, **{"budget": 10, "outer_alpha": "cv", "standardize": True} | settings)


@pytest.fixture(scope="module")
def data():
    return table()


@pytest.fixture(scope="module")
def path(data):
    return BudgetPath(problem_of(*data), 0, 1e-3)


@pytest.fixture(scope="module")
def found(path):
    return path.smallest(0.01)


class TestTheProblemInOtherForms:
    def test_another_budget_is_another_problem_of_the_same_tables(self, data):
        one, two = problem_of(*data).with_budget(20), problem_of(*data, budget=20)
        assert one.fingerprint() == two.fingerprint()
        assert one.alpha == two.alpha
        assert one.rows is not two.rows

    def test_some_candidates_judged_by_all_rows(self, data):
        whole = problem_of(*data, alpha=(1e-6, 1e2))
        some = np.arange(0, 300, 3)
        part = whole.among(some)
        chosen = np.zeros(100)
        chosen[::7] = 1.0
        theta = np.zeros(300)
        theta[some] = chosen
        # Alpha is relative to the number of candidate rows.
        values = whole.evaluate(theta, np.asarray(0.01)).value, part.evaluate(chosen, np.asarray(0.03)).value
        np.testing.assert_allclose(*values, rtol=1e-12)
        np.testing.assert_allclose(part.alpha, np.array(whole.alpha) * 3)
        assert part.lower_bound(chosen, np.empty(0)) == whole.lower_bound(theta, np.empty(0))
        assert whole.among(some).with_budget(9).theta_set.k == 9


class TestReferences:
    def test_all_rows_and_the_errors_on_other_rows(self, data):
        X, y = data
        problem = problem_of(X, y)
        references, scales = References(problem, 0), X.std(axis=0)
        full = Ridge(alpha=300 * references.alpha_of_all).fit(X / scales, y)
        missed = y - full.predict(X / scales)
        rows = np.arange(0, 300, 7)
        others = np.setdiff1d(np.arange(300), rows)
        error, ratio = references.measured(rows, None, references.all_rows)
        assert error == pytest.approx(np.sqrt(np.mean(missed[others] ** 2)))
        assert ratio == 1.0
        (whole,) = references.errors(np.empty(0, dtype=int), references.all_rows)
        assert whole == pytest.approx(np.sqrt(np.mean(missed**2)))
        (few,) = references.errors(np.arange(299), references.all_rows)
        assert few == pytest.approx(abs(missed[299]))
        assert np.isnan(references.errors(np.arange(300), references.all_rows)[0])

    def test_random_rows_are_ridge_regressions_with_a_good_alpha(self, data):
        X, y = data
        problem, scales = problem_of(X, y), X.std(axis=0)
        references = References(problem, 3)
        (draws,) = references.random([12])
        assert len(draws) == 10
        assert len({draw.excess for draw in draws}) == 10
        rows = np.random.default_rng([3, 0]).permutation(300)[:12]
        d = 5
        coef = -draws[0].model.K[0, :d]
        values = []
        for alpha in np.geomspace(1e-8, 1e4, 200):
            model = Ridge(alpha=300 * alpha).fit(X[rows] / scales, y[rows])
            mean = np.mean((model.predict(X / scales) - y) ** 2)
            values.append(0.5 * (mean + problem.outer_alpha * np.sum(model.coef_**2)))
        least = problem.lower_bound(np.empty(0), np.empty(0))
        assert draws[0].excess == pytest.approx(min(values) / least - 1, rel=1e-3)
        missed = y - (X @ coef + y[rows].mean() - X[rows].mean(axis=0) @ coef)
        others = np.setdiff1d(np.arange(300), rows)
        assert draws[0].error == pytest.approx(np.sqrt(np.mean(missed[others] ** 2)))

    def test_a_smaller_draw_is_the_beginning_of_a_larger_one(self, data):
        references = References(problem_of(*data), 0)
        alone, both = references.random([8])[0], references.random([8, 20])[0]
        assert [it.excess for it in alone] == pytest.approx([it.excess for it in both])

    def test_a_fixed_or_narrow_alpha_does_not_bind_random_rows(self, data):
        free, bound = (References(problem_of(*data, alpha=alpha), 0).random([12])[0] for alpha in (None, 50.0))
        assert [it.excess for it in bound] == pytest.approx([it.excess for it in free], rel=1e-3)

    def test_rows_in_blocks(self, data):
        whole, blocks = (References(problem_of(*data, chunks=chunks), 0) for chunks in (None, (100, 120, 80)))
        for one, two in zip(whole.random([12])[0], blocks.random([12])[0], strict=True):
            assert (one.excess, one.error, one.ratio) == pytest.approx((two.excess, two.error, two.ratio))


class TestThePath:
    def test_the_smallest_budget_that_meets_the_tolerance(self, path, found, data):
        X, y = data
        assert found.excess <= 0.01
        assert all(step.excess > 0.01 for step in path.steps if step.budget < found.budget)
        assert path.steps[0].budget < found.budget
        for step in path.steps:
            assert len(np.unique(step.rows)) == step.budget
            problem = problem_of(X, y, budget=step.budget)
            theta = np.isin(np.arange(300), step.rows).astype(float)
            value = problem.evaluate(theta, np.asarray(step.alpha)).value
            assert step.excess == pytest.approx(value / problem.lower_bound(theta, np.empty(0)) - 1, rel=1e-4, abs=1e-7)

    def test_more_rows_are_never_worse(self, path, found):
        excess = [step.excess for step in path.steps]
        assert excess == sorted(excess, reverse=True)

    def test_it_ends_at_the_step_itself(self, path, found):
        problem, settings = path.start(found)
        result = mb.relax_and_penalize(problem, seed=0, **settings)
        np.testing.assert_array_equal(np.flatnonzero(result.theta), found.rows)
        assert result.certificate.gap <= 0.01

    def test_searches_of_an_interrupted_path_are_not_made_again(self, path, found, data, monkeypatch):
        again = BudgetPath(problem_of(*data), 0, 1e-3)
        again.before = path.searches
        monkeypatch.setattr(budget_path, "relax_and_penalize", lambda *_, **__: pytest.fail("searched again"))
        np.testing.assert_array_equal(again.smallest(0.01).rows, found.rows)
        assert [step.excess for step in again.steps] == [step.excess for step in path.steps]

    def test_a_limit_of_evaluations(self, data):
        path = BudgetPath(problem_of(*data), 0, 1e-3, max_evaluations=300)
        path.smallest(1e-4)
        assert 0 < path.evaluations <= 320

    def test_a_tolerance_that_no_budget_meets(self, data):
        path = BudgetPath(problem_of(*data, alpha=1e3), 0, 1e-3, max_evaluations=400)
        assert path.smallest(1e-6) is None
        assert path.steps

    def test_one_row_and_all_rows(self):
        X, y = table(40)
        path = BudgetPath(problem_of(X, y), 0, 1e-3)
        assert path.smallest(1e3).budget == 1
        steps = path.along([5, 40])
        assert steps[-1].budget == 40
        assert steps[-1].excess < 1e-6

    def test_rows_in_blocks_are_searched_among_a_sample_and_judged_by_all(self, data, monkeypatch):
        monkeypatch.setattr(budget_path, "SAMPLE", 200)
        X, y = data
        problem = problem_of(X, y, chunks=(100, 120, 80))
        path = BudgetPath(problem, 0, 1e-3)
        found = path.smallest(0.05)
        drawn = np.sort(np.random.default_rng(0).choice(300, 200, replace=False))
        assert np.isin(found.rows, drawn).all()
        whole = problem_of(X, y, budget=found.budget)
        theta = np.isin(np.arange(300), found.rows).astype(float)
        value = whole.evaluate(theta, np.asarray(found.alpha)).value
        assert found.excess == pytest.approx(value / whole.lower_bound(theta, np.empty(0)) - 1, rel=1e-6)
        # Above a tenth of the sample, the rows are searched in their blocks.
        many = path.step(30)
        assert many.budget == 30
        assert many.excess <= found.excess


def test_rows_that_validation_rows_judge(data):
    X, y = data
    problem = mb.RidgeDistillation(X[:200], y[:200], X[200:], y[200:], budget=10, outer_alpha="cv", standardize=True)
    path = BudgetPath(problem, 0, 1e-3)
    found = path.smallest(0.02)
    assert found.excess <= 0.02
    excess = [step.excess for step in path.steps]
    assert excess == sorted(excess, reverse=True)

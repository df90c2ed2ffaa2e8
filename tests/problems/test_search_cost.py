"""What a search costs: counted work, the same in every run, honest about what is computed, and within a limit."""

import numpy as np
import pytest
from scipy import sparse

import mixbin as mb
from mixbin.problems.distillation.expansion import Expansion, RowTerms
from mixbin.problems.work import OutOfWork, Work

NO_LAM = np.empty(0)


def ridge_data(m=300, d=6, n=80, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(m, d)), rng.normal(size=(n, d))
    coef = rng.normal(size=d)
    return X, X @ coef + rng.normal(size=m), X_val, X_val @ coef + rng.normal(size=n)


def ridge(kind="dense", **keywords):
    X, y, X_val, y_val = ridge_data()
    if kind == "sparse":
        X = sparse.csr_array(X)
    settings = {"budget": 30, "alpha": 0.01, "chunks": [100, 200] if kind == "chunks" else None} | keywords
    return mb.RidgeDistillation(X, y, X_val, y_val, **settings)


def groups(**keywords):
    data = mb.datasets.make_group_lasso("equal", n_tasks=30, n_samples=10, n_features=12, n_groups=3, seed=0)
    return mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=3, lam_bounds=0.05, **keywords)


PROBLEMS = {
    "dense": ridge,
    "sparse": lambda: ridge("sparse"),
    "chunks": lambda: ridge("chunks"),
    "groups": groups,
    "all moves": lambda: groups(moves="all"),
    "unrolled": lambda: groups(lower="unrolled", q=20),
}


def test_parts_share_what_is_left():
    work = Work(10, 3.0)
    work.add(10)
    parts = [work.part(2), work.part(2)]
    parts[0].add(10)
    work.join(parts[0])
    assert (work.done, work.used_up) == (20, False)
    with pytest.raises(OutOfWork):
        parts[1].add(11)
    with pytest.raises(OutOfWork):
        work.join(parts[1])
    assert (work.done, work.used_up) == (20, True)
    assert Work().part(8).left == np.inf


def vertex(problem, seed=0):
    return problem.theta_set.vertex(np.random.default_rng(seed).uniform(size=problem.theta_set.shape)).astype(float)


def test_work_counts_and_stops():
    work = Work(10, 2.5)
    assert work.cost == 1
    work.add(11)
    assert (work.done, work.cost, work.left) == (11, 2, 14)
    with pytest.raises(OutOfWork):
        work.add(15)
    with pytest.raises(OutOfWork):
        work.add(1)
    assert (work.done, work.used_up) == (11, True)
    work.note(20)
    assert work.cost == 4


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_cost_is_the_same_in_every_run(name):
    problem = PROBLEMS[name]()
    theta = vertex(problem)
    first = problem.improve(theta, NO_LAM)
    assert first.cost > 1
    assert isinstance(first.cost, int)
    # What an earlier call left behind in the problem makes the search no cheaper.
    assert problem.improve(theta, NO_LAM).cost == first.cost
    assert PROBLEMS[name]().improve(theta, NO_LAM).cost == first.cost


def test_threads_change_no_cost():
    theta = vertex(groups())
    assert groups(n_jobs=1).improve(theta, NO_LAM).cost == groups(n_jobs=2).improve(theta, NO_LAM).cost


class Counting(np.ndarray):
    """An array that notes the multiply-adds of every matrix product that it takes part in."""

    counted = 0

    def __array_ufunc__(self, ufunc, how, *inputs, **keywords):
        plain = [np.asarray(it) for it in inputs]
        if "out" in keywords:
            keywords["out"] = tuple(np.asarray(it) for it in keywords["out"])
        if ufunc is np.matmul:
            (*rows, inner), columns = plain[0].shape, plain[1].shape[1:]
            Counting.counted += int(np.prod([*rows, inner, *columns]))
        got = getattr(ufunc, how)(*plain, **keywords)
        return got.view(Counting) if isinstance(got, np.ndarray) and got.ndim else got


def test_the_work_of_a_search_is_that_of_its_matrix_products(monkeypatch):
    """The products with the rows of the search, counted from outside: with many columns they are nearly all the work."""
    X, y, X_val, y_val = ridge_data(m=400, d=60, n=200)
    problem = mb.RidgeDistillation(X, y, X_val, y_val, budget=80, alpha=0.01)
    theta = vertex(problem)
    unit = problem.evaluation_work(theta)
    plain = problem.improve(theta, NO_LAM)
    terms = Expansion.terms

    def counting_terms(self, zhat, **keywords):
        Counting.counted += len(zhat) * len(self.P) ** 2
        return RowTerms(*(it.view(Counting) for it in terms(self, zhat, **keywords)))

    monkeypatch.setattr(Expansion, "terms", counting_terms)
    monkeypatch.setattr(Counting, "counted", 0)
    got = problem.improve(theta, NO_LAM)
    np.testing.assert_array_equal(got.theta, plain.theta)
    assert got.cost == plain.cost > 1
    assert Counting.counted <= got.cost * unit <= 1.5 * Counting.counted


def test_a_harder_search_costs_more():
    problem = ridge()
    far = problem.improve(vertex(problem), NO_LAM)
    near = problem.improve(far.theta.astype(float), NO_LAM)
    assert not np.array_equal(far.theta, vertex(problem) > 0.5)
    assert np.array_equal(near.theta, far.theta)
    assert far.cost > near.cost > 1


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("most", [0, 1, 2.5, 10, 40, 200])
def test_a_search_stops_before_it_exceeds_its_limit(name, most):
    problem = PROBLEMS[name]()
    theta = vertex(problem)
    whole, got = problem.improve(theta, NO_LAM), problem.improve(theta, NO_LAM, max_cost=most)
    assert got.cost <= max(1, most)
    value, before = (problem.evaluate(it.astype(float), NO_LAM).value for it in (got.theta, theta))
    assert value <= before
    if most >= whole.cost and name in ("dense", "sparse", "chunks"):
        np.testing.assert_array_equal(got.theta, whole.theta)
        assert got.cost == whole.cost
    if got.tried:
        assert got.best_change >= 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dense", "chunks", "groups"])
@pytest.mark.parametrize("limit", [30, 60, 120, 500])
def test_runs_keep_their_limit_with_searches(name, limit):
    problem = PROBLEMS[name]()
    result = mb.relax_and_penalize(problem, max_evaluations=limit, seed=0)
    assert result.n_evaluations <= limit
    assert problem.theta_set.violation(result.theta) == 0


def test_more_work_is_never_worse():
    problem = ridge()
    values = []
    for most in (1, 5, 20, 80, 320, np.inf):
        found = problem.improve(vertex(problem), NO_LAM, max_cost=most).theta
        values.append(problem.evaluate(found.astype(float), NO_LAM).value)
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_the_cost_is_part_of_the_count_and_of_the_trace():
    result = mb.relax_and_penalize(ridge(), starts=1, seed=0)
    rows = result.trace.to_frame().query("phase == 'polish'")["n_evaluations"].diff().dropna()
    assert rows.max() > 2, "a pass of polish is one call of the search and one evaluation"
    assert result.n_evaluations > result.trace.column("n_evaluations")[-1]

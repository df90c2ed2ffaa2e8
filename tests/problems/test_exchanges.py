"""Exchanges of rows: exact values, exact updates, bounds that are bounds, and a search that ends where none is left."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.problems import RidgeDistillation
from mixbin.problems.distillation.scan import Scan
from tests.problems.test_ridge import make_data

NO_LAM = np.empty(0)


def make_problem(targets=None, budget=9, seed=0, m=40, alpha=0.01, duplicates=0):
    X, y, X_val, y_val = make_data(targets, m=m, seed=seed)
    X[m - duplicates :], y[m - duplicates :] = X[:duplicates], y[:duplicates]
    problem = RidgeDistillation(X, y, X_val, y_val, budget=budget, alpha=alpha)
    theta = problem.theta_set.vertex(np.random.default_rng(seed).uniform(size=m)).astype(float)
    return problem, theta


def all_values(problem, theta):
    off, on = (np.concatenate(side) for side in zip(*problem.theta_set.moves(theta), strict=True))
    return off, on, problem.evaluate_moves(theta, NO_LAM, off, on)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("k", [1, 2, 7, 29])
def test_moves_are_evaluated_exactly(targets, k):
    """Every exchange by rank-two updates against a fresh fit of the changed selection."""
    rng = np.random.default_rng(k)
    X, X_val = 100 + rng.normal(size=(30, 4)) * [1, 10, 0.1, 5], 100 + rng.normal(size=(20, 4)) * [1, 10, 0.1, 5]
    y, y_val = rng.normal(size=(30, targets)), rng.normal(size=(20, targets))
    problem = RidgeDistillation(X, y, X_val, y_val, budget=k, alpha=(1e-3, 1e3))
    lam = np.array(0.7)
    theta = problem.theta_set.vertex(rng.uniform(size=30)).astype(float)
    seen = 0
    for off, on in problem.theta_set.moves(theta):
        values = problem.evaluate_moves(theta, lam, off, on)
        for i, j, value in zip(off, on, values, strict=True):
            after = theta.copy()
            after[i], after[j] = 0.0, 1.0
            assert value == pytest.approx(problem.evaluate(after, lam, gradient=False).value, rel=1e-9)
            seen += 1
    assert seen == k * (30 - k)


def test_moves_without_a_row_to_take_out_or_put_in():
    rng = np.random.default_rng(0)
    problem = RidgeDistillation(rng.normal(size=(9, 2)), rng.normal(size=9), rng.normal(size=(5, 2)), rng.normal(size=5), 4, 0.1)
    theta = (np.arange(9) < 4).astype(float)
    off, on = np.array([0, -1, 2, -1]), np.array([-1, 5, 7, -1])
    got = problem.evaluate_moves(theta, np.empty(0), off, on)
    for i, j, value in zip(off, on, got, strict=True):
        after = theta.copy()
        if i >= 0:
            after[i] = 0.0
        if j >= 0:
            after[j] = 1.0
        assert value == pytest.approx(problem.evaluate(after, np.empty(0)).value, rel=1e-10)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("k", [1, 2, 9, 39])
@pytest.mark.parametrize("seed", range(3))
def test_best_move_is_the_best_of_all(targets, k, seed, monkeypatch):
    """With blocks so small that bounds decide about most exchanges."""
    monkeypatch.setattr("mixbin.problems.distillation.scan.FIRST_SIDE", 2)
    monkeypatch.setattr("mixbin.problems.distillation.scan.BLOCK_PAIRS", 70)
    problem = RidgeDistillation(*make_data(targets, seed=seed), budget=k, alpha=0.01)
    theta = problem.theta_set.vertex(np.random.default_rng(seed).uniform(size=40)).astype(float)
    batches = list(problem.theta_set.moves(theta))
    off, on = (np.concatenate(side) for side in zip(*batches, strict=True))
    values = problem.evaluate_moves(theta, NO_LAM, off, on)
    i, j, value = problem.best_move(theta, NO_LAM)
    assert value == pytest.approx(values.min(), rel=1e-10)
    assert theta[i] == 1
    assert theta[j] == 0


def test_nothing_is_left_when_all_rows_are_kept():
    problem = RidgeDistillation(*make_data(), budget=40, alpha=0.01)
    assert problem.best_move(np.ones(40), NO_LAM) == (-1, -1, np.inf)
    assert problem.improve(np.ones(40), NO_LAM).theta.all()


@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_an_expansion_changed_by_rows_is_that_of_the_changed_selection(targets, count):
    problem, theta = make_problem(targets)
    off, on = np.flatnonzero(theta == 1)[:count], np.flatnonzero(theta == 0)[:count]
    rows = np.concatenate([off, on])
    after = theta.copy()
    after[off], after[on] = 0.0, 1.0
    at, there = problem.expansion(theta, NO_LAM), problem.expansion(after, NO_LAM)
    changed = at.changed(at.terms(problem.rows.take(rows, at.origin)), np.where(after[rows] == 1, 1 / 40, -1 / 40))
    assert changed.value == pytest.approx(there.value, rel=1e-9)
    np.testing.assert_allclose(changed.coef[:-1], there.coef[:-1], rtol=1e-7, atol=1e-10 * np.abs(there.coef).max())
    # The same rows seen from either: residuals, leverages and slopes do not depend on the origin.
    for name in ("residual", "slope"):
        seen = [getattr(x.terms(problem.rows.take(np.arange(40), x.origin)), name) for x in (changed, there)]
        np.testing.assert_allclose(*seen, rtol=1e-6, atol=1e-9 * np.abs(seen[1]).max())


@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_below_every_change(targets, seed):
    problem, theta = make_problem(targets, seed=seed, alpha=10.0 ** (seed - 4))
    scan = Scan(problem.rows, problem.expansion(theta, NO_LAM), theta > 0.5, 1.0 / theta.size)
    off, on = np.flatnonzero(theta == 1), np.flatnonzero(theta == 0)
    changes = scan._changes(off, on)
    bounds = scan.bounds.bound(off, on) / 40
    slack = 1e-10 * np.abs(changes).max()
    assert (bounds <= changes + slack).all()
    # Asked whether a row can be below some change, the block of all rows and the single pairs never rule out one that is.
    for enough in np.quantile(changes.min(axis=0), [0.1, 0.5, 0.9]):
        below = changes.min(axis=0) < enough - slack
        side = scan.bounds.side(on)
        assert scan.bounds.block_open(off, side, enough * 40)[below].all()
        kept = scan.bounds.open_rows(off, side, enough * 40)
        assert np.isin(on[below], kept).all()
        # A bound that equals ``enough`` up to rounding may fall on either side.
        sure = np.abs(bounds.min(axis=0) - enough) > 1e-9 * np.abs(bounds).max()
        np.testing.assert_array_equal(np.isin(on, kept)[sure], (bounds < enough).any(axis=0)[sure])
    # And not for nothing: a good part of what does not lower J is known from the bounds alone.
    assert np.mean(bounds[changes > 0] > 0) > 0.3


@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("duplicates", [0, 12])
@pytest.mark.parametrize("seed", range(3))
def test_improve_ends_where_no_exchange_lowers_the_loss(targets, small, duplicates, seed, monkeypatch):
    """Judged by all exchanges, one by one; with tiny pools and blocks most of the work is the scan's."""
    if small:
        for name, value in (
            ("scan.POOL", 2),
            ("exchanges.POOL", 2),
            ("scan.BLOCK_ROWS", 3),
            ("scan.FIRST_SIDE", 1),
            ("scan.MANY", 3),
        ):
            monkeypatch.setattr(f"mixbin.problems.distillation.{name}", value)
        for name, value in (("ROWS_IN_BLOCK", 2), ("SIDE", 1), ("PATIENCE", 1)):
            monkeypatch.setattr(f"mixbin.problems.distillation.descent.{name}", value)
    problem, theta = make_problem(targets, budget=20, seed=seed, m=80, duplicates=duplicates)
    value, tried, calls = problem.evaluate(theta, NO_LAM).value, 0, 0
    while not tried:
        chosen, tried, change, cost = problem.improve(theta, NO_LAM)
        assert cost >= 1
        after = problem.evaluate(chosen.astype(float), NO_LAM).value
        assert after < value or np.array_equal(chosen, theta)
        assert chosen.sum() == 20
        theta, value, calls = chosen.astype(float), after, calls + 1
        assert calls < 200
    values = all_values(problem, theta)[2]
    assert tried == values.size
    assert values.min() >= value * (1 - 1e-10)
    assert change == pytest.approx(values.min() - value, abs=1e-9 * value)


def test_improve_is_pure():
    problem, theta = make_problem(budget=20, m=80)
    first, again = problem.improve(theta, NO_LAM), problem.improve(theta, NO_LAM)
    np.testing.assert_array_equal(first[0], again[0])
    fresh = make_problem(budget=20, m=80)[0].improve(theta, NO_LAM)
    np.testing.assert_array_equal(first[0], fresh[0])


def test_a_run_ends_with_every_exchange_known():
    problem, _ = make_problem(budget=20, m=80)
    result = mb.relax_and_penalize(problem, seed=0, starts=1)
    assert result.certificate.one_move_optimal
    assert result.certificate.moves_tried == result.certificate.moves_total == 20 * 60
    values = all_values(problem, result.theta.astype(float))[2]
    assert values.min() >= result.value
    assert result.certificate.best_change == pytest.approx(values.min() - result.value, abs=1e-9 * result.value)
    again = mb.certify(problem, result.theta, max_moves=5)
    assert again.one_move_optimal
    assert again.moves_tried == 20 * 60


def test_too_many_exchanges_are_not_all_looked_through_and_the_certificate_says_so(monkeypatch):
    monkeypatch.setattr("mixbin.problems.distillation.exchanges.MOST_PAIRS", 1000)
    problem, _ = make_problem(budget=20, m=80)
    result = mb.relax_and_penalize(problem, seed=0, starts=1)
    assert result.certificate.one_move_optimal is None
    assert result.certificate.moves_tried == 0


def test_a_problem_may_ask_for_less_than_all_exchanges():
    problem, _ = make_problem(budget=20, m=80)
    whole = mb.relax_and_penalize(problem, seed=0, starts=1)
    problem.scan_at_most = 1000
    result = mb.relax_and_penalize(problem, seed=0, starts=1)
    assert (result.certificate.one_move_optimal, result.certificate.moves_tried) == (None, 0)
    assert whole.value <= result.value <= 1.1 * whole.value


@pytest.mark.parametrize("compact", [False, True])
def test_equal_rows_that_a_tiny_alpha_tells_apart(compact, monkeypatch):
    """Updates for exchanges of equal rows meet singular matrices: the search goes on elsewhere."""
    monkeypatch.setattr("mixbin.problems.distillation.ridge.MODELLED_ENTRIES", 0)
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(10, 4)), 4, axis=0), np.repeat(rng.normal(size=10), 4)
    problem = RidgeDistillation(X, y, X[:10], y[:10] + 1, budget=7, alpha=1e-12, compact=compact)
    result = mb.relax_and_penalize(problem, seed=0)
    assert result.theta.sum() == 7
    assert np.isfinite(result.value)

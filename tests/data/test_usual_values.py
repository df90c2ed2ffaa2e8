"""Rows on threads, and columns that mostly repeat one value: the same sums, gradients and exchanges as from the dense table."""

import numpy as np
import pytest
from typer.testing import CliRunner

import mixbin as mb
from mixbin.cli import app
from mixbin.data import rows_on_threads, training_and_validation, usual_values
from mixbin.data.rows import DenseRows
from mixbin.data.rows_on_threads import RowsOnThreads
from mixbin.data.usual_values import UsualValueRows, for_speed
from mixbin.problems.distillation import rounds, scan
from mixbin.problems.distillation.scan import Scan
from mixbin.testing import check_problem

NO_LAM = np.empty(0)


def table(m=400, standardised=False, seed=0):
    """Five full columns, one of them far from 0, a constant one, and twenty that mostly repeat one value; two targets."""
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(m, 5)) + np.array([1e5, 0, 0, 0, 0])
    few = np.where(rng.random((m, 20)) < 0.08, rng.normal(size=(m, 20)) + 3.0, 0.0)
    X = np.hstack([full[:, :2], few[:, :10], np.full((m, 1), 7.0), full[:, 2:], few[:, 10:]])
    if standardised:
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 1e-9, X.std(axis=0), 1.0)
    y = (X - X.mean(axis=0)) @ rng.normal(size=(X.shape[1], 2)) + rng.normal(size=(m, 2))
    return X, y


@pytest.fixture
def used(monkeypatch):
    monkeypatch.setattr(usual_values, "LEAST_ENTRIES", 0)


@pytest.mark.parametrize("kind", [RowsOnThreads, UsualValueRows])
@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("weights", ["all", "some", "few", "only unusual"])
def test_the_same_sums_as_from_the_dense_table(used, kind, standardised, weights, monkeypatch):
    monkeypatch.setattr(rows_on_threads, "ROWS_AT_ONCE", 150)
    X, y = table(standardised=standardised)
    dense, rows = DenseRows(X, y), for_speed(DenseRows(X, y)) if kind is UsualValueRows else RowsOnThreads(DenseRows(X, y))
    assert type(rows) is kind
    v = np.random.default_rng(1).random(len(X))
    if weights in ("some", "few"):
        v *= np.random.default_rng(2).random(len(X)) < (0.7 if weights == "some" else 0.1)
    elif weights == "only unusual":  # a column that is mostly 0, but not in these rows
        v *= X[:, 2] != np.median(X[:, 2])
    (mean, S), (mean_here, S_here) = (it.moments(v, v.sum()) for it in (dense, rows))
    scale = np.sqrt(dense.variances)
    np.testing.assert_allclose(mean_here, mean, rtol=0, atol=1e-12 * (scale.max() + 1))
    np.testing.assert_allclose(S_here, S, rtol=0, atol=1e-12 * np.outer(scale, scale).max())
    thin = np.random.default_rng(3).normal(size=(3, len(mean)))
    images = dense.images(thin, mean)
    np.testing.assert_allclose(rows.images(thin, mean), images, rtol=0, atol=1e-12 * np.abs(images).max())
    P = np.cov(thin.T)
    zhat = dense.take(np.arange(len(X)), mean)
    np.testing.assert_array_equal(rows.take(np.arange(len(X)), mean), zhat)
    if kind is UsualValueRows:
        np.testing.assert_allclose(rows.squares(P, mean), np.einsum("ni,ij,nj->n", zhat, P, zhat), rtol=1e-10)
    assert rows.digest() == dense.digest()


def test_when_it_is_used(used, monkeypatch):
    X, y = table()
    assert isinstance(for_speed(DenseRows(X, y)), UsualValueRows)
    full = np.random.default_rng(0).normal(size=X.shape)
    for rows in (DenseRows(full, y), DenseRows(X[:, 2:12], 0 * y[:, :1])):
        assert type(for_speed(rows)) is RowsOnThreads  # no such column, and no full one
    rows = DenseRows(X.astype(np.float32), y.astype(np.float32))
    assert for_speed(rows) is rows
    monkeypatch.undo()
    rows = DenseRows(X, y)
    assert for_speed(rows) is rows  # small


@pytest.fixture
def problem(used):
    X, y = table()
    X_val, y_val = table(100, seed=5)
    made = mb.RidgeDistillation(X, y, X_val, y_val, budget=60, alpha=0.01)
    assert isinstance(made.rows, UsualValueRows)
    return made


def test_all_ask_for_it_but_the_reproduction(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(training_and_validation, "for_speed", lambda rows: asked.append(rows) or rows)
    X, y = table()
    mb.RidgeDistillation(X, y, X, y, budget=60, compact=False)
    twice = np.vstack([X, X]), np.tile(y[:, 0], 2)  # the published step samples 600 rows
    mb.paper_problem("blog", *twice, X[:50], y[:50, 0], budget=0.1)
    assert not asked
    mb.RidgeDistillation(X, y, X, y, budget=60)
    assert asked
    asked.clear()
    mb.DistillationRegressor(budget=60, random_state=0).fit(X, y[:, 0])
    assert asked
    asked.clear()
    names = ",".join(f"x{j}" for j in range(X.shape[1]))
    np.savetxt(tmp_path / "t.csv", np.column_stack([X, y[:, 0]]), delimiter=",", header=f"{names},y", comments="")
    typed = ["distill", str(tmp_path / "t.csv"), "--target", "y", "--budget", "60"]
    assert CliRunner().invoke(app, [*typed, "--out", str(tmp_path / "run")], prog_name="mixbin").exit_code == 0
    assert asked


def test_every_promise_of_a_problem(problem):
    check_problem(problem)


def test_terms_of_exchanges(problem, monkeypatch):
    theta = np.zeros(400)
    theta[::7] = 1.0
    at = problem.expansion(theta, NO_LAM)
    here = Scan(problem.rows, at, theta > 0.5, 1 / 400)
    there = Scan(DenseRows(*table()), at, theta > 0.5, 1 / 400)
    for name, a, b in zip(here.ends._fields, here.ends, there.ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * np.abs(b).max(), err_msg=name)


@pytest.mark.parametrize("near_misses", [0, 1, 128])
def test_ends_where_no_exchange_lowers_the_loss(problem, monkeypatch, near_misses):
    """As in large tables: rows are not kept centred, and near misses join the exchanges."""
    monkeypatch.setattr(scan, "KEPT_ENTRIES", 0)
    monkeypatch.setattr(rounds, "NEAR_MISSES", near_misses)
    monkeypatch.setattr(scan, "POOL", 2)
    monkeypatch.setattr("mixbin.problems.distillation.exchanges.POOL", 2)
    theta = np.zeros(400)
    theta[:60] = 1.0
    got = None
    for _ in range(100):
        got = problem.improve(theta, NO_LAM)
        theta = got.theta.astype(float)
        if got.tried:
            break
    assert got.tried == 60 * 340
    off, on = (side.ravel() for side in np.meshgrid(np.flatnonzero(theta), np.flatnonzero(theta == 0), indexing="ij"))
    value = problem.evaluate(theta, NO_LAM).value
    assert problem.evaluate_moves(theta, NO_LAM, off, on).min() >= value * (1 - 1e-9)

"""FeatureSelector: scikit-learn's conventions, planted features found again, bounds that hold, and 25 bad inputs."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixbin as mb
from mixbin.estimators._feature_choice import _smallest_near_best, counts_to_try
from mixbin.estimators.features import kicks_for
from tests.problems.test_best_subset import brute_force

pytestmark = pytest.mark.slow

PLANTED = [2, 5, 11]


def made(n=80, p=15, noise=0.5, seed=0, loss="squared", targets=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.linspace(0.5, 20, p) + np.linspace(-5, 5, p)
    w = np.zeros((p, targets or 1))
    w[PLANTED] = np.array([2.0, -1.5, 1.0])[:, None] / np.linspace(0.5, 20, p)[PLANTED][:, None]
    Y = X @ w + noise * rng.normal(size=(n, targets or 1)) + 3.0
    if loss == "logistic":
        return X, np.where(Y[:, 0] > np.median(Y[:, 0]), "yes", "no")
    return X, Y if targets else Y[:, 0]


@parametrize_with_checks(
    [mb.FeatureSelector(n_features=2, gamma=1.0, random_state=0), mb.FeatureSelector(2, 1.0, "logistic", random_state=0)]
)
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.ci
@parametrize_with_checks([mb.FeatureSelector(random_state=0), mb.FeatureSelector("auto", loss="logistic", random_state=0)])
def test_conventions_with_cross_validation(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("count", [3, "auto"])
def test_planted_features_are_found(loss, count):
    X, y = made(n=120, loss=loss)
    model = mb.FeatureSelector(count, loss=loss, prove=True, random_state=0).fit(X, y)
    assert set(PLANTED) <= set(model.get_support(indices=True))
    assert model.n_features_ <= 5
    assert model.proved_
    assert model.gap_ == 0.0
    assert model.score(X, y) > 0.85
    assert model.transform(X).shape == (120, model.n_features_)
    assert np.array_equal(model.ranking_ == 1, model.support_)
    assert sorted(model.ranking_[~model.support_]) == list(range(2, 15 - model.n_features_ + 2))
    assert model.cv_errors_.shape == (len(model.cv_counts_), len(model.cv_gammas_))
    assert model.gamma_ in model.cv_gammas_


@pytest.mark.parametrize("targets", [None, 2])
def test_the_model_is_ridge_on_the_kept_columns(targets):
    X, y = made(targets=targets)
    model = mb.FeatureSelector(3, gamma=4.0, random_state=0).fit(X, y)
    kept = model.support_
    ridge = make_pipeline(StandardScaler(), Ridge(alpha=4.0)).fit(X[:, kept], y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X[:, kept]), rtol=1e-8)
    assert model.coef_.shape == ((15,) if targets is None else (2, 15))
    assert np.all(model.coef_[..., ~kept] == 0)
    residual = y - ridge.predict(X[:, kept])
    expected = np.square(residual).sum() + 4.0 * np.square(ridge[-1].coef_).sum()
    assert model.value_ == pytest.approx(expected, rel=1e-9)
    assert 0 < model.lower_bound_ <= brute_force(model.problem_) * (1 + 1e-9)
    assert model.gap_ == pytest.approx(1 - model.lower_bound_ / model.value_) or model.proved_


def test_the_model_is_logistic_regression_on_the_kept_columns():
    X, y = made(loss="logistic")
    model = mb.FeatureSelector(3, gamma=2.0, loss="logistic", random_state=0).fit(X, y)
    kept = model.support_
    other = make_pipeline(StandardScaler(), LogisticRegression(C=0.5, tol=1e-10, solver="newton-cholesky")).fit(X[:, kept], y)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X[:, kept]), atol=1e-6)
    assert np.array_equal(model.predict(X), other.predict(X[:, kept]))
    assert model.classes_.tolist() == ["no", "yes"]
    assert not hasattr(mb.FeatureSelector(), "predict_proba")


def test_sparse_tables():
    X, y = made()
    X[np.abs(X) < 2] = 0.0
    dense, thin = (mb.FeatureSelector(4, random_state=0).fit(table, y) for table in (X, sparse.csr_matrix(X)))
    assert np.array_equal(dense.support_, thin.support_)
    np.testing.assert_allclose(dense.coef_, thin.coef_, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(thin.predict(sparse.csr_matrix(X)), dense.predict(X), rtol=1e-6)


def test_names_and_stability():
    X, y = made()
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(15)])
    model = mb.FeatureSelector(3, stability=10, random_state=0).fit(table, y)
    assert model.get_feature_names_out().tolist() == ["c2", "c5", "c11"]
    assert model.stability_.shape == (15,)
    assert model.stability_.sum() == pytest.approx(3.0)
    assert model.stability_[PLANTED].min() > 0.8
    assert not hasattr(mb.FeatureSelector(3, gamma=1.0).fit(X, y), "stability_")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_groups(loss):
    X, y = made(loss=loss)
    groups = np.repeat(["a", "b", "c", "d", "e"], 3)
    model = mb.FeatureSelector(3, gamma=1.0, loss=loss, groups=groups, prove=True, random_state=0).fit(X, y)
    assert np.unique(groups[model.support_], return_counts=True)[1].max() == 1
    assert model.proved_
    assert model.value_ == pytest.approx(brute_force(model.problem_), rel=1e-8)
    every = mb.FeatureSelector(99, gamma=1.0, loss=loss, groups=groups, per_group={"a": 2} | dict.fromkeys("bcde", 1)).fit(X, y)
    assert np.unique(groups[every.support_], return_counts=True)[1].tolist() == [2, 1, 1, 1, 1]


def test_same_seed_same_bits_and_copies():
    X, y = made(noise=5.0)
    first = mb.FeatureSelector(4, random_state=3).fit(X, y)
    again = clone(first).fit(X, y)
    assert first.value_ == again.value_
    assert np.array_equal(first.coef_, again.coef_)
    assert np.array_equal(pickle.loads(pickle.dumps(first)).predict(X), first.predict(X))


def test_a_proof_with_a_time_limit_goes_on(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1)) + 0.3 * rng.normal(size=(30, 24))
    y = rng.normal(size=30)
    model = mb.FeatureSelector(5, gamma=0.05, prove=True, time_limit=0, random_state=0).fit(X, y)
    assert not model.proved_
    assert 0 < model.gap_ <= 1
    assert mb.prove_best_subset(model.problem_, proof=model.proof_).proved
    mb.FeatureSelector(5, gamma=10.0, prove=True, verbose=True, random_state=0).fit(X, y)
    assert "lower bound" in capsys.readouterr().err


def test_in_pipelines_and_cross_validation():
    X, y = made()
    pipeline = make_pipeline(mb.FeatureSelector(3, gamma=1.0, random_state=0), Ridge())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    assert cross_val_score(mb.FeatureSelector(3, gamma=1.0, random_state=0), X, y, cv=3).mean() > 0.8


def test_fewer_starts_on_large_logistic_tables():
    rng = np.random.default_rng(0)
    sizes = {(300, 1000): 32, (2000, 500): 10, (6000, 1000): 4}
    for (n, p), kicks in sizes.items():
        X = sparse.csr_array((np.ones(n), (np.arange(n), rng.integers(p, size=n))), shape=(n, p))
        assert kicks_for(mb.BestSubset(X, np.arange(n) % 2, 2, 1.0, "logistic")) == kicks
        assert kicks_for(mb.BestSubset(X, np.arange(n), 2, 1.0)) == 60


def test_the_smallest_within_some_standard_errors():
    rng = np.random.default_rng(0)
    errors = np.array([3.0, 1.2, 1.1, 1.0, 1.3]) + rng.normal(size=(5, 1)) + 0.1 * rng.normal(size=(5, 5))
    best = int(errors.mean(axis=0).argmin())
    assert _smallest_near_best(errors, 0.0) == best
    picks = [_smallest_near_best(errors, within) for within in (0.0, 0.5, 1.0, 4.0, 1e6)]
    assert picks == sorted(picks, reverse=True)
    assert picks[-1] == 0
    apart = errors[:, picks[2]] - errors[:, best]
    assert apart.mean() <= apart.std(ddof=1) / np.sqrt(5)


def test_counts_to_try():
    assert counts_to_try(1) == [1]
    assert counts_to_try(12) == [*range(1, 11), 12]
    assert counts_to_try(50)[-1] == 50


def test_constant_columns_and_few_rows():
    X, y = made()
    X[:, 0] = 1e6
    model = mb.FeatureSelector(15, gamma=1.0).fit(X, y)
    assert model.coef_[0] == pytest.approx(0.0, abs=1e-12)
    few = mb.FeatureSelector(2, random_state=0).fit(X[:4], y[:4])
    assert few.cv_errors_ is None
    assert few.n_features_ == 2


BAD = {
    "n_features": [0, -1, 2.5, "all", None, True],
    "gamma": [0.0, -1.0, "auto", np.nan, None],
    "loss": ["absolute", None, np.array([])],
    "groups": [[1, 2, 3], np.zeros((15, 2))],
    "per_group": [0, 1.5],
    "prove": [1, "yes"],
    "time_limit": [-1.0, "10"],
    "cv": [1, 2.5],
    "stability": [-1, 0.5, 10**400],
    "random_state": ["seed"],
    "verbose": [2],
    "n_jobs": [0, 1.5, "all", -(10**10)],
    "callbacks": ["print", [1], 3],
}


BAD_SETTINGS = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS)
def test_bad_settings(name, value):
    X, y = made()
    groups = {"groups": np.arange(15)} if name == "per_group" else {}
    with pytest.raises(mb.InvalidInput) as error:
        mb.FeatureSelector(**{"gamma": 1.0} | groups | {name: value}).fit(X, y)
    assert name in str(error.value) or "high" in str(error.value)


BAD_TABLES = [
    (np.ones((5, 2)), np.ones(4), "squared"),
    (np.full((5, 2), np.nan), np.ones(5), "squared"),
    (np.ones((5, 2)), ["a"] * 5, "squared"),
    (np.eye(5), [0, 1, 2, 1, 0], "logistic"),
    (np.eye(5), [1, 1, 1, 1, 1], "logistic"),
    (np.eye(5), [0.1, 0.2, 0.3, 0.4, 0.5], "logistic"),
    (np.ones(5), np.ones(5), "squared"),
    (np.full((5, 2), 1e200) * np.arange(5)[:, None], np.ones(5), "squared"),
    (sparse.csr_array(np.full((5, 2), 1e200) * np.arange(5)[:, None]), np.ones(5), "squared"),
    (np.arange(10.0).reshape(5, 2), np.array([1.0, 2.0, 1e300, 3.0, 4.0]), "squared"),
    (np.arange(10.0).reshape(5, 2), np.array([1.0, 2.0, 1e30, 3.0, 4.0]), "logistic"),
]


@pytest.mark.parametrize(("X", "y", "loss"), BAD_TABLES)
def test_bad_tables(X, y, loss):
    with pytest.raises(mb.InvalidInput):
        mb.FeatureSelector(loss=loss).fit(X, y)


def test_there_are_25_bad_inputs():
    assert len(BAD_SETTINGS) + len(BAD_TABLES) >= 25
    assert set(BAD) == set(mb.FeatureSelector().get_params())


def test_not_fitted():
    with pytest.raises(NotFittedError):
        mb.FeatureSelector().predict(np.ones((2, 2)))


def test_a_loss_that_is_no_text_is_told_by_fit_alone():
    with pytest.raises(NotFittedError):
        mb.FeatureSelector(loss=np.array([])).predict(np.zeros((1, 2)))


def test_more_threads_than_folds():
    X = np.random.default_rng(0).normal(size=(40, 4))
    y = X @ [1.0, 2.0, 0.0, 0.0] + X[:, 3] ** 2
    one, many = (mb.FeatureSelector(n_features=2, stability=3, random_state=0, n_jobs=n).fit(X, y) for n in (None, 2**63))
    np.testing.assert_array_equal(one.stability_, many.stability_)
    np.testing.assert_array_equal(one.support_, many.support_)

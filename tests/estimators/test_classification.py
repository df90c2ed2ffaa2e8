"""DistillationClassifier: scikit-learn's conventions, and that it leaves wrong labels out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixbin as mb
from mixbin.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore:only .* rows judge")  # the tables here are small

QUICK = mb.DistillationClassifier(random_state=0, max_evaluations=40)


@pytest.mark.slow
@parametrize_with_checks([QUICK])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.ci
@parametrize_with_checks([mb.DistillationClassifier(budget=0.5, random_state=0, max_evaluations=20)])
def test_scikit_learn_with_a_budget(estimator, check):
    check(estimator)


def make_data(K=3, seed=0):
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(K, 4))
    y, y_val = rng.integers(K, size=120), rng.integers(K, size=60)
    X, X_val = (centres[labels] + rng.normal(size=(len(labels), 4)) for labels in (y, y_val))
    wrong = np.arange(120) < 30
    return X, np.where(wrong, (y + 1) % K, y), X_val, y_val, wrong


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("budget", [None, 90])
def test_wrong_labels_are_left_out(K, budget):
    X, y, X_val, y_val, wrong = make_data(K)
    model = clone(QUICK).set_params(budget=budget).fit(X, y, X_val, y_val)
    assert (~model.support_ & wrong).sum() > 25
    assert (~model.support_ & ~wrong).sum() < 8
    assert model.score(X_val, y_val) >= clone(QUICK).set_params(budget=1.0).fit(X, y, X_val, y_val).score(X_val, y_val)
    assert model.coef_.shape == ((1, 4) if K == 2 else (3, 4))
    P = model.predict_proba(X_val)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X_val))
    if budget:
        assert model.support_.sum() == 90


def test_names_classes_and_split():
    _, _, *clean, _ = make_data()
    X, y = clean
    table = pd.DataFrame(X, columns=list("abcd"))
    labels = np.array(["x", "y", "z"])[y]
    model = clone(QUICK).fit(table, labels)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert set(model.predict(table)) <= {"x", "y", "z"}
    assert model.result_.theta.size == 60
    assert clone(QUICK).set_params(validation_fraction=0.2).fit(table, labels).result_.theta.size == 48
    np.testing.assert_array_equal(clone(QUICK).fit(table, labels).support_, model.support_)
    assert cross_val_score(clone(QUICK), X, y, cv=3).min() > 0.8


@pytest.mark.parametrize("method", ["top-k", "simple", "relax"])
def test_baselines(method):
    X, y, X_val, y_val, _ = make_data()
    model = clone(QUICK).set_params(method=method, budget=60).fit(X, y, X_val, y_val)
    assert model.score(X_val, y_val) > 0.8
    assert (model.weights_.sum() == pytest.approx(60)) or method == "simple"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "guess"}, "method must be one of"),
        ({"budget": 0}, "budget must be"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"temperature": "warm"}, "temperature must be"),
        ({"validation_fraction": 1.0}, "validation_fraction must be"),
    ],
)
def test_bad_settings(settings, message):
    X, y, X_val, y_val, _ = make_data()
    with pytest.raises(InvalidInput, match=message):
        clone(QUICK).set_params(**settings).fit(X, y, X_val, y_val)


def test_bad_data():
    X, y, X_val, y_val, _ = make_data()
    with pytest.raises(InvalidInput, match="y_val must be given together with X_val"):
        clone(QUICK).fit(X, y, X_val)
    with pytest.raises(InvalidInput, match="y must hold at least two classes"):
        clone(QUICK).fit(X, np.zeros(120), X_val, np.zeros(60))
    with pytest.raises(InvalidInput, match="X_val must be a table of numbers with the columns of X"):
        clone(QUICK).fit(X, y, X_val[:, :2], y_val)
    with pytest.raises(NotFittedError):
        clone(QUICK).predict(X)


@pytest.mark.parametrize(
    ("settings", "trusted", "loss"),
    [({}, True, "cross-entropy"), ({}, False, "bounded"), ({"validation_fraction": 0.3}, False, "bounded")],
)
def test_who_judges_decides_the_loss(settings, trusted, loss):
    X, y, X_val, y_val, _ = make_data()
    rows = (X_val, y_val) if trusted else ()
    answers = [clone(QUICK).set_params(judge_loss=given, **settings).fit(X, y, *rows) for given in (None, loss)]
    np.testing.assert_array_equal(answers[0].coef_, answers[1].coef_)
    other = {"bounded": "cross-entropy", "cross-entropy": "bounded"}[loss]
    assert clone(QUICK).set_params(judge_loss=other, **settings).fit(X, y, *rows).result_.value != answers[0].result_.value


def test_a_temperature_belongs_to_the_cross_entropy():
    X, y, X_val, y_val, _ = make_data()
    assert clone(QUICK).set_params(temperature=2.0).fit(X, y, X_val, y_val).support_.any()
    with pytest.raises(InvalidInput, match=r'temperature must be None with judge_loss="bounded", got 2\.0'):
        clone(QUICK).set_params(temperature=2.0).fit(X, y)


@pytest.mark.slow
def test_large_tables_end_where_steps_gain_little():
    rng = np.random.default_rng(0)
    centres, y = 1.5 * rng.normal(size=(3, 6)), rng.integers(3, size=900)
    X = centres[y] + 2.0 * rng.normal(size=(900, 6))
    y[:180] = (y[:180] + 1) % 3
    model = mb.DistillationClassifier(random_state=0).fit(X, y)
    assert "stall=0.0001" in model.result_.settings["solver"]
    problem = mb.SoftmaxDistillation(X, y, balanced=True, class_shares=0.2)  # exact models, all steps, polish by single moves
    exact = mb.relax_and_penalize(problem, seed=0, starts=1, polish=200)
    assert model.result_.value == pytest.approx(exact.value, rel=1e-3)
    assert model.result_.n_evaluations < 0.5 * exact.n_evaluations


def test_few_judges_are_told():
    X, y, X_val, y_val, _ = make_data()
    with pytest.warns(UserWarning, match="only 60 rows judge: rows chosen by fewer than 300 .*pass more as X_val"):
        clone(QUICK).fit(X, y, X_val, y_val)


def test_a_rare_class_is_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] > 1.6
    model = clone(QUICK).set_params(budget=20).fit(X, y)
    assert model.support_[y].sum() >= 1
    assert model.support_.sum() == 20

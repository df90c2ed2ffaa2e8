"""Estimators as steps of others' pipelines: rows kept by ``fit_resample``, and steps that joblib remembers."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline

import mixbin as mb

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=120)
LABELS = np.where(X[:, 0] > 0, "right", "left")
WRONG = np.flatnonzero(np.abs(X[:, 0]) > 0.7)[:10]
LABELS[WRONG] = np.where(X[WRONG, 0] > 0, "left", "right")
SAMPLERS = {
    "regressor": (mb.DistillationRegressor(budget=15, random_state=0), y),
    "classifier": (mb.DistillationClassifier(budget=30, random_state=0), LABELS),
    "labels": (mb.LabelCleaner(guard=False, random_state=0), LABELS),
}


@pytest.fixture(scope="module", params=SAMPLERS)
def fitted(request):
    sampler, targets = SAMPLERS[request.param]
    kept = sampler.fit_resample(X, targets)
    return sampler, targets, kept


def test_rows_are_kept_in_the_types_they_came_in(fitted):
    sampler, targets, (rows, their) = fitted
    support = sampler.support_
    assert 0 < support.sum() < len(X)
    np.testing.assert_array_equal(rows, X[support])
    np.testing.assert_array_equal(their, targets[support])
    index = pd.Index([f"r{i}" for i in range(len(X))])
    frame, series = sampler.fit_resample(pd.DataFrame(X, index, list("abc")), pd.Series(targets, index, name="t"))
    assert frame.columns.tolist() == list("abc")
    assert series.name == "t"
    assert frame.index.tolist() == series.index.tolist() == index[support].tolist()
    lists = sampler.fit_resample(X.tolist(), targets.tolist())
    assert lists == (X[support].tolist(), targets[support].tolist())


def test_sparse_tables_stay_sparse():
    rows, _ = SAMPLERS["regressor"][0].fit_resample(sparse.csr_array(X), y)
    assert sparse.issparse(rows)
    assert rows.shape == (15, 3)


def test_dask_is_refused():
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    with pytest.raises(mb.InvalidInput, match="X and y of fit_resample must be in memory, got a Dask collection; call fit"):
        mb.DistillationRegressor().fit_resample(da.from_array(X), da.from_array(y))


def test_what_imbalanced_learn_asks_of_a_step(fitted):
    """A step that resamples has fit_resample and no transform; a clone of it keeps the same rows."""
    sampler, targets, kept = fitted
    assert not hasattr(sampler, "transform")
    for again, before in zip(clone(sampler).fit_resample(X, targets), kept, strict=True):
        np.testing.assert_array_equal(again, before)


def test_a_step_of_imbalanced_learn(fitted):
    """The steps after it are trained on the rows kept, and predict all rows."""
    imblearn = pytest.importorskip("imblearn.pipeline", reason="imbalanced-learn is not installed")
    sampler, targets, kept = fitted
    model = LogisticRegression() if targets is LABELS else Ridge(0.1)
    pipeline = imblearn.Pipeline([("rows", sampler), ("model", model)]).fit(X, targets)
    np.testing.assert_array_equal(pipeline.predict(X), clone(model).fit(*kept).predict(X))


def test_joblib_remembers_steps(tmp_path):
    """With ``memory``, a pipeline fits encoder and selector once for the same rows and settings."""
    table = pd.DataFrame(X, columns=list("abc")).assign(side=LABELS)
    calls = []

    class Counted(mb.FeatureSelector):
        def fit(self, X, y):
            calls.append(len(y))
            return super().fit(X, y)

    Counted.__module__, Counted.__qualname__ = __name__, "Counted"
    globals()["Counted"] = Counted

    def fitted_model(alpha, seed=0):
        steps = [("numbers", mb.TableEncoder()), ("columns", Counted(2, random_state=seed)), ("model", Ridge(alpha))]
        return Pipeline(steps, memory=str(tmp_path)).fit(table, y)

    first, second = fitted_model(0.1), fitted_model(1.0)
    assert len(calls) == 1
    np.testing.assert_array_equal(first["columns"].coef_, second["columns"].coef_)
    plain = make_pipeline(mb.TableEncoder(), mb.FeatureSelector(2, random_state=0), Ridge(1.0)).fit(table, y)
    np.testing.assert_array_equal(second.predict(table), plain.predict(table))
    fitted_model(1.0, seed=1)
    assert len(calls) == 2

"""DistillationRegressor on Dask collections."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import NotFittedError

import mixbin as mb


@pytest.fixture(autouse=True)
def _threads():
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = X @ [1.0, -2.0, 0.5] + 3 + rng.normal(size=160) * np.where(rng.random(160) < 0.3, 3.0, 0.1)
    return X, y


pytestmark = pytest.mark.filterwarnings("ignore:on the rows that were not kept")  # small tables, few evaluations
PAPER = {"judge": "validation", "standardize": False, "outer_alpha": 0, "gap_tol": 0}


def estimator(**keywords):
    few = {"budget": 20, "alpha": 0.01, "random_state": 0, "max_evaluations": 100}
    return mb.DistillationRegressor(**(few | PAPER | keywords))


def test_the_same_rows_are_split_off_as_in_memory(table):
    """Those of ``train_test_split``, in their order."""
    X, y = table
    got = estimator().fit(da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=50))
    rows, held = (np.sort(part) for part in train_test_split(np.arange(160), test_size=0.2, random_state=0))
    blocks = np.diff(np.searchsorted(rows, [0, 50, 100, 150, 160]))
    problem = mb.RidgeDistillation(X[rows], y[rows], X[held], y[held], budget=20, alpha=0.01, chunks=blocks)
    expected = mb.relax_and_penalize(problem, seed=0, max_evaluations=100)
    np.testing.assert_array_equal(np.flatnonzero(got.support_), rows[expected.theta])
    assert got.result_.value == pytest.approx(expected.value, rel=1e-9)
    retrained = Ridge(alpha=128 * got.alpha_).fit(X[got.support_], y[got.support_])
    np.testing.assert_allclose(got.coef_, retrained.coef_, rtol=1e-8)
    assert got.intercept_ == pytest.approx(retrained.intercept_)


def test_all_rows_judge(table):
    X, y = table
    got = estimator(judge="auto", outer_alpha="cv", standardize=True, alpha=None).fit(
        da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=50)
    )
    problem = mb.RidgeDistillation(X, y, budget=20, outer_alpha="cv", standardize=True, chunks=(50, 50, 50, 10))
    assert got.outer_alpha_ == problem.outer_alpha
    assert got.result_.value == problem.evaluate(got.result_.theta.astype(float), got.result_.lam).value
    assert got.support_.shape == (160,)


def test_a_given_validation_set(table):
    X, y = table
    arguments = X[120:], y[120:]
    got = estimator().fit(da.from_array(X[:120], chunks=(50, -1)), da.from_array(y[:120], chunks=50), *arguments)
    problem = mb.RidgeDistillation(X[:120], y[:120], *arguments, budget=20, alpha=0.01, chunks=(50, 50, 20))
    expected = mb.relax_and_penalize(problem, seed=0, max_evaluations=100)
    np.testing.assert_array_equal(got.support_, expected.theta)


def test_dataframes_and_lazy_predictions(table):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    blocks = dd.from_pandas(frame, npartitions=3)
    got = estimator(method="top-k").fit(blocks[["a", "b", "c"]], blocks["y"])
    assert list(got.feature_names_in_) == ["a", "b", "c"]
    assert got.n_features_in_ == 3
    assert not got.support_.all()
    lazy = got.predict(blocks[["a", "b", "c"]])
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), got.predict(frame[["a", "b", "c"]]))
    with pytest.raises(mb.InvalidInput, match="X must have the columns of X in fit"):
        got.predict(blocks[["b", "a", "c"]])
    with pytest.raises(mb.InvalidInput, match="the 3 columns of X in fit"):
        got.predict(blocks[["a", "b"]])


def test_bad_input(table):
    X, y = table
    with pytest.raises(mb.InvalidInput, match="same blocks"):
        estimator().fit(da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=40))
    with pytest.raises(mb.InvalidInput, match="X must be a Dask array"):
        estimator().fit(X, da.from_array(y, chunks=40))
    with pytest.raises(NotFittedError):
        estimator().predict(da.from_array(X, chunks=(50, -1)))

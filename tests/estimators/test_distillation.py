"""DistillationRegressor: scikit-learn's conventions, and the ridge on the selected rows against scikit-learn's own."""

import doctest
import io
import pickle

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixbin as mb
from mixbin.estimators import DistillationRegressor, _common, distillation
from tests.shared_data import shared_file

METHODS = ["penalize", "top-k", "simple", "relax"]
NAN, INF = float("nan"), float("inf")


def make_data(rows=60, targets=(), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)) * [1.0, 5.0, 0.2, 1.0] + [0.0, 30.0, 1.0, -2.0]
    coef = np.random.default_rng(5).normal(size=(4, *targets))
    return X, X @ coef + 3.0 + 0.3 * rng.normal(size=(rows, *targets))


X, Y = make_data()
X_VAL, Y_VAL = make_data(25, seed=1)


PAPER = {"judge": "validation", "standardize": False, "outer_alpha": 0, "gap_tol": 0}
"""The problem of the paper, judged by validation rows alone; tests/estimators/test_judge.py has the defaults."""

# Tables this small have few validation rows, and their answers do not hold on the other rows.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* validation rows for", "ignore:on the rows that were not kept", "ignore:alpha ended"
)


def quick(**settings):
    """An estimator that takes a few milliseconds to fit."""
    return DistillationRegressor(**{"budget": 12, "max_evaluations": 60, "random_state": 0} | PAPER | settings)


def state(model):
    return [model.support_, model.weights_, model.alpha_, model.coef_, model.intercept_, model.result_.value]


def assert_same_bits(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@parametrize_with_checks([DistillationRegressor(budget=0.5, max_evaluations=50)])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def test_docstring_example():
    assert doctest.testmod(distillation).failed == 0


class TestAgainstRidge:
    @pytest.mark.parametrize("targets", [(), (1,), (3,)])
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("alpha", [None, (1e-4, 10.0), 0.05])
    def test_the_model_is_the_ridge_on_the_selected_rows(self, method, targets, alpha):
        X, y = make_data(targets=targets)
        model = quick(method=method, alpha=alpha).fit(X, y)
        rows, m = model.support_, len(model.result_.theta)
        expected = Ridge(alpha=m * model.alpha_).fit(X[rows], y[rows], sample_weight=model.weights_[rows])
        np.testing.assert_allclose(model.coef_, expected.coef_.reshape(model.coef_.shape), atol=1e-6)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-6)
        assert model.coef_.shape == (*targets, 4)
        assert model.predict(X).shape == y.shape
        np.testing.assert_allclose(model.predict(X), expected.predict(X).reshape(y.shape), atol=1e-6)
        assert model.score(X, y) == pytest.approx(r2_score(y, model.predict(X)))

    def test_alpha_is_the_number_given_or_within_the_pair(self):
        assert quick(alpha=2).fit(X, Y).alpha_ == 2.0
        found = quick(alpha=(1e-3, 1e-1)).fit(X, Y).alpha_
        assert isinstance(found, float)
        assert 1e-3 <= found <= 1e-1

    def test_wrong_labels_are_left_out(self):
        y = Y.copy()
        y[:10] += 50.0
        model = quick(budget=30, max_evaluations=300).fit(X, y, X_VAL, Y_VAL)
        assert not model.support_[:10].any()
        assert model.score(X_VAL, Y_VAL) > Ridge(alpha=60 * model.alpha_).fit(X, y).score(X_VAL, Y_VAL)


class TestSupport:
    @pytest.mark.parametrize(("budget", "count"), [(7, 7), (0.1, 5), (0.25, 12), (1, 1), (1.0, 48), (48, 48)])
    @pytest.mark.parametrize("method", ["penalize", "top-k"])
    def test_the_budget_counts_candidate_rows(self, method, budget, count):
        model = quick(method=method, budget=budget, alpha=0.1).fit(X, Y)
        assert model.support_.shape == (60,)
        assert model.support_.dtype == np.bool_
        assert model.support_.sum() == count
        assert len(model.result_.theta) == 48
        np.testing.assert_array_equal(model.weights_, model.support_.astype(float))

    def test_a_given_validation_set_leaves_all_rows_to_choose_from(self):
        model = quick(budget=0.1).fit(X, Y, X_VAL, Y_VAL)
        assert len(model.result_.theta) == 60
        assert model.support_.sum() == 6
        np.testing.assert_array_equal(model.support_, model.result_.theta)

    @pytest.mark.parametrize("method", METHODS)
    def test_splitting_by_hand_gives_the_same_bits(self, method):
        by_itself = quick(method=method, validation_fraction=0.3).fit(X, Y)
        rows, held_out = train_test_split(np.arange(60), test_size=0.3, random_state=0)
        by_hand = quick(method=method).fit(X[rows], Y[rows], X[held_out], Y[held_out])
        assert not by_itself.support_[held_out].any()
        np.testing.assert_array_equal(by_itself.weights_[rows], by_hand.weights_)
        np.testing.assert_array_equal(by_itself.coef_, by_hand.coef_)
        assert by_itself.result_.value == by_hand.result_.value

    def test_relaxed_weights_are_kept(self):
        model = quick(method="relax", max_evaluations=200).fit(X, Y)
        assert model.result_.status == mb.Status.RELAXED
        assert model.weights_.dtype == np.float64
        assert model.weights_.sum() == pytest.approx(12)
        assert ((model.weights_ > 0) & (model.weights_ < 1)).any()
        np.testing.assert_array_equal(model.support_, model.weights_ > 0)

    def test_simple_rounding_keeps_what_it_gives(self):
        model = quick(method="simple", max_evaluations=200).fit(X, Y)
        assert model.support_.sum() == model.result_.theta.sum()
        assert model.result_.status in (mb.Status.INFEASIBLE, mb.Status.REPAIRED)

    def test_an_empty_selection_is_refused_with_the_remedy(self):
        # Two evaluations leave all weights at the start, where each is 12/48.
        with pytest.raises(mb.InvalidInput, match=r'method="simple" must leave a row.*use method="top-k" or "penalize"'):
            quick(method="simple", max_evaluations=2).fit(X, Y)


class TestReproducibility:
    @pytest.mark.parametrize("method", METHODS)
    def test_same_random_state_same_bits(self, method):
        assert_same_bits(quick(method=method).fit(X, Y), quick(method=method).fit(X, Y))

    def test_a_generator_goes_on(self):
        rng = np.random.RandomState(0)
        first, second = (quick(random_state=rng).fit(X, Y) for _ in range(2))
        again = quick(random_state=np.random.RandomState(0)).fit(X, Y)
        assert_same_bits(first, again)
        assert not np.array_equal(first.support_, second.support_)

    def test_an_int_is_the_seed_of_the_method(self):
        model = quick(random_state=np.int64(7)).fit(X, Y, X_VAL, Y_VAL)
        problem = mb.RidgeDistillation(X, Y, X_VAL, Y_VAL, budget=12)
        result = mb.relax_and_penalize(problem, max_evaluations=60, seed=7)
        np.testing.assert_array_equal(model.result_.theta, result.theta)
        assert model.result_.value == result.value

    def test_max_evaluations_reaches_every_method(self):
        for method in METHODS:
            assert quick(method=method, max_evaluations=30).fit(X, Y).result_.n_evaluations <= 30

    def test_refitting_forgets(self):
        model = quick().fit(*make_data(targets=(2,)))
        assert_same_bits(model.fit(X, Y), quick().fit(X, Y))


class TestInsideScikitLearn:
    def test_parameters_and_clone(self):
        model = quick(alpha=(1e-3, 1.0), method="top-k").fit(X, Y)
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "coef_")
        assert_same_bits(copy.fit(X, Y), model)
        assert copy.set_params(budget=5).fit(X, Y).support_.sum() == 5

    @pytest.mark.parametrize("method", METHODS)
    def test_a_fitted_model_survives_pickling(self, method):
        model = quick(method=method).fit(X, Y)
        copy = pickle.loads(pickle.dumps(model))
        assert_same_bits(copy, model)
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert len(copy.result_.trace) == len(model.result_.trace)

    def test_cross_validation_and_grid_search(self):
        assert cross_val_score(quick(), X, Y, cv=3).min() > 0.5
        search = GridSearchCV(make_pipeline(StandardScaler(), quick()), {"distillationregressor__budget": [6, 12]}, cv=2)
        assert search.fit(X, Y).best_estimator_[-1].support_.sum() in (6, 12)

    def test_predict_needs_fit(self):
        with pytest.raises(NotFittedError):
            DistillationRegressor().predict(X)

    def test_verbose_shows_progress_on_a_terminal_only(self, monkeypatch):
        for terminal in (True, False):
            screen = io.StringIO()
            console = Console(file=screen, force_terminal=terminal, width=120)
            monkeypatch.setattr(_common, "ProgressDisplay", lambda label, c=console: mb.ProgressDisplay(label, c))
            quick(verbose=True).fit(X, Y)
            assert ("distilling" in screen.getvalue()) == terminal


class TestDataFrames:
    FRAME = pd.DataFrame(X, columns=list("abcd"))
    FRAME_VAL = pd.DataFrame(X_VAL, columns=list("abcd"))

    def test_frames_give_what_arrays_give(self):
        y = pd.Series(Y, index=np.arange(60)[::-1])
        model = quick().fit(self.FRAME.set_index(y.index), y)
        assert list(model.feature_names_in_) == list("abcd")
        assert model.n_features_in_ == 4
        assert_same_bits(model, quick().fit(X, Y))
        np.testing.assert_allclose(model.predict(self.FRAME), model.coef_ @ X.T + model.intercept_)

    def test_a_validation_frame(self):
        model = quick().fit(self.FRAME, Y, self.FRAME_VAL, pd.Series(Y_VAL, dtype=object))
        assert_same_bits(model, quick().fit(X, Y, X_VAL, Y_VAL))

    def test_other_columns_are_refused(self):
        for wrong in (self.FRAME_VAL[list("abdc")], self.FRAME_VAL.rename(columns={"a": "z"})):
            with pytest.raises(mb.InvalidInput, match=r"X_val must .* columns of X: The feature names should match"):
                quick().fit(self.FRAME, Y, wrong, Y_VAL)
        with pytest.raises(ValueError, match="feature names should match"):
            quick().fit(self.FRAME, Y).predict(self.FRAME[list("dcba")])


class TestPipeline:
    def test_the_pipeline_transforms_the_validation_set(self):
        scaler = StandardScaler().fit(X)
        expected = quick().fit(scaler.transform(X), Y, scaler.transform(X_VAL), Y_VAL)
        with config_context(enable_metadata_routing=True):
            model = quick().set_fit_request(X_val=True, y_val=True)
            pipeline = Pipeline([("scale", StandardScaler()), ("distil", model)], transform_input=["X_val"])
            pipeline.fit(X, Y, X_val=X_VAL, y_val=Y_VAL)
        assert_same_bits(pipeline[-1], expected)
        np.testing.assert_array_equal(pipeline.predict(X_VAL), expected.predict(scaler.transform(X_VAL)))

    def test_without_requests_the_validation_set_is_not_taken(self):
        with config_context(enable_metadata_routing=True):
            pipeline = make_pipeline(StandardScaler(), quick(), transform_input=["X_val"])
            with pytest.raises(ValueError, match="X_val"):
                pipeline.fit(X, Y, X_val=X_VAL, y_val=Y_VAL)

    def test_frames_keep_their_names_through_the_pipeline(self):
        frame, frame_val = TestDataFrames.FRAME, TestDataFrames.FRAME_VAL
        with config_context(enable_metadata_routing=True, transform_output="pandas"):
            model = quick().set_fit_request(X_val=True, y_val=True)
            pipeline = make_pipeline(StandardScaler(), model, transform_input=["X_val"])
            pipeline.fit(frame, Y, X_val=frame_val, y_val=Y_VAL)
            assert list(pipeline[-1].feature_names_in_) == list("abcd")
            assert pipeline.score(frame_val, Y_VAL) > 0.9


SETTINGS = {
    "budget": [0, 61, -1, 0.0, 0.005, 1.5, -0.1, NAN, INF, "ten", None, True, [5], np.array([]), pd.NA],
    "alpha": [0.0, -1.0, NAN, INF, "weak", True, (1.0,), (1.0, 0.1), (0.0, 1.0), (1.0, INF), (1.0, NAN), (1.0, 2.0, 3.0)],
    "method": ["penalise", "topk", None, 3, ["relax"]],
    "validation_fraction": [0.0, 1.0, -0.2, 1.5, NAN, INF, 5, "some", None, 0.999],
    "random_state": ["lucky", -1, 2**32, 2.5, NAN, True, [[1]], np.random.default_rng(0)],
    "max_evaluations": [0, 1, -5, 2.5, NAN, "many", True, np.array([]), pd.NA],
    "verbose": [1, 0, None, "yes"],
    "judge": ["all", None, 1],
    "standardize": [1, None, "no"],
    "outer_alpha": [-1.0, NAN, "CV", None, True, np.array([]), pd.NA],
    "gap_tol": [-1e-3, NAN, "small", None, np.array([]), pd.NA],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in SETTINGS.items() for value in values])
def test_bad_settings_are_named(name, value):
    with pytest.raises(mb.InvalidInput, match=rf"^{name}.* must .*got "):
        quick(**{name: value}).fit(X, Y)
    # Where all rows judge, other lines read the settings first.
    if name not in ("validation_fraction", "judge"):
        with pytest.raises(mb.InvalidInput, match=rf"^{name}.* must .*got "):
            quick(**{"judge": "auto", name: value}).fit(X, Y)


def test_no_callbacks_in_an_array():
    assert_same_bits(quick(callbacks=np.array([])).fit(X, Y), quick().fit(X, Y))


def test_a_long_message_of_scikit_learn_keeps_its_beginning_and_its_end():
    with pytest.raises(mb.InvalidInput, match=r"^X must be a table .*: Expected 2D array.* \.\.\. .*Reshape your data") as caught:
        quick().fit(np.arange(900) / 7, Y)
    assert len(str(caught.value)) < 700


def spoiled(x, value):
    x = x.copy()
    x.flat[3] = value
    return x


DATA = {
    "X with a NaN": ({"X": spoiled(X, NAN)}, "X contains NaN"),
    "X infinite": ({"X": spoiled(X, INF)}, "X contains infinity"),
    "X with one row too few": ({"X": X[:-1]}, "inconsistent numbers of samples"),
    "X too large to square": ({"X": spoiled(X, 1e200)}, "^X and y must"),
    "X constant": ({"X": np.ones((60, 4))}, "alpha=None needs a column of X that varies"),
    "y with a NaN": ({"y": spoiled(Y, NAN)}, "y contains NaN"),
    "y of strings": ({"y": np.full(60, "a")}, "^y must be an array of numbers"),
    "y of three dimensions": ({"y": np.ones((60, 1, 1))}, "dim 3"),
    "no y": ({"y": None}, "requires y to be passed"),
    "X_val alone": ({"y_val": None}, "^y_val must be given together with X_val"),
    "y_val alone": ({"X_val": None}, "^X_val must be given together with y_val"),
    "X_val with a NaN": ({"X_val": spoiled(X_VAL, NAN)}, "^X_val must .*X_val contains NaN"),
    "X_val infinite": ({"X_val": spoiled(X_VAL, -INF)}, "^X_val must .*X_val contains infinity"),
    "X_val with a column too few": ({"X_val": X_VAL[:, 1:]}, "^X_val must have|^X_val must .*3 features"),
    "X_val of one dimension": ({"X_val": X_VAL[:, 0]}, "^X_val must .*Expected 2D"),
    "X_val empty": ({"X_val": X_VAL[:0], "y_val": Y_VAL[:0]}, "^X_val must .*0 sample"),
    "X_val of strings": ({"X_val": np.full((25, 4), "a")}, "^X_val must .*could not convert"),
    "y_val with a NaN": ({"y_val": spoiled(Y_VAL, NAN)}, "^y_val must .*y_val contains NaN"),
    "y_val of strings": ({"y_val": np.full(25, "a")}, "^y_val must "),
    "y_val with a row too few": ({"y_val": Y_VAL[:-1]}, "^y_val must be an array of shape"),
    "y_val of other targets": ({"y_val": np.column_stack([Y_VAL, Y_VAL])}, "^y_val must have the targets of y"),
}


@pytest.mark.parametrize(("changes", "message"), DATA.values(), ids=DATA.keys())
def test_bad_data_are_named(changes, message):
    data = {"X": X, "y": Y, "X_val": X_VAL, "y_val": Y_VAL} | changes
    with pytest.raises(ValueError, match=message) as caught:
        quick().fit(**data)
    # What scikit-learn checks for every estimator keeps scikit-learn's error.
    assert isinstance(caught.value, mb.InvalidInput) or message[0] != "^"


def test_too_few_rows_to_split():
    with pytest.raises(ValueError, match=r"1 sample.*minimum of 2"):
        quick().fit(X[:1], Y[:1])
    with pytest.raises(mb.InvalidInput, match=r"^budget must be a fraction that selects at least one of 4 entries"):
        quick(budget=0.1).fit(X[:5], Y[:5])


def test_sparse_tables_give_the_rows_of_dense_ones():
    rng = np.random.default_rng(0)
    table, table_val = (rng.poisson(0.4, size=(rows, 5)).astype(float) for rows in (60, 30))
    y, y_val = (A @ np.arange(5.0) + rng.normal(size=len(A)) for A in (table, table_val))
    dense, thin = quick(random_state=0), quick(random_state=0)
    dense.fit(table, y, table_val, y_val)
    thin.fit(sparse.csr_array(table), y, sparse.csc_matrix(table_val), y_val)
    np.testing.assert_array_equal(thin.support_, dense.support_)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-5)
    np.testing.assert_allclose(thin.predict(sparse.csr_array(table_val)), dense.predict(table_val), rtol=1e-5)
    assert quick().fit(sparse.csr_array(table), y).support_.any()


def test_a_failed_fit_leaves_the_model_unfitted():
    model = quick(method="simple", max_evaluations=2)
    with pytest.raises(mb.InvalidInput):
        model.fit(X, Y)
    assert not hasattr(model, "result_")
    assert not hasattr(model, "coef_")


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.1, *(pytest.param(it, marks=pytest.mark.ci) for it in (0.2, 0.3))])
def test_penalize_is_at_least_as_good_as_rounding_on_the_music_excerpt(budget):
    """At a few evaluations; benchmarks/music.py has the whole runs, with test losses."""
    data = mb.datasets.load_music(shared_file("YearPredictionMSD_random7000.csv.gz"))
    losses = {}
    for method in ("penalize", "top-k", "simple"):
        model = DistillationRegressor(budget=budget, alpha=100.0, method=method, max_evaluations=60, random_state=0, **PAPER)
        model.fit(data.X, data.y, data.X_val, data.y_val)
        kept = model.support_
        ridge = Ridge(alpha=len(data.y) * 100.0).fit(data.X[kept], data.y[kept])
        losses[method] = 0.5 * np.mean((ridge.predict(data.X_val) - data.y_val) ** 2)
    assert losses["penalize"] <= min(losses.values())

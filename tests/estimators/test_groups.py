"""GroupStructureRegressor: the three formats, scikit-learn's conventions, and planted groups found again."""

import doctest
import io
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedKFold, cross_val_score

import mixbin as mb
from mixbin.data.task_formats import as_array, layout
from mixbin.datasets.group_lasso import make_group_lasso
from mixbin.estimators import _common, groups
from mixbin.estimators._common import BASELINES
from mixbin.estimators.groups import GroupStructureRegressor
from mixbin.estimators.n_groups import GroupCurve, suggest_n_groups

METHODS = ["penalize", "top-k", "simple", "relax"]
NAN, INF = float("nan"), float("inf")

PLANTED = make_group_lasso("equal", 0.3, n_tasks=40, n_samples=12, n_features=12, n_groups=3, seed=0)
"""Three groups of four features."""
PARTS = PLANTED.X, PLANTED.y, PLANTED.X_val, PLANTED.y_val

T, N, P = 6, 9, 5
SMALL = make_group_lasso("random", 0.3, n_tasks=T, n_samples=N, n_features=P, n_groups=2, seed=1)
X, Y, X_VAL, Y_VAL = SMALL.X, SMALL.y, SMALL.X_val, SMALL.y_val
NAMES = ["north", "east", "south", "west", "up", "down"]


def quick(**settings):
    """An estimator that takes a few milliseconds to fit; without intercepts, so that its problem is that of the same rows."""
    return GroupStructureRegressor(
        **{"n_groups": 2, "max_evaluations": 30, "random_state": 0, "n_jobs": 1, "fit_intercept": False} | settings
    )


def rows(X, y, names=NAMES):
    """The long format."""
    return X.reshape(-1, X.shape[2]), y.reshape(-1), np.repeat(names, X.shape[1])


LONG, LONG_Y, TASKS = rows(X, Y)
LONG_VAL, LONG_Y_VAL, TASKS_VAL = rows(X_VAL, Y_VAL)


def state(model):
    found = [model.labels_, model.theta_, model.lam_, model.coef_, model.group_sizes_]
    return [*found, model.n_empty_groups_, model.n_unassigned_, model.result_.value]


def assert_same_bits(one, other):
    for a, b in zip(state(one), state(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_docstring_example():
    assert doctest.testmod(groups).failed == 0


class TestPlantedGroups:
    @pytest.mark.parametrize("lam", [None, 0.01, (1e-3, 0.1), "cv"])
    def test_they_are_found(self, lam):
        model = GroupStructureRegressor(n_groups=3, lam=lam, random_state=0, n_jobs=1, max_evaluations=600).fit(*PARTS)
        assert adjusted_rand_score(PLANTED.labels, model.labels_) == 1.0
        np.testing.assert_array_equal(model.group_sizes_, [4, 4, 4])
        assert (model.n_empty_groups_, model.n_unassigned_) == (0, 0)
        assert model.result_.status in (mb.Status.BINARY, mb.Status.REPAIRED)

    def test_with_more_groups_than_needed(self):
        model = GroupStructureRegressor(n_groups=5, random_state=0, n_jobs=1, max_evaluations=1000).fit(*PARTS)
        assert adjusted_rand_score(PLANTED.labels, model.labels_) >= 0.9
        assert model.group_sizes_.shape == (5,)
        assert model.n_empty_groups_ == np.count_nonzero(np.bincount(model.labels_, minlength=5) == 0)

    def test_without_validation_rows(self):
        data = [np.concatenate(pair, axis=1) for pair in ((PLANTED.X, PLANTED.X_val), (PLANTED.y, PLANTED.y_val))]
        model = GroupStructureRegressor(n_groups=3, random_state=0, n_jobs=1, validation_fraction=0.4, max_evaluations=600)
        assert adjusted_rand_score(PLANTED.labels, model.fit(*data).labels_) == 1.0

    def test_the_curve_bends_where_the_groups_are(self):
        curve = suggest_n_groups(*PARTS, candidates=[3, 2, 3, 13], random_state=0, n_jobs=1, max_evaluations=600)
        assert isinstance(curve, GroupCurve)
        assert curve.candidates == (2, 3)
        assert curve.used == (2, 3)
        assert curve.values[1] < curve.values[0]
        assert curve.suggested == 3
        fitted = GroupStructureRegressor(n_groups=3, random_state=0, n_jobs=1, max_evaluations=600).fit(*PARTS)
        assert curve.values[1] == fitted.result_.value


class TestMethods:
    @pytest.mark.parametrize("lam", [None, 0.02])
    @pytest.mark.parametrize("method", METHODS)
    def test_the_models_are_those_of_the_problem(self, method, lam):
        model = quick(method=method, lam=lam).fit(X, Y, X_VAL, Y_VAL)
        bounds = (1e-3, 1.0) if lam is None else lam
        problem = mb.GroupLassoStructure(X, Y, X_VAL, Y_VAL, n_groups=2, lam_bounds=bounds, n_jobs=1)
        theta = model.theta_.astype(float)
        np.testing.assert_array_equal(model.coef_, problem.coef(theta, model.result_.lam))
        assert model.result_.value == problem.evaluate(theta, model.result_.lam).value
        assert model.theta_.dtype == (np.float64 if method == "relax" else np.bool_)
        assert isinstance(model.lam_, float)
        assert model.lam_ == lam or (lam is None and 1e-3 <= model.lam_ <= 1.0)
        assert model.result_.n_evaluations <= 30
        assert model.n_unassigned_ + model.group_sizes_.sum() == P

    def test_penalize_and_top_k_give_each_feature_one_group(self):
        for method in ("penalize", "top-k"):
            model = quick(method=method).fit(X, Y)
            np.testing.assert_array_equal(model.theta_, np.arange(2) == model.labels_[:, None])
            np.testing.assert_array_equal(model.group_sizes_, np.bincount(model.labels_, minlength=2))

    def test_relaxed_groups_are_weights(self):
        model = quick(method="relax").fit(X, Y)
        np.testing.assert_allclose(model.theta_.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.labels_, model.theta_.argmax(axis=1))
        assert model.result_.status == mb.Status.RELAXED

    @pytest.mark.parametrize("left_out", [[1], [0, 3], range(P)])
    def test_simple_rounding_leaves_features_out(self, monkeypatch, left_out):
        theta = np.arange(3) == np.ones((P, 1))
        theta[left_out] = False

        def rounded(problem, rounding, **keywords):
            assert rounding == "simple"
            return replace(mb.relax_and_round(problem, rounding=rounding, **keywords), theta=theta)

        monkeypatch.setattr(_common, "relax_and_round", rounded)
        model = quick(method="simple", n_groups=3, lam=0.01).fit(X, Y, X_VAL, Y_VAL)
        np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), left_out)
        assert model.n_unassigned_ == len(left_out)
        np.testing.assert_array_equal(model.group_sizes_, [0, P - len(left_out), 0])
        assert model.n_empty_groups_ == (3 if len(left_out) == P else 2)
        if len(left_out) == P:
            ridge = [np.linalg.solve(A.T @ A / N + 1e-3 * np.eye(P), A.T @ b / N) for A, b in zip(X, Y, strict=True)]
            np.testing.assert_allclose(model.coef_, ridge, rtol=1e-6)


class TestLam:
    @pytest.mark.filterwarnings("ignore:lam ended at:mixbin.ConvergenceWarning")
    def test_a_number_a_pair_and_the_default(self):
        assert quick(lam=2).fit(X, Y).lam_ == 2.0
        assert 0.01 <= quick(lam=(0.01, 0.02)).fit(X, Y).lam_ <= 0.02
        assert_same_bits(quick(lam=None).fit(X, Y), quick(lam=[1e-3, 1.0]).fit(X, Y))

    def test_one_at_a_bound_of_its_range_is_a_warning(self):
        for lam, side in (((1e-9, 1e-8), "upper bound 1e-08"), ((0.02, 0.9), "lower bound 0.02")):
            with pytest.warns(mb.ConvergenceWarning, match=f"^lam ended at the {side} of its range; scale the targets"):
                model = quick(lam=lam).fit(X, Y, X_VAL, Y_VAL)
            assert model.lam_ == pytest.approx(lam[1] if side.startswith("upper") else lam[0], rel=1e-9)
        quick(lam=50.0).fit(X, Y, X_VAL, Y_VAL)  # a number has no range to end at

    @pytest.mark.parametrize("method", METHODS)
    def test_cross_validation(self, method):
        model = quick(lam="cv", method=method).fit(X, Y, X_VAL, Y_VAL)
        first = quick(method=method).fit(X, Y, X_VAL, Y_VAL)
        rng = np.random.default_rng(0)
        fold = np.array([rng.permutation(N) % 3 for _ in range(T)])
        losses = []
        for lam in groups.LAM_GRID:
            loss = 0.0
            for k in range(3):
                kept, out = ([[a[t][mask[t]] for t in range(T)] for a in (X, Y)] for mask in (fold != k, fold == k))
                problem = mb.GroupLassoStructure(*kept, *out, n_groups=2, lam_bounds=float(lam), n_jobs=1)
                loss += problem.evaluate(first.theta_.astype(float), np.empty(0), gradient=False).value
            losses.append(loss)
        assert model.lam_ == groups.LAM_GRID[np.argmin(losses)]
        problem = mb.GroupLassoStructure(X, Y, X_VAL, Y_VAL, n_groups=2, lam_bounds=model.lam_, n_jobs=1)
        solve = {"penalize": mb.relax_and_penalize} | {m: partial(mb.relax_and_round, rounding=r) for m, r in BASELINES.items()}
        result = solve[method](problem, theta0=first.theta_, max_evaluations=30, seed=0)
        np.testing.assert_array_equal(model.theta_, result.theta)
        assert model.result_.value == result.value

    def test_cross_validation_begins_at_groups_it_has(self):
        # So few evaluations need a good start at a fixed lam.
        data = make_group_lasso("equal", 0.3, n_tasks=40, n_samples=12, n_features=12, n_groups=3, seed=3)
        model = GroupStructureRegressor(n_groups=3, lam="cv", random_state=0, n_jobs=1, max_evaluations=600)
        model.fit(data.X, data.y, data.X_val, data.y_val)
        assert adjusted_rand_score(data.labels, model.labels_) == 1.0

    def test_cross_validation_needs_rows(self):
        with pytest.raises(mb.InvalidInput, match=r'^lam="cv" must have at least 3 training rows.*got fewer of tasks 0, 1, 2'):
            quick(lam="cv").fit(X[:, :2], Y[:, :2], X_VAL, Y_VAL)


class TestFormats:
    @pytest.mark.parametrize("method", ["penalize", "relax"])
    def test_each_gives_the_same_result(self, method):
        array = quick(method=method).fit(X, Y, X_VAL, Y_VAL)
        lists = quick(method=method).fit(list(X), list(Y), list(X_VAL), list(Y_VAL))
        nested = quick(method=method).fit(X.tolist(), Y.tolist(), X_VAL, Y_VAL)
        long = quick(method=method).fit(LONG, LONG_Y, LONG_VAL, LONG_Y_VAL, TASKS, TASKS_VAL)
        frame = quick(method=method).fit(
            pd.DataFrame(LONG, columns=list("abcde")),
            pd.Series(LONG_Y),
            pd.DataFrame(LONG_VAL, columns=list("abcde")),
            pd.Series(LONG_Y_VAL),
            tasks=pd.Series(TASKS, dtype="category"),
            tasks_val=pd.Series(TASKS_VAL),
        )
        for model in (lists, nested, long, frame):
            assert_same_bits(model, array)
        np.testing.assert_array_equal(array.tasks_, np.arange(T))
        assert long.tasks_.tolist() == frame.tasks_.tolist() == NAMES
        assert list(frame.feature_names_in_) == list("abcde")
        assert not hasattr(long, "feature_names_in_")
        assert {model.n_features_in_ for model in (array, lists, nested, long, frame)} == {P}

    def test_the_split_is_the_same_too(self):
        array, long = quick().fit(X, Y), quick().fit(LONG, LONG_Y, tasks=TASKS)
        assert_same_bits(array, long)
        assert_same_bits(array, quick().fit(list(X), list(Y)))

    def test_tasks_in_any_order(self):
        """Rows stay in their order within a task; the tasks come in order of appearance, in the validation rows too."""
        tangled = np.arange(T * N).reshape(T, N).T.ravel()
        model = quick().fit(LONG[tangled], LONG_Y[tangled], LONG_VAL[::-1], LONG_Y_VAL[::-1], TASKS[tangled], TASKS_VAL[::-1])
        expected = quick().fit(X, Y, X_VAL[:, ::-1], Y_VAL[:, ::-1])
        assert model.tasks_.tolist() == NAMES
        assert_same_bits(model, expected)

    @pytest.mark.filterwarnings("ignore:lam ended at:mixbin.ConvergenceWarning")
    def test_tasks_of_different_sizes(self):
        counts, counts_val = [9, 4, 7, 2, 5, 9], [1, 9, 2, 3, 9, 5]
        data = [[a[t][: n[t]] for t in range(T)] for a, n in ((X, counts), (Y, counts), (X_VAL, counts_val), (Y_VAL, counts_val))]
        lists = quick().fit(*data)
        names = np.repeat(NAMES, counts)
        long = quick().fit(*map(np.concatenate, data), names, np.repeat(NAMES, counts_val))
        assert_same_bits(lists, long)
        for t, (one, other) in enumerate(zip(lists.predict(data[0]), data[0], strict=True)):
            np.testing.assert_allclose(one, other @ lists.coef_[t])
        np.testing.assert_allclose(long.predict(np.concatenate(data[0]), names), np.concatenate(lists.predict(data[0])))

    @pytest.mark.parametrize(
        "ids",
        [[3, 1, 2, 0, 9, 8], [0.5, 1, 2, 3, 4, 5], ["a", 1, (2, 3), None.__class__, 2.5, b"x"], [(i, "x") for i in range(6)]],
        ids=str,
    )
    def test_any_ids(self, ids):
        tasks = [name for name in ids for _ in range(N)]
        model = quick().fit(LONG, LONG_Y, tasks=tasks)
        assert model.tasks_.tolist() == ids
        np.testing.assert_allclose(model.predict(X[2], tasks=[ids[2]] * N), X[2] @ model.coef_[2])

    def test_a_list_of_frames(self):
        frames = [pd.DataFrame(table, columns=list("abcde")) for table in X]
        model = quick().fit(frames, list(Y))
        assert list(model.feature_names_in_) == list("abcde")
        assert_same_bits(model, quick().fit(X, Y))
        assert not hasattr(model.fit(X, Y), "feature_names_in_")
        with pytest.raises(mb.InvalidInput, match=r"^X\[1\] must have the columns of X in fit: The feature names should match"):
            quick().fit([frames[0], frames[1][list("edcba")], *frames[2:]], list(Y))

    def test_layouts(self):
        assert [layout(a) for a in (X, list(X), X.tolist(), LONG, LONG.tolist())] == ["array", "list", "list", "rows", "rows"]
        tables = np.empty(2, dtype=object)
        tables[:] = [X[0], X[1][:3]]
        assert layout(tables) == "list"
        assert [layout(a) for a in (None, 3, "ab", [], [[[1], 2]], X[0, 0], sparse.eye(3))] == ["rows"] * 7

    def test_ids_as_arrays(self):
        assert as_array([1, 2]).dtype.kind == "i"
        assert as_array(["a", "bc"]).dtype.kind == "U"
        assert as_array([1, "a"]).dtype == object
        assert as_array([(1, 2), (3, 4)]).shape == (2,)
        assert as_array([2**70, 1]).tolist() == [2**70, 1]


class TestSplit:
    @pytest.mark.parametrize(("fraction", "count"), [(0.2, 2), (0.5, 5), (0.01, 1), (0.99, 8), (1 / 3, 3)])
    def test_every_task_keeps_rows_on_both_sides(self, fraction, count):
        model = quick(validation_fraction=fraction)
        train, val, _ = model._data(X, Y, None, None, None, None, np.random.RandomState(0))
        assert [len(table) for table in val.tables] == [count] * T
        for t in range(T):
            together = np.concatenate([train.tables[t], val.tables[t]])
            np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(X[t], axis=0))

    @pytest.mark.filterwarnings("ignore:lam ended at:mixbin.ConvergenceWarning")
    def test_splitting_by_hand_gives_the_same_bits(self):
        train, val, _ = quick()._data(X, Y, None, None, None, None, np.random.RandomState(0))
        for lam in (None, "cv"):
            assert_same_bits(quick(lam=lam).fit(X, Y), quick(lam=lam).fit(train.tables, train.targets, val.tables, val.targets))

    def test_one_row_cannot_be_split(self):
        tables, targets = [*X[:4], X[4][:1], X[5]], [*Y[:4], Y[4][:1], Y[5]]
        with pytest.raises(
            mb.InvalidInput, match=r"^X must have at least two rows per task .* got one row of task 4; pass X_val"
        ):
            quick().fit(tables, targets)
        with pytest.raises(mb.InvalidInput, match=r"got one row of task 'up'; "):
            quick().fit(np.concatenate(tables), np.concatenate(targets), tasks=np.repeat(NAMES, [N, N, N, N, 1, N]))
        assert quick().fit(tables, targets, X_VAL, Y_VAL).coef_.shape == (T, P)


BAD_ROWS = {
    "one table without tasks": ((LONG,), "tasks must name the task of each row where X is one table, got None; pass"),
    "too few tables": ((X[:4],), "X must have the 6 tasks of fit in their order, got 4 tables; name the task"),
    "unknown ids": (
        (X[:2], ["north", "hell"]),
        "tasks must name tasks of fit, got 'hell'; there are models of 'north', 'east'",
    ),
    "unknown ids of rows": ((LONG[:2], ["a", "b"]), "tasks must name tasks of fit, got 'a', 'b'; "),
    "an id too many": ((X[:2], NAMES[:3]), "tasks must be one id per table of X, 2 of them, got 3"),
    "ids of the wrong length": ((LONG, TASKS[1:]), "tasks must be one id per row of X, 54 of them, got 53"),
    "a column too few": ((X[:, :, 1:],), "X[0] must have the features of fit, got 4 columns against 5; "),
    "a column too few in rows": ((LONG[:, 1:], TASKS), "X must have the features of fit, got 4 columns against 5; "),
    "a NaN": ((np.full((T, 2, P), NAN),), "X must be finite, got nan at index (0, 0, 0); "),
    "a NaN in a list": (([*X[:5], X[5] * NAN],), "X[5] must be finite, got nan at index (0, 0); "),
    "one row": ((X[0, 0],), "X must be an array of numbers with 2 dimensions, got an array of shape (5,)"),
    "nothing": (([],), "X must be an array of numbers with 2 dimensions"),
}


class TestPredict:
    @pytest.fixture(autouse=True)
    def fitted(self):
        self.model = quick(lam=0.01).fit(LONG, LONG_Y, LONG_VAL, LONG_Y_VAL, TASKS, TASKS_VAL)
        self.expected = np.array([X_VAL[t] @ self.model.coef_[t] for t in range(T)])

    def test_in_the_format_of_x(self):
        array = self.model.predict(X_VAL)
        assert isinstance(array, np.ndarray)
        np.testing.assert_allclose(array, self.expected)
        lists = self.model.predict(list(X_VAL))
        assert isinstance(lists, list)
        np.testing.assert_allclose(lists, self.expected)
        np.testing.assert_allclose(self.model.predict(LONG_VAL, TASKS_VAL), self.expected.ravel())

    def test_some_tasks_by_name(self):
        np.testing.assert_allclose(self.model.predict(X_VAL[[4, 1]], tasks=["up", "east"]), self.expected[[4, 1]])
        np.testing.assert_allclose(self.model.predict([X_VAL[4][:2]], tasks=["up"])[0], self.expected[4][:2])
        mixed = self.model.predict(LONG_VAL[[40, 3, 41]], [TASKS_VAL[40], TASKS_VAL[3], TASKS_VAL[41]])
        np.testing.assert_allclose(mixed, self.expected.ravel()[[40, 3, 41]])

    def test_score_is_pooled(self):
        missed, spread = np.sum((Y_VAL - self.expected) ** 2), np.sum((Y_VAL - Y_VAL.mean()) ** 2)
        by_hand = pytest.approx(1 - missed / spread)
        assert self.model.score(X_VAL, Y_VAL) == by_hand
        assert self.model.score(list(X_VAL), list(Y_VAL)) == by_hand
        assert self.model.score(LONG_VAL, LONG_Y_VAL, TASKS_VAL) == by_hand
        two = 1 - np.sum((Y_VAL - self.expected)[[4, 1]] ** 2) / np.sum((Y_VAL[[4, 1]] - Y_VAL[[4, 1]].mean()) ** 2)
        assert self.model.score(X_VAL[[4, 1]], Y_VAL[[4, 1]], ["up", "east"]) == pytest.approx(two)

    @pytest.mark.parametrize(("arguments", "message"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
    def test_bad_rows_are_named(self, arguments, message):
        with pytest.raises(mb.InvalidInput) as caught:
            self.model.predict(*arguments)
        assert str(caught.value).startswith(message)

    @pytest.mark.parametrize("y", [Y_VAL[:-1], LONG_Y_VAL, "abc", None, Y_VAL * NAN], ids=lambda y: str(np.shape(y)))
    def test_bad_targets_are_named(self, y):
        for table in (X_VAL, list(X_VAL)):
            with pytest.raises(mb.InvalidInput, match=r"^y(\[0\])? must be "):
                self.model.score(table, y)


class TestInsideScikitLearn:
    def test_parameters_and_clone(self):
        model = quick(lam=(1e-3, 1.0), method="top-k").fit(X, Y)
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "coef_")
        assert_same_bits(copy.fit(X, Y), model)
        assert copy.set_params(n_groups=4).fit(X, Y).theta_.shape == (P, 4)

    @pytest.mark.parametrize("method", METHODS)
    def test_a_fitted_model_survives_pickling(self, method):
        model = quick(method=method).fit(LONG, LONG_Y, tasks=TASKS)
        copy = pickle.loads(pickle.dumps(model))
        assert_same_bits(copy, model)
        np.testing.assert_array_equal(copy.predict(LONG, TASKS), model.predict(LONG, TASKS))

    def test_predict_and_score_need_fit(self):
        for call in (lambda m: m.predict(X), lambda m: m.score(X, Y)):
            with pytest.raises(NotFittedError):
                call(quick())

    def test_a_failed_fit_leaves_the_model_unfitted(self):
        model = quick(n_groups=99)
        with pytest.raises(mb.InvalidInput):
            model.fit(X, Y)
        with pytest.raises(NotFittedError):
            model.predict(X)

    def test_rows_and_their_tasks_go_through_cross_validation(self):
        folds = list(StratifiedKFold(2).split(LONG, TASKS))
        with config_context(enable_metadata_routing=True):
            model = quick(lam=0.01).set_fit_request(tasks=True).set_score_request(tasks=True)
            scores = cross_val_score(model, LONG, LONG_Y, cv=folds, params={"tasks": TASKS})
        assert scores.shape == (2,)
        assert np.isfinite(scores).all()

    @pytest.mark.parametrize("method", METHODS)
    def test_same_random_state_same_bits(self, method):
        first, second = (quick(method=method, n_jobs=jobs).fit(X, Y) for jobs in (1, 2))
        assert_same_bits(first, second)

    @pytest.mark.filterwarnings("ignore:lam ended at:mixbin.ConvergenceWarning")
    def test_a_generator_goes_on(self):
        rng = np.random.RandomState(0)
        first, second = (quick(random_state=rng).fit(X, Y) for _ in range(2))
        assert_same_bits(first, quick(random_state=np.random.RandomState(0)).fit(X, Y))
        assert not np.array_equal(first.coef_, second.coef_)

    def test_frames_with_other_columns_are_refused(self):
        frame = pd.DataFrame(LONG, columns=list("abcde"))
        model = quick().fit(frame, LONG_Y, tasks=TASKS)
        np.testing.assert_allclose(model.predict(frame, TASKS), model.predict(LONG, TASKS))
        with pytest.raises(mb.InvalidInput, match=r"^X must have the columns of X in fit: The feature names should match"):
            model.predict(frame[list("edcba")], TASKS)
        with pytest.raises(mb.InvalidInput, match=r"^X_val must have the columns of X in fit: The feature names should match"):
            model.fit(frame, LONG_Y, frame.rename(columns={"a": "z"}), LONG_Y, TASKS, TASKS)

    def test_verbose_shows_progress_on_a_terminal_only(self, monkeypatch):
        for terminal in (True, False):
            screen = io.StringIO()
            console = Console(file=screen, force_terminal=terminal, width=120)
            monkeypatch.setattr(_common, "ProgressDisplay", lambda label, c=console: mb.ProgressDisplay(label, c))
            quick(verbose=True).fit(X, Y)
            assert ("grouping" in screen.getvalue()) == terminal

    def test_constant_columns_are_features(self):
        table = X.copy()
        table[:, :, 2] = 1.0
        table[:, :, 3] = 0.0
        model = quick().fit(table, Y)
        assert model.labels_.shape == (P,)
        np.testing.assert_array_equal(model.coef_[:, 3], 0.0)


BAD_CANDIDATES = {
    "no numbers": ({"candidates": 3}, "candidates must be numbers of groups, got 3"),
    "text": ({"candidates": "23"}, "candidates must be numbers of groups, got '23'"),
    "none": ({"candidates": ()}, "candidates must be numbers from 2 to 5"),
    "too many groups": ({"candidates": (6, 7)}, "candidates must be numbers from 2 to 5"),
    "one group": ({"candidates": (1, 2)}, "candidates must be a whole number of at least 2, got 1"),
    "half a group": ({"candidates": (2.5,)}, "candidates must be a whole number of at least 2, got 2.5"),
    "n_groups": ({"n_groups": 3}, "params must be among callbacks, fit_intercept, lam, max_evaluations, method, "),
    "a typing error": ({"lamda": 3}, "params must be among callbacks, fit_intercept, lam, max_evaluations, method, "),
    "a bad parameter": ({"method": "penalise"}, "method must be one of "),
    "random_state": ({"random_state": "lucky"}, "random_state must be "),
}


class TestSuggestion:
    def test_the_rule(self, monkeypatch):
        """Each group that holds a feature must raise the log evidence by more than 0.6 per task, and there are six tasks."""
        evidence = {2: 10.0, 3: 13.7, 4: 17.2, 5: 17.4}

        def fit(self, *_, **__):
            self.result_ = type("R", (), {"value": 1.0 / self.n_groups})
            self.n_empty_groups_ = self.n_groups // 5
            self.evidence_ = evidence[self.n_groups]
            return self

        monkeypatch.setattr(GroupStructureRegressor, "fit", fit)
        curve = suggest_n_groups(X, Y, candidates=[4, 3, 2])
        assert curve == GroupCurve((2, 3, 4), (1 / 2, 1 / 3, 1 / 4), (2, 3, 4), (10.0, 13.7, 17.2), 3)
        assert suggest_n_groups(X, Y, candidates=[5, 4]).suggested == 5  # it uses four groups, too
        assert suggest_n_groups(X, Y).candidates == (2, 3, 5)

    def test_all_candidates_get_the_same_rows(self):
        rng = np.random.RandomState(3)
        curve = suggest_n_groups(LONG, LONG_Y, tasks=TASKS, candidates=(2,), random_state=rng, max_evaluations=20, lam=0.01)
        again = suggest_n_groups(X, Y, candidates=(2, 3), random_state=np.random.RandomState(3), max_evaluations=20, lam=0.01)
        assert curve.values[0] == again.values[0]

    @pytest.mark.parametrize(("settings", "message"), BAD_CANDIDATES.values(), ids=BAD_CANDIDATES.keys())
    def test_bad_arguments_are_named(self, settings, message):
        with pytest.raises(mb.InvalidInput) as caught:
            suggest_n_groups(X, Y, **settings)
        assert str(caught.value).startswith(message)


SETTINGS = {
    "n_groups": [0, 1, 6, -1, 2.0, NAN, "two", None, True],
    "lam": [
        0.0,
        -1.0,
        NAN,
        INF,
        "best",
        True,
        (1.0,),
        (1.0, 0.1),
        (0.1, 0.1),
        (0.0, 1.0),
        (1.0, INF),
        (0.1, NAN),
        (0.1, 1, 2),
        {},
    ],
    "ridge": [0.0, -1.0, NAN, INF, "weak", None, True],
    "method": ["penalise", "top-1", None, 3, ["relax"]],
    "fit_intercept": [1, 0, None, "yes"],
    "validation_fraction": [0.0, 1.0, -0.2, 1.5, NAN, INF, 5, "some", None],
    "random_state": ["lucky", -1, 2**32, 2.5, True, np.random.default_rng(0)],
    "max_evaluations": [0, 1, -5, 2.5, NAN, "many", True],
    "n_jobs": [0, -1, 1.5, "all", True],
    "time_limit": [0, -1.0, "long", True, NAN],
    "callbacks": [3, [3], [None]],
    "verbose": [1, 0, None, "yes"],
}


@pytest.fixture
def no_work(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a model was trained")

    monkeypatch.setattr(mb.GroupLassoStructure, "_solve", refuse)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in SETTINGS.items() for value in values])
def test_bad_settings_are_named(name, value):
    with pytest.raises(mb.InvalidInput, match=rf"^{name}\S* must .*got "):
        quick(**{name: value}).fit(X, Y)


def test_every_setting_is_in_the_table():
    assert set(SETTINGS) == set(GroupStructureRegressor().get_params())


def spoiled(x, value):
    x = x.copy()
    x.flat[3] = value
    return x


ARRAYS = {"X": X, "y": Y, "X_val": X_VAL, "y_val": Y_VAL}
TABLES = {"X": LONG, "y": LONG_Y, "X_val": LONG_VAL, "y_val": LONG_Y_VAL, "tasks": TASKS, "tasks_val": TASKS_VAL}
FRAME = pd.DataFrame(LONG, columns=list("abcde"))
DATA = {
    "X with a NaN": ({"X": spoiled(X, NAN)}, "X must be finite, got nan at index (0, 0, 3); remove"),
    "X infinite": ({"X": spoiled(X, INF)}, "X must be finite, got inf"),
    "X too large to square": ({"X": spoiled(X, 1e200)}, "X must have squares that fit"),
    "X of text": ({"X": X.astype(str)}, "X must be an array of numbers"),
    "X of one task": ({n: a[:1] for n, a in ARRAYS.items()}, "X must hold at least two tasks, got 1; "),
    "X of one task, to split": (
        {"X": X[:1], "y": Y[:1], "X_val": None, "y_val": None},
        "X must hold at least two tasks, got 1; ",
    ),
    "X without rows": ({"X": X[:, :0], "y": Y[:, :0]}, "X must be an array of shape (tasks, rows, features) or a list"),
    "X without tasks": ({"X": [], "y": []}, "X must be an array of numbers with 2 dimensions, got "),
    "X of four dimensions": (
        {"X": X[None], "X_val": None, "y_val": None},
        "X must be an array of numbers with 2 dimensions, got",
    ),
    "X of one dimension": ({"X": X[0, 0], "X_val": None, "y_val": None}, "X must be an array of numbers with 2 dimensions, got"),
    "X of tables that differ": ({"X": [*X[:5], X[5][:, 1:]]}, "X[5] must have the features of X[0], got 4 columns against 5"),
    "X sparse": (
        {"X": sparse.csr_array(LONG), "X_val": None, "y_val": None},
        "X must be an array of numbers with 2 dimensions, got",
    ),
    "X one table, no tasks": (
        {"X": LONG, "y": LONG_Y, "X_val": None, "y_val": None},
        "tasks must name the task of each row where X",
    ),
    "no X": ({"X": None, "X_val": None, "y_val": None}, "X must be an array of numbers with 2 dimensions, got None; "),
    "y with a NaN": ({"y": spoiled(Y, NAN)}, "y must be finite, got nan at index (0, 3); "),
    "y with a row too few": ({"y": Y[:, :-1]}, "y[0] must have one target per row of X[0], got 8 targets for 9 rows"),
    "y with a task too few": ({"y": Y[:-1]}, "y must have the tasks of X, got 5 tasks against 6; "),
    "y of one dimension": ({"y": LONG_Y}, "y must be an array of shape (tasks, rows) or a list"),
    "no y": ({"y": None}, "y must be an array of shape (tasks, rows) or a list"),
    "tasks of an array": ({"tasks": NAMES}, "tasks must be None where X has one table per task, got ['north', "),
    "tasks_val of an array": ({"tasks_val": NAMES}, "tasks_val must be None where X_val has one table per task, got ['north', "),
    "tasks of a list": ({"X": list(X), "tasks": NAMES}, "tasks must be None where X has one table per task, got ['north', "),
    "tasks_val alone": ({"X_val": None, "y_val": None, "tasks_val": NAMES}, "tasks_val must be None without X_val, got ["),
    "X_val alone": ({"y_val": None}, "y_val must be given together with X_val, got None; "),
    "y_val alone": ({"X_val": None}, "X_val must be given together with y_val, got None; "),
    "X_val with a NaN": ({"X_val": spoiled(X_VAL, NAN)}, "X_val must be finite, got nan"),
    "X_val with a task too few": (
        {"X_val": X_VAL[1:], "y_val": Y_VAL[1:]},
        "X_val must have the tasks of X, got 5 tasks against 6; ",
    ),
    "X_val with a column too few": (
        {"X_val": X_VAL[:, :, 1:]},
        "X_val[0] must have the features of fit, got 4 columns against 5; ",
    ),
    "X_val in another format": ({"X_val": LONG_VAL, "y_val": LONG_Y_VAL}, "X_val must be one table per task, as in X, got"),
    "y_val with a row too few": ({"y_val": Y_VAL[:, 1:]}, "y_val[0] must have one target per row of X_val[0], got 8 targets"),
}
LONG_DATA = {
    "X with a NaN": ({"X": spoiled(LONG, NAN)}, "X must be finite, got nan at index (0, 3); remove"),
    "X with a column of text": ({"X": FRAME.assign(a="text")}, "X must be an array of numbers with 2 dimensions, got"),
    "X without rows": ({"X": LONG[:0]}, "X must be a table that is not empty, got an array of shape (0, 5)"),
    "X of one task": ({"tasks": ["a"] * 54, "tasks_val": ["a"] * 54}, "X must hold at least two tasks, got 1; "),
    "y with a row too few": ({"y": LONG_Y[1:]}, "y must be an array of numbers of shape (54,), got an array of shape (53,)"),
    "y of two targets": ({"y": np.ones((54, 2))}, "y must be an array of numbers of shape (54,), got an array of shape (54, 2)"),
    "no y": ({"y": None}, "y must be an array of numbers of shape (54,), got None; give every row one target"),
    "tasks of the wrong length": ({"tasks": TASKS[1:]}, "tasks must be one id per row of X, 54 of them, got 53; "),
    "tasks of text": ({"tasks": "a" * 54}, "tasks must be one id per row of X, 54 of them, got 'aaa"),
    "tasks a number": ({"tasks": 3}, "tasks must be one id per row of X, 54 of them, got 3; "),
    "tasks with a NaN": ({"tasks": [NAN, *TASKS[1:]]}, "tasks[0] must be an id, got nan; "),
    "tasks with a None": ({"tasks": [*TASKS[1:], None]}, "tasks[53] must be an id, got None; "),
    "tasks with a missing value": ({"tasks": pd.array([pd.NA, *TASKS[1:]])}, "tasks[0] must be an id, got <NA>; "),
    "tasks with a list": ({"tasks": [[1], *TASKS[1:]]}, "tasks[0] must be an id, got [1]; "),
    "tasks of two dimensions": ({"tasks": TASKS[:, None]}, "tasks[0] must be an id, got an array of shape (1,)"),
    "no tasks": ({"tasks": None}, "tasks must name the task of each row where X is one table, got None; "),
    "no tasks_val": ({"tasks_val": None}, "tasks_val must name the task of each row where X_val is one table, got None; "),
    "a task without validation rows": (
        {"X_val": LONG_VAL[18:], "y_val": LONG_Y_VAL[18:], "tasks_val": TASKS_VAL[18:]},
        "tasks_val must name every task of tasks, got no row of 'north', 'east'; give",
    ),
    "a task without training rows": (
        {"X": LONG[9:], "y": LONG_Y[9:], "tasks": TASKS[9:]},
        "tasks_val must name tasks of tasks only, got 'north'; leave these rows out",
    ),
    "numbers against names": (
        {"tasks": np.repeat(np.arange(6), 9)},
        "tasks_val must name every task of tasks, got no row of 0, 1, 2, 3, 4 and 1",
    ),
    "X_val with a column too few": ({"X_val": LONG_VAL[:, 1:]}, "X_val must have the features of fit, got 4 columns against 5; "),
    "X_val in another format": ({"X_val": X_VAL, "y_val": Y_VAL}, "X_val must be one table with tasks_val, as X is, got"),
}
BAD_DATA = [
    pytest.param(good | changes, message, id=f"{kind}: {name}")
    for kind, good, table in (("array", ARRAYS, DATA), ("rows", TABLES, LONG_DATA))
    for name, (changes, message) in table.items()
]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(("data", "message"), BAD_DATA)
def test_bad_data_are_named(data, message):
    with pytest.raises(mb.InvalidInput) as caught:
        quick().fit(**data)
    assert str(caught.value).startswith(message)


# Intercepts.


def shops(seed, n_features=12, n_groups=3):
    """Training and test rows of 30 shops: sales near 50, and columns whose means differ from shop to shop."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_groups), n_features // n_groups))
    sign = rng.choice([-1.0, 1.0], size=(30, n_features))
    active = labels == rng.integers(n_groups, size=(30, 1))
    coef = np.where(active, rng.uniform(0.5, 1.0, size=active.shape) * sign, 0.0)
    level, means = 50 + rng.normal(size=(30, 1)), 3 * rng.normal(size=(30, 1, n_features))

    def part():
        X = rng.normal(size=(30, 20, n_features))
        signal = np.einsum("tnp,tp->tn", X, coef)
        return X + means, level + signal + 0.2 * signal.std() * rng.normal(size=signal.shape)

    return labels, part(), part()


def test_shops_with_sales_near_50():
    labels, (X_shops, sales), (X_test, sales_test) = shops(0)
    model = GroupStructureRegressor(n_groups=3, random_state=0, n_jobs=1, max_evaluations=300).fit(X_shops, sales)
    assert model.score(X_test, sales_test) > 0.9
    assert adjusted_rand_score(labels, model.labels_) == 1.0
    with pytest.warns(mb.ConvergenceWarning, match=r"^lam ended at the \w+ bound .* of its range; scale the targets"):
        without = clone(model).set_params(fit_intercept=False).fit(X_shops, sales)
    assert without.score(X_test, sales_test) < 0.0


@pytest.mark.slow
def test_the_number_of_groups_of_shops():
    _, (X_shops, sales), _ = shops(1)
    curve = suggest_n_groups(X_shops, sales, candidates=(2, 3, 5), random_state=0, n_jobs=1, max_evaluations=300)
    assert curve.suggested == 3


def test_the_level_of_columns_and_targets_does_not_matter():
    shift = np.random.default_rng(0).normal(size=(T, 1, P))
    level = 10.0 * np.arange(T)[:, None]
    plain = quick(fit_intercept=True).fit(X, Y, X_VAL, Y_VAL)
    moved = quick(fit_intercept=True).fit(X + shift, Y + level, X_VAL + shift, Y_VAL + level)
    np.testing.assert_array_equal(moved.labels_, plain.labels_)
    np.testing.assert_allclose(moved.predict(X_VAL + shift), plain.predict(X_VAL) + level, rtol=1e-6)


def test_each_model_fits_the_mean_of_its_training_rows():
    model = quick(fit_intercept=True).fit(X, Y, X_VAL, Y_VAL)
    np.testing.assert_allclose(model.predict(X).mean(axis=1), Y.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(model.predict(X), np.einsum("tnp,tp->tn", X, model.coef_) + model.intercept_[:, None])
    long = model.predict(LONG, np.repeat(np.arange(T), N))
    np.testing.assert_allclose(long, model.predict(X).ravel(), rtol=1e-12)


def test_without_intercept_the_problem_is_that_of_the_paper():
    model = quick(lam=0.05).fit(X, Y, X_VAL, Y_VAL)
    problem = mb.GroupLassoStructure(X, Y, X_VAL, Y_VAL, n_groups=2, lam_bounds=0.05)
    np.testing.assert_array_equal(model.coef_, problem.coef(model.theta_.astype(float)))
    assert not model.intercept_.any()


def test_fit_intercept_is_a_flag():
    with pytest.raises(mb.InvalidInput, match=r"^fit_intercept must be True or False, got 'yes'"):
        quick(fit_intercept="yes").fit(X, Y)

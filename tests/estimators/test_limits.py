"""Time limits and callbacks, in every estimator that runs a method."""

import time

import numpy as np
import pytest
from sklearn.base import clone

import mixbin as mb

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = X @ [1.0, 2.0, 0.0] + rng.normal(size=60)
TASKS = np.repeat(np.arange(4), 15)
FITS = {
    "regressor": lambda **how: mb.DistillationRegressor(budget=10, random_state=0, **how).fit(X, y),
    "classifier": lambda **how: mb.DistillationClassifier(budget=20, random_state=0, **how).fit(X, y > 0, X, y > 0),
    "groups": lambda **how: mb.GroupStructureRegressor(n_groups=2, random_state=0, **how).fit(X, y, tasks=TASKS),
}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_callbacks_see_the_run_and_can_stop_it(name):
    seen = []

    def stop_at_the_third(event):
        seen.append(event.n_evaluations)
        if len(seen) == 3:
            event.stop()

    model = FITS[name](callbacks=[stop_at_the_third])
    assert len(seen) >= 3
    assert model.result_.status == mb.Status.STOPPED
    clone(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_a_time_limit_ends_the_run(name):
    # The first step takes longer than that.
    model = FITS[name](time_limit=1.0, callbacks=[lambda event: time.sleep(1.1 if event.n_evaluations < 20 else 0)])
    assert "time_limit = 1.0 s reached" in model.result_.message
    for how, message in (
        ({"time_limit": 0}, "time_limit must be a finite number greater than 0"),
        ({"callbacks": 3}, "callbacks must be a list of functions of an Event, got 3"),
        ({"callbacks": [3]}, "callbacks must be a list of functions"),
    ):
        with pytest.raises(mb.InvalidInput, match=message):
            FITS[name](**how)


@pytest.mark.slow
def test_budget_auto_has_one_time_limit_and_tells_callbacks():
    """Beside the searches for all budgets, the limit and the callbacks also reach those of ``budget_curve``."""
    how = {"budget": "auto", "tolerance": 1e-3, "random_state": 0}
    free = mb.DistillationRegressor(**how).fit(X, y)
    assert len(free.budget_path_) > 1
    hurried = mb.DistillationRegressor(**how, time_limit=0.5, callbacks=[lambda _: time.sleep(0.6)]).fit(X, y)
    assert len(hurried.budget_path_) == 1
    seen = []

    def stop(event):
        seen.append(event)
        event.stop()

    stopped = mb.DistillationRegressor(**how, callbacks=[stop]).fit(X, y)
    assert seen
    assert len(stopped.budget_path_) == 1
    seen.clear()
    assert len(mb.budget_curve(X, y, [5, 10, 20, 30], random_state=0, callbacks=[stop]).rows) == 1 == len(seen)
    short = mb.budget_curve(X, y, [5, 10, 20, 30], random_state=0, time_limit=0.5, callbacks=[lambda _: time.sleep(0.6)])
    assert short.rows.tolist() == [5]


@pytest.mark.slow
def test_feature_selector_in_threads_and_with_callbacks():
    wide = rng.normal(size=(80, 30))
    target = wide[:, :6] @ np.ones(6) + 3 * rng.normal(size=80)
    how = {"n_features": 5, "stability": 12, "random_state": 0}
    for loss, of_rows in (("squared", target), ("logistic", target > 0)):
        one, two = (mb.FeatureSelector(**how, loss=loss, n_jobs=n).fit(wide, of_rows) for n in (None, 2))
        np.testing.assert_array_equal(one.cv_errors_, two.cv_errors_)
        np.testing.assert_array_equal(one.stability_, two.stability_)
        np.testing.assert_array_equal(one.coef_, two.coef_)
    nodes = []

    def enough(proof):
        nodes.append(proof.n_nodes)
        return len(nodes) == 2

    stopped = mb.FeatureSelector(5, gamma=1e-3, prove=True, callbacks=[enough]).fit(wide, target)
    assert len(nodes) == 2
    assert not stopped.proved_
    for wrong, message in (
        ({"n_jobs": 0}, "n_jobs must be None or a whole number other than 0"),
        ({"callbacks": [3]}, "callbacks must be a list of functions of a Proof"),
    ):
        with pytest.raises(mb.InvalidInput, match=message):
            mb.FeatureSelector(**wrong).fit(wide, target)


@pytest.mark.filterwarnings("error")
def test_label_cleaner_tells_its_passes_and_ends_in_time():
    points = np.random.default_rng(3).normal(size=(200, 2))
    labels = np.where(points[:, 0] > 0, "right", "left")
    wrong = np.flatnonzero(np.abs(points[:, 0]) > 1)[:12]
    labels[wrong] = np.where(points[wrong, 0] > 0, "left", "right")
    seen = []
    free = mb.LabelCleaner(random_state=0, callbacks=[seen.append]).fit(points, labels)
    stages = [event.stage for event in seen]
    assert [event.passes for event in seen] == list(range(1, len(seen) + 1))
    assert stages[-10:] == ["judging"] * 4 + ["guard"] * 6
    assert set(stages[:-10]) == {"choosing"}
    assert free.suspect_[wrong].all()
    assert free.guard_ is not None

    def stop(event):
        event.stop()

    for how in ({"callbacks": [stop]}, {"time_limit": 1e-6}):
        seen.clear()
        with pytest.warns(mb.ConvergenceWarning, match="no row is dropped: fit ended after 2 passes"):
            hurried = mb.LabelCleaner(random_state=0, **{"callbacks": [seen.append], **how}).fit(points, labels)
        # The choice of columns takes one pass, and the labels are judged by one.
        assert hurried.suspect_[wrong].mean() > 0.5
        assert hurried.support_.all()
        assert hurried.guard_ is None
        assert [event.stage for event in seen] == ([] if "callbacks" in how else ["choosing", "judging"])
        unguarded = mb.LabelCleaner(guard=False, random_state=0, **how).fit(points, labels)
        assert not unguarded.support_[unguarded.suspect_].any()
        clone(unguarded)
    for bad, message in (({"time_limit": 0}, "time_limit must be"), ({"callbacks": 1}, "a list of functions of a PassEvent")):
        with pytest.raises(mb.InvalidInput, match=message):
            mb.LabelCleaner(**bad).fit(points, labels)

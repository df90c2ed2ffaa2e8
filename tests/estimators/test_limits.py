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

"""The published synthetic data: sizes, scales, noise and what cannot be made."""

import numpy as np
import pytest

from mixbin.datasets.group_lasso import make_group_lasso
from mixbin.errors import InvalidInput


@pytest.mark.parametrize("groups", ["equal", "inequal", "random"])
def test_shapes_and_truth(groups):
    data = make_group_lasso(groups, 0.3)
    for X, y in ((data.X, data.y), (data.X_val, data.y_val), (data.X_test, data.y_test)):
        assert (X.shape, y.shape) == ((500, 20, 100), (500, 20))
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    assert (data.theta.shape, data.theta.dtype) == ((100, 10), np.bool_)
    np.testing.assert_array_equal(data.theta.argmax(axis=1), data.labels)
    assert (data.theta.sum(axis=1) == 1).all()
    for w in data.coef:
        active = data.labels[w != 0]
        assert len(set(active)) == 1
        assert len(active) == np.count_nonzero(data.labels == active[0])
        assert (np.abs(w[w != 0]) >= 0.3).all()
        assert (np.abs(w) <= 1).all()


def test_sizes():
    assert np.bincount(make_group_lasso("equal", n_tasks=2).labels).tolist() == [10] * 10
    assert np.bincount(make_group_lasso("inequal", n_tasks=2).labels).tolist() == [5] * 5 + [15] * 5
    assert np.bincount(make_group_lasso("inequal", n_tasks=2, n_features=8, n_groups=2).labels).tolist() == [2, 6]
    for seed in range(30):
        sizes = np.bincount(make_group_lasso("random", n_tasks=1, n_samples=2, seed=seed).labels, minlength=10)
        assert sizes.sum() == 100
        assert sizes.min() >= 2
    assert len(set(sizes.tolist())) > 1


def test_noise_is_relative_to_the_signal():
    data = make_group_lasso("equal", 0.5)
    signal = np.einsum("tnp,tp->tn", data.X, data.coef)
    ratio = np.std(data.y - signal, axis=1) / signal.std(axis=1)
    np.testing.assert_allclose(np.sqrt(np.mean(ratio**2)), 0.2 * np.sqrt(0.95), rtol=0.03)
    clean = make_group_lasso(n_tasks=3, noise=0.0)
    np.testing.assert_allclose(clean.y, np.einsum("tnp,tp->tn", clean.X, clean.coef), rtol=1e-12)


def test_every_group_and_both_signs_are_drawn():
    data = make_group_lasso("equal", 0.1)
    active = data.labels[(data.coef != 0).argmax(axis=1)]
    assert np.bincount(active, minlength=10).min() > 25
    assert 0.45 < np.mean(data.coef[data.coef != 0] > 0) < 0.55


def test_the_three_parts_differ_and_seeds_decide():
    one, same, other = (make_group_lasso("random", n_tasks=3, seed=seed) for seed in (1, 1, 2))
    for name in ("X", "y", "X_val", "y_val", "X_test", "y_test", "labels", "coef"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.X, other.X)
    assert not np.array_equal(one.X, one.X_val)
    assert not np.array_equal(one.X_val, one.X_test)
    assert repr(make_group_lasso("equal", n_tasks=3)).startswith(
        "GroupLassoData(3 tasks of 20 rows, 100 features in groups of [10,"
    )


BAD = [
    ({"groups": "unequal"}, "groups must be one of 'equal', 'inequal', 'random', got 'unequal'"),
    ({"a": -0.1}, r"a must be a finite number in \[0, 1\], got -0.1"),
    ({"a": 1.5}, "a must be a finite number"),
    ({"a": np.nan}, "a must be a finite number"),
    ({"n_tasks": 0}, "n_tasks must be a whole number of at least 1, got 0"),
    ({"n_samples": 1}, "n_samples must be a whole number of at least 2, got 1; the noise is scaled by the spread"),
    ({"n_features": 0}, "n_features must be a whole number"),
    ({"n_groups": 0}, "n_groups must be a whole number from 1 to 100"),
    ({"n_groups": 101}, "n_groups must be a whole number from 1 to 100, got 101; every group"),
    ({"noise": -1.0}, "noise must be a finite number of at least 0"),
    ({"noise": np.inf}, "noise must be a finite number"),
    ({"noise": 1.7e308}, r"noise must be at most 1e\+100, got 1.7e\+308; it is relative to the signal"),
    ({"seed": "lucky"}, "seed must be a whole number"),
    ({"groups": "equal", "n_groups": 7}, "n_groups must divide n_features for equal groups, got 7 and 100"),
    ({"groups": "inequal", "n_groups": 5}, "n_groups must be even .* got 5 and 100"),
    ({"groups": "inequal", "n_features": 30}, "n_groups must be even and n_features divisible .* got 10 and 30"),
    ({"groups": "random", "n_features": 19}, "n_features must be at least 2 n_groups for random groups, got 19 for 10"),
    ({"groups": "random", "n_features": 40, "n_groups": 20}, "n_features must leave room for random groups"),
]


@pytest.mark.parametrize(("changed", "message"), BAD, ids=str)
def test_bad_arguments(changed, message):
    with pytest.raises(InvalidInput, match=f"^{message}"):
        make_group_lasso(**changed)

"""The container of many tasks: the same rows whichever way they come in."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.data.task_formats import matched, tasks_of
from mixbin.data.tasks import packed, stacked, together

SIZES = (3, 1, 5)


@pytest.fixture
def lists():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 2)) for n in SIZES], [rng.normal(size=n) for n in SIZES]


def test_tables_and_targets_are_those_that_went_in(lists):
    tasks = stacked(*lists)
    assert (tasks.n_tasks, tasks.n_features, tasks.n_rows, tasks.sizes.tolist()) == (3, 2, 9, list(SIZES))
    for found, given in zip((tasks.tables, tasks.targets), lists, strict=True):
        for a, b in zip(found, given, strict=True):
            np.testing.assert_array_equal(a, b)
    assert np.shares_memory(tasks.tables[2], tasks.X)


def test_some_rows(lists):
    tasks = stacked(*lists)
    mask = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1], dtype=bool)
    some = tasks.where(mask)
    assert some.sizes.tolist() == [2, 1, 2]
    np.testing.assert_array_equal(some.tables[2], lists[0][2][[2, 4]])
    np.testing.assert_array_equal(some.targets[0], lists[1][0][[0, 2]])
    both = together(tasks.where(np.array([1, 0, 1, 1, 1, 0, 1, 0, 0], dtype=bool)), tasks)
    assert both.sizes.tolist() == [5, 2, 7]


def test_rows_with_ids_are_the_same_tasks(lists):
    names = np.repeat(["x", "y", "z"], SIZES)
    order = np.random.default_rng(1).permutation(9)
    X, y = np.concatenate(lists[0])[order], np.concatenate(lists[1])[order]
    tasks, ids = tasks_of(X, y, names[order])
    again = matched(tasks, ids, ["z", "x", "y"])
    for t, name in ((0, 2), (1, 0), (2, 1)):
        np.testing.assert_array_equal(np.sort(again.tables[t], axis=0), np.sort(lists[0][name], axis=0))


def test_both_losses_agree(lists):
    tasks = packed("X", lists[0], "y", lists[1])
    coef = np.random.default_rng(2).normal(size=(3, 2))
    assert tasks.loss(coef) == pytest.approx(tasks.half_mean_squares(coef).mean(), rel=1e-12)


def test_synthetic_data_as_tasks():
    data = mb.datasets.make_group_lasso("equal", n_tasks=4, n_samples=5, n_features=6, n_groups=2)
    tasks = data.to_tasks()
    assert (tasks.tasks, tasks.features) == (list("0123"), list("012345"))
    np.testing.assert_array_equal(tasks.validation.tables[3], data.X_val[3])
    np.testing.assert_array_equal(np.array(tasks.test.targets), data.y_test)
    np.testing.assert_array_equal(tasks.labels, data.labels)
    split = tasks.with_validation(0.4, seed=0)
    assert [len(rows) for rows in split.split_off] == [2] * 4
    for t in range(4):
        np.testing.assert_array_equal(split.validation.tables[t], data.X[t][split.split_off[t]])
    assert split.train.n_rows == 12

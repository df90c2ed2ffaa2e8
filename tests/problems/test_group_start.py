"""Structures from the data: the evidence against its definition, the start, and moves that the data support."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import Lasso
from sklearn.metrics import adjusted_rand_score

import mixbin as mb
from mixbin.data.tasks import packed, together
from mixbin.problems.group_lasso import evidence, lasso, start

LAM = np.array(0.02)


def small(seed=0, groups="equal", **sizes):
    settings = {"n_tasks": 40, "n_samples": 12, "n_features": 12, "n_groups": 3} | sizes
    return mb.datasets.make_group_lasso(groups, 0.3, seed=seed, **settings)


def problem_of(data, **settings):
    return mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=data.theta.shape[1], **settings)


def variances(X, y, labels, L):
    """Gamma and sigma after the stated number of steps, written down plainly."""
    N = len(y)
    power = np.mean(y**2)
    gamma, sigma = np.full(L, power / (np.sum(X**2) / N)), evidence.FIRST_NOISE * power
    for _ in range(evidence.VARIANCE_STEPS[-1]):
        inverse = np.linalg.inv(sigma * np.eye(N) + (X * gamma[labels]) @ X.T)
        g, h = X.T @ inverse @ y, np.einsum("np,nm,mp->p", X, inverse, X)
        sigma *= np.sqrt(np.sum((inverse @ y) ** 2) / np.trace(inverse))
        gamma = gamma * np.sqrt([(g[labels == m] ** 2).sum() / h[labels == m].sum() for m in range(L)])
    return gamma, sigma


@pytest.mark.parametrize("seed", range(3))
def test_gains_are_differences_of_the_log_evidence(seed):
    data = small(seed, n_tasks=3)
    labels = np.random.default_rng(seed).permutation(np.arange(12) % 3)
    gains = start.move_gains(packed("X", data.X, "y", data.y), labels, 3, 1)
    expected = np.zeros((12, 3))
    for X, y in zip(data.X, data.y, strict=True):
        gamma, sigma = variances(X, y, labels, 3)

        def log_evidence(groups, X=X, y=y, gamma=gamma, sigma=sigma):
            C = sigma * np.eye(len(y)) + (X * gamma[groups]) @ X.T
            return multivariate_normal(np.zeros(len(y)), C).logpdf(y)

        for p in range(12):
            for m in range(3):
                moved = labels.copy()
                moved[p] = m
                expected[p, m] += log_evidence(moved) - log_evidence(labels)
    np.testing.assert_allclose(gains, expected, rtol=1e-6, atol=1e-7)
    assert (gains[np.arange(12), labels] == 0).all()


def test_tasks_with_nothing_to_explain_have_no_say():
    data = small()
    y = data.y.copy()
    y[5:] = 0.0
    few = start.move_gains(packed("X", data.X[:5], "y", data.y[:5]), data.labels, 3, 1)
    np.testing.assert_allclose(start.move_gains(packed("X", data.X, "y", y), data.labels, 3, 2), few, rtol=1e-12, atol=1e-12)


def test_clusters_of_a_clear_similarity_are_found_in_any_order():
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(4), [2, 5, 9, 14]))
    similarity = np.where(labels[:, None] == labels, 0.8, 0.05) + rng.uniform(-0.04, 0.04, size=(30, 30))
    assert adjusted_rand_score(labels, start.clustered((similarity + similarity.T) / 2, 4, seed=0)) == 1.0


def test_features_that_nothing_uses_are_spread_over_the_groups():
    similarity = np.eye(9)
    assert start.clustered(similarity, 3, seed=0).tolist() == [0, 1, 2] * 3
    similarity[:4, :4] = 1.0
    assert np.bincount(start.clustered(similarity, 3, seed=0)[4:], minlength=3).tolist() == [1, 2, 2]


@pytest.mark.parametrize("begin", [0.0, 1.0])
def test_l1_models_are_those_of_scikit_learn_wherever_they_begin(begin):
    data = small(n_tasks=5)
    tasks = packed("X", data.X, "y", data.y)
    W = np.full((5, 12), begin)
    lasso.lasso_models(*tasks, lasso.PENALTY_SHARE, W)
    for X, y, w in zip(data.X, data.y, W, strict=True):
        mu = lasso.PENALTY_SHARE * np.abs(X.T @ y).max() / len(y)
        reference = Lasso(alpha=mu, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(w, reference.coef_, atol=2e-3 * np.abs(reference.coef_).max())


@pytest.mark.parametrize("start", ["data", "training"])
@pytest.mark.parametrize("seed", range(4))
def test_the_start_finds_planted_groups(start, seed):
    data = small(seed)
    theta = problem_of(data, start=start).suggest(np.random.default_rng(0))
    assert ((theta == 0) | (theta == 1)).all()
    assert adjusted_rand_score(data.labels, theta.argmax(axis=1)) == 1


def test_the_start_may_look_at_the_training_rows_alone():
    data = small()
    other = mb.GroupLassoStructure(data.X, data.y, -data.X_val, np.roll(data.y_val, 3), n_groups=3, start="training")
    a, b = (problem.suggest(np.random.default_rng(0)) for problem in (problem_of(data, start="training"), other))
    np.testing.assert_array_equal(a, b)


def test_rows_of_both_parts_are_put_together_task_by_task():
    data = small(n_tasks=4)
    whole = together(packed("X", data.X, "y", data.y), packed("X", data.X_val[:, :5], "y", data.y_val[:, :5]))
    expected = [np.vstack([a, b]) for a, b in zip(data.X, data.X_val[:, :5], strict=True)]
    np.testing.assert_array_equal(whole.X, np.concatenate(expected))
    np.testing.assert_array_equal(whole.starts, [0, 17, 34, 51, 68])
    np.testing.assert_array_equal(whole.y[17:34], np.concatenate([data.y[1], data.y_val[1, :5]]))


@pytest.mark.slow
def test_large_groups_are_found_where_the_training_rows_alone_do_not_tell():
    """Groups of 33 and 20 features with 20 rows a task."""
    data = mb.datasets.make_group_lasso("random", 0.3, seed=5)
    index = {}
    for rows in ("training", "data"):
        problem = mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, start=rows)
        index[rows] = adjusted_rand_score(data.labels, problem.suggest(np.random.default_rng(0)).argmax(axis=1))
    assert index["training"] < 0.9
    assert index["data"] == 1


@pytest.mark.parametrize("columns", [[0], [0, 1, 2], list(range(11)), list(range(12))])
def test_features_that_are_never_used_get_a_group_too(columns):
    data = small()
    X = data.X.copy()
    X[:, :, columns] = 0.0
    theta = mb.GroupLassoStructure(X, data.y, data.X_val, data.y_val, n_groups=3).suggest(np.random.default_rng(0))
    assert (theta.sum(axis=1) == 1).all()


def test_the_random_start_is_the_published_one():
    problem = problem_of(small(), start="random")
    theta = problem.suggest(np.random.default_rng(0))
    assert problem.theta_set.contains(theta)
    assert 0 < np.abs(theta - 1 / 3).max() < 0.2
    assert not np.array_equal(theta, problem.suggest(np.random.default_rng(1)))


def test_methods_begin_where_the_problem_suggests():
    data = small()
    problem, events = problem_of(data), []
    mb.relax_and_penalize(problem, seed=0, max_evaluations=5, callbacks=[events.append])
    assert adjusted_rand_score(data.labels, events[0].theta.argmax(axis=1)) == 1


@pytest.mark.parametrize("moves", ["supported", "all"])
@pytest.mark.parametrize("seed", range(3))
def test_improve_mends_features_in_wrong_groups(moves, seed):
    data = small(seed)
    problem = problem_of(data, moves=moves)
    labels = data.labels.copy()
    labels[[0, 5]] = [1, 2]
    theta, got = np.eye(3)[labels], None
    for _ in range(10):
        got = problem.improve(theta, LAM)
        if np.array_equal(got.theta, theta > 0.5):
            break
        before, after = (problem.evaluate(x, LAM, gradient=False).value for x in (theta, got.theta.astype(float)))
        assert after < before
        theta = got.theta.astype(float)
    assert adjusted_rand_score(data.labels, theta.argmax(axis=1)) == 1
    if moves == "all":
        assert got.tried == 24
        assert got.best_change == pytest.approx(problem.best_move(theta, LAM)[2] - problem.evaluate(theta, LAM).value)


def test_improve_makes_no_move_that_the_data_speak_against():
    """Judged by validation data that say otherwise: there, two features of different groups have changed places."""
    data = small()
    swapped = np.arange(12)
    swapped[[0, 8]] = [8, 0]
    X_val = data.X_val[:, :, swapped]
    theta = data.theta.astype(float)
    supported, free = (
        mb.GroupLassoStructure(data.X, data.y, X_val, data.y_val, n_groups=3, start="training", moves=moves)
        for moves in ("supported", "all")
    )
    assert not np.array_equal(free.improve(theta, LAM).theta, data.theta)
    np.testing.assert_array_equal(supported.improve(theta, LAM).theta, data.theta)


def test_certify_tries_every_row_move():
    data = small()
    certificate = mb.certify(problem_of(data), data.theta, LAM)
    assert certificate.moves_tried == certificate.moves_total == 24
    assert certificate.one_move_optimal


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": "best"}, "start must be"),
        ({"moves": "some"}, "moves must be"),
        ({"lam_scale": "cubic"}, "lam_scale must be"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(mb.InvalidInput, match=message):
        problem_of(small(), **settings)

"""Proposals of further group structures: their gains computed again, what they find, what they cost."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import mixbin as mb
from mixbin.data.tasks import stacked
from mixbin.problem import Improved
from mixbin.problems.group_lasso import proposals
from mixbin.problems.group_lasso.evidence import FIRST_NOISE
from mixbin.problems.group_lasso.proposals import HOT, ROUNDS, annealed, merged_and_split, renamed
from mixbin.problems.group_lasso.start import evidence_and_gains
from mixbin.problems.work import Work

DATA = mb.datasets.make_group_lasso("equal", 0.3, n_tasks=40, n_samples=12, n_features=12, n_groups=3, seed=0)


@pytest.fixture(scope="module")
def problem():
    return mb.GroupLassoStructure(DATA.X, DATA.y, DATA.X_val, DATA.y_val, n_groups=3, n_jobs=1)


def gaussian(X, y, weights, sigma):
    """C, and the log evidence without its constant."""
    C = sigma * np.eye(len(y)) + (X * weights) @ X.T
    return C, -0.5 * y @ np.linalg.solve(C, y) - 0.5 * np.linalg.slogdet(C)[1]


def gains_without_oneself(X, y, labels, L, steps):
    """Written out: the variances step by step, then for each feature those of its group without it."""
    first = np.sum(y**2) / np.sum(X**2)
    gamma, sigma = np.full(L, first), FIRST_NOISE * np.mean(y**2)
    for step in range(steps + 1):
        C, evidence = gaussian(X, y, gamma[labels], sigma)
        inverse = np.linalg.inv(C)
        g, h = X.T @ inverse @ y, np.einsum("np,nm,mp->p", X, inverse, X)
        if step == steps:
            break
        sigma *= np.sqrt(np.sum((inverse @ y) ** 2) / np.trace(inverse))
        gamma = np.array([gamma[m] * np.sqrt(np.sum(g[labels == m] ** 2) / np.sum(h[labels == m])) for m in range(L)])
    gains = np.zeros((len(labels), L))
    for p, own in enumerate(labels):
        mine, others = labels == own, (labels == own) & (np.arange(len(labels)) != p)
        ratio = (np.sum(g[others] ** 2) / np.sum(h[others])) / (np.sum(g[mine] ** 2) / np.sum(h[mine])) if others.any() else None
        without = first if ratio is None else gamma[own] * np.sqrt(ratio)

        def evidence_with(variance, p=p):
            weights = gamma[labels].copy()
            weights[p] = variance
            return gaussian(X, y, weights, sigma)[1]

        for m in range(L):
            if m != own:
                gains[p, m] = evidence_with(gamma[m]) - evidence_with(without)
    return evidence, gains


def test_gains_leave_each_feature_out_of_its_own_group():
    labels = np.array([0, 0, 1, 1, 1, 2])  # feature 5 has no others
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(rows, 6)) for rows in (5, 8, 11)]
    targets = [table @ rng.normal(size=6) for table in tables]
    expected = [gains_without_oneself(X, y, labels, 3, 4) for X, y in zip(tables, targets, strict=True)]
    evidence, gains = evidence_and_gains(stacked(tables, targets), labels, 3, 1, 4, True, None)
    np.testing.assert_allclose(evidence, sum(value for value, _ in expected), rtol=1e-9)
    np.testing.assert_allclose(gains, sum(table for _, table in expected), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_annealing_finds_planted_groups_from_random_ones(problem, seed):
    rng = np.random.default_rng(seed)
    found = annealed(problem._evidence_rows, rng.integers(3, size=12), 3, rng, HOT, ROUNDS, 1, Work())
    assert adjusted_rand_score(DATA.labels, found) == 1.0


def test_a_few_tasks_judge_while_it_is_hot_and_all_of_them_at_the_end(problem, monkeypatch):
    judges = []

    def noted(tasks, *rest):
        judges.append(tasks.n_tasks if rest[-1] is None else len(rest[-1]))
        return evidence_and_gains(tasks, *rest)

    monkeypatch.setattr(proposals, "SAMPLE", 20)
    monkeypatch.setattr(proposals, "evidence_and_gains", noted)
    rng = np.random.default_rng(0)
    found = annealed(problem._evidence_rows, rng.integers(3, size=12), 3, rng, HOT, ROUNDS, 1, Work())
    assert adjusted_rand_score(DATA.labels, found) == 1
    assert judges[0] == 20 < judges[-1] == problem.n_terms
    # Structures that the last rounds leave as they are are not judged again.
    assert len(judges) < ROUNDS


@pytest.mark.parametrize("seed", range(12))
def test_every_kind_of_proposal_leads_away_from_a_wrong_answer(problem, seed):
    """A group that was split, and two that were merged, are put right by one or a few proposals."""
    wrong = np.where(DATA.labels == 2, 1, DATA.labels)
    wrong[np.flatnonzero(DATA.labels == 0)[:2]] = 2
    got = problem.propose(np.eye(3)[wrong], np.asarray(0.02), np.random.default_rng(seed))
    assert isinstance(got, Improved)
    assert got.theta.dtype == np.bool_
    assert not np.array_equal(got.theta.argmax(axis=1), wrong)
    assert adjusted_rand_score(DATA.labels, got.theta.argmax(axis=1)) > adjusted_rand_score(DATA.labels, wrong)


@pytest.mark.parametrize("max_cost", [0.5, 1.0, 30.0, 200.0])
def test_a_proposal_keeps_to_its_limit(problem, max_cost):
    for seed in range(4):
        got = problem.propose(DATA.theta.astype(float), np.asarray(0.02), np.random.default_rng(seed), max_cost=max_cost)
        assert 1 <= got.cost <= max(1.0, max_cost)
        assert problem.theta_set.violation(got.theta) == 0


def test_merging_and_splitting():
    labels = np.repeat([0, 1, 2, 3], [6, 5, 4, 9])
    for seed in range(20):
        changed = merged_and_split(labels, 4, np.random.default_rng(seed))
        together = changed[:, None] == changed[None, :]
        # Two groups became one, and at most one of the groups was divided.
        divided = [g for g in range(4) if not together[np.ix_(labels == g, labels == g)].all()]
        assert len(divided) <= 2
        assert not np.array_equal(together, labels[:, None] == labels[None, :])
    assert set(labels) == {0, 1, 2, 3}


def test_an_empty_group_takes_part_of_another():
    labels = np.repeat([0, 2], [6, 6])
    changed = merged_and_split(labels, 3, np.random.default_rng(0))
    assert 1 in changed
    assert (changed == labels)[changed != 1].all()


def test_equal_structures_get_equal_numbers():
    best = np.array([2, 2, 0, 1, 1, 0])
    np.testing.assert_array_equal(renamed(np.array([1, 1, 2, 0, 0, 2]), best, 3), best)
    near = renamed(np.array([1, 1, 2, 0, 2, 2]), best, 3)
    assert (near != best).sum() == 1


def test_further_searches_are_the_default_and_path_has_none(problem):
    settings = {"seed": 0, "max_evaluations": 400}
    default, path = (mb.relax_and_penalize(problem, **settings, **more) for more in ({}, {"search": "path"}))
    assert default.settings["starts"] > path.settings["starts"] == 1
    assert default.value <= path.value
    assert path.n_evaluations < default.n_evaluations <= 400

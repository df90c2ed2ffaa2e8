"""The published calls: what they set, that they run, and how they are shortened."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.datasets import make_group_lasso
from mixbin.reproduction.paper import FIRST_EPSILON, LAST_EPSILON, SCHEDULE


def rows(m=700, n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(m, d)), rng.normal(size=(n, d))
    noise = rng.normal(size=m) * rng.choice([0.1, 3.0], m)
    return X, X @ np.arange(1.0, d + 1) + noise, X_val, X_val @ np.arange(1.0, d + 1)


@pytest.mark.parametrize(("name", "step"), [("blog", 1e-5), ("music", 1e-3)])
def test_distillations_have_the_published_numbers(name, step):
    told = mb.paper_settings(name)
    assert told["solver"] == mb.ProjectedGradient(step_size=step)
    assert (told["epsilon0"], told["beta"], told["inner_steps"], told["tol"]) == (1e9, 0.9, 100, 1e-2)
    assert (told["relax_first"], told["polish"], told["starts"]) == (False, False, 1)


def test_groups_have_the_published_schedule_in_passes():
    told = mb.paper_settings("groups")
    assert told["solver"] == mb.Saga(step_size=2.0, step_size_lam=2e-4)
    assert (told["lam0"], told["epsilon0"], told["beta"]) == (0.1, 1e5, 0.5)
    assert told["inner_steps"] == tuple(n // 500 for n in SCHEDULE)
    assert mb.paper_settings("groups", n_tasks=200)["inner_steps"][0] == 25


@pytest.mark.parametrize("steps", [200, 1_000, 2_000, 10_000])
def test_a_shortened_run_ends_at_the_published_eps(steps):
    told = mb.paper_settings("blog", steps=steps)
    assert told["max_outer"] * told["inner_steps"] == steps
    assert told["epsilon0"] * told["beta"] ** (told["max_outer"] - 1) == pytest.approx(LAST_EPSILON)
    assert FIRST_EPSILON * 0.9**290 == LAST_EPSILON


def test_a_run_that_is_short_as_published_is_left_alone():
    assert mb.paper_settings("blog", beta=0.1, steps=2_000) == mb.paper_settings("blog", beta=0.1)
    assert mb.paper_settings("blog", beta=0.7, steps=2_000)["beta"] < 0.7


def test_the_published_problem_is_alpha_100_with_sampled_coordinates():
    problem = mb.paper_problem("blog", *rows(), budget=70, seed=3)
    assert isinstance(problem, mb.PublishedGradient)
    assert (problem.problem.alpha, problem.batch, problem.seed, problem.theta_set.k) == (100.0, 600, 3, 70)


def test_a_distillation_runs_with_the_published_call():
    problem = mb.paper_problem("music", *rows(), budget=0.1)
    result = mb.relax_and_penalize(problem, **mb.paper_settings("music", steps=1_000), seed=0)
    assert (result.theta.dtype, result.theta.sum()) == (bool, 70)
    steps = result.trace.to_frame().query("phase == 'penalise'").groupby("outer")["inner"].max()
    assert (steps <= 100).all()
    assert result.n_evaluations <= 1_000 + 30


def test_groups_run_with_the_published_call():
    data = make_group_lasso("equal", 0.5, n_tasks=20, n_samples=10, n_features=6, n_groups=2, seed=1)
    problem = mb.GroupLassoStructure(data.X, data.y, data.X_val, data.y_val, n_groups=2, lower="unrolled", q=30, start="random")
    told = mb.paper_settings("groups", n_tasks=2_500)
    result = mb.relax_and_penalize(problem, **told, seed=0)
    assert (result.theta.sum(axis=1) == 1).all()


def test_the_published_group_problem_is_unrolled_from_a_random_start():
    data = make_group_lasso("equal", 0.5, n_tasks=5, n_samples=6, n_features=20, seed=1)
    problem = mb.paper_problem("groups", data.X, data.y, data.X_val, data.y_val)
    assert (problem.lower, problem.q, problem.start, problem.lam_scale, problem.n_groups) == (
        "unrolled",
        500,
        "random",
        "linear",
        10,
    )
    assert problem.lam_set.contains(np.asarray(0.1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mb.paper_settings("books"), "experiment must be one of 'blog', 'music', 'groups', got 'books'"),
        (lambda: mb.paper_settings("blog", beta=1.0), "beta must be"),
        (lambda: mb.paper_settings("blog", steps=199), "steps must be"),
        (lambda: mb.paper_settings("groups", steps=2_000), "steps must be None for groups"),
        (lambda: mb.paper_settings("groups", n_tasks=0), "n_tasks must be"),
        (lambda: mb.paper_problem("blog", *rows()), "budget must be a number or a fraction of the rows, got None"),
        (lambda: mb.paper_problem("groups", *rows(), budget=3), "budget must be None for groups, got 3"),
        (lambda: mb.paper_problem("blog", *rows(m=500), budget=3), "batch must be"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(mb.InvalidInput, match=message):
        call()

"""All binary points of a small set are compared: the best is found, limits hold, and a run resumes to the same bits."""

import math

import numpy as np
import pytest

import mixbin as mb
from mixbin.methods import comparison
from mixbin.problem import PointValues
from mixbin.problems.distillation import many_points


def tiny(seed=0, m=9, k=4, d=3, **settings):
    rng = np.random.default_rng([5, seed])
    X, X_val, coef = rng.normal(size=(m, d)), rng.normal(size=(12, d)), rng.normal(size=d)
    y, y_val = X @ coef + rng.normal(size=m), X_val @ coef + 0.5 * rng.normal(size=12)
    return mb.RidgeDistillation(X, y, X_val, y_val, budget=k, **settings)


def lowest(problem):
    """The lowest G over all selections, with lam on a grid that is far finer than the engine's."""
    theta = np.array(list(problem.theta_set.vertices()))
    lam = problem.lam_set.decode(np.linspace(0.0, 1.0, 2001))
    return min(problem.evaluate(v.astype(float), x, gradient=False).value for v in theta for x in lam[::10])


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_all_selections_is_found(seed):
    problem = tiny(seed, m=7, k=3)
    result = mb.relax_and_penalize(problem, seed=0)
    assert result.value <= lowest(problem)
    certificate = result.certificate
    assert (certificate.points_compared, certificate.lams_compared) == (math.comb(7, 3), comparison.GRID)
    assert certificate.one_move_optimal
    assert "All 35 possible answers were compared, each with 25 values of lam and the best with more; none was better." in str(
        certificate
    )


@pytest.mark.parametrize("settings", [{}, {"standardize": True, "outer_alpha": 0.1}])
def test_without_lam_it_is_the_enumeration(settings):
    for seed in range(3):
        problem = tiny(seed, alpha=0.05, **settings)
        result = mb.relax_and_penalize(problem, seed=0)
        best = mb.enumerate_binary(problem)
        assert np.array_equal(result.theta, best.theta)
        assert result.value == best.value
        assert "All 126 possible answers were compared; none was better." in str(result.certificate)


def test_lam_stays_if_it_is_not_to_be_optimised():
    result = mb.relax_and_penalize(tiny(), seed=0, reoptimize_lam=False)
    assert result.certificate.points_compared == 126
    assert result.certificate.lams_compared == 1


def test_the_seed_does_not_matter():
    values = {mb.relax_and_penalize(tiny(3), seed=seed).value for seed in range(4)}
    assert max(values) - min(values) <= 1e-9 * max(values)


@pytest.mark.parametrize(
    "settings",
    [{"search": "path", "starts": 2}, {"starts": 1}, {"polish": False, "max_outer": 5}, {"max_evaluations": 300}],
    ids=lambda given: next(iter(given)),
)
def test_where_nothing_is_compared(settings):
    result = mb.relax_and_penalize(tiny(), seed=0, **settings)
    assert result.certificate.points_compared == 0
    assert "compared" not in str(result.certificate)
    assert result.n_evaluations <= settings.get("max_evaluations", np.inf)


def test_large_sets_and_systems_are_searched():
    for problem in (tiny(m=24, k=6), tiny(d=many_points.MOST_FEATURES + 1)):
        assert mb.relax_and_penalize(problem, seed=0, polish=50).certificate.points_compared == 0


def test_it_resumes_to_the_same_bits(tmp_path):
    whole = mb.relax_and_penalize(tiny(1), seed=1)
    starts = whole.trace.column("start")
    assert starts.max() == 1, "the comparison found a better answer than the path"
    for stop in (np.flatnonzero(starts == 0)[-1], np.flatnonzero(starts == 1)[0], len(starts) - 2):
        file, seen = tmp_path / f"{stop}.checkpoint", [0]

        def stopping(event, stop=stop, seen=seen):
            seen[0] += 1
            if seen[0] > stop:
                event.stop()

        mb.relax_and_penalize(tiny(1), seed=1, checkpoint=file, callbacks=[stopping])
        resumed = mb.relax_and_penalize(tiny(1), seed=1, checkpoint=file)
        assert np.array_equal(resumed.theta, whole.theta)
        assert (resumed.value, resumed.n_evaluations) == (whole.value, whole.n_evaluations)
        assert resumed.certificate == whole.certificate


def wrong(answer):
    problem = tiny()
    problem.evaluate_points = answer
    return problem


def test_wrong_values_are_refused():
    with pytest.raises(mb.InvalidInput, match=r"evaluate_points must return PointValues with values of shape \(126, 25\)"):
        mb.relax_and_penalize(wrong(lambda theta, lam, max_cost: PointValues(np.ones(3))), seed=0)
    nan = wrong(lambda theta, lam, max_cost: PointValues(np.full(lam.shape[:2], np.nan)))
    with pytest.raises(mb.DivergedError, match=r"evaluate_points gave nan or -inf .*comparison of all binary points"):
        mb.relax_and_penalize(nan, seed=0)


def test_an_empty_selection_has_no_model():
    problem, theta = tiny(), np.zeros((2, 9), dtype=bool)
    theta[1, :4] = True
    values = problem.evaluate_points(theta, np.full((2, 1), 0.1)).values
    assert values[0, 0] == np.inf
    assert values[1, 0] == pytest.approx(problem.evaluate(theta[1].astype(float), np.array(0.1)).value, rel=1e-10)

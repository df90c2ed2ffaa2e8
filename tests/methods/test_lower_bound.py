"""Lower bounds: asked for where the contract says, kept in the certificate, and ending polish where the caller wants that."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.methods.journal import Journal
from tests.instances import optimum, quadratic


class Bounded:
    """A quadratic on Budget(14, 5) with a lower bound that depends on the point it is asked for at."""

    def __init__(self, bound, seed=0, shift=100.0):
        self.inner = quadratic(mb.Budget(14, 5), seed)
        self.theta_set, self.lam_set = self.inner.theta_set, self.inner.lam_set
        self.bound, self.shift, self.asked = bound, shift, []
        self.optimum = optimum(self.inner) + shift

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        got = self.inner.evaluate(theta, lam)
        return got._replace(value=got.value + self.shift)

    def lower_bound(self, theta, lam):
        self.asked.append(theta.copy())
        return self.bound(self, theta)


def share(share):
    return lambda problem, theta: problem.optimum * share


def solved(problem, **keywords):
    return mb.relax_and_penalize(problem, **({"seed": 0, "starts": 1} | keywords))


def test_the_bound_is_asked_for_at_the_relaxed_point_and_at_the_answer():
    problem = Bounded(share(0.9))
    result = solved(problem)
    np.testing.assert_array_equal(problem.asked, [result.relaxed.theta, result.theta])
    without = Bounded(share(0.9))
    without.lower_bound = None
    plain = solved(without)
    assert result.n_evaluations == plain.n_evaluations, "a bound is not an evaluation"
    certificate = result.certificate
    assert certificate.value == result.value
    assert certificate.lower_bound == 0.9 * problem.optimum
    assert certificate.gap == pytest.approx((result.value - 0.9 * problem.optimum) / result.value)


def test_the_larger_bound_is_kept_whatever_the_start():
    def lower_at_binary_points(problem, theta):
        return problem.optimum * (0.8 if np.all((theta == 0) | (theta == 1)) else 0.95)

    for bound in (lower_at_binary_points, lambda problem, theta: 1.75 * problem.optimum - lower_at_binary_points(problem, theta)):
        problem = Bounded(bound)
        assert solved(problem, starts=3).certificate.lower_bound == pytest.approx(0.95 * problem.optimum)


def test_baselines_and_certify_ask_too():
    problem = Bounded(share(0.9))
    rounded = mb.relax_and_round(problem, seed=0, starts=1)
    assert rounded.certificate.lower_bound == 0.9 * problem.optimum
    problem.asked.clear()
    certificate = mb.certify(problem, rounded.theta)
    np.testing.assert_array_equal(problem.asked, [rounded.theta])
    assert certificate.gap == rounded.certificate.gap
    problem.asked.clear()
    assert mb.relax_and_round(problem, rounding=None, seed=0, starts=1).certificate is None
    assert not problem.asked, "of an answer with fractions nothing is claimed"


def test_without_a_bound_nothing_is_claimed():
    for bound in (-np.inf, 0.0, 1e-12, -1e-12):
        certificate = solved(Bounded(lambda problem, theta, bound=bound: bound)).certificate
        assert np.isnan(certificate.gap)
        assert "better" not in str(certificate)
        assert "no bound" in str(certificate)
    assert np.isnan(solved(Bounded(lambda problem, theta: -np.inf)).certificate.lower_bound)
    assert np.isnan(solved(quadratic(mb.Budget(14, 5), 0)).certificate.lower_bound)


def test_a_bound_that_rounding_lifts_above_the_value_is_the_value():
    problem = Bounded(share(1.0 + 1e-13))
    result = solved(problem, starts=8)
    assert result.value == pytest.approx(problem.optimum, rel=1e-12)
    assert result.certificate.lower_bound == result.value
    assert result.certificate.gap == 0
    assert "No answer is better." in str(result.certificate)


@pytest.mark.parametrize("call", [solved, lambda problem: mb.certify(problem, np.arange(14) < 5)])
def test_a_bound_above_the_value_is_an_error_that_names_it(call):
    problem = Bounded(lambda problem, theta: problem.inner.evaluate(theta, np.empty(0)).value + problem.shift + 1.0)
    with pytest.raises(mb.InvalidInput, match="the problem's lower_bound is wrong: it must not exceed the value"):
        call(problem)


@pytest.mark.parametrize(
    ("bound", "error", "text"),
    [
        (np.nan, mb.DivergedError, "lower_bound is nan"),
        (np.inf, mb.DivergedError, "lower_bound is inf"),
        ("low", mb.InvalidInput, "lower_bound must be one number"),
        (np.zeros(2), mb.InvalidInput, "lower_bound must be one number"),
        (None, mb.InvalidInput, "lower_bound must be one number"),
    ],
)
def test_what_is_no_bound_is_refused(bound, error, text):
    with pytest.raises(error, match=text):
        solved(Bounded(lambda problem, theta: bound))


def test_errors_of_the_bound_carry_a_note():
    def boom(problem, theta):
        raise KeyError("the user's own")

    with pytest.raises(KeyError, match="the user's own") as caught:
        solved(Bounded(boom))
    assert "start 0, relax" in caught.value.__notes__[0]


def test_the_bound_is_saved_with_the_result(tmp_path):
    result = solved(Bounded(share(0.9)))
    result.save(tmp_path / "result")
    assert mb.Result.load(tmp_path / "result").certificate == result.certificate


# gap_tol


def polish_rows(result):
    return int(np.sum(result.trace.column("phase") == "polish"))


def test_polish_ends_once_the_gap_is_small_enough():
    whole = solved(Bounded(share(0.9)), max_outer=1)
    assert polish_rows(whole) > 1
    early = solved(Bounded(share(0.9)), max_outer=1, gap_tol=0.5)
    assert polish_rows(early) == 0
    assert early.n_evaluations < whole.n_evaluations
    assert "polish ended at a proven gap of" in early.message
    assert "below gap_tol = 0.5" in early.message
    assert early.certificate.gap < 0.5
    assert early.settings["gap_tol"] == 0.5


def test_a_gap_that_is_never_proven_changes_nothing():
    for bound, gap_tol in ((share(0.9), 0.01), (lambda problem, theta: -np.inf, 10.0), (lambda problem, theta: 0.0, 10.0)):
        plain, limited = (solved(Bounded(bound), gap_tol=tol) for tol in (0.0, gap_tol))
        np.testing.assert_array_equal(plain.theta, limited.theta)
        assert plain.n_evaluations == limited.n_evaluations
        assert limited.message == plain.message


def test_gap_tol_works_without_a_relaxed_stage():
    early = solved(Bounded(share(0.9)), relax_first=False, gap_tol=0.5)
    assert early.relaxed is None
    assert "gap_tol" in early.message


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [3, 12, 30])
def test_gap_tol_survives_a_resume(stop_at, tmp_path, monkeypatch):
    monkeypatch.setattr(Journal, "seconds", lambda self: 0.0)
    settings = {"gap_tol": 0.12, "max_outer": 3, "starts": 3, "checkpoint": tmp_path / "run", "checkpoint_every": 0}
    whole = solved(Bounded(share(0.9)), **(settings | {"checkpoint": None}))
    seen = []

    def stop(event):
        seen.append(event)
        if len(seen) == stop_at:
            event.stop()

    solved(Bounded(share(0.9)), **settings, callbacks=[stop])
    resumed = solved(Bounded(share(0.9)), **settings)
    assert resumed.message == whole.message
    assert resumed.certificate == whole.certificate
    assert resumed.n_evaluations == whole.n_evaluations
    np.testing.assert_array_equal(resumed.theta, whole.theta)


def test_a_bound_from_before_an_interruption_still_holds(tmp_path):
    problem = Bounded(share(0.9))

    def stop(event):
        if event.phase == "penalise":
            event.stop()

    solved(problem, checkpoint=tmp_path / "run", callbacks=[stop])
    resumed = solved(Bounded(lambda problem, theta: -np.inf), checkpoint=tmp_path / "run")
    assert resumed.certificate.lower_bound == 0.9 * problem.optimum


def test_another_gap_tol_is_another_run(tmp_path):
    solved(Bounded(share(0.9)), gap_tol=0.1, checkpoint=tmp_path / "run")
    with pytest.raises(mb.CheckpointMismatch, match="gap_tol"):
        solved(Bounded(share(0.9)), gap_tol=0.2, checkpoint=tmp_path / "run")

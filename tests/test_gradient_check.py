"""check_gradient and the warning at the first point: wrong entries are named, noise and kinks are no alarm."""

import warnings

import numpy as np
import pytest

import mixbin as mb

SETS = {
    "hypercube": mb.Hypercube(12),
    "budget": mb.Budget(14, 5),
    "at most": mb.Budget(14, 5, at_most=True),
    "knapsack": mb.Knapsack(np.arange(1.0, 13.0), 30.0),
    "one-hot": mb.OneHot(4, 3),
}


class Quadratic:
    """A quadratic in theta and log(lam); ``spoil`` changes what it returns, ``calls`` counts."""

    def __init__(self, theta_set, spoil=None):
        rng = np.random.default_rng(3)
        p = theta_set.size
        A = rng.normal(size=(p, p))
        self.Q, self.c, self.B = A + A.T, rng.normal(size=p), rng.normal(size=(2, p))
        self.spoil, self.calls = spoil, 0

    def __call__(self, theta, lam):
        self.calls += 1
        x = theta.ravel()
        gap = np.log(lam) - self.B @ x
        value = 0.5 * x @ self.Q @ x + self.c @ x + 0.5 * gap @ gap
        grad, grad_lam = self.Q @ x + self.c - self.B.T @ gap, gap / lam
        if self.spoil is not None:
            value, grad, grad_lam = self.spoil(value, grad, grad_lam, x)
        return value, grad.reshape(theta.shape), grad_lam


def problem(theta_set, spoil=None):
    return mb.FunctionProblem(Quadratic(theta_set, spoil), theta_set, mb.Box([1e-3, 1e-2], [1e2, 1.0], log=True))


def entry_7(value, grad, grad_lam, x):
    return value, np.where(np.arange(grad.size) == 7, grad + 30.0, grad), grad_lam


def lam_1(value, grad, grad_lam, x):
    return value, grad, grad_lam * [1.0, 2.0]


@pytest.mark.parametrize("kind", SETS)
def test_a_right_gradient_is_ok_and_gives_no_warning(kind):
    right = problem(SETS[kind])
    got = mb.check_gradient(right)
    assert got.ok
    assert str(got) == repr(got) == "ok"
    assert got.compared >= 12
    mb.relax_and_penalize(right, seed=0, starts=1, max_evaluations=60)  # warnings are errors here


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("method", [mb.relax_and_penalize, mb.relax_and_round])
def test_one_wrong_entry_of_theta_is_named(kind, method):
    wrong = problem(SETS[kind], entry_7)
    index = tuple(int(i) for i in np.unravel_index(7, SETS[kind].shape))
    got = mb.check_gradient(wrong)
    assert [(fault.name, fault.index) for fault in got.faults] == [("grad_theta", index)]
    fault = got.faults[0]
    alone = 1.0 if fault.moved == 1 else 1.0 - 1.0 / fault.moved
    assert fault.given - fault.measured == pytest.approx(30.0 * alone, rel=1e-4)
    name = f"grad_theta[{', '.join(map(str, index))}] is off"
    assert name in str(got)
    with pytest.warns(mb.GradientWarning) as caught:
        method(wrong, seed=0, max_evaluations=60)
    assert len(caught) == 1
    assert name in str(caught[0].message)
    assert "mixbin.check_gradient" in str(caught[0].message)


def test_a_wrong_entry_of_lam_is_named_in_the_units_of_lam():
    wrong = problem(SETS["budget"], lam_1)
    got = mb.check_gradient(wrong)
    assert [(fault.name, fault.index) for fault in got.faults] == [("grad_lam", (1,))]
    assert got.faults[0].given == pytest.approx(2.0 * got.faults[0].measured, rel=1e-4)
    with pytest.warns(mb.GradientWarning, match=r"grad_lam\[1\] is off: .* 2 times as much"):
        mb.relax_and_penalize(wrong, seed=0, max_evaluations=60)


@pytest.mark.parametrize("factor", [-1.0, 0.5, 2.0, 0.0])
def test_a_wrong_factor_is_caught(factor):
    wrong = problem(mb.Budget(300, 20), lambda value, grad, grad_lam, x: (value, factor * grad, grad_lam))
    got = mb.check_gradient(wrong)
    assert not got.ok
    assert all(fault.given == pytest.approx(factor * fault.measured, rel=1e-3, abs=1e-6) for fault in got.faults)
    with pytest.warns(mb.GradientWarning, match="grad_theta"):
        mb.relax_and_round(wrong, seed=0, max_evaluations=60)


def noisy(scale):
    rng = np.random.default_rng(0)
    return lambda value, grad, grad_lam, x: (value + scale * rng.normal(), grad, grad_lam)


def kinked(value, grad, grad_lam, x):
    """A kink at equal entries, where runs begin; one of its subgradients."""
    sign = np.where(x > x.mean(), 1.0, -1.0)
    return value + 50.0 * np.abs(x - x.mean()).sum(), grad + 50.0 * (sign - sign.mean()), grad_lam


ALARMLESS = {
    "noise": noisy(1e-2),
    "a little noise": noisy(1e-7),
    "a kink": kinked,
    "single precision": lambda value, grad, grad_lam, x: (float(np.float32(value)), grad.astype(np.float32), grad_lam),
    "a coarse lower level": lambda value, grad, grad_lam, x: (value * (1 + 1e-6 * np.sin(1e3 * x.sum())), 1.01 * grad, grad_lam),
}


@pytest.mark.parametrize("name", ALARMLESS)
@pytest.mark.parametrize("kind", ["hypercube", "budget", "one-hot"])
def test_noise_and_kinks_are_no_alarm(name, kind):
    doubtful = problem(SETS[kind], ALARMLESS[name])
    mb.relax_and_round(doubtful, seed=0, max_evaluations=40)  # warnings are errors here
    if name != "a coarse lower level":  # its gradient is off by 1 %, which check_gradient is there to say
        assert mb.check_gradient(doubtful).ok


def test_noise_is_reported_as_unclear():
    got = mb.check_gradient(problem(SETS["hypercube"], noisy(1e-2)))
    assert got.unclear > 0
    assert "unclear in" in str(got)
    assert "noise" in str(got)


def test_the_first_check_is_cheap_uncounted_and_leaves_the_bits_alone():
    checked, unchecked = problem(SETS["budget"]), problem(SETS["budget"])
    unchecked.check_first_gradient = False
    one, other = (mb.relax_and_penalize(it, seed=0, max_evaluations=80) for it in (checked, unchecked))
    assert (one.value, one.n_evaluations) == (other.value, other.n_evaluations)
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_array_equal(one.lam, other.lam)
    assert 0 < checked.function.calls - unchecked.function.calls <= 7


def test_a_run_that_resumes_does_not_warn_again(tmp_path):
    wrong, path = problem(SETS["budget"], entry_7), tmp_path / "run.ckpt"

    def stop(event):
        if event.n_evaluations > 5:
            event.stop()

    with pytest.warns(mb.GradientWarning):
        mb.relax_and_penalize(wrong, seed=0, starts=1, callbacks=[stop], checkpoint=path, checkpoint_every=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mb.relax_and_penalize(wrong, seed=0, starts=1, checkpoint=path, checkpoint_every=0.0)


def test_own_problems_are_not_checked():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    ridge = mb.RidgeDistillation(X, y, X, y, budget=5)
    assert not getattr(ridge, "check_first_gradient", False)
    assert str(mb.check_gradient(ridge)) == "ok"


def test_points_without_a_finite_value_are_counted():
    barrier = mb.FunctionProblem(lambda theta: (np.inf, np.zeros(3)), mb.Hypercube(3))
    got = mb.check_gradient(barrier)
    assert got.compared == 0
    assert got.infinite == 3
    assert str(got).startswith("nothing compared")


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"points": 0}, "points"), ({"points": 10**9}, "points"), ({"tol": 0.0}, "tol"), ({"seed": -1}, "seed")],
)
def test_bad_arguments_are_refused(settings, name):
    with pytest.raises(mb.InvalidInput, match=name):
        mb.check_gradient(problem(SETS["budget"]), **settings)

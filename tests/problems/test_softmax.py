"""SoftmaxDistillation: gradients against central differences, the model against scikit-learn's, errors."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import mixbin as mb
from mixbin.errors import InvalidInput
from mixbin.problem import Suggests
from mixbin.problems.distillation.softmax import INTERCEPT

NO_LAM = np.empty(0)


def make_data(K=3, m=40, n=20, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = 1 + rng.normal(size=(m, d)), 1 + rng.normal(size=(n, d))
    scores = rng.normal(size=(d, K)) * 2
    y, y_val = ((A - 1) @ scores + 0.5 * rng.normal(size=(len(A), K)) for A in (X, X_val))
    return X, y.argmax(axis=1), X_val, y_val.argmax(axis=1)


def make_theta(kind, m=40):
    rng = np.random.default_rng(1)
    return {"inside": rng.uniform(0.1, 0.9, m), "binary": (rng.uniform(size=m) < 0.6) * 1.0}[kind]


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("kind", ["inside", "binary"])
@pytest.mark.parametrize(
    ("judges", "settings"),
    [
        (True, {"judge_loss": "cross-entropy", "temperature": 1.0}),
        (True, {"judge_loss": "cross-entropy"}),
        (True, {}),
        (True, {"balanced": True}),
        (False, {"balanced": True, "path_tol": 1e-3}),
    ],
)
def test_gradient_against_central_differences(K, kind, judges, settings):
    data = make_data(K)
    problem = mb.SoftmaxDistillation(*data if judges else data[:2], alpha=(1e-3, 1.0), **settings)
    theta, lam, h = make_theta(kind), np.array(0.02), 1e-5

    def value(t, s=lam):
        return problem.evaluate(t, np.asarray(s), gradient=False).value

    got = problem.evaluate(theta, lam)
    expected = np.empty(40)
    for i in range(40):
        e = h * np.eye(1, 40, i)[0]
        # At 0 a weight can only grow: a difference of second order to one side.
        if theta[i] == 0:
            expected[i] = (-3 * value(theta) + 4 * value(theta + e) - value(theta + 2 * e)) / (2 * h)
        else:
            expected[i] = (value(theta + e) - value(theta - e)) / (2 * h)
    np.testing.assert_allclose(got.grad_theta, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert float(got.grad_lam) == pytest.approx((value(theta, lam + h) - value(theta, lam - h)) / (2 * h), rel=1e-5)


@pytest.mark.parametrize("K", [2, 4])
def test_the_model_is_that_of_scikit_learn(K):
    """With the intercept as the coefficient of a constant column, which is what its weak penalty means."""
    X, y, X_val, y_val = make_data(K)
    problem = mb.SoftmaxDistillation(X, y, X_val, y_val, alpha=0.05, judge_loss="cross-entropy", temperature=1.0)
    keep = make_theta("binary") > 0
    coef, intercept = problem.model(keep)
    centre, constant = X.mean(axis=0), INTERCEPT * X.var(axis=0).mean() ** 0.5

    def extended(A):
        return np.hstack([A - centre, np.full((len(A), 1), constant)])

    C = (2 if K == 2 else 1) / (40 * 0.05)
    reference = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(extended(X[keep]), y[keep])
    scores = X_val @ coef.T + intercept
    P = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    np.testing.assert_allclose(P, reference.predict_proba(extended(X_val)), atol=1e-5)
    loss = -np.log(P[np.arange(20), y_val]).mean()
    assert problem.evaluate(keep * 1.0, NO_LAM).value == pytest.approx(loss, rel=1e-10)
    plain = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X[keep], y[keep])
    np.testing.assert_allclose(P, plain.predict_proba(X_val), atol=2e-3)


def test_warm_starts_change_nothing_but_the_steps_and_evaluate_is_pure():
    problem = mb.SoftmaxDistillation(*make_data(), alpha=0.02)
    theta = make_theta("inside")
    cold = problem.evaluate(theta, NO_LAM)
    warm = problem.evaluate(theta, NO_LAM, warm=problem.evaluate(theta * 0.99, NO_LAM).warm)
    assert warm.info["lower_steps"] < cold.info["lower_steps"]
    assert warm.value == pytest.approx(cold.value, rel=1e-9)
    np.testing.assert_allclose(warm.grad_theta, cold.grad_theta, rtol=1e-5, atol=1e-9)
    again = problem.evaluate(theta, NO_LAM)
    assert (again.value, again.grad_theta.tobytes()) == (cold.value, cold.grad_theta.tobytes())


def test_scale_and_shift_of_the_columns_do_not_matter():
    X, y, X_val, y_val = make_data()
    theta = make_theta("inside")
    a = mb.SoftmaxDistillation(X, y, X_val, y_val).evaluate(theta, NO_LAM)
    b = mb.SoftmaxDistillation(X * 1e4 + 7e4, y, X_val * 1e4 + 7e4, y_val).evaluate(theta, NO_LAM)
    assert b.value == pytest.approx(a.value, rel=1e-8)


def test_classes_without_rows_and_empty_selections():
    X, y, X_val, y_val = make_data()
    problem = mb.SoftmaxDistillation(X, y, X_val, y_val)
    assert np.isfinite(problem.evaluate((y != 1) * 1.0, NO_LAM).value)
    nothing = problem.evaluate(np.zeros(40), NO_LAM)
    assert nothing.value == np.inf
    assert not nothing.grad_theta.any()
    with pytest.raises(InvalidInput, match="theta must select at least one row"):
        problem.model(np.zeros(40))


def test_the_loss_on_other_rows_is_that_of_the_upper_level():
    X, y, X_val, y_val = make_data()
    theta = (np.arange(40) % 3 > 0) * 1.0
    for settings in ({}, {"balanced": True}, {"judge_loss": "cross-entropy"}):
        problem = mb.SoftmaxDistillation(X, y, X_val, y_val, **settings)
        assert problem.loss(problem.model(theta, NO_LAM), X_val, y_val) == pytest.approx(
            problem.evaluate(theta, NO_LAM).value, rel=1e-12
        )
    by_all = mb.SoftmaxDistillation(X, y)
    assert by_all.loss(by_all.model(theta, NO_LAM), X, y) < by_all.evaluate(theta, NO_LAM).value  # no penalty
    with pytest.raises(InvalidInput, match="X_new must have the columns of X, got 1 columns"):
        problem.loss(problem.model(theta, NO_LAM), X_val[:, :1], y_val)
    with pytest.raises(InvalidInput, match="y_new must hold classes of y, got 9"):
        problem.loss(problem.model(theta, NO_LAM), X_val, np.full(len(y_val), 9))


def test_the_model_does_not_depend_on_what_was_evaluated_before():
    X, y, X_val, y_val = make_data()
    theta, other = np.ones(40), (np.arange(40) % 2) * 1.0
    want = mb.SoftmaxDistillation(X, y, X_val, y_val).model(theta)
    problem = mb.SoftmaxDistillation(X, y, X_val, y_val)
    warm = problem.evaluate(other, NO_LAM).warm
    problem.evaluate(theta, NO_LAM, warm=warm)
    for _ in range(2):  # the second time after a cold evaluation of the same theta
        np.testing.assert_array_equal(problem.model(theta)[0], want[0])
        problem.model(theta)[0][:] = 0.0
        problem.evaluate(theta, NO_LAM)
    assert np.abs(problem.model(other)[0] - want[0]).max() > 1e-3


def test_sets_and_labels():
    X, y, X_val, y_val = make_data()
    assert repr(mb.SoftmaxDistillation(X, y, X_val, y_val).theta_set) == "Hypercube(40)"
    named = mb.SoftmaxDistillation(X, np.array(list("abc"))[y], X_val, np.array(list("abc"))[y_val], budget=0.25)
    assert (named.theta_set.k, named.classes.tolist()) == (10, ["a", "b", "c"])
    assert isinstance(named, Suggests)
    assert mb.relax_and_penalize(named, seed=0, polish=False).theta.sum() == 10


def test_fingerprint_tells_problems_apart():
    X, y, X_val, y_val = make_data()
    prints = {
        mb.SoftmaxDistillation(*data, **settings).fingerprint()
        for data, settings in [
            ((X, y, X_val, y_val), {}),
            ((X, np.roll(y, 1), X_val, y_val), {}),
            ((X, y, X_val[::-1], y_val), {}),
            ((X, y, X_val, y_val), {"budget": 5}),
            ((X, y, X_val, y_val), {"alpha": 0.5}),
            ((X, y, X_val, y_val), {"judge_loss": "cross-entropy"}),
            ((X, y, X_val, y_val), {"judge_loss": "cross-entropy", "temperature": 1.0}),
            ((X, y, X_val, y_val), {"balanced": True}),
            ((X, y, X_val, y_val), {"class_shares": 0.2}),
            ((X, y, X_val, y_val), {"path_tol": 1e-3}),
            ((X, y), {}),
        ]
    }
    assert len(prints) == 11


BAD = [
    ({"X": np.ones(40)}, "X must be a table"),
    ({"X": np.full((40, 4), np.nan)}, "X must be finite"),
    ({"X": np.ones((40, 4))}, "alpha=None needs a column of X that varies"),
    ({"X_val": np.ones((20, 3))}, "X_val must have the columns of X"),
    ({"y": np.zeros(40)}, "y must hold at least two classes, got only"),
    ({"y": np.zeros(39)}, r"y must be an array of shape \(40,\)"),
    ({"y_val": np.full(20, 7)}, "y_val must hold classes of y, got 7"),
    ({"budget": 41}, "budget must be"),
    ({"alpha": 0.0}, "alpha must be a finite number greater than 0"),
    ({"temperature": 0, "judge_loss": "cross-entropy"}, "temperature must be a finite number in"),
    ({"temperature": 3.0}, 'temperature must be None with judge_loss="bounded", got 3.0; .*judge_loss="cross-entropy"'),
    ({"judge_loss": "hinge"}, "judge_loss must be one of"),
    ({"balanced": "equal"}, "balanced must be"),
    ({"class_shares": 1.5}, "class_shares must be"),
    ({"path_tol": 1.0}, "path_tol must be"),
    ({"y_val": None}, "y_val must be given together with X_val"),
    ({"X": make_data()[0] * 1e200}, "X must have variances of at most"),
    ({"X_val": make_data()[2] * 1e200}, "X_val must have variances of at most"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_arguments(change, message):
    data = dict(zip(("X", "y", "X_val", "y_val"), make_data(), strict=True))
    with pytest.raises(InvalidInput, match=message):
        mb.SoftmaxDistillation(**data | change)


def test_loose_models_on_the_way_have_nearly_the_same_values():
    problem, exact = (mb.SoftmaxDistillation(*make_data(), alpha=0.02, path_tol=tol) for tol in (1e-3, None))
    theta = make_theta("inside")
    warm = problem.evaluate(theta * 0.9, NO_LAM).warm
    cold, loose = exact.evaluate(theta, NO_LAM), problem.evaluate(theta, NO_LAM, warm=warm)
    assert problem.evaluate(theta, NO_LAM).value == cold.value
    assert loose.value == pytest.approx(cold.value, rel=1e-4)
    assert np.abs(loose.grad_theta - cold.grad_theta).max() < 0.1 * np.abs(cold.grad_theta).max()


def test_classes_keep_their_shares():
    X, y, X_val, y_val = make_data()
    counts = np.bincount(y)
    kept = mb.SoftmaxDistillation(X, y, X_val, y_val, budget=20, class_shares=0.2).theta_set
    assert kept.k == 20
    assert np.all(kept.low >= np.floor(0.8 * counts / 2))
    assert np.all(kept.high <= np.ceil(1.2 * counts / 2))
    free = mb.SoftmaxDistillation(X, y, class_shares=0.5).theta_set
    assert (free.k, free.low.tolist()) == (None, np.ceil(0.5 * counts).tolist())

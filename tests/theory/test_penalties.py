"""What every penalty promises: zero exactly on binary points, positive between, concave, the gradient it claims."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mixbin as mb
from tests.instances import quadratic

PENALTIES = [mb.Quadratic(), mb.Logarithmic(), mb.Logarithmic(0.01), mb.Logarithmic(3.0)]
unit = st.floats(0.0, 1.0)
# Entries so small that a product with them underflows are 0 to any penalty.
points = arrays(np.float64, 5, elements=st.sampled_from([0.0, 1.0]) | st.floats(1e-200, 1.0))

every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)


@every_penalty
@given(theta=points)
def test_zero_exactly_on_binary_points(penalty, theta):
    binary = bool(np.all((theta == 0) | (theta == 1)))
    assert (penalty.value(theta) == 0) == binary
    assert penalty.value(theta) >= 0


@every_penalty
@given(a=points, b=points, t=unit)
def test_concave(penalty, a, b, t):
    chord = (1 - t) * penalty.value(a) + t * penalty.value(b)
    assert penalty.value((1 - t) * a + t * b) >= chord - 1e-12


@every_penalty
@pytest.mark.parametrize("seed", range(3))
def test_gradient_against_central_differences(penalty, seed):
    theta, h = np.random.default_rng(seed).uniform(0.01, 0.99, size=7), 1e-6
    numeric = [(penalty.value(theta + h * e) - penalty.value(theta - h * e)) / (2 * h) for e in np.eye(7)]
    np.testing.assert_allclose(penalty.gradient(theta), numeric, atol=1e-7)
    grad = np.arange(7.0)
    np.testing.assert_allclose(penalty.add_gradient(grad, theta, 0.3), grad + 0.3 * penalty.gradient(theta), rtol=1e-12)
    np.testing.assert_array_equal(grad, np.arange(7.0))


@every_penalty
def test_slopes_at_binary_points_are_those_that_certificates_count_on(penalty):
    np.testing.assert_allclose(penalty.gradient(np.array([0.0, 1.0])), [1.0, -1.0], rtol=1e-12)


@pytest.mark.slow
@every_penalty
@pytest.mark.parametrize(
    "theta_set",
    [mb.Budget(12, 4), *(pytest.param(it, marks=pytest.mark.ci) for it in (mb.OneHot(4, 3), mb.Hypercube(8)))],
    ids=repr,
)
def test_drives_to_binary_points(penalty, theta_set):
    result = mb.relax_and_penalize(quadratic(theta_set, 0, "convex"), penalty=penalty, seed=0)
    assert result.status is mb.Status.BINARY
    assert theta_set.violation(result.theta) == 0


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf"), "small", None, True])
def test_bad_alpha(alpha):
    with pytest.raises(mb.InvalidInput, match=r"^alpha must be"):
        mb.Logarithmic(alpha)

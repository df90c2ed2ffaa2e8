"""Lemmas 1 to 3 and the corollary of the paper's appendix, as properties of Quadratic."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mixbin.penalties import Quadratic

phi = Quadratic()
unit = st.floats(0.0, 1.0)
sigmas = st.floats(1e-3, 0.5)
ROUNDING = 1e-12


def points(size: int):
    return arrays(np.float64, size, elements=unit)


def psi(t: float) -> float:
    return phi.value(np.array([t]))


@given(unit, unit, sigmas)
def test_lemma_1(t1, t2, sigma):
    assume(abs((t1 + t2) / 2 - 0.5) >= sigma)
    assert abs(psi(t2) - psi(t1)) >= 2 * sigma * abs(t2 - t1) - ROUNDING


@given(points(6), points(6), sigmas)
def test_lemma_2(theta, other, sigma):
    # Entries that do not meet the lemma's conditions are made equal, which the lemma allows.
    meets = (np.abs((theta + other) / 2 - 0.5) >= sigma) & (np.abs(other - 0.5) <= np.abs(theta - 0.5))
    other = np.where(meets, other, theta)
    assert phi.value(other) - phi.value(theta) >= 2 * sigma * np.linalg.norm(other - theta) - ROUNDING


@given(arrays(np.bool_, 6), points(6), sigmas)
def test_corollary_also_in_the_max_norm(vertex, direction, sigma):
    theta = vertex.astype(float)
    other = np.clip(np.abs(theta - (1 - 2 * sigma) * direction), 0.0, 1.0)
    assert np.max(np.abs(other - theta)) <= 1 - 2 * sigma + ROUNDING
    assert phi.value(other) >= 2 * sigma * np.linalg.norm(other - theta) - ROUNDING


@given(arrays(np.bool_, 6), points(6), st.floats(1e-3, 0.499), unit)
def test_lemma_3(vertex, direction, c, t):
    theta = vertex.astype(float)
    near = np.abs(theta - 0.999 * c * direction)
    assert np.max(np.abs(near - theta)) < c
    on_the_way = (1 - t) * near + t * theta
    assert phi.value(near) - phi.value(on_the_way) >= (1 - 2 * c) * np.linalg.norm(on_the_way - near) - ROUNDING


@given(points(5), points(5), unit)
def test_concave(a, b, t):
    assert phi.value((1 - t) * a + t * b) >= (1 - t) * phi.value(a) + t * phi.value(b) - ROUNDING


@given(points(5))
def test_zero_exactly_on_binary_points(theta):
    binary = np.all((theta == 0) | (theta == 1))
    assert (phi.value(theta) == 0) == binary
    assert phi.value(theta) >= 0


@pytest.mark.parametrize("seed", range(5))
def test_gradient_against_central_differences(seed):
    theta = np.random.default_rng(seed).uniform(size=7)
    h = 1e-6
    numeric = [(phi.value(theta + h * e) - phi.value(theta - h * e)) / (2 * h) for e in np.eye(7)]
    np.testing.assert_allclose(phi.gradient(theta), numeric, atol=1e-9)
    grad = np.arange(7.0)
    np.testing.assert_allclose(phi.add_gradient(grad, theta, 0.3), grad + 0.3 * phi.gradient(theta), rtol=1e-14)
    np.testing.assert_array_equal(grad, np.arange(7.0))

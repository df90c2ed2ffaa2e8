"""The box of the continuous hyperparameters."""

import numpy as np
import pytest

from mixbin.sets import Box


def test_projection_clips_and_does_not_alias():
    box = Box([0.0, -1.0], [1.0, 1.0])
    x = np.array([0.5, 0.5])
    p = box.project(x)
    assert not np.shares_memory(p, x)
    assert box.project([2.0, -1e300]).tolist() == [1.0, -1.0]
    assert box.contains(p)
    assert not box.contains([0.5, 1.5])


def test_the_empty_box_has_no_dimensions():
    box = Box.empty()
    assert box.shape == (0,)
    assert box.project(np.empty(0)).shape == (0,)
    assert box.contains(np.empty(0))
    assert box.start().shape == (0,)


def test_logarithmic_boxes_start_at_the_geometric_mean():
    box = Box(1e-4, 1e2, log=True)
    assert float(box.start()) == pytest.approx(0.1)
    inside = box.start(np.random.default_rng(0))
    assert box.contains(inside)
    assert float(box.decode(box.encode(np.array(1e2)))) == 1e2


def test_gradients_follow_the_scale():
    box = Box(1e-4, 1e2, log=True)
    lam, step = 0.3, 1e-6
    u = box.encode(np.array(lam))
    slope = (float(box.decode(u + step)) ** 2 - float(box.decode(u - step)) ** 2) / (2 * step)
    assert float(box.encode_gradient(np.array(lam), np.array(2 * lam))) == pytest.approx(slope)


def test_bounds_are_copied_and_frozen():
    low = np.zeros(2)
    box = Box(low, np.ones(2))
    low[0] = 5.0
    assert box.lower[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 1.0

"""The mean of numbers whose sum overflows."""

import numpy as np

from mixbin.sets._mean import mean_of


def test_the_mean_of_the_largest_numbers_is_finite():
    largest = np.finfo(np.float64).max
    assert mean_of(np.full(3, largest)) == largest
    np.testing.assert_array_equal(mean_of(np.full((2, 3), -largest), axis=1), np.full((2, 1), -largest))
    assert mean_of(np.array([largest, -largest, largest])) < largest

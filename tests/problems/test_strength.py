"""Strengths of penalties: fixed or a range."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.problems.strength import Strength


def test_fixed():
    strength = Strength(0.1)
    assert strength.fixed
    assert strength.box().shape == (0,)
    assert strength.value(np.empty(0)) == strength.value(()) == 0.1
    assert strength.lam(0.1) == ()
    with pytest.raises(mb.InvalidInput, match=r"lam must be an array of numbers of shape \(0,\)"):
        strength.value(0.2)


@pytest.mark.parametrize("log", [True, False])
def test_range(log):
    strength = Strength((0.1, 2.0))
    assert not strength.fixed
    assert repr(strength.box(log)) == repr(mb.Box(0.1, 2.0, log=log))
    assert strength.value(np.array(0.3)) == strength.lam(0.3) == 0.3
    with pytest.raises(mb.InvalidInput, match=r"lam must be an array of numbers of shape \(\)"):
        strength.value(())
    with pytest.raises(mb.InvalidInput, match=r"lam must be a finite number greater than 0, got 0\.0; project it on lam_set"):
        strength.value(0.0)

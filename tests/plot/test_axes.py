"""Every drawing takes a result or says what else, draws where it is told, and returns its axes."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import mixbin as mb


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    problem = mb.FunctionProblem(lambda v: (0.5 * v @ (A @ A.T) @ v, A @ A.T @ v), mb.Budget(12, 4))
    return mb.relax_and_penalize(problem, seed=0, search="path")


def evolution():
    curves = ["validation", "validation_rounded", "n_selected", "integrality", "test", "test_rounded", "rmse"]
    said = {"unit": "steps", "budget": 2, "title": "t", "rounded": True}
    return mb.plot.Evolution(steps=np.arange(3.0), **said, **dict.fromkeys(curves, np.ones(3)))


DRAWN = {
    "trace": lambda result: result,
    "distance": lambda result: result,
    "selection": lambda result: result,
    "structure": lambda result: np.eye(3),
    "evolution": lambda result: evolution(),
}


@pytest.mark.parametrize("name", DRAWN)
def test_drawings_return_their_axes(result, name):
    draw, what = getattr(mb.plot, name), DRAWN[name](result)
    alone = draw(what)
    assert isinstance(alone, mpl.axes.Axes)
    # A notebook shows the whole figure where a cell ends with the axes.
    assert alone._repr_png_().startswith(b"\x89PNG")
    if name == "evolution":
        grid = Figure().subplots(2, 3)
        assert draw(what, ax=grid) is grid[0, 0]
        assert all(axes.has_data() or axes is grid[1, 2] for axes in grid.ravel())
        with pytest.raises(mb.InvalidInput, match="ax must be 6 Axes"):
            draw(what, ax=grid[0])
    else:
        given = Figure().subplots()
        assert draw(what, ax=given) is given
        assert given.has_data()
    with pytest.raises(mb.InvalidInput, match="ax must be Axes of matplotlib, or None, got 3"):
        draw(what, ax=[3] if name == "evolution" else 3)


def test_what_has_no_distances_is_refused():
    with pytest.raises(mb.InvalidInput, match="result must be a Result, a Trace or a DistanceCurve"):
        mb.plot.distance([1.0])
    with pytest.raises(mb.InvalidInput, match="must have distances in its trace"):
        mb.plot.distance(mb.Trace())

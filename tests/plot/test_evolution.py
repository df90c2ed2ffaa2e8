"""The five panels along a run, on real small runs and on awkward ones."""

from dataclasses import fields, replace

import numpy as np
import pytest

import mixbin as mb
from mixbin import plot
from mixbin.errors import InvalidInput
from mixbin.plot import Evolution
from mixbin.plot.figure import svg_text
from tests.plot.texts import assert_readable, figures, words

evolution = figures(plot.evolution)

PANELS = ["(a) validation loss", "(b) selected rows", "(c) integrality", "(d) test loss", "(e) RMSE on the test rows"]

LOSSES = ["validation", "validation_rounded", "test", "test_rounded", "rmse"]


def made(n: int = 40, **changes) -> Evolution:
    rng = np.random.default_rng(0)
    curves = {
        "validation": 300 + 60 * np.exp(-np.arange(n) / 5),
        "validation_rounded": 310 + 90 * np.exp(-np.arange(n) / 5),
        "n_selected": rng.integers(90, 100, n),
        "integrality": np.linspace(0.5, 0, n),
        "test": 200 + rng.random(n),
        "test_rounded": 210 + rng.random(n),
        "rmse": 20 + rng.random(n),
    }
    about = {"steps": 100 * np.arange(n), "unit": "evaluations of G", "budget": 100, "title": "blog, 20 %"}
    return Evolution(**about | curves | changes)


@pytest.fixture(scope="module")
def real() -> Evolution:
    """A run on rows of which the early thetas round to none."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(420, 4)), rng.normal(size=4)
    y = np.exp(0.8 * X @ w) + 5
    train, val, test = slice(0, 200), slice(200, 300), slice(300, None)
    on_val = mb.RidgeDistillation(X[train], y[train], X[val], y[val], budget=40, alpha=1.0)
    on_test = mb.RidgeDistillation(X[train], y[train], X[test], y[test], budget=40, alpha=1.0)
    seen = []

    def note(event: mb.Event) -> None:
        seen.append((event.n_evaluations, event.theta.copy()))

    mb.relax_and_round(on_val, rounding="simple", seed=0, starts=1, max_evaluations=60, callbacks=[note])

    def loss(problem, v):
        return problem.evaluate(v.astype(float), np.empty(0), gradient=False).value if v.any() else np.inf

    before, after = [v for _, v in seen], [v >= 0.5 for _, v in seen]
    test_rounded = np.array([loss(on_test, v) for v in after])
    return Evolution(
        steps=np.array([n for n, _ in seen]),
        unit="evaluations of G",
        validation=np.array([loss(on_val, v) for v in before]),
        validation_rounded=np.array([loss(on_val, v) for v in after]),
        n_selected=np.array([v.sum() for v in after]),
        budget=40,
        integrality=np.array([np.minimum(v, 1 - v).max() for v in before]),
        test=np.array([loss(on_test, v) for v in before]),
        test_rounded=test_rounded,
        rmse=np.sqrt(2 * test_rounded),
        title="relaxation and simple rounding",
    )


def curves_of(axes):
    """Each curve of a panel: what is finite of it, by its label."""
    return {
        line.get_label(): line.get_xydata()[np.isfinite(line.get_ydata())]
        for line in axes.get_lines()
        if line.get_linestyle() not in (":", "None")
    }


@pytest.mark.slow
def test_the_panels_show_a_real_run(real):
    figure = evolution(real)
    assert [axes.get_title(loc="left") for axes in figure.axes[:5]] == PANELS
    a, b, c, d, e, key = figure.axes
    gone = ~np.isfinite(real.validation_rounded)
    assert gone.any()
    assert not gone.all()
    for axes, before, after in ((a, real.validation, real.validation_rounded), (d, real.test, real.test_rounded)):
        got = curves_of(axes)
        np.testing.assert_array_equal(got["before rounding"], np.column_stack([real.steps, before]))
        np.testing.assert_array_equal(got["after rounding"], np.column_stack([real.steps, after])[~gone])
    for axes, curve in ((b, real.n_selected), (c, real.integrality), (e, real.rmse)):
        (got,) = curves_of(axes).values()
        finite = np.isfinite(curve)
        np.testing.assert_array_equal(got, np.column_stack([real.steps, curve])[finite])
    assert [text.get_text() for text in key.get_legend().get_texts()] == ["before rounding", "after rounding"]
    (note,) = (text for text in words(figure) if "not drawn" in text)
    assert note == f"after rounding, {gone.sum()} of {gone.size} points are not drawn: no row is left"
    budget = next(line for line in b.get_lines() if line.get_linestyle() == ":")
    np.testing.assert_array_equal(budget.get_ydata(), [40, 40])
    assert "budget" in words(figure)
    assert words(figure).count("evaluations of G") == 5
    assert_readable(figure)
    assert svg_text(evolution(real)) == svg_text(evolution(real))


def test_curves_differ_without_colour(real):
    before, after = evolution(real).axes[0].get_lines()[:2]
    assert before.get_linestyle() != after.get_linestyle()
    assert before.get_marker() != after.get_marker()


@pytest.mark.slow
def test_a_method_that_does_not_round_has_one_curve_a_panel():
    figure = evolution(made(rounded=False, validation_rounded=np.full(40, np.nan), test_rounded=np.full(40, np.nan)))
    for axes in figure.axes[:5]:
        assert len(curves_of(axes)) == 1
    assert figure.axes[5].get_legend() is None
    assert not any("not drawn" in text for text in words(figure))
    assert_readable(figure)


def test_log_axes_only_where_they_are_needed():
    near, far = evolution(made()), evolution(made(validation_rounded=np.linspace(4000, 320, 40)))
    assert [axes.get_yscale() for axes in near.axes[:5]] == ["linear"] * 5
    assert [axes.get_yscale() for axes in far.axes[:5]] == ["log"] + ["linear"] * 4
    assert near.axes[0].get_ylabel() == "½ mean squared error"
    assert far.axes[0].get_ylabel() == "½ mean squared error (log)"
    # What is not drawn asks for no log axis.
    plain = evolution(made(rounded=False, validation_rounded=np.full(40, 1e9)))
    assert plain.axes[0].get_yscale() == "linear"
    # Nor can there be one with zeros.
    assert evolution(made(validation=np.linspace(400, 0, 40))).axes[0].get_yscale() == "linear"


def test_gaps_stay_gaps_and_a_point_between_two_is_a_dot():
    rmse = np.full(40, np.nan)
    rmse[[3, 4, 5, 9]] = 20.0
    figure = evolution(made(rmse=rmse))
    curve, dot = figure.axes[4].get_lines()
    np.testing.assert_array_equal(np.flatnonzero(np.isfinite(curve.get_ydata())), [3, 4, 5, 9])
    assert len(curve.get_ydata()) == 40
    np.testing.assert_array_equal(dot.get_xydata(), [[900, 20]])
    assert any("36 of 40 points are not drawn: not" in text for text in words(figure))


def test_the_note_tells_before_from_after():
    validation = np.full(40, 300.0)
    validation[:2] = np.nan
    texts = words(evolution(made(validation=validation, rmse=np.full(40, np.inf))))
    (note,) = (text for text in texts if "not drawn" in text)
    assert "after rounding, 40 of 40 points" in note
    assert "before rounding, 2 of 40 points are not drawn: not finite" in note


NONE = np.full(40, np.nan)
AWKWARD = {
    "one point": made(1),
    "two points": made(2),
    "nothing after rounding": made(validation_rounded=NONE, test_rounded=NONE, rmse=NONE, n_selected=np.zeros(40)),
    "nothing at all": made(
        **dict.fromkeys(["validation", "validation_rounded", "test", "test_rounded", "rmse", "integrality"], NONE)
    ),
    "long": made(title="a title that goes on and on " * 9, unit="steps of the inner solver over all values of eps, in turn"),
    "big": made(steps=3_000_000 * np.arange(40), validation=np.linspace(1e12, 1e12 + 5, 40), budget=52_397_000),
    "decades": made(validation_rounded=np.logspace(9, 2, 40), test_rounded=np.logspace(3, 2, 40), rmse=np.logspace(-6, 6, 40)),
    "little apart": made(validation=292.37 + 1e-7 * np.arange(40), test=np.full(40, 1e-7)),
    "no budget": made(budget=0, n_selected=np.zeros(40)),
    "over budget": made(budget=3, n_selected=np.full(40, 52_397)),
    "math": made(title="costs $5 or $6 & <more>", unit="a_b^c$"),
    "relax and penalize": made(rounded=False, rmse=np.where(np.arange(40) < 9, np.inf, 20)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(it, marks=[pytest.mark.ci] * (it not in ("math", "relax and penalize"))) for it in AWKWARD]
)
def test_awkward_runs_can_be_read(kind):
    figure = evolution(AWKWARD[kind])
    assert [axes.get_title(loc="left") for axes in figure.axes[:5]] == PANELS
    assert_readable(figure)
    assert " ".join(AWKWARD[kind].title.split()) in words(figure)


def test_an_empty_panel_has_no_scale():
    figure = evolution(AWKWARD["nothing after rounding"])
    assert figure.axes[4].get_yticks().size == 0
    assert figure.axes[0].get_yticks().size > 0
    assert list(curves_of(figure.axes[0])["after rounding"]) == []


@pytest.mark.slow
def test_long_runs_are_thinned():
    n = 29_100
    rng = np.random.default_rng(0)
    it = made(n, **{name: rng.random(n) for name in LOSSES})
    figure = evolution(it)
    drawn = figure.axes[0].get_lines()[0].get_ydata()
    assert 1000 < drawn.size <= 2000
    assert (drawn.min(), drawn.max()) == (it.validation.min(), it.validation.max())
    assert len(svg_text(figure)) < 2e6
    assert it.validation.size == n


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": []}, "steps must be at least one number"),
        ({"steps": np.arange(40)[::-1]}, "steps must be .* in ascending order"),
        ({"rmse": np.ones(3)}, r"rmse must be an array of numbers of shape \(40,\), one per step, got an array of shape \(3,\)"),
        ({"test": ["a"] * 40}, "test must be an array of numbers"),
        ({"steps": np.linspace(-1e300, 1e300, 40)}, r"steps must be numbers of at most 1e\+100"),
        ({"budget": 0.5}, "budget must be a whole number"),
        ({"budget": 10**400}, "budget must be a whole number from 0 to"),
        ({"rounded": 1}, "rounded must be True or False"),
    ],
)
def test_bad_evolutions_are_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        made(**changes)


def test_lists_become_arrays_and_the_object_stays_as_it_is():
    it = made(validation=[300.0] * 40)
    assert all(isinstance(getattr(it, field.name), (np.ndarray, str, int)) for field in fields(it))
    assert replace(it, title="another").validation.tolist() == [300.0] * 40

"""How methods compare and where kept rows lie: odd numbers and names are drawn or refused, never a warning of matplotlib."""

import numpy as np
import pytest

import mixbin as mb
from mixbin import plot
from mixbin.plot import Bar
from mixbin.plot.figure import svg_text

POINTS = np.random.default_rng(0).normal(size=(30, 2))


def test_the_names_and_numbers_are_there():
    text = svg_text(plot.compared([Bar("all rows", 0.5), Bar("ours", 0.52, 0.0, True), Bar("random rows", 0.61, 0.05)], "error"))
    for word in ("all rows", "ours", "random rows", "0.52", "error"):
        assert word in text


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300, 1e-300, 0.0])
def test_numbers_that_cannot_be_drawn(value):
    svg_text(plot.compared([Bar("a", value), Bar("b", 1.0, abs(value))] if value == value else [Bar("a", value)], "error"))


@pytest.mark.parametrize("width", [3.0, 4.9, 9.6])
def test_long_names(width):
    svg_text(plot.compared([Bar("W" * 500, 0.5), Bar("a method of " * 9, 0.6)], "error", width))


BAD_BARS = [
    ([], r"^bars must be a sequence of Bar, at least one, got \[\]; such as"),
    (None, "^bars must be a sequence of Bar"),
    ("bars", "^bars must be a sequence of Bar"),
    ([0.5], "^bars must be a sequence of Bar"),
    ([Bar("a", None)], r"^bars\[0\].value must be"),
    ([Bar("a", 1.0), Bar("b", 1.0, -0.5)], r"^bars\[1\].spread must be a number of at least 0"),
    ([Bar("a", 1.0, 0.0, "yes")], r"^bars\[0\].ours must be True or False"),
]


@pytest.mark.parametrize(("bars", "words"), BAD_BARS)
def test_bad_bars(bars, words):
    with pytest.raises(mb.InvalidInput, match=words):
        plot.compared(bars, "error")


@pytest.mark.parametrize("width", [None, 0.5, 1e300, np.uint64(2**64 - 1)])
def test_bad_widths(width):
    with pytest.raises(mb.InvalidInput, match=r"^width must be"):
        plot.compared([Bar("a", 1.0)], "error", width)


def test_where_rows_lie():
    text = svg_text(plot.where_kept(POINTS, POINTS[:3], (0.5, 0.25), 3))
    assert "the 3 kept" in text
    svg_text(plot.where_kept(POINTS[:1], [], (0.5, 0.25), 0))


BAD_PLACES = [
    ((POINTS[:0], [], (0.5, 0.2), 0), "^points must be at least one row"),
    ((POINTS[:, :1], [], (0.5, 0.2), 0), "^points must be an array of shape"),
    ((POINTS * 1e200, [], (0.5, 0.2), 0), "^points must be numbers of at most"),
    ((POINTS, [1.0, 2.0], (0.5, 0.2), 0), "^kept must be an array of shape"),
    ((POINTS, [], (0.5,), 0), "^shares must be"),
    ((POINTS, [], (0.5, 0.2), 0.5), "^n_kept must be"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD_PLACES)
def test_bad_places(arguments, words):
    with pytest.raises(mb.InvalidInput, match=words):
        plot.where_kept(*arguments)


def test_what_is_no_curve_and_no_map():
    with pytest.raises(mb.InvalidInput, match=r"^curve must be a BudgetCurve, got 3; make one with mixbin.budget_curve"):
        plot.budget_curve(3)
    with pytest.raises(mb.InvalidInput, match=r"^maps must be structures"):
        plot.draw([plot.structure_map(np.eye(2))])


def test_a_curve_that_leaves_no_row_out_says_so():
    X = np.random.default_rng(0).normal(size=(30, 2))
    figure = plot.budget_curve(mb.budget_curve(X, X @ [1.0, 2.0] + X[:, 0] ** 2, [1.0], random_state=0))
    assert "none is left" in figure.axes[1].texts[0].get_text()
    assert figure.legends[0].get_texts()

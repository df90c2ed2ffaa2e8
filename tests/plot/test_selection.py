"""Which rows were selected: first the shares, then that they are drawn and can be read."""

import numpy as np
import pytest

import mixbin as mb
from mixbin import plot
from mixbin.errors import InvalidInput
from mixbin.plot import SelectionShares, selection_shares
from mixbin.plot.figure import svg_text
from tests.plot.texts import assert_readable, figures, words

selection = figures(plot.selection)

RNG = np.random.default_rng(0)
COUNTS = np.where(RNG.random(20_000) < 0.6, 0, np.round(RNG.pareto(1.0, 20_000) * 5))
AWKWARD = {
    "normal": RNG.normal(size=3000),
    "years": RNG.normal(1990, 9, 3000).round(),
    "counts": COUNTS,
    "signed": RNG.normal(size=3000) ** 5 * 100,
    "negative": -COUNTS,
    "far from 0": RNG.standard_cauchy(5000) + 1e4,
    "one far row": np.append(1000 + RNG.random(999), 9e9),
    "many equal": np.concatenate([np.full(9000, 5.0), RNG.random(100)]),
    "mostly 0": np.concatenate([np.zeros(9000), RNG.random(100) * 1e-5]),
    "tiny": RNG.random(3000) * 1e-12,
    "huge": RNG.random(3000) * 1e15,
    "huge, little apart": 1e15 + RNG.integers(0, 90, 3000),
    "little apart": 1 + 1e-15 * RNG.integers(0, 90, 3000),
    "denormal": 5e-324 * RNG.integers(0, 90, 3000),
    "all floats": np.concatenate([np.logspace(-300, 308, 500), -np.logspace(-300, 308, 500)]),
    "largest floats": 1.7e308 * np.sign(RNG.normal(size=500)) * RNG.random(500),
    "flags": RNG.random(500) < 0.5,
    "few floats": RNG.choice([0.1, 0.25, 1 / 3, 123456.789, 2e-7], 500),
    "twenty large": RNG.choice(np.arange(20) * 1_234_567, 500),
    "one row": np.array([3.0]),
    "constant": np.full(40, 7.0),
}


def by_hand(shares: SelectionShares, x: np.ndarray) -> np.ndarray:
    """The share of x in each bin, from what the bins say of themselves; the last one has its end."""
    if shares.single_values:
        inside = x[:, None] == shares.low
    else:
        inside = (x[:, None] >= shares.low) & (x[:, None] < shares.high)
        inside[:, -1] |= x == shares.high[-1]
    np.testing.assert_array_equal(inside.sum(axis=1), 1, "each row is in one bin")
    return inside.mean(axis=0) if len(x) else np.zeros(len(shares.low))


@pytest.mark.parametrize("kind", AWKWARD)
def test_shares_of_all_and_of_the_selected(kind):
    x = AWKWARD[kind].astype(float)
    theta = np.random.default_rng(1).random(x.size) < 0.3
    theta[0] = True
    got = selection_shares(theta, AWKWARD[kind], name=kind)
    np.testing.assert_allclose(got.all_rows, by_hand(got, x), atol=1e-12)
    np.testing.assert_allclose(got.selected, by_hand(got, x[theta]), atol=1e-12)
    assert (got.n_rows, got.n_selected, got.name) == (x.size, theta.sum(), kind)
    assert got.single_values == (np.unique(x).size <= 20)
    assert 1 <= got.low.size <= 60
    if not got.single_values:
        assert np.all(got.low < got.high)
        np.testing.assert_array_equal(got.low[1:], got.high[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", AWKWARD)
def test_selections_can_be_read(kind):
    x = AWKWARD[kind]
    figure = selection(np.arange(x.size) % 3 == 0, x, name=f"{kind} in $")
    assert_readable(figure)
    texts = words(figure)
    assert f"all {x.size:,} rows" in texts
    assert f"the {-(-x.size // 3):,} selected" in texts
    assert "share of these rows, %" in texts
    assert any(text.startswith(f"{kind} in $") for text in texts)


@pytest.mark.parametrize("kind", ["normal", "years", "huge", "tiny", "counts", "signed"])
def test_bins_tell_the_bulk_apart(kind):
    """No bin swallows the table, unless one value is that common."""
    got = selection_shares(np.ones(AWKWARD[kind].size, dtype=bool), AWKWARD[kind])
    common = np.unique(AWKWARD[kind], return_counts=True)[1].max() / AWKWARD[kind].size
    assert got.all_rows.max() < max(0.35, common + 0.05)
    assert got.low.size >= 8


def test_counts_have_bins_that_grow():
    got = selection_shares(COUNTS > 0, COUNTS)
    np.testing.assert_array_equal(got.low[:8], [0, 1, 2, 5, 10, 20, 50, 100])
    assert got.high[-1] > COUNTS.max()
    assert got.all_rows[0] == np.mean(COUNTS == 0)
    assert got.selected[0] == 0
    assert "bins grow away from 0" in selection(COUNTS > 0, COUNTS).axes[0].get_xlabel()
    negative = selection_shares(COUNTS > 0, -COUNTS)
    assert negative.low.max() == 0
    assert negative.all_rows[-1] == np.mean(COUNTS == 0)


def test_far_from_0_tails_are_open_bins_that_say_so():
    x = AWKWARD["far from 0"]
    got = selection_shares(x > 1e4, x)
    assert (got.low[0], got.high[-1]) == (-np.inf, np.inf)
    assert 0.01 < got.all_rows[0] < 0.03
    assert 0.01 < got.all_rows[-1] < 0.03
    assert got.selected[0] == 0
    labels = [text.get_text() for text in selection(x > 1e4, x).axes[0].get_xticklabels()]
    assert labels[0] == f"< {got.high[0]:.0f}"
    assert labels[-1] == f"≥ {got.low[-1]:,.0f}"


def test_few_values_have_a_bar_each():
    x = np.array([3, 1, 3, 2, 3, 3])
    theta = np.array([1, 1, 0, 0, 1, 0])
    got = selection_shares(theta, x, "stars")
    np.testing.assert_array_equal(got.low, [1, 2, 3])
    np.testing.assert_array_equal(got.high, got.low)
    np.testing.assert_allclose(got.all_rows, [1 / 6, 1 / 6, 4 / 6])
    np.testing.assert_allclose(got.selected, [1 / 3, 0, 2 / 3])
    axes = selection(theta, x, "stars").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "3"]
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches[:3]], 100 * got.all_rows)
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches[3:]], 100 * got.selected)


def test_without_values_rows_are_counted_by_their_number():
    theta = np.arange(1000) < 100
    got = selection_shares(theta)
    assert got.name == "row number, from 0"
    assert got.low[0] == 0
    assert got.high[-1] == 1000
    np.testing.assert_allclose(got.selected[got.low >= 100], 0)
    np.testing.assert_allclose(got.all_rows, (got.high - got.low) / 1000)


def test_nothing_selected_is_shown_as_nothing():
    got = selection_shares(np.zeros(50, dtype=bool), np.arange(50.0))
    assert got.n_selected == 0
    assert not got.selected.any()
    assert "the 0 selected" in words(selection(np.zeros(50, dtype=bool), np.arange(50.0)))


def test_the_rows_of_a_real_run():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    y[:100] += 2 * X[:100, 0]
    problem = mb.RidgeDistillation(X, y, X[:100], y[:100], budget=40, alpha=0.1)
    result = mb.relax_and_penalize(problem, seed=0, starts=1)
    got = selection_shares(result.theta, y, "target")
    assert got.n_selected == 40
    np.testing.assert_allclose(got.selected, by_hand(got, y[result.theta]))
    figure = selection(result.theta, y, "target")
    every, chosen = (patch.get_data() for patch in figure.axes[0].patches)
    np.testing.assert_allclose(every.values, 100 * got.all_rows)
    np.testing.assert_allclose(chosen.values, 100 * got.selected)
    assert_readable(figure)
    one, two = (svg_text(selection(result.theta, y, "target")) for _ in range(2))
    assert one == two


def test_a_long_name_is_wrapped():
    figure = selection(np.arange(100) % 2 == 0, np.arange(100.0), "a name of the target that goes on and on " * 4)
    assert_readable(figure)


class Shy:
    """An object that cannot be rendered."""

    def __repr__(self):
        raise RuntimeError("no repr")


def test_a_name_need_not_be_text():
    assert "7" in words(selection([1, 0], [1.0, 2.0], np.int64(7)))
    assert "a Shy" in words(selection([1, 0], [1.0, 2.0], Shy()))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.ones((2, 2)),), r"theta must be a mask of shape \(m,\)"),
        (([],), r"theta must be a mask of shape \(m,\)"),
        ((np.full(4, 0.5),), "theta must be binary, .* round it"),
        ((np.ones(4), [1, 2]), r"values must be an array of numbers of shape \(4,\), .* one number per row"),
        ((np.ones(2), [1, np.nan]), "values must be finite, got nan at index 1"),
        ((np.ones(2), ["a", "b"]), "values must be an array of numbers"),
    ],
)
def test_bad_selections_are_refused(args, message):
    with pytest.raises(InvalidInput, match=message):
        selection_shares(*args)
    # The figure calls its first argument "result".
    with pytest.raises(InvalidInput, match=message.replace("theta", "result")):
        plot.selection(*args)

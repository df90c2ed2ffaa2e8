"""The figure of a run and the distance alone: first what they show, then that it is drawn and can be read."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import mixbin as mb
from mixbin import plot
from mixbin.errors import InvalidInput
from mixbin.plot import distance_curve, trace_curves
from mixbin.plot.curves import number, thin, tick_label
from mixbin.plot.figure import new_figure, svg_text
from tests.instances import finite_sum, quadratic, readme_example
from tests.plot.texts import assert_readable, figures, words

distance = figures(plot.distance)
trace = figures(plot.trace)


@pytest.fixture(scope="module")
def penalised() -> mb.Result:
    return mb.relax_and_penalize(quadratic(mb.Budget(20, 6), 0, n_lam=1), seed=0, starts=3, search="path")


@pytest.fixture(scope="module")
def relaxed() -> mb.Result:
    return mb.relax_and_round(quadratic(mb.Budget(20, 6), 0), seed=0, starts=1, rounding=None)


def made_trace(G, **columns) -> mb.Trace:
    """A trace as long as G, with what else is given."""
    path = mb.Trace()
    for i, value in enumerate(G):
        row = {"start": 0, "phase": "relax", "n_evaluations": i + 1, "G": value}
        path.append(**row | {name: column[i] for name, column in columns.items()})
    return path


def test_curves_are_the_columns_of_one_start(penalised):
    got, frame = trace_curves(penalised, start=1), penalised.trace.to_frame()
    frame = frame[frame.start == 1]
    assert (got.start, got.n_starts, got.n_rows) == (1, 3, len(frame))
    np.testing.assert_array_equal(got.evaluations, frame.n_evaluations)
    np.testing.assert_array_equal(got.G, frame.G)
    assert got.phase.tolist() == frame.phase.tolist()
    outer = frame[frame.distance.notna()]
    np.testing.assert_array_equal(got.outer_evaluations, outer.n_evaluations)
    np.testing.assert_array_equal(got.distance, outer.distance)
    stage = frame[frame.phase == "penalise"]
    first = stage.groupby("epsilon", sort=False).first()
    np.testing.assert_array_equal(got.epsilon, [*first.index, stage.epsilon.iloc[-1]])
    np.testing.assert_array_equal(got.epsilon_evaluations, [*first.n_evaluations, stage.n_evaluations.iloc[-1]])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["penalise", "no relax", "top-k", "simple", None])
def test_the_start_that_won_is_shown(method, seed):
    """A callback sees which start passes through the answer; the random starts of a concave G end apart."""
    problem, seen = quadratic(mb.Budget(12, 4), seed, "concave"), {}

    def note(event: mb.Event) -> None:
        seen[event.start] = event.theta.copy()

    if method in ("penalise", "no relax"):
        first = method == "penalise"
        result = mb.relax_and_penalize(problem, starts=4, seed=seed, polish=False, relax_first=first, callbacks=[note])
    else:
        result = mb.relax_and_round(problem, starts=4, seed=seed, rounding=method, callbacks=[note])
    rounded = {"simple": problem.theta_set.round, None: lambda theta: theta}.get(method, problem.theta_set.vertex)
    winner = trace_curves(result).start
    np.testing.assert_allclose(rounded(seen[winner]).astype(float), result.theta.astype(float), atol=1e-9)


def test_the_winner_among_starts_that_end_alike_is_told_by_its_relaxed_value():
    path = mb.Trace()
    for start, relax in enumerate([3.0, 1.0, 2.0]):
        path.append(start=start, phase="relax", n_evaluations=start + 1, G=relax)
        path.append(start=start, phase="penalise", n_evaluations=start + 1, G=5.0)
    theta = np.array([True])
    result = mb.Result(theta, np.empty(0), 5.0, mb.Status.BINARY, "", 3, trace=path)
    assert trace_curves(result).start == 0
    assert trace_curves(replace(result, relaxed=mb.result.Relaxed(theta, np.empty(0), 1.0))).start == 1


def test_the_winner_of_a_relaxation_is_told_by_its_relaxed_value_alone():
    """Rounding changes G: the answer's value may be nearer to where another start ended."""
    path = mb.Trace()
    for start, relax in enumerate([1.0, 2.0]):
        path.append(start=start, phase="relax", n_evaluations=start + 1, G=relax)
    theta = np.array([True])
    relaxed = mb.result.Relaxed(theta, np.empty(0), 1.0)
    result = mb.Result(theta, np.empty(0), 2.1, mb.Status.REPAIRED, "", 2, relaxed=relaxed, trace=path)
    assert trace_curves(result).start == 0


def test_a_bare_trace_shows_the_start_that_ended_lowest(penalised):
    G, start = penalised.trace.column("G"), penalised.trace.column("start")
    lowest = int(np.argmin([G[start == i][-1] for i in range(3)]))
    assert trace_curves(penalised.trace).start == lowest


def test_without_a_penalty_there_is_no_eps(relaxed):
    got = trace_curves(relaxed)
    assert got.epsilon.size == got.epsilon_evaluations.size == 0
    np.testing.assert_array_equal(got.distance, [relaxed.trace.column("distance")[-1]])
    assert [axes.get_ylabel() for axes in trace(relaxed).axes] == ["G", "distance to binary"]


def test_missing_columns_leave_out_their_panels():
    path = mb.Trace()
    for i in range(3):
        path.append(phase="relax", n_evaluations=i, G=float(-i))
    figure = trace(path)
    assert trace_curves(path).start == 0
    assert [axes.get_ylabel() for axes in figure.axes] == ["G"]
    assert_readable(figure)


@pytest.mark.ci
def test_long_traces_are_thinned_to_their_ends_and_extremes():
    rng = np.random.default_rng(0)
    n = 100_000
    G = rng.normal(size=n).cumsum()
    G[51_234], G[77_777] = G.min() - 7, G.max() + 7
    phase = np.array(["relax"] * 60_000 + ["penalise"] * (n - 60_001) + ["polish"])
    epsilon = np.where(phase == "relax", np.inf, 1.0 / np.arange(1, n + 1))
    distance = np.where(np.arange(n) % 10 == 0, rng.random(n), np.nan)
    path = made_trace(G, phase=phase, epsilon=epsilon, distance=distance)
    got = trace_curves(path)
    assert got.n_rows == n
    for curve, ends in ((got.G, G), (got.epsilon, epsilon[phase == "penalise"]), (got.distance, distance[::10])):
        assert 1000 < curve.size <= 2000
        assert (curve[0], curve[-1]) == (ends[0], ends[-1])
        assert (curve.min(), curve.max()) == (ends.min(), ends.max())
    assert got.phase[-1] == "polish"
    np.testing.assert_array_equal(got.G, G[got.evaluations.astype(int) - 1])
    np.testing.assert_array_equal(got.phase, phase[got.evaluations.astype(int) - 1])
    assert {59_999 + 1, 60_000 + 1} <= set(got.evaluations.astype(int)), "the ends of a phase are kept"
    figure = trace(path)
    assert_readable(figure)
    assert len(svg_text(figure)) < 1e6


@pytest.mark.parametrize("n", [1, 2, 30, 31, 1000, 5000])
def test_thinning_keeps_ends_extremes_and_gaps(n):
    rng = np.random.default_rng(n)
    y = rng.normal(size=n)
    y[rng.random(n) < 0.02] = np.nan
    kept = thin(y, most=30)
    assert kept.size <= 30
    assert np.all(np.diff(kept) > 0)
    assert (kept[0], kept[-1]) == (0, n - 1)
    finite = y[np.isfinite(y)]
    if finite.size:
        assert (np.nanmin(y[kept]), np.nanmax(y[kept])) == (finite.min(), finite.max())
    assert np.isnan(y[kept]).any() == np.isnan(y).any()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((3,), "result must be a Result or a Trace, got 3; pass what relax_and_penalize"),
        ((mb.Trace(),), "result must have a trace .* enumerate_binary keeps no trace"),
        ((made_trace([np.nan, np.inf]),), "result must have a trace with evaluations and G"),
        ((made_trace([1.0, 2.0]), 1), r"start must be one of the starts with rows in the trace \(0\), got 1"),
        ((made_trace([1.0]), 0.5), "start must be a whole number of at least 0"),
    ],
)
def test_bad_traces_are_refused(args, message):
    with pytest.raises(InvalidInput, match=message):
        trace_curves(*args)


def test_a_run_without_a_trace_is_refused():
    with pytest.raises(InvalidInput, match="enumerate_binary keeps no trace"):
        trace(mb.enumerate_binary(quadratic(mb.Budget(6, 2), 0)))


def test_the_figure_shows_all_panels_and_phases(penalised):
    figure = trace(penalised, start=0)
    value, apart, eps = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["G", "distance to binary", "ε (log scale)"]
    assert eps.get_xlabel() == "evaluations of G"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["relax", "penalise", "lam", "polish"]
    looks = {(line.get_color(), line.get_marker()) for line in value.get_lines() if not line.get_label().startswith("_")}
    assert len(looks) == 4
    got = trace_curves(penalised, start=0)
    np.testing.assert_array_equal(apart.get_lines()[0].get_ydata(), got.distance)
    np.testing.assert_array_equal(eps.get_lines()[0].get_ydata(), got.epsilon)
    assert eps.get_yscale() == "log"
    assert "1/2" in words(figure)
    assert any(text.startswith("start 0, one of 3") for text in words(figure))
    # The path is one line: each phase begins where the one before ended.
    paths = [line.get_xydata() for line in value.get_lines() if line.get_label() in set(got.phase)]
    assert len(paths) == 4
    for before, after in pairwise(paths):
        np.testing.assert_array_equal(before[-1], after[0])
    np.testing.assert_array_equal(np.concatenate([paths[0], *(path[1:] for path in paths[1:])])[:, 1], got.G)
    assert_readable(figure)


@pytest.mark.parametrize(("place", "message"), [((0.1, 0.1), "overlap"), ((0.9, 0.5), "cut off")])
def test_unreadable_figures_are_noticed(place, message):
    figure = new_figure(3, 2)
    figure.text(0.1, 0.1, "a long text")
    figure.text(*place, "another one")
    with pytest.raises(AssertionError, match=message):
        assert_readable(figure)


def test_values_far_above_the_rest_are_left_out_and_counted():
    G = np.concatenate([[1000.0, 500.0], -1.0 - np.arange(98) / 97])
    figure = trace(made_trace(G))
    axes = figure.axes[0]
    low, high = axes.get_ylim()
    assert low < -2
    assert -1 < high < 0
    assert axes.get_title(loc="right") == "not shown: 2 points further up, to 1000"


def test_positive_values_over_decades_have_a_log_axis():
    axes = trace(made_trace(np.logspace(3, -2, 60))).axes[0]
    assert (axes.get_yscale(), axes.get_ylabel()) == ("log", "G (log scale)")


@pytest.mark.slow
@pytest.mark.parametrize(
    "G",
    [
        [1.0],
        [0.0, 0.0, 0.0],
        [1e12, 1e12 + 1, 1e12 + 2],
        [-1e-9, -2e-9, -3e-9],
        [1e300, -1e300],
        np.logspace(9, 5, 40).tolist(),
        [292.370001, 292.370002, 292.370003],
        [5.0, np.nan, 4.0],
    ],
)
def test_awkward_values_can_be_read(G):
    n = len(G)
    path = made_trace(
        G,
        n_evaluations=3_000_000 * np.arange(1, n + 1),
        phase=["penalise"] * n,
        epsilon=10.0 ** -np.arange(n),
        distance=np.linspace(0.5, 0, n),
    )
    figure = trace(path)
    assert len(figure.axes) == 3
    assert_readable(figure)


def test_stochastic_solvers_have_steps_within_an_evaluation():
    result = mb.relax_and_penalize(finite_sum(mb.Budget(10, 3), 0), solver="saga", seed=0, starts=1, max_outer=4)
    figure = trace(result)
    assert "penalise" in words(figure)
    assert_readable(figure)


def test_distance_curve_drops_what_was_not_looked_at(penalised):
    path = penalised.trace
    own = path.column("start") == 0
    steps, far = path.column("n_evaluations")[own], path.column("distance")[own]
    got = distance_curve(steps, far, "one start")
    np.testing.assert_array_equal(got.distance, far[~np.isnan(far)])
    np.testing.assert_array_equal(got.steps, steps[~np.isnan(far)])
    assert (got.title, got.xlabel, got.half) == ("one start", "evaluations of G", 0.5)
    figure = distance(got)
    axes = figure.axes[0]
    curve, half = axes.get_lines()
    np.testing.assert_array_equal(curve.get_ydata(), got.distance)
    np.testing.assert_array_equal(half.get_ydata(), [0.5, 0.5])
    assert half.get_linestyle() == ":"
    assert axes.get_ylim()[0] <= 0 < 1 <= axes.get_ylim()[1]
    assert axes.get_xlim()[0] <= 0
    assert {"one start", "evaluations of G", "1/2"} <= set(words(figure))


@pytest.mark.parametrize(
    ("steps", "far", "title", "unit"),
    [
        ([0], [0.5], "", "steps"),
        ([0, 30_000_000], [1, 0], "a title that goes on and on " * 4, "steps of the inner solver, all starts together " * 2),
        (np.arange(29_100), 0.5 * np.cos(np.arange(29_100)) ** 2, "costs $5 or $6", "iterations"),
    ],
)
def test_distances_can_be_read(steps, far, title, unit):
    figure = distance(distance_curve(steps, far, title, unit))
    assert_readable(figure)
    assert not title or " ".join(title.split()) in words(figure)


@pytest.mark.parametrize(
    ("steps", "far", "message"),
    [
        ([0, 1], [0.5], r"distance must be an array of numbers of shape \(2,\), one per step"),
        ([1, 0], [0.5, 0.5], "steps must be in ascending order"),
        ([0, 1], [0.5, 1.5], "distance must be numbers from 0 to 1"),
        ([0, 1], [np.nan, np.nan], "distance must be numbers from 0 to 1, at least one"),
        ([0, np.nan], [0, 0], "steps must be finite"),
        ([0, 1], ["a", "b"], "distance must be"),
    ],
)
def test_bad_distances_are_refused(steps, far, message):
    with pytest.raises(InvalidInput, match=message):
        distance_curve(steps, far)


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([0, 2500, 5000], ["0", "2500", "5000"]),
        ([0, 12_500, 25_000], ["0", "12,500", "25,000"]),
        ([1980, 1990], ["1980", "1990"]),
        ([0.05, 0.075, 0.1], ["0.05", "0.075", "0.1"]),
        ([-0.2, 0.1 - 0.1, 0.2], ["-0.2", "0", "0.2"]),
        ([1e7, 1.25e7], ["1e7", "1.25e7"]),
        ([2e-5, 4e-5], ["2e-5", "4e-5"]),
        ([1e12 + 1, 1e12 + 2], ["1.000000000001e12", "1.000000000002e12"]),
    ],
)
def test_ticks_have_the_digits_that_tell_them_apart(ticks, labels):
    assert [tick_label(value, np.array(ticks, dtype=float)) for value in ticks] == labels


def test_numbers_are_short():
    assert [number(value) for value in (0, 10, 0.05, 25_341.2, 3e7, 2.5e-5, -1.00144)] == [
        "0",
        "10",
        "0.05",
        "25,341",
        "3e7",
        "2.5e-5",
        "-1.001",
    ]


def test_functions_win_over_the_modules_of_their_names():
    code = (
        "import mixbin as mb, mixbin.plot.trace, mixbin.plot.selection, mixbin.plot.distance, mixbin.plot.evolution\n"
        "import mixbin.plot.structure\n"
        "names = ['trace', 'selection', 'distance', 'evolution', 'structure']\n"
        "print(all(callable(getattr(mb.plot, name)) for name in names), set(names) <= set(mb.plot.__all__))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_matplotlib_waits_until_something_is_drawn_and_pyplot_for_ever():
    code = (
        "import sys, numpy as np, mixbin as mb\n"
        "path = mb.Trace(); path.append(start=0, phase='relax', n_evaluations=1, G=1.0)\n"
        "mb.plot.trace_curves(path); mb.plot.selection_shares([1, 0]); curve = mb.plot.distance_curve([1], [0])\n"
        "print('matplotlib' in sys.modules)\n"
        "mb.plot.trace(path); mb.plot.selection([1, 0]); mb.plot.distance(curve)\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_the_winner_may_be_a_search_after_the_path():
    result = mb.relax_and_penalize(readme_example(), seed=0)
    assert trace_curves(result).start > 0
    assert trace_curves(result).G[-1] == pytest.approx(result.value)
    assert_readable(trace(result))

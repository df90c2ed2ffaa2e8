"""What a run shows: events, the display on a terminal, silence in a pipe, lines in the log."""

import io
import logging
import sys
import types

import numpy as np
import pytest
from rich.console import Console

import mixbin as mb
from mixbin.progress import _clock
from tests.instances import quadratic


def terminal(width=100):
    return Console(file=io.StringIO(), force_terminal=True, width=width)


def shown(console):
    return console.file.getvalue()


@pytest.mark.slow
def test_display_shows_stage_epsilon_value_distance_and_rate():
    console = terminal(200)
    display = mb.ProgressDisplay("rows", console)
    lines = []

    def keep(event):
        display(event)
        with console.capture() as got:
            console.print(display._line(event))
        lines.append(got.get())

    problem = quadratic(mb.Budget(30, 7), 0, "convex", n_lam=1)
    mb.relax_and_penalize(problem, search="path", seed=0, starts=2, callbacks=[keep, display])
    text = "".join(lines)
    for part in (
        "rows",
        "relaxing",
        "penalising",
        "tuning lam",
        "polishing",
        "start 2/2",
        "eps ",
        "G ",
        "distance ",
        "evals",
        "/s",
    ):
        assert part in text
    assert "polishing" in shown(console)
    assert display._live is None


def test_one_line_at_any_width():
    problem = quadratic(mb.Budget(30, 7), 0, "convex")
    events = []
    mb.relax_and_penalize(problem, seed=0, starts=1, callbacks=[events.append])
    for width in (20, 40, 80, 200):
        console = terminal(width)
        display = mb.ProgressDisplay("", console)
        for event in events:
            with console.capture() as got:
                console.print(display._line(event))
            assert got.get().count("\n") == 1


def test_display_is_silent_in_a_pipe():
    console = Console(file=io.StringIO(), force_terminal=False)
    mb.relax_and_penalize(quadratic(mb.Budget(10, 3), 0), seed=0, callbacks=[mb.ProgressDisplay(console=console)])
    assert shown(console) == ""


def test_display_is_taken_away_when_the_run_fails():
    console = terminal()
    display = mb.ProgressDisplay("", console)
    calls = []

    def G(theta):
        calls.append(1)
        return (np.nan if len(calls) > 10 else float(theta @ theta)), 2 * theta

    with pytest.raises(mb.DivergedError):
        mb.relax_and_penalize(mb.FunctionProblem(G, mb.Budget(10, 3)), seed=0, callbacks=[display])
    assert display._live is None


def test_events_tell_all_phases_in_order():
    problem = quadratic(mb.Budget(14, 5), 0, "convex", n_lam=1)
    seen = []
    result = mb.relax_and_penalize(problem, seed=0, starts=2, callbacks=[seen.append])
    assert [event.n_evaluations for event in seen] == sorted(event.n_evaluations for event in seen)
    first = [event.phase for event in seen if event.start == 0]
    assert sorted(set(first), key=first.index) == ["relax", "penalise", "lam", "polish"]
    assert {event.starts for event in seen} == {2}
    assert all(event.distance == 0 for event in seen if event.phase in ("lam", "polish"))
    assert seen[-1].n_evaluations <= result.n_evaluations
    assert len(seen) == len(result.trace)


def test_close_is_called_once_at_the_end():
    class Closing:
        closed = 0

        def __call__(self, event):
            assert not self.closed

        def close(self):
            self.closed += 1

    callback = Closing()
    mb.relax_and_penalize(quadratic(mb.Budget(10, 3), 0), seed=0, callbacks=[callback])
    assert callback.closed == 1


def test_an_error_in_a_callback_ends_the_run():
    def fail(event):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        mb.relax_and_penalize(quadratic(mb.Budget(10, 3), 0), seed=0, callbacks=[fail])


def test_outer_iterations_are_logged(caplog):
    with caplog.at_level(logging.INFO, logger="mixbin"):
        mb.relax_and_penalize(quadratic(mb.Budget(30, 7), 0, "convex"), seed=0, starts=1)
    assert any("penalise, outer iteration 0: eps" in message for message in caplog.messages)


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (61, "1:01"), (3_725, "1:02:05")])
def test_clock(seconds, text):
    assert _clock(seconds) == text


def test_a_notebook_gets_one_line_that_is_gone_at_the_end(monkeypatch):
    """By IPython's display, which is not needed to run the tests."""
    shown = []

    class Handle:
        def update(self, line):
            shown.append(line)

    def display(line, display_id):
        assert display_id
        shown.append(line)
        return Handle()

    module = types.ModuleType("IPython.display")
    module.HTML, module.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    console = Console(force_jupyter=True, file=io.StringIO())
    problem = mb.FunctionProblem(lambda v: (float(v @ v), 2 * v), mb.Budget(6, 2))
    mb.relax_and_penalize(problem, seed=0, callbacks=[mb.ProgressDisplay("<cities>", console=console)])
    assert shown[0].startswith("<pre>&lt;cities&gt;  ")
    assert " evals · " in shown[0]
    assert shown[-1] == ""
    assert console.file.getvalue() == ""


@pytest.mark.parametrize("text", ["data[/x]", "[bold]rows", "[/]", ":smile:"])
def test_label_and_note_are_no_markup(text):
    """rich reads square brackets as markup, and raises where a tag is closed that was never opened."""
    console = terminal(200)
    display = mb.ProgressDisplay(text, console, note=lambda: f"{text} read")
    mb.relax_and_penalize(quadratic(mb.Budget(6, 2), 0), seed=0, max_evaluations=5, callbacks=[display])
    assert text in shown(console)
    assert f"{text} read" in shown(console)


def test_label_stays_on_its_line():
    console = terminal(200)
    display = mb.ProgressDisplay("two\nlines\x1b[2J", console)
    mb.relax_and_penalize(quadratic(mb.Budget(6, 2), 0), seed=0, max_evaluations=5, callbacks=[display])
    assert "two lines" in shown(console)
    assert "\x1b[2J" not in shown(console)


@pytest.mark.parametrize(
    ("settings", "name"), [({"label": 3}, "label"), ({"console": "stderr"}, "console"), ({"note": "rows"}, "note")]
)
def test_bad_displays(settings, name):
    with pytest.raises(mb.InvalidInput, match=f"^{name} must be"):
        mb.ProgressDisplay(**settings)

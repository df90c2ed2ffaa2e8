"""``python -m benchmarks.rivals``: what a cell records, its limits, and the page that is made from the records."""

import dataclasses
import json
import time

import pytest
from benchmarks.rivals import page, runner
from benchmarks.rivals.cells import Cell, Family, Method, Quantity, run_cell, run_cells
from benchmarks.rivals.compare import findings

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
    record = record_of("busy")
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
        # Whatever stands in the list of methods, mixbin comes first: its time is the budget of others.
        assert [it["method"] for it in records[::5]] == ["mixbin"] * 4
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
    cells = [(Cell("made", "table", "5 %", 0, name), None) for name in methods]
    made = dataclasses.replace(family([]), methods=methods)
    assert [it["state"] for it in run_cells(made, cells, 10.0, jobs=2)] == ["ok", "ok"]


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

"""Tables from made records: what stands in a cell, what is said about orderings, and the figures drawn from records."""

import csv
import json
import statistics
from dataclasses import replace

import numpy as np
import pytest

from mixbin import plot
from mixbin.reproduction import figures, tables, writing
from mixbin.reproduction.job import FULL, QUICK
from mixbin.reproduction.plan import Plan
from mixbin.reproduction.published import Cell, published
from mixbin.reproduction.table import Entry

PLAN = Plan((), QUICK, "default", 3, None)


def structure(G, index=1.0, **more):
    return {"G": G, "test": G + 0.01, "error": 100 * G, "frobenius": 400 * G, "index": index, "lam": 0.02, **more}


def groups_record(job, shift=0.0, index=1.0):
    G = 0.04 + 0.001 * job.run + shift
    simple = structure(2 * G, 0.5, unassigned=job.run)
    return {
        "methods": {
            "oracle-r": structure(G),
            "relaxed": structure(0.9 * G, index),
            "simple": simple,
            "top-1": structure(G, index),
            "oracle-p": structure(G),
            "penalize": structure(G, index),
        },
        "outer": 9 + job.run,
        "status": "BINARY" if job.run else "REPAIRED",
        "seconds": {"penalize": 2.0 + job.run},
    }


def distilled(validation, selected):
    if validation is None:
        return {"validation": None, "test": None, "rmse": None, "selected": 0}
    return {"validation": validation, "test": validation - 90, "rmse": (2 * (validation - 90)) ** 0.5, "selected": selected}


def blog_record(job, penalize=290.0, simple=None):
    k = int(524 * int(job.setting))
    methods = {"relaxed": distilled(292.0, 100), "simple": distilled(simple, 50), "top-k": distilled(310.0 + job.run, k)}
    return {
        "budget": k,
        "methods": methods | {"penalize": distilled(penalize + 0.1 * job.run, k)},
        "outer": 8,
        "status": "BINARY",
        "seconds": {"penalize": 20.0},
    }


def records(make, **more):
    return lambda jobs: [make(job, **more) for job in jobs]


def row(table, *labels):
    return next(row for row in table.rows if row.labels == labels)


def test_a_cell_is_mean_and_sample_deviation_with_the_published_one_beside_it():
    entry = Entry((1.0, 2.0, 4.0), 2, Cell(3.5, 0.25, 2, False))
    assert entry.ours == f"2.33 ± {statistics.stdev([1, 2, 4]):.2f}"
    assert entry.theirs == "3.50 ± 0.25"
    assert Entry((1.0,), 3).ours == "1"
    assert Entry((1.25,), 1).ours == "1.2"
    assert Entry((7.0, 7.0), 1).ours == "7 ± 0"
    assert (Entry((), 2, otherwise="no row left").ours, Entry((), 2).theirs) == ("no row left", "-")


def test_table_1_has_validation_beside_the_published_figure_and_test_alone():
    table = tables.table1(PLAN, records(groups_record))
    assert table.columns == ("inequal 0.1", "inequal 0.3", "inequal 0.5", "random 0.1", "random 0.3", "random 0.5")
    got = row(table, "penalize", "validation").entries[3]
    assert got.values == (0.04, 0.041, 0.042)
    assert got.published == published()[1, "groups", "random 0.1", "penalize", "G"]
    assert row(table, "penalize", "test").entries[3].published is None
    assert {label for label, _ in (row.labels for row in table.rows)} == set(tables.STRUCTURES.values())


def test_table_2_has_both_norms():
    table = tables.table2(PLAN, records(groups_record))
    assert row(table, "simple", "spectral norm").entries[0].mean == pytest.approx(8.2)
    assert row(table, "simple", "Frobenius norm").entries[0].mean == pytest.approx(32.8)
    assert row(table, "simple", "adjusted Rand index").entries[0].mean == 0.5


def test_orderings_that_do_not_hold_are_told_with_the_reason():
    said = tables.table1(PLAN, records(groups_record)).findings
    # Published: penalize above top-1 at inequal 0.1 only; here both found the truth.
    (top,) = [it for it in said if "top-1" in it.published]
    assert top.where == "validation at inequal 0.1"
    assert "penalize and top-1 have the true structure in every run" in top.why
    assert not any("simple" in it.published for it in said)
    wrong = tables.table1(PLAN, records(groups_record, index=0.9)).findings
    assert all("true structure" not in it.why for it in wrong)


def test_an_ordering_without_a_reason_says_so():
    worse = tables.table3(replace(PLAN, budgets=("20",)), records(blog_record, penalize=400.0, simple=500.0))
    assert [(it.where, it.published, it.ours) for it in worse.findings] == [
        ("validation at blog 20 %", "penalize below top-k", "penalize is above top-k"),
        ("test at blog 20 %", "penalize below top-k", "penalize is above top-k"),
    ]
    assert {it.why for it in worse.findings} == {"not explained"}
    assert tables.table3(PLAN, records(blog_record)).findings == ()


def test_table_3_has_cardinalities_values_before_rounding_and_rows_that_are_gone():
    table = tables.table3(PLAN, records(blog_record))
    top, simple, penalize = (row(table, "blog", "20 %", "10,480", it).entries for it in ("top-k", "simple", "penalize"))
    assert [it.ours for it in top[:3]] == ["311.00 ± 1.00", "292 ± 0", "10,480 ± 0"]
    assert [it.ours for it in simple] == ["no row left", "292 ± 0", "0 ± 0", "no row left", "no row left"]
    assert (penalize[1].ours, penalize[1].published) == ("-", None)
    assert penalize[4].mean == pytest.approx(statistics.fmean((2 * (200 + 0.1 * r)) ** 0.5 for r in range(3)))
    assert top[2].published.mean == 10479


def test_music_is_published_figures_alone_and_the_excerpt_has_its_own_name():
    without = tables.table3(PLAN, records(blog_record))
    assert all(not it.values for it in row(without, "music", "10 %", "23,186", "penalize").entries)
    assert any("MIXBIN_DATA" in note for note in without.notes)
    excerpt = tables.table3(replace(PLAN, music="music-excerpt"), records(blog_record))
    named = [row for row in excerpt.rows if row.labels[0] == "music (excerpt: 7,000 random rows)"]
    assert len(named) == 9
    assert all(it.published is None for row in named for it in row.entries)
    whole = tables.table3(replace(PLAN, music="music"), records(blog_record))
    assert row(whole, "music", "10 %", "5,240", "penalize").entries[0].published.mean == 64.87
    assert not any("MIXBIN_DATA" in note for note in whole.notes)


def test_the_ablations_say_what_beta_does_here():
    groups = tables.table4(PLAN, records(groups_record))
    assert [row.labels for row in groups.rows] == [("0.1",), ("0.3",), ("0.5",), ("0.7",), ("0.9",)]
    assert row(groups, "0.5").entries[0].ours == "10.00 ± 1.00"
    assert {it.why.split(";")[0] for it in groups.findings} == {"every beta ends with the true structure"}
    blog = tables.table5(PLAN, records(blog_record))
    assert all(it.why.startswith("polishing evens out what beta does: the five betas lie within 0 %") for it in blog.findings)
    assert row(blog, "blog", "0.9").entries[1].published.mean == 296.77


def test_markdown_and_cells_have_every_number():
    table = tables.table3(PLAN, records(blog_record))
    text = table.markdown()
    assert "| blog | 10 % | 5,240 | penalize | 290.10 ± 0.10<br>*326.64 ± 23.61* |" in text
    cells = table.cells()
    assert len(cells) == len(table.rows) * len(table.columns)
    found = [it for it in cells if it["data"] == "blog" and it["budget"] == "10 %" and it["method"] == "penalize"]
    assert (found[0]["column"], found[0]["mean"], found[0]["runs"]) == ("validation loss", pytest.approx(290.1), 3)
    assert (found[0]["published_mean"], found[0]["published_sd"]) == (326.64, 23.61)


# Figures.

POINTS = [
    {
        "step": step,
        "validation": 300.0 - step,
        "test": 200.0,
        "selected": 5 * step,
        "integrality": 0.5,
        "distance": 1 - step / 10,
        "simple": {"selected": step, "validation": 1000.0 if step else None, "test": 450.0 if step else None},
        "top-k": {"selected": 40, "validation": 320.0, "test": 210.0},
    }
    for step in range(11)
]
FOUND = {
    "structures": {
        "true": [0, 0, 1, 1],
        "relaxed": [[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.5, 0.5]],
        "simple": [[0], [0], [1], []],
        "top-1": [[0], [0], [1], [0]],
        "penalize": [[0], [0], [1], [1]],
    },
    "distances": [{"step": i, "distance": 0.9 - 0.1 * i} for i in range(9)],
    "penalize_path": POINTS,
    "relax_path": POINTS,
    "budget": 40,
}


def figure(number):
    return figures.make(f"figure{number}", PLAN, lambda jobs: [FOUND for _ in jobs])


def test_figure_1_has_the_five_structures_in_the_order_of_the_true_one():
    maps = figure(1).data
    assert [it.title for it in maps] == ["true", "relaxed", "simple", "top-1", "penalize"]
    np.testing.assert_array_equal(maps[2].matrix, [[1, 0], [1, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(maps[0].matrix, maps[4].matrix)
    assert len(figure(1).draw().axes) == 6


@pytest.mark.parametrize(("number", "distances"), [(2, 0.9 - 0.1 * np.arange(9)), (3, 1 - np.arange(11) / 10)])
def test_figures_2_and_3_are_distances(number, distances):
    it = figure(number).data
    assert isinstance(it, plot.DistanceCurve)
    np.testing.assert_allclose(it.distance, distances)


@pytest.mark.parametrize(("number", "after", "selected"), [(4, 1000.0, 10), (5, 320.0, 40), (6, 290.0, 50)])
def test_figures_4_to_6_are_evolutions(number, after, selected):
    it = figure(number).data
    assert (it.validation_rounded[-1], it.n_selected[-1], it.budget) == (after, selected, 40)
    assert it.rounded is (number != 6)
    np.testing.assert_allclose(it.rmse, np.sqrt(2 * it.test_rounded))
    assert np.isnan(it.validation_rounded[0]) == (number == 4)


# Files.


def test_every_file_says_what_it_was(tmp_path):
    plan = replace(PLAN, size=replace(FULL, steps=2_000), solver="paper")
    said = writing.about(plan, "mixbin reproduce all --full", 12.3)
    made = [tables.table3(plan, records(blog_record)), tables.table4(plan, records(groups_record))]
    files = writing.write(tmp_path, said, made, [figure(2), figure(4)])
    assert {file.name for file in tmp_path.iterdir()} == set(files)
    for name in ("README.md", "table3.md", "table4.md"):
        text = (tmp_path / name).read_text()
        for part in ("mixbin reproduce all --full", "the published sizes", "SHORTENED to 2,000 steps", "seeds 0 to 2", " cores"):
            assert part in text
        assert "numpy " in text
    data = json.loads((tmp_path / "results.json").read_text())
    assert data["about"]["seeds"] == {"groups": [0, 1, 2], "distillation": [0, 1, 2]}
    assert data["figures"][1]["data"]["validation_rounded"][0] is None
    with (tmp_path / "table3.csv").open() as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == len(made[0].cells())
    assert {(it["size"], it["solver"][:5]) for it in cells} == {("full", "paper")}
    assert "mixbin reproduce all --full" in (tmp_path / "figure4.svg").read_text()
    assert (tmp_path / "figure4.svg").read_text().lstrip().startswith("<?xml")

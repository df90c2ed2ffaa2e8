"""The published cells against the LaTeX source of the paper, parsed here anew, and the names of tables and figures."""

import csv
import math
import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import chain, repeat

import numpy as np
import pytest

from mixbin.errors import InvalidInput
from mixbin.reproduction.published import LABELS, Cell, Key, canonical, cell, published, remarks
from tests.shared_data import DATA

PAPER = DATA.parent / "paper" / "relax-and-penalize.tex"
PRINTED = ["table1", "table2", "table3", "table4", "table5", "figure1", "figure2", "figure3", "figure4", "figure5", "figure6"]
COUNTS = {1: 36, 2: 36, 3: 90, 4: 15, 5: 40}

# The paper, table by table: rows of Printed, numbers still text.

Printed = tuple[Key, str, str, bool]
NUMBER = r"\d+(?:\.\d+)?"
MEASURED = re.compile(rf"({NUMBER}) \\pm ({NUMBER})(?: \(({NUMBER}) \\pm ({NUMBER})\))?")
HEADS = {
    r"$\ell^{\text{val}}$": "validation",
    r"$\ell^{\text{test}}$": "test",
    r"$\left|D^{\text{train}}_{\text{syn}}\right|$": "selected",
    "RMSE": "rmse",
    "outer iter": "outer",
    r"$G(\lambda^{p},\theta^{p})$": "G",
    r"$\norm{w(\lambda^{p},\theta^{p}) - w^\star}_F$": "error",
}
STRUCTURES = {
    (r"\lambda^{r}", r"\theta^\star"): "oracle-r",
    (r"\lambda^{r}", r"\theta^{r}"): "relaxed",
    (r"\lambda^{r}", r"\bar\theta^{s}"): "simple",
    (r"\lambda^{r}", r"\bar\theta^{\text{top}}"): "top-1",
    (r"\lambda^{p}", r"\theta^\star"): "oracle-p",
    (r"\lambda^{p}", r"\theta^{p}"): "penalize",
}


def lines(source: str, label: str) -> list[list[str]]:
    """The rows of a table, heads included, each a list of cells."""
    body = source.split(rf"\label{{tab:{label}}}")[1].split(r"\end{NiceTabular}")[0].split(r"\begin{NiceTabular}")[1]
    body = re.sub(r"^\{.*\}\n", "", body)
    body = re.sub(r"\\(?:midrule|bottomrule|cmidrule\(lr\)\{\d-\d\})", "", body)
    rows = [[" ".join(entry.split()) for entry in line.split("&")] for line in body.split(r"\\")]
    return [row for row in rows if row != [""]]


def spanning(row: list[str]) -> list[str]:
    """A row of ``multicolumn`` heads, one entry a column."""
    heads = [re.fullmatch(r"\\multicolumn\{(\d)\}\{c\}\{(?:\\emph\{(\w+)\}|(\w+))\}", entry).groups() for entry in row[1:]]
    return list(chain.from_iterable(repeat((name or shouted).lower(), int(width)) for width, name, shouted in heads))


def measured(key: Key, entry: str) -> Iterator[Printed]:
    """The cell, and the relaxed one in brackets beside it; nothing in ``entry`` may stay unread."""
    plain = re.sub(r"\\pmb\{(.*)\}", r"\1", entry.replace("$", ""))
    mean, sd, relaxed, relaxed_sd = MEASURED.fullmatch(plain).groups()
    bold = r"\pmb" in entry
    yield key, mean, sd, bold
    if relaxed is not None:
        assert key.quantity == "validation"
        yield key._replace(quantity="relaxed"), relaxed, relaxed_sd, bold


def structures(source: str, table: int, label: str, quantity: str) -> Iterator[Printed]:
    sizes, values, *rows = lines(source, label)
    for head, *entries in rows:
        arguments = re.search(r"\((.*?)\)", head).group(1).replace(r"\bar ", r"\bar").replace(r"^{\star}", r"^\star")
        method = STRUCTURES[tuple(arguments.split(","))]
        for size, value, entry in zip(spanning(sizes), values[1:], entries, strict=True):
            yield from measured(Key(table, "groups", f"{size} {value}", method, quantity), entry)


def distillation(source: str) -> Iterator[Printed]:
    heads, *rows = lines(source, "table3")
    dataset = percent = ""
    for name, share, tau, method, *entries in rows:
        if share != "~":
            dataset = dataset if name == "~" else re.fullmatch(r"\\emph\{(\w+)\}", name).group(1)
            percent = share
            yield Key(3, dataset, percent, "budget", "tau"), tau, "", False
        else:
            assert (name, tau) == ("~", "~")
        for head, entry in zip(heads[4:], entries, strict=True):
            yield from measured(Key(3, dataset, percent, method, HEADS[head]), entry)


def ablation(source: str, table: int) -> Iterator[Printed]:
    rows = lines(source, {4: "table11", 5: "table12"}[table])
    datasets = spanning(rows.pop(0)) if table == 5 else ["groups"] * 3
    setting = {4: "inequal 0.3", 5: "20"}[table]
    heads, *rows = rows
    for beta, *entries in rows:
        method = "beta " + re.fullmatch(rf"(?:\$\\pmb\{{)?({NUMBER})(?:\}}\$)?", beta).group(1)
        for dataset, head, entry in zip(datasets, heads[1:], entries, strict=True):
            yield from measured(Key(table, dataset, setting, method, HEADS[head]), entry)


@pytest.fixture(scope="module")
def paper() -> str:
    if not PAPER.is_file():
        pytest.skip(f"needs {PAPER.name} in ../shared/paper, which is not part of the repository")
    return PAPER.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def source(paper) -> list[Printed]:
    return [
        *structures(paper, 1, "table1", "G"),
        *structures(paper, 2, "table2", "error"),
        *distillation(paper),
        *ablation(paper, 4),
        *ablation(paper, 5),
    ]


@pytest.fixture(scope="module")
def kept() -> list[Printed]:
    rows = list(csv.reader((files("mixbin.reproduction") / "published.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0] == [*Key._fields, "mean", "sd", "bold"]
    assert {row[-1] for row in rows[1:]} == {"0", "1"}
    return [(Key(int(row[0]), *row[1:5]), row[5], row[6], row[7] == "1") for row in rows[1:]]


@pytest.mark.parametrize("table", COUNTS)
def test_every_cell_is_kept_as_printed_and_no_other(source, kept, table):
    ours, theirs = (sorted(row for row in rows if row[0].table == table) for rows in (kept, source))
    assert len(theirs) == COUNTS[table]
    assert ours == theirs


def test_the_source_holds_no_deviation_that_was_not_parsed(paper, source):
    labels = [label.removeprefix("tab:") for label in LABELS if label.startswith("tab:")]
    deviations = sum(len(re.findall(r"\\pm\b", entry)) for label in labels for row in lines(paper, label) for entry in row)
    assert deviations == sum(sd != "" for _, _, sd, _ in source) == sum(COUNTS.values()) - 6


# The reader.


def test_the_reader_loses_nothing(kept):
    assert list(published()) == [key for key, *_ in kept]
    for key, mean, sd, bold in kept:
        got = published()[key]
        assert f"{got.mean:.{got.decimals}f}" == mean
        assert ("" if got.sd is None else f"{got.sd:.2f}") == sd
        assert got.bold is bold


def test_it_is_read_once_and_cannot_be_changed():
    assert published() is published()
    with pytest.raises(TypeError):
        published()[Key(1, "groups", "inequal 0.1", "relaxed", "G")] = Cell(0.0, 0.0, 2, False)


def test_one_cell():
    assert cell(5, "blog", "20", "beta 0.1", "outer") == Cell(15.2, 0.45, 1, False)
    assert cell(3, "blog", "20", "budget", "tau") == Cell(10479.0, None, 0, False)
    assert cell(3, "blog", "30", "penalize", "test") == Cell(247.87, 1.11, 2, True)
    assert cell(3, "blog", "20", "penalize", "relaxed") is None
    assert cell(4, "groups", "inequal 0.5", "beta 0.5", "G") is None


# The figures once more, typed from the paper independently of published.csv.

COLUMNS = ["inequal 0.1", "inequal 0.3", "inequal 0.5", "random 0.1", "random 0.3", "random 0.5"]


@pytest.mark.parametrize(
    ("table", "method", "quantity", "means"),
    [
        (1, "oracle-r", "G", [0.04, 0.05, 0.06, 0.06, 0.07, 0.09]),
        (1, "simple", "G", [0.06, 0.05, 0.06, 0.12, 0.09, 0.14]),
        (1, "penalize", "G", [0.05, 0.05, 0.06, 0.05, 0.06, 0.07]),
        (2, "oracle-r", "error", [4.20, 5.24, 4.67, 5.34, 5.96, 6.69]),
        (2, "relaxed", "error", [4.73, 5.64, 5.13, 5.50, 6.10, 6.86]),
        (2, "simple", "error", [7.93, 5.99, 6.63, 11.17, 9.17, 11.95]),
        (2, "top-1", "error", [5.10, 5.99, 5.40, 5.93, 6.50, 7.18]),
        (2, "oracle-p", "error", [4.20, 5.32, 4.69, 5.33, 5.92, 6.75]),
        (2, "penalize", "error", [5.15, 6.04, 5.54, 5.94, 6.57, 7.17]),
    ],
)
def test_groups_against_a_second_copy(table, method, quantity, means):
    assert [cell(table, "groups", column, method, quantity).mean for column in COLUMNS] == means


@pytest.mark.parametrize(
    ("dataset", "percent", "tau", "simple", "top_k", "penalize", "relaxed"),
    [
        ("music", "10", 23186, (126.85, 128.61, 16.04), (65.60, 67.02, 11.58), (64.87, 65.96, 11.49), 58.57),
        ("music", "20", 46371, (84.84, 86.19, 13.13), (54.61, 55.82, 10.57), (54.20, 55.45, 10.53), 53.37),
        ("music", "30", 69557, (64.91, 66.15, 11.50), (50.71, 51.91, 10.19), (50.52, 51.69, 10.17), 50.93),
        ("blog", "10", 5240, (2890.77, 3048.34, 78.02), (373.36, 287.98, 24.00), (326.64, 217.87, 20.87), 297.17),
        ("blog", "20", 10479, (2209.31, 2283.30, 67.57), (306.08, 219.44, 20.95), (296.77, 207.90, 20.39), 292.37),
        ("blog", "30", 15719, (13972.08, 15134.38, 156.81), (360.31, 297.70, 24.23), (352.68, 247.87, 22.27), 327.78),
    ],
)
def test_distillation_against_a_second_copy(dataset, percent, tau, simple, top_k, penalize, relaxed):
    for method, means in (("simple", simple), ("top-k", top_k), ("penalize", penalize)):
        assert tuple(cell(3, dataset, percent, method, what).mean for what in ("validation", "test", "rmse")) == means
    assert cell(3, dataset, percent, "simple", "relaxed").mean == cell(3, dataset, percent, "top-k", "relaxed").mean == relaxed
    assert cell(3, dataset, percent, "budget", "tau").mean == tau
    assert cell(3, dataset, percent, "penalize", "selected").mean == cell(3, dataset, percent, "top-k", "selected").mean == tau


# Names.


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *zip(PRINTED, PRINTED, strict=True),
        *LABELS.items(),
        ("table11", "table4"),
        ("table12", "table5"),
        ("tab:table11", "table4"),
        ("fig:1", "figure1"),
        ("fig:12", "figure2"),
        ("fig:11", "figure3"),
        ("fig:2", "figure4"),
        ("fig:3", "figure5"),
        ("fig:4", "figure6"),
        ("Table3", "table3"),
        ("TAB:Table12", "table5"),
        ("Fig:2", "figure4"),
        ("FIGURE2", "figure2"),
    ],
)
def test_names_and_labels_lead_to_the_printed_number(name, number):
    assert canonical(name) == number


def test_labels_are_numbered_in_the_order_of_the_source(paper):
    found = re.findall(r"\\label\{((?:tab|fig):\w+)\}", paper)
    for kind in ("table", "figure"):
        labels = [label for label in found if label.startswith(kind[:3])]
        assert [LABELS[label] for label in labels] == [name for name in PRINTED if name.startswith(kind)]


@pytest.mark.parametrize("name", ["tabel3", "table6", "figure7", "fig:5", "tab:table4", "fig1", "", 3, None])
def test_an_unknown_name_is_refused_with_the_choices(name):
    with pytest.raises(InvalidInput) as info:
        canonical(name)
    assert str(info.value).startswith("what must be one of table1, table2,")
    for part in (repr(name), *PRINTED, *LABELS):
        assert part in str(info.value)


# Remarks: what they say of the figures holds.


def test_remarks_belong_to_a_printed_table():
    assert all(remarks(table) and all(remark.endswith(".") for remark in remarks(table)) for table in COUNTS)
    for bad in (0, 6, "table1", True):
        with pytest.raises(InvalidInput, match=re.escape(f"table must be a whole number from 1 to 5, got {bad!r}")):
            remarks(bad)


def text(table: int) -> str:
    return " ".join(remarks(table))


def test_remarks_of_groups_are_borne_out():
    assert "test error" in text(1)
    assert "Frobenius" in text(2)
    assert "swapped" in text(2)
    for column, mean in (("inequal 0.3", 0.05), ("inequal 0.5", 0.06)):
        simple, best = cell(1, "groups", column, "simple", "G"), cell(1, "groups", column, "penalize", "G")
        assert simple.mean == best.mean == mean
        assert best.bold
        assert not simple.bold
    outer = cell(4, "groups", "inequal 0.3", "beta 0.1", "outer")
    assert (round(np.mean([4, 4, 5]), 2), round(np.std([4, 4, 5], ddof=1), 2)) == (outer.mean, outer.sd)
    at_03, at_05 = (cell(2, "groups", column, "penalize", "error").mean for column in ("inequal 0.3", "inequal 0.5"))
    assert cell(4, "groups", "inequal 0.3", "beta 0.5", "error").mean == at_05 != at_03
    assert f"prints {at_03:.2f} for inequal 0.3 and this {at_05:.2f} for inequal 0.5" in text(4)


def test_remarks_of_distillation_are_borne_out():
    # One run a away from four equal ones has mean + a/5 and deviation a/sqrt(5).
    selected = cell(3, "blog", "30", "simple", "selected")
    away = selected.sd * math.sqrt(5)
    assert 0.98 * 52_397 < selected.mean + away * 4 / 5 < 52_397
    assert "one of the five runs" in text(3)
    assert cell(3, "music", "30", "top-k", "validation").mean < cell(3, "music", "30", "top-k", "relaxed").mean

    outer = cell(5, "music", "20", "beta 0.1", "outer")
    assert (round(np.mean([14, 14, 14, 14, 15]), 1), round(np.std([14, 14, 14, 14, 15], ddof=1), 2)) == (outer.mean, outer.sd)
    odd = [key for key, c in published().items() if (key.table, key.quantity) == (5, "outer") and round(c.mean * 10) % 2]
    assert odd == [Key(5, "blog", "20", "beta 0.9", "outer")]
    here, there = cell(5, "blog", "20", "beta 0.9", "validation"), cell(3, "blog", "20", "penalize", "validation")
    assert here.mean == there.mean
    assert f"({here.sd} for the validation loss)" in text(5)
    assert f"({there.sd})" in text(5)
    table3 = [cell(3, "music", "20", "penalize", quantity).mean for quantity in ("validation", "test")]
    table5 = [cell(5, "music", "20", "beta 0.9", quantity).mean for quantity in ("validation", "test")]
    assert "prints {:.2f} and {:.2f} instead of {:.2f} and {:.2f}".format(*table3, *table5) in text(5)

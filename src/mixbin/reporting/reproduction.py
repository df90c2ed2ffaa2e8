"""The page of a reproduction: all tables, with the published numbers below ours, all figures, and what does not agree."""

from functools import partial
from pathlib import Path

import numpy as np

from mixbin.plot import DistanceCurve, Evolution
from mixbin.reporting.blocks import Block, Cell, Facts, Grid, Page, Point, Points, Prose, Section, Shell
from mixbin.reporting.figures import Drawings
from mixbin.reproduction.distillation import ABLATED
from mixbin.reproduction.figures import Figure
from mixbin.reproduction.job import Record
from mixbin.reproduction.published import cell
from mixbin.reproduction.reading import read
from mixbin.reproduction.table import Entry, Table

SAID = {
    1: "The published figure has the same five maps, for one draw of the data.",
    2: "Published: the distance over some 30,000 steps, at the end of which the structure is binary.",
    3: "Published: the distance over some 30,000 steps, at the end of which the selection is binary.",
    4: "The paper says of it: losses rise by rounding; the rows that are kept grow, but stay well below the budget; the "
    "integrality stays at 0.5, so no binary answer is found.",
    5: "The paper says of it: losses rise by rounding; the integrality stays at 0.5, so no binary answer is found without it.",
    6: "The paper says of it: the losses rise after 25,000 steps, when the penalty weighs more; there the selection becomes "
    "binary and uses the whole budget.",
}
"""What is known about the published figures. The paper gives no numbers for them beyond those of its tables."""
METHODS = {4: "simple", 5: "top-k", 6: "penalize"}
ENDS = {
    "validation loss, before rounding": ("validation", "relaxed", 2),
    "validation loss": ("validation_rounded", "validation", 2),
    "rows kept": ("n_selected", "selected", 0),
    "test loss": ("test_rounded", "test", 2),
    "RMSE on the test rows": ("rmse", "rmse", 2),
}
"""For each label: the curve of our figure, the column of table 3 that holds its published end, and the decimals."""


def page(folder: Path) -> Page:
    """The page of the reproduction in a folder."""
    about, tables, figures = read(folder)
    differing = sum(len(table.findings) for table in tables)
    compared = sum(
        entry.published is not None and bool(entry.values) for it in tables for row in it.rows for entry in row.entries
    )
    return Page(
        title="Relax and penalize, reproduced",
        subtitle=answer(tables, compared, differing),
        kind="Reproduction",
        sections=partial(sections, about, tables, figures),
        tiles={
            "tables": f"{len(tables)} of 5",
            "figures": f"{len(figures)} of 6",
            "cells beside published ones": f"{compared:,}",
            "orderings that differ": f"{differing:,}",
        },
    )


def sections(about: Record, tables: list[Table], figures: list[Figure]) -> list[Section]:
    """The sections of the page, below its head."""
    drawings = Drawings()
    names = [f"Table {it.number}" for it in tables] + [f"Figure {it.number}" for it in figures]
    return [
        Section("What was asked", [Prose([f"{', '.join(names)}, size {about['size']}. Solver: {about['solver']}."])]),
        *(Section(f"Table {it.number}: {it.title}", table(it)) for it in tables),
        *(Section(f"Figure {it.number}: {it.title}", figure(it, drawings)) for it in figures),
        Section("Make it again", origin(about)),
    ]


def answer(tables: list[Table], compared: int, differing: int) -> str:
    """How many cells stand beside published ones, and how many published orderings do not hold."""
    if not tables:
        return "Figures alone; tables would stand beside the published ones."
    held = (
        "All orderings of the published tables hold here."
        if differing == 0
        else f"{differing} orderings of the published tables do not hold here; each is listed with its reason."
    )
    return f"{compared:,} cells stand above the published ones. {held}"


def table(it: Table) -> list[Block]:
    """A table with our numbers above the published ones, the orderings that differ, and the notes about it."""
    last: tuple[str, ...] = ()
    rows = []
    for row in it.rows:
        rows.append([*map(Cell, row.labels_below(last)), *map(_cell, row.entries)])
        last = row.labels
    blocks: list[Block] = [
        Grid([*it.heads, *it.columns], rows, labels=len(it.heads)),
        Prose(["Ours, and below it in small letters the published figure; mean ± standard deviation over the runs."], muted=True),
    ]
    if it.findings:
        points = [
            Point(f"{found.ours}: {found.why}.", f"{found.where}: published {found.published}", "open") for found in it.findings
        ]
        blocks += [Prose(["Orderings of the published table that do not hold here:"]), Points(points)]
    said = [Point(note) for note in it.notes] + [Point(remark, "Of the published table") for remark in it.remarks]
    return [*blocks, Points(said)]


def _cell(entry: Entry) -> Cell:
    return Cell(entry.ours, entry.theirs if entry.published is not None else "")


def figure(it: Figure, drawings: Drawings) -> list[Block]:
    """A figure drawn from our data, with what the paper says about its own figure as caption."""
    caption = " ".join([SAID[it.number], *it.remarks])
    if isinstance(it.data, Evolution):
        return [drawings.curves(it.draw(), caption), ends(it.data, METHODS[it.number])]
    if isinstance(it.data, DistanceCurve):
        return [drawings.curves(it.draw(), caption)]
    return [drawings.structures(it.data, caption)]


def ends(it: Evolution, method: str) -> Grid:
    """The last values of our curves, above those that table 3 of the paper prints."""
    shown = {name: place for name, place in ENDS.items() if it.rounded or place[1] != "relaxed"}
    cells = []
    for name, quantity, decimals in shown.values():
        last = float(getattr(it, name)[-1])
        entry = Entry((last,) if np.isfinite(last) else (), decimals, cell(3, "blog", ABLATED, method, quantity))
        cells.append(_cell(entry))
    return Grid(["at the end", *shown], [[Cell(method), *cells]])


def origin(about: Record) -> list[Block]:
    """The command, the settings and the versions."""
    runs = "; ".join(
        f"{name}: {n} per setting, seed{'s' if n > 1 else ''} {', '.join(map(str, about['seeds'][name]))}"
        for name, n in about["runs"].items()
    )
    facts = {
        "size": about["size"],
        "solver": about["solver"],
        "runs": runs,
        "music": about["music"],
        "versions": ", ".join(f"{name} {number}" for name, number in about["versions"].items()),
        "machine": about["machine"],
        "time": f"{about['seconds']:,.0f} seconds of runs, added up",
    }
    return [
        Prose(["The command; runs that are in its folder are not computed again:"]),
        Shell(about["command"]),
        Facts(facts | ({"finished": about["finished"]} if "finished" in about else {})),
    ]

"""The page of ``mixbin labels``: the doubtful rows first, then why, and what to do about them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mixbin.reporting.blocks import (
    Block,
    Cell,
    Grid,
    Heat,
    Listing,
    Page,
    Picture,
    Pictures,
    Point,
    Points,
    Prose,
    Section,
    Text,
    isolated,
    isolating,
)
from mixbin.reporting.figures import Drawings
from mixbin.reporting.pictures import grey_pngs
from mixbin.reporting.record import Record
from mixbin.reporting.runs import Column, Run, how_read, origin_section, shown
from mixbin.studies.distillation.page import MOST_ROWS, that_fit
from mixbin.studies.labels.words import verdict

MOST_PICTURES = 60
MOST_CLASSES = 30
"""The heat map shows at most this many classes, those that lose or gain most."""


def page(run: Run, columns: Mapping[str, Column], explained: Sequence[str]) -> Page:
    """The page of a run."""
    record, facts = run.record, run.record.facts
    name, main = Path(facts["train"]).name, run.record.main
    tiles = {
        "doubtful labels": f"{facts['suspects']:,}",
        "of all": f"{100 * facts['suspects'] / facts['rows']:.3g}\N{NO-BREAK SPACE}%",
        "rows kept": f"{main.numbers['rows']:,}",
    }
    if main.numbers.get("test_accuracy") is not None:
        tiles["test accuracy"] = f"{main.numbers['test_accuracy']:.4g}"

    def sections() -> list[Section]:
        asked = record.asked.removeprefix("The task: ")
        return [
            Section("The doubtful labels", _doubtful(run)),
            *_pictures(run),
            Section("What to do now", [Points(_advice(facts))]),
            Section("Which classes are confused", _confusion(facts)),
            Section("Rows of each class", [_counts(facts)]),
            Section("How good the labels are", [Drawings().quality(facts["quality"])]),
            Section("Does it help to drop them?", _comparison(record, columns, explained)),
            Section(
                "What was asked",
                [Prose([isolating(asked[:1].upper() + asked[1:], repr(facts["target"]), name), *how_read(facts)])],
            ),
            origin_section(record, _settings(facts)),
        ]

    title = Markup("{} of {} labels of {} are doubtful").format(f"{facts['suspects']:,}", f"{facts['rows']:,}", isolated(name))
    return Page(title=title, subtitle=verdict(facts), kind="Label cleaning", sections=sections, tiles=tiles)


def _doubtful(run: Run) -> list[Block]:
    """The ranked list, as much of it as a page can hold."""
    columns, rows = run.table("suspects.csv", MOST_ROWS)
    total, few = run.record.facts["suspects"], that_fit(rows)
    if not total:
        return [Prose(["No label is doubtful."])]
    # Quality has 16 digits in the file; nobody reads more than four.
    listed = [[*row[:3], f"{float(row[3]):.4f}", *row[4:]] for row in few]
    note: Text = "Most doubtful first. Rows count from 0, as in the file; quality runs from 0 to 1."
    if len(few) < total:
        note += Markup(' The first {} of {} stand here; all are in <a href="suspects.csv">suspects.csv</a>.').format(
            f"{len(few):,}", f"{total:,}"
        )
    return [Listing(columns, listed, "suspects.csv", "rows", note=note)]


def _pictures(run: Run) -> list[Section]:
    """The most doubtful rows as pictures, where the columns form some."""
    size = run.record.facts["image"]
    if size is None or not run.record.facts["suspects"]:
        return []
    columns, rows = run.table("suspects.csv", MOST_PICTURES)
    model = run.json("model.json")
    places = [4 + columns[4:].index(name) for name in model["features"]]
    images = grey_pngs([[float(row[place].replace(",", ".")) for place in places] for row in rows], size[0], size[1])
    pictures = [
        Picture(image, Markup("{} \N{RIGHTWARDS ARROW} {}").format(isolated(row[1]), isolated(row[2])), f"row {row[0]}")
        for row, image in zip(rows, images, strict=True)
    ]
    note = f"The {len(rows):,} most doubtful rows: label \N{RIGHTWARDS ARROW} suggested label."
    return [Section("How they look", [Pictures(pictures), Prose([note], muted=True)])]


def _advice(facts: Mapping[str, Any]) -> list[Point]:
    if not facts["suspects"]:
        return [Point("Train on all rows.", "Nothing")]
    found = facts["guard"]
    dropped = found is not None and found["accepted"]
    return [
        Point("Look at the first rows of the list, and correct in your own table what is wrong. This is worth most.", "Relabel"),
        Point(
            "Train on clean.csv, which leaves the doubtful rows out."
            if dropped
            else "clean.csv holds all rows: whether dropping the doubtful ones helps is not sure. --no-guard drops them.",
            "Drop",
        ),
        Point(
            "Pass the column quality of quality.csv as sample_weight to a model: doubtful rows then count less.",
            "Weight",
        ),
        Point("A few hundred rows that you have checked, given as --trusted, make the next list better.", "Trust"),
    ]


def _confusion(facts: Mapping[str, Any]) -> list[Block]:
    """Doubtful labels by given and suggested class."""
    confusion, classes = facts["confusion"], facts["classes"]
    moved = [
        sum(confusion[k]) - confusion[k][k] + sum(row[k] for i, row in enumerate(confusion) if i != k)
        for k in range(len(classes))
    ]
    chosen = sorted(sorted(range(len(classes)), key=lambda k: (-moved[k], k))[:MOST_CLASSES])
    most = max([confusion[i][j] for i in chosen for j in chosen if i != j], default=0)
    rows = [
        [("" if i == j else f"{confusion[i][j]:,}", 0.0 if i == j or not most else confusion[i][j] / most) for j in chosen]
        for i in chosen
    ]
    said = "Lines are the labels as they are, columns the labels suggested instead; numbers count doubtful rows."
    if len(chosen) < len(classes):
        said += f" The {len(chosen)} of {len(classes):,} classes with the most doubtful rows."
    names = [isolated(str(classes[k])) for k in chosen]
    return [Heat(names, rows), Prose([said], muted=True)]


def _counts(facts: Mapping[str, Any]) -> Grid:
    confusion = facts["confusion"]
    rows = []
    for k, name in enumerate(facts["classes"]):
        away = sum(confusion[k]) - confusion[k][k]
        towards = sum(row[k] for i, row in enumerate(confusion) if i != k)
        numbers = (facts["labelled"][k], away, towards, facts["kept"][k])
        rows.append([Cell(isolated(str(name))), *(Cell(f"{number:,}") for number in numbers)])
    return Grid(["class", "rows before", "doubtful", "suggested for", "rows after"], rows)


def _comparison(record: Record, columns: Mapping[str, Column], explained: Sequence[str]) -> list[Block]:
    kept = shown(columns, record)
    rows = [
        [Cell(line.method), *(Cell(it.text(line.numbers.get(key), "none")) for key, it in kept.items())] for line in record.lines
    ]
    heads = ["trained on", *(it.head for it in kept.values())]
    how = [Prose([it[:1].upper() + it[1:] for it in explained], muted=True)] if explained else []
    return [Prose([verdict(record.facts)]), Grid(heads, rows, strong=len(rows) - 1), *how]


def _settings(facts: Mapping[str, Any]) -> dict[str, Text]:
    trusted, test = facts["trusted_rows"], facts["test_rows"]
    return {
        "table": isolated(facts["train"]),
        "labels": isolated(facts["target"]),
        "features": f"{facts['features']:,}",
        "rows": f"{facts['rows']:,}",
        "trusted rows": "none" if trusted is None else f"{trusted:,}",
        "test rows": "none" if test is None else f"{test:,}",
        "judged by": {
            "linear": "logistic regression on the columns",
            "lifted": "logistic regression on columns lifted by a kernel",
        }[facts["representation"]],
        "guard": "on" if facts["guarded"] else "off",
    }

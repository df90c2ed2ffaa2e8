"""The page of a distillation: which rows were kept, what that costs, and how far the answer can be trusted."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mixbin.reporting.blocks import Block, Listing, Page, Prose, Section, Text, isolated, isolating
from mixbin.reporting.figures import Drawings
from mixbin.reporting.runs import Run, certificate, methods, origin, parquet_rows, task
from mixbin.reporting.words import LABELS, ROWS

MOST_ROWS = 2_000
"""Rows that stand in the page; all others are in the CSV file beside it."""
MOST_LETTERS = 3_000_000
"""Of the rows in the page, about: of wide tables fewer rows are shown."""
COLUMNS = {
    "validation_loss": ("validation loss", ".6g"),
    "validation_rmse": ("validation RMSE", ".6g"),
    "validation_accuracy": ("validation accuracy", ".4g"),
    "test_loss": ("test loss", ".6g"),
    "test_rmse": ("test RMSE", ".6g"),
    "test_accuracy": ("test accuracy", ".4g"),
    "rows": ("rows", ",d"),
    "alpha": ("alpha", ".3g"),
    "evaluations": ("models trained", ",d"),
    "seconds": ("seconds", ".2f"),
}
ERRORS = {"rmse": "RMSE", "accuracy": "accuracy", "loss": "loss"}
"""What an answer is judged by, what says most first."""


def page(run: Run) -> Page:
    """All of it."""
    summary = run.summary
    kept, m = run.main["rows"], summary["rows"]
    return Page(
        title=Markup("{} of {} rows of {}").format(f"{kept:,}", f"{m:,}", isolated(Path(summary["train"]).name)),
        subtitle=answer(run),
        kind="Distillation",
        sections=partial(sections, run),
        tiles={"rows with a weight" if weighted(run) else "rows kept": f"{kept:,}", **tiles(run)},
    )


def sections(run: Run) -> list[Section]:
    """Below the head."""
    summary, drawings = run.summary, Drawings()
    figures: list[Block] = [drawings.selection(summary["selection"])] if "selection" in summary else []
    return [
        Section("What was asked", [Prose([asked(run)])]),
        Section("The methods side by side", [methods(run, COLUMNS), Prose([explained(run)], muted=True)]),
        certificate(run, ROWS if run.summary["budget"] is not None else LABELS),
        Section(f"The rows that {summary['method']} {verb(run)}", [*figures, rows(run)]),
        Section("The model trained on them", [*model(run)]),
        Section("How the search went", [drawings.path(run.result)]),
        origin(run, settings(summary)),
    ]


def weighted(run: Run) -> bool:
    """Whether rows have weights, and are not just kept."""
    return run.result.theta.dtype.kind == "f"


def verb(run: Run) -> str:
    """What the method does to rows."""
    return "weights" if weighted(run) else "keeps"


def asked(run: Run) -> Text:
    """The task in a sentence, as the command says it."""
    summary = run.summary
    said = summary.get("asked") or f"Keep {run.main['rows']:,} of {summary['rows']:,} rows."
    return isolating(task(said), repr(summary["target"]), Path(summary["train"]).name)


def judged(run: Run, part: str) -> str | None:
    """The quantity that says most about how the models do on a part of the data."""
    return next((kind for kind in ERRORS if run.main.get(f"{part}_{kind}") is not None), None)


def answer(run: Run) -> Text:
    """What came out, in a sentence."""
    line, everything = run.main, run.line("all rows")
    parts = []
    for part in ("test", "validation"):
        kind = judged(run, part)
        if kind is None:
            continue
        said = f"a {part} {ERRORS[kind]} of {line[f'{part}_{kind}']:.4g}"
        if everything is not None and everything.get(f"{part}_{kind}") is not None:
            said += f" (all {everything['rows']:,} rows: {everything[f'{part}_{kind}']:.4g})"
        parts.append(said)
    kept, m = line["rows"], run.summary["rows"]
    return (
        f"The method {line['method']} {verb(run)} {kept:,} of {m:,} rows ({100 * kept / m:.3g}\N{NO-BREAK SPACE}%); "
        f"trained on them, the model has {' and '.join(parts)}."
    )


def tiles(run: Run) -> dict[str, str]:
    """The figures that say most."""
    out = {}
    for part in ("test", "validation"):
        kind = judged(run, part)
        if kind is not None:
            out[f"{part} {ERRORS[kind]}"] = f"{run.main[f'{part}_{kind}']:.4g}"
    return out | {"alpha": f"{run.main['alpha']:.3g}", "seconds": f"{run.main['seconds']:.1f}"}


def explained(run: Run) -> str:
    """How to read the table."""
    said = "The loss is what was minimised on the validation rows; lower is better."
    if judged(run, "validation") == "rmse":
        said = "The loss is half the mean squared error, RMSE the typical error of a prediction: lower is better."
    if len(run.summary["methods"]) > 2:
        said += " relax, simple and top-k may train as many models as penalize."
    if any(it["rows"] == 0 for it in run.summary["methods"]):
        said += " Where no row is left there is no model, and no error."
    return said


def rows(run: Run) -> Listing:
    """The selected rows, as many as a page can hold."""
    parts = run.folder / "selected"
    columns, first = parquet_rows(parts, MOST_ROWS) if parts.is_dir() else run.table("selected.csv", MOST_ROWS)
    size, kept = 0, 0
    for row in first:
        size += sum(map(len, row)) + 3 * len(row)
        if size > MOST_LETTERS and kept:
            break
        kept += 1
    shown, total = first[:kept], run.main["rows"]
    if len(shown) == total:
        return Listing(columns, shown, "selected.csv", "rows", note="Numbers of rows count from 0, as in the training file.")
    if parts.is_dir():
        note = f"The first {len(shown):,} of {total:,} rows stand here; all are in the Parquet files of the folder selected."
        return Listing(columns, shown, "selected-rows.csv", "rows", note=note, label=f"These {len(shown):,} rows as CSV")
    # All of the selection, though not all of its rows: their numbers in the training file.
    head = [name for name in ("row", "weight") if name in columns]
    numbers = [[row[columns.index(name)] for name in head] for row in run.table("selected.csv")[1]]
    note = Markup(
        'The first {} of {} rows stand here; all of them are in <a href="selected.csv">selected.csv</a> in the folder of this '
        "page. Numbers of rows count from 0, as in the training file."
    ).format(f"{len(shown):,}", f"{total:,}")
    download = {"columns": head, "rows": numbers}
    return Listing(
        columns, shown, "selected-rows.csv", "rows", download=download, note=note, label=f"Numbers of all {total:,} rows as CSV"
    )


def model(run: Run) -> list[Block]:
    """Its coefficients, and how to train it again."""
    it = run.json("model.json")
    if not isinstance(it.get("coef"), Mapping) or "how" not in it.get("scikit_learn", {}):
        return [Prose([Markup('The model is in <a href="model.json">model.json</a>.')])]
    listed = [[name, f"{value!r}"] for name, value in it["coef"].items() if isinstance(value, float)]
    said = Markup("A ridge regression of {} with intercept {}. With scikit-learn: {}.").format(
        isolated(it["target"]), f"{it['intercept']:.6g}", it["scikit_learn"]["how"]
    )
    return [Prose([said]), Listing(["feature", "coefficient"], listed, "coefficients.csv", "features")]


def _by_itself(summary: Mapping[str, Any]) -> str:
    """Where alpha comes from when none was given."""
    return "from the spread of the columns" if summary.get("task") == "classification" else "chosen together with the rows"


def settings(summary: Mapping[str, Any]) -> dict[str, Text]:
    """What the numbers depend on."""
    identity = summary["identity"]
    test = summary["test_rows"]
    return {
        "training file": isolated(summary["train"]),
        "target": isolated(summary["target"]),
        "features": f"{summary['features']:,}",
        "candidate rows": f"{summary['rows']:,}",
        "validation rows": f"{summary['validation_rows']:,}" + (" split off at random" if summary["validation_split"] else ""),
        "test rows": "none" if test is None else f"{test:,}",
        "budget": "none: as many rows as help" if summary["budget"] is None else f"{summary['budget']:,} rows",
        "alpha": f"{summary['alpha']:g}" if summary["alpha"] is not None else _by_itself(summary),
        "method": identity["method"],
        "seed": str(summary["seed"]),
        "at most": "" if identity["max_evaluations"] is None else f"{identity['max_evaluations']:,} models a method",
        "checksum of the data": str(identity["data"]),
    }

"""The page of a distillation: which rows were kept, what that costs, and how far the answer can be trusted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mixbin._numbers import readable
from mixbin.reporting.blocks import Block, Listing, Prose, Section, Text, isolated
from mixbin.reporting.figures import Drawings
from mixbin.reporting.record import Record
from mixbin.reporting.runs import PageParts, Run, split_settings
from mixbin.reporting.verdict import above
from mixbin.reporting.words import LABELS, ROWS, ROWS_BY_ALL
from mixbin.studies.distillation import pictures, what_now
from mixbin.studies.distillation.verdict import ALL, RANDOM

MOST_ROWS = 2_000
"""A page holds at most this many rows; the CSV file beside it holds all."""
MOST_LETTERS = 3_000_000
"""A page holds at most about this many letters of rows, so it shows fewer rows of a wide table."""
ERRORS = {"rmse": "RMSE", "accuracy": "accuracy", "loss": "loss"}
"""What an answer is judged by; the first that was measured is shown."""

PARTS = {"test": "{} on test rows", "unkept": "{} on rows not kept"}
"""The rows that a model is measured on, and how the error on them is called. Rows that judged the choice are none of these."""


def parts(run: Run) -> PageParts:
    """What this kind adds to the page of a run."""
    record, facts = run.record, run.record.facts
    kept, m, name = record.main.numbers["rows"], facts["rows"], Path(facts["train"]).name
    weighted = run.result.theta.dtype.kind == "f"
    verb = "weights" if weighted else "keeps"

    def details(drawings: Drawings) -> list[Section]:
        return [
            Section(f"The rows that {record.main.method} {verb}", [*pictures.of_rows(drawings, facts), _rows(run)]),
            Section("The model trained on them", _model(run)),
        ]

    return PageParts(
        label="Distillation",
        title=Markup("{} of {} rows of {}").format(f"{kept:,}", f"{m:,}", isolated(name)),
        answer=_answer(run, verb),
        tiles={"rows with a weight" if weighted else "rows kept": f"{kept:,}", **_tiles(run)},
        names=[repr(facts["target"]), name],
        question=LABELS if facts["budget"] is None else ROWS_BY_ALL if facts.get("judge") == "full" else ROWS,
        settings=_settings(facts),
        first=lambda drawings: pictures.curve(drawings, facts),
        details=details,
        evaluations="models trained",
        beside=lambda drawings: pictures.methods(drawings, record),
        last=lambda _: what_now.sections(run),
        searched=None if facts.get("tolerance") is None else lambda _: pictures.path(facts),
    )


def which_rows(record: Record) -> list[str]:
    """Which rows the errors of the comparison are on, and which of them say nothing about new data."""
    numbers, said = record.main.numbers, []
    if any(numbers.get(f"test_{kind}") is not None for kind in ERRORS):
        said.append("Test rows played no part in the choice.")
    if any(numbers.get(f"unkept_{kind}") is not None for kind in ERRORS):
        said.append("Not kept: the candidate rows that the model was not trained on; all rows was trained on them, too.")
    judged = "all rows" if record.facts.get("judge") == "full" else "the validation rows"
    said.append(f"Judged: {judged}, by which the rows were chosen: an optimised number, and no error on new data.")
    if (random := record.line(RANDOM)) is not None:
        said.append(f"Random rows: {random.message}, each with the best alpha for it.")
    return said


def proven(facts: Mapping[str, Any]) -> list[str]:
    """What is proven about the answer, and what speaks against it; nothing for a record without these facts."""
    said, excess = [], facts.get("excess")
    if excess is not None and facts.get("judge") == "full":
        most = "at most " if excess <= 1e-5 else ""
        said.append(
            f"By the objective that judges, these rows are {most}{above(excess)} worse than a ridge regression on all rows, "
            "which no choice of rows can beat."
        )
    return [*said, *(f"Beware: {doubt}." for doubt in facts.get("doubts", []))]


def _judged(run: Run, part: str) -> str | None:
    """The quantity that says most about how the models do on a part of the data."""
    return next((kind for kind in ERRORS if run.record.main.numbers.get(f"{part}_{kind}") is not None), None)


def _answer(run: Run, verb: str) -> str:
    """What came out, in a sentence."""
    main, errors = run.record.main, []
    for part, words in PARTS.items():
        kind = _judged(run, part)
        if kind is None:
            continue
        name = f"{part}_{kind}"
        others = [line for line in map(run.record.line, (ALL, RANDOM)) if line is not None and line.numbers.get(name) is not None]
        said = f"an {words.format(ERRORS[kind])} of {readable(main.numbers[name])}"
        if others:
            said += f" ({', '.join(f'{line.method}: {readable(line.numbers[name])}' for line in others)})"
        errors.append(said)
    kept, m = main.numbers["rows"], run.record.facts["rows"]
    trained = f"; trained on them, the model has {' and '.join(errors)}" if errors else ""
    return (
        f"The method {main.method} {verb} {kept:,} of {m:,} rows ({_share_of_file(run)})"
        f"{trained}. {' '.join(proven(run.record.facts))}"
    ).strip()


def _share_of_file(run: Run) -> str:
    """The rows kept as a share of the whole training file, also where some of its rows were split off."""
    facts, kept = run.record.facts, run.record.main.numbers["rows"]
    split_off = facts["validation_rows"] if facts["validation_split"] is not None else 0
    share = f"{100 * kept / (facts['rows'] + split_off):.3g}\N{NO-BREAK SPACE}%"
    return f"{share} of the file" if split_off else share


def _tiles(run: Run) -> dict[str, str]:
    numbers, out = run.record.main.numbers, {}
    for part, words in PARTS.items():
        kind = _judged(run, part)
        if kind is not None:
            out[words.format(ERRORS[kind])] = readable(numbers[f"{part}_{kind}"])
    alpha = (
        {"Ridge alpha": readable(numbers["ridge_alpha"])}
        if "ridge_alpha" in numbers
        else {"alpha": readable(numbers["alpha"], 3)}
    )
    return out | {**alpha, "seconds": f"{run.record.main.seconds:.1f}"}


def _rows(run: Run) -> Listing:
    """The selected rows, as many as a page can hold."""
    folder = run.folder / "selected"
    columns, first = parquet_rows(folder, MOST_ROWS) if folder.is_dir() else run.table("selected.csv", MOST_ROWS)
    shown, total = that_fit(first), run.record.main.numbers["rows"]
    if len(shown) == total:
        return Listing(columns, shown, "selected.csv", "rows", note="Numbers of rows count from 0, as in the training file.")
    if folder.is_dir():
        note = f"The first {len(shown):,} of {total:,} rows stand here; all are in the Parquet files of the folder selected."
        return Listing(columns, shown, "selected-rows.csv", "rows", note=note, label=f"These {len(shown):,} rows as CSV")
    # The download holds the numbers of all selected rows, though the page does not hold all of the rows.
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


def that_fit(rows: list[list[str]]) -> list[list[str]]:
    """The first rows, as many as a page can hold; one at least."""
    size, kept = 0, 0
    for row in rows:
        size += sum(map(len, row)) + 3 * len(row)
        if size > MOST_LETTERS and kept:
            break
        kept += 1
    return rows[:kept]


def parquet_rows(folder: Path, most: int) -> tuple[list[str], list[list[str]]]:
    """The columns and the first rows of the part files of a folder, their values as text."""
    from pyarrow.parquet import ParquetFile

    columns: list[str] = []
    rows: list[list[str]] = []
    for file in sorted(folder.glob("*.parquet")):
        if len(rows) >= most:
            break
        with ParquetFile(file) as part:
            for batch in part.iter_batches(batch_size=most):
                columns = batch.schema.names
                values = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                rows += [["" if value is None else str(value) for value in row] for row in values]
    return columns, rows[:most]


def _model(run: Run) -> list[Block]:
    """The coefficients, and how to train the model again."""
    model = run.json("model.json")
    if not isinstance(model.get("coef"), Mapping) or "how" not in model.get("scikit_learn", {}):
        return [Prose([Markup('The model is in <a href="model.json">model.json</a>.')])]
    listed = [[name, f"{value!r}"] for name, value in model["coef"].items() if isinstance(value, float)]
    said = Markup("A ridge regression of {} with intercept {}. With scikit-learn: {}.").format(
        isolated(model["target"]), readable(model["intercept"], 6), model["scikit_learn"]["how"]
    )
    return [Prose([said]), Listing(["feature", "coefficient"], listed, "coefficients.csv", "features")]


def _settings(facts: Mapping[str, Any]) -> dict[str, Text]:
    chosen = "from the spread of the columns" if facts.get("task") == "classification" else "chosen together with the rows"
    return {
        "training file": isolated(facts["train"]),
        "target": isolated(facts["target"]),
        "features": f"{facts['features']:,}",
        "candidate rows": f"{facts['rows']:,}",
        **split_settings(facts),
        "budget": "none: as many rows as help" if facts["budget"] is None else f"{facts['budget']:,} rows",
        "tolerance": "" if facts.get("tolerance") is None else f"{100 * facts['tolerance']:g} %",
        "alpha": f"{facts['alpha']:g}" if facts["alpha"] is not None else chosen,
        **(_judge_settings(facts) if "judge" in facts else {}),
    }


def _judge_settings(facts: Mapping[str, Any]) -> dict[str, Text]:
    """Who judged, and by what."""
    rows = {"validation rows": "none: all rows judge"} if facts["judge"] == "full" else {}
    units = "standardised columns" if facts["standardize"] else "the columns as they are"
    return {**rows, "penalties on": units, "alpha of what judges": f"{facts['outer_alpha']:.3g}"}

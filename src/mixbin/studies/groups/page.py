"""The page of a group structure: which features belong together, what that gains, and how far it can be trusted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from mixbin.plot import StructureMap, structure_map
from mixbin.plot.structure import one_hot
from mixbin.reporting.blocks import Block, Listing, Section, Text, isolated
from mixbin.reporting.figures import Drawings
from mixbin.reporting.runs import PageParts, Run, split_settings
from mixbin.reporting.words import GROUPS


def parts(run: Run) -> PageParts:
    """What this kind adds to the page of a run."""
    facts = run.record.facts
    columns, features = run.table("structure.csv")

    def first(drawings: Drawings) -> list[Section]:
        maps = _structures(run, [row[1] for row in features])
        beside = "At the left what was found, at the right the truth. " if len(maps) > 1 else ""
        caption = f"Features down, groups across. {beside}Features are sorted such that each group is a block."
        return [Section("The groups", [drawings.structures(maps, caption), *_listings(columns, features)])]

    return PageParts(
        label="Group structure",
        title=f"{_counted(facts['features'], 'feature')} in {_counted(len(by_group(features)), 'group')}",
        answer=_answer(run),
        tiles=_tiles(run),
        names=[Path(facts["data"]).name] if facts["data"] else [],
        question=GROUPS,
        settings=_settings(facts),
        first=first,
    )


def _structures(run: Run, names: list[str]) -> list[StructureMap]:
    """What was found, and the truth where it is known."""
    theta, labels = run.result.theta, run.record.facts.get("labels")
    maps = [structure_map(theta, names, labels, run.record.main.method)]
    if labels is not None:
        maps.append(structure_map(one_hot(np.array(labels)), names, labels, "true"))
    return maps


def doubts(facts: Mapping[str, Any]) -> list[str]:
    """What speaks against the answer; nothing for a record without this fact."""
    return [f"Beware: {doubt}." for doubt in facts.get("doubts", [])]


def _answer(run: Run) -> str:
    """What came out, and what speaks against it."""
    return " ".join([_found(run), *doubts(run.record.facts)])


def _found(run: Run) -> str:
    """What came out, in a sentence."""
    main, truth = run.record.main, run.record.line("oracle")
    part = "validation" if main.numbers["test_loss"] is None else "test"
    said = f"The method {main.method} finds {_counted(main.numbers['groups'], 'group')}"
    said += f"; the models that use them have a {part} loss of {main.numbers[f'{part}_loss']:.4g}"
    if truth is not None:
        said += f" (the true groups: {truth.numbers[f'{part}_loss']:.4g})"
    index = main.numbers["adjusted_rand"]
    if index is None:
        return f"{said}."
    if index == 1:
        return f"{said}. These are the true groups."
    return f"{said}. They agree with the true ones to a Rand index of {index:.3g} (1 is all)."


def _tiles(run: Run) -> dict[str, str]:
    numbers = run.record.main.numbers
    out = {"groups": f"{numbers['groups']:,}", "validation G": f"{numbers['validation_loss']:.4g}"}
    if numbers["test_loss"] is not None:
        out["test G"] = f"{numbers['test_loss']:.4g}"
    return out | {"lam": f"{numbers['lam']:.3g}", "seconds": f"{run.record.main.seconds:.1f}"}


def by_group(features: list[list[str]]) -> dict[str, list[str]]:
    """The features of each group that has one; simple rounding may have put a feature into two."""
    out: dict[str, list[str]] = {}
    for row in features:
        for group in row[2].split():
            out.setdefault(group, []).append(row[1])
    return {group: out[group] for group in sorted(out, key=int)}


def _listings(columns: list[str], features: list[list[str]]) -> list[Block]:
    """The groups with their features, and the features with their group."""
    groups = [[group, str(len(names)), ", ".join(names)] for group, names in by_group(features).items()]
    if alone := [row[1] for row in features if not row[2]]:
        groups.append(["", str(len(alone)), ", ".join(alone)])
    return [
        Listing(["group", "size", "features"], groups, "groups.csv", "groups"),
        Listing(columns, features, "structure.csv", "features", note="Features and groups are counted from 0."),
    ]


def _counted(n: int, what: str) -> str:
    """A number of things."""
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _settings(facts: Mapping[str, Any]) -> dict[str, Text]:
    synthetic = facts["synthetic"]
    if synthetic is None:
        source: Text = Markup("{} from {}").format(f"{facts['tasks']:,}", isolated(facts["data"]))
    else:
        source = "made: " + ", ".join(f"{name} {value}" for name, value in synthetic.items())
    return {
        "tasks": source,
        "features": f"{facts['features']:,}",
        "training rows": f"{facts['rows']:,}",
        **split_settings(facts),
        "groups": f"at most {facts['n_groups']:,}",
        "lam": "chosen together with the groups" if facts["lam"] is None else f"{facts['lam']:g}",
        "intercept": "one per task" if facts.get("intercept") else "none",
    }

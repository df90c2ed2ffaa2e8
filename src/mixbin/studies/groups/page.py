"""The page of a group structure: which features belong together, what that gains, and how far it can be trusted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from mixbin.plot import Bar, StructureMap, compared, structure_map
from mixbin.plot.structure import one_hot
from mixbin.problems.distillation.references import against
from mixbin.reporting.blocks import Block, Listing, Section, Text, isolated
from mixbin.reporting.figures import NARROW, Drawings
from mixbin.reporting.record import Record
from mixbin.reporting.runs import PageParts, Run, split_settings
from mixbin.reporting.verdict import Verdict, apart, percent_text, worse
from mixbin.reporting.words import GROUPS
from mixbin.studies.groups.references import NOTHING, ONE


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
        beside=lambda drawings: _compared(drawings, run.record),
    )


def _compared(drawings: Drawings, record: Record) -> list[Block]:
    """No structure, one group, the truth and the methods, as dots."""
    part = "validation" if record.main.numbers["test_loss"] is None else "test"
    bars = [
        Bar(line.method, line.numbers[f"{part}_loss"], ours=line is record.main)
        for line in record.lines
        if line.numbers.get(f"{part}_loss") is not None
    ]
    label = "G on the test rows" if part == "test" else "G on the validation rows, which chose the groups"
    caption = "The methods side by side: half the mean squared error, averaged over the tasks."
    return [drawings.curves(compared(bars, label), caption, narrow=compared(bars, label, NARROW))]


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


def verdict(record: Record) -> Verdict | None:
    """What the groups are worth beside no structure and one group; None if the record lacks these."""
    others = {name: line.numbers for name in (NOTHING, ONE) if (line := record.line(name)) is not None}
    if len(others) < 2:
        return None
    main, n = record.main.numbers, record.main.numbers["groups"]
    said = f"{_counted(record.facts['features'], 'feature')} in {_counted(n, 'group')} train models"
    if main["test_loss"] is None:
        return Verdict(
            f"{said} whose error on new data is not known: there are no test rows, and the validation rows chose the groups. On "
            f"these, G is {_apart(main, others[NOTHING], 'validation_loss')} that of no structure and "
            f"{_apart(main, others[ONE], 'validation_loss')} that of one group.",
            _red(main, others, "validation_loss", "on the validation rows, although these chose the groups"),
        )
    return Verdict(
        f"{said} whose error (G on {record.facts['test_rows']:,} test rows) is {_apart(main, others[NOTHING], 'test_loss')} that "
        f"of no structure and {_apart(main, others[ONE], 'test_loss')} that of one group.",
        _red(main, others, "test_loss", "on the test rows"),
    )


def _apart(main: Mapping[str, Any], other: Mapping[str, Any], name: str) -> str:
    words = apart(against(main[name], other[name]))
    return f"{words} to" if words == "equal" else words


def _red(main: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]], name: str, where: str) -> tuple[str, ...]:
    found = {other: against(main[name], numbers[name]) for other, numbers in others.items()}
    return tuple(
        f"Worse than {other}: G {where} is {percent_text(100 * (ratio - 1))} larger. Do without these groups."
        for other, ratio in found.items()
        if worse(ratio, 1.0)
    )


def _answer(run: Run) -> str:
    """What came out, and what speaks against it."""
    return " ".join([_found(run), *doubts(run.record.facts)])


def _found(run: Run) -> str:
    """What came out, in a sentence."""
    main, truth = run.record.main, run.record.line("oracle")
    part = "validation" if main.numbers["test_loss"] is None else "test"
    said = f"The method {main.method} finds {_counted(main.numbers['groups'], 'group')}"
    judged = ", by which they were chosen," if part == "validation" else ""
    said += f"; the models that use them have a {part} loss{judged} of {main.numbers[f'{part}_loss']:.4g}"
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
    out = {"groups": f"{numbers['groups']:,}", "validation G, which judged": f"{numbers['validation_loss']:.4g}"}
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

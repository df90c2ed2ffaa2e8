"""The page of a group structure: which features belong together, what that gains, and how far it can be trusted."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from mixbin.plot import StructureMap, structure_map
from mixbin.plot.structure import one_hot
from mixbin.reporting.blocks import Block, Listing, Page, Prose, Section, Text, isolated, isolating
from mixbin.reporting.figures import Drawings
from mixbin.reporting.runs import Run, certificate, methods, origin, task
from mixbin.reporting.words import GROUPS

COLUMNS = {
    "validation_loss": ("validation G", ".4g"),
    "test_loss": ("test G", ".4g"),
    "lam": ("lam", ".3g"),
    "groups": ("groups used", ",d"),
    "ungrouped": ("without a group", ",d"),
    "adjusted_rand": ("Rand index", ".4g"),
    "spectral_error": ("model error, spectral", ".4g"),
    "frobenius_error": ("model error, Frobenius", ".4g"),
    "evaluations": ("evaluations", ",d"),
    "seconds": ("seconds", ".2f"),
}


def page(run: Run) -> Page:
    """All of it."""
    found, n = len(by_group(run.table("structure.csv")[1])), run.summary["features"]
    return Page(
        title=f"{counted(n, 'feature')} in {counted(found, 'group')}",
        subtitle=answer(run),
        kind="Group structure",
        sections=partial(sections, run),
        tiles=tiles(run),
    )


def sections(run: Run) -> list[Section]:
    """Below the head."""
    drawings = Drawings()
    columns, features = run.table("structure.csv")
    maps = structures(run, [row[1] for row in features])
    caption = (
        "Features down, groups across. " + ("At the left what was found, at the right the truth. " if len(maps) > 1 else "")
    ) + "Features are sorted such that each group is a block."
    return [
        Section("What was asked", [Prose([asked(run)])]),
        Section("The groups", [drawings.structures(maps, caption), *listings(columns, features)]),
        Section("The methods side by side", [methods(run, COLUMNS), Prose([explained(run)], muted=True)]),
        certificate(run, GROUPS),
        Section("How the search went", [drawings.path(run.result)]),
        origin(run, settings(run.summary)),
    ]


def structures(run: Run, names: list[str]) -> list[StructureMap]:
    """What was found, and the truth where it is known."""
    theta, labels = run.result.theta, run.summary.get("labels")
    maps = [structure_map(theta, names, labels, run.summary["method"])]
    if labels is not None:
        maps.append(structure_map(one_hot(np.array(labels)), names, labels, "true"))
    return maps


def asked(run: Run) -> Text:
    """The task in a sentence, as the command says it."""
    summary = run.summary
    said = summary.get("asked", f"Put {summary['features']:,} features into at most {summary['n_groups']:,} groups.")
    return isolating(task(said), *([Path(summary["data"]).name] if summary["data"] else []))


def answer(run: Run) -> Text:
    """What came out, in a sentence."""
    line, truth = run.main, run.line("oracle")
    part, loss = ("validation", line["validation_loss"]) if line["test_loss"] is None else ("test", line["test_loss"])
    said = f"The method {line['method']} finds {counted(line['groups'], 'group')}"
    said += f"; the models that use them have a {part} loss of {loss:.4g}"
    if truth is not None:
        said += f" (the true groups: {truth[f'{part}_loss']:.4g})"
    if line["adjusted_rand"] == 1:
        return f"{said}. These are the true groups."
    index = line["adjusted_rand"]
    return f"{said}." if index is None else f"{said}. They agree with the true ones to a Rand index of {index:.3g} (1 is all)."


def tiles(run: Run) -> dict[str, str]:
    """The figures that say most."""
    line = run.main
    out = {"groups": f"{line['groups']:,}", "validation G": f"{line['validation_loss']:.4g}"}
    if line["test_loss"] is not None:
        out["test G"] = f"{line['test_loss']:.4g}"
    return out | {"lam": f"{line['lam']:.3g}", "seconds": f"{line['seconds']:.1f}"}


def explained(run: Run) -> str:
    """How to read the table."""
    summary, said = run.summary, ["G is half the mean squared error, averaged over the tasks: lower is better."]
    if len([it for it in summary["methods"] if it["status"] is not None]) > 1:
        said.append("relax, simple and top-k may use as many evaluations as penalize.")
    if "labels" in summary["truth"]:
        said.append(f"oracle has the true groups, with the lam of {summary['method']}.")
        said.append("The Rand index is 1 for the true groups and about 0 for random ones.")
    if "coef" in summary["truth"]:
        said.append("The model errors are norms of the difference to the true coefficients.")
    return " ".join(said)


def by_group(features: list[list[str]]) -> dict[str, list[str]]:
    """The features of each group that has one; simple rounding may have put a feature into two."""
    out: dict[str, list[str]] = {}
    for row in features:
        for group in row[2].split():
            out.setdefault(group, []).append(row[1])
    return {group: out[group] for group in sorted(out, key=int)}


def listings(columns: list[str], features: list[list[str]]) -> list[Block]:
    """The groups with their features, and the features with their group."""
    groups = [[group, str(len(names)), ", ".join(names)] for group, names in by_group(features).items()]
    if alone := [row[1] for row in features if not row[2]]:
        groups.append(["", str(len(alone)), ", ".join(alone)])
    return [
        Listing(["group", "size", "features"], groups, "groups.csv", "groups"),
        Listing(columns, features, "structure.csv", "features", note="Features and groups are counted from 0."),
    ]


def counted(n: int, what: str) -> str:
    """A number of things."""
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def settings(summary: Mapping[str, Any]) -> dict[str, Text]:
    """What the numbers depend on."""
    identity, made, test = summary["identity"], summary["synthetic"], summary["test_rows"]
    source: Text = isolated(summary["data"]) if made is None else ", ".join(f"{name} {value}" for name, value in made.items())
    return {
        "tasks": Markup("{} from {}").format(f"{summary['tasks']:,}", source) if made is None else f"made: {source}",
        "features": f"{summary['features']:,}",
        "training rows": f"{summary['rows']:,}",
        "validation rows": f"{summary['validation_rows']:,}" + (" split off at random" if summary["validation_split"] else ""),
        "test rows": "none" if test is None else f"{test:,}",
        "groups": f"at most {summary['n_groups']:,}",
        "lam": "chosen together with the groups" if summary["lam"] is None else f"{summary['lam']:g}",
        "method": identity["method"],
        "seed": str(summary["seed"]),
        "at most": "" if identity["max_evaluations"] is None else f"{identity['max_evaluations']:,} evaluations a method",
        "checksum of the data": str(identity["data"]),
    }

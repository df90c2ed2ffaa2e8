"""The page of a folder of runs: one line each, with the way to their pages."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from markupsafe import Markup, escape

from mixbin.reporting import distillation, groups, reproduction
from mixbin.reporting.blocks import Listing, Page, Section, isolated
from mixbin.reporting.runs import Run
from mixbin.reproduction.reading import RESULTS

REPORT = "report.html"


class Kind(NamedTuple):
    """A kind of folder: how to see that it is one, and its page."""

    there: Callable[[Path], bool]
    page: Callable[[Path], Page]


def _is_groups(folder: Path) -> bool:
    identity = Run(folder).summary.get("identity", {})
    return isinstance(identity, dict) and identity.get("command") == "groups"


KINDS = (
    Kind(lambda folder: (folder / RESULTS).is_file(), reproduction.page),
    Kind(lambda folder: (folder / "methods.json").is_file() and _is_groups(folder), lambda folder: groups.page(Run(folder))),
    Kind(lambda folder: (folder / "methods.json").is_file(), lambda folder: distillation.page(Run(folder))),
)


def run_page(folder: Path) -> Page | None:
    """The page of the run in a folder; None where there is none."""
    return next((kind.page(folder) for kind in KINDS if kind.there(folder)), None)


def runs_below(folder: Path) -> list[Path]:
    """The folders in it that hold a finished run, by name."""
    return sorted(it for it in folder.iterdir() if it.is_dir() and any(kind.there(it) for kind in KINDS))


def page(folder: Path, pages: dict[str, Page]) -> Page:
    """One line per run."""
    rows = [[name, it.kind, escape(it.title).striptags(), escape(it.subtitle).striptags()] for name, it in pages.items()]
    # A name with a colon would otherwise be read as a scheme.
    links = [f"./{quote(name)}/{REPORT}" for name in pages]
    count = f"{len(pages):,} run" + ("" if len(pages) == 1 else "s")
    listing = Listing(["run", "kind", "what", "answer"], rows, "runs.csv", "runs", links=links)
    return Page(
        title=Markup("Runs in {}").format(isolated(folder.resolve().name)),
        subtitle=f"{count}; each name leads to its page.",
        kind="Index",
        sections=lambda: [Section("Runs", [listing])],
    )

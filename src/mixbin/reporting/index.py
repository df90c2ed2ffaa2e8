"""The page of a folder of runs: one line per run, with a link to its page."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup, escape

from mixbin.reporting.blocks import Listing, Page, Section, isolated


def page(folder: Path, pages: Mapping[str, Page], report: str) -> Page:
    """The index page, with one line per run; ``report`` is the file name of the page in the folder of each run."""
    rows = [[name, it.kind, escape(it.title).striptags(), escape(it.subtitle).striptags()] for name, it in pages.items()]
    # Without "./" a browser would take a name with a colon for a URL scheme.
    links = [f"./{quote(name)}/{report}" for name in pages]
    count = f"{len(pages):,} run" + ("" if len(pages) == 1 else "s")
    listing = Listing(["run", "kind", "what", "answer"], rows, "runs.csv", "runs", links=links)
    return Page(
        title=Markup("Runs in {}").format(isolated(folder.resolve().name)),
        subtitle=f"{count}; each name leads to its page.",
        kind="Index",
        sections=lambda: [Section("Runs", [listing])],
    )

"""Run the Python blocks of pages, compare what they print with what the page says, and write the figures that the page shows.

    python docs/run_blocks.py                        # all pages that need nothing but mixbin and its extras that are installed
    python docs/run_blocks.py gallery/rows.md        # one page
    python docs/run_blocks.py --write gallery/rows.md   # also write its figures and what it prints

The blocks of a page share their names, from first to last. A ``text`` block right after a Python block is what that block prints;
an image right after it (or after its text) is what the block calls ``figure``. ``tests/docs/test_blocks.py`` runs every page this
way.
"""

import argparse
import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?(?:\n!\[[^\]]*\]\((?P<figure>[^)]+\.svg)\)\n)?",
    re.M | re.S,
)
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
CLOSE = 0.05
"""Printed numbers may differ by this share: other versions of NumPy round differently, and a search may end elsewhere."""


class Block(NamedTuple):
    """A Python block with what the page says it prints, and the file of the figure that it draws."""

    code: str
    printed: str | None
    figure: str | None
    span: tuple[int, int]
    """Where the text of what it prints stands in the page; (0, 0) without one."""


def pages() -> list[Path]:
    """All pages with Python blocks."""
    return [it for it in sorted(DOCS.rglob("*.md")) if BLOCK.search(it.read_text(encoding="utf-8"))]


def blocks(page: Path) -> list[Block]:
    """The Python blocks of a page."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(it["code"], it["printed"], it["figure"], it.span("printed") if it["printed"] else (0, 0)) for it in found]


def same(printed: str, promised: str) -> bool:
    """Whether two texts have the same words, and numbers that differ by little."""
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", promised).split():
        return False
    pairs = zip(NUMBER.findall(printed), NUMBER.findall(promised), strict=True)
    numbers = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs]
    return all(abs(a - b) <= CLOSE * max(abs(a), abs(b)) for a, b in numbers)


def run(page: Path) -> Iterator[tuple[Block, str, Any]]:
    """Each block of a page after it was run, with what it printed and what it called ``figure``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    # A module of its own: dataclasses and studies look their module up by name.
    module = sys.modules["page_of_docs"] = ModuleType("page_of_docs")
    names = vars(module)
    for block in blocks(page):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.code, str(page), "exec"), names)
        yield block, out.getvalue(), names.pop("figure", None)
        plt.close("all")


def compare(page: Path) -> None:
    """Run a page, and stop if it prints something else than the page says."""
    for block, printed, figure in run(page):
        if block.printed is not None and not same(printed, block.printed):
            raise AssertionError(f"{page} promises\n{block.printed}\nand this was printed:\n{printed}")
        if block.figure is not None and (figure is None or not (page.parent / block.figure).is_file()):
            raise AssertionError(f"{page} shows {block.figure}, which no block draws or which is not there")


@contextlib.contextmanager
def work_folder() -> Iterator[None]:
    """An empty folder with the tables of the quick starts, to run a page in."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for table in (DOCS / "quick-start").glob("*.csv"):
            shutil.copy(table, folder)
        yield


def write(page: Path) -> None:
    """Run a page, and write its figures and what it prints."""
    from matplotlib import pyplot as plt

    grey = "#7d838c"  # can be read on white and on black
    style = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), grey)
    plt.rcParams.update({"svg.hashsalt": "mixbin", "legend.facecolor": "none", **style})
    text, changes = page.read_text(encoding="utf-8"), []
    for block, printed, figure in run(page):
        if block.figure is not None:
            if figure is None:
                raise SystemExit(f"{page}: no figure was drawn for {block.figure}")
            file = page.parent / block.figure
            file.parent.mkdir(exist_ok=True)
            for axes in figure.axes:
                axes.set_facecolor("none")
            figure.savefig(file, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
        if block.printed is not None and not same(printed, block.printed):
            changes.append((block.span, printed))
    for (start, end), printed in reversed(changes):
        text = text[:start] + printed + text[end:]
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Run or write the pages that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    typed = parser.parse_args()
    chosen = [DOCS / it for it in typed.pages] or pages()
    for page in chosen:
        print(os.path.relpath(page, DOCS), end=" ", flush=True)
        with work_folder():
            if typed.write:
                write(page)
            else:
                compare(page)
        print(len(blocks(page)), "blocks")


if __name__ == "__main__":
    main()

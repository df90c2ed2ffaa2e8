"""Pages of runs: which page a folder gets, where it is written, and what is never overwritten."""

import csv
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup, escape

from mixbin._files import write_text
from mixbin.errors import CannotWrite, InvalidInput
from mixbin.reporting import reproduction
from mixbin.reporting.blocks import GENERATOR, Listing, Page, Section, html, isolated
from mixbin.reporting.record import FILE
from mixbin.reporting.runs import Run
from mixbin.reproduction.reading import RESULTS
from mixbin.studies import KINDS, study_of

REPORT, INDEX = "report.html", "index.html"
MARK = f'<meta name="generator" content="{GENERATOR}'.encode()
HEAD = 2_000
"""Bytes of a page within which the mark of our own pages stands."""
DAMAGED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, csv.Error)
"""What reading a file of a run raises if somebody has changed the file."""


def write_page(folder: Path) -> Path:
    """The page of the run in a folder, or an index of the runs in the folders below it; runs without a page get one."""
    try:
        with any_letters(), long_cells():
            return _write_page(folder)
    except (InvalidInput, CannotWrite):
        raise
    except OSError as error:
        what = folder if error.filename is None else error.filename
        raise InvalidInput(f"{what} cannot be read ({error.strerror or error}); check the path and the file") from None
    except DAMAGED as error:
        first = next(iter(str(error).splitlines()), "")
        what, why = _damaged_json(folder) or f"{folder} has a file that", f"{type(error).__name__}: {first}"
        raise InvalidInput(f"{what} is not as mixbin left it ({why}); run the command again in another folder") from None


def _write_page(folder: Path) -> Path:
    if not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise InvalidInput(f"RUN_DIR must be a folder that --out of a command named, got {str(folder)!r}, which is {what}")
    page = page_of(folder)
    if page is not None:
        return _write(folder / REPORT, html(page))
    pages = {}
    for below in sorted(it for it in folder.iterdir() if it.is_dir()):
        page = page_of(below)
        if page is None:
            continue
        if not (below / REPORT).exists():
            _write(below / REPORT, html(page))
        pages[below.name] = page
    if not pages:
        raise InvalidInput(
            f"RUN_DIR must hold a finished run, or folders of runs, got {str(folder)!r}, which has none; "
            "pass the folder that --out of a command named"
        )
    return _write(folder / INDEX, html(_index(folder, pages)))


def _index(folder: Path, pages: Mapping[str, Page]) -> Page:
    """The page of a folder of runs: one line per run, with a link to its page."""
    rows = [[name, it.kind, escape(it.title).striptags(), escape(it.subtitle).striptags()] for name, it in pages.items()]
    # Without "./" a browser would take a name with a colon for a URL scheme.
    links = [f"./{quote(name)}/{REPORT}" for name in pages]
    count = f"{len(pages):,} run" + ("" if len(pages) == 1 else "s")
    listing = Listing(["run", "kind", "what", "answer"], rows, "runs.csv", "runs", links=links)
    return Page(
        title=Markup("Runs in {}").format(isolated(folder.resolve().name)),
        subtitle=f"{count}; each name leads to its page.",
        kind="Index",
        sections=lambda: [Section("Runs", [listing])],
    )


def page_of(folder: Path) -> Page | None:
    """The page of the run in a folder; None if there is no run."""
    if (folder / RESULTS).is_file():
        return reproduction.page(folder)
    if not (folder / FILE).is_file():
        return None
    run = Run(folder)
    study = study_of(run.record.kind)
    if study is None:
        known = ", ".join(KINDS)
        raise InvalidInput(
            f"{folder / FILE} is of the kind {run.record.kind!r}, which is none of {known}; use the version that wrote it"
        )
    return study.page(run)


def _write(path: Path, text: str) -> Path:
    if path.exists():
        with path.open("rb") as file:
            ours = MARK in file.read(HEAD)
        if not ours:
            raise InvalidInput(f"{path} is not a page of mixbin and would be overwritten; move it away first")
    try:
        write_text(path, text)
    except CannotWrite:
        raise
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error.strerror}); see who owns its folder") from None
    return path


@contextmanager
def any_letters() -> Iterator[None]:
    """Silence matplotlib's warning about letters that its font lacks: browsers have more fonts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from font")
        yield


@contextmanager
def long_cells() -> Iterator[None]:
    """Read CSV cells of any length, since tables of users may have such cells."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _damaged_json(folder: Path) -> Path | None:
    """The first JSON file of a run, or of the runs below, that does not hold names and values."""
    for file in sorted([*folder.glob("*.json"), *folder.glob("*/*.json")]):
        try:
            if not isinstance(json.loads(file.read_bytes()), dict):
                return file
        except (OSError, ValueError, RecursionError):
            return file
    return None

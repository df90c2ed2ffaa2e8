"""Where pages are written, and what is never overwritten."""

from pathlib import Path

from mixbin._files import write_text
from mixbin.errors import CannotWrite, InvalidInput
from mixbin.reporting import index
from mixbin.reporting.render import GENERATOR, html

INDEX = "index.html"
MARK = f'<meta name="generator" content="{GENERATOR}'.encode()
HEAD = 2_000
"""Bytes in which the mark of our own pages stands."""


def write_report(folder: Path) -> Path:
    """The page of the run in a folder, or an index of the runs in the folders below it; those without a page get one."""
    if not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise InvalidInput(f"RUN_DIR must be a folder that --out of a command named, got {str(folder)!r}, which is {what}")
    page = index.run_page(folder)
    if page is not None:
        return _write(folder / index.REPORT, html(page))
    below = index.runs_below(folder)
    if not below:
        raise InvalidInput(
            f"RUN_DIR must hold a finished run, or folders of runs, got {str(folder)!r}, which has none; "
            "pass the folder that --out of distill, groups, reproduce or demo named"
        )
    pages = {}
    for run in below:
        made = index.run_page(run)
        assert made is not None
        if not (run / index.REPORT).exists():
            _write(run / index.REPORT, html(made))
        pages[run.name] = made
    return _write(folder / INDEX, html(index.page(folder, pages)))


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

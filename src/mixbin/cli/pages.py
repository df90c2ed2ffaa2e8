"""``mixbin report``: the page of a run or of a folder of runs."""

import csv
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.errors import ConsoleError

from mixbin.cli.report import plain_console, spinner
from mixbin.data.unpacking import first_line
from mixbin.errors import CannotWrite, InvalidInput
from mixbin.reporting import write_report

LEFT_OTHERWISE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, csv.Error, ConsoleError)
"""What is raised where a file of a run is read that is not as the command left it."""


def run(folder: Path, *, as_json: bool) -> None:
    """Write the page and say where it is."""
    with spinner("Writing the page ...", quiet=as_json):
        page = write_page(folder)
    if as_json:
        print(json.dumps({"page": str(page), "bytes": page.stat().st_size}))
    else:
        plain_console().print(f"Written: {page}")


def write_page(folder: Path) -> Path:
    """The page of a folder, whose files somebody may have changed."""
    try:
        with any_signs(), long_cells():
            return write_report(folder)
    except (InvalidInput, CannotWrite):
        raise
    except OSError as error:
        what = folder if error.filename is None else error.filename
        raise InvalidInput(f"{what} cannot be read ({error.strerror or error}); check the path and the file") from None
    except LEFT_OTHERWISE as error:
        what, why = _no_object(folder) or f"{folder} has a file that", f"{type(error).__name__}: {first_line(error)}"
        raise InvalidInput(f"{what} is not as mixbin left it ({why}); run the command again in another folder") from None


@contextmanager
def any_signs() -> Iterator[None]:
    """Names may have signs that the font of matplotlib lacks: it need not warn of them, since a browser has more fonts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .*missing from font")
        yield


@contextmanager
def long_cells() -> Iterator[None]:
    """Tables of runs may have cells of any length, as those they were made from."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _no_object(folder: Path) -> Path | None:
    """The first JSON file of a run, or of the runs below, that is none of ours."""
    for file in sorted([*folder.glob("*.json"), *folder.glob("*/*.json")]):
        try:
            if not isinstance(json.loads(file.read_bytes()), dict):
                return file
        except (OSError, ValueError, RecursionError):
            return file
    return None

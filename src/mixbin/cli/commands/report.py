"""``mixbin report``: write the page of a run or of a folder of runs."""

import json
from pathlib import Path

from mixbin.cli.terminal import plain_console
from mixbin.progress import spinner
from mixbin.studies.pages import write_page


def run(folder: Path, *, as_json: bool) -> None:
    """Write the page and print where it is."""
    with spinner("Writing the page ...", quiet=as_json):
        page = write_page(folder)
    if as_json:
        print(json.dumps({"page": str(page), "bytes": page.stat().st_size}))
    else:
        plain_console().print(f"Written: {page}")

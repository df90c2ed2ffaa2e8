"""``mixbin report``: write the page of a run or of a folder of runs."""

import json

from mixbin.cli.commands.options import ReportOptions
from mixbin.cli.terminal import plain_console
from mixbin.progress import spinner
from mixbin.studies.pages import write_page


def run(options: ReportOptions) -> None:
    """Write the page and print where it is."""
    with spinner("Writing the page ...", quiet=options.as_json):
        page = write_page(options.folder)
    if options.as_json:
        print(json.dumps({"page": str(page), "bytes": page.stat().st_size}))
    else:
        plain_console().print(f"Written: {page}")

"""How long the page of a run with 50,000 selected rows takes to open, and how large it is.

    python benchmarks/large_page.py

Chromium without a window, from asking for the file until its script has run and it is laid out; the fastest and the slowest of
five. Beside it a page of the same kind with 500 rows. Exit code 1 above 2 seconds or 10 MB.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.reporting import folders
from tests.reporting.browser import Browser

SECONDS, MEGABYTES = 2.0, 10.0


def make(folder: Path, kept: int) -> Path:
    folder.mkdir()
    folders.write_table(folder / "table.csv", [f"measure {i}" for i in range(20)], round(kept * 1.25))
    options = ["--target", "-1", "--budget", kept, "--alpha", "1e-3", "--max-evaluations", "10", "--validation-fraction", "0.1"]
    folders.done("distill", folder / "table.csv", *options, "--out", folder / "run")
    return folder / "run" / "report.html"


def main() -> int:
    good = True
    with tempfile.TemporaryDirectory() as place:
        browser = Browser(Path(place))
        for kept in (500, 50_000):
            page = make(Path(place) / str(kept), kept)
            seconds = sorted(browser.open(page) for _ in range(5))
            size = page.stat().st_size / 1e6
            print(f"{kept:7,d} rows kept: opens in {seconds[0]:.2f} to {seconds[-1]:.2f} s, {size:.2f} MB")
            good &= seconds[-1] < SECONDS and size < MEGABYTES
        browser.close()
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

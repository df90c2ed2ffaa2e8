"""mixbin beside what a user would pick instead, on the same data, budget and machine, in one run.

    python -m benchmarks.rivals [--quick] [--only FAMILY ...] [--resume] [--out FOLDER] [--page FILE]

Run it in the project's folder. Each cell (method, table, budget, seed) runs in a process of its own with a limit of processor
time. What was measured goes into FOLDER (docs/results/rivals), one JSON file per family, and the page is made from these files.
``--quick`` takes fewer tables and seeds; its cells are the same ones, exact methods with a shorter limit.
``--resume`` leaves out the cells that are in the files.
``--only`` without a family makes the page again and computes nothing. A rival that is not installed is recorded with the reason.
"""

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

# One BLAS thread: with more, processor time depends on how many cores are free. Before NumPy is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from benchmarks.rivals import runner  # noqa: E402
from benchmarks.rivals.families import FAMILIES  # noqa: E402
from benchmarks.rivals.page import write_page  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rivals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer tables and seeds, within 20 minutes on two cores")
    parser.add_argument("--only", nargs="*", choices=[*FAMILIES], default=[*FAMILIES], metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--tables", nargs="+", help="only tables with these names")
    parser.add_argument("--methods", nargs="+", help="only methods whose names begin with one of these words")
    parser.add_argument("--seeds", nargs="+", type=int, help="only these seeds")
    parser.add_argument("--resume", action="store_true", help="leave out cells that are in the files")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="cells at a time, each on one thread")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "rivals", help="folder of the JSON files")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "rivals.md", help="the page, and folder of its figures")
    args = parser.parse_args()
    command = shlex.join(["python", "-m", "benchmarks.rivals", *sys.argv[1:]])
    only = runner.Only(args.resume, args.tables, args.methods, args.seeds)
    began = sum(os.times()[:4])
    for name in args.only:
        start = sum(os.times()[:4])
        runner.run(FAMILIES[name], args.out / f"{name}.json", args.quick, command, only, args.jobs)
        print(f"{name}: {sum(os.times()[:4]) - start:.0f} s of processor time", flush=True)
    write_page(args.page, args.out)
    print(f"{args.page}; {sum(os.times()[:4]) - began:.0f} s of processor time, {time.strftime('%Y-%m-%d')}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

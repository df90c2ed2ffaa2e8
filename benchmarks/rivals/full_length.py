"""The published solver at its full length on blog, 20 %: how far a run in the background has come, as data for the page.

    mixbin reproduce table3 --full --solver paper --budget 20 --runs 1 --jobs 1 --out OUT
    python -m benchmarks.rivals.full_length OUT [--processor-seconds S] [--to FOLDER]

The first command takes some 29,100 steps and may be stopped and repeated: it goes on from its checkpoint. The second reads the
checkpoint, or the record of the run if it has ended, and writes full-length.json into FOLDER (docs/results/rivals), with the rows
it would keep if it were rounded now, judged by scikit-learn's Ridge. The checkpoint is put beside it, compressed. To go on from
it, unpack both files of blog-20-run0 into OUT/unfinished/blog-20-run0.
"""

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.rivals.cells import Record

from mixbin._files import replacing

ROOT = Path(__file__).resolve().parents[2]
RUN = "blog-20-run0"
NAME = "full-length.json"
STEPS = 29_100
"""The published number of steps, about."""
LARGEST = 2_000_000
"""A compressed checkpoint with more bytes is not kept."""


def checkpoint_of(file: Path) -> tuple[Record, np.ndarray]:
    """The state of the run, as the checkpoint's header has it, and its theta."""
    with np.load(file) as archive:
        header = archive["header"]
        text = header.tobytes().decode() if header.dtype == np.uint8 else str(header)
        state = json.loads(text)["state"]["value"]
        return state, archive[state["state"]["value"]["theta"]["value"]]


def unfinished(folder: Path) -> Record:
    """What the checkpoint says, and what its point is worth: as it is, and rounded to the rows with the largest weights."""
    from benchmarks.blog import losses
    from benchmarks.rivals.rows import blog

    state, theta = checkpoint_of(folder / "penalize")
    data, k = blog(), round(0.2 * len(theta))
    kept = np.zeros(len(theta), dtype=bool)
    kept[np.argsort(-theta, kind="stable")[:k]] = True
    validation, test = losses(data, data.X, data.y, kept)
    path = json.loads((folder / "penalize-path.json").read_text())
    points = sorted((it["step"], it["validation"], it["distance"]) for it in path.values())
    return {
        "ended": False,
        "steps": state["n_full"],
        "clock": state["seconds"],
        "epsilon": state["epsilon"],
        "relaxed": state["state"]["value"]["value"],
        "distance": state["distance"],
        "rounded": {"validation": validation, "test": test},
        "path": [list(point) for point in points],
    }


def finished(file: Path) -> Record:
    record = json.loads(file.read_text())
    measured = record["methods"]["penalize"]
    return {
        "ended": True,
        "steps": record["evaluations"],
        "clock": record["seconds"]["penalize"],
        "rounded": {"validation": measured["validation"], "test": measured["test"]},
        "path": [[it["step"], it["validation"], it["distance"]] for it in record.get("penalize_path", [])],
    }


def section(folder: Path) -> list[str]:
    """The part of the page, from full-length.json, the shortened run and mixbin's own cell."""
    file = folder / NAME
    if not file.is_file():
        return []
    it = json.loads(file.read_text())
    lines = ["", "## The published solver at its full length", ""]
    spent = f", {it['processor']:,.0f} s of processor time" if it.get("processor") else ""
    lines.append(
        f"Blog, 20 %. `{it['command']}` "
        + ("has ended" if it["ended"] else "has not ended")
        + f": {it['steps']:,} of some {STEPS:,} steps{spent}, {it['clock']:,.0f} s by the clock, in the background of other work."
    )
    loss = it["rounded"]
    if not it["ended"]:
        lines.append(
            f"The weights of the rows, not yet binary (an entry is up to {it['distance']:.2f} away), have validation loss "
            f"{it['relaxed']:.2f}. The rows with the largest weights have {loss['validation']:.2f} (test {loss['test']:.2f})."
        )
    else:
        lines.append(f"Validation loss {loss['validation']:.2f}, test {loss['test']:.2f}.")
    beside = []
    short = ROOT / "docs" / "results" / "paper" / "runs" / f"{RUN}.json"
    if short.is_file():
        record = json.loads(short.read_text())
        measured = record["methods"]["penalize"]
        beside.append(
            f"shortened to {record['evaluations']:,} steps it ended at {measured['validation']:.2f} (test {measured['test']:.2f})"
        )
    mine = [
        cell
        for cell in json.loads((folder / "validation-rows.json").read_text())["records"]
        if (cell["table"], cell["budget"], cell["method"], cell["state"]) == ("blog", "20 %", "mixbin", "ok")
    ]
    if mine:
        beside.append(f"mixbin ends at {mine[0]['measures']['judged']:.2f} after {mine[0]['seconds']:.1f} s of processor time")
    return [*lines, *([f"Beside it: {'; '.join(beside)}. Published: 296.77 ± 0.34 (test 207.90 ± 0.43)."] if beside else [])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder of mixbin reproduce")
    parser.add_argument("--processor-seconds", type=float, help="what the run has used, as the system says")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "results" / "rivals")
    args = parser.parse_args()
    done, place = args.out / "runs" / f"{RUN}.json", args.out / "unfinished" / RUN
    facts: dict[str, Any] = finished(done) if done.is_file() else unfinished(place)
    command = "mixbin reproduce table3 --full --solver paper --budget 20 --runs 1 --jobs 1 --out OUT"
    facts |= {"command": command, "date": time.strftime("%Y-%m-%d"), "processor": args.processor_seconds}
    if not facts["ended"]:
        for name in ("penalize", "penalize-path.json"):
            packed = gzip.compress((place / name).read_bytes(), mtime=0)
            if len(packed) <= LARGEST:
                (args.to / RUN).mkdir(parents=True, exist_ok=True)
                with replacing(args.to / RUN / f"{name}.gz") as out:
                    out.write(packed)
    with replacing(args.to / NAME) as out:
        out.write((json.dumps(facts, indent=1) + "\n").encode())
    print("\n".join(section(args.to)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

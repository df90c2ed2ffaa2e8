"""Three walks of data through the package, traced while they run: the modules entered, and from which to which calls go.

python benchmarks/walks.py

One walk each is an estimator's fit, ``mixbin distill`` on a folder of Parquet files, and ``mixbin groups``. Only calls of
the main thread are seen, and no worker of Dask. Imports do not count, calls do.
"""

import contextlib
import inspect
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mixbin as mb

SOURCE = str(Path(mb.__file__).parent)


def fit(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    mb.DistillationRegressor(budget=20, random_state=0).fit(X, X @ np.arange(5.0) + rng.normal(size=200))


def parquet(folder: Path) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    (folder / "rows").mkdir()
    for i in range(2):
        frame = pd.DataFrame(rng.normal(size=(100, 4)), columns=list("abcy"))
        frame.to_parquet(folder / "rows" / f"{i}.parquet")
    command(
        "distill",
        folder / "rows",
        "--target",
        "y",
        "--budget",
        "10%",
        "--workers",
        1,
        "--max-evaluations",
        30,
        "--out",
        folder / "run",
    )


def groups(folder: Path) -> None:
    sizes = ["--tasks", 20, "--samples", 10, "--features", 12, "--n-groups", 3]
    command("groups", "--synthetic", "equal", *sizes, "--out", folder / "run")


def command(*words: object) -> None:
    from mixbin.cli import app

    with contextlib.suppress(SystemExit):
        app([str(word) for word in words], prog_name="mixbin")


def traced(walk: Callable[[Path], None]) -> tuple[set[str], set[tuple[str, str]]]:
    """The modules entered by calls, and the pairs of modules between which calls go."""
    files, edges = set(), set()

    def look(frame, event, _):  # type: ignore[no-untyped-def]
        # Bodies of modules and classes, which run on import, are not optimised code.
        function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if event == "call" and function and frame.f_code.co_filename.startswith(SOURCE):
            here, back = frame.f_code.co_filename, frame.f_back
            files.add(here)
            if back is not None and back.f_code.co_filename.startswith(SOURCE) and back.f_code.co_filename != here:
                edges.add((back.f_code.co_filename, here))

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(look)
        try:
            walk(Path(folder))
        finally:
            sys.setprofile(None)
    return files, edges


if __name__ == "__main__":
    for walk in (fit, parquet, groups):
        files, edges = traced(walk)
        names = sorted(str(Path(file).relative_to(SOURCE)) for file in files)
        print(f"{walk.__name__}: {len(files)} files, {len(edges)} edges\n  {' '.join(names)}\n")

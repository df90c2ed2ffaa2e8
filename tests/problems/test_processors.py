"""The same bits on every processor that this one can play: the tests of blocks and of Dask, with OpenBLAS told where it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROCESSORS = ["PRESCOTT", "NEHALEM", "SANDYBRIDGE", "HASWELL", "SKYLAKEX"]
FILES = [
    "tests/problems/test_same_bits.py",
    "tests/estimators/test_dask.py",
    "tests/cli/test_distill_dask.py::test_the_rows_are_those_in_memory",
]
PRODUCT = "import numpy as np; x = np.ones((300, 300)); assert (x @ x)[0, 0] == 300; np.linalg.qr(x)"


def python(processor, *args):
    environment = os.environ | {"OPENBLAS_CORETYPE": processor}
    return subprocess.run([sys.executable, *args], cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.ci
@pytest.mark.parametrize("processor", PROCESSORS)
def test_blocks_and_dask(processor):
    if python(processor, "-c", PRODUCT).returncode:
        pytest.skip(f"this processor has not the instructions of {processor}")
    settings = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--import-mode=importlib"]
    done = python(processor, "-m", "pytest", *settings, *FILES)
    assert done.returncode == 0, done.stdout[-3000:]

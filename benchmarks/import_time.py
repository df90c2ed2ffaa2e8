"""What ``import mixbin`` adds to importing NumPy and SciPy, and what using the engine adds on top.

    python benchmarks/import_time.py

Fresh processes, the fastest of ten each. Exit code 1 when the import adds half a second or more.
"""

import subprocess
import sys

LIMIT = 0.5
BASE = "import numpy, scipy.linalg"
CASES = {
    "NumPy and SciPy": "",
    "+ import mixbin": "import mixbin",
    "+ relax_and_penalize and the sets": "import mixbin as mb; mb.relax_and_penalize, mb.Budget",
}


def seconds(code: str) -> float:
    timed = f"import time; began = time.perf_counter(); {BASE}; {code or 'pass'}; print(time.perf_counter() - began)"
    return min(float(subprocess.check_output([sys.executable, "-c", timed])) for _ in range(10))


def main() -> int:
    measured = {name: seconds(code) for name, code in CASES.items()}
    base = measured["NumPy and SciPy"]
    for name, value in measured.items():
        print(f"{name:36s}{1e3 * value:7.0f} ms   (+{1e3 * (value - base):.0f} ms)")
    added = measured["+ import mixbin"] - base
    print("PASS" if added < LIMIT else "FAIL")
    return 0 if added < LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())

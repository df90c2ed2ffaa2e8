"""Where the tests find the real data that is kept beside the project and not in it."""

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_file(name: str) -> Path:
    """The path of one data file; the test that asks for it is skipped where it is missing."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"needs {name} in ../shared/data, which is not part of the repository")
    return path

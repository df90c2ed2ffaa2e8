"""The folders that several tests look at, made once."""

import pytest

from tests.reporting import folders


@pytest.fixture(scope="package")
def runs(tmp_path_factory):
    """A folder with a distillation, a structure and a reproduction, and their pages."""
    data, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("out") / "runs <b>"
    folders.distillation(data, out / "rows")
    folders.structure(data, out / "javascript:alert(1)")
    folders.reproduction(out / "paper")
    folders.done("report", out)
    return out

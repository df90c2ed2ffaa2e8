"""No public name is left out of the examples in this folder."""

import re
from pathlib import Path

import pytest

import mixbin as mb
from mixbin import datasets, plot, testing

RECORDS = {"Evaluation", "Event", "GroupCurve", "Problem", "Proof", "Trace", "GroupLassoData", "RegressionData"}
"""What users get and do not make, and the protocol of a problem."""
RECORDS |= {"DistanceCurve", "SelectionShares", "StructureMap", "TraceCurves"}
TEXT = "\n".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))


@pytest.mark.parametrize("package", [mb, plot, datasets, testing], ids=lambda package: package.__name__)
def test_every_public_name_gets_odd_arguments(package):
    public = {name: getattr(package, name) for name in package.__all__ if not name.startswith("_") and name not in RECORDS}
    made = [name for name, it in public.items() if not (isinstance(it, type) and issubclass(it, BaseException))]
    missing = [name for name in made if not re.search(rf"""\w\.{name}\b|"{name}\"""", TEXT)]
    assert not missing, f"add examples for {missing} to tests/fuzz"

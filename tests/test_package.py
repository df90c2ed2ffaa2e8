"""The package as a whole: light to import, every public name there, the examples in the docstrings true."""

import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import mixbin as mb

HEAVY = ["sklearn", "pandas", "matplotlib", "numba", "jax", "rich", "typer", "dask", "torch"]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    loaded = run("import mixbin, sys; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)
    assert "mixbin.methods" not in loaded


def test_the_engine_needs_nothing_heavy():
    code = (
        "import numpy as np, mixbin as mb, sys\n"
        "mb.relax_and_penalize(mb.FunctionProblem(lambda t: (t[0], np.eye(3)[0]), mb.Budget(3, 2)), seed=0)\n"
        "print(*sys.modules)"
    )
    assert not set(HEAVY) & set(run(code).split())


@pytest.mark.slow
def test_one_estimator_loads_only_what_it_needs():
    loaded = run("import mixbin as mb, sys; mb.DistillationRegressor; print(*sys.modules)").split()
    foreign = [name for name in loaded if name.startswith("mixbin.") and re.search("bilevel|dask|group_lasso|groups|task", name)]
    assert foreign == []


@pytest.mark.parametrize("name", mb.__all__)
def test_every_public_name_is_there(name):
    assert getattr(mb, name) is not None
    assert name in dir(mb)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'relax_and_pray'"):
        _ = mb.relax_and_pray


def test_the_suites_load_with_no_test_framework():
    loaded = run("import mixbin as mb, sys; mb.testing.check_set(mb.Hypercube(2)); print(*sys.modules)").split()
    assert not {"pytest", "hypothesis", *HEAVY} & set(loaded)
    assert "mixbin.testing" not in run("import mixbin, sys; print(*sys.modules)").split()


def modules_with_examples():
    """All modules of the package with an example in a docstring, found without importing them."""
    source = Path(mb.__file__).resolve().parent
    for path in sorted(source.rglob("*.py")):
        if ">>> " in path.read_text():
            yield ".".join(("mixbin", *path.relative_to(source).with_suffix("").parts)).removesuffix(".__init__")


NEEDS = {
    "mixbin.problems.bilevel.problem": "jax",
    "mixbin.torch.problem": "torch",
    "mixbin.torch.pruning": "torch",
    "mixbin.torch.rows": "torch",
    "mixbin.data.parquet": "dask",
    "mixbin.data.workers": "distributed",
}
"""Extras that examples cannot do without."""
SLOW = ("mixbin.data.workers",)
"""Examples that start processes."""


@pytest.mark.parametrize("module", [pytest.param(it, marks=[pytest.mark.slow] * (it in SLOW)) for it in modules_with_examples()])
def test_docstring_examples(module):
    if module in NEEDS:
        pytest.importorskip(NEEDS[module])
    with np.printoptions(legacy=False):
        tried = doctest.testmod(import_module(module))
    assert tried.attempted > 0
    assert tried.failed == 0


def test_extras_that_examples_need_are_known():
    assert set(NEEDS) <= set(modules_with_examples())


def test_help_has_short_signatures():
    """No argument is described by more than a line; NumPy's own alias for arrays takes 300 letters."""
    for name in mb.__all__:
        thing = getattr(mb, name)
        for called in (thing, getattr(thing, "fit", None)):
            if not callable(called):
                continue
            try:
                parameters = inspect.signature(called).parameters.values()
            except (TypeError, ValueError):
                continue
            assert all(len(str(it)) <= 130 for it in parameters), (name, max(map(str, parameters), key=len))

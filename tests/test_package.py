"""The package as a whole: light to import, every public name there, the examples in the docstrings true."""

import doctest
import inspect
import operator
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
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


def test_the_names_written_for_type_checkers_are_all():
    assert mb.__all__ == [*mb._HOME, "__version__"]
    source = Path(mb.__file__).read_text()
    typed = re.findall(r"^    from mixbin import (\w+) as \1$", source, flags=re.M)
    assert tuple(typed) == mb._PACKAGES


def modules_with_examples():
    """All modules of the package with an example in a docstring, found without importing them."""
    source = Path(mb.__file__).resolve().parent
    for path in sorted(source.rglob("*.py")):
        if ">>> " in path.read_text():
            yield ".".join(("mixbin", *path.relative_to(source).with_suffix("").parts)).removesuffix(".__init__")


NEEDS = {
    "jax": r"\bjax\b|mb\.bilevel\((?!\.)",
    "torch": r"\btorch\b",
    "dask": r"ParquetFolder",
    "distributed": r"local_workers",
}
"""Extras that examples cannot do without, and the words by which such an example is known."""
SLOW = ("mixbin.data.workers", "mixbin.estimators.n_groups")
"""Examples that start processes, or fit several times."""


@pytest.mark.parametrize("module", [pytest.param(it, marks=[pytest.mark.slow] * (it in SLOW)) for it in modules_with_examples()])
def test_docstring_examples(module):
    if module.startswith("mixbin.torch"):
        # One thread: two that wait for each other on a busy machine take minutes.
        pytest.importorskip("torch").set_num_threads(1)
    runner, left_out = doctest.DocTestRunner(), set()
    for example in doctest.DocTestFinder(exclude_empty=True).find(import_module(module)):
        code = "".join(it.source for it in example.examples)
        missing = {package for package, used in NEEDS.items() if re.search(used, code) and find_spec(package) is None}
        left_out |= missing
        if not missing:
            with np.printoptions(legacy=False):
                runner.run(example)
    assert runner.failures == 0
    if not runner.tries:
        assert left_out
        pytest.skip(f"needs {', '.join(sorted(left_out))}")


def public_names():
    rooms = ("datasets", "penalties", "plot", "testing", *(["torch"] if find_spec("torch") else []))
    inner = [f"{room}.{name}" for room in rooms for name in import_module(f"mixbin.{room}").__all__]
    return [*(name for name in mb.__all__ if name != "__version__"), *inner]


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_has_an_example(name):
    thing = operator.attrgetter(name)(mb)
    assert ">>> " in (thing.__doc__ or "")


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

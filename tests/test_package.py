"""The package as a whole: light to import, every public name there, the examples in the docstrings true."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mixbin as mb

HEAVY = ["sklearn", "pandas", "matplotlib", "numba", "jax", "rich", "typer", "dask"]


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


def test_one_estimator_loads_only_what_it_needs():
    loaded = run("import mixbin as mb, sys; mb.DistillationRegressor; print(*sys.modules)").split()
    foreign = [name for name in loaded if name.startswith("mixbin.") and re.search("bilevel|dask|group|task", name)]
    assert foreign == []


@pytest.mark.parametrize("name", mb.__all__)
def test_every_public_name_is_there(name):
    assert getattr(mb, name) is not None
    assert name in dir(mb)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'relax_and_pray'"):
        _ = mb.relax_and_pray


@pytest.mark.parametrize(
    "module",
    [
        "mixbin.data.parquet",
        pytest.param("mixbin.data.workers", marks=pytest.mark.slow),
        "mixbin.problem",
        "mixbin.problems.bilevel.problem",
        "mixbin.problems.distillation.ridge",
        "mixbin.problems.distillation.softmax",
        "mixbin.problems.group_lasso.structure",
        "mixbin.estimators.classification",
        "mixbin.sets.budget",
    ],
)
def test_docstring_examples(module):
    __import__(module)
    with np.printoptions(legacy=False):
        assert doctest.testmod(sys.modules[module]).failed == 0


@pytest.mark.slow
def test_the_readme_tells_the_truth(capsys):
    """Its first Python example runs as it stands, and its second on data of that shape."""
    readme = (Path(__file__).resolve().parent.parent / "README.md").read_text()
    first, second = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    names: dict = {}
    exec(first, names)
    assert "BINARY" in capsys.readouterr().out
    assert names["result"].theta.sum() == 5
    rng = np.random.default_rng(0)
    names |= {
        "X": rng.normal(size=(60, 3)),
        "y": rng.normal(size=60),
        "X_val": rng.normal(size=(20, 3)),
        "y_val": rng.normal(size=20),
    }
    exec(second, names)
    assert names["result"].theta.sum() == 6

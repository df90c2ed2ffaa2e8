"""PyTorch is an extra: without it the package works, and ``mb.torch`` says what to install."""

import subprocess
import sys

import pytest


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_without_torch_the_package_works_and_says_what_to_install():
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import mixbin as mb\n"
        "mb.relax_and_penalize(mb.FunctionProblem(lambda t: (t[0], t * 0), mb.Budget(3, 2)), seed=0)\n"
        "mb.Implicit(), mb.FirstOrder(), mb.Unrolled()\n"
        "assert 'torch' in dir(mb)\n"
        "try:\n"
        "    mb.torch\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    assert run(code) == "mixbin.torch needs torch, which is not installed; pip install 'mixbin[torch]'"


@pytest.mark.slow
def test_nothing_else_imports_torch():
    code = (
        "import mixbin as mb, sys\n"
        "for name in mb.__all__: getattr(mb, name)\n"
        "for name in dir(mb):\n"
        "    if name != 'torch': getattr(mb, name)\n"
        "print('torch' in sys.modules)"
    )
    assert run(code) == "False"

"""Shells can complete commands, options and their choices, quickly; every command shows an example."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mixbin.cli import app

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ["demo", "distill", "groups", "labels", "features", "reproduce", "report"]
CODE = """
import sys
from mixbin.cli import main
sys.argv = ["mixbin", *sys.argv[1:]]
try:
    main()
finally:
    heavy = [name for name in ("numpy", "pandas", "matplotlib", "jinja2") if name in sys.modules]
    print(*heavy, file=sys.stderr)
"""


def shell(*args, **env):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **env}
    return subprocess.run([sys.executable, "-c", CODE, *args], capture_output=True, text=True, env=env, timeout=60)


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("mixbin ", COMMANDS),
        ("mixbin re", ["reproduce", "report"]),
        ("mixbin distill --val", ["--validation", "--validation-fraction"]),
        ("mixbin groups --method ", ["penalize", "top-k", "simple", "relax", "all"]),
    ],
)
def test_bash_completes(typed, completed):
    words = typed.split(" ")
    done = shell(_MIXBIN_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1))
    assert done.stdout.split() == completed
    assert done.stderr.strip() == ""


def test_the_script_for_a_shell():
    # Named here: typer looks for a shell among the parent processes, and there may be none.
    done = shell("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert "_MIXBIN_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    got = CliRunner(env={"COLUMNS": "80"}).invoke(app, [command, "--help"], prog_name="mixbin")
    assert got.exit_code == 0
    assert f"Example: mixbin {command} " in got.stdout
    assert "--json" in got.stdout

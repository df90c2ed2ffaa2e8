"""The quick starts, followed word for word: the commands in a shell, the notebooks by nbclient."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NOTEBOOKS = ["quick-start-notebook.ipynb", "quick-start-own-model.ipynb"]


@pytest.fixture(scope="module")
def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80"}


@pytest.mark.slow
def test_the_quick_start_of_a_table(tmp_path, environment):
    """Its commands, with the interpreter of the tests instead of a new environment."""
    text = (DOCS / "quick-start-table.md").read_text()
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    assert blocks[0].splitlines()[-1] == "cp docs/quick-start/houses.csv ."
    shutil.copy(DOCS / "quick-start" / "houses.csv", tmp_path)
    command = f"{sys.executable} -m mixbin"
    ran = []
    for block in blocks[1:]:
        words = block.strip().replace(".venv/bin/mixbin", command)
        ran.append(subprocess.run(words, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300))
    assert [it.returncode for it in ran] == [2, 0, 0], [it.stderr for it in ran]
    promised = re.search(r"^    (mixbin: column .*), \.\.\.$", text, re.MULTILINE)
    assert ran[0].stderr.startswith(promised[1])
    quoted = re.search(r'\("(3 rows .*?)"\)', text, re.DOTALL)[1]
    assert " ".join(quoted.split()) in " ".join(ran[1].stdout.split())
    assert "24 of 237 rows" in ran[1].stdout
    for name in ("report.html", "selected.csv", "model.json"):
        assert (tmp_path / "run" / name).exists()
    assert (tmp_path / "run" / "selected.csv").read_text("utf-8-sig").splitlines()[0].startswith("row;Nr;Ort;Wohnfläche")


@pytest.mark.ci
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebooks_run(tmp_path, environment, monkeypatch, name):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    shutil.copytree(DOCS / "quick-start", tmp_path / "quick-start")
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    notebook = nbformat.read(DOCS / name, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    nbformat.write(notebook, tmp_path / name)
    shown = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert not any(out["output_type"] == "error" or out.get("name") == "stderr" for out in shown), shown
    pictures = [out for out in shown if "image/png" in out.get("data", {})]
    assert pictures
    tables = " ".join(out["data"]["text/html"] for out in shown if "text/html" in out.get("data", {}))
    # Whether the budget of the search leaves room to try the single changes of the answer depends on rounding.
    assert "single change" in tables


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_kept_without_output(name):
    notebook = json.loads((DOCS / name).read_text())
    assert all(not cell.get("outputs") for cell in notebook["cells"])

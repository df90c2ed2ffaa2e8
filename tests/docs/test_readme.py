"""README.md: its example runs and prints what it says, its table is that of the records, and it stays one screen."""

import re
import sys
from pathlib import Path

import pytest
from benchmarks.rivals import readme

from tests.docs.test_blocks import runner

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_example_prints_what_it_says():
    assert len(runner.blocks(ROOT / "README.md")) == len(re.findall("^```python$", TEXT, flags=re.M)) == 1
    with runner.work_folder():
        runner.compare(ROOT / "README.md")


def test_its_table_is_that_of_the_records():
    (table,) = readme.PLACE.findall(TEXT)
    assert table == readme.made(), "python -m benchmarks.rivals.readme --write"


def test_a_table_that_differs_is_refused(tmp_path, monkeypatch):
    other = TEXT.replace("| mixbin |", "| ours |")
    (tmp_path / "README.md").write_text(other)
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["readme"])
    with pytest.raises(SystemExit, match="--write"):
        readme.main()
    monkeypatch.setattr(sys, "argv", ["readme", "--write"])
    readme.main()
    assert (tmp_path / "README.md").read_text() == TEXT


@pytest.mark.parametrize("heading", ["Try it", "Run the tests"])
def test_one_command_under_each_heading(heading):
    """What CI and strangers copy."""
    part = re.split(r"^## ", TEXT, flags=re.M)
    (part,) = (it for it in part if it.startswith(heading + "\n"))
    (block,) = re.findall(r"^```\n(.*?)^```", part, flags=re.M | re.S)
    assert len(block.splitlines()) == 1


def test_it_is_one_screen_and_its_links_are_there():
    assert len(TEXT.splitlines()) < 90
    found = ["".join(it) for it in re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", TEXT)]
    targets = [it for it in found if "://" not in it]
    assert len(targets) > 5
    assert [it for it in targets if not (ROOT / it).exists()] == []

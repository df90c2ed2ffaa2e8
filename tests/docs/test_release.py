"""What a release consists of agrees with itself: versions, requirements, and the files that others read."""

import re
import tomllib
from pathlib import Path

import pytest

import mixbin as mb

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
"""Packages that conda-forge has under another name."""
NOT_LOWEST = ("torch", "docs")
"""Extras that requirements/lowest.txt leaves out: PyTorch takes gigabytes, and the site is no part of a run."""


def bound(requirement):
    """The name and the lowest version of a requirement."""
    name, lowest = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()
    return name, lowest


def test_the_changelog_begins_with_this_version():
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)[1]
    assert first in (mb.__version__, "Unreleased")


@pytest.mark.parametrize(("file", "line"), [("CITATION.cff", "version: {}"), ("conda/meta.yaml", '{{% set version = "{}" %}}')])
def test_files_name_this_version(file, line):
    assert line.format(mb.__version__) in (ROOT / file).read_text().splitlines()


def test_the_recipe_of_conda_has_the_requirements():
    run = (ROOT / "conda" / "meta.yaml").read_text().partition("  run:\n")[2].partition("\n\n")[0]
    asked = re.findall(r"^    - (\S+) >=(\S+)$", run, flags=re.M)
    ours = [(CONDA_NAMES.get(name, name), lowest) for name, lowest in map(bound, PROJECT["dependencies"])]
    assert asked == [("python", PROJECT["requires-python"].removeprefix(">=")), *ours]


def test_the_lowest_versions_are_those_of_the_requirements():
    extras = PROJECT["optional-dependencies"]
    asked = PROJECT["dependencies"] + [it for name, its in extras.items() if name not in NOT_LOWEST for it in its]
    lowest = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "requirements" / "lowest.txt").read_text(), flags=re.M))
    for requirement in asked:
        if requirement.startswith("mixbin[") or ">=" not in requirement:
            continue
        name, version = bound(requirement)
        # The first version that exists, such as 2025.4.0 for 2025.4, or 1.11.1 for 1.11.
        assert re.match(re.escape(version) + r"(\.|$)", lowest[name]), requirement


def test_pages_of_the_project_are_there():
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE", "CONTRIBUTING.md", "src/mixbin/py.typed"):
        assert (ROOT / name).is_file()
    for name in ("bug", "question", "feature"):
        text = (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.md").read_text()
        assert re.match(r"---\nname: .+\nabout: .+\nlabels: .+\n---\n", text)

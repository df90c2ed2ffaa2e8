"""Every Python block of README and docs runs, prints what its page says, and draws the figures that its page shows."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from mixbin import studies

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXTRAS = {"jax": r"\bjax\b|mb\.bilevel", "dask": r"\bdask\b|local_workers"}
TESTED = ("how-few-rows", "your-own-model", "which-features")
"""Pages that tests/test_docs.py runs; those with PyTorch are run by tests/torch_modules/test_torch_docs.py."""
SLOW = ("groups", "labels", "own-model", "ten-lines")
"""Pages that take more than a second."""


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = loaded(DOCS / "run_blocks.py")


def pages():
    codes = {it: "".join(block.code for block in runner.blocks(it)) for it in runner.pages()}
    return [it for it, code in codes.items() if it.stem not in TESTED and not re.search(r"\btorch\b", code)]


def slow_ones(page):
    return [pytest.mark.slow] if any(name in page.stem for name in SLOW) else []


@pytest.mark.filterwarnings("ignore::mixbin.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "page", [pytest.param(it, marks=slow_ones(it), id=str(it.relative_to(DOCS).with_suffix(""))) for it in pages()]
)
def test_a_page_does_what_it_says(page, monkeypatch):
    monkeypatch.setattr(studies, "KINDS", dict(studies.KINDS))  # a page adds a study of its own
    code = "\n".join(block.code for block in runner.blocks(page))
    for package, used in EXTRAS.items():
        if re.search(used, code):
            pytest.importorskip(package)
    with runner.work_folder():
        runner.compare(page)


def test_every_block_with_a_language_is_run():
    """A block that is neither Python nor what Python printed would be run by nothing."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"^```(\w+)", text, flags=re.M)) <= {"python", "text"}, page
        printed = sum(block.printed is not None for block in runner.blocks(page))
        assert len(re.findall("^```text$", text, flags=re.M)) == printed, f"{page} has a text block that follows no Python block"
        assert len(runner.blocks(page)) == len(re.findall("^```python$", text, flags=re.M)), page


def test_numbers_may_differ_a_little_and_words_may_not():
    assert runner.same("10 rows, 3.00 %", "10 rows,  3.1 %")
    assert not runner.same("10 rows, 3.00 %", "10 rows, 3.3 %")
    assert not runner.same("10 rows", "10 columns")


def test_a_page_that_prints_something_else_is_named(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match="promises\n2\n"):
        runner.compare(page)

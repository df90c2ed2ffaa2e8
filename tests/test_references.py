"""References to docs/ and links between Markdown files lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src", "tests", "benchmarks", "examples")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
REFERENCE = re.compile(r'docs/([\w./-]+\.md),[\s#]+"([^"]+)"')
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")


def code_files():
    return [path for folder in CODE for path in sorted((ROOT / folder).rglob("*.py"))]


def markdown_files():
    return [ROOT / name for name in PAGES] + sorted((ROOT / "docs").rglob("*.md"))


def prose(page):
    """A Markdown file without its fenced code, whose lines may begin with # or look like links."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def headings(page):
    return re.findall(r"^#+ (.+?) *$", prose(page), flags=re.M)


def anchor(heading):
    """The fragment that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def references():
    """(file, page, heading) of every reference such as docs/page.md with a heading in quotation marks behind a comma."""
    for path in code_files():
        for page, heading in REFERENCE.findall(path.read_text(encoding="utf-8")):
            # A reference may be broken over two lines, in a comment too.
            yield path.relative_to(ROOT), page, re.sub(r"\s+(# )?", " ", heading)


def test_every_reference_names_a_heading():
    found = list(references())
    assert len(found) > 30
    missing = [
        f'{path}: docs/{page}, "{heading}"'
        for path, page, heading in found
        if not (ROOT / "docs" / page).is_file() or heading not in headings(ROOT / "docs" / page)
    ]
    assert not missing


def test_every_mention_of_a_page_exists():
    missing = [
        f"{path.relative_to(ROOT)}: {page}"
        for path in code_files()
        if path != Path(__file__).resolve()
        for page in re.findall(r"\bdocs/[\w./-]+\.md", path.read_text(encoding="utf-8"))
        if not (ROOT / page).is_file()
    ]
    assert not missing


def test_no_file_refers_to_a_page_that_is_not_in_the_repository():
    files = [path for path in (*code_files(), *markdown_files()) if path != Path(__file__).resolve()]
    assert not [str(path.relative_to(ROOT)) for path in files if re.search(r"\bSPEC\b", path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", markdown_files(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_resolves(page):
    broken = []
    for link in LINK.findall(prose(page)):
        target, _, fragment = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = (page.parent / target).resolve() if target else page
        if not place.exists() or (fragment and fragment not in map(anchor, headings(place))):
            broken.append(link)
    assert not broken


def test_a_heading_becomes_the_fragment_that_github_makes_of_it():
    assert anchor("What was measured") == "what-was-measured"
    assert anchor("Tables, figures & `code`") == "tables-figures--code"

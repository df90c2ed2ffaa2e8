"""The documentation site: complete, built without a warning, whole without a network, and searched from disk."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import mixbin as mb
from tests.reporting.browser import CHROMIUM, Browser

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "docs" / "api"
ROOMS = ("plot", "datasets", "testing", "penalties", "torch")
"""Packages whose ``__all__`` is public, too."""


def documented():
    """The names on the pages of the reference; plot.trace.trace is the function of the module of the same name."""
    named = {it for page in API.glob("*.md") for it in re.findall(r"^::: mixbin\.([\w.]+)$", page.read_text(), flags=re.M)}
    return {re.sub(r"\.(\w+)\.\1$", r".\1", it) for it in named}


def test_the_reference_has_every_public_name():
    assert {name for name in mb.__all__ if name != "__version__"} - documented() == set()


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_has_every_name_of_a_package(room):
    if room == "torch":
        pytest.importorskip("torch")
    names = set(importlib.import_module(f"mixbin.{room}").__all__)
    # What a package only passes on is documented where it is from.
    assert {f"{room}.{name}" for name in names if name not in mb.__all__} - documented() == set()


def test_the_reference_has_no_name_that_is_not_there():
    for name in documented():
        if not name.startswith("torch."):
            thing = mb
            for part in name.split("."):
                thing = getattr(thing, part)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the extra mixbin[docs] is not installed")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


class Links(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self, page):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in ("script", "img", "iframe") and given.get("src"):
            self.loaded.append(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loaded.append(given["href"])


@pytest.mark.slow
def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(site):
    # Pages of runs in docs/results are tested with the pages themselves.
    pages = {page: Links(page) for page in site.rglob("*.html") if page.name not in ("report.html", "404.html")}
    assert len(pages) > 40
    dead, foreign = [], []
    for page, found in pages.items():
        foreign += [(page.name, it) for it in found.loaded if urlsplit(it).scheme not in ("", "data")]
        for link in [*found.links, *found.loaded]:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchors = pages[target].anchors if target in pages else {unquote(parts.fragment)}
            if not target.exists() or unquote(parts.fragment) not in anchors:
                dead.append((str(page.relative_to(site)), link))
    assert dead == []
    assert foreign == []


@pytest.mark.slow
def test_no_name_of_the_reference_stands_for_a_module(site):
    """A module beside a function of the same name would take its place, with everything that is private in it."""
    pages = list((site / "api").glob("*.html"))
    assert len(pages) > 10
    assert [page.name for page in pages if "doc-symbol-module" in page.read_text(encoding="utf-8")] == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium, which .ci/run installs")
def test_the_site_is_searched_from_disk(site, tmp_path):
    browser = Browser(tmp_path)
    try:
        browser.open(site / "index.html", width=1280)
        browser.run("document.querySelector('.md-search__input').focus()")
        browser.type(".md-search__input", "knapsack")
        browser.press("ArrowRight")  # the search listens to keys, and text that is inserted has none
        found = browser.run(
            "new Promise(done => { let n = 0; const look = () => {"
            "const links = document.querySelectorAll('.md-search-result__link');"
            "if (links.length || ++n > 400) done([...links].map(it => it.href)); else setTimeout(look, 50); }; look(); })"
        )
        assert any("sets.html" in link for link in found), found
        assert all(url.startswith("file:") for url in browser.requests())
        assert [it for it in browser.complaints() if json.loads(it).get("type") != "warning"] == []
    finally:
        browser.close()
        shutil.rmtree(tmp_path / "profile", ignore_errors=True)

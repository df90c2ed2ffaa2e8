"""The page of ``mixbin features`` in Chromium, with columns that mean harm."""

import pytest

from mixbin.studies.features.page import LONGEST_NAME
from mixbin.studies.features.words import cut
from tests.reporting.browser import CHROMIUM, Browser
from tests.reporting.folders import FILE, HOSTILE, TARGET, done, write_table


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium, which .ci/run installs")
def test_a_page_with_hostile_columns(tmp_path):
    write_table(tmp_path / FILE, [*HOSTILE, TARGET], 60)
    record = done("features", tmp_path / FILE, "--target", TARGET, "--keep", "5", "--stability", "--out", tmp_path / "run")
    browser = Browser(tmp_path / "run")
    try:
        for width in (400, 800, 1280):
            browser.open(tmp_path / "run" / "report.html", width=width)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert (browser.complaints(), browser.requests()) == ([], [])
            assert browser.run("typeof window.hacked") == "undefined"
        assert browser.run("document.querySelector('h2').textContent") == "The features kept"
        first = "[...document.querySelector('table').querySelectorAll('tbody tr')].map((it) => it.children[0].textContent)"
        assert browser.run(first) == [cut(it["feature"], LONGEST_NAME) for it in record["kept"]]
        browser.type(".listing input", "שלום")
        shown = browser.run("[...document.querySelectorAll('.listing tbody tr')].map((it) => it.textContent)")
        assert len(shown) == 1
        assert "שלום" in shown[0]
        browser.type(".listing input", "")
        numbers = "[...document.querySelectorAll('.listing tbody tr')].map((it) => it.children[3].className)"
        assert set(browser.run(numbers)) == {"number"}, "coefficients are numbers, by which the table can be sorted"
    finally:
        browser.close()

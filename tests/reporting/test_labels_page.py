"""The page of ``mixbin labels`` in Chromium, with labels and columns that mean harm."""

import csv

import numpy as np
import pytest

from mixbin.reporting.pictures import grey_pngs
from tests.reporting.browser import CHROMIUM, Browser
from tests.reporting.folders import FILE, HOSTILE, TARGET, done

LABELS = ["<script>window.hacked=5</script>", '"><img src=x onerror=window.hacked=6>', "שלום $x^2$ {{ 7 }}"]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium, which .ci/run installs")
def test_a_page_with_hostile_labels(tmp_path):
    rng = np.random.default_rng(0)
    kinds = rng.integers(3, size=90)
    X = 3 * np.eye(3, 6)[kinds] + rng.normal(size=(90, 6))
    kinds[:12] = (kinds[:12] + 1) % 3
    with (tmp_path / FILE).open("w", newline="") as out:
        rows = [[*row, LABELS[k]] for row, k in zip(X.round(3).tolist(), kinds, strict=True)]
        csv.writer(out).writerows([[*HOSTILE[:6], TARGET], *rows])
    record = done("labels", tmp_path / FILE, "--target", TARGET, "--image", "2x3", "--out", tmp_path / "run")
    browser = Browser(tmp_path / "run")
    try:
        for width in (400, 800, 1280):
            browser.open(tmp_path / "run" / "report.html", width=width)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert (browser.complaints(), browser.requests()) == ([], [])
            assert browser.run("typeof window.hacked") == "undefined"
        heads = browser.run("[...document.querySelectorAll('.heat tbody th')].map((it) => it.textContent)")
        assert heads == sorted(LABELS)
        assert browser.run("document.querySelector('h2').textContent") == "The doubtful labels"
        assert browser.run("document.querySelectorAll('.pictures img').length") == record["suspects"]
        assert browser.run("document.querySelector('.pictures img').naturalWidth") == 3
        browser.type(".listing input", "שלום")
        shown = browser.run("[...document.querySelectorAll('.listing tbody tr')].map((it) => it.textContent)")
        assert shown
        assert all("שלום" in row for row in shown)
    finally:
        browser.close()


def test_pictures_of_any_numbers():
    assert len(grey_pngs([[0.0, 1.0], [1e308, -1e308]], 1, 2)) == 2
    assert grey_pngs([[5.0, 5.0]], 2, 1)[0].startswith("data:image/png;base64,iVBORw0KGgo")
    assert grey_pngs([], 2, 2) == []

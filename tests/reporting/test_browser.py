"""The pages as Chromium shows them: quiet, alone, usable, narrow, in both colours, and with hostile names as text."""

import csv
import io
import json
import time

import numpy as np
import pytest

import mixbin as mb
from mixbin.plot import trace_curves
from tests.reporting import folders
from tests.reporting.browser import CHROMIUM, Browser
from tests.reporting.folders import HOSTILE, TARGET

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium, which .ci/run installs"),
    pytest.mark.slow,
]

PAGES = ["rows/report.html", "javascript:alert(1)/report.html", "paper/report.html", "index.html"]
COLUMNS = ["row", *HOSTILE, TARGET]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    it = Browser(tmp_path_factory.mktemp("browser"))
    yield it
    it.close()


def quiet(browser):
    """Nothing was complained about, nothing was asked for, and no name has run as a script."""
    assert browser.complaints() == []
    assert browser.requests() == []
    assert browser.run("typeof window.hacked") == "undefined"


def texts(browser, selector):
    return browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((it) => it.textContent)")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (320, "dark"),
        pytest.param(360, "light", marks=pytest.mark.ci),
        pytest.param(800, "dark", marks=pytest.mark.ci),
        (1280, "light"),
    ],
)
def test_a_page_is_quiet_and_fits(browser, runs, page, width, scheme):
    browser.open(runs / page, width=width, scheme=scheme, touch=width < 500)
    quiet(browser)
    assert browser.run("document.documentElement.scrollWidth") <= width
    light = browser.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((it) => it > 128)")
    assert light == (scheme == "light")
    shades = "['.answer', 'svg text', 'td'].map((it) => document.querySelector(it)).filter(Boolean).map((it) => "
    shades += "getComputedStyle(it)[it.ownerSVGElement ? 'fill' : 'color'].match(/\\d+/g).slice(0, 3).every((c) => c < 128))"
    assert set(browser.run(shades)) == {scheme == "light"}


@pytest.mark.parametrize("page", PAGES)
def test_the_policy_of_a_page_runs_no_other_script(browser, runs, page):
    browser.open(runs / page)
    script = "const it = document.createElement('script'); it.textContent = 'window.hacked = 5'; document.body.append(it);"
    browser.run(f"(() => {{ {script} }})()")
    browser.run("fetch('https://example.org/').catch(() => 0)")
    assert browser.run("typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in it for it in browser.complaints())


def test_hostile_names_are_text(browser, runs):
    browser.open(runs / "rows/report.html")
    assert texts(browser, ".listing[data-name='selected.csv'] th button") == COLUMNS
    assert texts(browser, ".listing[data-name='coefficients.csv'] tbody td:first-child") == HOSTILE
    said = browser.run("document.body.innerText")
    for name in (TARGET, folders.FILE):
        assert name in said
    assert browser.run("document.querySelectorAll('img, b[onclick], main i').length") == 0
    assert browser.run("[...document.scripts].filter((it) => it.type !== 'application/json').length") == 1
    browser.open(runs / "javascript:alert(1)/report.html")
    quiet(browser)
    listed = texts(browser, ".listing[data-name='structure.csv'] tbody td:nth-child(2)")
    assert listed[: len(HOSTILE)] == HOSTILE
    drawn = browser.run("document.querySelector('.drawing svg').textContent")
    assert "<script>window.hacked=1" in drawn


def test_sorting_and_paging(browser, runs):
    browser.open(runs / "rows/report.html")
    place = ".listing[data-name='selected.csv']"
    with (runs / "rows/selected.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    key = HOSTILE[0]
    values = sorted(float(row[key]) for row in rows)
    for wanted in (values, values[::-1]):
        browser.click(f"{place} th:nth-child(2) button")
        got = [float(it) for it in texts(browser, f"{place} tbody td:nth-child(2)")]
        assert got == wanted[:10]
    assert browser.run(f"document.querySelector(\"{place} th:nth-child(2)\").getAttribute('aria-sort')") == "descending"
    browser.click(f"{place} .bar:last-of-type button:last-child")
    assert [float(it) for it in texts(browser, f"{place} tbody td:nth-child(2)")] == values[::-1][10:20]
    quiet(browser)


def test_searching(browser, runs):
    browser.open(runs / "javascript:alert(1)/report.html")
    place = ".listing[data-name='structure.csv']"
    browser.type(f"{place} input", "GENE 3")
    assert texts(browser, f"{place} tbody td:nth-child(2)") == ["gene 3"]
    assert texts(browser, f"{place} .count")[0] == "1 of 12 features"
    browser.type(f"{place} input", " nothing like it")
    assert texts(browser, f"{place} tbody tr") == []
    quiet(browser)


def downloaded(browser, selector, name):
    browser.click(selector)
    file = browser.downloads / name
    until = time.monotonic() + 20
    # The browser makes an empty file first, and writes beside it (.crdownload) what takes longer.
    while not (file.exists() and file.stat().st_size and not list(browser.downloads.glob("*.crdownload"))):
        assert time.monotonic() < until, f"{name} was not downloaded in 20 seconds"
        time.sleep(0.05)
    text = file.read_text()
    file.unlink()
    return text


def test_downloading(browser, runs):
    browser.open(runs / "rows/report.html")
    got = downloaded(browser, ".listing[data-name='selected.csv'] .download", "selected.csv")
    assert got == (runs / "rows/selected.csv").read_text()
    browser.open(runs / "javascript:alert(1)/report.html")
    got = downloaded(browser, ".listing[data-name='structure.csv'] .download", "structure.csv")
    assert got == (runs / "javascript:alert(1)/structure.csv").read_text()
    quiet(browser)


def at(browser, figure, x, y):
    """Point at a place of a figure, in the units of its drawing, and what is told there."""
    place = browser.run(
        f"(() => {{ const svg = document.querySelectorAll('.drawing svg')[{figure}]; svg.scrollIntoView({{block: 'center'}});"
        f"const at = new DOMPoint({x}, {y}).matrixTransform(svg.getScreenCTM()); return [at.x, at.y]; }})()"
    )
    browser.hover(*place)
    return tip(browser, figure)


def tip(browser, figure):
    """What is told beside the pointer; nothing where that is hidden."""
    return browser.run(
        f"((it) => it.hidden ? '' : it.innerText)(document.querySelectorAll('.drawing')[{figure}].querySelector('.tip'))"
    )


def panels(browser, figure):
    return browser.run(f"JSON.parse(document.querySelectorAll('.drawing')[{figure}].querySelector('script').textContent)")


SELECTION, NARROW_PATH, WIDE_PATH = 4, 6, 7
"""Which figure of the page of a distillation is which: after the curve and the methods, both narrow and wide."""


def test_pointing_at_the_path_tells_its_numbers(browser, runs):
    curves = trace_curves(mb.Result.load(runs / "rows/result.npz"))
    for width, place in ((360, NARROW_PATH), (1280, WIDE_PATH)):
        browser.open(runs / "rows/report.html", width=width)
        panel = panels(browser, place)[0]
        left, top, right, bottom = panel["box"]
        low, high = panel["x"]["range"]
        i = curves.G.size // 2
        x = left + (curves.evaluations[i] - low) / (high - low) * (right - left)
        told = at(browser, place, x, (top + bottom) / 2)
        near = np.flatnonzero(curves.evaluations == curves.evaluations[i])
        assert f"evaluations of G: {curves.evaluations[i]:,.0f}" in told
        assert any(f"{curves.phase[j]}: {float(f'{curves.G[j]:.6g}'):,}" in told for j in near), told
        assert len(told.splitlines()) == 1 + near.size
        # Outside of all panels nothing is told.
        assert at(browser, place, 1, 1) == ""
    browser.run(f"document.querySelectorAll('.canvas')[{WIDE_PATH}].focus()")
    browser.press("ArrowRight")
    first = tip(browser, WIDE_PATH)
    browser.press("ArrowRight")
    assert "" != first != tip(browser, WIDE_PATH) != ""
    browser.press("Escape")
    assert tip(browser, WIDE_PATH) == ""
    quiet(browser)


def test_pointing_at_other_figures(browser, runs):
    browser.open(runs / "rows/report.html")
    panel = panels(browser, SELECTION)[0]
    left, top, right, bottom = panel["box"]
    told = at(browser, SELECTION, (left + right) / 2, (top + bottom) / 2)
    assert any(f"{TARGET}: {name}" in told for name in panel["names"])
    assert "all 80 rows: " in told
    assert "the 30 selected: " in told
    browser.open(runs / "javascript:alert(1)/report.html")
    found, true = panels(browser, 0)
    left, top, right, bottom = found["box"]
    told = at(browser, 0, left + 0.1 * (right - left), top + 0.5 * (bottom - top) / len(found["rows"]))
    name = HOSTILE[0]
    assert found["rows"][0] == true["rows"][0] == name
    assert told.splitlines()[0] == name
    said = "in" if found["cells"][0][0] else "not in"
    assert told.splitlines()[1] == f"{said} group {found['columns'][0]} (penalize)"
    browser.open(runs / "paper/report.html")
    evolution = panels(browser, 2)
    left, top, right, bottom = evolution[0]["box"]
    told = at(browser, 2, right, (top + bottom) / 2)
    assert "evaluations of G: 39" in told
    for kind in ("before", "after"):
        assert f"{kind} rounding: 300.013" in told
    quiet(browser)


def test_runs_are_reached_from_the_index(browser, runs):
    browser.open(runs / "index.html")
    assert texts(browser, ".listing td:first-child") == ["javascript:alert(1)", "paper", "rows"]
    browser.events.clear()
    browser.click(".listing tbody a")
    browser.wait("Page.loadEventFired")
    assert browser.run("document.querySelector('.kind').textContent") == "mixbin Group structure"
    assert browser.run("typeof window.hacked") == "undefined"


def test_many_rows(browser, tmp_path):
    """50,000 selected rows: the page stays small, shows the first, and has the numbers of all."""
    names = [f"measure {i}" for i in range(8)]
    folders.write_table(tmp_path / "large.csv", names, 62_500)
    options = ["--target", "-1", "--budget", "50000", "--method", "top-k", "--alpha", "1e-3", "--max-evaluations", "5"]
    folders.done(
        "distill",
        tmp_path / "large.csv",
        *options,
        "--judge",
        "validation",
        "--validation-fraction",
        "0.1",
        "--out",
        tmp_path / "run",
    )
    page = tmp_path / "run" / "report.html"
    assert page.stat().st_size < 10_000_000
    browser.open(page)
    place = ".listing[data-name='selected-rows.csv']"
    assert texts(browser, f"{place} .count")[0] == "2,000 rows"
    assert "The first 2,000 of 50,000 rows stand here" in browser.run("document.body.innerText")
    got = downloaded(browser, f"{place} .download", "selected-rows.csv")
    with (tmp_path / "run" / "selected.csv").open(newline="") as file:
        rows = [row["row"] for row in csv.DictReader(file)]
    assert [row["row"] for row in csv.DictReader(io.StringIO(got))] == rows
    assert len(rows) == 50_000
    quiet(browser)

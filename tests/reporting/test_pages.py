"""Pages as files: all that a person needs is there, the numbers are those of the folder, and nothing of others is overwritten."""

import csv
import json
import os
import re
import shutil
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import Markup

import mixbin as mb
from mixbin.reporting.blocks import isolating
from mixbin.reporting.figures import selection_data, shares_of
from mixbin.reporting.words import ROWS, evidence
from mixbin.reproduction.reading import read
from mixbin.studies.pages import write_page
from tests.reporting import folders
from tests.reporting.folders import FILE, HOSTILE, TARGET, invoke

pytestmark = pytest.mark.slow


class Seen(HTMLParser):
    """Text, tags and ids of a page, and its blocks of data."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tags, self.ids, self.links, self.data, self._inside = "", [], [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [(tag, found[name]) for name in ("href", "src", "xlink:href") if name in found]
        self._inside = (tag, found.get("type")) if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside == ("script", "application/json"):
            self.data.append(json.loads(data))
        elif self._inside is None:
            self.text += data


@pytest.fixture(scope="module")
def pages(runs):
    names = {"rows": "rows/report.html", "groups": "javascript:alert(1)/report.html", "paper": "paper/report.html"}
    return {name: Seen((runs / path).read_text()) for name, path in (names | {"index": "index.html"}).items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows", "groups", "paper", "index"])
def test_a_page_stands_alone(pages, name):
    page = pages[name]
    assert not {"img", "link", "iframe", "object", "base", "b onclick"} & set(page.tags)
    assert page.tags.count("script") == 1 + len(page.data)
    assert len(set(page.ids)) == len(page.ids)
    leads = {target for tag, target in page.links}
    # Within the page, to the runs of an index, or to a file of the folder.
    assert all(target.startswith(("#f", "./")) or target in ("selected.csv", "model.json") for target in leads), leads
    within = {target[1:] for target in leads if target.startswith("#")}
    assert within <= set(page.ids)


@pytest.mark.parametrize("name", ["rows/report.html", "javascript:alert(1)/report.html", "paper/report.html", "index.html"])
def test_no_address_of_another_place(runs, name):
    text = (runs / name).read_text()
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "url(#" in text or name == "index.html"
    assert not re.search(r"url\((?!#f\d)", text)


@pytest.mark.slow
def test_a_page_written_later_is_the_same(runs, tmp_path):
    for name in ("rows", "javascript:alert(1)", "paper"):
        copy = tmp_path / name
        shutil.copytree(runs / name, copy)
        before = (copy / "report.html").read_bytes()
        (copy / "report.html").unlink()
        assert write_page(copy).read_bytes() == before


def test_what_a_distillation_says(runs, pages):
    summary = json.loads((runs / "rows/methods.json").read_text())
    page, line = pages["rows"], summary["methods"][-1]
    assert "The method penalize keeps 30 of 80 rows (30\N{NO-BREAK SPACE}% of the file)" in page.text
    references = [f"{it['method']}: {it['test_rmse']:.4g}" for it in summary["methods"][:2]]
    assert f"an RMSE on test rows of {line['test_rmse']:.4g} ({', '.join(references)})" in page.text
    assert summary["verdict"] in page.text
    assert page.text.index(summary["verdict"]) < page.text.index("What was asked")
    assert f"Keep 30 of 80 rows of {FILE}" in page.text
    for heading in ("What was asked", "The methods side by side", "How good is the answer?", "Make it again"):
        assert heading in page.text
    for it in summary["methods"]:
        assert it["method"] in page.text
        assert ("none" if it["validation_loss"] is None else f"{it['validation_loss']:.6g}") in page.text
    assert f"mixbin {mb.__version__}" in page.text
    assert f"numpy {np.__version__}" in page.text
    command = summary["about"]["command"]
    assert command.startswith("mixbin distill ")
    assert "--json" not in command
    assert " ".join(command.split()) in " ".join(page.text.split())
    result = mb.Result.load(runs / "rows/result.npz")
    for point in evidence(result.certificate, result.status, ROWS):
        assert str(point.text) in page.text


def test_the_rows_of_a_page_are_those_of_the_file(runs, pages):
    with (runs / "rows/selected.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    listing = next(it for it in pages["rows"].data if isinstance(it, dict) and it["columns"][0] == "row")
    assert (listing["columns"], listing["rows"]) == (head, rows) == (["row", *HOSTILE, TARGET], rows)
    assert listing["download"] is None


def test_wide_tables_show_fewer_rows(runs, monkeypatch, tmp_path):
    monkeypatch.setattr("mixbin.studies.distillation.page.MOST_LETTERS", 500)
    shutil.copytree(runs / "rows", tmp_path / "run")
    page = Seen(write_page(tmp_path / "run").read_text())
    listing = next(it for it in page.data if isinstance(it, dict) and it["columns"][0] == "row")
    assert 0 < len(listing["rows"]) < 30
    assert f"The first {len(listing['rows'])} of 30 rows stand here" in page.text
    assert len(listing["download"]["rows"]) == 30


def test_what_a_structure_says(runs, pages):
    page = pages["groups"]
    summary = json.loads((runs / "javascript:alert(1)/methods.json").read_text())
    assert f"12 features in {summary['methods'][-1]['groups']} groups" in page.text
    assert "No single move" in page.text or "moves of a feature" in page.text
    found = {
        row[1]: row[2]
        for it in page.data
        if isinstance(it, dict) and it["columns"][:2] == ["feature", "name"]
        for row in it["rows"]
    }
    theta = mb.Result.load(runs / "javascript:alert(1)/result.npz").theta
    assert [int(found[name]) for name in HOSTILE] == theta.argmax(axis=1)[: len(HOSTILE)].tolist()


def test_a_reproduction_has_ours_above_the_published(runs, pages):
    text = pages["paper"].text
    assert "Table 3: data distillation" in text
    assert "300.50 ± 0.712,209.31 ± 35.05" in text
    assert "validation at blog 20 %: published penalize below simple" in text
    assert "the numbers are <made> up" in text
    for said in (
        "a note",
        "Of the published table. a remark",
        "Figure 4: evolution",
        "mixbin reproduce table3 --out <here>",
        "of blog",
    ):
        assert said in text
    about, tables, figures = read(runs / "paper")
    assert about["solver"] == "default"
    assert tables[0].rows[0].entries[0].ours == "300.50 ± 0.71"
    assert tables[0].markdown() in (runs / "paper/README.md").read_text()
    assert np.isnan(figures[2].data.validation_rounded[3])


def test_the_index_leads_to_every_page(runs, pages):
    listing = pages["index"].data[0]
    assert [row[0] for row in listing["rows"]] == ["javascript:alert(1)", "paper", "rows"]
    assert listing["links"][0] == "./javascript%3Aalert%281%29/report.html"
    assert all((runs / row[0] / "report.html").is_file() for row in listing["rows"])
    assert listing["rows"][2][2] == f"30 of 80 rows of {FILE}"


def test_the_command_says_where_the_page_is(runs, tmp_path):
    shutil.copytree(runs / "rows", tmp_path / "run")
    got = invoke("report", tmp_path / "run")
    assert (got.exit_code, got.stderr) == (0, "")
    assert " ".join(got.stdout.split()).replace(" ", "") == f"Written:{tmp_path / 'run' / 'report.html'}".replace(" ", "")
    told = folders.done("report", tmp_path)
    assert told == {"page": str(tmp_path / "index.html"), "bytes": (tmp_path / "index.html").stat().st_size}


def test_folders_without_a_run_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for name, said in (("nowhere", "which is not there"), ("file", "which is a file"), (".", "which has none")):
        got = invoke("report", tmp_path / name)
        assert (got.exit_code, got.stdout, got.stderr.count("\n")) == (2, "", 1)
        assert said in got.stderr


@pytest.mark.parametrize("broken", ["methods.json", "selected.csv", "result.npz"])
def test_damaged_folders_are_refused(runs, tmp_path, broken):
    shutil.copytree(runs / "rows", tmp_path / "run")
    (tmp_path / "run" / broken).write_text("")
    got = invoke("report", tmp_path / "run")
    assert (got.exit_code, got.stdout, got.stderr.count("\n")) == (2, "", 1)
    assert broken in got.stderr


def test_pages_of_others_are_not_overwritten(runs, tmp_path):
    shutil.copytree(runs / "rows", tmp_path / "run")
    (tmp_path / "index.html").write_text("<h1>mine</h1>")
    got = invoke("report", tmp_path)
    assert got.exit_code == 2
    assert "is not a page of mixbin" in got.stderr
    assert (tmp_path / "index.html").read_text() == "<h1>mine</h1>"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(runs, tmp_path):
    shutil.copytree(runs / "rows", tmp_path / "run")
    (tmp_path / "run").chmod(0o555)
    assert "cannot be written" in invoke("report", tmp_path / "run").stderr


def test_a_resumed_run_whose_page_is_gone_gets_one(tmp_path):
    folders.write_table(tmp_path / "train.csv", ["a", "b", "y"], 40)
    args = [
        "distill",
        tmp_path / "train.csv",
        "--target",
        "y",
        "--budget",
        "5",
        "--max-evaluations",
        "20",
        "--out",
        tmp_path / "run",
    ]
    folders.done(*args)
    before = (tmp_path / "run/report.html").read_bytes()
    (tmp_path / "run/report.html").unlink()
    folders.done(*args, "--resume")
    assert (tmp_path / "run/report.html").read_bytes() == before


@pytest.mark.parametrize("method", ["relax", "simple", "top-k"])
def test_every_method_has_a_page(tmp_path, method):
    folders.write_table(tmp_path / "train.csv", ["a", "b", "y"], 40)
    args = ["--target", "y", "--budget", "90%", "--max-evaluations", "20", "--method", method, "--out", tmp_path / "run"]
    folders.done("distill", tmp_path / "train.csv", *args)
    text = Seen((tmp_path / "run/report.html").read_text()).text
    assert "Not checked" in text if method == "relax" else "One change at a time" in text or "Not checked" in text
    assert (f"The method {method} weights" if method == "relax" else f"The method {method} keeps") in text


def test_names_run_their_own_way():
    got = isolating("column 'a<b' of a<b", "'a<b'", "nothing")
    assert got == Markup("column <bdi>&#39;a&lt;b&#39;</bdi> of a&lt;b")
    assert unescape(got.striptags()) == "column 'a<b' of a<b"


def test_shares_survive_a_json_file():
    rng = np.random.default_rng(0)
    values = 1e3 + np.concatenate([rng.normal(size=400), [1e9]])
    data = selection_data(rng.random(401) < 0.3, values, "x")
    back = shares_of(json.loads(json.dumps(data, allow_nan=False)))
    assert np.isinf(back.high[-1])
    for name in ("all_rows", "selected"):
        np.testing.assert_allclose(getattr(back, name).sum(), 1.0)

"""The committed results at the published size: computed from the committed runs, and as good as they must be."""

import json
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import mixbin as mb
from tests.shared_data import DATA, shared_file

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


def cells(folder, number):
    found = json.loads((RESULTS / folder / "results.json").read_text())
    return next(table["cells"] for table in found["tables"] if table["number"] == number)


def record(folder, name):
    return json.loads((RESULTS / folder / "runs" / f"{name}.json").read_text())


def picked(rows, **where):
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


@pytest.mark.parametrize("budget", ["10", "20", "30"])
def test_blog_is_as_good_as_spec_says_it_can_be(budget):
    rows = picked(cells("default", 3), data="blog", budget=f"{budget} %", column="validation loss")
    mean = {row["method"]: row["mean"] for row in rows}
    assert mean["penalize"] < 291 < mean["top-k"] < mean["simple"]
    runs = [record("default", f"blog-{budget}-run{run}")["methods"]["penalize"]["validation"] for run in range(5)]
    assert picked(rows, method="penalize")[0]["mean"] == pytest.approx(np.mean(runs))
    assert picked(rows, method="penalize")[0]["sd"] == pytest.approx(np.std(runs, ddof=1))


def test_groups_match_the_oracle():
    for number, measured in ((1, "validation"), (1, "test"), (2, "spectral norm"), (2, "Frobenius norm")):
        rows = picked(cells("default", number), measured=measured)
        ours, oracle = ([row["mean"] for row in picked(rows, method=it)] for it in ("penalize", "oracle, lam of penalize"))
        assert len(ours) == 6
        np.testing.assert_allclose(ours, oracle, rtol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "name"), [("default", "blog-10-run0"), ("default", "blog-30-run3"), ("paper", "blog-20-run0")]
)
def test_the_rows_on_record_give_the_losses_on_record(folder, name):
    shared_file("BlogFeedback.zip")
    data = mb.datasets.load_blog(DATA)
    it = record(folder, name)
    run = it["identity"]["run"]
    rows = np.random.default_rng(run).permutation(len(data.y)) if run else np.arange(len(data.y))
    kept = rows[np.unpackbits(np.frombuffer(b64decode(it["selection"]), dtype=np.uint8))[: len(rows)] == 1]
    assert len(kept) == it["budget"]
    model = Ridge(alpha=100 * len(data.y)).fit(data.X[kept], data.y[kept])
    losses = [0.5 * np.mean((model.predict(A) - b) ** 2) for A, b in ((data.X_val, data.y_val), (data.X_test, data.y_test))]
    np.testing.assert_allclose([it["methods"]["penalize"][part] for part in ("validation", "test")], losses, rtol=1e-8)


@pytest.mark.parametrize("folder", ["default", "paper"])
def test_every_folder_says_what_it_is(folder):
    said = json.loads((RESULTS / folder / "results.json").read_text())["about"]
    assert said["command"].startswith("mixbin reproduce ")
    assert said["size"] == "full: the published sizes"
    assert ("SHORTENED" in said["solver"]) == (folder == "paper")
    assert said["seconds"] > 0
    assert "2 cores" in said["machine"]
    assert said["command"] in (RESULTS / folder / "README.md").read_text()

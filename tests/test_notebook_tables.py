"""What notebooks show of answers that stand beside each other."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import mixbin as mb
from mixbin.reporting.record import Line, Record

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 8))
y = X @ [1.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0] + rng.normal(size=60)


def cells(shown):
    """The lines of a table as texts, and which of them is bold."""
    root = ElementTree.fromstring(shown._repr_html_())
    lines = [row for row in root.iter("tr") if row.find("td") is not None]
    bold = [i for i, row in enumerate(lines) if "bold" in row.find("th").get("style", "")]
    heads = [it.text for it in root.find("thead").iter("th")] if root.find("thead") is not None else None
    return root.find("caption").text, heads, [[it.text for it in row] for row in lines], bold


def test_a_curve_of_budgets():
    curve = mb.budget_curve(X, y, [10, 20], random_state=0)
    caption, heads, lines, bold = cells(curve)
    assert caption == f"mixbin: how few rows; all 60 rows have an error of {curve.all_rows_error:.3g}"
    assert [line[0] for line in lines] == ["10", "20"]
    assert all(len(line) == len(heads) for line in lines)
    assert lines[0][1] == f"{curve.excess[0]:.3g}"
    assert lines[1][-1] == f"{curve.random_ratio[1]:.3g}"
    assert not bold


def test_a_curve_of_groups():
    curve = mb.GroupCurve((2, 3, 5), (0.5, 0.4, 0.3), (2, 3, 4), (10.0, 1234567.0, 12.0), suggested=3)
    caption, heads, lines, bold = cells(curve)
    assert (caption, bold) == ("mixbin: how many groups; 3 suggested", [1])
    assert heads == ["groups", "with a feature", "log evidence", "validation loss"]
    assert lines[1] == ["3", "3", "1,234,567", "0.4"]


def test_a_proof():
    proof = mb.prove_best_subset(mb.BestSubset(X, y, 3, 1.0))
    _, _, lines, _ = cells(proof)
    shown = dict(lines)
    assert shown["what is proved"] == str(proof)
    assert shown["features"] == "0, 1, 4"


@pytest.mark.parametrize("name", ["relax", "<script>"])
def test_the_methods_of_a_run(tmp_path, name):
    lines = (
        Line("all rows", {"test_loss": 1.5, "rows": 1200, "lam": None}),
        Line(name, {"test_loss": None, "rows": 12, "lam": None}, "RELAXED", 3, 0.25),
        Line("penalize", {"test_loss": 123456.7, "rows": 12, "lam": None}, "BINARY", 3, 0.5),
    )
    record = Record("regression", {}, lines, None, {}, {}, "The task: keep 12 rows.", {})
    record.write(tmp_path)
    caption, heads, shown, bold = cells(Record.read(Path(tmp_path)))
    assert (caption, bold) == ("The task: keep 12 rows.", [2])
    assert heads == ["method", "test loss", "rows", "answer", "seconds"]
    assert shown == [
        ["all rows", "1.5", "1,200", "for comparison", "0"],
        [name, "-", "12", "fractions", "0.25"],
        ["penalize", "123,457", "12", "yes or no", "0.5"],
    ]

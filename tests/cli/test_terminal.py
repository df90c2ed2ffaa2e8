"""Tables in a terminal: numbers and words stay whole where they can, and nothing is cut off where they cannot."""

import io

import pytest
from rich.console import Console

from mixbin.cli.terminal import rich_table

HEADS = ["method", "RMSE,\nnot kept", "error /\nall rows", "RMSE,\njudged", "rows", "Ridge\nalpha", "answer", "evals", "seconds"]
ROWS = [
    ["all rows", "1.59347", "1.0000", "1.5935", "2,000,000", "-", "for comparison", "1", "13.19"],
    ["random rows", "1.66381\n± 0.018", "1.0441\n± 0.011", "1.66378\n± 0.018", "500", "-", "for comparison", "10", "6.47"],
    ["penalize", "1.59417", "1.0004", "1.5942", "500", "29.49", "yes or no", "102", "1958.96"],
]


def printed(width):
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(rich_table(HEADS, ROWS, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 140])
def test_numbers_and_words_stay_whole(width):
    text = printed(width)
    assert max(map(len, text.splitlines())) <= width
    for whole in ("2,000,000", "1958.96", "± 0.018", "comparison", "penalize", "seconds"):
        assert whole in text, whole
    assert ("for comparison" in text) == (width >= 100)


def test_nothing_is_cut_off_in_a_narrow_terminal():
    text = printed(45)
    assert max(map(len, text.splitlines())) <= 45
    assert sum(text.count(digit) for digit in "29") >= sum("".join(map("".join, ROWS)).count(digit) for digit in "29")
    assert "…" not in text

"""``python -m benchmarks``: the table, what it skips, and when it fails."""

import json

import pytest
from benchmarks import __main__ as benchmarks


def test_only_beyond_four_times_the_recorded_value_is_a_failure():
    assert benchmarks.verdict(7.9, 2.0) == "ok"
    assert benchmarks.verdict(8.1, 2.0) == "TOO SLOW"
    assert benchmarks.verdict(8.1, None) == "not recorded"


def test_table_skips_with_the_reason_and_fails_where_a_ratio_is_too_slow(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(benchmarks, "SHARED", tmp_path)
    monkeypatch.setitem(benchmarks.RATIOS, "tiny", benchmarks.Ratio(lambda quick: 9.0, "a made ratio"))
    measured, failed = benchmarks.table(["gas", "blog step", "tiny"], True, {"tiny": 2.0}, {"tiny": 5.0})
    lines = capsys.readouterr().out.splitlines()
    assert "skipped: ../shared/data/uci/gas-data.csv.gz is missing" in lines[1]
    assert "skipped: ../shared/paper_step.py, the published step, is missing" in lines[2]
    assert lines[3].split()[1:5] == ["5", "9", "2", "4.50"]
    assert "TOO SLOW" in lines[3]
    assert (measured, failed) == ({"tiny": 9.0}, True)


@pytest.mark.parametrize("sizes", ["quick", "full"])
def test_every_ratio_is_recorded(sizes):
    recorded = json.loads(benchmarks.RECORDED.read_text())[sizes]
    assert recorded.keys() == benchmarks.RATIOS.keys()
    assert min(recorded.values()) > 0

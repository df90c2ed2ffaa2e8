"""Runs as jobs: resumed to the same record, never done twice, and refused where they are of something else."""

import json
import os
from dataclasses import replace

import pytest

from mixbin.errors import CheckpointMismatch, InvalidInput
from mixbin.reproduction import job as jobs
from mixbin.reproduction import running
from mixbin.reproduction.job import QUICK, Job, Work
from mixbin.reproduction.memo import Memo
from mixbin.reproduction.plan import BETAS, FIGURES, TABLES, Plan
from mixbin.reproduction.running import Runs

SMALL = Job("groups", "inequal 0.3", 0, "default", "quick", n_tasks=30, every=1, steps=None)


def plan(*what, **changes):
    return replace(Plan(what, QUICK, "default", None, None), **changes)


class Ended(Exception):
    """An end in the middle."""


def end_after(monkeypatch, n_events):
    """Every job ends with an exception at its n-th event, after its checkpoint was written."""
    seen = [0]

    def heed(self, event):
        seen[0] += 1
        if seen[0] == n_events:
            raise Ended

    monkeypatch.setattr(Work, "_exit_without_parent", heed)
    monkeypatch.setattr(jobs, "CHECKPOINT_EVERY", 0.0)


def without_times(record):
    """A record without what the clock had a part in."""
    return {name: value for name, value in record.items() if name not in ("seconds", "job_seconds")}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    runs = Runs(tmp_path_factory.mktemp("whole"))
    runs.make()
    runs.compute(SMALL, os.getpid())
    return runs.record(SMALL)


@pytest.mark.ci
@pytest.mark.parametrize("n_events", [3, 40, 75, 110])
def test_an_interrupted_job_gives_the_record_of_an_uninterrupted_one(tmp_path, monkeypatch, uninterrupted, n_events):
    runs = Runs(tmp_path)
    runs.make()
    with monkeypatch.context() as patch:
        end_after(patch, n_events)
        with pytest.raises(Ended):
            runs.compute(SMALL, os.getpid())
    assert runs.record(SMALL) is None
    assert any((runs.unfinished / SMALL.name).iterdir())
    runs.compute(SMALL, os.getpid())
    assert without_times(runs.record(SMALL)) == without_times(uninterrupted)
    assert not (runs.unfinished / SMALL.name).exists()


@pytest.mark.ci
def test_the_events_of_the_resumed_part_are_recorded_once(uninterrupted):
    steps = [point["step"] for point in uninterrupted["distances"]]
    assert steps == sorted(set(steps))
    assert uninterrupted["distances"][-1]["distance"] == 0


def test_a_finished_job_is_not_done_again(tmp_path, monkeypatch):
    runs, done = Runs(tmp_path), []
    runs.make()
    monkeypatch.setattr(running.groups, "compute", lambda job, work: done.append(job.name) or {"methods": {}})
    wanted = plan("table4").jobs()
    assert {job.name for job in runs.do(wanted[:2], 1)} == set(done) == {job.name for job in wanted[:2]}
    before = {file: file.stat().st_mtime_ns for file in runs.finished.iterdir()}
    assert len(list(runs.do(wanted, 1))) == len(wanted) - 2
    assert len(done) == len(wanted) == len(set(done))
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert list(runs.do(wanted, 1)) == []


def test_a_job_leaves_when_the_process_that_began_it_is_gone(tmp_path, monkeypatch):
    left = []
    monkeypatch.setattr(jobs.os, "_exit", left.append)
    Work(tmp_path, os.getpid())._exit_without_parent(None)
    Work(tmp_path, os.getppid())._exit_without_parent(None)
    assert left == []
    Work(tmp_path, 2**22 + 1)._exit_without_parent(None)
    assert left == [1]


def test_runs_of_something_else_are_refused(tmp_path):
    runs = Runs(tmp_path)
    runs.make()
    (runs.finished / f"{SMALL.name}.json").write_text(json.dumps({"identity": replace(SMALL, n_tasks=500).identity()}))
    with pytest.raises(CheckpointMismatch, match="differs in n_tasks; choose another folder"):
        runs.record(SMALL)
    (runs.finished / f"{SMALL.name}.json").write_text("{")
    with pytest.raises(InvalidInput, match="is not what mixbin wrote there"):
        runs.record(SMALL)


def test_a_plan_has_every_run_once_the_first_ones_first():
    everything = plan(*TABLES, *FIGURES, runs=2, music="music-excerpt").jobs()
    assert len(everything) == len(set(everything)) == len({job.name for job in everything})
    assert [job.run for job in everything] == sorted(job.run for job in everything)
    # 6 settings and 4 other betas of the groups; 3 budgets and 4 other betas of two distillations.
    assert len(everything) == 2 * (6 + 4 + 2 * (3 + 4))


def test_an_ablation_at_the_usual_beta_is_the_run_of_the_other_tables():
    ours = plan("table4", "table5")
    assert ours.runs_of("groups", "inequal 0.3", 0.5)[0].beta is None
    assert ours.runs_of("blog", "20", 0.9)[0].beta == 0.9
    theirs = plan("table5", solver="paper")
    assert theirs.runs_of("blog", "20", 0.9)[0].beta is None
    assert theirs.runs_of("blog", "20", 0.5)[0].beta == 0.5
    assert set(BETAS) == {0.1, 0.3, 0.5, 0.7, 0.9}


def test_figures_need_one_run():
    for name in FIGURES:
        assert [job.run for job in plan(name, runs=3).jobs()] == [0]


def test_a_memo_is_on_disk_with_every_change(tmp_path):
    memo = Memo(tmp_path / "memo.json")
    memo["a"] = [1, 2]
    assert dict(Memo(tmp_path / "memo.json")) == {"a": [1, 2]}
    del memo["a"]
    assert len(Memo(tmp_path / "memo.json")) == 0

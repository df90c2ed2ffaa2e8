"""Checkpoints: killed at any moment, a run ends with the bits of one that was not; what does not belong is refused."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mixbin as mb
from mixbin import _archive
from mixbin.methods.journal import Journal
from tests.instances import quadratic
from tests.methods import killed

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """Runs here write after every step; that they wait for the disk each time is for power cuts."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def bits(result):
    """All that must not depend on interruptions."""
    frame = result.trace.to_frame().drop(columns="seconds")
    numbers = (result.theta.tobytes(), result.lam.tobytes(), np.float64(result.value).tobytes(), result.n_evaluations)
    return numbers, frame.to_csv(), str(result.certificate), result.status


def run_and_phases(solver, problem="terms"):
    """The uninterrupted run, and the evaluations (by number) at which it was in each phase."""
    phases: dict[str, list[int]] = {phase: [] for phase in killed.PHASES}
    count, phase = [0], ["relax"]

    def at_evaluation():
        count[0] += 1
        phases[phase[0]].append(count[0])

    noted = [lambda event: phase.__setitem__(0, event.phase)]
    return killed.run(solver, at_evaluation=at_evaluation, callbacks=noted, problem=problem), phases


@pytest.fixture(scope="module", params=["spectral", pytest.param("saga", marks=pytest.mark.ci)])
def whole(request):
    return request.param, *run_and_phases(request.param)


@pytest.fixture(scope="module")
def start_and_kill():
    """Runs a problem in a process of its own and kills that at a moment."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    command = [sys.executable, "-m", "tests.methods.killed"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:

        def start(solver, path, moment, problem="terms"):
            server.stdin.write(f"{problem}\t{solver}\t{path}\t{moment}\n")
            server.stdin.flush()
            assert int(server.stdout.readline()) == -signal.SIGKILL

        yield start
        server.stdin.close()


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.ci), 4])
def test_killed_at_random_moments(whole, every, start_and_kill, tmp_path):
    """Twenty, or one in each phase and one in the middle of writing."""
    solver, result, phases = whole
    rng = np.random.default_rng(11)
    moments = [int(i) for phase in killed.PHASES for i in rng.choice(phases[phase], 4, replace=False)]
    moments += [f"write:{i}" for i in (1, *rng.integers(2, 40, size=3))]
    assert len(moments) == 20
    for i, moment in enumerate(moments[::every]):
        path = tmp_path / f"{i}.checkpoint"
        start_and_kill(solver, path, moment)
        assert bits(killed.run(solver, path, checkpoint_every=1e6)) == bits(result), moment
        assert sorted(file.name for file in tmp_path.iterdir()) == [f"{i}.checkpoint"]
        path.unlink()


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.ci), 8])
def test_a_function_killed_at_random_moments(every, start_and_kill, tmp_path):
    """A problem without a fingerprint, killed forty times or five: at any evaluation, and in the middle of writing."""
    result, phases = run_and_phases("spectral", "function")
    rng = np.random.default_rng(12)
    # The evaluation by which the problem is recognised comes before all others.
    last = sum(map(len, phases.values())) + 1
    moments = [*rng.choice(np.arange(1, last + 1), 32, replace=False), *(f"write:{i}" for i in rng.integers(1, 60, size=8))]
    for i, moment in enumerate(moments[::every]):
        path = tmp_path / f"{i}.checkpoint"
        start_and_kill("spectral", path, moment, "function")
        assert bits(killed.run("spectral", path, problem="function", checkpoint_every=1e6)) == bits(result), moment


def test_killed_again_and_again(whole, start_and_kill, tmp_path):
    solver, result, _ = whole
    path = tmp_path / "run.checkpoint"
    for _ in range(4):
        start_and_kill(solver, path, 25)
    assert bits(killed.run(solver, path)) == bits(result)


def test_a_finished_run_is_not_run_again(whole, tmp_path):
    solver, result, _ = whole
    path = tmp_path / "run.checkpoint"
    assert bits(killed.run(solver, path)) == bits(result)

    evaluations = []
    again = killed.run(solver, path, at_evaluation=lambda: evaluations.append(1))
    assert bits(again) == bits(result)
    assert len(evaluations) == 1, "the one that shows it is the same problem"


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(whole, tmp_path, capsys):
    solver, result, phases = whole
    for phase in killed.PHASES:
        path = tmp_path / f"{phase}.checkpoint"
        count, last = [0], phases[phase][len(phases[phase]) // 2]

        def interrupt(last=last, count=count):
            count[0] += 1
            # One more than in the uninterrupted run: the evaluation that identifies the problem.
            if count[0] == last + 1:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            killed.run(solver, path, interrupt, checkpoint_every=1e6)
        assert f"checkpoint={str(path)!r} goes on from here" in capsys.readouterr().err
        assert bits(killed.run(solver, path)) == bits(result)


def test_stopped_by_a_callback_and_taken_up_again(whole, tmp_path):
    solver, result, _ = whole
    path = tmp_path / "run.checkpoint"
    seen = []

    def stop_after_ten(event):
        seen.append(event)
        if len(seen) == 10:
            event.stop()

    stopped = killed.run(solver, path, callbacks=[stop_after_ten])
    assert stopped.status is mb.Status.STOPPED
    assert stopped.theta.sum() == 3
    assert bits(killed.run(solver, path)) == bits(result)


def test_out_of_time_and_taken_up_again(whole, tmp_path, monkeypatch):
    solver, result, _ = whole
    path = tmp_path / "run.checkpoint"
    with monkeypatch.context() as patched:
        looks = iter(range(10**6))
        patched.setattr(Journal, "seconds", lambda self: 0.001 * next(looks))
        short = killed.run(solver, path, time_limit=0.1)
    assert "time_limit" in short.message
    assert short.theta.sum() == 3
    assert bits(killed.run(solver, path)) == bits(result)


CHANGES = {
    "beta": {"beta": 0.7},
    "seed": {"seed": 6},
    "tol": {"tol": 0.005},
    "starts": {"starts": 3},
    "solver": {"solver": "projected"},
    "polish": {"polish": False},
    "penalty": {"penalty": mb.Logarithmic(0.3)},
    "theta0": {"theta0": np.full(10, 0.3)},
    "max_evaluations": {"max_evaluations": 10_000},
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The checkpoint of a whole run."""
    path = tmp_path_factory.mktemp("ended") / "run.checkpoint"
    killed.run("spectral", path)
    return path


@pytest.mark.parametrize("name", CHANGES)
def test_other_settings_are_refused_by_name(name, ended, tmp_path):
    path = shutil.copy(ended, tmp_path / "run.checkpoint")
    with pytest.raises(mb.CheckpointMismatch, match=rf"differs in .*{name} \("):
        killed.run(**{"solver": "spectral", "checkpoint": path} | CHANGES[name])


def test_what_may_change(tmp_path):
    path = tmp_path / "run.checkpoint"
    first = killed.run("spectral", path)
    again = killed.run("spectral", path, checkpoint_every=3.0, time_limit=100.0, callbacks=[print])
    assert bits(again) == bits(first)


def test_another_problem_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    settings = {"seed": 0, "starts": 1, "checkpoint": path}
    mb.relax_and_penalize(quadratic(mb.Budget(14, 5), 0), **settings)
    with pytest.raises(mb.CheckpointMismatch, match=r"differs in value and gradient at a random point \("):
        mb.relax_and_penalize(quadratic(mb.Budget(14, 5), 1), **settings)
    with pytest.raises(mb.CheckpointMismatch, match=r"theta_set \(Budget\(14, 5\) there, Budget\(14, 6\) here\)"):
        mb.relax_and_penalize(quadratic(mb.Budget(14, 6), 0), **settings)


def test_a_problem_with_a_fingerprint_is_not_evaluated_to_know_it(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    settings = {"seed": 0, "starts": 1, "checkpoint": tmp_path / "run.checkpoint"}
    mb.relax_and_penalize(mb.RidgeDistillation(X[:40], y[:40], X[40:], y[40:], budget=5, alpha=0.1), **settings)
    with pytest.raises(mb.CheckpointMismatch, match="differs in problem"):
        mb.relax_and_penalize(mb.RidgeDistillation(X[:40], y[:40] + 1, X[40:], y[40:], budget=5, alpha=0.1), **settings)


def test_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    killed.run("spectral", path)
    monkeypatch.setattr("mixbin.methods.settings.__version__", "99.0")
    with pytest.raises(mb.CheckpointMismatch, match=r"differs in mixbin \(.* there, 99.0 here\)"):
        killed.run("spectral", path)


def test_an_older_format_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    _archive.write_archive(path, {"kind": "checkpoint", "format": 0}, {})
    with pytest.raises(mb.InvalidInput, match="has format 0, this version of mixbin reads 2"):
        killed.run("spectral", path)


@pytest.mark.parametrize("content", ["torn", "foreign", "empty", "a result"])
def test_torn_and_foreign_files_are_refused_and_left_alone(content, tmp_path):
    path = tmp_path / "run.checkpoint"
    result = killed.run("spectral", path)
    if content == "torn":
        path.write_bytes(path.read_bytes()[:-300])
    elif content == "a result":
        result.save(path)
    else:
        path.write_bytes(b"some notes of mine" if content == "foreign" else b"")
    before = path.read_bytes()
    message = (
        "holds a mixbin result, not a checkpoint" if content == "a result" else "is not a saved mixbin checkpoint, or is damaged"
    )
    with pytest.raises(mb.InvalidInput, match=message):
        killed.run("spectral", path)
    assert path.read_bytes() == before


def test_a_second_run_on_the_same_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    told = []

    def another(event):
        if not told:
            with pytest.raises(mb.InvalidInput, match="is in use by another run") as caught:
                killed.run("spectral", path)
            told.append(caught)

    killed.run("spectral", path, callbacks=[another])
    assert told
    assert not list(tmp_path.glob("*.lock"))


def test_a_checkpoint_needs_a_seed(tmp_path):
    with pytest.raises(mb.InvalidInput, match=r"^seed must be a whole number when there is a checkpoint"):
        killed.run("spectral", tmp_path / "run.checkpoint", seed=None)


def test_checkpoints_do_not_change_the_result(whole, tmp_path):
    solver, result, _ = whole
    assert bits(killed.run(solver, tmp_path / "run.checkpoint", checkpoint_every=10.0)) == bits(result)


def test_a_solver_without_a_state_type_is_told_so(tmp_path):
    class Plain:
        def init(self): ...

        step = reweight = done = init

    with pytest.raises(mb.InvalidInput, match=r"^solver must be one with a state_type"):
        killed.run(Plain(), tmp_path / "run.checkpoint")


@pytest.mark.parametrize("event", range(1, 40, 3))
def test_a_lam_that_is_one_number(event, tmp_path):
    """NumPy turns arrays without dimensions into numbers, which come back from the file as what they were."""

    def problem():
        inner = quadratic(mb.Budget(10, 3), 3, "convex", n_lam=1)

        def function(theta, lam):
            got = inner.evaluate(theta, np.reshape(lam, 1))
            return got.value, got.grad_theta, np.reshape(got.grad_lam, ())

        return mb.FunctionProblem(function, inner.theta_set, mb.Box(-1.0, 2.0))

    settings = {"seed": 1, "starts": 1, "inner_steps": 3}
    whole = mb.relax_and_penalize(problem(), **settings)
    seen = []

    def stop(at):
        seen.append(at)
        if len(seen) == event:
            at.stop()

    path = tmp_path / "run.checkpoint"
    mb.relax_and_penalize(problem(), **settings, checkpoint=path, callbacks=[stop])
    assert bits(mb.relax_and_penalize(problem(), **settings, checkpoint=path)) == bits(whole)

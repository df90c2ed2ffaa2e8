"""A checkpoint of another problem is never taken, nor a point that is not in the set; paths that cannot work are told."""

import errno
import os

import numpy as np
import pytest

import mixbin as mb
from mixbin import _archive
from tests.instances import quadratic

QUICK = {"seed": 0, "starts": 1, "max_evaluations": 20}


def linear(costs, theta_set, lam_set=None):
    costs = np.asarray(costs, dtype=np.float64)
    if lam_set is None:
        return mb.FunctionProblem(lambda theta: (float(costs @ theta), costs.copy()), theta_set)
    return mb.FunctionProblem(
        lambda theta, lam: (float(costs @ theta + np.sum((lam - 1.0) ** 2)), costs.copy(), 2.0 * (lam - 1.0)), theta_set, lam_set
    )


def pair(number):
    """Two problems that differ in one thing, which neither G at the centre nor the repr of a set shows."""
    rng = np.random.default_rng(number)
    n = int(rng.integers(4, 40))
    costs, weights = rng.normal(size=n), rng.uniform(1.0, 3.0, size=n)
    i, j = rng.choice(n, 2, replace=False)
    kind = ("costs", "weights", "bounds", "a digit of a cost", "a digit of the capacity")[number % 5]
    if kind == "costs":
        other = costs.copy()
        other[[i, j]] = costs[[j, i]]
        return linear(costs, mb.Budget(n, 2)), linear(other, mb.Budget(n, 2))
    if kind == "weights":
        other = weights.copy()
        other[[i, j]] = weights[[j, i]]
        return linear(costs, mb.Knapsack(weights, 5.0)), linear(costs, mb.Knapsack(other, 5.0))
    if kind == "bounds":
        low = rng.uniform(0.5, 0.6, size=2)
        boxes = [mb.Box(low, low + 1.0), mb.Box(low * [1.0, 1.0 + 1e-9], low + 1.0)]
        return tuple(linear(costs, mb.Budget(n, 2), box) for box in boxes)
    if kind == "a digit of a cost":
        other = costs.copy()
        other[i] *= 1.0 + 1e-9
        return linear(costs, mb.Hypercube(n)), linear(other, mb.Hypercube(n))
    return linear(costs, mb.Knapsack(weights, 5.0)), linear(costs, mb.Knapsack(weights, 5.0 * (1.0 + 1e-9)))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(100))
def test_another_problem_is_refused(number, tmp_path):
    first, second = pair(number)
    settings = QUICK | {"checkpoint": tmp_path / "run.checkpoint"}
    before = mb.relax_and_penalize(first, **settings)
    with pytest.raises(mb.CheckpointMismatch, match="belongs to another run: it differs in"):
        mb.relax_and_penalize(second, **settings)
    again = mb.relax_and_penalize(pair(number)[0], **settings)
    assert again.theta.tobytes() == before.theta.tobytes()


def test_an_answer_for_other_costs_is_not_reported(tmp_path):
    """Permuted costs have the same value at the centre: an answer worth 11 was once reported as worth 3."""
    costs = np.array([1.0, 2.0, 5.0, 6.0])
    settings = {"seed": 0, "starts": 1, "checkpoint": tmp_path / "run.checkpoint"}
    assert mb.relax_and_penalize(linear(costs, mb.Budget(4, 2)), **settings).value == 3.0
    with pytest.raises(mb.CheckpointMismatch):
        mb.relax_and_penalize(linear(costs[::-1], mb.Budget(4, 2)), **settings)


def test_a_problem_that_fails_at_the_random_point_says_so_where_it_runs(tmp_path):
    def function(theta):
        if theta.min() != theta.max():
            raise ZeroDivisionError("away from the centre")
        return 0.0, np.zeros(4)

    problem = mb.FunctionProblem(function, mb.Budget(4, 2))
    result = mb.relax_and_round(problem, rounding=None, seed=0, starts=1, checkpoint=tmp_path / "run.checkpoint")
    assert result.value == 0.0
    with pytest.raises(ZeroDivisionError, match="away from the centre") as caught:
        mb.relax_and_penalize(problem, seed=0, checkpoint=tmp_path / "other.checkpoint")
    assert "mixbin: raised in evaluation" in caught.value.__notes__[0]


def tampered(path, change):
    """The checkpoint with another state, whole in every other respect."""
    header, arrays = _archive.read_archive(path, "checkpoint", (2,))
    change(header, arrays)
    del header["arrays"]
    _archive.write_archive(path, header, arrays, compress=False)


def saved(path):
    problem = quadratic(mb.Knapsack([1.0, 5.0, 9.0], 6.0), 0, n_lam=1)
    mb.relax_and_penalize(problem, **QUICK, checkpoint=path)
    return problem


def _best(header):
    return header["state"]["value"]["best"]["value"]


def _infeasible(header, arrays):
    arrays[_best(header)["theta"]["value"]] = np.array([True, True, True])


def _other_shape(header, arrays):
    arrays[_best(header)["theta"]["value"]] = np.zeros(4, dtype=bool)


def _far_lam(header, arrays):
    arrays[_best(header)["lam"]["value"]] = np.array([1e9])


def _far_relaxed(header, arrays):
    arrays[_best(header)["relaxed"]["value"]["theta"]["value"]] = np.array([1.0, 1.0, 1.0])


def _no_phase(header, arrays):
    header["state"]["value"]["phase"] = "sleep"


def _no_answer(header, arrays):
    header["state"]["value"]["phase"] = "cold"


def _negative_count(header, arrays):
    header["state"]["value"]["start"] = -1


def _no_bound(header, arrays):
    header["state"]["value"]["lower_bound"] = float("nan")


def _infinite_bound(header, arrays):
    header["state"]["value"]["lower_bound"] = float("inf")


IMPOSSIBLE = {
    _infeasible: "answer is not in Knapsack",
    _other_shape: r"answer has shape \(4,\)",
    _far_lam: "lam is not in Box",
    _far_relaxed: "the relaxed point is not in Knapsack",
    _no_phase: "phase 'sleep'",
    _no_answer: "in the phase 'cold' without 'state'",
    _negative_count: "its counts are",
    _no_bound: "its lower bound is nan",
    _infinite_bound: "its lower bound is inf",
}


@pytest.mark.parametrize("change", IMPOSSIBLE, ids=lambda it: it.__name__)
def test_what_is_loaded_must_be_possible(change, tmp_path):
    path = tmp_path / "run.checkpoint"
    problem = saved(path)
    tampered(path, change)
    with pytest.raises(mb.CheckpointMismatch, match=f"does not fit this problem: .*{IMPOSSIBLE[change]}"):
        mb.relax_and_penalize(problem, **QUICK, checkpoint=path)


def _lost_field(header, arrays):
    del header["state"]["value"]["best"]["value"]["theta"]


def _added_field(header, arrays):
    header["state"]["value"]["surprise"] = 1


def _lost_array(header, arrays):
    arrays.pop(_best(header)["theta"]["value"])


def _other_dtype(header, arrays):
    name = _best(header)["lam"]["value"]
    arrays[name] = arrays[name].astype(np.float32)


def _text_for_a_number(header, arrays):
    header["state"]["value"]["outer"] = "7"


def _no_state(header, arrays):
    header["state"] = [1, 2, 3]


def _another_class(header, arrays):
    header["state"]["is"] = "Popen"


def _unknown_status(header, arrays):
    _best(header)["status"]["value"] = "PERFECT"


def _ragged_trace(header, arrays):
    name = header["state"]["value"]["trace"]["value"]["G"]["value"]
    arrays[name] = arrays[name][:-1]


def _no_identity(header, arrays):
    header["identity"] = 3


DAMAGED = [_lost_field, _added_field, _lost_array, _other_dtype, _text_for_a_number, _no_state, _another_class, _unknown_status]


@pytest.mark.parametrize("change", [*DAMAGED, _ragged_trace, _no_identity], ids=lambda it: it.__name__)
def test_states_that_nobody_saved(change, tmp_path):
    path = tmp_path / "run.checkpoint"
    problem = saved(path)
    tampered(path, change)
    with pytest.raises(mb.InvalidInput, match="is not a saved mixbin checkpoint, or is damaged"):
        mb.relax_and_penalize(problem, **QUICK, checkpoint=path)


def test_deep_nesting(tmp_path):
    path = tmp_path / "run.checkpoint"
    problem = saved(path)
    start, deep = '{"kind": "checkpoint", "format": 2, "arrays": {}, "identity": {}, "state": ', '{"is": "map", "value": {"a": '
    for text in ("[" * 200_000, start + deep * 20_000, start + deep * 400 + "1" + "}}" * 400 + "}"):
        header = np.frombuffer(text.encode(), dtype=np.uint8)
        with path.open("wb") as file:
            np.savez(file, header=header)
        with pytest.raises(mb.InvalidInput):
            mb.relax_and_penalize(problem, **QUICK, checkpoint=path)


# Paths.


def simple():
    return linear([3.0, 1.0, 2.0], mb.Budget(3, 2))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(mb.InvalidInput, match=r"^checkpoint must be a file in an existing folder, got '"):
        mb.relax_and_penalize(simple(), **QUICK, checkpoint=path)
    with pytest.raises(mb.InvalidInput, match="which is not a file"):
        mb.Result.load(path)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["a folder", "a pipe"])
def test_a_lock_that_is_not_a_file(make, tmp_path):
    make(tmp_path / "run.checkpoint.lock")
    with pytest.raises(mb.InvalidInput, match=r"needs the name '.*run.checkpoint.lock' for its lock, which is not a file"):
        mb.relax_and_penalize(simple(), **QUICK, checkpoint=tmp_path / "run.checkpoint")
    assert [file.name for file in tmp_path.iterdir()] == ["run.checkpoint.lock"]


def test_a_long_name_works_and_a_longer_one_is_told(tmp_path):
    path = tmp_path / ("n" * 250)
    first = mb.relax_and_penalize(simple(), **QUICK, checkpoint=path)
    (tmp_path / f".{'n' * 200}~left.part").touch()
    again = mb.relax_and_penalize(simple(), **QUICK, checkpoint=path)
    assert (again.value, again.theta.tolist()) == (first.value, first.theta.tolist())
    path.unlink()
    first.save(path)
    assert mb.Result.load(path).value == first.value
    for length in (252, 300):
        with pytest.raises((mb.InvalidInput, mb.CannotWrite), match=r"File name too long.*; choose a shorter"):
            mb.relax_and_penalize(simple(), **QUICK, checkpoint=tmp_path / ("n" * length))
    with pytest.raises(mb.CannotWrite, match=r"cannot be written \(File name too long\); choose a shorter name"):
        first.save(tmp_path / ("n" * 300))


@pytest.mark.parametrize("folder", ["/proc", "/sys"])
def test_a_folder_that_takes_no_files(folder):
    if not os.path.isdir(folder):
        pytest.skip(f"no {folder} here")
    with pytest.raises(mb.CannotWrite, match="cannot be written"):
        mb.relax_and_penalize(simple(), **QUICK, checkpoint=f"{folder}/run.checkpoint")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_is_full_or_read_only_is_told_before_any_work(code, tmp_path, monkeypatch):
    def refuse(handle):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    evaluations = []

    def function(theta):
        evaluations.append(theta)
        return float(theta.sum()), np.ones(3)

    with pytest.raises(mb.CannotWrite, match=os.strerror(code)) as caught:
        mb.relax_and_penalize(mb.FunctionProblem(function, mb.Budget(3, 2)), **QUICK, checkpoint=tmp_path / "run.checkpoint")
    assert caught.value.errno == code
    assert len(evaluations) == 1, "the one by which the problem is recognised"
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    sync, count = os.fsync, [0]

    def fills_up(handle):
        count[0] += 1
        if count[0] > 9:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    problem = quadratic(mb.Budget(12, 4), 0)
    whole = mb.relax_and_penalize(problem, **QUICK)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fills_up)
        with pytest.raises(mb.CannotWrite, match=r"No space left on device.*free some space"):
            mb.relax_and_penalize(problem, **QUICK, checkpoint=path, checkpoint_every=0.0)
    assert [file.name for file in tmp_path.iterdir()] == ["run.checkpoint"]
    again = mb.relax_and_penalize(problem, **QUICK, checkpoint=path)
    assert (again.value, again.theta.tobytes()) == (whole.value, whole.theta.tobytes())


def test_fingerprints_of_sets():
    """Equal for equal sets, different for the smallest difference."""
    made = [
        lambda: mb.Budget(5, 2),
        lambda: mb.Budget(5, 2, at_most=True),
        lambda: mb.Budget(6, 2),
        lambda: mb.Hypercube(5),
        lambda: mb.Hypercube((5, 1)),
        lambda: mb.OneHot(5, 2),
        lambda: mb.Knapsack([1.0, 2.0, 3.0], 4.0),
        lambda: mb.Knapsack([2.0, 1.0, 3.0], 4.0),
        lambda: mb.Knapsack([1.0, 2.0, np.nextafter(3.0, 4.0)], 4.0),
        lambda: mb.Knapsack([1.0, 2.0, 3.0], np.nextafter(4.0, 5.0)),
        lambda: mb.Box(0.5, 1.0),
        lambda: mb.Box(0.5, 1.0, log=True),
        lambda: mb.Box([0.5], [1.0]),
        lambda: mb.Box(0.5, np.nextafter(1.0, 2.0)),
    ]
    assert len({make().fingerprint() for make in made}) == len(made)
    assert [make().fingerprint() for make in made] == [make().fingerprint() for make in made]

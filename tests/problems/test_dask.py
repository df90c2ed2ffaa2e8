"""Distillation on Dask: the same value, gradient and rows as in memory, on threads and on processes; and what is refused."""

import logging
import os
import signal
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import mixbin as mb
from mixbin.data import block_copies, blocks, dask_blocks, parts
from mixbin.testing import check_problem
from tests.shared_data import shared_file

NO_LAM = np.empty(0)
CHUNKS = (3_000, 12_000, 7_000, 1_397, 20_000, 5_000, 4_000)
"""The 52,397 rows of blog in 7 uneven blocks."""
SMALL = (17, 1, 40, 30, 2, 60, 50)


@contextmanager
def workers(n):
    """A cluster of ``n`` worker processes, with a BLAS thread each as Dask starts them, and a client of it."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") as made, Client(made) as client:
        yield client


@pytest.fixture(scope="module")
def cluster():
    with workers(2) as client:
        yield client


@pytest.fixture(autouse=True)
def _threads():
    """The threads of this process, unless a test asks for others; all with one BLAS thread, as the workers have."""
    with dask.config.set(scheduler="threads"), threadpool_limits(1):
        yield


@pytest.fixture(params=["threads", pytest.param("processes", marks=pytest.mark.slow)])
def scheduler(request):
    """The threads of this process, or the cluster."""
    if request.param == "processes":
        request.getfixturevalue("cluster")
    with dask.config.set(scheduler="threads" if request.param == "threads" else "dask.distributed"):
        yield


def data(rows=200, columns=5, targets=None, seed=0):
    rng = np.random.default_rng(seed)
    shape = (columns,) if targets is None else (columns, targets)
    coef = rng.normal(size=shape)
    made = []
    for n in (rows, 60):
        X = 100.0 + rng.normal(size=(n, columns))
        noise = rng.normal(size=(n, *shape[1:])) * np.where(rng.random(n) < 0.3, 3.0, 0.1).reshape(n, *[1] * len(shape[1:]))
        made += [X, X @ coef + noise]
    return made


def arrays(X, y, chunks=SMALL):
    return da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=(chunks, *[-1] * (y.ndim - 1)))


@pytest.fixture
def made():
    X, y, X_val, y_val = data()
    return SimpleNamespace(X=X, y=y, X_val=X_val, y_val=y_val, dask=arrays(X, y), validation=(X_val, y_val))


# The same answer.


@pytest.fixture(scope="module")
def blog():
    return mb.datasets.load_blog(shared_file("BlogFeedback.zip"))


def recorded(m, n):
    """Weights as a run meets them: all rows with weight, few rows with weight, whole blocks without, binary; in fives."""
    rng = np.random.default_rng(50)
    ends = np.cumsum(CHUNKS)
    for k in range(n):
        v = rng.random(m) if k % 5 < 2 else rng.random(m) * (rng.random(m) < 0.05)
        if k % 5 == 3:
            v[: ends[k % 6]] = 0.0
        yield (v > 0.5).astype(float) if k % 5 == 4 else v


@pytest.mark.parametrize("targets", [None, pytest.param(2, marks=pytest.mark.ci)])
@pytest.mark.parametrize("kind", ["float64", "float32", "by columns"])
def test_value_and_gradient_are_those_in_memory(scheduler, targets, kind):
    X, y, X_val, y_val = data(targets=targets)
    X = X.astype(np.float32).astype(np.float32 if kind == "float32" else np.float64)
    plain = mb.RidgeDistillation(X.astype(np.float64), y, X_val, y_val, budget=20)
    table, target = arrays(X, y)
    if kind == "by columns":
        table = table.map_blocks(np.asfortranarray)
    problem = mb.RidgeDistillation(table, target, X_val, y_val, budget=20)
    assert problem.alpha == pytest.approx(plain.alpha, rel=1e-12)
    rng = np.random.default_rng(1)
    for lam in np.geomspace(*plain.alpha, 3):
        v = rng.random(len(X)) * (rng.random(len(X)) < 0.4)
        v[: sum(SMALL[:3])] = 0.0
        expected, got = plain.evaluate(v, lam), problem.evaluate(v, lam)
        assert got.value == pytest.approx(expected.value, rel=1e-11)
        np.testing.assert_allclose(got.grad_theta, expected.grad_theta, rtol=1e-9, atol=1e-12 * abs(expected.grad_theta).max())
        assert got.grad_lam == pytest.approx(expected.grad_lam, rel=1e-9)
        for mine, theirs in zip(problem.model(v, lam), plain.model(v, lam), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9)


def test_gradient_against_central_differences(made):
    problem = mb.RidgeDistillation(*made.dask, *made.validation, budget=20, alpha=0.01)
    rng = np.random.default_rng(2)
    v = rng.random(len(made.y))
    grad = problem.evaluate(v, NO_LAM).grad_theta
    for i in rng.choice(v.size, 12, replace=False):
        h = 1e-5 * np.eye(1, v.size, i)[0]
        difference = problem.evaluate(v + h, NO_LAM).value - problem.evaluate(v - h, NO_LAM).value
        assert grad[i] == pytest.approx(difference / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.01, pytest.param(None, marks=pytest.mark.ci)])
def test_every_promise_of_a_problem(made, alpha):
    problem, other = (mb.RidgeDistillation(*made.dask, *made.validation, budget=20, alpha=it) for it in (alpha, 0.02))
    check_problem(problem, gradient_tol=1e-5, trials=1, others=[other])


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:Sending large graph")  # of arrays in this process: users have files
def test_blog_at_many_points(blog, scheduler):
    keywords = {"budget": 0.1, "alpha": 100.0}
    plain = mb.RidgeDistillation(blog.X, blog.y, blog.X_val, blog.y_val, **keywords)
    problem = mb.RidgeDistillation(*arrays(blog.X, blog.y, CHUNKS), blog.X_val, blog.y_val, **keywords)
    for v in recorded(len(blog.y), 50):
        expected, got = plain.evaluate(v, NO_LAM), problem.evaluate(v, NO_LAM)
        assert got.value == pytest.approx(expected.value, rel=1e-9)
        gap = np.linalg.norm(got.grad_theta - expected.grad_theta)
        assert gap <= 1e-9 * np.linalg.norm(expected.grad_theta)


@pytest.mark.ci
def test_a_run_gives_the_rows_of_the_same_blocks(scheduler, made):
    local = mb.RidgeDistillation(made.X, made.y, *made.validation, budget=20, chunks=SMALL)
    problem = mb.RidgeDistillation(*made.dask, *made.validation, budget=20)
    expected, got = (mb.relax_and_penalize(it, seed=0, max_evaluations=50) for it in (local, problem))
    np.testing.assert_array_equal(got.theta, expected.theta)
    assert got.value == expected.value
    assert got.lam == expected.lam
    assert got.certificate == expected.certificate
    plain = mb.relax_and_penalize(mb.RidgeDistillation(made.X, made.y, *made.validation, budget=20), seed=0, max_evaluations=50)
    assert got.value <= 1.001 * plain.value


@pytest.mark.parametrize("chunks", [(200,), (100, 100), (7,) * 28 + (4,), (1,) * 200])
def test_any_blocks_give_the_same_up_to_rounding(made, chunks):
    problem = mb.RidgeDistillation(made.X, made.y, *made.validation, budget=20, alpha=0.01, chunks=chunks)
    plain = mb.RidgeDistillation(made.X, made.y, *made.validation, budget=20, alpha=0.01)
    v = np.random.default_rng(0).random(200)
    got, expected = problem.evaluate(v, NO_LAM), plain.evaluate(v, NO_LAM)
    assert got.value == pytest.approx(expected.value, rel=1e-11)
    np.testing.assert_allclose(got.grad_theta, expected.grad_theta, rtol=1e-9, atol=1e-13)


def test_dataframes_and_validation_on_dask(made):
    frame = pd.DataFrame(made.X, columns=list("abcde")).assign(n=np.arange(200), y=made.y)
    table = dd.from_pandas(frame, npartitions=4)
    # A filter leaves two partitions empty and one short.
    table = table[table["n"] < 90]
    held = pd.DataFrame(made.X_val, columns=list("abcde")).assign(n=7, y=made.y_val)
    held = dd.from_pandas(held, npartitions=3)
    columns = [*"abcde", "n"]
    problem = mb.RidgeDistillation(table[columns], table["y"], held[columns], held["y"], budget=20, alpha=0.01)
    first, last = frame[:90], held.compute()
    plain = mb.RidgeDistillation(first[columns], first["y"], last[columns], last["y"], budget=20, alpha=0.01)
    v = np.random.default_rng(3).random(90)
    got, expected = problem.evaluate(v, NO_LAM), plain.evaluate(v, NO_LAM)
    assert got.value == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(got.grad_theta, expected.grad_theta, rtol=1e-7, atol=1e-12)


def test_sums_do_not_lose_digits_to_large_offsets():
    rng = np.random.default_rng(0)
    X, y = 1e8 + rng.normal(size=(300, 3)), rng.normal(size=300)
    problem = mb.RidgeDistillation(X, y, X[:50], y[:50], budget=20, alpha=1e-3, chunks=(100, 150, 50))
    shifted = mb.RidgeDistillation(X - 1e8, y, X[:50] - 1e8, y[:50], budget=20, alpha=1e-3)
    v = (X[:, 0] > 1e8).astype(float)
    assert problem.evaluate(v, NO_LAM).value == pytest.approx(shifted.evaluate(v, NO_LAM).value, rel=1e-10)


# Passes.


def counted(problem):
    """The blocks that each pass computes."""
    executor = problem.rows.executor
    seen, compute = [], executor._compute

    def noted(function, merge, wanted):
        blocks = [id(block) for block in executor._blocks]
        seen.append((function.__name__, [blocks.index(id(block)) for block, _ in wanted]))
        return compute(function, merge, wanted)

    executor._compute = noted
    return seen


def test_passes(made):
    """One for a value, one more for its gradient, none for another lam; blocks without weight are left out."""
    problem = mb.RidgeDistillation(*made.dask, *made.validation, budget=20)
    seen = counted(problem)
    v = np.zeros(200)
    v[[0, 58, 199]] = 1.0
    problem.evaluate(v, np.array(0.01), gradient=False)
    assert seen == [("moments", [0, 3, 6])]
    problem.evaluate(v, np.array(0.02))
    assert seen[1:] == [("gradient", list(range(7)))]
    rows = problem.rows.take(np.array([199, 0, 60, 199]), np.zeros(6))
    np.testing.assert_allclose(rows + problem.rows.centre, np.column_stack([made.X, made.y])[[199, 0, 60, 199]])
    assert seen[2:] == [("taken", [0, 3, 6])]


@pytest.mark.ci
def test_the_search_stays_among_fetched_rows(made, monkeypatch):
    """Few rows are fetched, and the certificate speaks of the exchanges between these."""
    from mixbin.problems.distillation import exchanges

    monkeypatch.setattr(exchanges, "POOL", 10)
    problem = mb.RidgeDistillation(*made.dask, *made.validation, budget=20, alpha=0.01)
    result = mb.relax_and_penalize(problem, seed=0, starts=1)
    assert (result.certificate.moves_tried, result.certificate.moves_total) == (100, 20 * 180)
    assert result.certificate.one_move_optimal is None
    assert result.certificate.best_change >= 0
    certified = mb.certify(problem, result.theta, max_moves=500)
    assert 400 <= certified.moves_tried <= 500
    assert mb.certify(problem, result.theta).one_move_optimal is not None


@pytest.mark.slow
def test_kept_or_read_anew(made, cluster, caplog, monkeypatch):
    """What fits half of the cluster's memory is kept; the user is told which."""
    reads = []
    X = made.dask[0].map_blocks(lambda block: reads.append(0) or block, dtype=float, meta=made.X[:0])
    with caplog.at_level(logging.INFO, "mixbin"):
        problem = mb.RidgeDistillation(X, made.dask[1], *made.validation, budget=20, alpha=0.01)
        problem.evaluate(np.ones(200), NO_LAM)
        assert len(reads) == len(SMALL)
        assert "kept in memory" in caplog.text
        assert "kept in memory" in problem.rows.statistics().storage
        once = problem.rows.statistics().bytes_read
        assert once == made.X.nbytes + made.y.nbytes
        caplog.clear()
        monkeypatch.setattr(dask_blocks, "KEPT_SHARE", 1e-9)
        reads.clear()
        problem = mb.RidgeDistillation(X, made.dask[1], *made.validation, budget=20, alpha=0.01)
        problem.evaluate(np.ones(200), NO_LAM)
        assert len(reads) == 3 * len(SMALL)
        assert "read anew in every pass" in caplog.text
        assert problem.rows.statistics().bytes_read == 3 * once
    monkeypatch.undo()
    assert problem.rows.statistics().n_workers is None
    with dask.config.set(scheduler="dask.distributed"):
        problem = mb.RidgeDistillation(*made.dask, *made.validation, budget=20, alpha=0.01)
    assert problem.rows.statistics().n_workers == 2
    assert "kept in memory" in problem.rows.statistics().storage


@pytest.mark.slow
def test_few_rows_with_weight_stay_with_the_workers(cluster, monkeypatch):
    """A late value reads nothing if its rows are kept, and has the bits of the same blocks in this process."""
    X, y, X_val, y_val = data(rows=4000)
    chunks = (1000, 1, 1999, 500, 500)
    local = mb.RidgeDistillation(X, y, X_val, y_val, budget=40, alpha=0.01, chunks=chunks)
    monkeypatch.setattr(dask_blocks, "KEPT_SHARE", 0.0)
    monkeypatch.setattr(block_copies, "SHARE", 0.0)
    with dask.config.set(scheduler="dask.distributed"):
        problem = mb.RidgeDistillation(*arrays(X, y, chunks), X_val, y_val, budget=40, alpha=0.01)

    def read(v, gradient=False):
        before = problem.rows.statistics().bytes_read
        got, expected = (it.evaluate(v, NO_LAM, gradient=gradient) for it in (problem, local))
        assert got.value == expected.value
        if gradient:
            np.testing.assert_array_equal(got.grad_theta, expected.grad_theta)
        return (problem.rows.statistics().bytes_read - before) / (X.nbytes + y.nbytes), got.grad_theta

    v = np.zeros(4000)
    v[np.random.default_rng(0).choice(4000, 40, replace=False)] = 0.5
    v[1000] = 1.0  # the only row of its block
    assert read(np.full(4000, 0.01)) == (1.0, None)
    assert read(v, gradient=True)[0] == 2.0  # the gradient goes through all rows, and leaves those with weight with the workers
    assert read(0.5 * v) == (0.0, None)
    v[np.flatnonzero(v)[:5]] = 0.0
    assert read(v) == (0.0, None)
    # A row that no worker has: its block is read, the others are not.
    v[3999] = 1.0
    assert read(v, gradient=True)[0] == pytest.approx(1.0 + 500 / 4000)
    # Rows that a gradient promises most for were left with the workers, too: the sample of the gradient before tells how many.
    v[np.argsort(problem.evaluate(v, NO_LAM).grad_theta)[:20]] = 0.3
    assert read(v) == (0.0, None)
    # Once many rows have weight, nothing is kept.
    assert read(np.full(4000, 0.01)) == (1.0, None)
    assert not problem.rows.executor._near._kept


def test_what_several_blocks_need_is_made_once_a_pass(made, scheduler, monkeypatch, tmp_path):
    """A block's own steps are one task; the mean that all are centred with is not made again for each."""
    monkeypatch.setattr(dask_blocks, "KEPT_SHARE", 1e-9)

    def noted(X):
        with (tmp_path / "made").open("a") as file:
            file.write("once ")
        return X.mean(axis=0)

    mean = da.from_delayed(dask.delayed(noted)(made.dask[0]), (5,), dtype=float)
    problem = mb.RidgeDistillation(made.dask[0] - mean, made.dask[1], *made.validation, budget=20, alpha=0.01)
    assert [len(source.inputs) for source in problem.rows.executor._blocks] == [1] * 7
    got = problem.evaluate(np.ones(200), NO_LAM)
    # A cluster may still have it from the pass before.
    assert 1 <= len((tmp_path / "made").read_text().split()) <= problem.rows.statistics().passes == 3
    plain = mb.RidgeDistillation(made.X - made.X.mean(axis=0), made.y, *made.validation, budget=20, alpha=0.01)
    assert got.value == pytest.approx(plain.evaluate(np.ones(200), NO_LAM).value, rel=1e-9)


@pytest.mark.ci
def test_blocks_in_a_task_do_not_change_the_bits(made, cluster, monkeypatch):
    """Neither of sums nor of what is passed on block by block."""
    monkeypatch.setattr(dask_blocks, "KEPT_SHARE", 1e-9)
    X, y = arrays(made.X, made.y, (3,) * 66 + (2,))
    v = np.random.default_rng(0).random(200)
    found = []
    for tasks, size in ((1000, 1), (16, 2), (8, 4), (1, 8)):
        monkeypatch.setattr(dask_blocks, "TASKS_PER_THREAD", tasks)
        with dask.config.set(scheduler="dask.distributed"):
            problem = mb.RidgeDistillation(X, y, *made.validation, budget=20, alpha=0.01)
        assert problem.rows.executor._task_size(67) == size
        found.append(problem.evaluate(v, NO_LAM))
    local = mb.RidgeDistillation(made.X, made.y, *made.validation, budget=20, alpha=0.01, chunks=(3,) * 66 + (2,))
    expected = local.evaluate(v, NO_LAM)
    for got in found:
        assert got.value == expected.value
        np.testing.assert_array_equal(got.grad_theta, expected.grad_theta)


class Rows(parts.RowsInParts):
    """Rows of an array, in parts of different lengths, one of them empty."""

    def __init__(self, X, ends=(10, 10, 45, 120)):
        self.X, self.ends, self.shape, self.dtype = X, ends, X.shape, X.dtype

    def parts(self):
        for part in np.split(self.X, self.ends):
            yield parts.Columns(list(np.asfortranarray(part).T))


@pytest.mark.parametrize("rows", [None, [0, 3, 9], [9, 10, 44, 45, 119, 120, 199], list(range(40, 50))])
@pytest.mark.parametrize("targets", [None, 2])
@pytest.mark.parametrize("held", [False, True])
def test_rows_in_parts(rows, targets, held, monkeypatch):
    """All that is asked of a block, whether it is an array or comes in parts."""
    monkeypatch.setattr(blocks, "BUFFER_ENTRIES", 60)
    X, y, *_ = data(targets=targets)
    inside = Rows(X).loaded() if held else Rows(X)
    e = targets or 1
    rng = np.random.default_rng(1)
    centre, K, A = rng.normal(size=5 + e), rng.normal(size=(e, 5 + e)), rng.normal(size=(e, 5 + e))
    v = rng.random(200)
    weights = blocks.Weights(v) if rows is None else blocks.Weights(v[rows], np.array(rows, dtype=np.int32))

    def all_of(X):
        R = blocks.triangle(X, y, centre)
        return [
            *blocks.moments(X, y, weights, centre),
            blocks.gradient(X, y, K, A, rng.normal(size=e) * 0 + 1.0, centre),
            blocks.images(X, y, K, centre),
            blocks.taken(X, y, np.array(rows or [0, 199]), centre),
            R.T @ R,
            *blocks.survey(X, y)[3:],
        ]

    for got, expected in zip(all_of(inside), all_of(X), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_a_bad_value_in_a_part():
    X, y, *_ = data()
    X[121, 3] = np.nan
    assert blocks.survey(Rows(X), y).wrong == "X must be finite, got nan in its row 121, column 3"


def test_fingerprint_is_dasks_token(made):
    def build(X, **keywords):
        return mb.RidgeDistillation(X, made.dask[1], *made.validation, **({"budget": 20, "alpha": 0.01} | keywords))

    problem = build(made.dask[0])
    seen = counted(problem)
    first = problem.fingerprint()
    assert first == build(arrays(made.X.copy(), made.y)[0]).fingerprint()
    assert first != build(arrays(made.X + 1, made.y)[0]).fingerprint()
    assert first != build(made.dask[0], budget=30).fingerprint()
    assert not seen


def test_the_tree_has_one_order():
    for n in (1, 2, 7, 8, 9, 64, 65, 100):
        names = [str(i) for i in range(n)]
        nested = blocks.tree(names, lambda parts: "(" + ",".join(parts) + ")")
        assert nested.replace("(", "").replace(")", "").split(",") == names
        assert nested.count(",") == n - 1


# Workers and schedulers that are lost.


@pytest.mark.ci
def test_a_worker_that_is_killed(made):
    problem = mb.RidgeDistillation(made.X, made.y, *made.validation, budget=20, alpha=0.01, chunks=SMALL)
    expected = mb.relax_and_penalize(problem, seed=0, max_evaluations=40)
    killed = []

    def kill(event):
        if event.n_evaluations > 10 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            # In the middle of what follows.
            threading.Timer(0.02, os.kill, (killed[0], signal.SIGKILL)).start()

    with workers(2) as client:
        with dask.config.set(scheduler=client):
            problem = mb.RidgeDistillation(*made.dask, *made.validation, budget=20, alpha=0.01)
        got = mb.relax_and_penalize(problem, seed=0, max_evaluations=40, callbacks=[kill])
    assert killed
    np.testing.assert_array_equal(got.theta, expected.theta)
    assert got.value == expected.value


@pytest.mark.ci
def test_a_worker_that_is_killed_with_the_rows_it_keeps(monkeypatch):
    X, y, X_val, y_val = data(rows=4000)
    chunks = (1000, 1000, 1000, 500, 500)
    local = mb.RidgeDistillation(X, y, X_val, y_val, budget=40, alpha=0.01, chunks=chunks)
    monkeypatch.setattr(dask_blocks, "KEPT_SHARE", 0.0)
    monkeypatch.setattr(block_copies, "SHARE", 0.0)
    v = np.zeros(4000)
    v[::100] = 1.0
    with workers(2) as client:
        with dask.config.set(scheduler=client):
            problem = mb.RidgeDistillation(*arrays(X, y, chunks), X_val, y_val, budget=40, alpha=0.01)
        problem.evaluate(v, NO_LAM)
        assert len(problem.rows.executor._near._kept) == len(chunks)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        for scale in (0.5, 0.25):
            got, expected = (it.evaluate(scale * v, NO_LAM) for it in (problem, local))
            assert got.value == expected.value
            np.testing.assert_array_equal(got.grad_theta, expected.grad_theta)


@pytest.mark.slow
def test_blocks_under_which_workers_die(made):
    """As for want of memory: an error that says so, not one of Dask's own."""
    X = made.dask[0].map_blocks(lambda block: os._exit(1), dtype=float, meta=made.X[:0])
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        workers(1) as client,
        dask.config.set(scheduler=client),
        pytest.raises(mb.ClusterLost, match="died again and again under the same blocks, perhaps for want of memory; give them"),
    ):
        mb.RidgeDistillation(X, made.dask[1], *made.validation, budget=20, alpha=0.01)


@pytest.mark.ci
@pytest.mark.slow
def test_a_scheduler_that_is_lost(made, cluster, tmp_path):
    """A clear error; the same call goes on from the checkpoint on another cluster."""
    keywords = {"seed": 0, "max_evaluations": 30, "checkpoint": tmp_path / "run.checkpoint", "checkpoint_every": 0.0}
    problem = mb.RidgeDistillation(made.X, made.y, *made.validation, budget=20, alpha=0.01, chunks=SMALL)
    expected = mb.relax_and_penalize(problem, seed=0, max_evaluations=30)

    def build(client):
        with dask.config.set(scheduler=client):
            return mb.RidgeDistillation(*made.dask, *made.validation, budget=20, alpha=0.01)

    def lose(event):
        if event.n_evaluations > 10:
            client.cluster.close()

    with workers(1) as client, pytest.raises(mb.ClusterLost, match=r"scheduler at tcp://.* is lost; start a cluster"):
        mb.relax_and_penalize(build(client), callbacks=[lose], **keywords)
    got = mb.relax_and_penalize(build(cluster), **keywords)
    assert got.n_evaluations == expected.n_evaluations
    np.testing.assert_array_equal(got.theta, expected.theta)


# Bad input.


def with_nan(block, block_info=None):
    return np.where(np.arange(len(block))[:, None] == 3, np.nan, block) if block_info[0]["chunk-location"][0] == 17 else block


def as_objects(block, block_info=None):
    return block.astype(object) if block_info[0]["chunk-location"][0] == 2 else block


def bad_inputs():
    X, y, *_ = data()
    table, target = arrays(X, y)
    even = arrays(X, y, (10,) * 20)
    numbers = ["a", "c", "d", "e", "f"]
    frame = dd.from_pandas(pd.DataFrame(dict.fromkeys(numbers, y) | {"b": ["text"] * 200, "y": y}), npartitions=4)
    other = dd.from_pandas(pd.DataFrame({"y": y}), npartitions=2)
    uneven = frame[frame["a"] > frame["a"].mean()]
    known = table[:, :3].map_blocks(lambda block: block, dtype=float, meta=X[:0])
    yield "unknown", table[table[:, 0] > 100], target, r"X must have blocks of known size.*X\.compute_chunk_sizes\(\)"
    yield "unknown y", table, target[target > 0], r"y must have blocks of known size.*y\.compute_chunk_sizes\(\)"
    yield "mismatch", table, target.rechunk(50), r"same blocks, got 7 and 4 blocks; use y\.rechunk\(\{0: X\.chunks\[0\]\}\)"
    swapped = da.from_array(y, chunks=((1, 17, *SMALL[2:]),))
    yield "sizes", table, swapped, "same blocks, got 17 and 1 rows in block 0"
    yield "partitions", frame[["a"]], other["y"], "same blocks, got 4 and 2 blocks; make them from the same partitions"
    yield "filtered", uneven[numbers], frame["y"], r"same blocks, got \d+ and 50 rows in block 0"
    yield "columns", table.rechunk({1: 2}), target, r"all its columns in each block, got 3 blocks.*X\.rechunk\(\{1: -1\}\)"
    nan = even[0].map_blocks(with_nan, dtype=float, meta=X[:0])
    yield "nan", nan, even[1], "block 17 of X and y: X must be finite, got nan in its row 3, column 0"
    mixed = even[0].map_blocks(as_objects, dtype=float, meta=X[:0])
    yield "mixed", mixed, even[1], "block 2 of X and y: X must be numbers, got dtype object"
    yield "text", frame[["a", "b"]], frame["y"], "X must hold numbers, got column 'b' of dtype"
    yield "text y", frame[["a"]], frame["b"], "y must hold numbers, got its entries of dtype"
    yield "objects", table.astype(object), target, "X must hold numbers, got its entries of dtype object"
    nothing = frame[numbers][frame["a"] > 1e9]
    yield "no rows", nothing, frame["y"][frame["a"] > 1e9], "X must have rows, got 4 blocks without any"
    yield "y in memory", table, y, r"y must be a Dask array or series.*dask\.array\.from_array\(y, chunks=X\.chunks\[0\]\)"
    yield "X in memory", X, target, "X must be a Dask array .* where y is one of Dask, got ndarray"
    yield "delayed", dask.delayed(X), target, "X must be a Dask array .*, got Delayed"
    yield "one dimension", target, target, r"X must be a Dask array of shape \(rows, columns\)"
    yield "other columns", known[:, :3], target, "X_val must have the columns of X, got 5 columns against 3"


@pytest.mark.parametrize(("X", "y", "message"), [it[1:] for it in bad_inputs()], ids=[it[0] for it in bad_inputs()])
def test_bad_input(X, y, message, made):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.RidgeDistillation(X, y, *made.validation, budget=20)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ((100, 99), "chunks must be blocks that make up the 200 rows of X"),
        ((200, 0), r"chunks\[1\] must be a whole number of at least 1"),
    ],
)
def test_bad_chunks(chunks, message, made):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.RidgeDistillation(made.X, made.y, *made.validation, budget=20, chunks=chunks)
    with pytest.raises(mb.InvalidInput, match="chunks must be None for a Dask X"):
        mb.RidgeDistillation(*made.dask, *made.validation, budget=20, chunks=SMALL)


def test_bad_validation_blocks(made):
    X_val = da.from_array(np.where(np.arange(60)[:, None] == 50, np.inf, made.X_val), chunks=(20, -1))
    with pytest.raises(mb.InvalidInput, match="block 2 of X_val and y_val: X_val must be finite, got inf in its row 10"):
        mb.RidgeDistillation(*made.dask, X_val, da.from_array(made.y_val, chunks=20), budget=20)

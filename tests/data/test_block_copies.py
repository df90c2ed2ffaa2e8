"""Copies of blocks on the workers' disks: the same numbers and bits, no work twice, and nothing left behind."""

import gc
import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import mixbin as mb
from mixbin.data import block_copies, blocks, dask_blocks
from mixbin.data.block_copies import Copies, Room, opened, room, written
from mixbin.data.parts import Columns, RowsInParts

NO_LAM = np.empty(0)
CHUNKS = (40, 1, 60, 30, 69)
ROWS = sum(CHUNKS)


class Rows(RowsInParts):
    """Rows in parts of different lengths, one of them empty, whose columns differ in type."""

    def __init__(self, X, ends=(10, 10, 45)):
        self.X, self.ends, self.shape, self.dtype = X, ends, X.shape, X.dtype

    def parts(self):
        for part in np.split(self.X, self.ends):
            yield Columns([np.float32(it) if j == 1 else it for j, it in enumerate(np.asfortranarray(part).T)])


def table(dtype=np.float64):
    X = np.random.default_rng(0).normal(size=(70, 5)) * 1e3
    X[0, 0], X[1, 0] = -0.0, 5e-324
    return X.astype(dtype)


KINDS = {
    "by rows": table(),
    "by columns": np.asfortranarray(table()),
    "single": table(np.float32),
    "half": table(np.float16),
    "whole": table(np.int32),
    "yes or no": table() > 0,
    "every second": table()[::2],
    "in parts": Rows(table()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("part_bytes", [2**25, 8 * 6 * 7, 1])
def test_a_copy_has_the_same_bits(kind, targets, part_bytes, tmp_path, monkeypatch):
    """Numbers, types and shapes; and all that is computed from a block."""
    monkeypatch.setattr(block_copies, "PART_BYTES", part_bytes)
    monkeypatch.setattr(blocks, "BUFFER_ENTRIES", 60)
    X = KINDS[kind]
    y = np.random.default_rng(1).normal(size=(len(X),) if targets is None else (len(X), targets))
    file = tmp_path / "blocks" / "0.arrow"
    assert written(file, X, y)
    assert os.listdir(file.parent) == ["0.arrow"]
    X_copy, y_copy = opened(file)
    assert X_copy.nbytes == X.nbytes
    for copy, one in ((X_copy, X), (y_copy, y)):
        assert (copy.shape, copy.dtype) == (one.shape, one.dtype)
        assert np.asarray(copy).dtype == one.dtype
        np.testing.assert_array_equal(np.asarray(copy), np.asarray(one))
    np.testing.assert_array_equal(np.signbit(np.asarray(X_copy)), np.signbit(np.asarray(X)))
    columns = 5 + (targets or 1)
    rng = np.random.default_rng(2)
    few, centre, K = np.array([0, 9, 10, 33]), rng.normal(size=columns), rng.normal(size=(targets or 1, columns))
    for work in (
        lambda X, y: blocks.moments(X, y, blocks.Weights(rng_of(len(X))), centre),
        lambda X, y: blocks.moments(X, y, blocks.Weights(np.ones(4), few.astype(np.int32)), centre),
        lambda X, y: (blocks.gradient(X, y, K, K, np.ones(len(K)), centre), blocks.taken(X, y, few, centre)),
        lambda X, y: (blocks.triangle(X, y, centre), *blocks.survey(X, y)[3:5]),
    ):
        for got, expected in zip(work(X_copy, y_copy), work(X, y), strict=True):
            np.testing.assert_array_equal(got, expected)
    # X of a copy beside a target that is not, as rows that a worker keeps are.
    np.testing.assert_array_equal(blocks.triangle(X_copy, y, centre), blocks.triangle(X, y, centre))
    np.testing.assert_array_equal(blocks.triangle(np.asarray(X), y_copy, centre), blocks.triangle(np.asarray(X), y, centre))


def rng_of(n):
    return np.random.default_rng(3).random(n)


class Unreadable(Rows):
    """The second part cannot be read."""

    def __init__(self, error):
        super().__init__(table())
        self.error = error

    def parts(self):
        yield from list(super().parts())[:1]
        raise self.error


@pytest.mark.parametrize(
    "X",
    [sparse.csr_array(table()), table().astype(object), table(np.longdouble), table()[:0], Unreadable(OSError("gone"))],
    ids=["sparse", "objects", "long", "no rows", "unreadable"],
)
def test_what_is_not_copied(X, tmp_path):
    assert not written(tmp_path / "blocks" / "0.arrow", X, np.zeros(X.shape[0]))
    assert list(tmp_path.glob("blocks/*")) == []


def test_an_error_of_the_block_is_its_own(tmp_path):
    with pytest.raises(mb.InvalidInput, match="broken"):
        written(tmp_path / "blocks" / "0.arrow", Unreadable(mb.InvalidInput("broken")), np.zeros(70))
    assert list(tmp_path.glob("blocks/*")) == []


def test_no_room_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(block_copies, "LEFT_FREE", 1e30)
    assert not written(tmp_path / "blocks" / "0.arrow", table(), np.zeros(70))
    (tmp_path / "file").write_text("")
    monkeypatch.undo()
    assert not written(tmp_path / "file" / "0.arrow", table(), np.zeros(70))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_damaged_copy_is_not_used(share, tmp_path):
    file = tmp_path / "blocks" / "0.arrow"
    assert written(file, table(), np.zeros(70))
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    assert opened(file) is None
    assert opened(tmp_path / "none") is None


# What a machine must have.


def worker(tmp_path, **fractions):
    manager = SimpleNamespace(**({"memory_target_fraction": 0.6, "memory_spill_fraction": 0.7} | fractions))
    return SimpleNamespace(memory_manager=manager, local_directory=str(tmp_path), address="tcp://10.0.0.7:1234")


def test_room_on_a_worker(tmp_path, monkeypatch):
    import psutil

    def on(*mounts):
        found = [SimpleNamespace(mountpoint=str(where), fstype=kind) for where, kind in mounts]
        monkeypatch.setattr(psutil, "disk_partitions", lambda all: found)

    on(("/", "ext4"))
    found = room(worker(tmp_path))
    assert found.host == "10.0.0.7"
    assert found.disk > 0
    assert 0 < found.memory <= psutil.virtual_memory().total
    for kind in ("tmpfs", "nfs4"):
        on(("/", "ext4"), (tmp_path.resolve(), kind), (tmp_path.resolve() / "deeper", "ext4"))
        assert room(worker(tmp_path)) is None
    on()
    assert room(worker(tmp_path, memory_target_fraction=False)) is not None
    assert room(worker(tmp_path, memory_target_fraction=False, memory_spill_fraction=False)) is None


@pytest.mark.parametrize(
    ("rooms", "nbytes", "fits"),
    [
        ([], 1, False),
        ([Room("a", 100, 100)], 50, True),
        ([Room("a", 100, 99)], 50, False),
        ([Room("a", 99, 100)], 50, False),
        ([Room("a", 100, 100), Room("a", 100, 100)], 51, False),
        ([Room("a", 100, 100), Room("b", 100, 100)], 100, True),
        ([Room("a", 100, 100), Room("b", 10, 100)], 100, False),
        ([Room("a", 100, 100), None], 1, False),
    ],
)
def test_half_of_what_is_free(rooms, nbytes, fits):
    client = SimpleNamespace(run=lambda function: {f"tcp://{i}": it for i, it in enumerate(rooms)})
    assert Copies(client).fit(nbytes) is fits


# On workers.


@contextmanager
def cluster(folders, hosts=("127.0.0.1", "127.0.0.1"), **config):
    """Workers in this process, so that tests see what they do."""
    from distributed import Client, Scheduler, SpecCluster, Worker

    options = [{"host": host, "local_directory": str(it), "nthreads": 1} for host, it in zip(hosts, folders, strict=True)]
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "host": "127.0.0.1"}}
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False, **config}),
        SpecCluster({i: {"cls": Worker, "options": it} for i, it in enumerate(options)}, scheduler) as made,
        Client(made) as client,
        dask.config.set(scheduler=client),
    ):
        yield client


@pytest.fixture
def made(monkeypatch, tmp_path_factory):
    """A table that is not kept in memory, and the same blocks in this process; ``reads`` tells the rows of the blocks made."""
    monkeypatch.setattr(dask_blocks, "KEPT_SHARE", 0.0)
    monkeypatch.setattr(dask_blocks, "NEAR_SHARE", 0.0)
    rng = np.random.default_rng(0)
    X, y, journal = rng.normal(size=(ROWS, 4)), rng.normal(size=ROWS), tmp_path_factory.mktemp("reads") / "journal"

    def noted(block):
        with journal.open("a") as file:
            file.write(f"{len(block)} ")
        return block

    lazy = da.from_array(X, chunks=(CHUNKS, -1)).map_blocks(noted, dtype=float, meta=X[:0])
    held = X[:30], y[:30]

    def reads():
        return [int(it) for it in journal.read_text().split()]

    def build():
        journal.write_text("")
        return mb.RidgeDistillation(lazy, da.from_array(y, chunks=(CHUNKS,)), *held, budget=20, alpha=0.01)

    local = mb.RidgeDistillation(X, y, *held, budget=20, alpha=0.01, chunks=CHUNKS)

    def same(problem):
        for v in (rng.random(ROWS), rng.random(ROWS) * (rng.random(ROWS) < 0.1)):
            got, expected = (it.evaluate(v, NO_LAM) for it in (problem, local))
            assert got.value == expected.value
            np.testing.assert_array_equal(got.grad_theta, expected.grad_theta)

    return SimpleNamespace(X=X, y=y, reads=reads, build=build, same=same)


def copies(*folders):
    return sorted(int(file.stem) for folder in folders for file in Path(folder).glob("**/*.arrow"))


def eventually(check):
    for _ in range(100):
        if check():
            return True
        time.sleep(0.05)
    return False


def test_blocks_are_made_once(made, tmp_path):
    """Later passes read the copies, to the bit; they vanish with the problem."""
    with cluster([tmp_path, tmp_path]):
        problem = made.build()
        assert sorted(made.reads()) == sorted(CHUNKS)
        assert "copied to the workers' disks and read there in every pass" in problem.rows.statistics().storage
        made.same(problem)
        assert len(made.reads()) == len(CHUNKS)
        assert copies(tmp_path) == list(range(len(CHUNKS)))
        other = made.build()
        assert len(copies(tmp_path)) == 2 * len(CHUNKS)
        del problem
        gc.collect()
        assert eventually(lambda: copies(tmp_path) == list(range(len(CHUNKS))))
        made.same(other)
    assert copies(tmp_path) == []


def test_lost_copies_are_made_again(made, tmp_path):
    with cluster([tmp_path, tmp_path]):
        problem = made.build()
        lost = sorted(tmp_path.glob("**/*.arrow"))
        lost[0].unlink()
        lost[1].write_bytes(b"damaged")
        made.same(problem)
        assert len(made.reads()) == len(CHUNKS) + 2
        assert set(copies(tmp_path)) == set(range(len(CHUNKS)))


def test_workers_that_may_not_spill_get_no_copies(made, tmp_path):
    never = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    with cluster([tmp_path, tmp_path], **never):
        problem = made.build()
        assert "read anew in every pass" in problem.rows.statistics().storage
        made.same(problem)
        assert len(made.reads()) == 5 * len(CHUNKS)
        assert copies(tmp_path) == []


def test_work_goes_to_the_machine_that_has_the_copy(made, tmp_path):
    """Each of two machines reads its own copies, and makes no more."""
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    with cluster(folders, ("127.0.0.1", "127.0.0.2")):
        problem = made.build()
        first = [copies(it) for it in folders]
        assert sorted(first[0] + first[1]) == list(range(len(CHUNKS)))
        assert all(first)
        for _ in range(3):
            made.same(problem)
        assert [copies(it) for it in folders] == first
        assert len(made.reads()) == len(CHUNKS)


@pytest.mark.ci
def test_a_worker_that_is_killed_with_its_copies(made):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
        dask.config.set(scheduler=client),
    ):
        problem = made.build()
        assert "copied" in problem.rows.statistics().storage
        made.same(problem)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        made.same(problem)
        made.same(problem)

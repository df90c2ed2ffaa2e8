"""Row stores: what each says of itself, and that another back end is one more executor."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

import mixbin as mb
from mixbin.data.block_rows import BlockRows, LocalBlocks

CHUNKS = (30, 1, 50, 19)
NO_LAM = np.empty(0)


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(100, 4)), rng.normal(size=(40, 4))
    return X, X @ np.arange(4.0), X_val, X_val @ np.arange(4.0)


def as_sparse(X, y, *held):
    return sparse.csr_array(X), y, *held


def as_dask(X, y, *held):
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(CHUNKS, -1)), da.from_array(y, chunks=(CHUNKS,)), *held


@pytest.mark.parametrize(
    ("how", "keywords", "storage", "random_access", "first"),
    [
        (lambda *it: it, {}, "0 MB in memory", True, 0),
        (as_sparse, {}, "0 MB in memory", True, 0),
        (lambda *it: it, {"chunks": CHUNKS}, "0 MB in 4 blocks, in this process", False, 1),
        (as_dask, {}, "0 MB in 4 blocks, kept in memory", False, 1),
    ],
    ids=["dense", "sparse", "blocks", "dask"],
)
def test_statistics(tables, how, keywords, storage, random_access, first):
    """Blocks are looked at once before anything is computed."""
    problem = mb.RidgeDistillation(*how(*tables), budget=10, alpha=0.01, **keywords)
    before = problem.rows.statistics()
    assert (before.storage, before.passes, before.n_workers) == (storage, first, None)
    assert before.bytes_read >= tables[0].nbytes
    assert problem.rows.random_access == random_access
    problem.evaluate(np.ones(100), NO_LAM)
    after = problem.rows.statistics()
    assert (after.passes, after.bytes_read) == (first + 2, before.bytes_read)


class ThreadedBlocks(LocalBlocks):
    """An executor as another back end would be one: it computes blocks at once, in whatever order they end."""

    def map(self, function, arguments):
        wanted = [(block, args) for block, args in zip(self._blocks, arguments, strict=True) if args is not None]
        with ThreadPoolExecutor(3) as pool:
            return iter(list(pool.map(lambda it: function(*it[0], *it[1]), wanted)))


def test_another_executor_gives_the_same_bits(tables, monkeypatch):
    X, y, *held = tables
    expected = mb.RidgeDistillation(X, y, *held, budget=10, alpha=0.01, chunks=CHUNKS)
    monkeypatch.setattr("mixbin.data.training_and_validation.LocalBlocks", ThreadedBlocks)
    problem = mb.RidgeDistillation(X, y, *held, budget=10, alpha=0.01, chunks=CHUNKS)
    assert isinstance(problem.rows, BlockRows)
    assert isinstance(problem.rows.executor, ThreadedBlocks)
    a, b = (mb.relax_and_penalize(it, seed=0, max_evaluations=30) for it in (expected, problem))
    assert a.theta.tobytes() == b.theta.tobytes()
    assert a.value == b.value
    assert problem.fingerprint() == expected.fingerprint()

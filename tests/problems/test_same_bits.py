"""Blocks of the same numbers give the same bits: whatever their layout, their storage, the threads of BLAS, or what was sent."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

import mixbin as mb
from mixbin.data import blocks
from mixbin.data.parts import Columns, RowsInParts

protocol = pytest.importorskip("distributed.protocol")


class Parts(RowsInParts):
    """Rows of an array, read in parts: Arrow's columns, as they come out of a Parquet file."""

    def __init__(self, X, cuts):
        self._X, self._cuts, self.shape, self.dtype = X, cuts, X.shape, X.dtype

    def parts(self):
        for part in np.split(self._X, self._cuts):
            yield Columns([pa.array(column).to_numpy() for column in np.ascontiguousarray(part.T)])


def _strided(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), 7, dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _backwards(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def _misaligned(X):
    raw = bytearray(X.nbytes + 1)
    out = np.frombuffer(raw, dtype=X.dtype, count=X.size, offset=1).reshape(X.shape)
    out[...] = X
    return out


def _read_only(X):
    out = X.copy()
    out.flags.writeable = False
    return out


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "strided": _strided,
    "backwards": _backwards,
    "misaligned": _misaligned,
    "read-only": _read_only,
    "pickled": lambda X: pickle.loads(pickle.dumps(np.asfortranarray(X))),
    "sent by Dask": lambda X: protocol.deserialize(*protocol.serialize(X)),
    "Fortran order, sent by Dask": lambda X: protocol.deserialize(*protocol.serialize(np.asfortranarray(X))),
    "a few rows at a time": lambda X: Parts(X, [len(X) // 3, len(X) // 2]),
    "row by row": lambda X: Parts(X, list(range(1, len(X)))),
}


def answers(X, y, seed):
    """What each kernel gives, with all rows, many or few of them in use."""
    rng = np.random.default_rng(seed)
    rows, columns = X.shape[0], X.shape[1] + (1 if y.ndim == 1 else y.shape[1])
    e = columns - X.shape[1]
    centre, thin = rng.normal(size=columns), rng.normal(size=(2 * e, columns))
    found = [] if sparse.issparse(X) else [*blocks.survey(X, y)[3:5]]
    for share in (1.0, 0.7, 0.2):
        v = rng.uniform(0.1, 1.0, size=rows) * (rng.random(rows) < share)
        v[rng.integers(rows)] = 1.0
        found += [*blocks.moments(X, y, blocks.weights_of(v), centre)[1:]]
    found.append(blocks.gradient(X, y, thin[:e], thin[e:], rng.normal(size=e), centre))
    found.append(blocks.images(X, y, thin, centre))
    found.append(blocks.taken(X, y, np.union1d(0, np.flatnonzero(rng.random(rows) < 0.5)), centre))
    found.append(blocks.triangle(X, y, centre))
    return [np.ascontiguousarray(it).tobytes() for it in found]


def data(rows, columns, targets, dtype, seed):
    rng = np.random.default_rng(seed)
    X = (10.0 ** rng.integers(-3, 4, size=columns) * rng.normal(size=(rows, columns))).astype(dtype)
    y = rng.normal(size=rows if targets == 0 else (rows, targets))
    return X, y


@settings(deadline=None)
@given(
    rows=st.integers(1, 400),
    columns=st.integers(1, 12),
    targets=st.integers(0, 2),
    dtype=st.sampled_from([np.float64, np.float32, np.int64]),
    layout=st.sampled_from(sorted(LAYOUTS)),
    seed=st.integers(0, 2**32 - 1),
)
def test_layouts(rows, columns, targets, dtype, layout, seed):
    X, y = data(rows, columns, targets, dtype, seed)
    # Few entries at a time, so that small tables are cut, too.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BUFFER_ENTRIES", 256)
        plain = answers(X, y, seed)
        assert answers(LAYOUTS[layout](X), y, seed) == plain
        other_y = y if y.ndim == 1 else np.asfortranarray(y)
        assert answers(X, _strided(other_y[:, None])[:, 0] if y.ndim == 1 else other_y, seed) == plain


@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {"row by row"}))
@pytest.mark.parametrize("columns", [3, 50])
def test_layouts_at_full_size(layout, columns):
    """A buffer of the usual size, of which the table has some."""
    X, y = data(2 * blocks.BUFFER_ENTRIES // columns + 77, columns, 0, np.float64, 1)
    assert answers(LAYOUTS[layout](X), y, 0) == answers(X, y, 0)


def test_sparse_validation_rows():
    X, y = data(500, 7, 0, np.float64, 3)
    X[np.abs(X) < np.median(np.abs(X))] = 0.0
    centre = np.zeros(8)
    assert blocks.triangle(sparse.csr_array(X), y, centre).tobytes() == blocks.triangle(X, y, centre).tobytes()


def test_threads_of_blas():
    X, y = data(4_000, 120, 0, np.float64, 2)
    found = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads, user_api="blas"):
            found.append(answers(X, y, 0))
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["C", "F"])
def test_a_whole_run_on_threads_of_dask(how):
    """Validation rows in memory are one block, as on Dask; nothing else differs either."""
    da = pytest.importorskip("dask.array")
    X, y = data(160, 4, 0, np.float64, 5)
    X_val, y_val = data(60, 4, 0, np.float64, 6)
    cuts = (50, 70, 40)
    here = mb.RidgeDistillation(X, y, X_val, y_val, budget=20, chunks=cuts)
    there = mb.RidgeDistillation(
        da.from_array(np.asarray(X, order=how), chunks=(cuts, -1)),
        da.from_array(y, chunks=(cuts,)),
        da.from_array(np.asarray(X_val, order=how), chunks=(60, -1)),
        da.from_array(y_val, chunks=60),
        budget=20,
    )
    assert here.alpha == there.alpha
    a, b = (mb.relax_and_penalize(problem, seed=0, max_evaluations=60) for problem in (here, there))
    assert a.theta.tobytes() == b.theta.tobytes()
    assert (a.value, a.lam.tobytes()) == (b.value, b.lam.tobytes())

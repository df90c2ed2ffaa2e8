"""Odd arguments: what people pass by mistake, what other libraries hand over, and numbers at the ends of their range.

Most arguments of an example are good and one or two odd, so that the code behind the checks is reached too.
"""

import datetime
import decimal
import fractions
import inspect
import re
import signal
import threading
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse

import mixbin as mb

SECONDS, LONGEST = 60, 600
"""No example may take more seconds of the processor, or of the clock; a quiet machine needs a hundredth of it."""
REFUSED = object()
"""What ``tried`` gives where one of our errors was raised."""


class Hang(AssertionError):
    """An example that does not end."""


@contextmanager
def in_time():
    """Break off a call that takes too long, where that can be done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    began, used = time.perf_counter(), time.process_time()

    def stop(*_):
        # Where others use the processor too, a minute of the clock is no sign of an endless loop.
        if time.process_time() - used < SECONDS / 2 and time.perf_counter() - began < LONGEST:
            signal.setitimer(signal.ITIMER_REAL, SECONDS / 6)
            return
        raise Hang(f"still busy after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tried(call, *args, about=(), also=(), **keywords):
    """The answer of a call, or REFUSED after one of our errors, whose message is looked at.

    ``about``: further names of which the message may speak; ``also``: further errors that are conventions of others.
    """
    used = time.process_time()
    try:
        with warnings.catch_warnings(), in_time():
            warnings.simplefilter("ignore", mb.ConvergenceWarning)
            warnings.simplefilter("ignore", mb.GradientWarning)  # functions that are wrong on purpose
            return call(*args, **keywords)
    except (mb.InvalidInput, mb.DivergedError, mb.CannotWrite) as error:
        look_at(error, [*names_of(call), *about])
        return REFUSED
    except also:
        return REFUSED
    finally:
        assert time.process_time() - used < SECONDS


def names_of(call):
    try:
        return list(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        return []


def look_at(error, names):
    """One line that names an argument, and nothing that differs from run to run."""
    message = str(error)
    assert message, "an error must say something"
    assert len(message.splitlines()) == 1, f"more than one line: {message!r}"
    assert not re.search(r" at 0x[0-9a-f]{6,}", message), f"an address in memory: {message!r}"
    assert len(message) < 1000, f"a message of {len(message)} letters: {message[:200]!r}"
    if isinstance(error, mb.InvalidInput) and names:
        assert any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in names), f"{message!r} names none of {names}"


# Single values.


class Shy:
    """An object whose rendering fails."""

    def __repr__(self):
        raise RuntimeError("no repr")


class Wordy:
    """An object whose rendering has several lines."""

    def __repr__(self):
        return "first line\nsecond line"


class Wrong:
    """An object that is no number although it says so."""

    def __float__(self):
        raise OverflowError("too large for a float")

    def __index__(self):
        raise OverflowError("too large for an index")


EDGES = [0.0, -0.0, 1.0, 0.5, 5e-324, 1e-300, -1e-300, 1e-160, 1e-16, 1e16, 1e154, 1e160, 1e300, -1e300, 1.7e308, 0.1 + 0.2]
NOT_FINITE = [float("nan"), float("inf"), float("-inf")]

edges = st.sampled_from(EDGES)
tame = st.floats(-2.0, 3.0, allow_subnormal=False)
finite = st.one_of(tame, edges, st.floats(allow_nan=False, allow_infinity=False))
positive = st.one_of(
    st.floats(1e-3, 5.0), st.sampled_from([x for x in EDGES if x > 0]), st.floats(0, allow_infinity=False, exclude_min=True)
)

steps = st.one_of(st.floats(1e-3, 5.0), st.sampled_from([5e-324, 1e-160, 1e16, 1e100]))

pairs = st.tuples(positive, positive).map(lambda pair: tuple(sorted(pair)))

oddities = st.one_of(
    st.sampled_from(NOT_FINITE),
    st.sampled_from([None, True, False, "", "auto", "1", "a\nb", b"\x00", (), [], {}, 10**400, -(10**400), 2**63, -1, 0, 1, 2.0]),
    st.builds(complex, tame, tame),
    st.builds(lambda x: np.float32(x), st.floats(-2, 2, width=32)),
    st.sampled_from([np.int8(3), np.uint64(2**64 - 1), np.bool_(True), np.float16(0.5), np.longdouble("1e4000"), np.str_("3")]),
    st.sampled_from([decimal.Decimal("0.5"), decimal.Decimal("sNaN"), fractions.Fraction(1, 3), fractions.Fraction(10**400)]),
    st.sampled_from(
        [np.array(0.5), np.array(2), np.array([0.5]), np.array([]), np.ma.masked, np.datetime64("2020-01-01"), pd.NA]
    ),
    st.sampled_from([pd.NaT, datetime.date(2020, 1, 1), range(3), {1, 2}, Ellipsis, float, len]),
    st.builds(object),
    st.builds(Shy),
    st.builds(Wordy),
    st.builds(Wrong),
    st.builds(lambda: lambda: 0),
    st.builds(lambda: pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})),
    st.builds(lambda: "x" * 10_000),
)


def mostly(good, odd=oddities, one_in=6):
    """A good value, or in one of so many draws an odd one."""
    return st.integers(0, one_in - 1).flatmap(lambda k: odd if k == one_in - 1 else good)


@st.composite
def few_odd(draw, good, most=2):
    """Keywords from a table of good strategies, some left out; in a third of the examples some are replaced by odd ones."""
    named = sorted(good)
    spoiled = draw(st.sampled_from([0, 0, most]).flatmap(lambda k: st.sets(st.sampled_from(named), max_size=k)))
    left_out = draw(st.sets(st.sampled_from(named)))
    made = {name: draw(strategy) for name, strategy in good.items() if name not in left_out and name not in spoiled}
    return made | {name: draw(oddities) for name in sorted(spoiled)}


seeds = st.one_of(st.integers(0, 5), st.sampled_from([2**32, 2**63, 2**64, 10**30]), st.builds(np.random.default_rng, st.just(0)))


# Arrays.


@contextmanager
def quiet():
    """Making odd arrays must not warn; using them must not either, which is what is tested."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def cast(dtype):
    def change(x):
        with quiet():
            return np.asarray(x).astype(dtype)

    return change


def with_entry(value):
    def change(x):
        if np.size(x) == 0:
            return x
        out = np.array(x, dtype=np.result_type(np.asarray(x).dtype, np.float64))
        out.flat[out.size // 2] = value
        return out

    return change


def of_objects(*values):
    def change(x):
        out = np.array(x, dtype=object)
        for i, value in enumerate(values[: out.size]):
            out.flat[i] = value
        return out

    return change


def masked(x):
    x = np.asarray(x)
    mask = np.zeros(x.shape, dtype=bool)
    mask.flat[::2] = True
    return np.ma.masked_array(x, mask)


def read_only(x):
    out = np.array(x)
    out.flags.writeable = False
    return out


def strided(x):
    x = np.asarray(x)
    return np.repeat(x, 2, axis=0)[::2] if x.ndim else x


def records(x):
    out = np.zeros(np.shape(x), dtype=[("a", "f8"), ("b", "i4")])
    out["a"] = x
    return out


class Protocol:
    """An object of another library that offers itself as an array."""

    def __init__(self, x):
        self.x = np.asarray(x)

    def __array__(self, dtype=None, copy=None):
        return self.x.astype(dtype) if dtype is not None else self.x


class Refusing:
    """An object that offers itself as an array and then does not become one."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


HARMLESS = {
    "as it is": lambda x: x,
    "a list": lambda x: np.asarray(x).tolist(),
    "Fortran order": np.asfortranarray,
    "reversed twice": lambda x: np.ascontiguousarray(np.asarray(x)[::-1])[::-1] if np.ndim(x) else x,
    "strided": strided,
    "read-only": read_only,
    "float32": cast(np.float32),
    "big endian": cast(">f8"),
    "an array protocol": Protocol,
    "longdouble": cast(np.longdouble),
}
CHANGED = {
    "float16": cast(np.float16),
    "int8": cast(np.int8),
    "uint64": cast(np.uint64),
    "bool": cast(bool),
    "complex": cast(complex),
    "text": cast(str),
    "bytes": cast(bytes),
    "dates": cast("datetime64[s]"),
    "durations": cast("timedelta64[s]"),
    "objects": cast(object),
    "objects with None": of_objects(None),
    "objects with text": of_objects("a", 1.0),
    "objects with a huge number": of_objects(10**400),
    "objects with arrays": of_objects(np.zeros(2), np.zeros(3)),
    "records": records,
    "masked": masked,
    "all masked": lambda x: np.ma.masked_all(np.shape(x)),
    "a matrix": lambda x: np.asmatrix(x) if np.ndim(x) <= 2 else x,
    "nan": with_entry(np.nan),
    "inf": with_entry(np.inf),
    "-inf": with_entry(-np.inf),
    "huge": with_entry(1e300),
    "largest": with_entry(1.7e308),
    "tiny": with_entry(1e-300),
    "all huge": lambda x: np.full(np.shape(x), 1e300),
    "all tiny": lambda x: np.full(np.shape(x), 1e-300),
    "all zero": lambda x: np.zeros(np.shape(x)),
    "times 1e200": lambda x: np.asarray(x, dtype=float) * 1e200,
    "times 1e-200": lambda x: np.asarray(x, dtype=float) * 1e-200,
    "times 1e100": lambda x: np.asarray(x, dtype=float) * 1e100,
    "times 1e-100": lambda x: np.asarray(x, dtype=float) * 1e-100,
    "a huge longdouble": lambda x: np.full(np.shape(x), np.longdouble("1e4000")),
    "one more": lambda x: np.concatenate([x, x[:1]]) if np.ndim(x) and len(x) else x,
    "one less": lambda x: np.asarray(x)[:-1] if np.ndim(x) else x,
    "none": lambda x: np.asarray(x)[:0] if np.ndim(x) else x,
    "one dimension more": lambda x: np.asarray(x)[..., None],
    "one dimension less": lambda x: (
        np.asarray(x).reshape(-1) if np.ndim(x) > 1 else (np.asarray(x)[0] if np.ndim(x) and len(x) else x)
    ),
    "ragged": lambda x: [[1.0], [2.0, 3.0]],
    "nothing": lambda x: None,
    "a number": lambda x: 0.5,
    "a text": lambda x: "abc",
    "a dictionary": lambda x: {"a": 1},
    "a generator": lambda x: (v for v in np.ravel(x)),
    "refusing": lambda x: Refusing(),
    "a series": lambda x: pd.Series(np.ravel(x)),
    "a nullable series": lambda x: pd.Series(np.ravel(x), dtype="Float64"),
    "a series with NA": lambda x: pd.Series([pd.NA, *np.ravel(x)[1:]], dtype="object"),
    "broadcast": lambda x: np.broadcast_to(0.5, np.shape(x)),
}

harmless = st.sampled_from(sorted(HARMLESS))
changed = st.sampled_from(sorted(CHANGED))


@st.composite
def arrays(draw, shape, elements=finite, spoil=6):
    """An array of that shape, often in an odd form, in one of ``spoil`` draws spoiled."""
    x = np.array(draw(st.lists(elements, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))).reshape(shape)
    return shaped(draw, x, spoil)


def shaped(draw, x, spoil=6):
    """``x`` in an odd form, in one of ``spoil`` draws spoiled."""
    if draw(st.integers(0, spoil - 1)) == spoil - 1:
        return applied(CHANGED[draw(changed)], x)
    return applied(HARMLESS[draw(harmless)], x)


def applied(change, x):
    """``x`` changed, or as it is where it cannot be."""
    try:
        with quiet():
            return change(x)
    except (TypeError, ValueError, OverflowError):
        return x


# Tables of rows and columns.


def duplicated(x):
    x = np.array(x)
    x[:, -1] = x[:, 0]
    return x


def constant(x):
    x = np.array(x)
    x[:, 0] = 3.0
    return x


def frame(**odd):
    def change(x):
        table = pd.DataFrame(np.asarray(x), columns=[f"c{j}" for j in range(np.shape(x)[1])])
        for name, make in odd.items():
            table[name] = make(len(table))
        return table

    return change


def twice_the_same_name(x):
    table = pd.DataFrame(np.asarray(x))
    table.columns = ["a"] * table.shape[1]
    return table


def odd_names(x):
    return pd.DataFrame(np.asarray(x), columns=[("a", 1), *range(1, np.shape(x)[1])][: np.shape(x)[1]])


def corrupt(what):
    def change(x):
        made = sparse.csr_matrix(np.where(np.abs(x) < 0.3, 0.0, x))
        if what == "indices" and made.indices.size:
            made.indices[-1] = 10**6
        elif what == "negative" and made.indices.size:
            made.indices[0] = -7
        elif what == "indptr":
            made.indptr[-1] += 5
        elif what == "falling" and made.indptr.size > 2:
            made.indptr[1] = made.indptr[-1] + 3
        elif what == "nan" and made.data.size:
            made.data[0] = np.nan
        elif what == "unsorted" and made.indices.size:
            made.indices = made.indices[::-1].copy()
        elif what == "twice" and made.indices.size > 1:
            made.indices[:] = 0
        return made

    return change


TABLES = {
    "constant column": constant,
    "constant columns": lambda x: np.full(np.shape(x), 2.5),
    "duplicated column": duplicated,
    "duplicated rows": lambda x: np.repeat(np.asarray(x)[:1], len(x), axis=0),
    "one row": lambda x: np.asarray(x)[:1],
    "two rows": lambda x: np.asarray(x)[:2],
    "one column": lambda x: np.asarray(x)[:, :1],
    "no column": lambda x: np.asarray(x)[:, :0],
    "far from 0": lambda x: np.asarray(x) + 1e12,
    "one far column": lambda x: np.asarray(x) * np.append(1e150, np.ones(np.shape(x)[1] - 1)),
    "decades": lambda x: np.asarray(x) * np.geomspace(1e-150, 1e150, np.shape(x)[1]),
    "a frame": frame(),
    "a frame with text": frame(t=lambda n: ["a"] * n),
    "a frame with dates": frame(t=lambda n: pd.date_range("2020", periods=n)),
    "a frame with truth values": frame(t=lambda n: [True] * n),
    "a frame with a missing value": frame(t=lambda n: [None] + [1.0] * (n - 1)),
    "a nullable frame": lambda x: pd.DataFrame(np.asarray(x)).astype("Float64"),
    "a nullable frame with NA": frame(t=lambda n: pd.array([pd.NA] + [1] * (n - 1), dtype="Int64")),
    "a frame of categories": frame(t=lambda n: pd.Categorical(["a"] * n)),
    "a frame of complex": frame(t=lambda n: np.full(n, 1j)),
    "a frame of objects": lambda x: pd.DataFrame(np.asarray(x)).astype(object),
    "the same names": twice_the_same_name,
    "odd names": odd_names,
    "sparse": lambda x: sparse.csr_matrix(np.where(np.abs(x) < 0.3, 0.0, x)),
    "sparse array": lambda x: sparse.csr_array(np.where(np.abs(x) < 0.3, 0.0, x)),
    "sparse columns": lambda x: sparse.csc_matrix(np.asarray(x)),
    "sparse coordinates": lambda x: sparse.coo_matrix(np.asarray(x)),
    "sparse lists": lambda x: sparse.lil_matrix(np.asarray(x)),
    "sparse blocks": lambda x: sparse.bsr_matrix(np.asarray(x)),
    "sparse diagonals": lambda x: sparse.dia_matrix(np.asarray(x)),
    "sparse keys": lambda x: sparse.dok_matrix(np.asarray(x)),
    "sparse and empty": lambda x: sparse.csr_matrix(np.shape(x)),
    "sparse complex": lambda x: sparse.csr_matrix(np.asarray(x) * 1j),
    "sparse truth values": lambda x: sparse.csr_matrix(np.asarray(x) > 0),
    "sparse, 64 bits": lambda x: _wide(sparse.csr_matrix(np.asarray(x))),
    "a sparse vector": lambda x: sparse.coo_array(np.ravel(x)),
    "sparse, huge": lambda x: sparse.csr_matrix(np.asarray(x) * 1e300),
    **{f"sparse, {what}": corrupt(what) for what in ("indices", "negative", "indptr", "falling", "nan", "unsorted", "twice")},
}


def _wide(made):
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


tables = st.sampled_from(sorted(TABLES))


def odd_table(draw, x, spoil=3):
    """A table in an odd form, in one of ``spoil`` draws one that few would call a table of numbers."""
    if draw(st.integers(0, spoil - 1)) < spoil - 1:
        return shaped(draw, x, 1 + 2 * spoil)
    return applied(TABLES[draw(tables)], x)


# Sets.


def groupings(n):
    """The group of each of n entries."""
    kinds = [[0, 1, 2], ["a", "b", "ü"], [0.5, 1.0, -1.0], [True, False], [2**63, 2**64 - 1], [b"a", b"b"]]
    return st.sampled_from(kinds).flatmap(lambda labels: st.lists(st.sampled_from(labels), min_size=n, max_size=n))


def bounds():
    """Counts for groups: one for all, one for each, or a mapping."""
    count = st.one_of(st.integers(0, 4), st.sampled_from([2**62, 2**63, 10**30, -1]))
    mapping = st.dictionaries(st.sampled_from([0, 1, 2, "a", "b", "ü", 0.5, True]), count, max_size=3)
    return st.one_of(count, count, st.lists(count, min_size=1, max_size=3), mapping)


@st.composite
def good_sets(draw, most=8):
    """A set that the constructors take."""
    n = draw(st.integers(1, most))
    kind = draw(st.sampled_from(["hypercube", "budget", "at most", "knapsack", "one-hot", "groups"]))
    if kind == "hypercube":
        return mb.Hypercube(draw(st.sampled_from([n, (n,), (1, n), (n, 2), (2, 1, 2)])))
    if kind == "groups":
        groups = draw(groupings(n))
        sizes = np.unique(groups, return_counts=True)[1]
        low, high = np.sort([[draw(st.integers(0, int(size))) for size in sizes] for _ in range(2)], axis=0)
        k = draw(st.one_of(st.none(), st.integers(int(low.sum()), int(high.sum()))))
        return mb.GroupBudget(groups, low, high, k=k or None)
    if kind == "one-hot":
        return mb.OneHot(draw(st.integers(1, max(1, most // 2))), draw(st.integers(1, 4)))
    if kind == "knapsack":
        weights = draw(st.lists(st.floats(0.1, 5.0), min_size=n, max_size=n))
        return mb.Knapsack(weights, draw(st.floats(0.05, 1.2)) * sum(weights))
    return mb.Budget(n, draw(st.integers(1, n)), at_most=kind == "at most")

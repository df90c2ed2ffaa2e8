"""Tables to fit: rows and targets, rows and classes, rows of several tasks; some of them odd."""

import numpy as np
from hypothesis import strategies as st

from tests.fuzz import strategies as odd

FACTORS = (1e-200, 1e-160, 1e-100, 1e-30, 1e30, 1e100, 1e150, 1e155, 1e200)


def regression_tables(draw, rows=(9, 6), columns=3, targets=(None, 1, 2), factors=FACTORS):
    """X, y, X_val and y_val, some of them odd."""
    rng = np.random.default_rng(draw(st.integers(0, 5)))
    e = draw(st.sampled_from(targets))
    coef = rng.normal(size=columns if e is None else (columns, e))
    parts = []
    for n in rows:
        X = rng.normal(size=(n, columns))
        parts += [X, X @ coef + 0.1 * rng.normal(size=n if e is None else (n, e))]
    return spoiled_tables(draw, parts, factors)


def spoiled_tables(draw, parts, factors=FACTORS):
    which = draw(st.sets(st.integers(0, len(parts) - 1), max_size=draw(st.sampled_from([0, 1, 2]))))
    for k in which:
        parts[k] = odd.odd_table(draw, parts[k]) if np.ndim(parts[k]) == 2 else odd.shaped(draw, parts[k], 3)
    if len(which) < 2 and draw(st.booleans()):
        # Both tables in the same odd units, so that they fit together.
        factor = draw(st.sampled_from(factors))
        k = draw(st.integers(0, 1))
        for j in range(k, len(parts), 2):
            if isinstance(parts[j], np.ndarray) and parts[j].dtype.kind == "f":
                with odd.quiet():
                    parts[j] = parts[j] * factor
    return parts


ALPHAS = st.one_of(
    st.none(),
    st.floats(1e-6, 10.0),
    odd.positive,
    odd.pairs,
    st.sampled_from(
        [(1e-3, 1.0), [1e-3, 1.0], (1e-300, 1e300), (5e-324, 1.7e308), (1.0, 1.0), (1,), (1, 2, 3), np.array([0.1, 1.0])]
    ),
)
BUDGETS = st.one_of(st.integers(-1, 10), st.floats(-0.1, 1.1), st.sampled_from([1e-300, 1e300, 2**70]))


def class_tables(draw, rows=(10, 6), columns=2):
    rng = np.random.default_rng(draw(st.integers(0, 5)))
    K = draw(st.sampled_from([2, 2, 3]))
    name = draw(st.sampled_from(["numbers", "text", "truth", "floats", "objects", "dates", "bytes", "large", "tuples"]))
    parts = []
    for n in rows:
        X = rng.normal(size=(n, columns))
        codes = np.argmax(np.column_stack([X, np.full(n, 0.2)])[:, :K], axis=1)
        codes[:K] = np.arange(K)
        parts += [X, labels(name, codes)]
    return spoiled_tables(draw, parts)


def labels(name, codes):
    if name == "tuples":
        out = np.empty(len(codes), dtype=object)
        for i, code in enumerate(codes):
            out[i] = ("a", int(code))
        return out
    made = {
        "numbers": codes,
        "text": np.array(["b", "a", "c\n"])[codes],
        "truth": codes > 0,
        "floats": codes * 0.5,
        "objects": np.array(["b", "a", "ü"], dtype=object)[codes],
        "dates": np.array(["2020", "2021", "2022"], dtype="datetime64[D]")[codes],
        "bytes": np.array([b"b", b"a", b"c"])[codes],
        "large": np.array([2**63, 2**64 - 1, 0], dtype=np.uint64)[codes],
    }
    return made[name]


def task_tables(draw, tasks=3, rows=(5, 4), columns=4):
    rng = np.random.default_rng(draw(st.integers(0, 5)))
    coef = rng.normal(size=(tasks, columns)) * (rng.random(size=(tasks, columns)) < 0.6)
    parts = []
    for n in rows:
        X = rng.normal(size=(tasks, n, columns))
        parts += [X, np.einsum("tnp,tp->tn", X, coef)]
    if draw(st.booleans()):
        parts = [list(part) for part in parts]
    for k in draw(st.sets(st.integers(0, 3), max_size=draw(st.sampled_from([0, 1, 2])))):
        part = parts[k]
        if isinstance(part, list) and draw(st.booleans()):
            part[draw(st.integers(0, tasks - 1))] = (odd.odd_table if k % 2 == 0 else odd.shaped)(draw, part[0])
        else:
            parts[k] = odd.shaped(draw, np.array(part), 2)
    return parts


def new_rows(data, columns):
    x = np.array(data.draw(st.lists(odd.tame, min_size=2 * columns, max_size=2 * columns))).reshape(2, columns)
    return odd.odd_table(data.draw, x)

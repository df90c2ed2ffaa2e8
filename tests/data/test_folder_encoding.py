"""A folder of Parquet files with columns of any type: its encoding is that of the same rows in one file, to the bit."""

import datetime as dt
import decimal
import itertools

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.preprocessing import OneHotEncoder

import mixbin.data.medians as medians
from mixbin.data import column_survey
from mixbin.data.dialect import Dialect, typed_dialect
from mixbin.data.encoding import words
from mixbin.data.folder_reader import FolderReader
from mixbin.data.indicators import Indicators
from mixbin.data.medians import NONE, Counts, keys_of, median, middle
from mixbin.data.parquet import ParquetFolder
from mixbin.data.parquet_table import FolderInMemory
from mixbin.data.reader import Reader
from mixbin.errors import InvalidInput


class OnWorkers(ParquetFolder):
    _target_word, _ignore_word, _numbers_only = "--target", "--ignore", False


class Here(FolderInMemory):
    _target_word, _ignore_word, _numbers_only = "--target", "--ignore", False


@pytest.fixture(autouse=True)
def _threads():
    with dask.config.set(scheduler="threads"):
        yield


def messy(n=400, seed=0):
    """A column of every kind, with gaps; nested ones, too."""
    rng = np.random.default_rng(seed)

    def gaps(values, share=0.1):
        return [None if gone else it for it, gone in zip(values, rng.random(n) < share, strict=True)]

    def pick(values):
        return [values[i] for i in rng.integers(len(values), size=n)]

    day = dt.datetime(2020, 1, 1)
    moments = [day + dt.timedelta(hours=int(it)) for it in rng.integers(0, 20_000, n)]
    columns = {
        "plain": pa.array(rng.normal(size=n)),
        "gaps": pa.array(gaps(rng.normal(500, 100, n).tolist())),
        "count": pa.array(gaps(rng.integers(0, 7, n).tolist()), pa.int16()),
        "nan": pa.array(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))),
        "flag": pa.array(gaps((rng.random(n) < 0.5).tolist())),
        "city": pa.array(gaps(pick(["Bonn", " Köln", "Ulm", "?"]))),
        "side": pa.array(pick(["left", "right"])),
        "street": pa.array([f"street {i}" for i in np.minimum(rng.geometric(0.03, n), 90)]),
        "owner": pa.array([f"person {i}" for i in range(n)]),
        "same": pa.array(["x"] * n),
        "nothing": pa.nulls(n),
        "grade": pa.array(gaps(pick(["a", "b", "c"]))).dictionary_encode(),
        "money": pa.array(gaps([decimal.Decimal(int(it)) / 100 for it in rng.integers(0, 9_999, n)]), pa.decimal128(9, 2)),
        "day": pa.array(gaps([it.date() for it in moments])),
        "moment": pa.array(gaps(moments), pa.timestamp("ms")),
        "zoned": pa.array(gaps(moments), pa.timestamp("us", tz="Europe/Berlin")),
        "clock": pa.array(gaps([it.time() for it in moments]), pa.time32("s")),
        "took": pa.array(gaps([dt.timedelta(seconds=int(it)) for it in rng.integers(0, 9_000, n)]), pa.duration("s")),
        "digits": pa.array(gaps([f"{it:.2f}" for it in rng.normal(size=n)])),
        "zip": pa.array(pick(["01067", "53113", "89073"])),
        "written": pa.array(gaps([it.strftime("%d.%m.%Y") for it in moments])),
        "box": pa.array(
            [{"a": float(it), "b": name} for it, name in zip(rng.normal(size=n), pick(["u", "v", "w"]), strict=True)]
        ),
        "pair": pa.array(gaps(rng.normal(size=(n, 2)).tolist())),
    }
    return pa.table(columns | {"price": pa.array(gaps(rng.normal(size=n).tolist(), 0.05))})


def write(table, folder, cuts=(0, 30, 31, 150, 150, 400), **how):
    folder.mkdir(exist_ok=True)
    for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
        parquet.write_table(table.slice(start, stop - start), folder / f"part-{i + 8}.parquet", **how)
    return folder


def test_the_encoding_of_the_same_rows_in_one_file(tmp_path, monkeypatch):
    """On workers and here: names, what each feature is, words, gaps, unknown texts and every bit of the numbers."""
    table, other = messy(), messy(120, 7)
    folder, more = write(table, tmp_path / "train", row_group_size=40), write(other, tmp_path / "test", (0, 50, 120))
    parquet.write_table(table, tmp_path / "one.parquet")
    parquet.write_table(other, tmp_path / "other.parquet")
    reader = Reader("price", ())
    part = reader.train(tmp_path / "one.parquet")
    reader.learn([part])
    expected = reader.numbers(part), reader.numbers(reader.like(tmp_path / "other.parquet"))
    monkeypatch.setattr(medians, "MOST_KEYS", 20)  # so that medians take several passes
    for kind in (Here, OnWorkers):
        opened = kind(folder, "price")
        second = kind(more, like=opened)
        assert not opened.is_plain
        ours = FolderReader(target="price")
        whole = ours.part(opened)
        ours.learn(whole)
        like = ours.like(second)
        assert ours.names == reader.names
        assert ours.encoding.about == reader.encoding.about
        assert (ours.filled, ours.unknown) == (reader.filled, reader.unknown)
        assert words(ours.encoding, 1) == words(reader.encoding, 1)
        assert whole.gone.tolist() == part.gone.tolist()
        for it, found, X in ((opened, whole, expected[0]), (second, like, expected[1])):
            got, y = it.numbers() if kind is Here else (it.X.compute(), it.y.compute())
            assert got[found.there].tobytes() == X.tobytes()
            assert not np.isnan(y[found.there]).any()
    assert "3 text columns" not in words(reader.encoding, 0)
    assert {leaf.kind for leaf in reader.encoding.leaves} >= {"number", "yes or no", "date", "time", "duration", "text"}


def test_the_encoding_is_learnt_from_the_rows_that_are_not_held_out(tmp_path):
    table = messy()
    folder = write(table, tmp_path / "train")
    parquet.write_table(table, tmp_path / "one.parquet")
    reader, ours = Reader("price", ()), FolderReader(target="price")
    part, whole = reader.train(tmp_path / "one.parquet"), ours.part(opened := Here(folder, "price"))
    held = np.arange(len(part)) % 3 == 1
    reader.learn([part], np.flatnonzero(~held))
    expected = reader.numbers(part)
    ours.learn(whole, np.flatnonzero(whole.there)[held])
    assert ours.encoding.about == reader.encoding.about
    assert (ours.filled, ours.unknown) == (reader.filled, reader.unknown)
    assert opened.numbers()[0][whole.there].tobytes() == expected.tobytes()


def test_the_pieces_do_not_matter(tmp_path, monkeypatch):
    table = messy()
    abouts = []
    for i, (cuts, size) in enumerate([((0, 400), 400), ((0, 7, 200, 400), 13), ((0, 399, 400), 100)]):
        ours = FolderReader(target="price")
        monkeypatch.setattr("mixbin.data.parquet.AT_A_TIME", 1 + 2 * i)
        ours.learn(ours.part(Here(write(table, tmp_path / str(i), cuts, row_group_size=size), "price")))
        abouts.append(ours.encoding.about)
    assert abouts[0] == abouts[1] == abouts[2]


def test_text_as_typed(tmp_path):
    """Whole numbers that are names, words for gaps and decimal commas in cells of text: as for one file."""
    n = 60
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "code": pa.array(rng.integers(1, 4, n).astype(float)),
            "area": pa.array(["-" if it < 0 else f"{it:.1f}".replace(".", ",") for it in rng.normal(3, 3, n)]),
            "price": pa.array(rng.normal(size=n)),
        }
    )
    dialect = typed_dialect(None, ",", None, None, ["-"], None)
    parquet.write_table(table, tmp_path / "one.parquet")
    reader = Reader("price", (), dialect, as_text=["code"])
    part = reader.train(tmp_path / "one.parquet")
    reader.learn([part])
    expected = reader.numbers(part)
    ours = FolderReader(target="price", dialect=dialect, as_text=["code"])
    opened = Here(write(table, tmp_path / "train", (0, 11, 60)), "price")
    ours.learn(ours.part(opened))
    assert ours.names == reader.names == ["code=1", "code=2", "code=3", "area"]
    assert ours.filled == reader.filled
    assert opened.numbers()[0].tobytes() == expected.tobytes()


def test_files_that_differ_in_type(tmp_path):
    """Numbers in one file and the same as text in another are numbers; yes and no are 0 and 1 among them."""
    first = pa.table({"a": [1, 2, 3], "b": [True, False, True], "price": [1.0, 2.0, 3.0]})
    second = pa.table({"a": ["4", "5.5", None], "b": [0.0, 1.0, None], "price": [1.0, 2.0, 3.0]})
    (tmp_path / "t").mkdir()
    parquet.write_table(first, tmp_path / "t" / "1.parquet")
    parquet.write_table(second, tmp_path / "t" / "2.parquet")
    ours = FolderReader(target="price")
    opened = Here(tmp_path / "t", "price")
    ours.learn(ours.part(opened))
    np.testing.assert_array_equal(opened.numbers()[0], [[1, 1], [2, 0], [3, 1], [4, 0], [5.5, 1], [3, 1]])


# What is refused, all at once.


def spoilt(tmp_path):
    """Several files with several troubles each."""
    n = 40
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=n)
    base = {"a": numbers, "b": numbers, "c": [str(it) for it in numbers], "d": numbers, "price": numbers}
    (tmp_path / "t").mkdir()
    for i in range(3):
        table = {name: list(it) for name, it in base.items()} | {"e": [[1.0]] * n}
        if i > 0:
            table["a"][5 + i] = np.inf
            table["c"][3] = "<5"
            table["e"] = [[1.0, 2.0]] * n
        if i == 2:
            table["d"] = ["many words"] * n
            table["price"][9] = -np.inf
        parquet.write_table(pa.table(table), tmp_path / "t" / f"part-{i}.parquet")
    return tmp_path / "t"


def test_all_troubles_of_all_files_at_once(tmp_path):
    folder = spoilt(tmp_path)
    for kind in (Here, OnWorkers):
        ours = FolderReader(target="price")
        with pytest.raises(InvalidInput) as caught:
            ours.learn(ours.part(kind(folder, "price")))
        said = str(caught.value)
        assert "column 'a' of" in said
        assert "part-1.parquet is not finite in row 6" in said
        assert "'a' (row 7 of part-2.parquet)" in said
        assert "'price' (row 9 of part-2.parquet)" in said
        assert "column 'c' of" in said
        assert "got '<5' in row 3; leave the column out with --ignore c, take '<5' as missing with --missing" in said
        assert "column 'd' of" in said
        assert "a number in row 0 of part-0.parquet and a text in row 0 of part-2.parquet" in said
        assert "--text d" in said
        assert "column 'e' of" in said
        assert "e[1] is not in all rows" in said


def test_without_encoding_all_columns_are_named(tmp_path):
    folder = write(messy(), tmp_path / "train")
    ours = FolderReader(target="price", encode=False)
    with pytest.raises(InvalidInput) as caught:
        ours.learn(ours.part(Here(folder, "price")))
    said = str(caught.value)
    for name in ("gaps", "count", "nan", "flag", "city", "side", "grade", "day", "clock", "took", "zip", "box", "pair"):
        assert f"{name!r} (" in said or f"column {name!r}" in said, name
    assert "'plain'" not in said
    assert "leave out --encode none" in said


def test_other_folders_must_be_alike(tmp_path):
    table = pa.table({"city": ["a", "b"] * 10, "sold": [dt.date(2020, 1, 1 + i) for i in range(20)], "price": np.arange(20.0)})
    ours = FolderReader(target="price")
    first = Here(write(table, tmp_path / "train", (0, 20)), "price")
    ours.learn(ours.part(first))
    wrong = pa.table({"city": np.arange(20), "sold": ["x", "y"] * 10, "price": np.arange(20.0)})
    with pytest.raises(InvalidInput, match=r"'city'.*learnt as text, but now number.*'sold'"):
        ours.like(Here(write(wrong, tmp_path / "test", (0, 20)), like=first))


def test_too_many_texts(tmp_path, monkeypatch):
    """More texts than are counted are left out, and said; those that look like numbers are refused."""
    monkeypatch.setattr(column_survey, "MOST_TEXTS", 50)
    n = 300
    names, digits = [f"id {i % 100}" for i in range(n)], [str(i % 100) for i in range(n)]
    table = pa.table({"name": names, "x": np.arange(n), "price": np.arange(float(n))})
    ours = FolderReader(target="price")
    ours.learn(ours.part(Here(write(table, tmp_path / "a", (0, 30, 300)), "price")))
    assert ours.names == ["x"]
    assert "Left out: 'name' (it has more than 1,000,000 different texts)" in ours.facts([])["said"][0]
    table = table.append_column("number", pa.array(digits))
    part = (ours := FolderReader(target="price")).part(Here(write(table, tmp_path / "b", (0, 30, 300)), "price"))
    with pytest.raises(InvalidInput, match=r"column 'number' .* more different texts than are counted.*--ignore number"):
        ours.learn(part)


# The parts.


@given(
    st.lists(st.sampled_from([*"abcdefgh", None]), min_size=1, max_size=60),
    st.integers(2, 6),
    st.lists(st.sampled_from([*"abcxyz", None]), min_size=1, max_size=9),
)
def test_indicators_are_those_of_scikit_learn(rows, most, new):
    how = {"drop": "if_binary", "handle_unknown": "infrequent_if_exist", "sparse_output": False, "max_categories": most}
    as_column = lambda texts: np.array([[it] for it in texts], dtype=object)  # noqa: E731
    encoder = OneHotEncoder(**how).fit(as_column(rows))
    texts = sorted({it for it in rows if it is not None})
    ours = Indicators(texts, np.array([rows.count(it) for it in texts]), rows.count(None), most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        expected = encoder.transform(as_column([*rows, *new]))
    for it in (ours, ours.short()):
        got = it.transform([*rows, *new], np.arange(len(rows) + len(new)))
        np.testing.assert_array_equal(got, expected)
    assert len(ours.columns("x")) == expected.shape[1]
    assert ours.unknown(new, np.ones(len(new), dtype=int)) == sum(it not in rows for it in new)


@given(
    st.lists(st.floats(allow_infinity=False, width=64), max_size=60),
    st.lists(st.integers(0, 60), max_size=4),
    st.integers(1, 30),
)
def test_medians_in_passes_are_those_of_numpy(numbers, cuts, most):
    values = np.array(numbers, dtype=float)
    parts = [keys_of(it) for it in np.split(values, sorted(min(cut, values.size) for cut in cuts))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(medians, "MOST_KEYS", most)
        counts = NONE
        for part in parts:
            counts = counts.plus(Counts.of(part))
        found = middle(counts)
        for _ in range(4):
            for i, it in enumerate(found):
                if it.shift:
                    inside = NONE
                    for part in parts:
                        inside = inside.plus(Counts.of(it.chosen(part), it.shift - 16), it.shift - 16)
                    found[i] = it.narrowed(inside)
    assert not any(it.shift for it in found)
    there = values[~np.isnan(values)]
    with np.errstate(over="ignore"):
        assert median(found) == (
            pytest.approx(np.median(there), rel=0, abs=0) if there.size else pytest.approx(np.nan, nan_ok=True)
        )


def test_pandas_index_is_no_feature(tmp_path):
    (tmp_path / "t").mkdir()
    frame = pd.DataFrame({"a": [1.0, 2.0], "price": [1.0, 2.0]}, index=[5, 7])
    frame.to_parquet(tmp_path / "t" / "x.parquet")
    assert Here(tmp_path / "t", "price").features == ["a"]


def test_a_dialect_by_default():
    assert FolderReader(target="y").dialect == Dialect()

"""``TableEncoder``: the same numbers as scikit-learn's transformers by hand, for tables of any library."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixbin as mb


@parametrize_with_checks([mb.TableEncoder()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def frame(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2019-12-30") + pd.to_timedelta(rng.integers(0, 500, rows), unit="D")
    return pd.DataFrame(
        {
            "size": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
            "city": rng.choice(["Bonn", "Rom", "Ulm"], rows),
            "new": rng.random(rows) < 0.5,
            "sold": days,
            "kind": pd.Categorical(rng.choice(["a", "b"], rows)),
        }
    )


def by_hand(fitted_on):
    """What a person writes with scikit-learn for the same table."""
    indicators = OneHotEncoder(drop="if_binary", sparse_output=False)
    made = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median"), ["size", "new", "year", "month", "day"]),
            ("text", indicators, ["city", "kind"]),
        ]
    )
    return made.fit(parts(fitted_on))


def parts(table):
    sold = table["sold"].dt
    return table.assign(new=table["new"].astype(float), year=sold.year, month=sold.month, day=sold.day)


def test_the_numbers_are_those_of_scikit_learn():
    train, test = frame(60, 0), frame(40, 1)
    encoder, made = mb.TableEncoder().fit(train), by_hand(train)
    names = encoder.get_feature_names_out().tolist()
    assert names == ["size", "city=Bonn", "city=Rom", "city=Ulm", "new", "sold.year", "sold.month", "sold.day", "kind=b"]
    order = ["size", "new", "sold.year", "sold.month", "sold.day", "city=Bonn", "city=Rom", "city=Ulm", "kind=b"]
    for table in (train, test):
        np.testing.assert_array_equal(
            encoder.transform(table)[:, [names.index(it) for it in order]], made.transform(parts(table))
        )


def test_tables_of_other_libraries_give_the_same():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    table = frame()
    encoder = mb.TableEncoder().fit(table)
    for other in (pa.Table.from_pandas(table, preserve_index=False), polars.from_pandas(table)):
        again = mb.TableEncoder().fit(other)
        np.testing.assert_array_equal(again.transform(other), encoder.transform(table))
        np.testing.assert_array_equal(encoder.transform(other), encoder.transform(table))
        assert again.feature_names_in_.tolist() == table.columns.tolist()


def test_a_table_of_arrow_gives_the_same():
    table = frame()
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    np.testing.assert_array_equal(mb.TableEncoder().fit(arrow).transform(arrow), mb.TableEncoder().fit_transform(table))


def test_it_says_what_it_does():
    encoder = mb.TableEncoder().fit(frame())
    missing = int(frame()["size"].isna().sum())
    assert encoder.encoding_ == (
        "2 text columns as 4 indicator columns, 1 date as year, month, day, 1 yes-or-no column as 0 and 1; "
        f"{missing} missing values filled by the median"
    )
    assert encoder.columns_["city=Rom"] == {"column": "city", "is": "indicator", "of": "Rom"}
    assert encoder.columns_["size"]["if_missing"] == frame()["size"].median()
    assert mb.TableEncoder().fit(np.eye(3)).encoding_ == "all columns are numbers"


def test_rare_and_missing_and_new_texts():
    texts = ["a"] * 30 + ["b"] * 20 + list("cdefghijk") + [None] * 5
    table = pd.DataFrame({"t": texts})
    encoder = mb.TableEncoder(max_categories=4).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["t=a", "t=b", "t=(missing)", "t=(other)"]
    got = encoder.transform(pd.DataFrame({"t": ["a", "k", "new", None]}))
    np.testing.assert_array_equal(got, [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 0]])


def test_what_is_left_out():
    table = pd.DataFrame(
        {"x": np.arange(20.0), "name": [f"n{i}" for i in range(20)], "same": "s", "gone": pd.Series([None] * 20, dtype=object)}
    )
    encoder = mb.TableEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["x"]
    assert encoder.encoding_ == (
        "left out: 'gone' (it has no value); left out: 'same' (it has one text only); "
        "left out: 'name' (nearly all its texts differ)"
    )


EVERY = {
    "int8": (pa.array([1, None, 3], pa.int8()), [1, 2, 3]),
    "uint64": (pa.array([1, 2, 3], pa.uint64()), [1, 2, 3]),
    "half": (pa.array(np.array([1, 2, 4], dtype=np.float16)), [1, 2, 4]),
    "float": (pa.array([1, None, 4], pa.float32()), [1, 2.5, 4]),
    "decimal": (pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.50")]), [1.5, 2, 2.5]),
    "bool": (pa.array([True, False, True]), [1, 0, 1]),
    "large string": (pa.array(["u", "v", "u"], pa.large_string()), [0, 1, 0]),
    "dictionary": (pa.array(["u", "v", "u"]).dictionary_encode(), [0, 1, 0]),
    "time": (pa.array([datetime.time(6), datetime.time(12, 30), None]), [6, 12.5, 9.25]),
    "duration": (pa.array([60, 120, None], pa.duration("s")), [60, 120, 90]),
}


@pytest.mark.parametrize("kind", EVERY)
def test_every_type_of_arrow(kind):
    values, expected = EVERY[kind]
    got = mb.TableEncoder().fit_transform(pa.table({"v": values}))
    np.testing.assert_array_equal(got[:, 0], expected)


def test_dates_in_a_time_zone_are_those_of_that_place():
    late = pa.array([datetime.datetime(2020, 12, 31, 23, 30, tzinfo=datetime.UTC)] * 2, pa.timestamp("us", "Europe/Berlin"))
    table = pa.table({"v": late, "w": pa.array([datetime.date(2020, 1, 2)] * 2, pa.date32())})
    encoder = mb.TableEncoder().fit(table)
    names = ["v.year", "v.month", "v.day", "v.hour", "w.year", "w.month", "w.day"]
    assert dict(zip(encoder.get_feature_names_out(), encoder.transform(table)[0], strict=True)) == dict(
        zip(names, [2021, 1, 1, 0.5, 2020, 1, 2], strict=True)
    )


def test_nested_columns_are_taken_apart():
    table = pa.table(
        {
            "s": [{"a": 1.0, "b": "u"}, {"a": 2.0, "b": "v"}],
            "l": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
            "m": [[5.0], [6.0]],
        }
    )
    encoder = mb.TableEncoder().fit(table)
    assert encoder.get_feature_names_out().tolist() == ["s.a", "s.b=v", "l[0]", "l[1]", "m[0]"]
    np.testing.assert_array_equal(encoder.transform(table), [[1, 0, 1, 2, 5], [2, 1, 3, 4, 6]])
    assert "3 nested columns taken apart" in encoder.encoding_


def test_all_columns_that_cannot_be_used_are_named_at_once():
    table = pa.table(
        {
            "x": [1.0, 2.0],
            "l": [[1], [2, 3]],
            "b": [b"u", b"v"],
            "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        }
    )
    with pytest.raises(
        mb.InvalidInput, match=r"'l' \(lists of 1 to 2 entries\), 'b' \(of the type binary\), 'm' \(of the type map"
    ):
        mb.TableEncoder().fit(table)
    mixed = pd.DataFrame({"a": [1, "x"], "b": ["y", 2.5], "c": [1, 2]})
    with pytest.raises(mb.InvalidInput, match="several in 'a', 'b'; make them"):
        mb.TableEncoder().fit(mixed)
    with pytest.raises(mb.InvalidInput, match="infinity in 'a', 'b'"):
        mb.TableEncoder().fit(pd.DataFrame({"a": [np.inf, 1], "b": [-np.inf, 1]}))


def test_other_tables_than_that_of_fit_are_refused():
    encoder = mb.TableEncoder().fit(frame())
    with pytest.raises(mb.InvalidInput, match="feature names"):
        encoder.transform(frame().drop(columns="city"))
    with pytest.raises(mb.InvalidInput, match=r"'size' \(learnt as number, but now text\)"):
        encoder.transform(frame().assign(size="large"))
    with pytest.raises(mb.InvalidInput, match="max_categories must be"):
        mb.TableEncoder(1).fit(frame())


def test_in_a_pipeline():
    """The model is the one of the same pipeline with scikit-learn's transformers."""
    table = frame(80)
    y = table["new"] * 2.0 + (table["city"] == "Rom") + np.random.default_rng(0).normal(size=80)
    ours = make_pipeline(mb.TableEncoder(), Ridge()).fit(table, y)
    theirs = make_pipeline(by_hand(table), Ridge()).fit(parts(table), y)
    np.testing.assert_allclose(ours.predict(table), theirs.predict(parts(table)), rtol=1e-9)
    clone(ours)
    chosen = make_pipeline(mb.TableEncoder(), mb.DistillationRegressor(budget=20, max_evaluations=300, random_state=0)).fit(
        table, y
    )
    assert chosen[-1].support_.sum() == 20
    shown = mb.TableEncoder().set_output(transform="pandas").fit_transform(table)
    assert shown.columns.tolist()[:2] == ["size", "city=Bonn"]


@pytest.mark.parametrize("texts", [list("abcde"), list("aabc"), list("ab"), [None, "b", "b", "c"], ["(other)", "b", "c"]])
@pytest.mark.parametrize("most", [2, 3, 30])
def test_names_and_columns_agree_for_any_number_of_categories(texts, most):
    """With two categories one column is left, whichever of the two it is of."""
    table = pd.DataFrame({"x": texts, "n": range(len(texts))})
    encoder = mb.TableEncoder(most).fit(table)
    out = encoder.transform(table)
    for j, said in enumerate(encoder.columns_.values()):
        if said["column"] == "n":
            continue
        wanted = said["of_any"] if "of_any" in said else [said["of"]]
        np.testing.assert_array_equal(out[:, j], [text in wanted for text in texts])


def test_columns_without_names_are_told_apart_by_their_places():
    numbers = np.arange(12.0).reshape(4, 3)
    named = pd.DataFrame(numbers, columns=["a", "b", "c"])
    with pytest.warns(UserWarning, match="fitted without feature names"):
        np.testing.assert_array_equal(mb.TableEncoder().fit(numbers).transform(named), numbers)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(mb.TableEncoder().fit(named).transform(numbers), numbers)


@pytest.mark.parametrize("names", [object(), 3, ["a"], [["a", "b"]], pd.DataFrame({"a": [1], "b": [2]}), [1, 2]])
def test_names_that_are_not_those_of_fit(names):
    encoder = mb.TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    with pytest.raises(mb.InvalidInput, match=r"^input_features must be"):
        encoder.get_feature_names_out(names)


def test_a_series_is_no_table():
    with pytest.raises(mb.InvalidInput, match=r"^X must be a table"):
        mb.TableEncoder().fit(pd.Series([1.0, 2.0], dtype="Float64"))


def test_columns_that_cannot_be_encoded_are_columns_of_x():
    lists = pd.DataFrame({f"{'long ' * 30}{i}": [[1, 2], [3]] for i in range(30)})
    with pytest.raises(mb.InvalidInput, match=r"^X must hold numbers, text or dates: these columns .* and 10 more; ") as error:
        mb.TableEncoder().fit(lists)
    assert len(str(error.value)) < 3000

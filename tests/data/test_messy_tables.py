"""Every quirk of a table alone and in pairs: its numbers are those of the true table by scikit-learn, or one message tells."""

import re

import numpy as np
import pandas as pd
import pytest

from mixbin.data.dialect import typed_dialect
from mixbin.data.reader import Reader
from mixbin.errors import InvalidInput
from tests.data.messy import ALONE, PAIRS, Messy, added, base, made

NONE = dict.fromkeys(("header", "decimal", "thousands", "encoding", "day_first")) | {"missing": []}


def read(file, **options):
    reader = Reader("price", (), typed_dialect(**{**NONE, **options}))
    part = reader.train(file)
    reader.learn([part])
    return reader, part, reader.numbers(part)


def check(messy, folder):
    if messy.pack == "xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    reader, part, X = read(messy.write(folder), **messy.options)
    features, y = messy.by_hand()
    assert sorted(reader.names) == sorted(features)
    np.testing.assert_array_equal(part.y, y)
    for name, column in zip(reader.names, X.T, strict=True):
        np.testing.assert_array_equal(column, features[name], err_msg=name)
    return reader.facts([part])


@pytest.mark.parametrize("quirk", ALONE, ids=" + ".join)
def test_a_quirk_alone(tmp_path, quirk):
    check(made(*quirk), tmp_path)


@pytest.mark.slow
def test_quirks_in_pairs(tmp_path):
    """All that can meet in a file; in one test, since each takes some hundredths of a second."""
    for pair in PAIRS:
        messy = made(*pair)
        if messy.pack == "xlsx":
            continue
        try:
            check(messy, tmp_path)
        except Exception as error:
            raise AssertionError(f"{' + '.join(pair)}: {error}") from error
    assert len(PAIRS) > 300


@pytest.mark.slow
def test_quirks_in_pairs_with_excel(tmp_path):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    for pair in (it for it in PAIRS if "Excel" in it):
        check(made(*pair), tmp_path)


NEEDED = {
    "decimal commas": ("area", r"column 'area' of .* must hold numbers, got '-?\d+,\d\d' in row 0; write --decimal ','"),
    "thousands": ("area", r"column 'area' of .* must hold numbers, got .*; write --thousands ','"),
    "German thousands": ("area", r"column 'area' of .* must hold numbers, got .*; write --thousands '\.'"),
    "dash for missing": ("area", r"column 'area' of .* must hold numbers, got '-' in row 0; .*--missing -, "),
    "cp1252": ("", r"invalid UTF8 data: byte 0xf6 in line \d+.*--encoding cp1252"),
}


@pytest.mark.parametrize("quirk", NEEDED)
def test_what_a_file_does_not_say_is_asked_for(tmp_path, quirk):
    """The message names the option, and the option settles it: see the tests above."""
    column, message = NEEDED[quirk]
    with pytest.raises(InvalidInput, match=message) as caught:
        read(made(quirk).write(tmp_path))
    said = str(caught.value)
    if column and quirk != "dash for missing":
        # The target has the same trouble, and is told in the same message.
        assert "likewise 'price' (" in said, said


def test_all_columns_are_told_at_once(tmp_path):
    messy = added(
        Messy(base()),
        half=["1,5"] * 60,
        colour=["red", *map(str, range(59))],
        far=["inf", *["1.5"] * 59],
        day=["1/2/2020", *["3/4/2021"] * 59],
        ended=["31.02.2020", *["01.03.2020"] * 59],
    )
    with pytest.raises(InvalidInput) as caught:
        read(messy.write(tmp_path))
    said = str(caught.value)
    for told in (
        "column 'half' of .* got '1,5' in row 0; write --decimal ',', leave the column out with --ignore half",
        "column 'colour' of .* must hold numbers, got 'red' in row 0; .*--ignore colour.*--missing red.*--text colour",
        "column 'far' of .* is not finite in row 0; .*--ignore far",
        "column 'day' of .* day and month, got '1/2/2020' in row 0; add --day-first or --month-first",
        "column 'ended' of .* must hold dates, got '31.02.2020' in row 0",
    ):
        assert re.search(told, said), (told, said)


SAID = {
    ("text",): "Encoded: 1 text column as 3 indicator columns.",
    ("two texts", "dates"): "Encoded: 1 text column as 1 indicator column, 1 date as year, month, day.",
    ("missing target",): r"\d rows without a value in column 'price' left out\.",
    ("missing numbers",): r"Encoded: \d+ missing values filled by the median\.",
    ("names",): r"Left out: 'owner' \(nearly all its texts differ\)\.",
    ("an empty column",): r"Left out: 'note' \(it has no value\)\.",
    ("an id",): "Beware: column 'id' has another whole number in every row, as an id has; if so, add --ignore id",
    ("an unnamed index",): "Beware: column 'unnamed 0' has another whole number in every row",
    ("yes or no",): "Encoded: 1 yes-or-no column as 0 and 1",
}


@pytest.mark.parametrize("quirk", SAID, ids=" + ".join)
def test_what_was_done_is_said(tmp_path, quirk):
    told = check(made(*quirk), tmp_path)
    assert re.search(SAID[quirk], " ".join(told["said"])), told["said"]


def test_a_plain_table_has_nothing_to_tell(tmp_path):
    assert check(Messy(base()), tmp_path) == {}


def test_german_thousands_are_doubted(tmp_path):
    """234.301 is a number; among numbers below 1,000 without a point it may be another one."""
    counts = ["950", "234.301", "12.500", "7", "1.200", *["800"] * 55]
    file = added(Messy(base()), people=counts).write(tmp_path)
    reader, part, X = read(file)
    assert X[1, reader.names.index("people")] == 234.301
    said = " ".join(reader.facts([part])["said"])
    assert (
        "Beware: column 'people' has numbers such as 234.301, which could be German thousands; if so, add --thousands ." in said
    )
    among = ["1.234.567", "234.301", *["1.200"] * 58]
    with pytest.raises(InvalidInput, match=r"'people' of .* got '1.234.567' in row 0; write --thousands '\.', "):
        read(added(Messy(base()), people=among).write(tmp_path))


@pytest.mark.parametrize("day_first", [True, False])
def test_unclear_dates_follow_the_option(tmp_path, day_first):
    file = added(Messy(base()), day=["1/2/2020", "3/4/2021"] * 30).write(tmp_path)
    reader, _, X = read(file, day_first=day_first)
    assert X[0, reader.names.index("day.month")] == (2 if day_first else 1)


def test_times_and_named_months(tmp_path):
    file = added(Messy(base()), at=["06:00", "12:30"] * 30, on=["3 Jan 2020", "14 Dec 2021"] * 30).write(tmp_path)
    reader, _, X = read(file)
    got = dict(zip(reader.names, X[1], strict=True))
    assert (got["at"], got["on.year"], got["on.month"], got["on.day"]) == (12.5, 2021, 12, 14)


def test_money_is_not_taken_for_text(tmp_path):
    file = added(Messy(base()), cost=[f"${i},200" for i in range(1, 61)]).write(tmp_path)
    with pytest.raises(InvalidInput, match=r"'cost' of .* got '\$1,200' in row 0; write --decimal ',' or --thousands ','"):
        read(file)


def test_numbers_that_are_names(tmp_path):
    file = added(Messy(base()), model=[3, 7, 12] * 20).write(tmp_path)
    reader = Reader("price", (), typed_dialect(**NONE), as_text=["mod*"])
    part = reader.train(file)
    reader.learn([part])
    assert reader.names[2:] == ["model=12", "model=3", "model=7"]


def test_other_files_have_the_columns_of_the_first(tmp_path):
    train, other = made("text", "dates", "missing numbers"), base(30, 9)
    reader = Reader("price", (), typed_dialect(**NONE))
    part = reader.train(train.write(tmp_path))
    reader.learn([part], np.arange(20))
    assert reader.encoding.medians[0][0] == train.table["area"][:20].median()
    other.insert(0, "sold", "2021-05-06")
    other.insert(0, "city", ["Paris", "Ulm", ""] * 10)
    other.to_csv(tmp_path / "other.csv", index=False)
    more = reader.like(tmp_path / "other.csv")
    X = pd.DataFrame(reader.numbers(more), columns=reader.names)
    assert X["city=Ulm"].sum() == 10
    assert X[[name for name in X if name.startswith("city")]].to_numpy().sum() == 10
    said = " ".join(reader.facts([part, more])["said"])
    assert "Texts of validation or test rows that the candidate rows do not have count as other: 'city' (20)." in said
    other.assign(sold="soon", area="big").to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(
        InvalidInput, match=r"column 'area' of .*other.csv must hold numbers, got 'big' in row 0.*column 'sold' of"
    ):
        reader.like(tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["a,b"], ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        (["i*"], ["id", "ix"]),
        (["?x,0"], ["ix", "a"]),
        (["*"], ["a", "b", "id", "ix", "x,y"]),
        (["x,y"], ["x,y"]),
        (['"x,y",a'], ["x,y", "a"]),
    ],
)
def test_columns_by_name_number_and_pattern(tmp_path, typed, expected):
    from mixbin.data import tables

    (tmp_path / "t.csv").write_text('a,b,id,ix,"x,y"\n1,2,3,4,5\n')
    assert tables.read(tmp_path / "t.csv").find_all(typed, "--ignore") == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ";"}, "--decimal must be a point or a comma, got ';'"),
        ({"thousands": "x"}, "--thousands must be a point, a comma"),
        ({"decimal": ".", "thousands": "."}, "--thousands and --decimal must differ, got '.' for both"),
        ({"encoding": "klingon"}, "--encoding must be one that Python knows, got 'klingon'"),
        ({"encoding": "hex"}, "--encoding must be one that Python knows, got 'hex'"),
    ],
)
def test_bad_dialects_are_refused(options, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        typed_dialect(**{**NONE, **options})


def test_a_wrong_encoding_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"--encoding ascii must be that of .*, but line \d+ cannot be read so; try utf-8"):
        read(made("cp1252").write(tmp_path), encoding="ascii")
    (tmp_path / "none.csv").write_bytes("a,price\n1,2\n".encode("utf-16-le"))
    with pytest.raises(InvalidInput, match=r"must be a CSV file in UTF-8 or a Parquet file; .*--encoding utf-16"):
        read(tmp_path / "none.csv")
    assert read(tmp_path / "none.csv", encoding="utf-16-le")[2].tolist() == [[1.0]]

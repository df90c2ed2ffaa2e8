"""Tables in which every cell can be read and something may yet be wrong; numbers with units; dates of several kinds; comments."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from mixbin.data.dialect import typed_dialect
from mixbin.data.folder_reader import FolderReader
from mixbin.data.reader import Reader
from mixbin.errors import InvalidInput
from tests.data.test_folder_encoding import Here, write

NONE = dict.fromkeys(("header", "decimal", "thousands", "encoding", "day_first")) | {"missing": []}
N = 60
RNG = np.random.default_rng(3)
AREA = RNG.normal(100, 30, N).round(1)
PRICE = (2000 * AREA + RNG.normal(0, 9000, N)).round(2)
DAYS = pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D")


def written(folder, first="", last="", sep=",", **columns):
    """A file of these columns of text."""
    head = sep.join(columns)
    rows = [sep.join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    file = folder / "t.csv"
    file.write_text("\n".join([*([first] if first else []), head, *rows, *([last] if last else [])]) + "\n", encoding="utf-8")
    return file


def read(file, **options):
    """The reader, the numbers, and what is said."""
    reader = Reader("price", (), typed_dialect(**{**NONE, **options}))
    part = reader.train(file)
    reader.learn([part])
    X = dict(zip(reader.names, reader.numbers(part).T, strict=True))
    return part, X, " ".join(reader.facts([part]).get("said", []))


@pytest.mark.parametrize(
    ("cell", "unit"),
    [("{} %", "%"), ("{}%", "%"), ("$ {}", "$"), ("EUR {}", "EUR"), ("{} €", "€"), ("{} m2", "m2"), ("{} months", "months")],
)
def test_numbers_with_a_unit(tmp_path, cell, unit):
    _, X, said = read(written(tmp_path, area=[cell.format(it) for it in AREA], price=PRICE))
    np.testing.assert_array_equal(X["area"], AREA)
    assert said == f"Numbers are read without their units: 'area' ({unit})."


def test_a_target_with_a_unit_and_a_decimal_comma(tmp_path):
    german = [f"EUR {it:,.2f}".replace(",", "T").replace(".", ",").replace("T", ".") for it in PRICE]
    file = written(tmp_path, area=AREA, price=german, sep=";")
    with pytest.raises(InvalidInput, match=r"column 'price' .* got 'EUR .*' in row 0; write --thousands '\.'"):
        read(file)
    file = written(tmp_path, area=[f"{it}".replace(".", ",") for it in AREA], price=german, sep=";")
    part, X, said = read(file, thousands=".")
    np.testing.assert_array_equal(part.y, PRICE)
    np.testing.assert_array_equal(X["area"], AREA)
    assert "'price' (EUR)" in said


@pytest.mark.parametrize("cell", ["street {}", "{}", "H{}", "{} of {}"])
def test_names_with_numbers_are_no_numbers_with_units(tmp_path, cell):
    houses = [cell.format(i % 4, "it") if cell != "{}" else f"{i % 4}{'ab'[i % 2]}" for i in range(N)]
    _, X, said = read(written(tmp_path, area=AREA, house=houses, price=PRICE))
    assert "indicator columns" in said
    assert "units" not in said
    assert len(X) == 5


def test_different_units_are_not_mixed(tmp_path):
    mixed = [f"{it} kg" if i % 2 else f"{it} g" for i, it in enumerate(AREA)]
    with pytest.raises(InvalidInput, match="none that can be used"):
        read(written(tmp_path, area=mixed, price=PRICE))
    some = [f"{it} %" if i % 9 else f"{it}" for i, it in enumerate(AREA)]
    with pytest.raises(InvalidInput, match=r"column 'area' .* must hold numbers, got .* %' in row 1; write the number alone"):
        read(written(tmp_path, area=some, price=PRICE))


def test_dates_written_in_several_clear_ways(tmp_path):
    forms = ("%Y-%m-%d", "%d.%m.%Y", "%d %b %Y", "%B %d, %Y".replace(",", ""))
    mixed = [day.strftime(forms[i % 4]) for i, day in enumerate(DAYS)]
    _, X, said = read(written(tmp_path, area=AREA, sold=mixed, price=PRICE))
    np.testing.assert_array_equal(X["sold.day"], DAYS.day)
    np.testing.assert_array_equal(X["sold.month"], DAYS.month)
    assert "1 date as year, month, day" in said


def test_months_as_dates(tmp_path):
    _, X, _ = read(written(tmp_path, area=AREA, month=[day.strftime("%b-%Y") for day in DAYS], price=PRICE))
    np.testing.assert_array_equal(X["month.month"], DAYS.month)
    np.testing.assert_array_equal(X["month.year"], DAYS.year)


def test_time_zones(tmp_path):
    """One zone: the hours of the clock. Several: the same moment has the same numbers, which is said."""
    same = [day.strftime("%Y-%m-%dT10:00:00+02:00") for day in DAYS]
    _, X, said = read(written(tmp_path, area=AREA, at=same, price=PRICE))
    assert set(X["at.hour"]) == {10.0}
    assert "UTC" not in said
    zones = [day.strftime("%Y-%m-%dT") + ("10:00:00+02:00", "08:00:00Z", "03:30:00-0430")[i % 3] for i, day in enumerate(DAYS)]
    _, X, said = read(written(tmp_path, area=AREA, at=zones, price=PRICE))
    assert set(X["at.hour"]) == {8.0}
    assert "Dates with different time zones are read as UTC: 'at'." in said


@pytest.mark.parametrize("space", [" ", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}"])
def test_all_spaces_between_thousands(tmp_path, space):
    file = written(tmp_path, area=AREA, price=[f"{it:,.2f}".replace(",", space) for it in PRICE])
    with pytest.raises(InvalidInput, match=r"column 'price' .* write --thousands space"):
        read(file)
    part, _, _ = read(file, thousands="space")
    np.testing.assert_array_equal(part.y, PRICE)


def test_lines_of_comment(tmp_path):
    columns = {"area": AREA, "price": PRICE}
    _, X, said = read(written(tmp_path, first="# by me, 2020; all\n# second", **columns))
    np.testing.assert_array_equal(X["area"], AREA)
    assert said == "The first 2 lines, comments, are not part of the table."
    _, X, said = read(written(tmp_path, **{"#area": AREA, "price": PRICE}))  # no comment: the names
    assert (list(X), said) == (["#area"], "")
    with pytest.raises(InvalidInput, match="got 2 in row 0; mend that row, or remove what stands before the names"):
        read(written(tmp_path, first="House prices", **columns))
    with pytest.raises(InvalidInput, match="write one of them, or remove what stands before the row with the names"):
        read(written(tmp_path, first="House prices,", **columns))


def test_codes_far_below_the_first_rows(tmp_path):
    """A postal code with a zero in the last row alone: all of them are names."""
    codes = [str(53113 + i % 3) for i in range(1_500)] + ["01067"] * 3
    n = len(codes)
    _, X, _ = read(written(tmp_path, area=RNG.normal(size=n).round(3), zip=codes, price=RNG.normal(size=n).round(3)))
    assert "zip=01067" in X


def test_a_number_that_stands_for_gaps(tmp_path):
    """It is warned about; the option takes it for missing however it is written, in text and in Parquet."""
    for i, cell in enumerate(("-999", "-999.0")):
        cold = [cell if j % 9 == 0 else f"{it:.1f}" for j, it in enumerate(RNG.normal(20, 3, N))]
        file = written(tmp_path, area=AREA, cold=cold, price=PRICE)
        assert "column 'cold' has -999 in 7 rows, far from its other numbers" in read(file)[2], i
        _, X, said = read(file, missing=["-999"])
        assert "7 missing values filled by the median" in said
        assert X["cold"].min() > 0
    numbers = np.array([float(it) for it in cold])
    table = pa.table({"area": AREA, "cold": numbers, "price": PRICE})
    parquet.write_table(table, tmp_path / "t.parquet")
    _, X, said = read(tmp_path / "t.parquet", missing=["-999"])
    assert "7 missing values filled by the median" in said
    folder = Here(write(table, tmp_path / "t", (0, 20, N)), "price")
    ours = FolderReader(target="price", dialect=typed_dialect(**{**NONE, "missing": ["-999"]}))
    ours.learn(ours.part(folder))
    np.testing.assert_array_equal(folder.numbers()[0][:, 1], X["cold"])
    assert ours.filled == {"cold": 7}


@pytest.mark.parametrize(
    ("columns", "last", "message"),
    [
        ({"id": [2**53 + 2 * i + 1 for i in range(N)]}, "", "'id' has whole numbers of more than 15 digits, as ids have"),
        ({"day": [f"{day:%Y%m%d}" for day in DAYS]}, "", "which could be dates; if so, write them as 20"),
        ({"city": ["Bonn", "bonn", "Ulm"] * 20}, "", "differ in capital letters alone, such as 'Bonn' and 'bonn'"),
        (
            {"rooms": [1, 2, 3] * 20},
            f"{AREA.sum():.1f},120,{PRICE.sum():.2f}",
            "looks like a total: .* 'price', 'area'",
        ),
        ({"city": ["a", "b"] * 30}, "5.0,Summe:,6.0", "the last row has 'Summe:' in a column of text and may be a total"),
    ],
)
def test_doubts(tmp_path, columns, last, message):
    file = written(tmp_path, last=last, **{"area": AREA, **columns, "price": PRICE})
    said = read(file)[2]
    assert "Beware: " in said
    assert re.search(message, said), said


def test_no_doubts_about_usual_tables(tmp_path):
    """Counts, flags, years, sums of nothing, a last row like the others."""
    columns = {"area": AREA, "rooms": RNG.integers(0, 9, N), "flag": RNG.integers(0, 2, N), "none": [0] * N}
    columns |= {"year": RNG.integers(1990, 2021, N), "score": np.append(RNG.integers(80, 99, N - 2), [99, 99])}
    columns |= {"city": ["all", "none"] * (N // 2)}
    assert "Beware" not in read(written(tmp_path, **columns, price=PRICE))[2]


def test_columns_without_name_and_value_are_left_out_in_silence(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("area,price,,\n" + "".join(f"{a},{p},,\n" for a, p in zip(AREA, PRICE, strict=True)))
    said = read(file)[2]
    assert said == "Left out: 'unnamed 2', 'unnamed 3' (it has no value)."


def test_targets_of_a_folder_have_one_unit(tmp_path):
    (tmp_path / "t").mkdir()
    for i, unit in enumerate(("EUR", "USD")):
        parquet.write_table(pa.table({"a": AREA, "price": [f"{it} {unit}" for it in PRICE]}), tmp_path / "t" / f"{i}.parquet")
    ours = FolderReader(target="price")
    part = ours.part(Here(tmp_path / "t", "price"))
    with pytest.raises(InvalidInput, match=r"column 'price' of .*1.parquet must hold numbers, got numbers with USD where"):
        ours.learn(part)
    (tmp_path / "t" / "1.parquet").unlink()
    ours = FolderReader(target="price")
    folder = Here(tmp_path / "t", "price")
    ours.learn(ours.part(folder))
    np.testing.assert_array_equal(folder.numbers()[1], PRICE)
    assert "'price' (EUR)" in " ".join(ours.facts([])["said"])

"""Tables as people have them, through the commands: an answer that says what was done, or one line that names all columns."""

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

import mixbin as mb
from mixbin.cli import app
from mixbin.data.reader import Reader
from mixbin.data.task_files import read_folder
from mixbin.data.tasks import drawn_for_validation
from mixbin.studies.features.comparison import held_out
from tests.data.messy import ALONE, CITIES, base, made

pytestmark = pytest.mark.slow

QUICK = ["--budget", "20%", "--max-evaluations", "8", "--method", "relax"]


def invoke(*args):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(arg) for arg in args], prog_name="mixbin")


def record(*args):
    got = invoke(*args, "--json")
    assert got.exit_code == 0, (got.stderr, got.exception)
    return json.loads(got.stdout)


def complaint(got):
    assert got.exit_code == 2, (got.output, got.exception)
    assert (got.stdout, got.stderr.count("\n")) == ("", 1)
    return got.stderr


def typed(options):
    """Options of the reader as words of the command."""
    return [
        word for name, value in options.items() for word in (f"--{name}", ",".join(value) if isinstance(value, list) else value)
    ]


def numbers_by_hand(messy, names, folder):
    """The table with its features made by scikit-learn's ColumnTransformer, in a file."""
    features, y = messy.by_hand()
    table = pd.DataFrame({name: features[name] for name in names})
    table["price"] = y
    table.to_parquet(folder / "by-hand.parquet", index=False)
    return folder / "by-hand.parquet"


def same_answer(messy, folder, *args):
    """The command on the messy file and on the numbers made by hand: the same rows and the same model."""
    if messy.pack == "xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    file = messy.write(folder)
    got = record("distill", file, "--target", "price", *QUICK, *args, *typed(messy.options), "--out", folder / "run")
    model = json.loads((folder / "run" / "model.json").read_text())
    hand = numbers_by_hand(messy, model["coef"], folder)
    expected = record("distill", hand, "--target", "price", *QUICK, *args, "--out", folder / "hand")
    other = json.loads((folder / "hand" / "model.json").read_text())
    assert model["coef"] == other["coef"]
    assert (model["intercept"], model["alpha"], model["scales"]) == (other["intercept"], other["alpha"], other["scales"])
    assert [line["full_loss"] for line in got["methods"]] == [line["full_loss"] for line in expected["methods"]]
    assert (folder / "run" / "report.html").exists()
    return got, model


@pytest.mark.ci
@pytest.mark.parametrize("quirk", ALONE, ids=" + ".join)
def test_each_quirk_gives_the_answer_of_the_table_made_by_hand(tmp_path, quirk):
    same_answer(made(*quirk), tmp_path)


def test_many_quirks_at_once(tmp_path):
    """A German export: semicolons, decimal commas, points between thousands, umlauts of Windows, dates, gaps, text."""
    quirks = (
        "text",
        "German dates",
        "missing numbers",
        "missing target",
        "names",
        "German thousands",
        "sep=",
        "cp1252",
        "Windows lines",
    )
    messy = made(*quirks)
    got, model = same_answer(messy, tmp_path)
    said = " ".join(got["reading"]["said"])
    assert "2 text columns as 6 indicator columns, 1 date as year, month, day;" in said
    assert "missing values filled by the median; left out: 'owner' (nearly all its texts differ)" in said
    assert "rows without a value in column 'price' left out." in said
    shown = invoke(
        "distill", tmp_path / "t.csv", "--target", "price", *QUICK, *typed(messy.options), "--out", tmp_path / "run", "--resume"
    )
    assert "2 text columns as 6 indicator columns" in " ".join(shown.stdout.split())
    assert "2 text columns as 6 indicator columns" in (tmp_path / "run" / "report.html").read_text()
    # The rows as they were: the same signs and texts, with a mark so that Excel knows the letters.
    raw = (tmp_path / "run" / "selected.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfrow;weight;area;")
    lines = (tmp_path / "t.csv").read_bytes().decode("cp1252").split("\r\n")[2:]
    for line in raw.decode("utf-8-sig").splitlines()[1:]:
        row, _, rest = line.split(";", 2)
        assert rest == lines[int(row)]
    assert model["encoding"]["features"]["city=Ulm"] == {"column": "city", "is": "indicator", "of": "Ulm"}


def test_model_json_tells_how_to_get_the_same_model(tmp_path):
    """The features as it describes them, and its call of scikit-learn, give its coefficients."""
    messy = made("text", "dates", "missing numbers", "missing texts")
    args = ["--budget", "30", "--max-evaluations", "20", "--out", tmp_path / "run"]
    record("distill", messy.write(tmp_path), "--target", "price", *args)
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    rows = pd.read_csv(tmp_path / "run" / "selected.csv")
    made_of = {}
    for name, said in model["encoding"]["features"].items():
        column = rows[said["column"]]
        if said["is"] == "indicator":
            made_of[name] = (column.isna() if said["of"] is None else column == said["of"]).astype(float)
        elif said["is"] in ("year", "month", "day"):
            made_of[name] = getattr(pd.to_datetime(column).dt, said["is"]).astype(float)
        else:
            made_of[name] = column.fillna(said["if_missing"])
    X = pd.DataFrame(made_of)[list(model["coef"])] / pd.Series(model["scales"])
    again = Ridge(alpha=model["scikit_learn"]["alpha"]).fit(X, rows["price"])
    np.testing.assert_allclose(again.coef_ / pd.Series(model["scales"]), list(model["coef"].values()), rtol=1e-6, atol=1e-9)
    assert "X as encoding here says" in model["scikit_learn"]["how"]
    # Also by the encoder itself.
    table = pd.read_csv(tmp_path / "t.csv", parse_dates=["sold"]).drop(columns="price")
    encoder = mb.TableEncoder().fit(table)
    chosen = encoder.set_output(transform="pandas").transform(table).iloc[rows["row"]]
    pd.testing.assert_frame_equal(chosen.reset_index(drop=True)[list(made_of)], pd.DataFrame(made_of), check_dtype=False)


def test_the_encoding_is_learnt_from_the_candidate_rows(tmp_path):
    messy = made("missing numbers", "text")
    file = messy.write(tmp_path)
    got = record("distill", file, "--target", "price", *QUICK, "--judge", "validation", "--out", tmp_path / "run")
    candidates = messy.table.drop(index=got["validation_split"])
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    assert model["encoding"]["features"]["area"]["if_missing"] == candidates["area"].median()
    assert candidates["area"].median() != messy.table["area"].median()


def test_resuming_knows_the_encoding(tmp_path):
    messy = made("missing numbers")
    args = ["distill", messy.write(tmp_path), "--target", "price", *QUICK, "--out", tmp_path / "run"]
    record(*args)
    assert "reading" in json.loads((tmp_path / "run" / "methods.json").read_text())["identity"]
    assert record(*args, "--resume")["rows"] == 60
    filled = messy.table.assign(area=messy.table["area"].fillna(messy.table["area"].median()))
    filled.to_csv(tmp_path / "filled.csv", index=False)
    args[1] = tmp_path / "filled.csv"
    assert "differs in reading" in complaint(invoke(*args, "--resume"))


def test_rows_of_parquet_are_written_with_their_types(tmp_path):
    table = base().assign(day=datetime.date(2020, 1, 2), kind=pd.Categorical(["u", "v"] * 30))
    parquet.write_table(pa.Table.from_pandas(table, preserve_index=False), tmp_path / "t.parquet")
    got = record("distill", tmp_path / "t.parquet", "--target", "price", "--budget", "9", "--out", tmp_path / "run")
    written = parquet.read_table(tmp_path / "run" / "selected.parquet")
    whole = parquet.read_table(tmp_path / "t.parquet")
    rows = written.column("row").to_numpy()
    assert len(rows) == 9
    assert written.drop_columns("row").equals(whole.take(rows))
    assert got["files"]["selected.parquet"] == str(tmp_path / "run" / "selected.parquet")
    assert "2020-01-02" in (tmp_path / "run" / "report.html").read_text()
    assert not (tmp_path / "run" / "selected.csv").exists()


# Tables like known ones.


def like_ames(rows=120, seed=0):
    """80 columns: numbers, ordered texts, many gaps, years, and an Id."""
    rng = np.random.default_rng(seed)
    out = {"Id": np.arange(1, rows + 1)}
    for i in range(36):
        values = rng.normal(100, 30, rows).round(0 if i % 2 else 1)
        out[f"Num{i}"] = np.where(rng.random(rows) < (0.1 if i % 5 == 0 else 0), np.nan, values)
    for i in range(42):
        texts = rng.choice([f"T{j}" for j in range(2 + i % 9)], rows).astype(object)
        out[f"Text{i}"] = np.where(rng.random(rows) < (0.5 if i % 7 == 0 else 0), None, texts)
    out["SalePrice"] = (50 * np.nan_to_num(out["Num0"], nan=100.0) + rng.normal(0, 5, rows)).round(0)
    return pd.DataFrame(out)


def like_adult(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(17, 90, rows)
    return pd.DataFrame(
        {
            "age": age,
            "workclass": rng.choice([" Private", " Self-emp", " ?"], rows, p=[0.7, 0.2, 0.1]),
            "education": rng.choice([f" level {i}" for i in range(16)], rows),
            "sex": rng.choice([" Male", " Female"], rows),
            "hours": rng.integers(10, 60, rows),
            "income": np.where(age + rng.normal(0, 8, rows) > 45, " >50K", " <=50K"),
        }
    )


def test_a_table_like_ames(tmp_path):
    like_ames().to_csv(tmp_path / "t.csv", index=False)
    got = record("distill", tmp_path / "t.csv", "--target", "SalePrice", *QUICK, "--ignore", "Id", "--out", tmp_path / "run")
    said = " ".join(got["reading"]["said"])
    assert said.startswith("Encoded: 42 text columns as ")
    assert "missing values filled by the median" in said
    doubted = record("distill", tmp_path / "t.csv", "--target", "SalePrice", *QUICK, "--out", tmp_path / "with-id")
    assert "Beware: column 'Id' has another whole number in every row" in " ".join(doubted["reading"]["said"])
    said = complaint(
        invoke("distill", tmp_path / "t.csv", "--target", "SalePrice", *QUICK, "--encode", "none", "--out", tmp_path / "no")
    )
    assert all(f"'Text{i}'" in said for i in range(42)), said
    assert all(f"'Num{i}'" in said for i in range(0, 36, 5)), said
    ignored = ["--ignore", "Id,Text*", "--ignore", "Num0,Num?5,Num10,Num2?,Num30,Num5"]
    got = record(
        "distill", tmp_path / "t.csv", "--target", "SalePrice", *QUICK, *ignored, "--encode", "none", "--out", tmp_path / "few"
    )
    assert "reading" not in got


def test_features_of_a_table_like_ames(tmp_path):
    like_ames(80).to_csv(tmp_path / "t.csv", index=False)
    args = ["--target", "SalePrice", "--keep", "3", "--ignore", "Id,Num[1-9]*,Text[1-9]*", "--out", tmp_path / "run"]
    got = record("features", tmp_path / "t.csv", *args)
    # Num0, and Text0 with two texts and gaps.
    assert got["features"] == 1 + 3
    selected = pd.read_csv(tmp_path / "run" / "selected.csv")
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    assert selected.columns.tolist() == [*model["features"], "SalePrice"]
    assert selected.notna().all().all()
    assert model["encoding"]["features"]["Num0"]["if_missing"] == like_ames(80)["Num0"].median()


def test_labels_of_a_table_like_adult(tmp_path):
    table = like_adult()
    table.loc[3, "income"] = " ?"
    table.to_csv(tmp_path / "t.csv", index=False)
    got = record("labels", tmp_path / "t.csv", "--target", "income", "--test", tmp_path / "t.csv", "--out", tmp_path / "run")
    assert (got["rows"], got["test_rows"], got["classes"]) == (199, 199, ["<=50K", ">50K"])
    said = " ".join(got["reading"]["said"])
    assert "2 rows without a value in column 'income' left out." in said
    assert "3 text columns as 20 indicator columns" in said
    quality = pd.read_csv(tmp_path / "run" / "quality.csv")
    assert quality["row"].tolist() == [i for i in range(200) if i != 3]
    suspects = pd.read_csv(tmp_path / "run" / "suspects.csv")
    for _, it in suspects.iterrows():
        assert it["label"] == table["income"][it["row"]].strip()
        assert it["age"] == table["age"][it["row"]]
    cleaner = json.loads((tmp_path / "run" / "model.json").read_text())
    assert len(cleaner["coef"][0]) == len(cleaner["encoding"]["features"])


def test_classes_of_a_table_like_adult(tmp_path):
    like_adult(120).to_csv(tmp_path / "t.csv", index=False)
    args = [
        "--target",
        "income",
        "--task",
        "classification",
        *QUICK,
        "--validation",
        tmp_path / "t.csv",
        "--out",
        tmp_path / "run",
    ]
    got = record("distill", tmp_path / "t.csv", *args)
    assert "3 text columns as" in " ".join(got["reading"]["said"])


def test_a_log_with_dates(tmp_path):
    rng = np.random.default_rng(0)
    at = pd.Timestamp("2024-02-27T06:00:00") + pd.to_timedelta(rng.integers(0, 10**6, 90), unit="s")
    table = pd.DataFrame(
        {"at": at.strftime("%Y-%m-%dT%H:%M:%S"), "level": rng.choice(["INFO", "WARN"], 90), "ms": rng.integers(1, 500, 90)}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    got = record("distill", tmp_path / "t.csv", "--target", "ms", *QUICK, "--out", tmp_path / "run")
    assert "1 date as year, month, day, hour" in " ".join(got["reading"]["said"])
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    assert list(model["coef"]) == ["at.year", "at.month", "at.day", "at.hour", "level=WARN"]


def every_arrow_type(rows=40):
    rng, n = np.random.default_rng(0), rows
    days = pa.array(rng.integers(18_000, 19_000, n), pa.int32())
    stamps = pa.array(rng.integers(10**9, 2 * 10**9, n))
    numbers = [
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
    ]
    out = {str(kind): pa.array(rng.integers(0, 100, n)).cast(kind) for kind in numbers}
    out |= {"half": pa.array(rng.normal(size=n).astype(np.float16)), "bool": pa.array(rng.random(n) < 0.5)}
    out |= {
        f"decimal{bits}": pa.array([decimal.Decimal(i) / 4 for i in range(n)]).cast(kind(7, 2))
        for bits, kind in ((128, pa.decimal128), (256, pa.decimal256))
    }
    texts = pa.array(rng.choice(CITIES, n))
    out |= {"string": texts, "large_string": texts.cast(pa.large_string()), "dictionary": texts.dictionary_encode()}
    out |= {"date32": days.cast(pa.date32()), "date64": days.cast(pa.date32()).cast(pa.date64())}
    for unit in ("s", "ms", "us", "ns"):
        out[f"timestamp_{unit}"] = stamps.cast(pa.timestamp("s")).cast(pa.timestamp(unit))
        out[f"duration_{unit}"] = pa.array(rng.integers(0, 10**6, n)).cast(pa.duration(unit))
    out["zoned"] = stamps.cast(pa.timestamp("s", "Europe/Rome"))
    out["time32"] = pa.array(rng.integers(0, 86_400, n), pa.int32()).cast(pa.time32("s"))
    out["time64"] = pa.array(rng.integers(0, 86_400, n) * 10**6).cast(pa.time64("us"))
    out["null"] = pa.nulls(n)
    out["struct"] = pa.array([{"a": float(i), "b": CITIES[i % 3]} for i in range(n)])
    out["fixed_list"] = pa.array([[i, -i] for i in range(n)], pa.list_(pa.int64(), 2))
    out["list"] = pa.array([[float(i), 1.0] for i in range(n)])
    out["price"] = pa.array(rng.normal(size=n))
    return pa.table(out)


def test_parquet_with_every_type(tmp_path):
    table = every_arrow_type()
    parquet.write_table(table, tmp_path / "t.parquet")
    got = record("distill", tmp_path / "t.parquet", "--target", "price", *QUICK, "--out", tmp_path / "run")
    said = " ".join(got["reading"]["said"])
    for told in (
        "4 text columns as 12 indicator columns",
        "7 dates as year, month, day, hour",
        "1 yes-or-no column as 0 and 1",
        "2 times of day as hours",
        "4 durations as seconds",
        "3 nested columns taken apart",
        "left out: 'null' (it has no value)",
    ):
        assert told in said, said
    written = parquet.read_table(tmp_path / "run" / "selected.parquet")
    assert written.schema.names == ["row", "weight", *table.schema.names]


def test_parquet_with_types_that_nobody_can_use(tmp_path):
    table = every_arrow_type(20).select(["int8", "price"])
    table = table.append_column("raw", pa.array([b"\0"] * 20)).append_column("tags", pa.array([["a"], ["b", "c"]] * 10))
    table = table.append_column("pairs", pa.array([[("k", 1)]] * 20, pa.map_(pa.string(), pa.int64())))
    table = table.append_column("half", pa.array(["1,5"] * 20))
    parquet.write_table(table, tmp_path / "t.parquet")
    said = complaint(invoke("distill", tmp_path / "t.parquet", "--target", "price", *QUICK, "--out", tmp_path / "run"))
    assert "column 'raw' of " in said
    assert "likewise 'tags' (lists of 1 to 2 entries" in said
    assert "'pairs' (of the type map" in said
    assert "--ignore raw,tags,pairs" in said
    assert "column 'half' of" in said
    more = ["--ignore", "raw,tags,pairs", "--decimal", ","]
    record("distill", tmp_path / "t.parquet", "--target", "price", *QUICK, *more, "--out", tmp_path / "run")


def test_an_excel_file(tmp_path):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    got, _ = same_answer(made("text", "dates", "missing numbers", "Excel"), tmp_path)
    assert "1 text column as 3 indicator columns, 1 date as year, month, day" in " ".join(got["reading"]["said"])
    assert (tmp_path / "run" / "selected.csv").read_bytes().startswith(b"\xef\xbb\xbfrow,weight,area")


def test_an_excel_file_without_openpyxl(tmp_path, monkeypatch):
    import sys
    import zipfile

    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    said = complaint(invoke("distill", tmp_path / "t.xlsx", "--target", "price", *QUICK, "--out", tmp_path / "run"))
    assert "is an Excel file, which needs openpyxl; install it by pip install 'mixbin[excel]', or save the sheet as CSV" in said


def test_a_damaged_excel_file(tmp_path):
    import zipfile

    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    said = complaint(invoke("distill", tmp_path / "t.xlsx", "--target", "price", *QUICK, "--out", tmp_path / "run"))
    assert "t.xlsx cannot be read as Excel (" in said


def test_tasks_with_text_and_gaps(tmp_path):
    """All tasks share one encoding, that of all their training rows."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(4):
        table = pd.DataFrame(rng.normal(size=(12, 4)), columns=list("abcd")).assign(kind=CITIES[i % 3], y=rng.normal(size=12))
        table.loc[0, "a"] = np.nan
        table.loc[1, "y"] = np.nan
        table.to_csv(folder / f"t{i}.csv", index=False, sep=";", decimal=",")
    args = ["groups", "--data", folder, "--n-groups", "2", "--max-evaluations", "4"]
    assert "write --decimal ','" in complaint(invoke(*args, "--out", tmp_path / "no"))
    got = record(*args, "--decimal", ",", "--ignore", "d", "--out", tmp_path / "run")
    assert (got["features"], got["rows"] + got["validation_rows"]) == (6, 44)
    said = " ".join(got["reading"]["said"])
    assert "4 rows without a value in column 'y' left out." in said
    assert "4 missing values filled by the median" in said


def test_the_encoding_of_tasks_is_learnt_from_the_training_rows(tmp_path):
    """The rows split off for validation have no part in medians and texts, as far as nothing but they have them."""
    folder, rng = tmp_path / "tasks", np.random.default_rng(0)
    folder.mkdir()
    tables = []
    for _ in range(3):
        table = pd.DataFrame(rng.normal(size=(20, 3)), columns=list("abc")).assign(kind=np.resize(CITIES[:3], 20))
        table.loc[rng.choice(20, 3, replace=False), "a"] = np.nan
        tables.append(table.assign(y=rng.normal(size=20)))
    held = drawn_for_validation(["0", "1", "2"], [20] * 3, 0.25, 7)
    for i, table in enumerate(tables):
        table.loc[held[i], "kind"] = "only there"
        table.to_csv(folder / f"t{i}.csv", index=False)
    reader = Reader("y", [])
    data = read_folder(folder, reader, 0.25, 7)
    train = pd.concat([table.drop(index=rows) for table, rows in zip(tables, held, strict=True)])
    assert data.split_off == [rows.tolist() for rows in held]
    assert reader.encoding.about["a"]["if_missing"] == train["a"].median() != pd.concat(tables)["a"].median()
    assert not any("only there" in name for name in data.features)
    assert reader.unknown == {"kind": 15}
    by_hand = mb.TableEncoder().fit(train.drop(columns="y"))
    for rows, part in ((train, data.train), (pd.concat([t.loc[r] for t, r in zip(tables, held, strict=True)]), data.validation)):
        np.testing.assert_array_equal(part.X, by_hand.transform(rows.drop(columns="y")))


def test_folds_of_features_have_an_encoding_of_their_own(tmp_path):
    """The errors on held-out folds are those of tables that are encoded, fold by fold, by their training rows."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd")).assign(kind=rng.choice(CITIES[:4], 60))
    table["price"] = table["a"] + 3.0 * (table["kind"] == CITIES[0]) + rng.normal(size=60) / 2
    table.loc[rng.choice(60, 15, replace=False), "a"] = np.nan
    table.loc[[5], "kind"] = "once"
    table.to_csv(tmp_path / "t.csv", index=False)
    got = record("features", tmp_path / "t.csv", "--target", "price", "--keep", "3", "--out", tmp_path / "run")

    def folded(train, held):
        encoder = mb.TableEncoder().fit(table.drop(columns="price").iloc[train])
        return tuple(encoder.transform(table.drop(columns="price").iloc[rows]) for rows in (train, held))

    settings = {"n_features": 3, "loss": "squared", "random_state": 0}
    by_hand = held_out(folded, table["price"].to_numpy(), settings, got["counts"])
    assert got["curves"]["best subset"] == by_hand.curve("best subset", "squared")
    whole = mb.TableEncoder().fit_transform(table.drop(columns="price"))
    leaking = held_out(lambda train, held: (whole[train], whole[held]), table["price"].to_numpy(), settings, got["counts"])
    assert got["curves"]["best subset"] != leaking.curve("best subset", "squared")


def test_options_about_files_without_files(tmp_path):
    said = complaint(invoke("groups", "--synthetic", "equal", "--decimal", ",", "--out", tmp_path / "run"))
    assert "--decimal has no use beside --synthetic; leave it out" in said

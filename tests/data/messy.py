"""Tables as people have them: a true table, written with one or several quirks, and its numbers by hand with scikit-learn."""

import gzip
import io
import zipfile
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

CITIES = ["Bonn", "Köln", "Ulm"]


def base(rows=60, seed=0):
    """Numbers only: nothing to encode, nothing to doubt."""
    rng = np.random.default_rng(seed)
    area, rooms = (rng.normal(900, 700, rows)).round(2), rng.integers(1, 9, rows)
    price = (3 * area + 100 * rooms + rng.normal(0, 50, rows)).round(2)
    return pd.DataFrame({"area": area, "rooms": rooms, "price": price})


@dataclass
class Messy:
    """A true table, and how it is written."""

    table: pd.DataFrame
    """With the types that the columns truly have; dates are datetime64, text and missing texts are objects."""
    sep: str = ","
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"
    first: str = ""
    """A line before all others."""
    line_end: str = "\n"
    dates: str = "%Y-%m-%d"
    missing: str = ""
    spaces: bool = False
    header: bool = True
    pack: str = ""
    options: dict = field(default_factory=dict)
    """What a person must add, since the file does not say it."""
    drop: tuple = ()
    """Columns that become nothing."""
    unnamed: tuple = ()
    """Columns whose name is written empty."""
    as_codes: tuple = ()
    """Columns of whole numbers that are text."""

    def cell(self, name, value):
        if value is None or value != value:
            return self.missing
        if isinstance(value, pd.Timestamp):
            return value.strftime(self.dates)
        if isinstance(value, float):
            text = f"{value:,.2f}" if self.thousands else f"{value:.2f}"
            text = text.replace(",", "T").replace(".", self.decimal).replace("T", self.thousands)
        else:
            text = str(value)
        return f"  {text} " if self.spaces else text

    def write(self, folder):
        """The file, and its name."""
        if self.pack == "xlsx":
            return self._excel(folder)
        if self.pack == "parquet":
            file = folder / "t.parquet"
            self.table.to_parquet(file, index=False)
            return file
        import csv

        out = io.StringIO()
        writer = csv.writer(out, delimiter=self.sep, lineterminator=self.line_end)
        if self.header:
            writer.writerow(["" if name in self.unnamed else name for name in self.table.columns])
        for row in self.table.itertuples(index=False):
            writer.writerow([self.cell(name, value) for name, value in zip(self.table.columns, row, strict=True)])
        raw = (self.first + out.getvalue()).encode(self.encoding)
        file = folder / f"t.csv{self.pack}"
        if self.pack == ".gz":
            raw = gzip.compress(raw)
        if self.pack == ".zip":
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("t.csv", raw)
        else:
            file.write_bytes(raw)
        return file

    def _excel(self, folder):
        import openpyxl

        book = openpyxl.Workbook()
        book.active.append(["" if name in self.unnamed else name for name in self.table.columns])
        for row in self.table.itertuples(index=False):
            plain = [it.to_pydatetime() if isinstance(it, pd.Timestamp) else it for it in row]
            book.active.append([None if it is None or it != it else getattr(it, "item", lambda it=it: it)() for it in plain])
        file = folder / "t.xlsx"
        book.save(file)
        return file

    def by_hand(self):
        """The features as a person makes them with scikit-learn's ColumnTransformer from the true table: names and numbers."""
        known = self.table[self.table["price"].notna()].reset_index(drop=True)
        plain, numbers, texts = {}, [], []
        names = {name: f"unnamed {i}" if name in self.unnamed else name for i, name in enumerate(self.table.columns)}
        for name in self.table.columns:
            column, new = known[name], names[name]
            if name == "price" or name in self.drop:
                continue
            if str(column.dtype).startswith("datetime"):
                for part in ("year", "month", "day"):
                    plain[f"{new}.{part}"] = getattr(column.dt, part).astype(float)
                    numbers.append(f"{new}.{part}")
            elif name in self.as_codes or not (pd.api.types.is_numeric_dtype(column) or column.dtype == bool):
                plain[new] = column.astype(object).where(column.notna(), None)
                texts.append(new)
            else:
                plain[new] = column.astype(float)
                numbers.append(new)
        encoder = OneHotEncoder(drop="if_binary", max_categories=30, handle_unknown="infrequent_if_exist", sparse_output=False)
        made = ColumnTransformer([("n", SimpleImputer(strategy="median"), numbers), ("t", encoder, texts)])
        X = made.fit_transform(pd.DataFrame(plain))
        columns = list(numbers)
        if texts:
            fitted = made.named_transformers_["t"]
            for name, categories, dropped in zip(texts, fitted.categories_, fitted.drop_idx_, strict=True):
                kept = [it for i, it in enumerate(categories) if i != dropped]
                columns += [f"{name}={'(missing)' if it is None else it}" for it in kept]
        return dict(zip(columns, np.asarray(X, dtype=float).T, strict=True)), known["price"].to_numpy()


def added(messy, **columns):
    """With further columns before the target."""
    table = messy.table.copy()
    for name, values in columns.items():
        table.insert(len(table.columns) - 1, name, values)
    return replace(messy, table=table)


def gaps(messy, name, share=0.1, seed=5):
    """With values missing in a column."""
    table, gone = messy.table.copy(), np.random.default_rng(seed).random(len(messy.table)) < share
    gone[:2] = [True, False]
    if table[name].dtype.kind in "if":
        table[name] = table[name].astype(float).where(~gone)
    else:
        table[name] = table[name].astype(object).where(~gone, None)
    return replace(messy, table=table)


def pick(messy, values, seed=1):
    chosen = np.random.default_rng(seed).integers(len(values), size=len(messy.table))
    return [values[i] for i in chosen]


def days(messy):
    return pd.to_datetime("2019-12-01") + pd.to_timedelta(np.random.default_rng(2).integers(0, 700, len(messy.table)), unit="D")


def with_options(messy, **options):
    return replace(messy, options={**messy.options, **options})


def in_letters(messy, letters, **options):
    """In letters that need a city with an umlaut to matter."""
    return with_options(replace(added(messy, ort=pick(messy, CITIES, 7)), encoding=letters), **options)


QUIRKS = {
    "text": lambda m: added(m, city=pick(m, CITIES)),
    "two texts": lambda m: added(m, heating=pick(m, ["gas", "wood"], 3)),
    "missing numbers": lambda m: gaps(m, "area"),
    "missing texts": lambda m: gaps(added(m, street=pick(m, ["A", "B", "C"], 4)), "street"),
    "missing target": lambda m: gaps(m, "price", seed=11),
    "dash for missing": lambda m: with_options(replace(gaps(m, "area"), missing="-"), missing=["-"]),
    "dates": lambda m: added(m, sold=days(m)),
    "German dates": lambda m: replace(added(m, verkauft=days(m)), dates="%d.%m.%Y"),
    "American dates": lambda m: replace(added(m, closed=days(m)), dates="%m/%d/%Y"),
    "yes or no": lambda m: added(m, new=[bool(it) for it in np.arange(len(m.table)) % 3 == 0]),
    "postal codes": lambda m: replace(added(m, zip=pick(m, ["01067", "53113", "89073"], 6)), as_codes=(*m.as_codes, "zip")),
    "names": lambda m: replace(added(m, owner=[f"person {i}" for i in range(len(m.table))]), drop=(*m.drop, "owner")),
    "an empty column": lambda m: replace(added(m, note=[None] * len(m.table)), drop=(*m.drop, "note")),
    "an id": lambda m: added(m, id=np.random.default_rng(8).permutation(len(m.table)) + 1000),
    "an unnamed index": lambda m: replace(
        m, table=pd.concat([pd.Series(np.arange(len(m.table)), name="index"), m.table], axis=1), unnamed=(*m.unnamed, "index")
    ),
    "semicolons": lambda m: replace(m, sep=";"),
    "tabs": lambda m: replace(m, sep="\t"),
    "decimal commas": lambda m: with_options(replace(m, decimal=","), decimal=","),
    "thousands": lambda m: with_options(replace(m, thousands=",", decimal="."), thousands=","),
    "German thousands": lambda m: with_options(replace(m, thousands=".", decimal=","), thousands="."),
    "spaces": lambda m: replace(m, spaces=True),
    "Windows lines": lambda m: replace(m, line_end="\r\n"),
    "a mark": lambda m: in_letters(m, "utf-8-sig"),
    "UTF-16": lambda m: in_letters(m, "utf-16"),
    "cp1252": lambda m: in_letters(m, "cp1252", encoding="cp1252"),
    "sep=": lambda m: replace(m, sep=";", first="sep=;\r\n"),
    "gzip": lambda m: replace(m, pack=".gz"),
    "zip": lambda m: replace(m, pack=".zip"),
    "Parquet": lambda m: replace(m, pack="parquet"),
    "Excel": lambda m: replace(m, pack="xlsx"),
}

GROUPS = (
    ("dates", "German dates", "American dates"),
    ("decimal commas", "thousands", "German thousands"),
    ("semicolons", "tabs", "sep="),
    ("a mark", "UTF-16", "cp1252"),
    ("gzip", "zip", "Parquet", "Excel"),
    ("missing numbers", "dash for missing"),
)
"""Quirks of which a file can have one only."""
OF_TEXT = {
    "German dates", "American dates", "decimal commas", "thousands", "German thousands", "semicolons", "tabs", "spaces", "sep=",
    "Windows lines", "a mark", "UTF-16", "cp1252", "dash for missing", "an unnamed index",
}  # fmt: skip
"""Quirks that Parquet and Excel do not have."""


def fit_together(first, second):
    if any(first in group and second in group for group in GROUPS):
        return False
    both = ((first, second), (second, first))
    return not any(one in ("Parquet", "Excel") and other in OF_TEXT for one, other in both)


ALONE = [(name,) for name in QUIRKS]
PAIRS = [(a, b) for i, a in enumerate(QUIRKS) for b in list(QUIRKS)[i + 1 :] if fit_together(a, b)]


def made(*quirks):
    messy = Messy(base())
    for name in quirks:
        messy = QUIRKS[name](messy)
    return messy

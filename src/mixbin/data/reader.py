"""The one way from a file to features and targets: which rows have a target, what the columns are, and their numbers.

All that is wrong with a table is told at once, each column with the option that settles it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import contents_digest
from mixbin._validate import Floats
from mixbin.data import tables
from mixbin.data.cells import Cells, Kind, Trouble, Unreadable, could_be_thousands, is_id_like
from mixbin.data.dialect import Dialect
from mixbin.data.encoding import Encoded, Encoding, NotEncodable, counted, unusable, words
from mixbin.data.tables import Table, holds_numbers, holds_text
from mixbin.data.troubles import as_typed, refusal
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


HOW = (
    "Each feature is made from its column: number is its value, with if_missing where there is none; indicator is 1 where the "
    "column has the text given as of (null: no text), or one of those given as of_any, and else 0; year, month, day and hour are "
    "parts of a date. In Python: mixbin.TableEncoder().fit(the candidate rows).transform(rows)."
)


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one file that have a target."""

    table: Table
    rows: NDArray[np.intp]
    """Their numbers in the file."""
    features: "pa.Table"
    """Their features, each column of its own type."""
    y: NDArray[Any]
    """Numbers, or classes as text."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def left_out(self) -> int:
        """How many rows have no target."""
        return len(self.table) - len(self.rows)


@dataclass
class Reader:
    """Reads a table and others like it.

    ``classes`` says whether the target is one of classes. Without ``encode`` all features must be numbers.
    """

    target: str
    ignore: Sequence[str]
    dialect: Dialect = field(default_factory=Dialect)
    encode: bool = True
    as_text: Sequence[str] = ()
    classes: bool = False
    for_classes: str = ""
    """The option that takes the target for classes, for messages."""
    columns: list[str] = field(default_factory=list)
    """The features as they are in the file."""
    encoding: Encoding | None = None
    warnings: list[str] = field(default_factory=list)
    filled: dict[str, int] = field(default_factory=dict)
    """Missing values that were filled in, in all rows that were read, by column."""
    unknown: dict[str, int] = field(default_factory=dict)

    def train(self, file: Path) -> Part:
        """The first table, from which the others follow."""
        self.table = tables.read(file, self.dialect)
        self.columns, self.target = self.table.roles(self.target, self.ignore)
        self._as_text = self.table.find_all(self.as_text, "--text")
        self._kinds: dict[str, Kind] = {}
        part = self._part(self.table)
        self._warn(part)
        return part

    def like(self, file: Path) -> Part:
        """A table with the columns of the first one, each of which is what it is there."""
        return self._part(tables.read_like(self.table, [*self.columns, self.target], file, self.dialect))

    # Columns by what they are.

    def _part(self, table: Table) -> Part:
        import pyarrow as pa

        troubles: list[Trouble] = []
        of_target: list[Trouble] = []
        y, there = self._targets(table, of_target)
        rows = np.flatnonzero(there)
        features: dict[str, Any] = {}
        for name in self.columns:
            try:
                features[name] = self._feature(table, name)
            except Unreadable as error:
                troubles.append(error.trouble)
        found = pa.table(list(features.values()), names=list(features))
        if self.encode:
            troubles += [Trouble("type", name, 0, why) for name, why in unusable(found).items()]
        if troubles or of_target:
            raise refusal(table, [*troubles, *of_target], self.target, self.encode, self.for_classes)
        if not rows.size:
            raise InvalidInput(f"column {self.target!r} of {table.file} has no value in any row; name another column as --target")
        return Part(table, rows, found if len(rows) == len(table) else found.take(pa.array(rows)), y[rows])

    def _targets(self, table: Table, troubles: list[Trouble]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The targets of all rows, and which rows have one."""
        if self.classes:
            return table.labels(self.target, self.dialect.missing)
        try:
            y = self._numbers(table, self.target)
        except Unreadable as error:
            it = error.trouble
            kind = it.kind if it.kind in ("dialect", "infinite") else "target"
            troubles.append(Trouble(kind, it.column, it.row, it.value, it.proposals))
            return np.zeros(len(table)), np.ones(len(table), dtype=bool)
        return y, ~np.isnan(y)

    def _feature(self, table: Table, name: str) -> Any:
        """One column by its type; what has been learnt about the column holds for later tables."""
        import pyarrow as pa

        if not self.encode:
            numbers = self._numbers(table, name)
            gone = np.flatnonzero(np.isnan(numbers))
            if gone.size:
                raise Unreadable(Trouble("missing", name, int(gone[0]), ""))
            return pa.chunked_array([pa.array(numbers)])
        values = table.values.column(name)
        if name in self._as_text:
            return Cells(name, _as_text(values), self.dialect).read(Kind("text"))
        if holds_numbers(values.type):
            self._agree(name, Kind("number"), values)
            return (
                values
                if pa.types.is_boolean(values.type)
                else pa.chunked_array([pa.array(self._numbers(table, name), from_pandas=True)])
            )
        if not holds_text(values.type):
            return values
        cells = Cells(name, values, self.dialect)
        known = self._kinds.get(name)
        if known is None or known.name == "number":
            quick = cells.quick_numbers()
            if quick is not None and not (known is None and _has_codes(values)):
                self._kinds.setdefault(name, Kind("number"))
                return pa.chunked_array([pa.array(self._finite(name, quick), from_pandas=True)])
        kind = known or cells.kind()
        self._kinds[name] = kind
        read = cells.read(kind)
        if kind.name == "number":
            self._finite(name, np.asarray(read.to_numpy()))
        return read

    def _agree(self, name: str, kind: Kind, values: "pa.ChunkedArray") -> None:
        """Refuse numbers in a column that was something else in the first table."""
        known = self._kinds.setdefault(name, kind)
        if known.name not in ("number", "yes or no", "nothing"):
            raise Unreadable(Trouble("number", name, 0, f"{values[0]} where the first table has a {known.name}"))

    def _numbers(self, table: Table, name: str) -> Floats:
        """A column that must hold numbers, a missing one NaN."""
        values = table.values.column(name)
        if holds_text(values.type) and not (table.is_parquet and not self.encode):
            cells = Cells(name, values, self.dialect)
            quick = cells.quick_numbers()
            if quick is None:
                # Whatever other kind the cells are, it is no number; but a decimal comma has its own remedy.
                if cells.kind().name not in ("number", "text", "nothing"):
                    raise cells.trouble("number", np.flatnonzero(cells.counts()))
                quick = np.asarray(cells.read(Kind("number")).to_numpy(), dtype=np.float64)
            return self._finite(name, quick)
        if not holds_numbers(values.type):
            row = int(np.flatnonzero(values.is_valid().to_numpy())[0]) if values.null_count < len(values) else 0
            raise Unreadable(Trouble("number", name, row, _shown(values[row : row + 1])))
        import pyarrow as pa
        from pyarrow import compute

        return self._finite(name, np.asarray(compute.cast(values, pa.float64(), safe=False).to_numpy()))

    def _finite(self, name: str, numbers: Floats) -> Floats:
        wrong = np.flatnonzero(np.isinf(numbers))
        if wrong.size:
            raise Unreadable(Trouble("infinite", name, int(wrong[0]), ""))
        return numbers

    # Numbers.

    def learn(self, parts: Sequence[Part], rows: NDArray[np.intp] | None = None) -> None:
        """Learn the encoding from all rows of some parts, or from some of them, counted through all parts."""
        if not self.encode:
            return
        import pyarrow as pa

        some = pa.concat_tables([part.features for part in parts], promote_options="permissive")
        if rows is not None and len(rows) < len(some):
            some = some.take(pa.array(rows))
        self.encoding = Encoding(some)
        if not self.encoding.names:
            raise InvalidInput(
                f"{self.table.file} must have a column to predict {self.target!r} from, got none that can be used "
                f"({words(self.encoding, 0)}); add columns"
            )

    @property
    def names(self) -> list[str]:
        """The features as numbers."""
        return self.columns if self.encoding is None else self.encoding.names

    def numbers(self, part: Part) -> Floats:
        """The features of a part."""
        if self.encoding is None:
            return np.column_stack([np.asarray(column.to_numpy()) for column in part.features.columns])
        try:
            encoded: Encoded = self.encoding.transform(part.features)
        except NotEncodable as error:
            troubles = [Trouble("type", name, 0, why) for name, why in error.columns.items()]
            raise refusal(part.table, troubles, self.target, True, self.for_classes) from None
        for counts, new in ((self.filled, encoded.filled), (self.unknown, encoded.unknown)):
            for name, count in new.items():
                counts[name] = counts.get(name, 0) + count
        return encoded.X

    def held_apart(self, part: Part, train: NDArray[np.intp], held: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The features of some rows of a part, and of others, which have no part in the encoding of both.

        What cross-validation needs: the columns may differ from fold to fold, since the texts and the gaps do.
        """
        import pyarrow as pa

        some, others = (part.features.take(pa.array(rows)) for rows in (train, held))
        encoding = Encoding(some)
        if not encoding.names:
            # None of the columns can be used by these rows alone; a constant is what they have to say.
            return np.zeros((len(train), 1)), np.zeros((len(held), 1))
        return encoding.transform(some).X, encoding.transform(others).X

    @property
    def is_plain(self) -> bool:
        """Whether the features are the numbers of the table as they are, so that nothing was learnt."""
        return self.encoding is None or (self.encoding.is_plain and not self.filled)

    def is_unchanged(self, name: str) -> bool:
        """Whether a feature has the numbers of the column of that name, none of them filled in."""
        if self.encoding is None:
            return True
        said = self.encoding.about[name]
        return said == said | {"column": name, "is": "number"} and name not in self.filled

    def model_facts(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """What a model file says about features that are not the columns of the table; empty where they are."""
        if self.encoding is None or self.is_plain:
            return {}
        about = self.encoding.about
        said = {name: about[name] for name in (self.names if names is None else names)}
        return {"encoding": {"how": HOW, "features": said}}

    # What to tell.

    def _warn(self, part: Part) -> None:
        """Note what may have been misread."""
        for name, kind in self._kinds.items():
            values = self.table.values.column(name)
            if kind.name != "number":
                continue
            if holds_text(values.type) and self.dialect.is_usual and (shown := could_be_thousands(values)):
                self.warnings.append(
                    f"column {name!r} has numbers such as {shown}, which could be German thousands; if so, add --thousands ."
                )
            typed = part.features.column(name)
            numbers = np.asarray(typed.to_numpy(), dtype=np.float64) if not typed.null_count else np.empty(0)
            if is_id_like(numbers):
                self.warnings.append(
                    f"column {name!r} has another whole number in every row, as an id has; if so, add --ignore {as_typed(name)}"
                )
        for name in self.columns:
            if (
                name.startswith("unnamed ")
                and not any(repr(name) in it for it in self.warnings)
                and name in part.features.column_names
            ):
                self.warnings.append(
                    f"column {self.table.names.index(name)} has no name and is used as {name!r}; leave it out with "
                    f"--ignore {as_typed(name)} if it is an index"
                )

    def identity(self, parts: Sequence[Part]) -> dict[str, str]:
        """A hash of what the numbers do not show: what each feature is, which rows have no target; empty where all is plain."""
        told = self.facts(parts)
        gone = [np.setdiff1d(np.arange(len(part.table)), part.rows) for part in parts if part.left_out]
        return {"reading": contents_digest([told.get("features"), gone])} if "features" in told or gone else {}

    def facts(self, parts: Sequence[Part]) -> dict[str, Any]:
        """How the files were read, for the record: in sentences, and what each feature is; empty if nothing need be told."""
        said = list(self.table.notes)
        left_out = sum(part.left_out for part in parts)
        if left_out:
            said.append(f"{counted(left_out, 'row')} without a value in column {self.target!r} left out.")
        out: dict[str, Any] = {}
        if self.encoding is not None:
            if how := words(self.encoding, sum(self.filled.values())):
                said.append(f"Encoded: {how}.")
            if not self.encoding.is_plain or self.filled:
                out["features"] = self.encoding.about
            if self.unknown:
                names = ", ".join(f"{name!r} ({count:,})" for name, count in self.unknown.items())
                said.append(f"Texts of validation or test rows that the candidate rows do not have count as other: {names}.")
        said += [f"Beware: {it}." for it in self.warnings]
        if said:
            out["said"] = said
        if self.table.separator != ",":
            out["separator"] = self.table.separator
        return out


def _as_text(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Any values as text; whole numbers without a decimal point."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_floating(values.type):
        numbers = np.asarray(values.to_numpy())
        whole = np.isfinite(numbers)
        if np.all(numbers[whole] == np.rint(numbers[whole])):
            return pa.chunked_array([pa.array([str(int(it)) if ok else None for it, ok in zip(numbers, whole, strict=True)])])
    return values.cast(pa.string())


def _has_codes(values: "pa.ChunkedArray") -> bool:
    """Whether some of the first cells are whole numbers that begin with a zero, such as postal codes."""
    texts = [text.strip() for text in values.slice(0, 1_000).to_pylist() if text]
    return any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)


def _shown(values: "pa.ChunkedArray") -> str:
    value = tables.as_python(values)[0]
    return repr(value) if isinstance(value, str) else str(value)

"""The one way from a file to features and targets: which rows have a target, what the columns are, and their numbers.

All that is wrong with a table is told at once, each column with the option that settles it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data import tables
from mixbin.data.cells import Trouble, Unreadable, could_be_thousands
from mixbin.data.dialect import Dialect
from mixbin.data.doubts import about_last_row, about_numbers, about_texts
from mixbin.data.encoding import Encoded, Encoding, words
from mixbin.data.leaves import NotEncodable, coded_texts, unusable
from mixbin.data.reading import Reading
from mixbin.data.tables import Table, holds_text
from mixbin.data.troubles import as_typed, refusal
from mixbin.data.typed_columns import TypedColumns
from mixbin.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


MOST_LOOKED_AT = 10_000
"""Different texts of a column that are compared with each other."""


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
    def gone(self) -> NDArray[np.intp]:
        """The rows that have no target."""
        return np.setdiff1d(np.arange(len(self.table)), self.rows)


@dataclass
class Reader(Reading):
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

    def train(self, file: Path) -> Part:
        """The first table, from which the others follow."""
        self.table = tables.read(file, self.dialect)
        self.notes, self.separator = self.table.notes, self.table.separator
        self.columns, self.target = self.table.roles(self.target, self.ignore)
        self.typed = TypedColumns(self.dialect, self.encode, frozenset(self.table.find_all(self.as_text, "--text")))
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
                features[name] = self.typed.feature(name, table.values.column(name), table.is_parquet)
            except Unreadable as error:
                troubles.append(error.trouble)
        found = pa.table(list(features.values()), names=list(features))
        if self.encode:
            troubles += [Trouble("type", name, 0, why) for name, why in unusable(found).items()]
        if troubles or of_target:
            raise refusal(table.file, table.named, [*troubles, *of_target], self.target, self.encode, self.for_classes)
        if not rows.size:
            raise InvalidInput(f"column {self.target!r} of {table.file} has no value in any row; name another column as --target")
        return Part(table, rows, found if len(rows) == len(table) else found.take(pa.array(rows)), y[rows])

    def _targets(self, table: Table, troubles: list[Trouble]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The targets of all rows, and which rows have one."""
        if self.classes:
            return table.labels(self.target, self.dialect.missing)
        try:
            y = self.typed.numbers(self.target, table.values.column(self.target), table.is_parquet)
        except Unreadable as error:
            troubles.append(error.trouble.of_target())
            return np.zeros(len(table)), np.ones(len(table), dtype=bool)
        return y, ~np.isnan(y)

    # Numbers.

    def learn(self, parts: Sequence[Part], rows: NDArray[np.intp] | None = None) -> None:
        """Learn the encoding from all rows of some parts, or from some of them, counted through all parts."""
        if not self.encode:
            return
        import pyarrow as pa

        some = pa.concat_tables([part.features for part in parts], promote_options="permissive")
        if rows is not None and len(rows) < len(some):
            some = some.take(pa.array(rows))
        self.encoding = Encoding.of(some)
        if not self.encoding.names:
            raise InvalidInput(
                f"{self.table.file} must have a column to predict {self.target!r} from, got none that can be used "
                f"({words(self.encoding, 0)}); add columns"
            )

    def numbers(self, part: Part) -> Floats:
        """The features of a part."""
        if self.encoding is None:
            return np.column_stack([np.asarray(column.to_numpy()) for column in part.features.columns])
        try:
            encoded: Encoded = self.encoding.transform(part.features)
        except NotEncodable as error:
            troubles = [Trouble("type", name, 0, why) for name, why in error.columns.items()]
            raise refusal(part.table.file, part.table.named, troubles, self.target, True, self.for_classes) from None
        self.count(encoded.filled, encoded.unknown)
        return encoded.X

    def held_apart(self, part: Part, train: NDArray[np.intp], held: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The features of some rows of a part, and of others, which have no part in the encoding of both.

        What cross-validation needs: the columns may differ from fold to fold, since the texts and the gaps do.
        """
        import pyarrow as pa

        some, others = (part.features.take(pa.array(rows)) for rows in (train, held))
        encoding = Encoding.of(some)
        if not encoding.names:
            # None of the columns can be used by these rows alone; a constant is what they have to say.
            return np.zeros((len(train), 1)), np.zeros((len(held), 1))
        return encoding.transform(some).X, encoding.transform(others).X

    # What to tell.

    def _warn(self, part: Part) -> None:
        """Note what may have been misread."""
        numbers: list[tuple[str, Floats]] = [] if self.classes else [(self.target, part.y)]
        last: list[str] = []  # texts that only the last row has
        for name, kind in self.typed.kinds.items():
            if name not in part.features.column_names:
                continue
            values, typed = self.table.values.column(name), part.features.column(name)
            if kind.name == "text" and len(part):
                texts, codes = coded_texts(typed)
                self.warnings += about_texts(name, [it for it in texts[:MOST_LOOKED_AT] if it is not None])
                if texts[codes[-1]] is not None and np.count_nonzero(codes == codes[-1]) == 1:
                    last.append(str(texts[codes[-1]]))
            if kind.name != "number":
                continue
            if holds_text(values.type) and self.dialect.is_usual and (shown := could_be_thousands(values)):
                self.warnings.append(
                    f"column {name!r} has numbers such as {shown}, which could be German thousands; if so, add --thousands ."
                )
            numbers.append((name, np.asarray(typed.to_numpy(), dtype=np.float64)))
            self.warnings += about_numbers(*numbers[-1])
        if part.rows[-1] == len(self.table) - 1:
            self.warnings += about_last_row(numbers, last)
        for name in self.columns:
            if (
                name.startswith("unnamed ")
                and not any(repr(name) in it for it in self.warnings)
                and part.features.column(name).null_count < len(part)
            ):
                self.warnings.append(
                    f"column {self.table.names.index(name)} has no name and is used as {name!r}; leave it out with "
                    f"--ignore {as_typed(name)} if it is an index"
                )

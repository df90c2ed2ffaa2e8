"""A folder of Parquet files with columns of any type: what each becomes is learnt in a few passes over the files.

Text counts, medians and all else are those of a table in memory with the same rows, to the last bit, however the rows are divided
into files and whoever reads them. Texts are counted up to a limit (``leaves.MOST_TEXTS``).
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin.data.cells import Kind, Trouble, Unreadable, at
from mixbin.data.column_survey import CELLS, ColumnSurvey, Found, Path, all_of, together
from mixbin.data.counted_cells import CountedCells, typed_texts
from mixbin.data.dialect import Dialect
from mixbin.data.encoded_pieces import Place, Recipe, count, look, look_at_target
from mixbin.data.encoding import Encoding, Facts, NumberFacts, TextFacts, whole, words
from mixbin.data.leaves import EMPTY, Leaf, numbers_of
from mixbin.data.medians import NONE, Counts, Wanted, keys_of, median, middle
from mixbin.data.parquet import ParquetFolder
from mixbin.data.reading import Reading
from mixbin.data.troubles import refusal
from mixbin.data.typed_columns import TypedColumns
from mixbin.errors import InvalidInput

CANDIDATE, HELD, NO_TARGET = 0, 1, 2
"""The groups that rows are in."""
NUMBERS = ("number", "yes or no")
HOURS = keys_of(np.zeros(1))[0]
"""The key of midnight."""


@dataclass(frozen=True, eq=False)
class FolderPart:
    """The rows of a folder that have a target."""

    folder: ParquetFolder
    there: NDArray[np.bool_]
    troubles: tuple[Trouble, ...] = ()
    """Why the target of some files cannot be used."""

    def __len__(self) -> int:
        return int(np.count_nonzero(self.there))

    @property
    def gone(self) -> NDArray[np.intp]:
        """The rows that have none."""
        return np.flatnonzero(~self.there)


@dataclass
class FolderReader(Reading):
    """Reads a folder and others like it."""

    dialect: Dialect = field(default_factory=Dialect)
    encode: bool = True
    as_text: Sequence[str] = ()
    for_classes: str = ""

    def __post_init__(self) -> None:
        self.typed = TypedColumns(self.dialect, self.encode)

    def part(self, folder: ParquetFolder) -> FolderPart:
        """Find out which rows have a target."""
        tasks = [(piece, folder.target, self.typed) for piece in folder.pieces]
        found: list[NDArray[np.bool_]] = []
        troubles: dict[str, Trouble] = {}
        for piece, (bits, trouble, kind) in zip(folder.pieces, folder.computed(look_at_target, tasks), strict=True):
            if kind is not None and kind != self.typed.targets.setdefault(folder.target, kind):
                unit = kind.unit or "no unit"
                said = f"numbers with {unit} where others have {self.typed.targets[folder.target].unit or 'none'}"
                trouble = Trouble("target", folder.target, piece.row_in_file, said, file=piece.file)
            if trouble is None:
                found.append(np.unpackbits(bits, count=piece.rows).view(np.bool_))
            else:
                # Told together with what is wrong with the features.
                found.append(np.ones(piece.rows, dtype=bool))
                troubles.setdefault(trouble.file, trouble)
        there = np.concatenate(found)
        if not there.any():
            raise InvalidInput(f"column {folder.target!r} of {folder.path} has no value in any row; name another as --target")
        return FolderPart(folder, there, tuple(troubles.values()))

    # The first folder.

    def learn(self, part: FolderPart, held: NDArray[np.intp] | None = None) -> None:
        """Learn what the columns are and what they become, from the rows that have a target and are not ``held``."""
        folder = part.folder
        self.target, self.columns = folder.target, list(folder.features)
        found = folder.find_all(self.as_text, "--text")
        self.typed = replace(self.typed, as_text=frozenset(found))
        groups = self._groups(part, held)
        surveys = self._surveys(folder, groups)
        everything = all_of(surveys)
        troubles = [trouble for name in self.columns for trouble in self._column(folder, name, everything)]
        if troubles or part.troubles:
            self._refuse(folder, [*troubles, *part.troubles])
        if not self.encode:
            return
        facts = self._facts(folder, surveys.get(CANDIDATE, ColumnSurvey()), groups)
        self.encoding = Encoding(self.columns, facts)
        if not self.encoding.names:
            raise InvalidInput(
                f"{folder.path} must have a column to predict {self.target!r} from, got none that can be used "
                f"({words(self.encoding, 0)}); add columns"
            )
        self._count({group: it for group, it in surveys.items() if group != NO_TARGET})
        folder.recipe = self.recipe

    @property
    def recipe(self) -> Recipe:
        """What workers need to know."""
        assert self.encoding is not None
        return Recipe(self.typed, self.encoding.for_workers())

    def like(self, folder: ParquetFolder) -> FolderPart:
        """A folder with the columns of the first one, each of which is what it is there."""
        part = self.part(folder)
        surveys = self._surveys(folder, self._groups(part, None))
        everything = all_of(surveys)
        troubles = [trouble for name in self.columns for trouble in self._column(folder, name, everything)]
        if self.encoding is not None and not troubles:
            troubles = self._unlike(folder, everything)
        if troubles or part.troubles:
            self._refuse(folder, [*troubles, *part.troubles])
        if self.encoding is not None:
            self._count({group: it for group, it in surveys.items() if group != NO_TARGET})
            folder.recipe = self.recipe
        return part

    def _groups(self, part: FolderPart, held: NDArray[np.intp] | None) -> NDArray[np.uint8] | None:
        if part.there.all() and held is None:
            return None
        groups = np.where(part.there, CANDIDATE, NO_TARGET).astype(np.uint8)
        if held is not None:
            groups[held] = HELD
        return groups

    def _surveys(self, folder: ParquetFolder, groups: NDArray[np.uint8] | None) -> dict[int, ColumnSurvey]:
        tasks = [(piece, self.columns, self.typed, _of(groups, piece)) for piece in folder.pieces]
        out: dict[int, ColumnSurvey] = {}
        for some in folder.in_turns(look, tasks):
            together(some, out)
        return out

    # Columns.

    def _column(self, folder: ParquetFolder, name: str, survey: ColumnSurvey) -> list[Trouble]:
        """Find out what a column is, unless that is known; what speaks against it."""
        place = _Places(folder)
        if name in survey.bad:
            row, why = survey.bad[name]
            return [place.trouble("type" if self.encode else "number", name, row, why)]
        below = survey.below(name)
        here = below.get((name,), Found({}))
        if not self.encode:  # numbers only
            wrong = sorted(it for found in below.values() for kind, it in found.kinds.items() if kind not in NUMBERS)
            if wrong or len(below) > 1:
                return [place.trouble("number", name, *(wrong or [(0, "a nested type")])[0])]
            if here.gap is not None:
                return [place.trouble("missing", name, here.gap, "")]
        infinite = [place.trouble("infinite", name, row, "") for row in place.first_of_files(below)]
        if CELLS in here.kinds and (trouble := self._cells(name, here, place)) is not None:
            return [trouble]
        kinds = {self.typed.kinds[name].name if kind == CELLS else kind: it for kind, it in here.kinds.items()}
        families = {"number" if kind in NUMBERS else kind for kind in kinds if kind != "nothing"}
        if len(families) > 1 or (families and len(below) > 1):
            said = " and ".join(f"a {kind} in row {place.row(row)} of {place.name(row)}" for kind, (row, _) in kinds.items())
            return [place.trouble("mixed", name, min(it[0] for it in kinds.values()), said)]
        if partly := [path for path in below if below[path].kinds and survey.rows_of(path) < survey.rows]:
            said = f"{Leaf(partly[0], '').name} is not in all rows"
            return [place.trouble("type", name, min(it[0] for it in below[partly[0]].kinds.values()), said)]
        return infinite

    def _cells(self, name: str, here: Found, place: "_Places") -> Trouble | None:
        """Find out what the cells of a column of text are."""
        assert here.texts is not None
        cells = CountedCells(name, here.texts, self.dialect)
        try:
            if name in self.typed.as_text:
                self.typed.kinds[name] = Kind("text")
            known = self.typed.kinds.get(name)
            if known is not None and known.name == "nothing":
                known = None
            kind = known or cells.kind()
            self.typed.kinds[name] = kind
            if here.texts.too_many and kind.name != "text":
                raise cells.trouble("many", np.arange(1))
            read = cells.read(kind)
            if kind.name == "number":
                wrong = np.flatnonzero(np.isinf(np.asarray(read.to_numpy(), dtype=np.float64)))
                if wrong.size:
                    raise cells.trouble("infinite", wrong)
        except Unreadable as error:
            it = error.trouble
            return at(it, place.row(it.row), place.file(it.row))
        return None

    def _unlike(self, folder: ParquetFolder, survey: ColumnSurvey) -> list[Trouble]:
        """The columns that are something else than in the first folder."""
        assert self.encoding is not None
        place, out = _Places(folder), []
        for leaf in self.encoding.leaves:
            if leaf.is_left_out:
                continue
            found = survey.found.get(leaf.path, Found({}))
            kinds = {self.typed.kinds[str(leaf.path[0])].name if kind == CELLS else kind: it for kind, it in found.kinds.items()}
            for kind, (row, _) in kinds.items():
                if kind not in (leaf.kind, "nothing") and not {kind, leaf.kind} <= set(NUMBERS):
                    why = f"learnt as {leaf.kind}, but now {kind}"
                    out.append(place.trouble("type", leaf.name, row, why))
        return out

    # What is learnt.

    def _facts(
        self, folder: ParquetFolder, survey: ColumnSurvey, groups: NDArray[np.uint8] | None
    ) -> list[tuple[Leaf, Facts | None]]:
        """What is to be known about each column, from the candidate rows."""
        found: list[tuple[Leaf, TextFacts | tuple[Counts, ...] | None]] = []
        for name in self.columns:
            for path, it in survey.below(name).items():
                if it.kinds or len(survey.below(name)) == 1:
                    found.append(self._leaf(path, it, survey.rows))
        medians = self._medians(folder, {leaf: it for leaf, it in found if isinstance(it, tuple)}, groups)
        out: list[tuple[Leaf, Facts | None]] = []
        for leaf, facts in found:
            if not isinstance(facts, tuple):
                out.append((leaf, facts))
                continue
            last = facts[-1]
            hours = leaf.kind == "date" and bool(np.any(last.keys != HOURS >> np.uint64(last.shift)))
            out.append((leaf, NumberFacts(medians[leaf], hours)))
        return out

    def _leaf(self, path: Path, found: Found, rows: int) -> tuple[Leaf, TextFacts | tuple[Counts, ...] | None]:
        """A column with the counts of its texts or numbers."""
        kinds = set(found.kinds)
        if kinds <= {CELLS, *NUMBERS} and CELLS in kinds and found.texts is not None:
            read = typed_texts(str(path[0]), found.texts, self.typed)
            if read is None:
                return Leaf(path, EMPTY), None
            leaf, values, weights = read
            if leaf.kind == "text":
                texts, _, _ = found.texts.columns()
                keep = [i for i, text in enumerate(values.to_pylist()) if text is not None]
                counts = weights[keep]
                missing = rows - int(counts.sum()) if not found.texts.too_many else 0
                return leaf, TextFacts([texts[i] for i in keep], counts, missing, found.texts.too_many)
            new = tuple(_weighted(column, weights) for column in numbers_of(whole(leaf), values).T)
            old = found.numbers or (NONE,) * len(new)
            return leaf, tuple(a.plus(b) for a, b in zip(new, old, strict=True))
        if not kinds:
            return Leaf(path, EMPTY), None
        if kinds == {"text"}:
            assert found.texts is not None
            texts, counts, _ = found.texts.columns()
            return Leaf(path, "text"), TextFacts(texts, counts, rows - int(counts.sum()), found.texts.too_many)
        kind = "number" if len(kinds) > 1 else next(iter(kinds))
        return Leaf(path, kind), found.numbers

    def _medians(
        self, folder: ParquetFolder, found: Mapping[Leaf, tuple[Counts, ...]], groups: NDArray[np.uint8] | None
    ) -> dict[Leaf, Any]:
        """The medians of the numbers of each column, by as many passes as they need."""
        wanted: dict[Place, Wanted] = {}
        for leaf, columns in found.items():
            for part, counts in enumerate(columns):
                wanted |= {(leaf.path, part, i): it for i, it in enumerate(middle(counts))}
        while open_ := {place: it for place, it in wanted.items() if it.shift}:
            leaves = [leaf for leaf in found if any(place[0] == leaf.path for place in open_)]
            sums: dict[Place, Counts] = {}
            tasks = [(piece, self.typed, leaves, open_, _of(groups, piece)) for piece in folder.pieces]
            for some in folder.in_turns(count, tasks):
                for counted in some:
                    for place, new in counted.items():
                        sums[place] = sums.get(place, NONE).plus(new, open_[place].shift - 16)
            wanted |= {place: it.narrowed(sums[place]) for place, it in open_.items()}
        return {
            leaf: np.array(
                [median([it for place, it in wanted.items() if place[:2] == (leaf.path, part)]) for part in range(len(columns))]
            )
            for leaf, columns in found.items()
        }

    def _count(self, surveys: Mapping[int, ColumnSurvey]) -> None:
        """Count what is filled in, and the texts that were not learnt."""
        assert self.encoding is not None
        filled: dict[str, int] = {}
        unknown: dict[str, int] = {}
        survey = all_of(surveys)
        indicators = iter(self.encoding.indicators)
        for leaf in self.encoding.leaves:
            found = survey.found.get(leaf.path, Found({}))
            if leaf.kind == "text":
                known = next(indicators)
                texts, counts = self._leaf_texts(leaf, found, survey.rows)
                if new := known.unknown(texts, counts):
                    unknown[leaf.name] = new
            elif not leaf.is_left_out:
                there = found.there
                if found.texts is not None and (read := typed_texts(str(leaf.path[0]), found.texts, self.typed)):
                    gone = np.asarray(read[1].is_null().to_numpy())
                    there -= int(read[2][gone].sum())
                elif found.texts is not None:
                    there = 0
                if survey.rows > there:
                    filled[leaf.name] = survey.rows - there
        self.count(filled, unknown)

    def _leaf_texts(self, leaf: Leaf, found: Found, rows: int) -> tuple[list[str | None], NDArray[np.int64]]:
        if found.texts is None:
            return [None], np.array([rows])
        texts, counts, _ = found.texts.columns()
        if CELLS in found.kinds:
            keep = [not self.dialect.is_missing(text) for text in texts]
            texts, counts = [text for text, ok in zip(texts, keep, strict=True) if ok], counts[keep]
        return [*texts, None], np.append(counts, rows - counts.sum())

    def _refuse(self, folder: ParquetFolder, troubles: Sequence[Trouble]) -> None:
        raise refusal(folder.path, True, troubles, self.target, self.encode, self.for_classes)


def _of(groups: NDArray[np.uint8] | None, piece: Any) -> NDArray[np.uint8] | None:
    return None if groups is None else groups[piece.row : piece.row + piece.rows]


def _weighted(numbers: NDArray[np.float64], weights: NDArray[np.int64]) -> Counts:
    there = ~np.isnan(numbers)
    return Counts.of(keys_of(numbers), weights=weights[there])


class _Places:
    """Which file a row of a folder is in, and which row of it that is."""

    def __init__(self, folder: ParquetFolder) -> None:
        self._pieces = folder.pieces
        self._begin = [piece.row for piece in self._pieces]

    def _piece(self, row: int) -> Any:
        return self._pieces[bisect_right(self._begin, row) - 1]

    def file(self, row: int) -> str:
        return str(self._piece(row).file)

    def name(self, row: int) -> str:
        return self.file(row).replace("\\", "/").rsplit("/", 1)[-1]

    def row(self, row: int) -> int:
        piece = self._piece(row)
        return int(row - piece.row + piece.row_in_file)

    def trouble(self, kind: str, name: str, row: int, value: str) -> Trouble:
        return Trouble(kind, name, self.row(row), value, file=self.file(row))

    def first_of_files(self, below: Mapping[Path, Found]) -> list[int]:
        """The first infinite number in each file."""
        rows = sorted(row for found in below.values() for row in found.infinite)
        return list({self.file(row): row for row in reversed(rows)}.values())[::-1]

"""What a reader of files has to tell: what became of the columns, how a model is applied to other rows, what may be misread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import contents_digest
from mixbin._validate import listed
from mixbin.data.dialect import Dialect
from mixbin.data.encoding import Encoding, counted, words
from mixbin.data.typed_columns import TypedColumns

HOW = (
    "Each feature is made from its column: number is its value, with if_missing where there is none; indicator is 1 where the "
    "column has the text given as of (null: no text), or one of those given as of_any, and else 0; year, month, day and hour are "
    "parts of a date. In Python: mixbin.TableEncoder().fit(the candidate rows).transform(rows)."
)


class Read(Protocol):
    """Rows that were read."""

    @property
    def gone(self) -> NDArray[np.intp]:
        """The numbers of the rows that have no target."""
        ...


@dataclass(kw_only=True)
class Reading:
    """The part that readers of single files and of folders share."""

    target: str
    columns: list[str] = field(default_factory=list)
    """The features as they are in the file."""
    encoding: Encoding | None = None
    warnings: list[str] = field(default_factory=list)
    filled: dict[str, int] = field(default_factory=dict)
    """Missing values that were filled in, in all rows that were read, by column."""
    unknown: dict[str, int] = field(default_factory=dict)
    """Texts that were not learnt, by column."""
    notes: Sequence[str] = ()
    """What a person should know about how a table was read."""
    separator: str = ","
    typed: TypedColumns = field(default_factory=lambda: TypedColumns(Dialect()))
    """What the columns are."""

    def count(self, filled: Mapping[str, int], unknown: Mapping[str, int]) -> None:
        """Add to what was filled in and what is unknown."""
        for counts, new in ((self.filled, filled), (self.unknown, unknown)):
            for name, count in new.items():
                counts[name] = counts.get(name, 0) + count

    @property
    def names(self) -> list[str]:
        """The features as numbers."""
        return self.columns if self.encoding is None else self.encoding.names

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

    def _typed_notes(self) -> list[str]:
        """What was done to cells before they were taken for numbers or dates."""
        kinds = {**self.typed.kinds, **self.typed.targets}
        units = ", ".join(f"{name!r} ({kind.unit})" for name, kind in kinds.items() if kind.unit)
        zones = [name for name, kind in kinds.items() if kind.in_utc]
        return [
            *([f"Numbers are read without their units: {units}."] if units else []),
            *([f"Dates with different time zones are read as UTC: {listed(zones)}."] if zones else []),
        ]

    def identity(self, parts: Sequence["Read"]) -> dict[str, str]:
        """A hash of what the numbers do not show: what each feature is, which rows have no target; empty where all is plain."""
        told = self.facts(parts)
        gone = [part.gone for part in parts if part.gone.size]
        return {"reading": contents_digest([told.get("features"), gone])} if "features" in told or gone else {}

    def facts(self, parts: Sequence["Read"]) -> dict[str, Any]:
        """How the files were read, for the record: in sentences, and what each feature is; empty if nothing need be told."""
        said = list(self.notes)
        left_out = sum(part.gone.size for part in parts)
        if left_out:
            said.append(f"{counted(left_out, 'row')} without a value in column {self.target!r} left out.")
        out: dict[str, Any] = {}
        if self.encoding is not None:
            if how := words(self.encoding, sum(self.filled.values())):
                said.append(f"L{how[1:]}." if how.startswith("left out") else f"Encoded: {how}.")
            if not self.encoding.is_plain or self.filled:
                out["features"] = self.encoding.about
            if self.unknown:
                names = ", ".join(f"{name!r} ({count:,})" for name, count in self.unknown.items())
                said.append(f"Texts of validation or test rows that the candidate rows do not have count as other: {names}.")
        said += [*self._typed_notes(), *(f"Beware: {it}." for it in self.warnings)]
        if said:
            out["said"] = said
        if self.separator != ",":
            out["separator"] = self.separator
        return out

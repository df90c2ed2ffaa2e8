"""The result of a method: the answer, the path that led to it, and how to save both."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mixbin._archive import BROKEN, broken, read_archive, write_archive
from mixbin._conforms import conforms
from mixbin._files import csv_text, shortened
from mixbin._html import html_table
from mixbin._validate import fail
from mixbin.certificate import Certificate
from mixbin.problem import Floats

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (1, 2, 3)
"""The versions of the file that ``Result.load`` reads; ``save`` writes the last. Files before version 3 have no settings."""
SHORT_SETTINGS = ("solver", "inner_steps", "starts", "polish", "seed")
"""The settings that the table for notebooks shows."""


class Status(StrEnum):
    """How the run ended, and what kind of answer it gives.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Status.BINARY == "BINARY", [str(it) for it in mb.Status]
    (True, ['BINARY', 'REPAIRED', 'RELAXED', 'INFEASIBLE', 'STOPPED'])
    """

    BINARY = "BINARY"
    """The penalty made theta binary, or a search among binary points found it; the answer is feasible."""
    REPAIRED = "REPAIRED"
    """theta was rounded: the answer is the feasible binary point nearest to where the relaxed variables ended."""
    RELAXED = "RELAXED"
    """Not rounded: theta has fractional entries."""
    INFEASIBLE = "INFEASIBLE"
    """Simple rounding gave a point outside the set; ``violation`` says by how much."""
    STOPPED = "STOPPED"
    """A callback ended the run; the answer is feasible."""


class Relaxed(NamedTuple):
    """The point where the stage without penalty ended. G is not convex, so its value is no bound for binary answers."""

    theta: Floats
    lam: Floats
    value: float


class Trace:
    """The path of a run, one row per inner step and one per outer iteration (with the distance to binary points).

    All rows have the columns start, phase, outer, inner, epsilon, G, phi, step and n_evaluations. Rows of outer iterations also
    have distance, integrality (max_i min(theta_i, 1 - theta_i)), n_selected and seconds. There is a column lam if lam is a single
    number, and a column for each number that the lower level reports.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> trace = mb.relax_and_penalize(problem, seed=0).trace
    >>> trace.column("G")[-1].item(), list(trace.to_frame().columns[:3])
    (-3.0, ['start', 'phase', 'outer'])
    """

    FIRST = ("start", "phase", "outer", "inner", "epsilon", "G", "phi", "step", "n_evaluations")
    LAST = ("distance", "integrality", "n_selected", "seconds")
    WHOLE = ("start", "outer", "inner", "n_evaluations")

    def __init__(self, columns: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._rows: list[dict[str, Any]] = []
        if columns:
            values = {name: column.tolist() for name, column in columns.items()}
            n_rows = len(next(iter(values.values())))
            self._rows = [{name: column[i] for name, column in values.items()} for i in range(n_rows)]

    @classmethod
    def checked(cls, columns: Mapping[str, Any]) -> "Trace":
        """A trace from the columns of a file. Each must have the name, type and length that ``columns`` would give it."""
        lost = {*cls.FIRST, *cls.LAST} - columns.keys()
        if lost:
            raise ValueError(f"the trace has no column {min(lost)!r}")
        for name, column in columns.items():
            kind = "U" if name == "phase" else "f"
            if not isinstance(column, np.ndarray) or column.ndim != 1 or (column.size and column.dtype.kind != kind):
                raise ValueError(f"the column {name!r} of the trace is not what it must be")
            if len(column) != len(columns["phase"]):
                raise ValueError(f"the column {name!r} of the trace has {len(column)} rows, not {len(columns['phase'])}")
        return cls(columns)

    def append(self, **row: Any) -> None:
        """Add a row; the columns that it does not name are missing in this row."""
        self._rows.append(row)

    def truncate(self, n_rows: int) -> None:
        """Forget all rows after the first ``n_rows``."""
        del self._rows[n_rows:]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns: FIRST, then those that depend on the problem, then LAST."""
        others = {name: None for row in self._rows for name in row if name not in self.FIRST + self.LAST}
        return (*self.FIRST, *others, *self.LAST)

    def column(self, name: str) -> NDArray[Any]:
        """One column: strings for the phase, floats for the others, with NaN where a row has no value."""
        if not isinstance(name, str) or name not in self.names:
            raise fail("column", name, f"one of {', '.join(self.names)}")
        return self._column(name)

    def _column(self, name: str) -> NDArray[Any]:
        if name == "phase":
            return np.array([row[name] for row in self._rows], dtype=np.str_)
        return np.array([row.get(name, np.nan) for row in self._rows], dtype=np.float64)

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns, by their names."""
        return {name: self._column(name) for name in self.names}

    def to_frame(self) -> "pd.DataFrame":
        """The trace as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.columns()).astype(dict.fromkeys(self.WHOLE, "int64"))

    def to_csv(self) -> str:
        """The trace as the text of a CSV file, without pandas; cells without a value are empty."""
        columns = self.columns()
        columns |= {name: columns[name].astype(np.int64) for name in self.WHOLE}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return csv_text(list(columns), (["" if cell != cell else cell for cell in row] for row in rows))

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows; to_frame() gives a DataFrame)"


@dataclass(frozen=True)
class Result:
    """The answer of a method.

    Attributes
    ----------
    theta : array of theta_set.shape
        The answer: bool if it is binary, float64 for ``rounding=None``.
    lam : float64 array of lam_set.shape
        The continuous settings that belong to theta.
    value : float
        G(theta, lam), from a last evaluation without warm state.
    status : Status
        How the run ended, and what kind of answer it gives.
    message : str
        What happened, in a sentence.
    n_evaluations : int
        Evaluations of G, over all starts; a search of the problem's own counts as the number of evaluations that cost as much.
    relaxed : Relaxed or None
        Where the stage without penalty ended, in the start that gave the answer.
    certificate : Certificate or None
        What is known about theta, if it is binary and feasible; ``print(result.certificate)`` says it in words.
    violation : float
        How far theta is outside its set; positive only with status INFEASIBLE.
    seed : int
        The seed that reproduces the run, also if the caller gave none.
    trace : Trace
        The path of the run.
    settings : dict
        The settings that the method used, as plain numbers and texts (solver and penalty by their repr); ``preferred`` lists
        those that came from the problem's ``preferred_settings``. Empty for results of earlier versions.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> cost = np.array([3.0, -1.0, 2.0, -2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(4, 2))
    >>> result = mb.relax_and_penalize(problem, seed=0)
    >>> result.theta, result.value, result.n_selected
    (array([False,  True, False,  True]), -3.0, 2)
    """

    theta: NDArray[Any]
    lam: Floats
    value: float
    status: Status
    message: str
    n_evaluations: int
    relaxed: Relaxed | None = None
    certificate: Certificate | None = None
    violation: float = 0.0
    seed: int = 0
    trace: Trace = field(default_factory=Trace)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_selected(self) -> int:
        """The number of entries of theta that are on; in a relaxed theta, those of at least one half."""
        return int(np.count_nonzero(self.theta >= 0.5))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole result to one file, atomically: a NumPy archive with a JSON header, without pickle."""
        header = {
            "kind": "result",
            "format": FORMATS[-1],
            "value": self.value,
            "status": self.status.value,
            "message": self.message,
            "n_evaluations": self.n_evaluations,
            "violation": self.violation,
            "seed": self.seed,
            "relaxed": None if self.relaxed is None else self.relaxed.value,
            "certificate": None if self.certificate is None else asdict(self.certificate),
            "settings": dict(self.settings),
        }
        arrays = {"theta": self.theta, "lam": self.lam}
        if self.relaxed is not None:
            arrays |= {"relaxed_theta": self.relaxed.theta, "relaxed_lam": self.relaxed.lam}
        arrays |= {f"trace_{name}": column for name, column in self.trace.columns().items()}
        write_archive(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Result":
        """Read a result that ``save`` wrote."""
        header, arrays = read_archive(path, "result", FORMATS)
        try:
            return cls._read(header, arrays)
        except BROKEN as error:
            raise broken(shortened(os.fspath(path)), "result", error) from None

    @classmethod
    def _read(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Result":
        """Build a result from the parts of a file. Somebody may have changed the file, so the type of each part is checked."""
        value, certificate = header["relaxed"], header["certificate"]
        columns = {name.removeprefix("trace_"): column for name, column in arrays.items() if name.startswith("trace_")}
        theta, lam = arrays["theta"], arrays["lam"]
        relaxed = None if value is None else Relaxed(arrays["relaxed_theta"], arrays["relaxed_lam"], value)
        if relaxed is not None and (relaxed.theta.shape, relaxed.lam.shape) != (theta.shape, lam.shape):
            raise ValueError("the relaxed point has another shape than the answer")
        result = cls(
            theta=theta,
            lam=lam,
            value=header["value"],
            status=Status(header["status"]),
            message=header["message"],
            n_evaluations=header["n_evaluations"],
            relaxed=relaxed,
            certificate=None if certificate is None else Certificate(**certificate),
            violation=header["violation"],
            seed=header["seed"],
            trace=Trace.checked(columns),
            settings=_checked_settings(header["settings"]) if header["format"] >= 3 else {},
        )
        for part in (result, relaxed, result.certificate):
            for name, hint in get_type_hints(type(part)).items() if part is not None else ():
                if not conforms(getattr(part, name), hint):
                    raise ValueError(f"{name} is not what it must be")
        if theta.dtype not in (np.bool_, np.float64):
            raise ValueError(f"theta has dtype {theta.dtype}")
        return result

    def _repr_html_(self) -> str:
        """A short table, for notebooks."""
        facts = {"status": self.status.value, "value": f"{self.value:.6g}"}
        facts["theta"] = f"{self.n_selected:,} of {self.theta.size:,} on, shape {self.theta.shape}"
        if self.lam.size:
            facts["lam"] = np.array2string(self.lam, precision=4, threshold=6)
        if self.relaxed is not None:
            facts["relaxed value"] = f"{self.relaxed.value:.6g}"
        facts |= {"evaluations": f"{self.n_evaluations:,}", "what happened": self.message}
        if self.certificate is not None:
            facts["certificate"] = str(self.certificate)
        if self.settings:
            facts["settings"] = self._short_settings()
        return html_table("mixbin result", facts)

    def _short_settings(self) -> str:
        """The most important settings in one line; those that the problem chose are marked."""
        preferred = self.settings.get("preferred", ())
        shown = [
            f"{name} {self.settings[name]}" + (" (the problem's preference)" if name in preferred else "")
            for name in SHORT_SETTINGS
            if name in self.settings
        ]
        return ", ".join([str(self.settings.get("method", "")), *shown])

    def __repr__(self) -> str:
        lines = [
            f"Result: {self.status.value}, value {self.value:.6g}",
            f"  theta   {self.n_selected} of {self.theta.size} on, shape {self.theta.shape}",
        ]
        if self.lam.size:
            shown = np.array2string(self.lam, precision=4, threshold=6)
            lines.append(f"  lam     {shown}")
        if self.relaxed is not None:
            lines.append(f"  relaxed value {self.relaxed.value:.6g}")
        lines.append(f"  {self.message}")
        return "\n".join(lines)


def _checked_settings(read: object) -> dict[str, Any]:
    """Settings from a file. Their values must be numbers, texts, booleans, None, or lists of these."""
    if not isinstance(read, dict):
        raise ValueError("the settings are not what they must be")
    for name, value in read.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None and not isinstance(item, (bool, int, float, str)):
                raise ValueError(f"the setting {name[:60]!r} is not what it must be")
        if name == "preferred" and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise ValueError("the preferred settings are not what they must be")
    return read

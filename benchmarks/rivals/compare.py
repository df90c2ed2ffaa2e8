"""Who is ahead: paired differences over seeds, and what they say, from the records alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.rivals.cells import Family, Quantity, Record

ENDS = "ends"
"""The measure of cells that say by 1 or 0 whether a method ended with a proof."""


@dataclass(frozen=True)
class Finding:
    """mixbin beside one rival in one table: the mean of rival less mixbin (signed so that more is better for mixbin)."""

    family: str
    table: str
    budget: str
    quantity: Quantity
    rival: str
    ours: float
    theirs: float
    ahead: float
    error: float
    seeds: int
    our_seconds: float
    their_seconds: float
    our_judged: float | None
    their_judged: float | None

    @property
    def verdict(self) -> str:
        """'wins' if the rival is better by more than a standard error, 'loses' if it is worse by more, else 'ties'."""
        level = max(self.error, self.quantity.least * abs(self.ours))
        return "wins" if self.ahead < -level else "loses" if self.ahead > level else "ties"


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def standard_error(values: Sequence[float]) -> float:
    """That of the mean; 0 for a single value, of which none can be had."""
    if len(values) < 2:
        return 0.0
    centre = mean(values)
    return math.sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1) / len(values))


def good(records: Iterable[Record]) -> dict[tuple[str, str], dict[str, dict[int, Record]]]:
    """The records that have measures, by (table, budget), method and seed."""
    out: dict[tuple[str, str], dict[str, dict[int, Record]]] = {}
    for record in records:
        if record["state"] == "ok":
            place = out.setdefault((record["table"], record["budget"]), {})
            place.setdefault(record["method"], {})[record["seed"]] = record
    return out


def findings(family: Family, records: Iterable[Record]) -> list[Finding]:
    """Every rival beside mixbin, in every table and quantity, over the seeds that both have."""
    out = []
    for (table, budget), methods in good(records).items():
        mine = methods.get(family.ours, {})
        for rival, theirs in methods.items():
            if rival == family.ours or rival in family.references:
                continue
            for quantity in family.quantities:
                seeds = [s for s in theirs if s in mine and all(quantity.key in it[s]["measures"] for it in (mine, theirs))]
                if seeds:
                    out.append(_finding(table, budget, quantity, rival, [mine[s] for s in seeds], [theirs[s] for s in seeds]))
    return out


def _finding(table: str, budget: str, quantity: Quantity, rival: str, mine: list[Record], theirs: list[Record]) -> Finding:
    ours, other = ([it["measures"][quantity.key] for it in records] for records in (mine, theirs))
    apart = [(b - a) * (1 if quantity.less else -1) for a, b in zip(ours, other, strict=True)]
    judged = [[it["measures"].get("judged") for it in records] for records in (mine, theirs)]
    both = [None if None in values else mean(values) for values in judged]
    return Finding(
        *(mine[0]["family"], table, budget, quantity, rival, mean(ours), mean(other), mean(apart), standard_error(apart)),
        *(len(apart), mean([it["seconds"] for it in mine]), mean([it["seconds"] for it in theirs]), both[0], both[1]),
    )


def absent(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """The cells without measures, by method and reason."""
    out: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record["state"] != "ok":
            out.setdefault((record["method"], record["reason"]), []).append(record)
    return out

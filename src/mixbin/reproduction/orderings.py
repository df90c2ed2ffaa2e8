"""Which orderings of the published tables do not hold in our runs, and why.

An ordering is a strict difference between two methods in a published table; it does not hold if ours are equal or reversed.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from mixbin.reproduction.published import Cell
from mixbin.reproduction.table import Entry, Finding

EQUAL_WITHIN = 2e-3
"""Two of our means count as equal if they differ by at most this share."""
SIGNS = {-1: "below", 0: "level with", 1: "above"}


class Comparison(NamedTuple):
    """Two methods in one column of a table."""

    quantity: str
    where: str
    first: str
    second: str
    entries: tuple[Entry, Entry]


Reason = Callable[[Comparison], str | None]


def findings(comparisons: Iterable[Comparison], reason: Reason) -> tuple[Finding, ...]:
    """The orderings that do not hold; columns with the same finding and the same reason are listed together."""
    places_by_story: dict[tuple[str, ...], list[str]] = {}
    for it in comparisons:
        first, second = it.entries
        if first.published is None or second.published is None or first.mean is None or second.mean is None:
            continue
        there = _sign(first.published.mean, second.published.mean, 0.0)
        here = _sign(first.mean, second.mean, EQUAL_WITHIN)
        if there == 0 or there == here:
            continue
        known = (reason(it), _within_spread(first.published, second.published), _single(first, second))
        why = "; ".join(filter(None, known)) or "not explained"
        story = (it.quantity, f"{it.first} {SIGNS[there]} {it.second}", f"{it.first} is {SIGNS[here]} {it.second}", why)
        places_by_story.setdefault(story, []).append(it.where)
    return tuple(
        Finding(f"{quantity} at {', '.join(places)}", published, ours, why)
        for (quantity, published, ours, why), places in places_by_story.items()
    )


def _sign(first: float, second: float, level: float) -> int:
    if abs(first - second) <= level * max(abs(first), abs(second)):
        return 0
    return -1 if first < second else 1


def _single(first: Entry, second: Entry) -> str | None:
    alone = len(first.values) == 1 == len(second.values)
    return "there is one run of each here, and the spread between runs is not known" if alone else None


def _within_spread(first: Cell, second: Cell) -> str | None:
    if first.sd is None or second.sd is None or abs(first.mean - second.mean) > first.sd + second.sd:
        return None
    return "the published difference is within its own standard deviations"

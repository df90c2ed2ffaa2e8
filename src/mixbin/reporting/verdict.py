"""What an answer is worth, in a sentence: how it compares with the simplest things that one could do instead."""

from math import isfinite
from typing import NamedTuple

LEVEL = 1e-3
"""Errors that differ by at most this share are level: another draw of rows would change more."""
MUCH = 0.05
"""An error that is larger than that of all rows by more than this share needs a red line."""


class Verdict(NamedTuple):
    """A sentence or two, and red lines."""

    sentence: str
    red: tuple[str, ...] = ()


def apart(ratio: float, spread: float | None = None) -> str:
    """How far an error is from the one that it is compared with: "0.4 % above", "2 % below", "level"."""
    percent = 100 * (ratio - 1)
    more = "" if spread is None else f" (± {percent_text(100 * spread)} from draw to draw)"
    if not isfinite(percent):
        return f"far above{more}"
    if abs(percent) < 0.005:
        return f"equal{more}"
    return f"{percent_text(abs(percent))} {'above' if percent > 0 else 'below'}{more}"


def percent_text(percent: float) -> str:
    """A share in per cent, with two digits, or without decimals."""
    text = f"{percent:.2g}" if percent < 99.5 else f"{percent:,.0f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def above(share: float) -> str:
    """A proven share in per cent, rounded up: less would not be proven."""
    return "0.001\N{NO-BREAK SPACE}%" if share <= 1e-5 else percent_text(100 * share * (1 + 5e-3))


def worse(ratio: float, than: float, by: float = LEVEL) -> bool:
    """Whether an error is larger than another one by more than a share of it."""
    return ratio > than * (1 + by)

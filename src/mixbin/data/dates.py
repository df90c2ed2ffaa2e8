"""Dates and times of day as people write them."""

import re

import numpy as np

CLOCK = r"(?:[ T]+(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:\.\d+)?)?)?"
ZONE = r"(?P<z>Z|[+-]\d{2}:?\d{2})?"
DATES = {
    "ymd": rf"^(?P<y>\d{{4}})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}}){CLOCK}{ZONE}$",
    "d.m.y": rf"^(?P<d>\d{{1,2}})\.(?P<m>\d{{1,2}})\.(?P<y>\d{{2}}|\d{{4}}){CLOCK}$",
    "dmy": rf"^(?P<d>\d{{1,2}})[-/](?P<m>\d{{1,2}})[-/](?P<y>\d{{2}}|\d{{4}}){CLOCK}$",
    "mdy": rf"^(?P<m>\d{{1,2}})[-/](?P<d>\d{{1,2}})[-/](?P<y>\d{{2}}|\d{{4}}){CLOCK}$",
    "d b y": rf"^(?P<d>\d{{1,2}})[. -]+(?P<b>[A-Za-z]{{3,9}})\.?[ ,-]+(?P<y>\d{{4}}){CLOCK}$",
    "b d y": rf"^(?P<b>[A-Za-z]{{3,9}})\.? (?P<d>\d{{1,2}}),? (?P<y>\d{{4}}){CLOCK}$",
    "b y": r"^(?P<b>[A-Za-z]{3,9})[-. ](?P<y>\d{4})$",
}
"""The ways to write a date that are read, by the order of day, month and year."""
CLEAR = ("ymd", "d.m.y", "d b y", "b d y", "b y")
"""Those of which one cannot be taken for another, so that a column may have several of them."""
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
TIME = r"^(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:\.\d+)?)?$"


def zone_of(text: str) -> str:
    """The time zone at the end of a date; empty if there is none."""
    found = re.match(DATES["ymd"], text)
    return "" if found is None else (found["z"] or "")


def moment(parts: dict[str, str | None], in_utc: bool = False) -> np.datetime64 | None:
    """The moment that the parts of a date or time make; None if there is none, such as on the 31st of February.

    With ``in_utc`` the time zone counts; otherwise the moment is what the clock showed.
    """
    year, month, day = parts.get("y") or "1970", parts.get("m") or "1", int(parts.get("d") or 1)
    if (name := parts.get("b")) is not None:
        if name[:3].lower() not in MONTHS:
            return None
        month = str(MONTHS.index(name[:3].lower()) + 1)
    full = int(year) if len(year) == 4 else int(year) + (1900 if int(year) >= 70 else 2000)
    clock = [int(parts.get(name) or 0) for name in "HMS"]
    if not (1 <= int(month) <= 12 and clock[0] < 24 and clock[1] < 60 and clock[2] < 60):
        return None
    first = np.datetime64(f"{full:04d}-{int(month):02d}", "D")
    date = first + np.timedelta64(day - 1, "D")
    if date.astype("M8[M]") != first.astype("M8[M]"):
        return None
    seconds = 3600 * clock[0] + 60 * clock[1] + clock[2]
    zone = parts.get("z") if in_utc else None
    if zone and zone != "Z":
        ahead = 3600 * int(zone[1:3]) + 60 * int(zone[-2:])
        seconds -= -ahead if zone[0] == "-" else ahead
    at: np.datetime64 = date.astype("M8[us]") + np.timedelta64(seconds, "s")
    return at

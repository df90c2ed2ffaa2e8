"""What a page is made of: sections of a few kinds of blocks, which one template knows how to show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from markupsafe import Markup, escape

Text = str | Markup


@dataclass(frozen=True)
class Prose:
    """Paragraphs."""

    kind: ClassVar[str] = "prose"
    paragraphs: Sequence[Text]
    muted: bool = False


@dataclass(frozen=True)
class Points:
    """A list; each point may have a head, and a mark: "good", "open" or "bad"."""

    kind: ClassVar[str] = "points"
    points: Sequence["Point"]


@dataclass(frozen=True)
class Point:
    """One of them."""

    text: Text
    head: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Grid:
    """A table that stands as it is; the last ``heads`` cells of ``strong`` rows are set off."""

    kind: ClassVar[str] = "grid"
    columns: Sequence[str]
    rows: Sequence[Sequence["Cell"]]
    labels: int = 1
    """Columns at the left that name the row."""
    strong: int = -1
    """The row that the page is about."""


@dataclass(frozen=True)
class Cell:
    """What stands in a grid, and below it in small letters what it is held against."""

    text: Text
    below: str = ""


@dataclass(frozen=True)
class Facts:
    """Names and what they are."""

    kind: ClassVar[str] = "facts"
    facts: Mapping[str, Text]


@dataclass(frozen=True)
class Shell:
    """A command to type."""

    kind: ClassVar[str] = "shell"
    command: str


@dataclass(frozen=True)
class Drawing:
    """A figure as SVG of this page, and what its curves and cells hold where one points at them."""

    kind: ClassVar[str] = "drawing"
    svg: Markup
    panels: Sequence[Mapping[str, Any]]
    caption: Text
    width: float
    """In points, as drawn."""


@dataclass(frozen=True)
class Listing:
    """A long table that can be sorted and searched, and left as a CSV file."""

    kind: ClassVar[str] = "listing"
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    name: str
    """Of the file that is downloaded."""
    what: str
    """What the rows are, such as "rows"."""
    links: Sequence[str] = ()
    """Where the first cell of each row leads."""
    download: Mapping[str, Any] | None = None
    """Columns and rows of the file where it is not the table itself."""
    note: Text = ""
    label: str = "Download as CSV"


Block = Prose | Points | Grid | Facts | Shell | Drawing | Listing


@dataclass(frozen=True)
class Section:
    """A part of a page, under a heading."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """All of it."""

    title: Text
    subtitle: Text
    kind: str
    """What was done, in a word or two."""
    sections: Callable[[], Sequence[Section]]
    """Made when the page is written: an index needs no figures."""
    tiles: Mapping[str, Text] = field(default_factory=dict)
    """A few figures that say the most, by what they are."""


def isolated(name: str) -> Markup:
    """A name from the user's data: shown as text, and where it runs from right to left only within itself."""
    return Markup("<bdi>{}</bdi>").format(name)


def isolating(text: str, *names: str) -> Markup:
    """A text in which these names are set off in that way."""
    out = escape(text)
    for name in sorted({str(escape(name)) for name in names if name}, key=len, reverse=True):
        out = Markup(str(out).replace(name, f"<bdi>{name}</bdi>"))
    return out

"""The parts of a page: sections that consist of a few kinds of blocks, which one template shows.

The HTML of a page is one file that loads no other file and runs no script but its own.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar

from markupsafe import Markup, escape

from mixbin._version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR = "mixbin"
"""The name in the head of every page, by which mixbin recognises its own pages."""
Text = str | Markup


@dataclass(frozen=True)
class Prose:
    """Paragraphs of text."""

    kind: ClassVar[str] = "prose"
    paragraphs: Sequence[Text]
    muted: bool = False


@dataclass(frozen=True)
class Points:
    """A list of points."""

    kind: ClassVar[str] = "points"
    points: Sequence["Point"]


@dataclass(frozen=True)
class Point:
    """One point of a list. It may have a head, and a mark: "good", "open" or "bad"."""

    text: Text
    head: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Grid:
    """A short table that cannot be sorted or searched."""

    kind: ClassVar[str] = "grid"
    columns: Sequence[str]
    rows: Sequence[Sequence["Cell"]]
    labels: int = 1
    """The number of columns at the left that name the row."""
    strong: int = -1
    """The number of the row that the page is about, which is emphasised; -1 for none."""


@dataclass(frozen=True)
class Cell:
    """A cell of a grid: a text and, below it in small letters, the text that it is compared with."""

    text: Text
    below: str = ""


@dataclass(frozen=True)
class Facts:
    """A list of names, each with its value."""

    kind: ClassVar[str] = "facts"
    facts: Mapping[str, Text]


@dataclass(frozen=True)
class Shell:
    """A command for the reader to type."""

    kind: ClassVar[str] = "shell"
    command: str


@dataclass(frozen=True)
class Code:
    """Some lines of Python to copy."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Drawing:
    """A figure as SVG, and the numbers that the page shows when the reader points at its curves or cells."""

    kind: ClassVar[str] = "drawing"
    svg: Markup
    panels: Sequence[Mapping[str, Any]]
    caption: Text
    width: float
    """The width of the drawing in points."""
    narrow: "Drawing | None" = None
    """What narrow screens show instead."""


@dataclass(frozen=True)
class Figures:
    """Drawings side by side, or below each other on a narrow screen."""

    kind: ClassVar[str] = "figures"
    drawings: Sequence[Drawing]


@dataclass(frozen=True)
class Listing:
    """A long table that the reader can sort, search and download as a CSV file."""

    kind: ClassVar[str] = "listing"
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    name: str
    """The name of the file to download."""
    what: str
    """The plural that the page uses for the rows, such as "rows" or "runs"."""
    links: Sequence[str] = ()
    """The link of the first cell of each row."""
    download: Mapping[str, Any] | None = None
    """The columns and rows of the file, if they differ from those of the table."""
    note: Text = ""
    label: str = "Download as CSV"


@dataclass(frozen=True)
class Heat:
    """A square table of counts, the darker the larger; lines and columns have the same names."""

    kind: ClassVar[str] = "heat"
    names: Sequence[Text]
    rows: Sequence[Sequence[tuple[str, float]]]
    """Each cell's text and its darkness, from 0 to 1."""


@dataclass(frozen=True)
class Pictures:
    """Small pictures side by side."""

    kind: ClassVar[str] = "pictures"
    pictures: Sequence["Picture"]


@dataclass(frozen=True)
class Picture:
    """A picture as a data URL, with a caption and a smaller text below it."""

    url: str
    caption: Text
    below: str = ""


Block = Prose | Points | Grid | Facts | Shell | Code | Drawing | Figures | Listing | Heat | Pictures


@dataclass(frozen=True)
class Section:
    """A part of a page, under a heading."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A whole page."""

    title: Text
    subtitle: Text
    kind: str
    """The kind of run, in a word or two."""
    sections: Callable[[], Sequence[Section]]
    """A function, so that the figures are drawn only when the page is written; an index of runs needs none of them."""
    tiles: Mapping[str, Text] = field(default_factory=dict)
    """The few most important numbers, by their names."""
    red: Sequence[str] = ()
    """What speaks against the answer so strongly that nobody should miss it."""
    more: Text = ""
    """A further sentence, below the answer in smaller letters."""


def isolated(name: str) -> Markup:
    """A name from the user's data as text. ``bdi`` keeps a name written from right to left from reordering the text around it."""
    return Markup("<bdi>{}</bdi>").format(name)


def isolating(text: str, *names: str) -> Markup:
    """A text in which each of these names is isolated as by ``isolated``."""
    out = escape(text)
    for name in sorted({str(escape(name)) for name in names if name}, key=len, reverse=True):
        out = Markup(str(out).replace(name, f"<bdi>{name}</bdi>"))
    return out


def html(page: Page) -> str:
    """The HTML of a page."""
    script, style = _text("page.js"), _text("page.css")
    # The policy allows this script by its hash. Any other script would not run, even if user data could smuggle one in.
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{allowed}'; form-action 'none'"
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            title=escape(page.title).striptags(),
            policy=policy,
            script=Markup(script),
            style=Markup(style),
            generator=GENERATOR,
            version=__version__,
        )
    )


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("mixbin.reporting"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


@cache
def _text(name: str) -> str:
    return (files("mixbin.reporting") / "templates" / name).read_text(encoding="utf-8")

"""Render pages as HTML: one file that loads no other file and runs no script but its own."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from mixbin._version import __version__
from mixbin.reporting.blocks import Page

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR = "mixbin"
"""The name in the head of every page, by which mixbin recognises its own pages."""


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

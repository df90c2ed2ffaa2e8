"""Short tables for notebooks."""

from collections.abc import Mapping
from html import escape

CELL = '<td style="text-align: left; white-space: normal; max-width: 45em">'


def html_table(caption: str, facts: Mapping[str, str]) -> str:
    """A table with a name and a text in each line."""
    rows = (f'<tr><th style="text-align: left">{escape(name)}</th>{CELL}{escape(text)}</td></tr>' for name, text in facts.items())
    return f"<table><caption>{escape(caption)}</caption><tbody>{''.join(rows)}</tbody></table>"

"""Short tables for notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

CELL = '<td style="text-align: left; white-space: normal; max-width: 45em">'


def html_table(caption: str, facts: Mapping[str, str]) -> str:
    """A table with a name and a text in each line."""
    rows = (f'<tr><th style="text-align: left">{escape(name)}</th>{CELL}{escape(text)}</td></tr>' for name, text in facts.items())
    return f"<table><caption>{escape(caption)}</caption><tbody>{''.join(rows)}</tbody></table>"


def html_comparison(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], chosen: int | None = None) -> str:
    """A table with a line for each of several answers, the first cell its name; the chosen line is bold."""
    top = "".join(f'<th style="text-align: {"right" if i else "left"}">{escape(head)}</th>' for i, head in enumerate(heads))
    lines = []
    for at, cells in enumerate(rows):
        weight = "bold" if at == chosen else "normal"
        name, *numbers = (escape(cell) for cell in cells)
        rest = "".join(f'<td style="text-align: right; font-weight: {weight}">{number}</td>' for number in numbers)
        lines.append(f'<tr><th style="text-align: left; font-weight: {weight}">{name}</th>{rest}</tr>')
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"

"""All that is wrong with a table in one message: each column, a cell that shows it, and the options that settle it."""

from collections.abc import Sequence
from pathlib import Path

from mixbin.data.cells import Trouble
from mixbin.errors import InvalidInput

LONGEST = 40
"""Letters of a cell in a message."""
MOST_NAMED = 100
"""Columns or files that a message names for one kind of trouble."""


def refusal(file: Path, named: bool, troubles: Sequence[Trouble], target: str, encode: bool, for_classes: str) -> InvalidInput:
    """The error that names every column that cannot be used; columns with the same trouble are told together.

    ``named`` says whether the columns have names of their own.
    """
    kinds = dict.fromkeys(it.kind for it in troubles)
    said = [_said(file, named, kind, [it for it in troubles if it.kind == kind], target, encode, for_classes) for kind in kinds]
    return InvalidInput(". Also: ".join(said))


def _said(file: Path, named: bool, kind: str, some: Sequence[Trouble], target: str, encode: bool, for_classes: str) -> str:
    first, *others = some
    column, names = (
        f"column {first.column!r} of {first.file or file}",
        ",".join(dict.fromkeys(as_typed(it.column) for it in some if it.column != target)),
    )
    where = f"got {_cut(first.value)} in row {first.row}"
    ignore = f"leave the column out with --ignore {names}" if not others else f"leave the columns out with --ignore {names}"
    word = first.value.strip("'\"")
    missing = f"take {_cut(first.value)} as missing with --missing {as_typed(_cut(word))}"
    text = f"as text with --text {names}"
    if kind == "missing":
        told = f"{column} has no value in row {first.row}; fill it in, remove that row, or {ignore}, or leave out --encode none"
    elif kind == "infinite":
        told = f"{column} is not finite in row {first.row}; replace the value or remove that row" + (
            f", or {ignore}" if names else ""
        )
    elif kind == "type":
        told = f"{column} cannot be turned into numbers: {first.value}; {ignore}, or turn it into numbers"
    elif kind == "mixed":
        told = f"{column} cannot be one feature: it holds {first.value}; {ignore}, or take it {text}"
    elif kind == "many":
        told = f"{column} has more different texts than are counted, {where}; write it as numbers or dates, or {ignore}"
    elif kind == "order":
        told = f"{column} has dates of which one cannot tell day and month, {where}; add --day-first or --month-first"
    elif kind == "date":
        told = f"{column} must hold dates, {where}; {missing}, {text}, or {ignore}"
    elif kind == "dialect":
        told = f"{column} must hold numbers, {where}; {_proposed(some)}" + (f", {ignore}, or take it {text}" if names else "")
    elif kind == "target":
        classes = f"; for classes write {for_classes}" if for_classes else ""
        told = f"{column} must hold numbers, {where}; {missing}, or name another column as --target{classes}"
    elif encode:
        told = f"{column} must hold numbers, {where}; {ignore}, {missing}, or take it {text}"
    else:
        told = f"{column} must hold numbers, {where}; {ignore}, turn it into numbers, or leave out --encode none"
    if kind in ("number", "target") and first.row == 0 and not named:
        told += "; if the first row has the names of the columns, write --header"
    if others:
        told += f"; likewise {', '.join(_likewise(it, first.file) for it in others[:MOST_NAMED])}"
        if len(others) > MOST_NAMED:
            told += f" and {len(others) - MOST_NAMED:,} more"
    return told


def _likewise(it: Trouble, file: str) -> str:
    where = f"row {it.row}" + (f" of {Path(it.file).name}" if it.file != file else "")
    return f"{it.column!r} ({_cut(it.value)} in {where})" if it.value else f"{it.column!r} ({where})"


def _proposed(some: Sequence[Trouble]) -> str:
    """The options with which all these columns are numbers."""
    common = [pair for pair in some[0].proposals if all(pair in it.proposals for it in some)]
    # A sign between thousands that no cell has need not be named.
    needed = [pair for pair in common if not pair[1] or (pair[0], "") not in common]
    written = [_options(*pair) for pair in needed or dict.fromkeys(pair for it in some for pair in it.proposals[:1])]
    if not written:
        return "write the number alone, without signs or units"
    # The proposals are in the order of how common they are; more than two would only confuse.
    return f"write {' or '.join(written[:2])}"


def _options(decimal: str, thousands: str) -> str:
    said = ["--decimal ','"] if decimal == "," and thousands != "." else []
    sign = "space" if thousands.isspace() else repr(thousands)
    return " ".join([*said, *([f"--thousands {sign}"] if thousands else [])])


def as_typed(name: str) -> str:
    """A column or word as one types it after an option."""
    plain = name and all(sign.isalnum() or sign in "_-.,?" for sign in name)
    return name if plain else repr(name)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
